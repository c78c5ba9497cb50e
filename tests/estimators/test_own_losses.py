"""Losses and constraints of users in all estimators: what a loss says is done everywhere."""

import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import mean_poisson_deviance
from sklearn.model_selection import KFold

import clustruct as cs
from clustruct.losses import HuberLoss, LogisticLoss, SquaredLoss
from tests.losses.users import Bare, Poisson

N, D = 240, 6
POISSON = Poisson()


@pytest.fixture(scope="module")
def counts():
    """Samples, and counts whose rate has two distinct weights."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    return X, rng.poisson(np.exp(0.5 + X @ np.repeat([0.4, -0.3], D // 2))).astype(float)


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((N, D))
    return X, X @ np.repeat([2.0, -1.0], D // 2) + rng.standard_normal(N)


# ---- Poisson: a link, targets of its own, a likelihood, an equivalent in scikit-learn.


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_without_groups_it_is_scikit_learns(counts, fit_intercept):
    X, y = counts
    mine = cs.FeatureClusterRegressor(
        None, alpha=1e-2, loss=POISSON, fit_intercept=fit_intercept
    ).fit(X, y)
    its = PoissonRegressor(alpha=1e-2, fit_intercept=fit_intercept, tol=1e-10, max_iter=1000)
    its.fit(X, y)
    np.testing.assert_allclose(mine.coef_, its.coef_, atol=1e-5)
    np.testing.assert_allclose(mine.intercept_, its.intercept_, atol=1e-5)
    np.testing.assert_allclose(mine.predict(X), its.predict(X), rtol=1e-4)
    assert mine.certificate_.relative_gap < 1e-6


def test_groups_are_found_and_certified(counts):
    X, y = counts
    model = cs.FeatureClusterRegressor(2, alpha=1e-3, loss=POISSON, random_state=0).fit(X, y)
    assert model.labels_.tolist() == [1, 1, 1, 0, 0, 0]
    np.testing.assert_allclose(model.cluster_values_, [-0.3, 0.4], atol=0.1)
    assert model.certificate_.relative_gap < 0.05
    plain = model.to_sklearn()
    assert isinstance(plain, PoissonRegressor)
    np.testing.assert_allclose(plain.predict(X), model.predict(X), rtol=1e-12)


def test_folds_are_scored_by_the_deviance(counts):
    X, y = counts
    search = cs.FeatureClusterRegressorCV(
        (1, 2), alphas=(1e-3,), relax=1.0, cv=KFold(3), loss=POISSON, random_state=0
    ).fit(X, y)
    assert search.best_params_["n_clusters"] == 2
    plain = cs.FeatureClusterRegressor(2, alpha=1e-3, loss=POISSON, solver="greedy")
    by_hand = [
        -mean_poisson_deviance(y[test], clone(plain).fit(X[train], y[train]).predict(X[test]))
        for train, test in KFold(3).split(X)
    ]
    assert search.best_score_ == pytest.approx(np.mean(by_hand), rel=1e-5)
    scored = clone(search).set_params(scoring="neg_mean_poisson_deviance").fit(X, y)
    assert scored.best_score_ == search.best_score_
    errors = clone(search).set_params(scoring="neg_mean_squared_error").fit(X, y)
    slow = clone(search).set_params(scoring=negative_squared_error).fit(X, y)
    assert errors.best_score_ == pytest.approx(slow.best_score_, rel=1e-12)


def negative_squared_error(model, X, y):
    return -np.mean((model.predict(X) - y) ** 2)


def test_bic_counts_the_likelihood_of_counts(counts):
    X, y = counts
    found = cs.FeatureClusterRegressorCV(
        (1, 2, 3), alphas=(1e-4,), criterion="bic", loss=POISSON, random_state=0
    ).fit(X, y)
    deviance = N * mean_poisson_deviance(y, found.predict(X))
    price = (found.best_params_["n_clusters"] + 1) * np.log(N)
    assert -found.best_score_ == pytest.approx(deviance + price, rel=1e-3)


def test_tasks_of_counts(counts):
    X, y = counts
    tasks = np.arange(N) % 4
    model = cs.TaskClusterRegressor(1, alpha_within=1e6, loss=POISSON).fit(X, y, tasks=tasks)
    pooled = cs.FeatureClusterRegressor(None, alpha=0.0, loss=POISSON).fit(X, y)
    predicted = model.predict(X, tasks=tasks)
    assert (predicted > 0.0).all()
    assert np.corrcoef(np.log(predicted), np.log(pooled.predict(X)))[0, 1] > 0.9
    assert np.isfinite(model.certificate_.lower_bound)
    search = cs.TaskClusterRegressorCV(
        (1, 2), alpha_between=0.1, loss=POISSON, cv=2, random_state=0
    )
    search.fit(X, y, tasks=tasks)
    assert search.cv_results_.scoring == "neg_poisson_loss"
    scored = clone(search).set_params(scoring=minus_poisson_deviance).fit(X, y, tasks=tasks)
    assert scored.best_score_ == pytest.approx(2.0 * search.best_score_, rel=1e-2)


def minus_poisson_deviance(targets, predicted, tasks):
    return -mean_poisson_deviance(targets, predicted)


def test_experts_for_counts():
    rng = np.random.default_rng(2)
    X, expert = rng.standard_normal((600, 2)), rng.integers(2, size=600)
    y = rng.poisson(np.exp(2.0 + X @ np.array([[0.8, -0.8], [0.0, 0.0]]))[np.arange(600), expert])
    model = cs.SampleClusterRegressor(2, alpha=1e-3, loss=POISSON, random_state=0).fit(X, y)
    np.testing.assert_allclose(np.sort(model.experts_[:, 0]), [-0.8, 0.8], atol=0.2)
    each = model.predict_experts(X)
    np.testing.assert_allclose(each, np.exp(X @ model.experts_.T + model.intercepts_), rtol=1e-12)
    np.testing.assert_allclose(model.predict(X), each @ model.weights_, rtol=1e-12)
    gated = clone(model).set_params(gate=True).fit(X, y)
    assert np.isfinite(gated.gate_score_.gated)
    found = cs.SampleClusterRegressorCV((1, 2), loss=POISSON, random_state=0).fit(X, y)
    assert found.n_clusters_ == 2


@pytest.mark.parametrize(
    ("model", "metadata"),
    [
        (cs.FeatureClusterRegressor(2, loss=POISSON), {}),
        (cs.SampleClusterRegressor(2, loss=POISSON), {}),
        (cs.TaskClusterRegressor(2, loss=POISSON), {"tasks": np.arange(N) % 2}),
    ],
)
def test_targets_that_it_is_not_for_are_named(counts, model, metadata):
    X, y = counts
    y = y.copy()
    y[[3, 17]] = -1.0
    with pytest.raises(
        ValueError, match=r"2 targets that loss=Poisson\(\).*rows 3, 17 .*at least 0"
    ):
        model.fit(X, y, **metadata)


def test_it_is_not_for_classes(counts):
    X, y = counts
    for kind in (cs.FeatureClusterClassifier, cs.SampleClusterClassifier):
        with pytest.raises(ValueError, match="not for classes"):
            kind(2, loss=POISSON).fit(X, y.clip(max=2.0))
    with pytest.raises(ValueError, match="not for numbers"):
        cs.FeatureClusterRegressor(2, loss=LogisticLoss()).fit(X, y)


# ---- A loss that says nothing but its derivatives.


def test_a_bare_loss_works_and_proves_nothing(numbers):
    X, y = numbers
    model = cs.FeatureClusterRegressor(2, loss=Bare(), random_state=0).fit(X, y)
    assert model.labels_.tolist() == [1, 1, 1, 0, 0, 0]
    assert model.certificate_.lower_bound == -np.inf
    assert "not proved" in model.certificate_.in_words
    np.testing.assert_allclose(model.to_sklearn().predict(X), model.predict(X))
    tasks = np.arange(N) % 3
    of_tasks = cs.TaskClusterRegressor(1, loss=Bare()).fit(X, y, tasks=tasks)
    assert of_tasks.certificate_.lower_bound == -np.inf
    experts = cs.SampleClusterRegressor(2, loss=Bare(), random_state=0).fit(X, y)
    assert experts.certificate_.lower_bound == -np.inf
    path = cs.feature_cluster_path(X, y, n_clusters=2, alphas=1e-3, loss=Bare())
    np.testing.assert_allclose(path.coefs.ravel(), model.coef_, atol=1e-4)


def test_a_bare_loss_is_scored_by_itself(numbers):
    X, y = numbers
    search = cs.FeatureClusterRegressorCV((1, 2), alphas=1e-3, loss=Bare(), cv=2).fit(X, y)
    assert search.cv_results_.scoring == "neg_mean_bare_deviance"
    assert search.best_params_["n_clusters"] == 2


def test_a_bare_loss_has_no_likelihood(numbers):
    X, y = numbers
    with pytest.raises(ValueError, match=r"loss=Bare\(\): .*needs a likelihood"):
        cs.FeatureClusterRegressorCV(2, criterion="bic", loss=Bare()).fit(X, y)
    with pytest.raises(ValueError, match=r"criterion='bic\+icl' needs a likelihood"):
        cs.SampleClusterRegressorCV((1, 2), loss=Bare()).fit(X, y)


def test_to_sklearn_says_why_not(counts):
    class Linkless(Poisson):
        def to_regressor(self, coef, intercept, fit_intercept):
            return super(Poisson, self).to_regressor(coef, intercept, fit_intercept)

    model = cs.FeatureClusterRegressor(2, loss=Linkless()).fit(*counts)
    with pytest.raises(ValueError, match=r"predicts as loss=Linkless\(\) does"):
        model.to_sklearn()


# ---- Losses as parameters.


@pytest.mark.parametrize(
    ("kind", "name", "loss"),
    [
        (cs.FeatureClusterRegressor, "squared", SquaredLoss()),
        (cs.FeatureClusterRegressor, "huber", HuberLoss(1.35)),
        (cs.FeatureClusterClassifier, "logistic", LogisticLoss()),
        (cs.FeatureClusterRegressorCV, "huber", HuberLoss(1.35)),
        (cs.SampleClusterRegressor, "huber", HuberLoss(1.35)),
        (cs.SampleClusterClassifier, "logistic", LogisticLoss()),
        (cs.TaskClusterRegressor, "huber", HuberLoss(1.35)),
        (cs.TaskClusterClassifier, "logistic", LogisticLoss()),
    ],
)
def test_our_losses_as_objects_are_those_of_the_names(numbers, tmp_path, kind, name, loss):
    X, y = numbers
    y = np.digitize(y, [-1.0, 1.0]) if "Classifier" in kind.__name__ else y
    metadata = {"tasks": np.arange(N) % 3} if "Task" in kind.__name__ else {}
    y = (y > 0).astype(int) if metadata and "Classifier" in kind.__name__ else y
    common = {
        "random_state": 0,
        **({"alphas": 1e-3} if "FeatureClusterRegressorCV" in str(kind) else {}),
    }
    named = kind(2, loss=name, **common).fit(X, y, **metadata)
    given = clone(kind(2, loss=loss, **common)).fit(X, y, **metadata)
    assert repr(loss) in repr(given)
    np.testing.assert_array_equal(given.predict(X), named.predict(X))
    cs.save(given, tmp_path / "model.clustruct")
    loaded = cs.load(tmp_path / "model.clustruct")
    assert repr(loaded.loss) == repr(loss)
    np.testing.assert_array_equal(loaded.predict(X), named.predict(X))


def test_losses_of_users_are_not_saved(counts, tmp_path):
    model = cs.FeatureClusterRegressor(2, loss=POISSON).fit(*counts)
    with pytest.raises(ValueError, match=r"loss is a .*Poisson, which model files do not hold"):
        cs.save(model, tmp_path / "model.clustruct")


def test_what_is_no_loss_is_refused(numbers):
    message = re.escape("'loss' parameter of FeatureClusterRegressor must be")
    for loss in ("absolute", 3, Bare):
        with pytest.raises(ValueError, match=message):
            cs.FeatureClusterRegressor(2, loss=loss).fit(*numbers)
