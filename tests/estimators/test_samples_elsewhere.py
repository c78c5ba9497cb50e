"""Clustered samples that stay where they are: in chunks of Dask, or on a device."""

import textwrap
from dataclasses import replace

import numpy as np
import pytest
import sklearn
from scipy import sparse

import clustruct as cs
from clustruct.arrays import to_host
from clustruct.solvers.experts.problem import SETTINGS
from tests.estimators.test_partitioned import in_pieces, run_on_cluster
from tests.losses.targets import answers

N, D = 600, 4
QUICK = {"solver": "am", "n_init": 2}
MODELS = {
    "squared": (cs.SampleClusterRegressor, {}),
    "squared, without intercept": (
        cs.SampleClusterRegressor,
        {"fit_intercept": False, "n_init": 2},
    ),
    "huber": (cs.SampleClusterRegressor, {"loss": "huber", **QUICK}),
    "poisson": (cs.SampleClusterRegressor, {"loss": "poisson", **QUICK}),
    "quantile": (cs.SampleClusterRegressor, {"loss": "quantile", **QUICK}),
    "many outputs": (cs.SampleClusterRegressor, QUICK),
    "one expert": (cs.SampleClusterRegressor, {"n_clusters": 1}),
    "multinomial": (
        cs.SampleClusterClassifier,
        {"class_weight": "balanced", "alpha": 0.3, "tol": 1e-3, **QUICK},
    ),
    "classes by squared loss": (cs.SampleClusterClassifier, {"loss": "squared", **QUICK}),
}


@pytest.fixture(autouse=True)
def _few_at_hand(monkeypatch):
    """Experts are sought on 200 samples, in memory too."""
    few = replace(SETTINGS, subset=200, large=0)
    monkeypatch.setattr("clustruct.solvers.experts.problem.SETTINGS", few)
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")


@pytest.fixture(scope="module")
def problem():
    """Samples of two experts, about a third of the entries zero."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.7)
    experts = np.array([[2.0, -1.0, 1.0, 0.0], [-2.0, 1.0, 0.5, 1.0]])
    labels = rng.random(N) < 0.4
    return X, (X * experts[labels.astype(int)]).sum(axis=1) + labels + 0.1 * rng.random(N)


def answers_for(name, y):
    """What the model of that name is fitted to."""
    if MODELS[name][0] is cs.SampleClusterClassifier:
        return np.digitize(y, np.quantile(y, [0.3, 0.7]))
    return np.stack([y, -2.0 * y], axis=1) if name == "many outputs" else answers(name, y)


def made(name, **more):
    kind, options = MODELS[name]
    return kind(**{"n_clusters": 2, "alpha": 0.01, "random_state": 0, **options, **more})


def host(x):
    """An array of the host, whatever it is."""
    return np.asarray(x) if hasattr(x, "dask") else to_host(x)


def assert_same(one, other, tol=1e-8):
    np.testing.assert_allclose(host(one.experts_), host(other.experts_), rtol=tol, atol=tol)
    np.testing.assert_allclose(host(one.intercepts_), host(other.intercepts_), rtol=tol, atol=tol)
    np.testing.assert_allclose(host(one.weights_), host(other.weights_), rtol=1e-6)
    np.testing.assert_array_equal(host(one.labels_), host(other.labels_))
    assert one.objective_ == pytest.approx(other.objective_, rel=tol)
    assert one.certificate_.lower_bound == pytest.approx(other.certificate_.lower_bound, rel=1e-4)


def assert_answers_alike(model, there, X, y, there_y):
    """Every answer for samples elsewhere is that for the same samples in memory."""
    methods = [m for m in ("predict", "predict_experts", "predict_proba") if hasattr(model, m)]
    for method in methods:
        answers, expected = getattr(model, method)(there), getattr(model, method)(X)
        assert host(answers).shape == expected.shape
        np.testing.assert_allclose(host(answers), host(expected), atol=1e-7)
    np.testing.assert_array_equal(host(model.assign(there, there_y)), host(model.assign(X, y)))
    assert model.best_loss(there, there_y) == pytest.approx(model.best_loss(X, y))
    weights = np.arange(1.0, 1.0 + N)
    weighted = model.best_loss(there, there_y, weights)
    assert weighted == pytest.approx(model.best_loss(X, y, weights))
    assert model.score(there, there_y) == pytest.approx(model.score(X, y))
    if hasattr(model, "best_error"):
        assert model.best_error(there, there_y) == pytest.approx(model.best_error(X, y))


# ---- Dask


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("name", MODELS)
def test_pieces_give_the_experts_of_the_whole(name, kind, problem):
    da = pytest.importorskip("dask.array")
    X, y = problem
    X, y = X if kind == "dense" else sparse.csr_matrix(X), answers_for(name, y)
    there = in_pieces(X)
    model = made(name).fit(there, da.from_array(y, chunks=170))
    assert isinstance(model.labels_, da.Array)
    assert_same(model, made(name).fit(X, y))
    assert isinstance(model.predict(there), da.Array)
    assert isinstance(model.assign(there, y), da.Array)
    assert_answers_alike(model, there, X, y, y)


def test_few_samples_are_all_at_hand(problem, monkeypatch):
    many = replace(SETTINGS, subset=N, large=0)
    monkeypatch.setattr("clustruct.solvers.experts.problem.SETTINGS", many)
    X, y = problem
    weights = np.random.default_rng(1).random(N)
    weights[:110] = 0.0  # a whole chunk, and a part of one
    model = made("squared").fit(in_pieces(X), y, weights)
    whole = made("squared").fit(X, y, weights)
    assert_same(model, whole)
    assert model.status_.message == whole.status_.message  # the relevance prior and all


@pytest.mark.parametrize("name", ["squared", "multinomial"])
def test_weights_of_zero_leave_samples_out(name, problem):
    X, y = problem
    y, weights = answers_for(name, y), np.random.default_rng(1).random(N)
    weights[:110] = 0.0
    model = made(name).fit(in_pieces(X), y, weights)
    kept = made(name).fit(in_pieces(X[110:]), y[110:], weights[110:])
    np.testing.assert_allclose(model.experts_, kept.experts_, rtol=1e-8, atol=1e-8)
    np.testing.assert_array_equal(model.labels_, made(name).fit(X, y, weights).labels_)


@pytest.mark.parametrize("name", ["squared", "multinomial"])
def test_same_chunks_give_the_same_bits_and_others_nearly(name, problem):
    dask = pytest.importorskip("dask")
    X, y = problem
    y = answers_for(name, y)
    fits = []
    for workers in (1, 2):
        with dask.config.set(scheduler="threads", num_workers=workers):
            fits.append(made(name).fit(in_pieces(X), y))
    np.testing.assert_array_equal(fits[0].experts_, fits[1].experts_)
    assert fits[0].objective_ == fits[1].objective_
    assert_same(made(name).fit(in_pieces(X, rows=77), y), fits[0])


def test_squared_loss_takes_a_pass_a_step(problem, monkeypatch):
    dask = pytest.importorskip("dask")
    X, y = problem
    monkeypatch.setattr("clustruct.design.partitioned.blocks.available_bytes", lambda: 0.0)
    reads = []

    def load(block):
        reads.append(block.shape)
        return block

    watched = in_pieces(X).map_blocks(load, dtype=float, meta=np.empty((0, 0)))
    with dask.config.set(scheduler="synchronous"):
        model = made("squared").fit(watched, y)
    # The first chunk to see what it is, the samples at hand, their experts, and each step.
    assert len(reads) <= 1 + 6 * (1 + 1 + 1 + model.n_iter_)


def test_experts_that_lose_their_samples_get_those_answered_worst(problem):
    from clustruct.design.partitioned.blocks import BlockDesign
    from clustruct.solvers.experts.alternating import reseed, reseed_elsewhere

    X, _ = problem
    rng = np.random.default_rng(2)
    design = BlockDesign(np.split(X, [100, 250]), (100, 150, 350), D)
    labels, least, shares = np.zeros(N, dtype=np.intp), rng.random(N), rng.dirichlet(np.ones(N))
    expected = reseed(labels, least, shares, 4)
    rows = (design.place(each) for each in (labels, least, shares))
    found = reseed_elsewhere(design, *rows, 4)
    np.testing.assert_array_equal(np.concatenate(found.local), expected)


def test_data_frames(problem):
    dd = pytest.importorskip("dask.dataframe")
    import pandas as pd

    X, y = problem
    names = [f"f{j}" for j in range(D)]
    frame = pd.DataFrame(X, columns=names).assign(y=y)
    table = dd.from_pandas(frame, npartitions=5)
    model = made("squared").fit(table[names], table["y"])
    assert_same(model, made("squared").fit(frame[names], y))
    assert list(model.feature_names_in_) == names
    assert_answers_alike(model, table[names], frame[names], y, table["y"])


def test_a_mapped_file_larger_than_memory_is_read_in_chunks(problem, tmp_path, monkeypatch):
    pytest.importorskip("dask")
    X, y = problem
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    monkeypatch.setattr("clustruct.design.partitioned.collections.CHUNK_BYTES", 100 * D * 8)
    for module in ("pieces", "blocks"):
        monkeypatch.setattr(f"clustruct.design.partitioned.{module}.available_bytes", lambda: 1e3)
    model = made("huber").fit(mapped, y)
    assert isinstance(model.labels_, np.ndarray)
    assert_same(model, made("huber").fit(X, y))


def test_a_gate_is_learned_on_the_samples_at_hand(problem):
    X, y = problem
    model = made("squared", gate=True).fit(in_pieces(X), y)
    assert model.gate_score_.best <= model.gate_score_.gated
    np.testing.assert_allclose(model.predict(in_pieces(X)), model.predict(X))


def test_saved_models_hold_their_labels(problem, tmp_path):
    X, y = problem
    model = made("squared").fit(in_pieces(X), y)
    cs.save(model, tmp_path / "model.clustruct")
    loaded = cs.load(tmp_path / "model.clustruct")
    np.testing.assert_array_equal(loaded.labels_, model.labels_)


@pytest.mark.parametrize("most", [20_000, 500])
def test_searches_choose_on_few_samples_and_fit_all(most, problem, monkeypatch):
    X, y = problem
    few = replace(SETTINGS, subset=most)
    monkeypatch.setattr("clustruct.solvers.experts.problem.SETTINGS", few)
    options = {"alpha": 0.01, "random_state": 0, "solver": "am", "n_init": 2}
    here = cs.SampleClusterRegressorCV((1, 2), **options).fit(X, y)
    there = cs.SampleClusterRegressorCV((1, 2), **options).fit(in_pieces(X), y)
    assert there.n_clusters_ == 2
    assert there.labels_.shape == y.shape
    assert not isinstance(there.labels_, np.ndarray)
    np.testing.assert_allclose(there.experts_, here.experts_, rtol=1e-6, atol=1e-8)
    if most >= y.size:
        np.testing.assert_allclose(there.selection_.values, here.selection_.values, rtol=1e-4)


@pytest.mark.parametrize("solver", ["pg", "cg"])
def test_solvers_that_need_rows_of_weights_are_told(solver, problem):
    X, y = problem
    with pytest.raises(ValueError, match=rf"solver='{solver}'.*Choose solver='auto'"):
        made("squared", solver=solver).fit(in_pieces(X), y)


def spoiled(X, number):
    def load(block, block_info=None):
        block = block.copy()
        if block_info[0]["chunk-location"][0] == number:
            block[3, 2] = np.nan
        return block

    return in_pieces(X).map_blocks(load, dtype=float, meta=np.empty((0, 0)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (spoiled(X, 2), y), r"NaN.*1 entries in chunk 2 \(rows 200 to 299\)"),
        (lambda X, y: (in_pieces(X), y[:-1]), r"y has shape \(599,\), but X has 600"),
        (lambda X, y: (in_pieces(X), None), "requires y"),
        (lambda X, y: (in_pieces(X), np.where(y > 0, np.nan, y)), "y contains NaN"),
        (lambda X, y: (in_pieces(X[:1]), y[:1]), "n_clusters=2 is more than n_samples=1"),
    ],
)
def test_bad_input_is_told(change, message, problem):
    with pytest.raises(ValueError, match=message):
        made("squared").fit(*change(*problem))


def test_too_few_classes_are_told(problem):
    X, y = problem
    with pytest.raises(ValueError, match="one class only"):
        made("multinomial").fit(in_pieces(X), np.zeros(N, dtype=int))
    with pytest.raises(ValueError, match="must be less than the number of classes"):
        made("multinomial").fit(in_pieces(X), y > 0)
    name = "classes by squared loss"
    model = made(name).fit(in_pieces(X), answers_for(name, y))
    with pytest.raises(ValueError, match="which was not in `fit`"):
        model.assign(in_pieces(X), np.full(N, 7)).compute()


@pytest.mark.slow
def test_cluster_gives_the_bits_of_threads(tmp_path):
    pytest.importorskip("distributed")
    body = textwrap.dedent("""\
        import clustruct.solvers.experts.problem as problem, dask
        problem.SETTINGS = problem.ExpertSettings(subset=200)
        scores = np.where(X[:, 0] > 1.0, X @ np.arange(12.0), -X.sum(axis=1))
        classes = np.digitize(scores, np.quantile(scores, [0.3, 0.7]))
        options = {"alpha": 0.3, "random_state": 0, "solver": "am", "n_init": 2}
        for made, answers in (
            (cs.SampleClusterRegressor(2, **options), scores),
            (cs.SampleClusterClassifier(2, **options), classes),
        ):
            there = made.fit(pieces(X), answers)
            experts, labels = there.experts_, there.labels_.compute()
            with dask.config.set(scheduler="threads"):
                here = made.fit(pieces(X), answers)
                print((experts == here.experts_).all(), (labels == here.labels_.compute()).all())
    """)
    assert run_on_cluster(tmp_path, body).split() == ["True"] * 4


# ---- Arrays of other libraries


@pytest.fixture(params=("array_api_strict", "torch"))
def library(request):
    """A library of arrays, which scikit-learn is told to accept."""
    module = pytest.importorskip(request.param)
    with sklearn.config_context(array_api_dispatch=True):
        yield module


@pytest.mark.parametrize("name", MODELS)
def test_arrays_elsewhere_give_the_experts_of_numpy(name, library, problem):
    X, y = problem
    y = answers_for(name, y)
    there, there_y = library.asarray(X), library.asarray(y)
    model, whole = made(name).fit(there, there_y), made(name).fit(X, y)
    for attribute in ("experts_", "intercepts_", "weights_", "labels_"):
        assert type(getattr(model, attribute)) is type(there)
    assert model.experts_.dtype == there.dtype
    assert_same(model, whole)
    assert type(model.predict(there)) is type(there)
    assert_answers_alike(model, there, X, y, there_y)


def test_single_precision_stays_single(library, problem):
    X, y = problem
    there = library.asarray(X.astype(np.float32))
    model = made("squared").fit(there, library.asarray(y))
    assert model.experts_.dtype == there.dtype
    whole = made("squared").fit(X, y)
    np.testing.assert_allclose(to_host(model.experts_), whole.experts_, rtol=1e-4, atol=1e-4)


def test_only_the_samples_at_hand_come_to_the_host(library, problem, monkeypatch):
    X, y = problem
    moved = []

    def watched(x):
        if not isinstance(x, np.ndarray):
            moved.append(tuple(x.shape))
        return to_host(x)

    monkeypatch.setattr("clustruct.design.device.to_host", watched)
    made("squared").fit(library.asarray(X), y)
    assert max(shape[0] for shape in moved if len(shape) == 2) <= 200
    assert {shape for shape in moved if len(shape) == 1 and shape[0] > 200} <= {(N,)}  # the shares


def test_zero_weights_and_names_of_classes(library, problem):
    X, y = problem
    names = np.array(["low", "middle", "high"])[answers_for("multinomial", y)]
    weights = np.random.default_rng(1).random(N)
    weights[:50] = 0.0
    model = made("multinomial").fit(library.asarray(X), names, weights)
    whole = made("multinomial").fit(X, names, weights)
    np.testing.assert_allclose(to_host(model.experts_), whole.experts_, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(model.predict(library.asarray(X)), whole.predict(X))


def test_searches_elsewhere_choose_on_the_host(library, problem):
    X, y = problem
    there = library.asarray(X)
    options = {"alpha": 0.01, "random_state": 0, "solver": "am", "n_init": 2}
    model = cs.SampleClusterRegressorCV((1, 2), **options).fit(there, library.asarray(y))
    assert model.n_clusters_ == 2
    assert type(model.experts_) is type(there)


def test_what_needs_the_host_is_told(library, problem):
    X, y = problem
    there = library.asarray(X)
    with pytest.raises(ValueError, match="gate=True is a classifier of the host"):
        made("squared", gate=True).fit(there, y)
    with pytest.raises(ValueError, match=r"solver='pg'.*Choose solver='auto'"):
        made("squared", solver="pg").fit(there, y)


def test_reports_tell_of_experts_in_pieces(problem, tmp_path):
    X, y = problem
    model = made("squared").fit(in_pieces(X), y)
    cs.report(model, X, y, path=tmp_path / "report.html")
    assert "experts" in (tmp_path / "report.html").read_text()
