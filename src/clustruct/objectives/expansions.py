"""A loss bound to a linear map, around a point, by products with ``X``."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from clustruct._typing import Floats
from clustruct.arrays import beside, namespace
from clustruct.design import Rows
from clustruct.losses import mean_hessian
from clustruct.objectives.point import Point

if TYPE_CHECKING:
    from clustruct.objectives.linear import LinearObjective

__all__ = ["ROUNDING", "RowsExpansion", "inverse"]


# Differences of a value that are as large as this, relatively, may be rounding.
ROUNDING = 1e-12
# Second derivatives that are no larger tell nothing.
FLAT = 1e-100


class RowsExpansion:
    """The loss around weights and an intercept, see `newton`.

    With ``r`` and ``H`` its derivatives by the scores, ``u = 1'r``, ``T = 1'H 1`` and
    ``C_k = X'H e_k``, which need not be formed.

    Parameters
    ----------
    objective : LinearObjective
    W : ndarray of shape (d, K)
    intercept : ndarray of shape (K,)
    scores : rows of shape (n, K)
        Without intercept.
    """

    def __init__(
        self, objective: "LinearObjective", W: Floats, intercept: Floats, scores: Rows
    ) -> None:
        response, loss = objective.response, objective.response.loss
        self._objective = objective
        self._W = W
        self._intercept = intercept
        self._scores = scores
        shifted = objective.shift(scores, intercept)
        self._rows = (response.target, shifted, response.shares)
        n_outputs = W.shape[1]
        self._slope, self._inner = np.zeros(n_outputs), np.zeros((n_outputs, n_outputs))
        if response.fit_intercept:
            mean, self._slope, bends = objective.design.fold(
                lambda y, z, s: (
                    s @ loss.value(y, z),
                    s @ loss.gradient(y, z),
                    mean_hessian(loss, y, z, s),
                ),
                *self._rows,
            )
            self._inner = inverse(bends)
        else:
            mean = objective.design.fold(lambda y, z, s: s @ loss.value(y, z), *self._rows)
        self.value = float(mean) + objective.ridge(W)

    @cached_property
    def gradient(self) -> Floats:
        """``X'(r - H 1 T^-1 u) + penalty W``."""
        objective, loss = self._objective, self._objective.response.loss
        behind = self._inner @ self._slope

        def slope(y: Rows, z: Rows, s: Rows) -> Rows:
            slopes = loss.gradient(y, z)
            if behind.any():
                direction = namespace(z).broadcast_to(beside(behind, z), z.shape)
                slopes = slopes - loss.hessian_product(y, z, direction)
            return s[:, None] * slopes

        slopes = objective.design.map(slope, *self._rows)
        return objective.design.adjoint(slopes) + objective.penalties[:, None] * self._W

    def product(self, direction: Floats) -> Floats:
        """``X'(H - H 1 T^-1 1'H) X D + penalty D``."""
        objective, loss = self._objective, self._objective.response.loss
        moved = objective.design.scores(direction)
        moved = objective.shift(moved, -(self._inner @ self._tilt(moved)))
        bent = objective.design.map(
            lambda m, y, z, s: s[:, None] * loss.hessian_product(y, z, m), moved, *self._rows
        )
        return objective.design.adjoint(bent) + objective.penalties[:, None] * direction

    def along(self, move: Floats) -> "RowsLine":
        """The weights moved, and the intercept by ``-T^-1 (u + C'D)``."""
        moved = self._objective.design.scores(move)
        behind = self._inner @ self._slope
        slope = float(np.vdot(self.gradient, move)) - float(self._slope @ behind)
        return RowsLine(self, move, moved, -behind - self._inner @ self._tilt(moved), slope)

    def settled(self) -> Point:
        """By the scores alone."""
        return self._objective.at_scores(self._W, self._scores, self._intercept)

    def _tilt(self, moved: Rows) -> Floats:
        """``C'D``, by the scores of a direction."""
        if not self._inner.any():
            return np.zeros(self._inner.shape[0])
        loss = self._objective.response.loss
        tilt: Floats = self._objective.design.fold(
            lambda m, y, z, s: s @ loss.hessian_product(y, z, m), moved, *self._rows
        )
        return tilt

    def moved(self, line: "RowsLine", length: float) -> "RowsExpansion":
        """The expansion elsewhere on a line, without a product with ``X``."""
        design = self._objective.design
        scores = design.map(lambda z, m: z + length * m, self._scores, line.moved)
        intercept = self._intercept + length * line.shift
        return RowsExpansion(self._objective, self._W + length * line.move, intercept, scores)


@dataclass(frozen=True, eq=False)
class RowsLine:
    """Expansions along a move, whose scores are known.

    Attributes
    ----------
    begin : RowsExpansion
    move : ndarray of shape (d, K)
    moved : rows of shape (n, K)
        ``X`` times the move.
    shift : ndarray of shape (K,)
        What the intercept moves by.
    slope : float
    """

    begin: RowsExpansion
    move: Floats
    moved: Rows
    shift: Floats
    slope: float

    def at(self, length: float) -> RowsExpansion:
        """Where so much of the move leads to."""
        return self.begin.moved(self, length)


def inverse(bends: Floats) -> Floats:
    """Inverse of the second derivative by the intercept, zero along directions that are flat.

    A common shift of all classes is flat, and what rounding leaves of it must not be inverted; nor
    what is left of a loss where all rows are as good as certain.
    """
    if not np.abs(bends).max(initial=0.0) > FLAT:
        return np.zeros_like(bends)
    return np.asarray(np.linalg.pinv(bends, rcond=ROUNDING), dtype=np.float64)
