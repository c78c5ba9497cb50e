"""Searches on samples that stay where they are: the choices and scores of samples in memory."""

import textwrap

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.model_selection import GroupKFold, ShuffleSplit

import clustruct as cs
from clustruct.arrays import to_host
from tests.estimators.test_partitioned import (
    D,
    N,
    answers_for,
    in_pieces,
    problem,
    run_on_cluster,
)

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

from clustruct.design.partitioned.blocks import BlockDesign  # noqa: E402

__all__ = ["problem"]

GRID = {"n_clusters": (2, 3), "alphas": (1.0, 1e-2), "relax": (1.0, 0.25), "cv": 3}
SEARCHES = {
    "squared": (cs.FeatureClusterRegressorCV, {}),
    "squared, shuffled": (cs.FeatureClusterRegressorCV, {"random_state": 0}),
    "squared, without intercept": (cs.FeatureClusterRegressorCV, {"fit_intercept": False}),
    "squared, by name": (cs.FeatureClusterRegressorCV, {"scoring": "r2"}),
    "squared, overlapping": (
        cs.FeatureClusterRegressorCV,
        {"cv": ShuffleSplit(3, test_size=0.3, train_size=0.5, random_state=0)},
    ),
    "squared, nonzero": (cs.FeatureClusterRegressorCV, {"n_nonzero": (None, 8)}),
    "squared, fewest": (
        cs.FeatureClusterRegressorCV,
        {"n_clusters": (1, 2, None), "rule": "fewest"},
    ),
    "squared, bic": (cs.FeatureClusterRegressorCV, {"criterion": "bic"}),
    "huber": (cs.FeatureClusterRegressorCV, {"loss": "huber"}),
    "huber, absolute error": (
        cs.FeatureClusterRegressorCV,
        {"loss": "huber", "scoring": make_scorer(mean_absolute_error, greater_is_better=False)},
    ),
    "poisson": (cs.FeatureClusterRegressorCV, {"loss": "poisson"}),
    "tweedie, bic": (cs.FeatureClusterRegressorCV, {"loss": "tweedie", "criterion": "bic"}),
    "quantile": (cs.FeatureClusterRegressorCV, {"loss": "quantile", "quantile_level": 0.7}),
    "logistic": (cs.FeatureClusterClassifierCV, {"class_weight": "balanced"}),
    "logistic, accuracy": (cs.FeatureClusterClassifierCV, {"scoring": "accuracy"}),
    "logistic, area": (cs.FeatureClusterClassifierCV, {"scoring": "roc_auc"}),
    # Fits without groups make passes of their own, while others wait.
    "logistic, fewest": (
        cs.FeatureClusterClassifierCV,
        {"n_clusters": (1, 2, None), "rule": "fewest"},
    ),
    "multinomial": (cs.FeatureClusterClassifierCV, {}),
    "multinomial, accuracy": (cs.FeatureClusterClassifierCV, {"scoring": "accuracy"}),
    "logistic, by squares": (cs.FeatureClusterClassifierCV, {"loss": "squared"}),
    "multinomial, by squares": (
        cs.FeatureClusterClassifierCV,
        {"loss": "squared", "class_weight": "balanced"},
    ),
}


def made(name, **more):
    kind, options = SEARCHES[name]
    return kind(**{**GRID, **options, **more})


def fitted_points(search):
    exact = search.cv_results_.exact
    return np.ones(search.cv_results_.relax.shape, dtype=bool) if exact is None else exact


def assert_same(one, other, tol=1e-8):
    assert one.best_params_ == other.best_params_
    # Fits by passes that are only scored have values of four digits or more.
    quick = tol if one.loss == "squared" else max(tol, 1e-4)
    # Points that could not be chosen are scored by a model, and only where rows are in memory.
    fitted = fitted_points(one) & fitted_points(other)
    assert fitted[one.cv_results_.best_index]
    np.testing.assert_allclose(
        one.cv_results_.fold_scores[fitted],
        other.cv_results_.fold_scores[fitted],
        rtol=quick,
        atol=quick,
    )
    np.testing.assert_allclose(to_host(one.coef_), other.coef_, rtol=tol, atol=tol)
    np.testing.assert_allclose(to_host(one.intercept_), other.intercept_, rtol=tol, atol=tol)
    np.testing.assert_array_equal(one.labels_, other.labels_)
    assert one.objective_ == pytest.approx(other.objective_, rel=tol)


@pytest.mark.parametrize("name", SEARCHES)
def test_search_is_that_of_the_whole_matrix(name, problem):
    X, y = problem
    y = answers_for(name, y)
    whole = made(name).fit(X, y)
    pieces = made(name).fit(in_pieces(X), da.from_array(y, chunks=170))
    assert_same(pieces, whole)
    predicted = pieces.predict(in_pieces(X))
    assert isinstance(predicted, da.Array)
    np.testing.assert_allclose(predicted.compute(), whole.predict(X))


@pytest.mark.parametrize("name", ["squared", "logistic", "logistic, by squares"])
@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_sparse_chunks(name, kind, problem):
    y = answers_for(name, problem[1])
    X = sparse.random(N, D, density=0.4, format=kind, random_state=0)
    assert_same(made(name).fit(in_pieces(X), y), made(name).fit(X, y))


ELSEWHERE = (
    "squared, shuffled",
    "squared, without intercept",
    "squared, by name",
    "squared, overlapping",
    "huber",
    "logistic, accuracy",
    "multinomial",
    "multinomial, by squares",
)


@pytest.mark.parametrize("name", ELSEWHERE)
def test_search_is_that_of_numpy_elsewhere(name, library, problem):
    X, y = problem
    y = answers_for(name, y)
    there = library.asarray(X)
    model = made(name).fit(there, library.asarray(y))
    assert type(model.coef_) is type(there)
    assert_same(model, made(name).fit(X, y))


@pytest.mark.parametrize("name", ["squared", "squared, by name", "huber", "logistic, area"])
def test_weights(name, problem):
    X, y = problem
    y = answers_for(name, y)
    weights = np.random.default_rng(1).integers(0, 3, N).astype(float)
    weights[:110] = 0.0  # a whole chunk, and a part of one
    whole = made(name).fit(X, y, weights)
    pieces = made(name).fit(in_pieces(X), y, da.from_array(weights, chunks=90))
    assert_same(pieces, whole)


def test_weights_elsewhere(library, problem):
    X, y = problem
    weights = np.random.default_rng(1).integers(0, 3, N).astype(float)
    whole = made("huber").fit(X, y, weights)
    assert_same(made("huber").fit(library.asarray(X), y, weights), whole)


def test_several_outputs_blocks_and_groups(problem):
    X, y = problem
    Y = np.stack([y, -2.0 * y], axis=1)
    groups = np.arange(N) // 7
    blocks = np.arange(D) % 2
    for search in (
        made("squared", blocks=blocks, cv=GroupKFold(3)),
        made("huber", blocks=blocks, cv=GroupKFold(3)),
    ):
        whole = sklearn.clone(search).fit(X, Y, groups=groups)
        assert_same(search.fit(in_pieces(X), Y, groups=groups), whole)


def test_rows_that_a_fold_has_twice_count_twice(problem):
    X, y = problem
    rng = np.random.default_rng(0)
    drawn = [(rng.integers(0, 400, 500), rng.integers(400, N, 100)) for _ in range(2)]
    for name in ("squared", "squared, by name", "huber"):
        whole = made(name, cv=drawn).fit(X, y)
        assert_same(made(name, cv=drawn).fit(in_pieces(X), y), whole)


def test_frames(problem):
    dd = pytest.importorskip("dask.dataframe")
    import pandas as pd

    X, y = problem
    names = [f"f{j}" for j in range(D)]
    frame = pd.DataFrame(X, columns=names).assign(y=y)
    table = dd.from_pandas(frame, npartitions=5)
    model = made("squared").fit(table[names], table["y"])
    assert_same(model, made("squared").fit(frame[names], y))
    assert list(model.feature_names_in_) == names


def test_a_mapped_file_larger_than_memory(problem, tmp_path, monkeypatch):
    X, y = problem
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    whole = made("squared").fit(mapped, y)
    monkeypatch.setattr("clustruct.design.partitioned.collections.CHUNK_BYTES", 100 * D * 8)
    for module in ("pieces", "blocks"):
        monkeypatch.setattr(f"clustruct.design.partitioned.{module}.available_bytes", lambda: 1e3)
    assert_same(made("squared").fit(mapped, y), whole)


@pytest.mark.parametrize("name", ["squared, shuffled", "logistic"])
def test_same_chunks_give_the_same_bits_and_others_nearly(name, problem):
    X, y = problem
    y = answers_for(name, y)
    fits = []
    for workers in (1, 3):
        with dask.config.set(scheduler="threads", num_workers=workers):
            fits.append(made(name, n_jobs=workers).fit(in_pieces(X), y))
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    np.testing.assert_array_equal(*(fit.cv_results_.fold_scores for fit in fits))
    assert_same(made(name).fit(in_pieces(X, rows=77), y), fits[0])


@pytest.fixture
def passes(monkeypatch):
    """Counts passes over the samples that are streamed."""
    monkeypatch.setattr("clustruct.design.partitioned.blocks.available_bytes", lambda: 0.0)
    designs = []
    survey = BlockDesign.survey

    def noted(self):
        designs.append(self)
        return survey(self)

    monkeypatch.setattr(BlockDesign, "survey", noted)
    return lambda: sum(design.n_passes for design in designs)


def test_squared_loss_takes_one_pass_for_all_folds(passes, problem):
    X, y = problem
    made("squared, shuffled", alphas="auto", n_clusters=(2, 3, 4), cv=5).fit(in_pieces(X), y)
    assert passes() == 1


def test_many_columns_and_folds_take_a_few_passes(passes, problem, monkeypatch):
    X, y = problem
    monkeypatch.setattr("clustruct.estimators.features.folds.MOST_SUMS", 2 * 8 * D**2)
    made("squared", cv=5).fit(in_pieces(X), y)
    assert passes() == 3


def test_other_scores_take_a_pass_for_each_fold(passes, problem):
    X, y = problem
    made("squared, by name").fit(in_pieces(X), y)
    assert passes() == 1 + 3


def test_fits_of_a_search_share_their_passes(passes, problem):
    X, y = problem
    y = answers_for("logistic", y)

    def taken(**more):
        before = passes()
        made("logistic", alphas=(1e-2,), relax=(1.0,), solver="greedy", **more).fit(in_pieces(X), y)
        return passes() - before

    few = taken(cv=3)
    assert taken(cv=3, n_clusters=(2, 3, 4, 5, 6)) == few
    assert taken(cv=6) <= few + 3  # folds may take a step of Newton's method more


def test_folds_are_scored_in_one_pass(passes, problem, monkeypatch):
    X, y = problem
    y = answers_for("logistic", y)
    made("logistic").fit(in_pieces(X), y)
    together = passes()
    monkeypatch.setattr("clustruct.estimators.features.folds.MOST_WEIGHTS", 1)
    made("logistic").fit(in_pieces(X), y)
    apart = passes() - together
    assert apart - together == 4 - 1  # four points of the grid, of all folds together


def test_samples_never_come_to_the_host(library, problem, watch_moves):
    X, y = problem
    y = answers_for("logistic", y)
    moved = watch_moves("clustruct.design.device", "clustruct.estimators.features.folds")
    for name in ("logistic", "logistic, area", "logistic, by squares"):
        made(name).fit(library.asarray(X), y)
    assert 0 < max(moved) <= max(N, D**2)  # at most a column of rows, or a Gram matrix


def test_functions_of_samples_are_refused(problem):
    X, y = problem

    def fit_of(model, X, y):
        return model.score(X, y)

    with pytest.raises(ValueError, match="make_scorer"):
        made("squared", scoring=fit_of).fit(in_pieces(X), y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cv": N + 1}, "cv=601 folds"),
        ({"cv": [(np.arange(10), np.array([], dtype=int))]}, "lack samples"),
        ({"scoring": "best"}, "best"),
        ({"n_clusters": ()}, "n_clusters is empty"),
    ],
)
def test_bad_parameters_are_refused(change, message, problem):
    X, y = problem
    with pytest.raises(ValueError, match=message):
        made("squared", **change).fit(in_pieces(X), y)


def test_a_fold_without_a_class_is_refused(problem):
    X, y = problem
    labels = np.zeros(N, dtype=int)
    labels[:5] = 1
    with pytest.raises(ValueError, match="Fold 0 of cv has no sample of class 1"):
        made("logistic", cv=[(np.arange(300, N), np.arange(300))]).fit(in_pieces(X), labels)
    with pytest.raises(ValueError, match=r"groups has shape \(3,\)"):
        made("squared").fit(in_pieces(X), y, groups=[1, 2, 3])


@pytest.mark.slow
def test_a_cluster_gives_the_bits_of_threads(tmp_path):
    pytest.importorskip("distributed")
    body = textwrap.dedent("""\
        import dask
        grid = {"n_clusters": (1, 2), "alphas": (1.0, 0.01), "cv": 2}
        searches = (
            lambda: cs.FeatureClusterRegressorCV(**grid, scoring="r2"),
            lambda: cs.FeatureClusterClassifierCV(**grid, loss="squared"),
        )
        for search in searches:
            there = search().fit(pieces(X), y.astype(float))
            with dask.config.set(scheduler="threads"):
                here = search().fit(pieces(X), y.astype(float))
            same = (here.cv_results_.fold_scores == there.cv_results_.fold_scores).all()
            print(same and (here.coef_ == there.coef_).all())
    """)
    assert run_on_cluster(tmp_path, body).split() == ["True", "True"]
