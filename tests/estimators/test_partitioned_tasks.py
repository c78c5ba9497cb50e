"""Tasks whose rows are in pieces: the models of the whole matrix, in few passes."""

import textwrap

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import ShuffleSplit

import clustruct as cs
from tests.losses.targets import answers

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

from clustruct.design.partitioned.blocks import BlockDesign  # noqa: E402
from tests.estimators.test_partitioned import assert_same, in_pieces, run_on_cluster, spoiled  # noqa: E402

N, D, K = 480, 5, 12
SEARCH = {"alpha_within": (1.0, 10.0), "alpha_between": 0.1, "cv": 2}
MODELS = {
    "squared": (cs.TaskClusterRegressor, {}),
    "huber without intercept": (cs.TaskClusterRegressor, {"loss": "huber", "fit_intercept": False}),
    "poisson": (cs.TaskClusterRegressor, {"loss": "poisson"}),
    "quantile": (cs.TaskClusterRegressor, {"loss": "quantile"}),
    "logistic": (cs.TaskClusterClassifier, {"class_weight": "balanced"}),
    "squared classes": (cs.TaskClusterClassifier, {"loss": "squared", "fit_intercept": False}),
}
SEARCHES = {
    "squared": (cs.TaskClusterRegressorCV, {}),
    "logistic": (cs.TaskClusterClassifierCV, {}),
}


@pytest.fixture(scope="module")
def problem(shuffled_tasks):
    """Matrix, answers and ids."""
    return shuffled_tasks(N, D, K, 3)


def answers_for(name, y):
    """What the model of that name predicts."""
    if "classes" in name or "logi" in name:
        return np.where(y > np.median(y), "high", "low")
    return answers(name, y)


def made(name, models=MODELS, **more):
    kind, options = models[name]
    return kind(**{"n_clusters": 3, "random_state": 0, **options, **more})


def later(rows, chunks=77):
    return da.from_array(rows, chunks=chunks)


@pytest.fixture
def passes(monkeypatch):
    """The passes over X of all designs that were made, none of which is kept in memory."""
    monkeypatch.setattr("clustruct.design.partitioned.blocks.available_bytes", lambda: 0.0)
    designs, make = [], BlockDesign.__init__

    def watched(self, *arguments):
        make(self, *arguments)
        designs.append(self)

    monkeypatch.setattr(BlockDesign, "__init__", watched)
    return lambda: sum(design.n_passes for design in designs)


# ---- The same answers


@pytest.mark.parametrize(
    ("name", "kind"), [*((name, "dense") for name in MODELS), ("squared", "csr")]
)
def test_fit_is_that_of_the_whole_matrix(name, kind, problem):
    X, y, tasks = problem
    y = answers_for(name, y)
    if kind != "dense":
        X = sparse.random(N, D, density=0.6, format=kind, random_state=0)
    whole = made(name).fit(X, y, tasks=tasks)
    pieces = made(name).fit(in_pieces(X), later(y), tasks=later(tasks, 50))
    assert_same(pieces, whole)
    np.testing.assert_array_equal(pieces.tasks_, whole.tasks_)
    assert pieces.tasks_.dtype == whole.tasks_.dtype
    for method in ("predict", "decision_function", "predict_proba"):
        if hasattr(pieces, method):
            for ids in (tasks, later(tasks), None):
                answer = getattr(pieces, method)(in_pieces(X), tasks=ids)
                now = getattr(pieces, method)(X, tasks=None if ids is None else tasks)
                assert isinstance(answer, da.Array)
                assert (answer.shape, answer.dtype) == (now.shape, now.dtype)
                np.testing.assert_array_equal(answer.compute(), now)
    score = whole.score(X, y, tasks=tasks)
    assert pieces.score(in_pieces(X), y, tasks=tasks) == pytest.approx(score)


@pytest.mark.parametrize("name", ["squared", "huber without intercept"])
def test_columns_with_missing_answers_and_weights(name):
    X, Y = cs.datasets.make_clustered_tasks(150, 4, 6, 2, missing=0.4, random_state=0).columns()
    weights = np.random.default_rng(0).random(150)
    weights[:60] = 0.0  # a whole chunk, and a part of one
    whole = made(name, n_clusters=2).fit(X, Y, sample_weight=weights)
    for given in (Y, later(Y, (30, 2))):
        pieces = made(name, n_clusters=2).fit(in_pieces(X, 40), given, sample_weight=later(weights))
        assert_same(pieces, whole)
    assert pieces.predict(in_pieces(X, 40)).shape == (150, 6)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_classes_as_tasks(loss):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 200)
    X = np.eye(4)[y] + 0.5 * rng.standard_normal((200, 4))
    names = np.array(["a", "b", "c", "d"])[y]
    whole = cs.TaskClusterClassifier(2, loss=loss, class_weight={"a": 2.0}, random_state=0).fit(
        X, names
    )
    pieces = cs.TaskClusterClassifier(2, loss=loss, class_weight={"a": 2.0}, random_state=0)
    pieces.fit(in_pieces(X, 60), later(names))
    assert_same(pieces, whole)
    np.testing.assert_array_equal(pieces.predict(in_pieces(X, 60)).compute(), whole.predict(X))
    if loss == "logistic":
        shares = pieces.predict_proba(in_pieces(X, 60))
        assert shares.shape == (200, 4)
        np.testing.assert_allclose(shares.compute(), whole.predict_proba(X), rtol=1e-6)


def test_one_task_and_tasks_of_any_kind(problem):
    X, y, tasks = problem
    column = y.reshape(-1, 1)
    assert_same(made("squared").fit(in_pieces(X), column), made("squared").fit(X, column))
    pairs = [(name, len(name)) for name in tasks]
    whole = made("squared").fit(X, y, tasks=pairs)
    pieces = made("squared").fit(in_pieces(X), y, tasks=pairs)
    assert_same(pieces, whole)
    assert list(pieces.tasks_) == list(whole.tasks_)
    unknown = pieces.predict(in_pieces(X), tasks=[("none", 0)] * N).compute()
    np.testing.assert_allclose(unknown, X @ whole.mean_coef_ + whole.mean_intercept_)


def test_fewer_rows_than_columns():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((30, 50)), rng.standard_normal((30, 3))
    for name in ("squared", "huber without intercept"):
        whole = made(name, n_clusters=2).fit(X, Y)
        assert_same(made(name, n_clusters=2).fit(in_pieces(X, 8), Y), whole)


def test_new_tasks_join(problem):
    X, y, tasks = problem
    whole, pieces = made("squared").fit(X, y, tasks=tasks), made("squared")
    pieces.fit(in_pieces(X), y, tasks=tasks)
    few = (in_pieces(X[:6], 4), later(y[:6]), ["new"] * 6)
    np.testing.assert_allclose(
        pieces.adapt(*few).coef_, whole.adapt(X[:6], y[:6], ["new"] * 6).coef_, rtol=1e-8
    )


def test_data_frames(problem):
    dd = pytest.importorskip("dask.dataframe")
    import pandas as pd

    X, y, tasks = problem
    names = [f"f{j}" for j in range(D)]
    frame = pd.DataFrame(X, columns=names).assign(y=y, task=tasks)
    table = dd.from_pandas(frame, npartitions=5)
    whole = made("squared").fit(frame[names], frame["y"], tasks=frame["task"])
    pieces = made("squared").fit(table[names], table["y"], tasks=table["task"])
    assert_same(pieces, whole)
    assert list(pieces.feature_names_in_) == names
    answer = pieces.predict(table[names], tasks=table["task"])  # lengths unknown, and left so
    np.testing.assert_allclose(answer.compute(), whole.predict(frame[names], tasks=frame["task"]))
    columns = made("squared").fit(table[names[:3]], table[names[3:]])
    assert list(columns.tasks_) == names[3:]
    assert_same(columns, made("squared").fit(frame[names[:3]], frame[names[3:]]))


def test_a_mapped_file_larger_than_memory_is_read_in_chunks(problem, tmp_path, monkeypatch):
    X, y, tasks = problem
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    whole = made("squared").fit(X, y, tasks=tasks)
    monkeypatch.setattr("clustruct.design.partitioned.collections.CHUNK_BYTES", 100 * D * 8)
    for module in ("pieces", "blocks"):
        monkeypatch.setattr(f"clustruct.design.partitioned.{module}.available_bytes", lambda: 1e3)
    reads, read = [], np.fromfile

    def counted(*arguments, **options):
        reads.append(options["count"])
        return read(*arguments, **options)

    monkeypatch.setattr("clustruct.design.partitioned.collections.np.fromfile", counted)
    assert_same(made("squared").fit(mapped, y, tasks=tasks), whole)
    assert sorted(reads) == [80 * D] + [100 * D] * 5  # each once, the first to see what it is


# ---- The same bits, and few passes


@pytest.mark.parametrize("name", ["squared", "logistic"])
def test_same_chunks_give_the_same_bits_and_others_nearly(name, problem):
    X, y, tasks = problem
    y = answers_for(name, y)
    fits = []
    for workers in (1, 4):
        with dask.config.set(scheduler="threads", num_workers=workers):
            fits.append(made(name).fit(in_pieces(X), y, tasks=tasks))
    np.testing.assert_array_equal(fits[1].coef_, fits[0].coef_)
    assert fits[1].objective_ == fits[0].objective_
    assert_same(made(name).fit(in_pieces(X, rows=77), y, tasks=tasks), fits[0])


def test_streamed_and_kept_give_the_same_bits(problem, passes):
    X, y, tasks = problem
    y = answers_for("logistic", y)
    streamed = made("logistic").fit(in_pieces(X), y, tasks=tasks)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("clustruct.design.partitioned.blocks.available_bytes", lambda: 1e9)
        kept = made("logistic").fit(in_pieces(X), y, tasks=tasks)
    np.testing.assert_array_equal(kept.coef_, streamed.coef_)


def test_squared_loss_takes_one_pass(problem, passes):
    X, y, tasks = problem
    made("squared").fit(in_pieces(X), y, tasks=tasks)
    assert passes() == 1


def test_a_newton_step_takes_one_pass(problem, passes):
    X, y, tasks = problem
    # One group: one pass for the frame, one at each point of Newton's method, three for the bound.
    made("logistic", n_clusters=1).fit(in_pieces(X), answers_for("logistic", y), tasks=tasks)
    assert passes() <= 1 + 8 + 3


def test_partials_hold_the_tasks_of_a_chunk_alone(problem):
    X, y, tasks = problem
    order = np.argsort(tasks, kind="stable")  # 40 rows a task: at most 3 tasks in 48 rows
    seen = []
    from clustruct.objectives.tasks.pieces import TaskSums

    joined = TaskSums.joined

    def watched(self, other):
        seen.append(other.stack.tasks.size)
        return joined(self, other)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TaskSums, "joined", watched)
        pieces = made("squared").fit(in_pieces(X[order], 48), y[order], tasks=tasks[order])
    assert max(seen[:7]) <= 3
    assert_same(pieces, made("squared").fit(X, y, tasks=tasks))


# ---- Searches


@pytest.mark.parametrize("name", SEARCHES)
def test_search_is_that_of_the_whole_matrix(name, problem, passes):
    X, y, tasks = problem
    y = answers_for(name, y)
    options = {"n_clusters": (1, 2), **SEARCH}
    whole = made(name, SEARCHES, **options).fit(X, y, tasks=tasks)
    pieces = made(name, SEARCHES, **options).fit(in_pieces(X), later(y), tasks=later(tasks))
    assert_same(pieces, whole)
    np.testing.assert_allclose(
        pieces.cv_results_.fold_scores, whole.cv_results_.fold_scores, rtol=1e-8
    )
    if name == "squared":
        assert passes() == 1


def test_search_with_folds_that_overlap_and_scores_of_ones_own(problem, passes):
    X, y, tasks = problem
    folds = ShuffleSplit(4, test_size=0.3, random_state=0)
    options = {"n_clusters": (1, 2), "random_state": 0, **SEARCH, "cv": folds}
    whole = cs.TaskClusterRegressorCV(**options).fit(X, y, tasks=tasks)
    pieces = cs.TaskClusterRegressorCV(**options).fit(in_pieces(X), y, tasks=tasks)
    np.testing.assert_allclose(
        pieces.cv_results_.fold_scores, whole.cv_results_.fold_scores, rtol=1e-8
    )
    assert passes() == 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("clustruct.estimators.tasks.entries.MOST_ENTRIES", 3 * K * D**2)
        patch.setattr("clustruct.estimators.tasks.folds.GATHERED_BYTES", 1)  # fit by fit
        options |= {"scoring": lambda answers, scores, numbers: -np.abs(answers - scores).mean()}
        whole = cs.TaskClusterRegressorCV(**options).fit(X, y, tasks=tasks)
        pieces = cs.TaskClusterRegressorCV(**options).fit(in_pieces(X), y, tasks=tasks)
    np.testing.assert_allclose(
        pieces.cv_results_.fold_scores, whole.cv_results_.fold_scores, rtol=1e-8
    )
    # One pass to fit each fold, and one to score each point of the grid there.
    assert passes() == 1 + 4 + 4 * 4


# ---- Mistakes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y, t, w: (X, y[:-1], t, w), r"y has shape \(479,\), but X has 480"),
        (lambda X, y, t, w: (X, y, t[:-1], w), r"tasks has shape \(479,\), but X has 480"),
        (lambda X, y, t, w: (X, y, later(t[:-1]), w), r"tasks has shape \(479,\), but X has 480"),
        (lambda X, y, t, w: (X, y, later(np.stack([t, t], 1), (9, 2)), w), "tasks has shape"),
        (lambda X, y, t, w: (X, y, later(np.where(y > 2, np.nan, 1.0)), w), "tasks is missing"),
        (lambda X, y, t, w: (X, np.where(y > 2, np.nan, y), t, w), "y contains NaN"),
        (lambda X, y, t, w: (X, None, t, w), "requires y"),
        (lambda X, y, t, w: (X, np.stack([y, y], 1), t, w), "2 columns.*tasks was given as well"),
        (lambda X, y, t, w: (X, y, t, -w), "sample_weight holds negative"),
        (lambda X, y, t, w: (X[:, 0], y, t, w), "X has 1 dimension"),
        (lambda X, y, t, w: (X, np.stack([y, y + np.inf], 1), None, w), "y contains infinity"),
        (lambda X, y, t, w: (X, np.stack([y, 0 * y * np.nan], 1), None, w), "Task 1 has no target"),
        (lambda X, y, t, w: (X, np.full((N, 2), np.nan), None, w), "no target"),
    ],
)
def test_bad_input_is_told(change, message, problem):
    X, y, tasks = problem
    X, y, tasks, weights = change(in_pieces(X), y, tasks, np.ones(N))
    with pytest.raises(ValueError, match=message):
        made("squared").fit(X, y, tasks=tasks, sample_weight=weights)


def test_mistakes_in_predictions_and_classes_are_told(problem):
    X, y, tasks = problem
    model = made("squared").fit(in_pieces(X), y, tasks=tasks)
    with pytest.raises(ValueError, match=r"tasks has shape \(479,\)"):
        model.predict(in_pieces(X), tasks=later(tasks[:-1]))
    with pytest.raises(ValueError, match="fit` was called without tasks"):
        made("logistic").fit(in_pieces(X), y > 0.0).predict(in_pieces(X), tasks=tasks)
    with pytest.raises(ValueError, match="one column for each task"):
        made("squared").fit(in_pieces(X), y)
    with pytest.raises(ValueError, match="one class only"):
        made("logistic").fit(in_pieces(X), np.zeros(N, dtype=int), tasks=tasks)
    with pytest.raises(ValueError, match="3 classes"):
        made("logistic").fit(in_pieces(X), np.arange(N) % 3, tasks=tasks)
    with pytest.raises(ValueError, match="continuous"):
        made("logistic").fit(in_pieces(X), y)


def test_too_many_numbers_are_told_before_any_work(passes):
    wide = da.from_array(np.zeros((30_000, 2)), chunks=(15_000, 2)).map_blocks(
        lambda block: np.zeros((block.shape[0], 25_000)), chunks=((15_000,) * 2, (25_000,))
    )
    with pytest.raises(ValueError, match="1 tasks with 25000 features"):
        made("squared").fit(wide, np.zeros((30_000, 1)))
    assert passes() == 0


@pytest.mark.parametrize("name", ["squared", "logistic"])
def test_a_chunk_with_nan_is_named(name, problem):
    X, y, tasks = problem

    def spoil(block):
        block = block.copy()
        block[3, 2] = np.nan
        return block

    with pytest.raises(ValueError, match=r"NaN.*1 entries in chunk 2 \(rows 200 to 299\)"):
        made(name).fit(spoiled(X, 2, spoil), answers_for(name, y), tasks=tasks)


@pytest.mark.slow
def test_cluster_gives_the_bits_of_threads(tmp_path):
    pytest.importorskip("distributed")
    body = textwrap.dedent("""\
        ids = np.array([f"task {t}" for t in np.arange(600) % 7])
        regressor = cs.TaskClusterRegressor(2, random_state=0)
        models = [regressor, cs.TaskClusterClassifier(1, random_state=0)]
        def fits():
            tasks, answers = da.from_array(ids, chunks=70), y.astype(float)
            return [m.fit(pieces(X), answers, tasks=tasks).coef_ for m in models]
        there = fits()
        later = models[0].predict(pieces(X), tasks=ids)
        now = models[0].predict(X, tasks=ids)
        import dask
        with dask.config.set(scheduler="threads"):
            here = fits()
        print(*((a == b).all() for a, b in zip(there, here)), np.allclose(later.compute(), now))
    """)
    assert run_on_cluster(tmp_path, body).split() == ["True"] * 3
