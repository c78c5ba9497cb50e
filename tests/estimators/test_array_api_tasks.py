"""Tasks on arrays of other libraries: everything follows X, and the answers are those of NumPy."""

import warnings

import numpy as np
import pytest
import sklearn

import clustruct as cs
from clustruct.arrays import to_host
from tests.losses.targets import answers

N, D, K = 120, 4, 6
MODELS = {
    "squared": cs.TaskClusterRegressor(2, random_state=0),
    "huber": cs.TaskClusterRegressor(2, loss="huber", fit_intercept=False, random_state=0),
    "poisson": cs.TaskClusterRegressor(2, loss="poisson", random_state=0),
    "quantile": cs.TaskClusterRegressor(2, loss="quantile", random_state=0),
    "logistic": cs.TaskClusterClassifier(2, class_weight="balanced", random_state=0),
    "search": cs.TaskClusterRegressorCV(
        (1, 2), alpha_within=(1.0, 10.0), alpha_between=0.1, cv=2, random_state=0
    ),
}


@pytest.fixture(scope="module")
def problem(shuffled_tasks):
    """Matrix, answers and ids."""
    return shuffled_tasks(N, D, K, 2)


def same(there, here, tol=1e-8):
    np.testing.assert_allclose(to_host(there), here, rtol=tol, atol=tol)


@pytest.mark.parametrize("name", MODELS)
def test_fit_is_that_of_numpy(name, library, problem):
    X, y, tasks = problem
    y = (y > np.median(y)).astype(int) if name == "logistic" else answers(name, y)
    here = sklearn.clone(MODELS[name]).fit(X, y, tasks=tasks)
    there_X = library.asarray(X)
    there = sklearn.clone(MODELS[name]).fit(there_X, library.asarray(y), tasks=tasks)
    for attribute in ("coef_", "intercept_", "centroids_", "mean_coef_"):
        found = getattr(there, attribute)
        assert type(found) is type(there_X)
        assert found.dtype == there_X.dtype
        same(found, getattr(here, attribute))
    np.testing.assert_array_equal(there.labels_, here.labels_)
    np.testing.assert_array_equal(there.tasks_, here.tasks_)
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-10)
    assert there.certificate_.lower_bound == pytest.approx(here.certificate_.lower_bound, rel=1e-8)
    for method in ("predict", "decision_function", "predict_proba"):
        if hasattr(there, method):
            for ids in (tasks, None):
                answer = getattr(there, method)(there_X, tasks=ids)
                assert type(answer) is type(there_X)
                same(answer, getattr(here, method)(X, tasks=ids), 1e-7)
    assert there.score(there_X, library.asarray(y), tasks=tasks) == pytest.approx(
        here.score(X, y, tasks=tasks)
    )
    assert there.clusters()[0].tasks == here.clusters()[0].tasks
    few = (["new"] * 5,)
    wiser = there.adapt(there_X[:5, :], y[:5], *few)
    assert type(wiser.coef_) is type(there_X)
    same(wiser.coef_, here.adapt(X[:5], y[:5], *few).coef_)


def test_columns_classes_and_few_rows(library):
    rng = np.random.default_rng(0)
    X, Y = cs.datasets.make_clustered_tasks(40, 3, 4, 2, missing=0.3, random_state=0).columns()
    for loss in ("squared", "huber"):
        model = cs.TaskClusterRegressor(2, loss=loss, random_state=0)
        here = model.fit(X, Y).coef_
        same(model.fit(library.asarray(X), library.asarray(Y)).coef_, here)
    names = np.array(["a", "b", "c"])[rng.integers(0, 3, 40)]
    model = cs.TaskClusterClassifier(2, random_state=0)
    here = model.fit(X, names).coef_
    same(model.fit(library.asarray(X), names).coef_, here)
    assert set(model.predict(library.asarray(X))) <= {"a", "b", "c"}
    wide, answers = rng.standard_normal((12, 20)), rng.standard_normal((12, 2))
    model = cs.TaskClusterRegressor(1, random_state=0)
    here = model.fit(wide, answers).coef_
    same(model.fit(library.asarray(wide), answers).coef_, here)


@pytest.mark.parametrize("name", ["squared", "logistic"])
def test_sparse_tensors_are_taken(name, problem, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    X, y, tasks = problem
    X = np.where(np.abs(X - 2.0) < 1.0, X, 0.0)
    y = (y > np.median(y)).astype(int) if name == "logistic" else y
    here = sklearn.clone(MODELS[name]).fit(X, y, tasks=tasks)
    with warnings.catch_warnings(), sklearn.config_context(array_api_dispatch=True):
        warnings.simplefilter("ignore", UserWarning)  # torch calls the layout a beta
        tensor = torch.asarray(X).to_sparse_csr()
        there = sklearn.clone(MODELS[name]).fit(tensor, y, tasks=tasks)
        same(there.coef_, here.coef_)
        same(there.predict(tensor, tasks=tasks), here.predict(X, tasks=tasks), 1e-7)


def test_single_precision_stays_single(library, problem):
    X, y, tasks = problem
    there_X = library.asarray(X.astype(np.float32))
    model = cs.TaskClusterRegressor(2, random_state=0).fit(there_X, y, tasks=tasks)
    assert model.coef_.dtype == there_X.dtype
    same(model.coef_, cs.TaskClusterRegressor(2, random_state=0).fit(X, y, tasks=tasks).coef_, 1e-4)


def test_x_never_comes_to_the_host(library, problem, watch_moves):
    X, y, tasks = problem
    rooms = ("design.device", "design.sources", "arrays", "design.local")
    moved = watch_moves(*(f"clustruct.{room}" for room in rooms))
    cs.TaskClusterClassifier(2, random_state=0).fit(library.asarray(X), y > y.mean(), tasks=tasks)
    assert 0 < max(moved) <= max(D * D, N)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y, t: (X, None, t), "requires y"),
        (lambda X, y, t: (X, y[:-1], t), "y has .* targets, but X has"),
        (lambda X, y, t: (X, y, t[:-1]), r"tasks has shape \(119,\), but X has 120"),
        (lambda X, y, t: (X * 0.0 + np.inf, y, t), "infinity"),
    ],
)
def test_bad_input_is_told(change, message, library, problem):
    X, y, tasks = problem
    X, y, tasks = change(library.asarray(X), y, tasks)
    with pytest.raises(ValueError, match=message):
        cs.TaskClusterRegressor(2, random_state=0).fit(X, y, tasks=tasks)
