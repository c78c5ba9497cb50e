"""The relaxation for clustered features (sec:cvxrelax), in a form that scales.

With the intercept and the row weights taken into ``R`` (``r x d``) and ``t`` (``r x K``), squared
loss reads

    f(W) = 1/2 ||t - R W||^2 + alpha/2 ||W||^2 + rest.

For the groups ``Z`` the best value is ``psi(M)`` at the projector ``M = Z (Z'Z)^-1 Z'``, where

    psi(M) = 1/2 <t, B> + rest,    B = (I + R M R' / alpha)^-1 t,

is convex in ``M``. Its negative gradient is ``P P' / (2 alpha)`` with ``P = R'B``: no matrix square
root is needed, and the best projector for it is that of the k-means groups of the rows of ``P``.
``M`` itself is never formed: it is a convex combination of groupings.
"""

from abc import abstractmethod

import numpy as np
from scipy import linalg

from clustruct._typing import Floats, Labels
from clustruct.design import assignment
from clustruct.objectives.features.objective import FeatureObjective
from clustruct.objectives.quadratic import QuadraticObjective, inverse_roots
from clustruct.relaxations.hull import Hull, Relaxation


class FeatureFactor(Relaxation):
    """``R`` and ``t``, with ``P = R' B``."""

    @abstractmethod
    def scores(self, W: Floats) -> Floats:
        """``R W``."""

    @abstractmethod
    def group_sums(self, labels: Labels, n_groups: int) -> Floats:
        """``R Z``."""

    def apply(self, hull: Hull, b: Floats) -> Floats:
        """``(I + R M R' / alpha) b``."""
        column = b.reshape(-1, 1)
        image: Floats = column + self.scores(hull.project(self.adjoint(column))) / self.alpha
        return image[:, 0]

    def matrix(self, labels: Labels, n_groups: int) -> Floats:
        """``R Z (Z'Z)^-1 Z'R' / alpha``."""
        sizes = np.bincount(labels[labels >= 0], minlength=n_groups)
        scaled = self.group_sums(labels, n_groups) / np.sqrt(np.maximum(sizes, 1) * self.alpha)
        return scaled @ scaled.T


class GramFactor(FeatureFactor):
    """A square root of the Gram matrix: ``G = R'R``, ``R't = C``."""

    def __init__(self, objective: QuadraticObjective) -> None:
        # The root of the correlations: a column in small units is not rounding.
        scale = inverse_roots(np.diagonal(objective.gram))
        values, vectors = linalg.eigh(scale[:, None] * objective.gram * scale)
        kept = values > 1e-13 * values.max(initial=0.0)
        roots = np.sqrt(values[kept])[:, None]
        self._R = roots * (vectors[:, kept].T / scale)
        self.target = (vectors[:, kept].T @ (scale[:, None] * objective.moment)) / roots
        self.rest = max(0.0, objective.constant - 0.5 * float(np.vdot(self.target, self.target)))
        self.alpha = float(objective.penalties[0])

    def scores(self, W: Floats) -> Floats:
        """``R W``."""
        return self._R @ W

    def adjoint(self, B: Floats) -> Floats:
        """``R' B``."""
        return self._R.T @ B

    def group_sums(self, labels: Labels, n_groups: int) -> Floats:
        """``R Z``."""
        return (assignment(labels, n_groups).T @ self._R.T).T


class RowFactor(FeatureFactor):
    """The rows of ``X``, weighted and centred as they are used."""

    def __init__(self, objective: FeatureObjective) -> None:
        response = objective.response
        self._design = objective.data
        self._roots = np.sqrt(response.shares)[:, None]
        means = np.zeros((1, objective.shape[1]))
        self._x_means = np.zeros((objective.shape[0], 1))
        if response.fit_intercept:
            means = (response.shares @ response.target)[None, :]
            self._x_means = self._design.adjoint(response.shares[:, None])
        self.target = self._roots * (response.target - means)
        self.alpha = objective.alpha

    def scores(self, W: Floats) -> Floats:
        """``R W``."""
        return self._roots * (self._design.scores(W) - self._x_means.T @ W)

    def adjoint(self, B: Floats) -> Floats:
        """``R' B``."""
        weighted = self._roots * B
        return self._design.adjoint(weighted) - self._x_means * weighted.sum(axis=0)

    def group_sums(self, labels: Labels, n_groups: int) -> Floats:
        """``R Z``."""
        offsets = assignment(labels, n_groups).T @ self._x_means
        return self._roots * (self._design.group_sums(labels, n_groups) - offsets.T)


def factor_of(objective: QuadraticObjective | FeatureObjective) -> FeatureFactor:
    """``R`` and ``t`` for either form of the squared loss."""
    if isinstance(objective, QuadraticObjective):
        return GramFactor(objective)
    return RowFactor(objective)
