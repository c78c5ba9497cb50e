"""The relaxation for clustered tasks, and lower bounds by duality.

Minimising the penalty over the centroids leaves ``1/2 tr(W' Sigma^-1 W)`` in the weights, where

    Sigma(M) = sw I + (sb - sw) M + (sm - sb) U,

``M = Z (Z'Z)^-1 Z'`` is the projector of the groups, ``U`` that on equal rows, and

    sw = 1 / (alpha + within),    sb = 1 / (alpha + between within / (between + within)),
    sm = 1 / (alpha + mean within / (mean + within)).

``sb >= sw``, and ``Sigma`` is linear in ``M``. So the least of loss plus penalty over ``W`` is a
convex function of ``M``. For squared loss, with ``1/2 ||t - R W||^2`` in place of the loss, it is

    psi(M) = 1/2 <t, B> + rest,    B = (I + R Sigma(M) R')^-1 t,

and its negative gradient is ``1/2 (sb - sw) P P'`` with one row ``p_t`` of ``P = R'B`` for each
task: the oracle is k-means of the rows of ``P``. What is said of numbers here holds for each
coordinate with strengths of its own; the rows are scaled by ``sqrt(sb - sw)`` then.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from clustruct._typing import Floats
from clustruct.grouping.constraints import Clustered
from clustruct.objectives.tasks.blocks import Strengths
from clustruct.objectives.tasks.objective import TaskObjective, TaskPoint
from clustruct.relaxations.hull import SETTINGS, Hull, Relaxation

# Directions of a task's rows with less than this share of its largest variance are rounding.
ROUNDING = 1e-13
# Values of ``tau`` in the lower bound that are tried at a time.
TRIALS = 9


@dataclass(frozen=True, eq=False)
class Spreads:
    """``sw``, ``sb`` and ``sm`` for each coordinate, infinite without a penalty.

    Shapes: within, between, mean (width,).
    """

    within: Floats
    between: Floats
    mean: Floats

    @classmethod
    def of(cls, strengths: Strengths) -> "Spreads":
        """The spreads of given strengths."""

        def spread(price: Floats) -> Floats:
            # The harmonic sum of two strengths; the second is infinite if tasks share.
            with np.errstate(divide="ignore"):
                both = 1.0 / (1.0 / price + 1.0 / strengths.within)
                return 1.0 / (strengths.ridge + both)

        with np.errstate(divide="ignore"):
            within = 1.0 / (strengths.ridge + strengths.within)
        return cls(within, spread(strengths.between), spread(strengths.mean))

    @property
    def finite(self) -> bool:
        """Whether every direction has a penalty; otherwise there is no lower bound."""
        return bool(np.isfinite([self.within, self.between, self.mean]).all())

    def scale(self, P: Floats) -> Floats:
        """The rows that are grouped."""
        return P * np.sqrt(np.maximum(self.between - self.within, 0.0))

    def fixed(self, P: Floats) -> float:
        """The part of ``tr(P' Sigma P)`` that does not depend on the groups."""
        mean = P.mean(axis=0)
        common = P.shape[0] * np.square(mean) @ (self.mean - self.between)
        return float((np.square(P) @ self.within).sum() + common)


def residual_bound(objective: TaskObjective, point: TaskPoint, n_clusters: int) -> float:
    """A lower bound of the objective for all groups, from the slopes of the loss at a point.

    For every ``tau`` from 0, which gives the least loss, to 1, and all weights and groups,

        objective >= -sum_i s_i loss*(tau g_i) - tau^2 / 2 max_M tr(P' Sigma(M) P),

    with the slopes ``g_i`` and ``P`` the derivative of the loss by the weights.
    """
    spreads, energy = Spreads.of(objective.strengths), np.inf
    if spreads.finite:
        explained = Clustered(n_clusters).explained(spreads.scale(point.slope))
        energy = spreads.fixed(point.slope) + explained
    if not np.isfinite(energy):
        return -float(objective.data.dual_losses(point.W, np.zeros(1))[0])

    def bounds(taus: Floats) -> Floats:
        return -objective.data.dual_losses(point.W, taus) - 0.5 * taus**2 * energy

    return _most(bounds)


def _most(function: Callable[[Floats], Floats]) -> float:
    """Nearly the largest value of a concave function on [0, 1]; many points cost as one.

    Tries an even grid, a finer one about the best, and the top of the parabola through the best.
    """
    at = np.linspace(0.0, 1.0, TRIALS)
    values = function(at)
    best = int(values.argmax())
    at = np.linspace(at[max(best - 1, 0)], at[min(best + 1, TRIALS - 1)], TRIALS)
    values = function(at)
    best = int(values.argmax())
    if best in (0, TRIALS - 1):
        return float(values[best])
    fall, climb = values[best] - values[best + 1], values[best] - values[best - 1]
    if fall + climb <= 0.0:
        return float(values[best])
    top = at[best] + 0.5 * (at[1] - at[0]) * (climb - fall) / (climb + fall)
    return max(float(values[best]), float(function(np.array([top]))[0]))


class TaskFactor(Relaxation):
    """``R`` and ``t`` of all tasks, each at most as many rows as there are coordinates.

    objective: with squared loss, and a price in every direction.
    """

    alpha = 1.0  # strengths are in the rows
    max_steps = SETTINGS.task_steps

    def __init__(self, objective: TaskObjective) -> None:
        K, width = objective.shape
        origin = np.zeros((K, width))
        model = objective.data.models(origin)
        values, vectors = np.linalg.eigh(model.G)
        kept = values > ROUNDING * values.max(axis=1, initial=0.0)[:, None]
        roots = np.sqrt(np.where(kept, values, 1.0))
        along = np.einsum("tij,ti->tj", vectors, model.h)
        self._R = np.where(kept, roots, 0.0)[:, :, None] * vectors.transpose(0, 2, 1)
        self.target = np.where(kept, along / roots, 0.0).reshape(-1, 1)
        constant = float(objective.data.losses(origin).sum())
        self.rest = max(0.0, constant - 0.5 * float(np.vdot(self.target, self.target)))
        self.spreads = Spreads.of(objective.strengths)

    def slopes(self, B: Floats) -> Floats:
        """``P = R'B``, a row a task."""
        return np.einsum("tij,ti->tj", self._R, B.reshape(self._R.shape[:2]))

    def adjoint(self, B: Floats) -> Floats:
        """The rows that are grouped."""
        return self.spreads.scale(self.slopes(B))

    def energy(self, B: Floats) -> float:
        """``||B||^2`` plus the part of the penalty that does not depend on the groups."""
        return float(np.vdot(B, B)) + self.spreads.fixed(self.slopes(B))

    def apply(self, hull: Hull, b: Floats) -> Floats:
        """``(I + R Sigma(M) R') b``."""
        P, spreads = self.slopes(b), self.spreads
        common = (spreads.mean - spreads.between) * P.mean(axis=0)
        mixed = spreads.within * P + spreads.scale(hull.project(spreads.scale(P))) + common
        return b.reshape(-1) + np.einsum("tij,tj->ti", self._R, mixed).reshape(-1)

    def preconditioner(self, hull: Hull) -> Callable[[Floats], Floats]:
        """Inverses of the diagonal blocks of ``I + R Sigma(M) R'`` without its mean, one a task."""
        spreads = self.spreads
        own = np.zeros(self._R.shape[0])  # the diagonal of M
        for (labels, count), share in zip(hull.groupings, hull.shares, strict=True):
            own += share / np.bincount(labels, minlength=count)[labels]
        scale = spreads.within + own[:, None] * (spreads.between - spreads.within)
        blocks = (self._R * scale[:, None]) @ self._R.transpose(0, 2, 1)
        inverses = np.linalg.inv(np.eye(blocks.shape[1]) + blocks)
        return lambda b: (inverses @ b.reshape(*inverses.shape[:2], 1)).reshape(-1)
