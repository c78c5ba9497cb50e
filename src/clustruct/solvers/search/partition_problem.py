"""Least squares on grouped features in quadratic form, as the combinatorial search uses it."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from clustruct._typing import Floats, Labels
from clustruct.kernels.fits import reassign

# Far more sweeps than a descent takes: it stops by itself.
MAX_SWEEPS = 200
# Ridge over the mean variance of the columns, where without it a matrix might have no inverse.
GRAIN = 1e-10
# Pairs of features are moved together where their columns have at least this correlation, each
# feature with at most so many others. Below it pairs gain little over single features.
CORRELATED = 0.4
N_PARTNERS = 8


@dataclass(frozen=True, eq=False)
class PartitionProblem:
    """A least-squares problem (eq:feat) and moves of single features between groups.

    Minimise ``tr(W'G W) / 2 - tr(C'W) + constant / 2 + alpha ||W||^2 / 2`` over ``W = Z V``, where
    ``Z`` puts each feature into one of the groups. With the best ``V`` a partition *explains* the
    part ``tr(C'W) / 2`` of ``constant / 2``, and what is left is its value.

    gram (d, d): ``G = X'X / S``, centred and weighted as in the model.
    moment (d, K): ``C = X'Y / S``.
    constant: ``||Y||^2 / S``.
    alpha: strength of the ridge penalty.
    n_clusters: number of groups, the zero group not counted.
    first, last (d,): feature ``j`` may be in the groups ``first[j] <= q < last[j]``; None for all
        groups.
    n_nonzero: how many features may be outside the zero group; None if there is no zero group.
    """

    gram: Floats
    moment: Floats
    constant: float
    alpha: float
    n_clusters: int
    first: Labels | None = None
    last: Labels | None = None
    n_nonzero: int | None = None

    @property
    def n_features(self) -> int:
        """Number of features, ``d``."""
        return int(self.gram.shape[0])

    @cached_property
    def ranges(self) -> tuple[Labels, Labels]:
        """The first group where each feature may be, and the one after the last."""
        first = np.empty(self.n_features, dtype=np.intp)
        last = np.empty(self.n_features, dtype=np.intp)
        first[:] = 0 if self.first is None else self.first
        last[:] = self.n_clusters if self.last is None else self.last
        return first, last

    def descend(self, labels: Labels, *, in_pairs: bool = False) -> Floats:
        """Improve partitions, one a row, in place; return how much each explains then."""
        partners = self.partners if in_pairs else None
        explained: Floats = reassign.descend(*self._arguments, labels, MAX_SWEEPS, partners)
        return explained

    def anneal(
        self,
        labels: Labels,
        temperatures: Floats,
        rng: np.random.Generator,
        *,
        in_pairs: bool = False,
    ) -> None:
        """Anneal one partition in place, a sweep at each temperature."""
        shape = (len(temperatures), self.n_features)
        pairs = (self.partners, rng.random(shape)) if in_pairs else ()
        reassign.anneal(*self._arguments, labels, temperatures, rng.random(shape), *pairs)

    @cached_property
    def floor(self) -> float:
        """The value without groups, below which no partition is."""
        normal, moment = self._arguments[:2]
        # A grain of ridge, for columns that depend on each other.
        size = np.trace(normal) / self.n_features
        solved = np.linalg.solve(normal + GRAIN * size * np.eye(self.n_features), moment)
        return 0.5 * float(self.constant - np.vdot(moment, solved))

    @cached_property
    def partners(self) -> Labels:
        """For each feature those correlated with it, the most correlated first, -1 for none."""
        size = np.sqrt(np.maximum(np.diagonal(self.gram), np.finfo(np.float64).tiny))
        nearness = np.abs(self.gram) / size / size[:, None]
        np.fill_diagonal(nearness, 0.0)
        order = np.argsort(-nearness, axis=1, kind="stable")[:, :N_PARTNERS].astype(np.intp)
        order[np.take_along_axis(nearness, order, axis=1) < CORRELATED] = -1
        # As few columns as the feature with most partners needs: none if all are independent.
        return np.ascontiguousarray(order[:, (order >= 0).any(axis=0)])

    def centers(self, labels: Labels) -> Floats:
        """The best weights of the groups of one partition, (n_clusters, K)."""
        normal, moment = self._arguments[:2]
        members = np.equal.outer(labels, np.arange(self.n_clusters)).astype(np.float64)
        solved = np.linalg.lstsq(members.T @ normal @ members, members.T @ moment, rcond=None)
        return solved[0].astype(np.float64, copy=False)

    def residuals(self, labels: Labels) -> Floats:
        """Negative gradient by the weights of each feature, (d, K)."""
        normal, moment = self._arguments[:2]
        weights = np.where(labels[:, None] >= 0, self.centers(labels)[labels], 0.0)
        residuals: Floats = moment - normal @ weights
        return residuals

    def random_labels(self, n_starts: int, rng: np.random.Generator) -> Labels:
        """Random partitions, one a row, with as many features outside the zero group as may be."""
        first, last = self.ranges
        shape = (n_starts, self.n_features)
        labels: Labels = first + np.floor(rng.random(shape) * (last - first)).astype(np.intp)
        if self.n_nonzero is not None:
            labels[rng.random(shape).argsort(axis=1) >= self.n_nonzero] = -1
        return labels

    @cached_property
    def _arguments(self) -> tuple[Floats, Floats, Labels, Labels, int, int]:
        """The arguments of the kernels, with ``A = G + alpha I``."""
        normal = np.array(self.gram, dtype=np.float64, order="C")
        normal[np.diag_indices_from(normal)] += self.alpha
        moment = np.array(self.moment, dtype=np.float64, order="C")
        n_nonzero = -1 if self.n_nonzero is None else self.n_nonzero
        return normal, moment, *self.ranges, self.n_clusters, n_nonzero
