"""Dispersion of counts and amounts: Pearson's statistic, and a sentence where it is news."""

import numpy as np
import pytest

import clustruct as cs
from clustruct.reporting.comparing.samples import Data
from clustruct.reporting.dispersion import dispersion_of

N = 3000


@pytest.fixture(scope="module")
def means():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 6))
    return X, np.exp(0.5 + X @ np.repeat([0.3, -0.3], 3))


@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_pearsons_statistic(means, weighted):
    X, mu = means
    y = np.random.default_rng(1).poisson(mu).astype(float)
    weights = np.random.default_rng(2).integers(1, 4, N).astype(float) if weighted else None
    model = cs.FeatureClusterRegressor(2, loss="poisson").fit(X, y, sample_weight=weights)
    found = dispersion_of(model, Data(X, y, None, weights))
    squares = (y - model.predict(X)) ** 2 / model.predict(X)
    expected = np.average(squares, weights=weights) * N / (N - 3)
    assert found.value == pytest.approx(expected)
    assert found.value == pytest.approx(1.0, abs=0.1)
    assert found.remark is None


@pytest.mark.parametrize("kind", ["overdispersed", "zero-inflated", "regular"])
def test_counts_that_are_not_poisson_are_told(means, kind):
    X, mu = means
    rng = np.random.default_rng(3)
    y = {
        "overdispersed": lambda: rng.poisson(mu * rng.gamma(0.5, 2.0, N)),
        "zero-inflated": lambda: rng.poisson(2.0 * mu) * rng.integers(0, 2, N),
        "regular": lambda: np.round(mu),
    }[kind]().astype(float)
    model = cs.FeatureClusterRegressor(2, loss="poisson").fit(X, y)
    found = dispersion_of(model, Data(X, y))
    assert (found.value < 0.5) if kind == "regular" else (found.value > 1.8)
    assert "times as much around their predictions as Poisson counts do" in found.remark


def test_amounts_have_a_dispersion_that_is_no_news(means):
    X, mu = means
    y = np.random.default_rng(4).gamma(2.0, mu / 2.0)
    found = dispersion_of(cs.FeatureClusterRegressor(2, loss="gamma").fit(X, y), Data(X, y))
    assert found.value == pytest.approx(0.5, abs=0.05)  # one over the shape
    assert found.remark is None


def test_tasks_and_models_without_a_variance(means):
    X, mu = means
    y, tasks = np.random.default_rng(5).poisson(mu).astype(float), np.arange(N) % 5
    many = cs.TaskClusterRegressor(1, loss="poisson").fit(X, y, tasks=tasks)
    assert dispersion_of(many, Data(X, y, tasks)).value == pytest.approx(1.0, abs=0.1)
    columns = np.where(np.arange(N)[:, None] % 2 == np.arange(2), y[:, None], np.nan)
    many = cs.TaskClusterRegressor(1, loss="poisson").fit(X, columns)
    assert dispersion_of(many, Data(X, columns)).value == pytest.approx(1.0, abs=0.1)
    for model in (cs.FeatureClusterRegressor(2), cs.SampleClusterRegressor(2, loss="poisson")):
        assert dispersion_of(model.fit(X[:200], y[:200]), Data(X[:200], y[:200])) is None
    few = cs.FeatureClusterRegressor(2, loss="poisson").fit(X[:3], y[:3])
    assert dispersion_of(few, Data(X[:3], y[:3])) is None
