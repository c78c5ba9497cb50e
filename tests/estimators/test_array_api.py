"""Arrays of other libraries: everything follows X, and the answers are those of NumPy."""

import warnings

import numpy as np
import pytest
import sklearn

import clustruct as cs
from clustruct.arrays import to_host
from clustruct.grouping.device_kmeans import cluster_on_device
from tests.estimators.test_partitioned import MODELS, N, answers_for, made


@pytest.fixture(scope="module")
def problem():
    """Samples of grouped features, with an offset."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 24)) + 2.0
    return X, X @ np.repeat([1.0, -1.0, 0.5], 8) + 0.3 * rng.standard_normal(N) + 1.0


@pytest.mark.parametrize("name", MODELS)
def test_fit_is_that_of_numpy(name, library, problem):
    X, y = problem
    y = answers_for(name, y)
    here = made(name).fit(X, y)
    there_X, there_y = library.asarray(X), library.asarray(y)
    there = made(name).fit(there_X, there_y)
    assert type(there.coef_) is type(there_X)
    assert there.coef_.dtype == there_X.dtype
    np.testing.assert_allclose(to_host(there.coef_), here.coef_, rtol=1e-8, atol=1e-8)
    np.testing.assert_array_equal(there.labels_, here.labels_)
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-10)
    assert there.certificate_.lower_bound == pytest.approx(here.certificate_.lower_bound, rel=1e-4)
    for method in ("predict", "transform", "decision_function", "predict_proba"):
        if hasattr(there, method):
            answer = getattr(there, method)(there_X)
            assert type(answer) is type(there_X)
            np.testing.assert_allclose(to_host(answer), getattr(here, method)(X), atol=1e-7)


def test_single_precision_stays_single(library, problem):
    X, y = problem
    there_X = library.asarray(X.astype(np.float32))
    model = made("squared").fit(there_X, library.asarray(y))
    assert model.coef_.dtype == there_X.dtype
    assert model.transform(there_X).dtype == there_X.dtype
    here = made("squared").fit(X, y)
    np.testing.assert_allclose(to_host(model.coef_), here.coef_, rtol=1e-5)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc"])
def test_sparse_tensors_are_taken(name, layout, problem, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    X, y = problem
    X = np.where(np.abs(X - 2.0) < 1.0, X, 0.0)
    y = answers_for(name, y)
    here = made(name).fit(X, y)
    with warnings.catch_warnings(), sklearn.config_context(array_api_dispatch=True):
        warnings.simplefilter("ignore", UserWarning)  # torch calls the layout a beta
        tensor = getattr(torch.asarray(X), f"to_{layout}")()
        there = made(name).fit(tensor, y)
        np.testing.assert_allclose(to_host(there.coef_), here.coef_, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(to_host(there.transform(tensor)), here.transform(X), atol=1e-7)
        tensor.values()[0] = np.nan
        with pytest.raises(ValueError, match="NaN"):
            made(name).fit(tensor, y)


def test_many_weights_are_grouped_on_the_device(library, problem, monkeypatch):
    X, y = problem
    here = made("squared").set_params(solver="pg").fit(X, y)
    grouped = []

    def watched(x, n_clusters):
        grouped.append(n_clusters)
        return cluster_on_device(x, n_clusters)

    monkeypatch.setattr("clustruct.design.device.DEVICE_VALUES", 10)
    monkeypatch.setattr("clustruct.design.device.cluster_on_device", watched)
    monkeypatch.setattr("clustruct.estimators.features.grid.gram_pays", lambda n, d: False)
    there = made("squared").set_params(solver="pg").fit(library.asarray(X), y)
    assert grouped
    np.testing.assert_array_equal(there.labels_, here.labels_)


def test_weights_and_answers_may_be_on_the_host(library, problem):
    X, y = problem
    weights = np.random.default_rng(1).random(N)
    weights[:50] = 0.0
    here = made("huber").fit(X, y, weights)
    there = made("huber").fit(library.asarray(X), y, weights)
    np.testing.assert_allclose(to_host(there.coef_), here.coef_, rtol=1e-8)


def test_classes_of_strings_are_answered_on_the_host(library, problem):
    X, y = problem
    names = np.where(y > np.median(y), "yes", "no")
    model = made("logistic").set_params(class_weight=None).fit(library.asarray(X), names)
    assert set(model.predict(library.asarray(X))) == {"yes", "no"}


def test_x_never_comes_to_the_host(library, problem, watch_moves):
    X, y = problem
    moved = watch_moves("clustruct.design.device", "clustruct.design.sources")
    made("logistic").fit(library.asarray(X), y > y.mean())
    assert 0 < max(moved) <= N  # at most a column of rows


def test_a_device_without_memory_is_told(problem, monkeypatch):
    torch = pytest.importorskip("torch")
    X, y = problem

    def full(self, X, W):
        raise torch.OutOfMemoryError("tried to allocate 9 GiB")

    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    monkeypatch.setattr("clustruct.design.device.DeviceDesign._times", full)
    with (
        sklearn.config_context(array_api_dispatch=True),
        pytest.raises(MemoryError, match=r"GB: tried to allocate 9 GiB. Give X in float32"),
    ):
        made("logistic").fit(torch.asarray(X), y > y.mean())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X, None), "requires y"),
        (lambda X, y: (X, y[:-1]), "y has .* targets, but X has"),
        (lambda X, y: (X[:, 0], y), "Expected 2D"),
        (lambda X, y: (X * 0.0 + np.inf, y), "infinity"),
    ],
)
def test_bad_input_is_told(change, message, library, problem):
    X, y = problem
    with pytest.raises(ValueError, match=message):
        made("squared").fit(*change(library.asarray(X), y))


def test_relaxation_needs_the_gram_matrix_elsewhere(library):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 310)), rng.standard_normal(20)
    with pytest.raises(ValueError, match=r"'cg'.* NumPy arrays"):
        cs.FeatureClusterRegressor(3, solver="cg").fit(library.asarray(X), y)
