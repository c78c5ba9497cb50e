"""Intervals of group values against bootstrap by definition, and their coverage."""

from inspect import signature

import numpy as np
import pytest
from scipy.stats import bootstrap

import clustruct as cs
from clustruct.results.intervals import bootstrap_interval


def test_bca_against_scipy():
    """The mean of a skewed sample, whose acceleration has a closed form."""
    rng = np.random.default_rng(0)
    x = rng.exponential(size=40)
    draws = (
        "rng" if "rng" in signature(bootstrap).parameters else "random_state"
    )  # before SciPy 1.15
    theirs = bootstrap(
        (x,), np.mean, confidence_level=0.9, n_resamples=4000, method="BCa", **{draws: rng}
    )
    away = x - x.mean()
    bend = (away**3).sum() / (6 * (away**2).sum() ** 1.5)
    low, high = bootstrap_interval(
        theirs.bootstrap_distribution[:, None], np.array([x.mean()]), 0.9, np.array([bend])
    )
    np.testing.assert_allclose([low[0], high[0]], theirs.confidence_interval, rtol=2e-3)


def test_percentile_is_the_quantile():
    values = np.random.default_rng(1).standard_normal((200, 3))
    values[::7, 1] = np.nan  # resamples without a match
    low, high = bootstrap_interval(values, np.zeros(3), 0.8, None)
    np.testing.assert_allclose(low, np.nanquantile(values, 0.1, axis=0))
    np.testing.assert_allclose(high, np.nanquantile(values, 0.9, axis=0))


def planted(seed, gap=1.0, n=120):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 6))
    truth = gap * np.repeat([-1.0, 1.0], 3)
    return X, 0.5 + X @ truth + rng.standard_normal(n), truth


def test_standard_errors_given_groups_are_those_of_least_squares():
    """The sandwich of least squares on group sums, by its formula."""
    X, y, _ = planted(0)
    model = cs.FeatureClusterRegressor(2, alpha=0.0).fit(X, y)
    found = cs.stability(model, X, y, n_resamples=5, scheme="bootstrap", random_state=0)
    Z = np.column_stack([model.transform(X), np.ones(y.size)])
    bread = np.linalg.inv(Z.T @ Z)
    residuals = y - model.predict(X)
    meat = Z.T @ (residuals[:, None] ** 2 * Z)
    expected = np.sqrt(np.diag(bread @ meat @ bread) * y.size / (y.size - 3))
    np.testing.assert_allclose(found.values.std_errors[:, 0], expected, rtol=1e-6)


def sandwich(Z, residuals):
    bread = np.linalg.inv(Z.T @ Z)
    meat = Z.T @ (residuals[:, None] ** 2 * Z)
    n, p = Z.shape
    return np.sqrt(np.diag(bread @ meat @ bread) * n / (n - p))


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_standard_errors_of_experts_are_those_of_least_squares_on_their_samples(n_outputs):
    rng = np.random.default_rng(0)
    X, side = rng.standard_normal((90, 2)), rng.random(90) < 0.5
    scores = 3.0 + 9.0 * X[:, [0]] * np.arange(1, n_outputs + 1)
    Y = np.where(side[:, None], scores, -scores) + 0.3 * rng.standard_normal((90, n_outputs))
    y = Y if n_outputs > 1 else Y[:, 0]
    model = cs.SampleClusterRegressor(2, alpha=0.0, random_state=0).fit(X, y)
    found = cs.stability(model, X, y, n_resamples=4, scheme="bootstrap", random_state=0)
    for q in range(2):
        mine = model.labels_ == q
        Z = np.column_stack([X[mine], np.ones(mine.sum())])
        weights, *_ = np.linalg.lstsq(Z, Y[mine], rcond=None)
        expected = [sandwich(Z, r) for r in (Y[mine] - Z @ weights).T]
        np.testing.assert_allclose(found.values.estimates[q], weights.ravel(), rtol=1e-5)
        np.testing.assert_allclose(
            found.values.std_errors[q], np.transpose(expected).ravel(), rtol=1e-5
        )
    assert len(found.values.columns) == 3 * n_outputs
    assert ("intercept" in found.values.columns) is (n_outputs == 1)


def test_the_group_without_weight_is_zero_for_sure():
    X, y, _ = planted(0)
    X = np.hstack([X, np.random.default_rng(9).standard_normal((y.size, 3))])
    model = cs.FeatureClusterRegressor(2, n_nonzero=6, alpha=0.0).fit(X, y)
    assert (model.labels_[6:] == -1).all()
    found = cs.stability(model, X, y, n_resamples=4, scheme="bootstrap", random_state=0)
    assert found.values.estimates[0] == found.values.std_errors[0] == 0.0
    Z = np.column_stack([model.transform(X), np.ones(y.size)])
    expected = sandwich(Z, y - model.predict(X))
    np.testing.assert_allclose(found.values.std_errors[1:, 0], expected, rtol=1e-6)


def coverage(n_problems, n_resamples):
    hits = total = 0
    for seed in range(n_problems):
        X, y, truth = planted(seed)
        model = cs.FeatureClusterRegressor(2, alpha=0.0, solver="greedy").fit(X, y)
        found = cs.stability(
            model, X, y, n_resamples=n_resamples, scheme="bootstrap", random_state=seed
        )
        for interval in found.intervals(level=0.9):
            low, high = interval.with_grouping
            if interval.label == "intercept":
                hits += low <= 0.5 <= high
            else:
                hits += low <= truth[model.labels_ == interval.label].mean() <= high
            total += 1
    return hits / total


def test_coverage_where_groups_are_apart():
    assert coverage(12, 60) >= 0.75  # three standard errors below 0.9


@pytest.mark.slow
def test_coverage_over_many_problems():
    assert 0.87 <= coverage(300, 200) <= 0.93


def test_a_feature_that_changes_sides_has_a_wide_interval():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((120, 5))
    y = X @ np.array([-1.0, -1.0, 0.0, 1.0, 1.0]) + rng.standard_normal(120)
    model = cs.FeatureClusterRegressor(2).fit(X, y)
    found = cs.stability(model, X, y, n_resamples=50, scheme="bootstrap", random_state=0)
    low, high = found.weight_intervals(0.9)
    widths = (high - low)[:, 0]
    assert widths.argmax() == found.firmness.argmin() == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: r.intervals(level=1.0), "level=1.0"),
        (lambda r: r.intervals(method="t"), "method='t'"),
    ],
)
def test_bad_arguments_are_named(call, message):
    X, y, _ = planted(0)
    model = cs.FeatureClusterRegressor(2).fit(X, y)
    with pytest.raises(ValueError, match=message):
        call(cs.stability(model, X, y, n_resamples=4, scheme="bootstrap", random_state=0))


def test_halves_give_no_intervals():
    X, y, _ = planted(0)
    model = cs.FeatureClusterRegressor(2).fit(X, y)
    found = cs.stability(model, X, y, n_resamples=4, random_state=0)
    for call in (found.intervals, found.weight_intervals):
        with pytest.raises(ValueError, match="scheme='bootstrap'"):
            call()


def test_centroids_of_tasks_have_bootstrap_intervals_only():
    problem = cs.datasets.make_clustered_tasks(n_tasks=8, n_clusters=2, random_state=0)
    X, Y = problem.columns()
    model = cs.TaskClusterRegressor(2, random_state=0).fit(X, Y)
    found = cs.stability(model, X, Y, n_resamples=6, scheme="bootstrap", random_state=0)
    for interval in found.intervals():
        assert interval.with_grouping[0] <= interval.with_grouping[1]
        assert np.isnan(interval.given_groups).all()
    assert "not known" in str(found.intervals())
