"""The objective without constraint for data that is streamed: one pass over ``X`` for each step.

A pass computes the value and all derivatives together, since reading ``X`` takes most of the time.
"""

from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np

from clustruct._typing import Floats
from clustruct.design import Design, GroupedDesign, Operator, Rows
from clustruct.losses import Loss, mean_hessian
from clustruct.objectives.linear import ROUNDING, LinearObjective, Point, Response, inverse
from clustruct.objectives.newton import Expansion, Line

# Second derivatives are formed as a matrix for up to this many features.
FORMED = 300
# Gradients kept: a certificate needs those at the solution and at the unconstrained minimum.
REMEMBERED = 2


@dataclass(frozen=True, eq=False)
class Reading:
    """The mean loss, without the ridge, and its derivatives, as computed in one pass.

    Shapes: W (d, K), intercept (K,).
    scores (n, K): without intercept.
    slope (K,): ``u``, the derivative by the intercept.
    inner (K, K): ``T^-1``, inverse of the second derivative by it; zero without intercept.
    gradient (d, K): ``X'r - C T^-1 u``.
    tilts (K, d, K): ``C_k``, derivative of the gradient by the intercept.
    bent (d, d): ``X'HX - C T^-1 C'`` if it was formed, else None.
    """

    response: Response
    W: Floats
    intercept: Floats
    scores: Rows
    loss: float
    slope: Floats
    inner: Floats
    gradient: Floats
    tilts: Floats
    bent: Floats | None


@dataclass(frozen=True, eq=False)
class ReadPoint(Point):
    """A point with the derivatives that a pass computed there."""

    reading: Reading


class ReadingObjective(LinearObjective):
    """The same problem with a pass for each step of Newton's method.

    Shapes: penalties (d,).
    """

    _origin: Reading | None = None
    _gradients: tuple[tuple[Point, Floats], ...] = ()

    def around(self, W: Floats, near: Point) -> "ReadExpansion":
        """Second-order expansion; without a pass if it is known."""
        known = near.reading if isinstance(near, ReadPoint) else self._origin
        if known is None or known.response is not self.response or (known.W != W).any():
            known = self.read(W, near.intercept)
        if not W.any():
            self._origin = known  # where all fits begin, whatever the ridge
        return ReadExpansion(self, known)

    def loss_gradient(self, point: Point) -> Floats:
        """Gradient of the mean loss alone; those of the last points are kept."""
        for known, gradient in self._gradients:
            if known is point:
                return gradient
        gradient = super().loss_gradient(point)
        self._gradients = ((point, gradient), *self._gradients[: REMEMBERED - 1])
        return gradient

    def read(self, W: Floats, intercept: Floats) -> Reading:
        """All derivatives at weights and an intercept, in one pass."""
        response, (n_features, n_outputs) = self.response, self.shape
        centre = self._centre()
        scores, (loss, slope, bends, together, bent) = self.design.sweep_keeping(
            partial(_derivatives, response.loss, W, intercept, centre),
            response.target,
            response.shares,
        )
        tilts = together[:, n_outputs:].reshape(n_features, n_outputs, n_outputs)
        tilts = np.ascontiguousarray(tilts.transpose(1, 0, 2))
        gradient, inner = together[:, :n_outputs], np.zeros_like(bends)
        if response.fit_intercept:
            inner = inverse(bends)
            gradient = gradient - np.tensordot(inner @ slope, tilts, axes=1)
            if centre is not None:
                apart = tilts[0] - bends * centre[:, None]
                bent = bent - apart @ inner @ apart.T
        formed = None if centre is None else bent
        return Reading(
            response, W, intercept, scores, float(loss), slope, inner, gradient, tilts, formed
        )

    def _centre(self) -> Floats | None:
        """Centre of the columns in the second derivative; None if that is not formed."""
        n_features, n_outputs = self.shape
        if n_outputs > 1 or n_features > FORMED or isinstance(self.design, GroupedDesign):
            return None
        means, _ = self._column_moments()
        return means if self.response.fit_intercept else np.zeros_like(means)


class ReadExpansion(Expansion):
    """Second-order expansion from the sums of a pass, see `newton`."""

    def __init__(self, objective: ReadingObjective, reading: Reading) -> None:
        self._objective = objective
        self._reading = reading
        self._penalties = objective.penalties[:, None]
        self.value = reading.loss + objective.ridge(reading.W)
        self.gradient = reading.gradient + self._penalties * reading.W

    def product(self, direction: Floats) -> Floats:
        """Second derivative times a direction: by the matrix if it was formed, else by a pass."""
        known, response = self._reading, self._objective.response
        if known.bent is not None:
            return known.bent @ direction + self._penalties * direction
        W, intercept, loss = known.W, known.intercept, response.loss
        shift, n_outputs = self._follow(direction), W.shape[1]

        def bend(X: Operator, y: Rows, s: Rows) -> Floats:
            both = X.scores(np.hstack([W, direction]))
            z, moved = both[:, :n_outputs] + intercept, both[:, n_outputs:] + shift
            return X.adjoint(s[:, None] * loss.hessian_product(y, z, moved))

        swept = self._objective.design.sweep(bend, response.target, response.shares)
        return swept + self._penalties * direction

    def along(self, move: Floats) -> Line:
        """The line along a move: its points take a pass each."""
        known, objective = self._reading, self._objective
        behind = known.inner @ known.slope
        shift = self._follow(move) - behind

        def at(length: float) -> ReadExpansion:
            W, intercept = known.W + length * move, known.intercept + length * shift
            return ReadExpansion(objective, objective.read(W, intercept))

        return Line(float(np.vdot(self.gradient, move)) - float(known.slope @ behind), at)

    def settled(self) -> Point:
        """The point with the best intercept, by the scores alone; keeps the sums if it stays."""
        known = self._reading
        point = self._objective.at_scores(known.W, known.scores, known.intercept)
        if self.value - point.value > ROUNDING * abs(point.value):
            return point
        return ReadPoint(point.W, point.value, point.intercept, point.slope, known)

    def _follow(self, direction: Floats) -> Floats:
        """``-T^-1 C'D``."""
        return -(self._reading.inner @ np.tensordot(self._reading.tilts, direction, axes=2))


def linear_objective(design: Operator, response: Response, penalties: Floats) -> LinearObjective:
    """The objective for a design: with few passes if that is streamed."""
    kind = ReadingObjective if design.streamed else LinearObjective
    return kind(design, response, penalties)


def _derivatives(
    loss: Loss,
    W: Floats,
    intercept: Floats,
    centre: Floats | None,
    X: Operator,
    y: Rows,
    s: Rows,
) -> tuple[Rows, tuple[Floats, Floats, Floats, Floats, Floats]]:
    """Scores, and sums over rows of the loss and its derivatives.

    They are the loss, ``u = 1'r``, ``T = 1'H 1``, ``X'r`` and all ``C_k = X'H e_k`` side by side,
    and ``X'HX`` of columns less their centre.
    """
    scores = X.scores(W)
    z = scores + intercept
    slope = s[:, None] * loss.gradient(y, z)
    bends = [
        s[:, None] * loss.hessian_product(y, z, np.broadcast_to(unit, z.shape))
        for unit in np.eye(z.shape[1])
    ]
    # The layout that it has after transport between processes, or the last bits would differ.
    together = np.ascontiguousarray(X.adjoint(np.hstack([slope, *bends])))
    bent = np.zeros((0, 0)) if centre is None else cast(Design, X).gram(bends[0][:, 0], centre)
    sums = (s @ loss.value(y, z), slope.sum(axis=0), mean_hessian(loss, y, z, s), together, bent)
    return scores, sums
