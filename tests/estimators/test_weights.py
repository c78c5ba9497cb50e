"""Weights of samples and classes: repetition, removal, balance."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.class_weight import compute_sample_weight

from clustruct import (
    FeatureClusterClassifier,
    FeatureClusterRegressor,
    SampleClusterClassifierCV,
    SampleClusterRegressorCV,
)
from tests.losses.targets import answers

MODELS = {
    "greedy": FeatureClusterRegressor(3, solver="greedy"),
    "pg": FeatureClusterRegressor(3, solver="pg", n_init=2, random_state=0),
    "cgpg": FeatureClusterRegressor(3, solver="cgpg", tol=1e-4),
    "huber": FeatureClusterRegressor(3, loss="huber"),
    **{
        name: FeatureClusterRegressor(3, loss=name)
        for name in ("poisson", "gamma", "tweedie", "quantile")
    },
    "sparse": FeatureClusterRegressor(2, n_nonzero=4),
    "blocks": FeatureClusterRegressor(3, blocks=[0, 0, 0, 0, 1, 1, 1, -1]),
    "no intercept": FeatureClusterRegressor(3, fit_intercept=False),
    "logistic": FeatureClusterClassifier(3),
    "balanced": FeatureClusterClassifier(3, class_weight="balanced"),
    "squared": FeatureClusterClassifier(3, loss="squared"),
}


def data(model, seed=0, n=50):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 8)) * (rng.random((n, 8)) < 0.7)
    score = X @ np.repeat([1.0, -1.0, 2.0, 2.0], 2) + 0.5 * rng.standard_normal(n)
    if isinstance(model, FeatureClusterClassifier):
        return X, np.digitize(score, [-1.0, 1.5]), rng.integers(0, 4, n)
    return X, answers(model.loss, score), rng.integers(0, 4, n)


def assert_same(a, b, tolerance=1e-7):
    np.testing.assert_array_equal(a.labels_, b.labels_)
    np.testing.assert_allclose(a.coef_, b.coef_, atol=tolerance)
    np.testing.assert_allclose(a.intercept_, b.intercept_, atol=tolerance)
    assert a.objective_ == pytest.approx(b.objective_, rel=tolerance)
    assert a.certificate_.lower_bound == pytest.approx(b.certificate_.lower_bound, rel=1e-3)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
def test_integer_weights_are_repetitions(name, form):
    X, y, weights = data(MODELS[name])
    weighted = clone(MODELS[name]).fit(form(X), y, sample_weight=weights)
    repeated = clone(MODELS[name]).fit(form(np.repeat(X, weights, axis=0)), np.repeat(y, weights))
    assert_same(weighted, repeated)


@pytest.mark.parametrize("name", MODELS)
def test_weight_zero_is_removal(name):
    X, y, _ = data(MODELS[name])
    kept = np.arange(50) % 5 > 0
    weighted = clone(MODELS[name]).fit(X, y, sample_weight=kept)
    removed = clone(MODELS[name]).fit(X[kept], y[kept])
    assert_same(weighted, removed, 1e-12)
    # What was removed may be anything at all.
    X[~kept] = 1e6
    assert_same(clone(MODELS[name]).fit(X, y, sample_weight=kept), removed, 1e-12)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("scale", [1e-300, 7.0, 1e300])
def test_scale_of_the_weights_does_not_matter(name, scale):
    X, y, weights = data(MODELS[name])
    plain = clone(MODELS[name]).fit(X, y, sample_weight=weights)
    assert_same(clone(MODELS[name]).fit(X, y, sample_weight=scale * weights), plain)


@pytest.mark.parametrize("name", ["pg", "huber", "logistic"])
def test_weights_so_small_that_they_vanish(name):
    X, y, _ = data(MODELS[name])
    weights = np.full(50, 1e300)
    weights[:3] = 5e-324
    assert_same(
        clone(MODELS[name]).fit(X, y, sample_weight=weights), clone(MODELS[name]).fit(X[3:], y[3:])
    )


@pytest.mark.parametrize("name", ["logistic", "balanced", "squared"])
def test_a_class_without_weight_is_no_class(name):
    X, y, _ = data(MODELS[name])
    model = clone(MODELS[name]).fit(X, y, sample_weight=y != 1)
    np.testing.assert_array_equal(model.classes_, [0, 2])
    assert_same(model, clone(MODELS[name]).fit(X[y != 1], y[y != 1]), 1e-12)
    with pytest.raises(ValueError, match=r"one class only.*2.*positive weight"):
        clone(MODELS[name]).fit(X, y, sample_weight=y == 2)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("balance", ["balanced", {0: 1.0, 1: 3.0, 2: 0.5}])
def test_class_weights_are_sample_weights(loss, balance):
    X, y, weights = data(MODELS["logistic"])
    model = FeatureClusterClassifier(3, loss=loss, class_weight=balance)
    plain = FeatureClusterClassifier(3, loss=loss)
    assert_same(model.fit(X, y), plain.fit(X, y, sample_weight=compute_sample_weight(balance, y)))
    # Together with weights of samples, classes are balanced by their weight.
    repeated = np.repeat(y, weights)
    by_class = compute_sample_weight(balance, repeated)
    assert_same(
        model.fit(X, y, sample_weight=weights),
        plain.fit(np.repeat(X, weights, axis=0), repeated, sample_weight=by_class),
    )


def test_class_weights_of_named_classes():
    X, y, _ = data(MODELS["logistic"])
    names = np.array(["ash", "oak", "yew"])[y]
    named = FeatureClusterClassifier(3, class_weight={"ash": 1.0, "oak": 3.0, "yew": 0.5})
    plain = FeatureClusterClassifier(3, class_weight={0: 1.0, 1: 3.0, 2: 0.5})
    assert_same(named.fit(X, names), plain.fit(X, y), 1e-12)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_class_of_weight_zero(loss):
    X, y, _ = data(MODELS["logistic"])
    model = FeatureClusterClassifier(3, loss=loss, class_weight={0: 0.0, 1: 1.0, 2: 1.0})
    model.fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.certificate_.lower_bound)
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])
    assert not (model.predict(X) == 0).any()


@pytest.mark.parametrize("balance", [{0: -1.0}, {0: np.nan}, {0: 0.0, 1: 0.0, 2: 0.0}, {1: np.inf}])
def test_class_weights_that_make_no_sense(balance):
    X, y, _ = data(MODELS["logistic"])
    with pytest.raises(ValueError, match=r"class_weight=.*at least 0"):
        FeatureClusterClassifier(3, class_weight=balance).fit(X, y)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.zeros(50), "zero throughout"),
        (-np.ones(50), "[Nn]egative"),
        (np.ones(49), "sample_weight"),
        (np.r_[np.nan, np.ones(49)], "NaN"),
    ],
)
@pytest.mark.parametrize("name", ["pg", "logistic"])
def test_sample_weights_that_make_no_sense(name, weights, message):
    X, y, _ = data(MODELS[name])
    with pytest.raises(ValueError, match=message):
        clone(MODELS[name]).fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("criterion", ["bic+icl", "cv"])
def test_searches_of_experts_know_only_samples_of_positive_weight(criterion):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    weights = np.arange(60) % 6 > 0
    search = {"criterion": criterion, "cv": 2, "random_state": 0}
    # A class that only samples without weight have is no class.
    y = np.digitize(X[:, 0], [-0.6, 0.6])
    others = np.where(weights, y, 7)
    model = SampleClusterClassifierCV((1, 2), **search)
    weighted = clone(model).fit(X, others, sample_weight=weights)
    removed = clone(model).fit(X[weights], y[weights])
    np.testing.assert_array_equal(weighted.classes_, [0, 1, 2])
    for name in ("values", "losses"):
        mine, theirs = (getattr(m.selection_, name) for m in (weighted, removed))
        np.testing.assert_allclose(mine, theirs)
    # Only numbers of experts are tried that these samples, or those of a fold, can have.
    few = SampleClusterRegressorCV((1, 2, 3, 4), **search)
    few.fit(X, X[:, 0], sample_weight=np.arange(60) < 6)
    tried = [1, 2, 3] if criterion == "cv" else [1, 2, 3, 4]
    np.testing.assert_array_equal(few.selection_.n_clusters, tried)


@pytest.mark.filterwarnings("ignore:The least populated class")  # by scikit-learn, before it fails
def test_a_search_of_experts_names_the_fold_that_lacks_a_class():
    X = np.random.default_rng(0).standard_normal((40, 2))
    y = np.digitize(X[:, 0], [-0.6, 0.6])
    y[5] = 7
    model = SampleClusterClassifierCV((1, 2), criterion="cv", cv=2, random_state=0)
    with pytest.raises(ValueError, match=r"Fold \d of cv has no sample of class 7 to fit on"):
        model.fit(X, y)
