"""Regressions on grouped features with a known partition, in quadratic form."""

from typing import NamedTuple

import numpy as np

from clustruct.solvers.search.partition_problem import PartitionProblem


class Planted(NamedTuple):
    """A problem, the weights behind it and their groups."""

    problem: PartitionProblem
    weights: np.ndarray
    labels: np.ndarray


def quadratic(x, y, n_clusters, alpha=1e-4, **limits):
    """The quadratic form of a regression."""
    n = len(x)
    y = y.reshape(n, -1)
    return PartitionProblem(
        x.T @ x / n, x.T @ y / n, float(np.sum(y**2) / n), alpha, n_clusters, **limits
    )


def planted(seed, n, d=100, n_clusters=5, correlation=0.0, noise=0.5, alpha=1e-4):
    """The problem of the paper's Table 2, with the columns of an autoregressive process."""
    rng = np.random.default_rng([seed, n, d])
    values = rng.uniform(-15.0, 15.0, n_clusters)
    labels = rng.integers(0, n_clusters, d)
    x = rng.standard_normal((n, d))
    for j in range(1, d if correlation else 1):
        x[:, j] = correlation * x[:, j - 1] + np.sqrt(1 - correlation**2) * x[:, j]
    y = x @ values[labels] + noise * rng.standard_normal(n)
    return Planted(quadratic(x, y, n_clusters, alpha), values[labels], labels)


def planted_blocks(seed, n=75, d=100, n_clusters=5, n_blocks=5, correlation=0.8, noise=0.5):
    """The same with blocks of correlated columns that have nothing to do with the groups."""
    rng = np.random.default_rng([seed, n, d])
    values = rng.uniform(-15.0, 15.0, n_clusters)
    labels = rng.integers(0, n_clusters, d)
    shared = rng.standard_normal((n, n_blocks))[:, rng.permutation(d) % n_blocks]
    own = rng.standard_normal((n, d))
    x = np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own
    y = x @ values[labels] + noise * rng.standard_normal(n)
    return Planted(quadratic(x, y, n_clusters), values[labels], labels)


def weights_of(problem, labels):
    """The weights that go with labels, (d, K)."""
    return np.where(labels[:, None] >= 0, problem.centers(labels)[labels], 0.0)


def value_of(problem, labels):
    """The objective at the best weights for labels, term by term."""
    w = weights_of(problem, labels)
    return (
        0.5 * np.sum(w * (problem.gram @ w))
        - np.sum(problem.moment * w)
        + 0.5 * problem.constant
        + 0.5 * problem.alpha * np.sum(w**2)
    )


def permitted(problem, labels):
    """Whether labels keep to ranges and to the number of features outside the zero group."""
    first, last = problem.ranges
    inside = (first <= labels) & (labels < last)
    if problem.n_nonzero is None:
        return bool(inside.all())
    return bool((inside | (labels == -1)).all() and np.sum(labels >= 0) <= problem.n_nonzero)
