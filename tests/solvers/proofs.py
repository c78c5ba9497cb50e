"""Small random problems for proofs, with all their groupings, and planted factors."""

from typing import Any, NamedTuple

import numpy as np

from clustruct.design import as_design
from clustruct.grouping.constraints import BlockClustered, Clustered
from clustruct.losses import SquaredLoss
from clustruct.objectives.linear import Response
from clustruct.objectives.quadratic import quadratic_objective
from clustruct.solvers.driver import Solution
from tests import brute_force as bf


def quadratic_of(X, y, alpha, shares=None, intercept=True):
    """The squared loss by its Gram matrix."""
    shares = np.full(len(X), 1.0 / len(X)) if shares is None else shares
    response = Response(y[:, None], SquaredLoss(), 1, shares, fit_intercept=intercept)
    return quadratic_objective(as_design(X), response, np.full(X.shape[1], float(alpha)))


def start_of(objective, constraint):
    """A feasible point: the unconstrained weights, grouped and refitted."""
    labels = constraint.project(objective.minimum(0.0).W).labels
    return Solution(objective.refit(labels, int(labels.max()) + 1, 0.0), labels)


class Drawn(NamedTuple):
    """A random problem and all its groupings."""

    X: np.ndarray
    y: np.ndarray
    alpha: float
    shares: np.ndarray
    intercept: bool
    objective: Any
    constraint: Any
    groupings: list

    def value(self, labels):
        """The objective of a grouping, by an independent least squares."""
        rows = self.X, self.y[:, None], labels
        how = {"alpha": self.alpha, "shares": self.shares, "intercept": self.intercept}
        return bf.ridge(*rows, **how)[0]

    @property
    def optimum(self):
        """The least objective."""
        return min(map(self.value, self.groupings))


def draw(seed, singular=True):
    """Normal, correlated or copied columns; one block or several; any alpha, also none."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 7))
    n = int(rng.integers(max(3, d - 2), 25)) if singular else d + 15
    X = rng.standard_normal((n, d))
    if rng.random() < 0.5:
        X = X @ rng.standard_normal((d, d))
    if singular and rng.random() < 0.3:
        X[:, -1] = X[:, 0]
    alpha = float(rng.choice([0.0, 1e-8, 1e-3, 0.1, 1.0]))
    y = X @ rng.choice([-1.0, 1.0, 2.0], d) + rng.choice([0.1, 1.0, 3.0]) * rng.standard_normal(n)
    shares = rng.uniform(0.1, 1.0, n) if rng.random() < 0.5 else np.ones(n)
    shares /= shares.sum()
    intercept = bool(rng.random() < 0.7)
    objective = quadratic_of(X, y, alpha, shares, intercept)
    constraint, groupings = _constraint(d, rng)
    return Drawn(X, y, alpha, shares, intercept, objective, constraint, groupings)


def _constraint(d, rng):
    """A constraint and all groupings that it allows."""
    if rng.random() < 0.5:
        n_groups = int(rng.integers(1, d + 1))
        return Clustered(n_groups), bf.groupings(d, n_groups)
    names = rng.integers(-1, 3, d)
    names[0] = max(names[0], 0)
    used = np.unique(names[names >= 0])
    blocks = np.where(names < 0, -1, np.searchsorted(used, names))
    if rng.random() < 0.5:
        total = int(rng.integers(used.size, d + used.size))
        return BlockClustered(blocks, total), list(bf.block_groupings(blocks, total))
    each = {b: int(rng.integers(1, 4)) for b in range(used.size)}
    counts = np.array([each[b] for b in range(used.size)], dtype=np.intp)
    return BlockClustered(blocks, counts), list(bf.block_groupings(blocks, each))


def factors(seed, n=500, n_factors=5, n_levels=15, n_active=3, sigma=1.5, correlation=0.2):
    """One-hot factors, the first of which have effects -2, 0 and 2; X, y and blocks."""
    rng = np.random.default_rng(seed)
    lags = np.abs(np.subtract.outer(np.arange(n_factors), np.arange(n_factors)))
    scores = rng.standard_normal((n, n_factors)) @ np.linalg.cholesky(correlation**lags).T
    codes = scores.argsort(axis=0).argsort(axis=0) * n_levels // n
    y = sigma * rng.standard_normal(n)
    for f in range(n_active):
        effects = np.repeat([-2.0, 0.0, 2.0], n_levels // 3)
        y += rng.permutation(effects)[codes[:, f]]
    X = np.hstack([np.eye(n_levels)[codes[:, f]] for f in range(n_factors)])
    return X, y, np.repeat(np.arange(n_factors), n_levels)
