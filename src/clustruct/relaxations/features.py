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

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import linalg

from clustruct._typing import Floats, Labels
from clustruct.design import assignment
from clustruct.objectives.features.objective import FeatureObjective
from clustruct.objectives.quadratic import QuadraticObjective, inverse_roots
from clustruct.relaxations.hull import SETTINGS, Hull, PlainEnergy, Relaxation, solve_columns

__all__ = ["Factor", "Mixture", "factor_of", "hull_of"]


class Factor(Relaxation, Protocol):
    """``R`` and ``t``, with ``P = R' B``."""

    def scores(self, W: Floats) -> Floats:
        """``R W``."""

    def group_sums(self, labels: Labels, n_groups: int) -> Floats:
        """``R Z``."""


class FeatureFactor(PlainEnergy):
    """The part of a factor that both forms of the objective share."""

    def hull(self: Factor, labels: Labels, n_groups: int) -> Hull:
        """The projector of one grouping."""
        return hull_of(self, labels, n_groups)


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

    rest = 0.0

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


def factor_of(objective: QuadraticObjective | FeatureObjective) -> Factor:
    """``R`` and ``t`` for either form of the squared loss."""
    if isinstance(objective, QuadraticObjective):
        return GramFactor(objective)
    return RowFactor(objective)


@dataclass(frozen=True, eq=False)
class Mixture:
    """``M``, a convex combination of the projectors of groupings, applied by group means."""

    labels: tuple[Labels, ...]
    counts: tuple[int, ...]
    shares: Floats

    def apply(self, P: Floats) -> Floats:
        """``M P``."""
        image = np.zeros_like(P)
        for labels, count, share in zip(self.labels, self.counts, self.shares, strict=True):
            image += share * _group_means(P, labels, count)
        return image

    def with_grouping(self, labels: Labels, n_groups: int, share: float) -> "Mixture":
        """``(1 - share) M + share N`` with the projector ``N`` of one more grouping."""
        narrow = labels.astype(np.min_scalar_type(-max(n_groups, 1)))
        return Mixture(
            (*self.labels, narrow),
            (*self.counts, n_groups),
            np.append((1.0 - share) * self.shares, share),
        )


def hull_of(factor: Factor, labels: Labels, n_groups: int) -> Hull:
    """The projector of one grouping."""
    mixture = Mixture((), (), np.empty(0)).with_grouping(labels, n_groups, 1.0)
    if factor.target.shape[0] <= SETTINGS.dense_rows:
        return DenseHull(factor, mixture, _projected_rows(factor, labels, n_groups))
    return IterativeHull(factor, mixture)


@dataclass(frozen=True, eq=False)
class DenseHull:
    """A mixture for few rows: ``R M R' / alpha`` is formed."""

    factor: Factor
    mixture: Mixture
    matrix: Floats

    def solve(self) -> Floats:
        """``B`` by Cholesky factorisation."""
        system = self.matrix + np.eye(self.matrix.shape[0])
        try:
            return linalg.cho_solve(linalg.cho_factor(system), self.factor.target)
        except linalg.LinAlgError:  # columns so large that the ones are lost in rounding
            values, vectors = linalg.eigh(system)
            along = vectors.T @ self.factor.target
            return vectors @ (along / np.maximum(values, 1.0)[:, None])

    def toward(self, labels: Labels, n_groups: int) -> "Callable[[float], DenseHull]":
        """The hulls with one more grouping, by mixing the matrices."""
        added = _projected_rows(self.factor, labels, n_groups)

        def mixed(share: float) -> DenseHull:
            mixture = self.mixture.with_grouping(labels, n_groups, share)
            return DenseHull(self.factor, mixture, (1.0 - share) * self.matrix + share * added)

        return mixed


@dataclass(frozen=True, eq=False)
class IterativeHull:
    """A mixture for many rows, solved by conjugate gradients."""

    factor: Factor
    mixture: Mixture

    def solve(self) -> Floats:
        """``B``, column by column."""
        return solve_columns(self._apply, self.factor.target)

    def toward(self, labels: Labels, n_groups: int) -> "Callable[[float], IterativeHull]":
        """The hulls with one more grouping."""
        return lambda share: IterativeHull(
            self.factor, self.mixture.with_grouping(labels, n_groups, share)
        )

    def _apply(self, b: Floats) -> Floats:
        column = b.reshape(-1, 1)
        mixed = self.mixture.apply(self.factor.adjoint(column))
        image: Floats = column + self.factor.scores(mixed) / self.factor.alpha
        return image[:, 0]


def _projected_rows(factor: Factor, labels: Labels, n_groups: int) -> Floats:
    """``R Z (Z'Z)^-1 Z'R' / alpha``."""
    sizes = np.bincount(labels[labels >= 0], minlength=n_groups)
    scaled = factor.group_sums(labels, n_groups) / np.sqrt(np.maximum(sizes, 1) * factor.alpha)
    return scaled @ scaled.T


def _group_means(P: Floats, labels: Labels, n_groups: int) -> Floats:
    """``Z (Z'Z)^-1 Z' P``: each row replaced by the mean of its group, or by zero."""
    kept = labels >= 0
    sizes = np.maximum(np.bincount(labels[kept], minlength=n_groups), 1)
    # Label -1 is the last index: one more group, with mean zero.
    means = np.zeros((n_groups + 1, P.shape[1]))
    for k, column in enumerate(P.T):
        means[:n_groups, k] = np.bincount(labels[kept], column[kept], minlength=n_groups) / sizes
    return means[labels]
