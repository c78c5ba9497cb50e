"""Tasks with their weights integrated out: against Gaussian algebra and numerical integration."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import multivariate_normal, norm

from clustruct.design import as_design
from clustruct.losses import LogisticLoss, SquaredLoss
from clustruct.objectives.tasks.data import OwnRows, Part, task_data
from clustruct.objectives.tasks.evidence import (
    Form,
    Population,
    TaskLikelihood,
    of_inputs,
    place_tasks,
)

T = 0.4  # scale of the noise


def tasks_of(designs, target, loss=None):
    """The likelihood of tasks without intercept, all rows of weight one."""
    loss = loss or SquaredLoss()
    shares = np.full(len(target), 1 / len(target))
    d = designs[0].shape[1]
    rows = OwnRows.of([as_design(X) for X in designs])
    data = task_data(Part(rows, target, shares, loss, np.zeros(d), False), loss)
    begin = np.zeros((len(designs), d))
    return TaskLikelihood(data, loss.noise(1, 1.0), float(len(target)), begin)


def integrated(likelihood, spread, W=None):
    """Rows with the weights integrated out; spreads are in the units of the columns."""
    W = likelihood.begin[None] if W is None else W * likelihood.units
    models = likelihood.expand(W).scaled(likelihood.total / T)
    return models.integrated(spread * np.square(likelihood.units))


@pytest.fixture
def small():
    rng = np.random.default_rng(0)
    designs = [rng.standard_normal((size, 3)) for size in (2, 5, 9)]
    return designs, rng.standard_normal(16)


@pytest.mark.parametrize("spread", [[0.5, 2.0, 0.1], [0.5, 0.0, 3.0], [0.0, 0.0, 0.0]])
def test_posterior_and_evidence_are_those_of_gaussian_algebra(small, spread):
    designs, y = small
    likelihood, S, c = tasks_of(designs, y), np.diag(spread), np.array([0.3, -1.0, 0.2])
    rows = integrated(likelihood, np.array([spread]))
    centers = (c * likelihood.units)[None]
    densities = rows.densities(centers, np.zeros((1, 3, 3)))[0]
    weights = rows.weights(centers)[0] / likelihood.units
    M = rows.M[0] / np.outer(likelihood.units, likelihood.units)
    pieces = np.split(y, np.cumsum([len(X) for X in designs])[:-1])
    for t, (X, mine) in enumerate(zip(designs, pieces, strict=True)):
        covariance = T * np.eye(len(mine)) + X @ S @ X.T
        expected = multivariate_normal.logpdf(mine, X @ c, covariance)
        assert densities[t] == pytest.approx(expected + len(mine) / 2 * np.log(2 * np.pi * T))
        gain = S @ X.T @ np.linalg.inv(covariance)
        np.testing.assert_allclose(weights[t], c + gain @ (mine - X @ c), atol=1e-12)
        np.testing.assert_allclose(M[t], S - gain @ X @ S, atol=1e-12)


def test_doubt_of_the_centroid_is_averaged(small):
    # The mean of log p(rows | c) over c ~ N(m, C), by a sum over many draws.
    designs, y = small
    likelihood = tasks_of(designs, y)
    rows, rng = integrated(likelihood, np.full((1, 3), 0.5)), np.random.default_rng(1)
    root = 0.1 * rng.standard_normal((3, 3))
    draws = root @ rng.standard_normal((3, 100_000))
    told = rows.densities(np.zeros((1, 3)), (root @ root.T)[None])[0]
    drawn = np.mean([rows.densities(c[None], np.zeros((1, 3, 3)))[0] for c in draws.T[:2000]], 0)
    np.testing.assert_allclose(told, drawn, atol=0.02)


def test_groups_of_one_weight_against_numerical_integration():
    rng = np.random.default_rng(2)
    designs = [rng.standard_normal((4, 1)) for _ in range(3)]
    y, V = rng.standard_normal(12), np.array([[-0.5], [1.0]])
    spread, proportions = np.array([[0.3], [0.8]]), np.array([0.7, 0.3])
    chances, W = place_tasks(tasks_of(designs, y), T, V, spread, proportions)
    for t, X in enumerate(designs):
        mine = y[4 * t : 4 * t + 4]

        def rows(w, q, X=X, mine=mine):
            prior = norm.pdf(w, V[q, 0], np.sqrt(spread[q, 0]))
            return prior * np.prod(norm.pdf(mine, X[:, 0] * w, np.sqrt(T)))

        evidence = np.array([quad(rows, -10, 10, args=(q,))[0] for q in (0, 1)])
        means = [quad(lambda w, q=q, rows=rows: w * rows(w, q), -10, 10)[0] for q in (0, 1)]
        shares = proportions * evidence / (proportions @ evidence)
        np.testing.assert_allclose(chances[t], shares, rtol=1e-6)
        assert W[t, 0] == pytest.approx(proportions @ means / (proportions @ evidence), rel=1e-6)


def test_laplace_against_numerical_integration():
    rng = np.random.default_rng(3)
    designs = [rng.standard_normal((25, 1)) for _ in range(2)]
    y = np.where(rng.random(50) < 0.6, 1.0, -1.0)
    likelihood = tasks_of(designs, y, LogisticLoss())
    V, spread, proportions = np.array([[-0.5], [0.8]]), np.full((2, 1), 0.5), np.array([0.5, 0.5])
    chances, W = place_tasks(likelihood, 1.0, V, spread, proportions)
    for t, X in enumerate(designs):
        mine = y[25 * t : 25 * t + 25]

        def rows(w, q, X=X, mine=mine):
            prior = norm.logpdf(w, V[q, 0], np.sqrt(0.5))
            return np.exp(prior - np.logaddexp(0, -mine * X[:, 0] * w).sum() + 15)

        evidence = np.array([quad(rows, -10, 10, args=(q,))[0] for q in (0, 1)])
        np.testing.assert_allclose(chances[t], evidence / evidence.sum(), atol=0.01)
        means = [quad(lambda w, q=q, rows=rows: w * rows(w, q), -10, 10)[0] for q in (0, 1)]
        assert W[t, 0] == pytest.approx(sum(means) / evidence.sum(), abs=0.03)


def test_means_of_inputs_are_normal():
    means, counts = np.array([[0.3, -1.0], [2.0, 0.5]]), np.array([4.0, 9.0])
    rows = of_inputs(means, counts).integrated(np.array([[0.2, 0.7]]))
    centers = np.array([[0.1, 0.2]])
    densities = rows.densities(centers, np.zeros((1, 2, 2)))[0]
    deviations = np.sqrt(np.array([0.2, 0.7]) + 1 / counts[:, None])
    np.testing.assert_allclose(densities, norm.logpdf(means, centers, deviations).sum(axis=1))


def test_centroids_against_gaussian_algebra(small):
    # Two groups with the prior (I - J/2) / between + J/2 / mean in each coordinate.
    designs, y = small
    rows = integrated(tasks_of(designs, y), np.full((1, 3), 0.5))
    shares = np.array([[0.9, 0.2, 0.4], [0.1, 0.8, 0.6]])
    vague = Population(
        centers=np.zeros((2, 3)),
        doubts=np.zeros((2, 3, 3)),
        spread=np.full((1, 3), 0.5),
        between=np.array([0.3, 1.0, 2.0]),
        mean=np.array([1.0, 4.0, 0.5]),
        free=np.ones(3),
        limits=(1e-9, 1e9),
    )
    found = vague.updated(rows, shares)
    J = np.full((2, 2), 0.5)
    prior = np.kron(np.eye(2) - J, np.diag(1 / vague.between)) + np.kron(J, np.diag(1 / vague.mean))
    precision = prior.copy()
    for q in (0, 1):
        block = slice(3 * q, 3 * q + 3)
        precision[block, block] += np.einsum("t,tij->ij", shares[q], rows.H[0])
    covariance = np.linalg.inv(precision)
    centers = covariance @ (shares @ rows.g[0]).reshape(-1)
    np.testing.assert_allclose(found.centers.reshape(-1), centers, atol=1e-12)
    np.testing.assert_allclose(found.doubts[1], covariance[3:, 3:], atol=1e-12)


@pytest.mark.parametrize("form", list(Form))
def test_spreads_of_a_form_are_the_likeliest(form):
    # They minimise weights log s + sums / s over spreads of that form: all are tried by scipy.
    rng = np.random.default_rng(0)
    sums, weights = rng.uniform(0.5, 5.0, (3, 4)), rng.uniform(1.0, 9.0, (3, 4))
    spreads = {
        Form.SAME: lambda p: np.exp(p[:4])[None],
        Form.SCALED: lambda p: np.exp(p[:4] + p[4:7, None]),
        Form.OWN: lambda p: np.exp(p[:12]).reshape(3, 4),
    }[form]

    def cost(s):
        return float((weights * np.log(s) + sums / s).sum())

    vague = np.ones((3, 4, 4))
    unit, free = np.ones(4), np.zeros(4)
    groups = Population(
        vague[0][:3], vague, spreads(np.zeros(12)), unit, unit, free, (1e-9, 1e9), form
    )
    for _ in range(20):
        groups = replace(groups, spread=groups._formed(sums, weights))
    best = minimize(lambda p: cost(spreads(p)), np.zeros(12))
    assert cost(groups.spread) == pytest.approx(best.fun, abs=1e-6)
    assert groups.spread.shape == (1 if form is Form.SAME else 3, 4)
