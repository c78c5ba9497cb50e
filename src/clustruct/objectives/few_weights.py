"""Minima without constraint for classes and few weights: compiled, with dense second derivatives.

Groups leave a few weights for each class. Products with the second derivative, as conjugate
gradients need them, then cost far more in calls than in arithmetic.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from clustruct._typing import Floats
from clustruct.design import Operator
from clustruct.kernels import COMPILED
from clustruct.kernels.fits.class_newton import ClassNewton
from clustruct.losses import Contrasts
from clustruct.objectives.many_rows import ManyRows

if TYPE_CHECKING:
    from clustruct.objectives.linear import Point, Response

# Largest number of weights: the factor of a second derivative takes the cube of it. Beyond this
# many products of rows and weights, calls of NumPy take less time than compiled sums.
MOST_WEIGHTS, MOST_PRODUCTS = 200, 200_000
# Largest number of columns whose Gram matrix is formed.
MOST_COLUMNS = 256
MAX_STEPS = 100
NONE = np.empty(0)


class FewWeights:
    """The problem of a design with few columns; see `few_weights`."""

    def __init__(self, rows: Floats, response: "Response", contrasts: Contrasts) -> None:
        self._response, self._contrasts = response, contrasts
        self._shape = rows.shape
        self._newton = ClassNewton(
            rows,
            response.class_codes,
            response.shares,
            contrasts.differences,
            response.fit_intercept,
        )

    def improved(
        self,
        shares: Floats,
        ridge: Floats,
        start: Floats,
        intercept: Floats,
        tol: float,
        max_steps: int,
        losses: Floats = NONE,
    ) -> tuple[Floats, Floats, bool]:
        """Weights and intercept after a few steps for other shares, and whether they converged.

        Shapes: shares (n,), ridge (d,), start (d, K), intercept (K,).
        losses (n,): room for the losses of all rows there, if they are wanted.
        """
        outputs = self._contrasts.outputs
        weights = np.zeros((outputs.shape[1], self._shape[1] + 1))
        weights[:, :-1] = (start @ outputs).T
        if self._response.fit_intercept:
            weights[:, -1] = intercept @ outputs
        converged = self._newton.improve(shares, ridge, weights, tol, max_steps, losses)
        by_output = outputs @ weights
        return by_output[:, :-1].T, by_output[:, -1], converged

    def minima(
        self,
        ridges: Sequence[Floats],
        tol: float,
        start: Floats | None = None,
        intercept: Floats | None = None,
    ) -> "list[Point] | None":
        """The minimum for each of several ridges, or None where another method has to find them.

        Second derivatives are kept for later.

        ridges (d,): one or more, best in an order in which neighbours are alike.
        start (d, K), intercept (K,): where to begin.
        """
        from clustruct.objectives.linear import Point

        together = np.array(ridges, dtype=np.float64)
        if not (together > 0.0).all():
            return None
        outputs, (n_rows, n_columns) = self._contrasts.outputs, self._shape
        weights = np.zeros((len(ridges), outputs.shape[1], n_columns + 1))
        if start is not None:
            weights[0, :, :-1] = (start @ outputs).T
        if self._response.fit_intercept:
            begin = self._response.base_intercept if intercept is None else intercept
            weights[0, :, -1] = begin @ outputs
        slopes = np.empty((len(ridges), n_rows, outputs.shape[1]))
        values = self._newton.minimise(together, weights, slopes, tol, MAX_STEPS)
        if not np.isfinite(values).all():
            return None
        by_scores = self._contrasts.slopes
        return [
            Point(W[:, :-1].T @ outputs.T, float(value), W[:, -1] @ outputs.T, slope @ by_scores)
            for W, value, slope in zip(weights, values, slopes, strict=True)
        ]


def few_weights(design: Operator, response: "Response") -> FewWeights | None:
    """The problem of a design, if it has few columns and rows at hand, and a loss of classes."""
    contrasts = response.contrasts
    if contrasts is None or not COMPILED:
        return None
    if contrasts.outputs.shape[1] * (design.shape[1] + 1) > MOST_WEIGHTS:
        return None
    rows = design.dense_rows()
    if rows is None or rows.shape[0] == 0:
        return None
    return FewWeights(rows, response, contrasts)


def class_rows(design: Operator, response: "Response") -> ManyRows | None:
    """The same for more columns, by the quasi-Newton method."""
    if response.contrasts is None or design.shape[1] > MOST_COLUMNS:
        return None
    rows = design.dense_rows()
    # Columns too large to square are left to a method that says so.
    if rows is None or rows.shape[0] == 0 or not np.isfinite(np.vdot(rows, rows)):
        return None
    codes, shares = response.class_codes, response.shares
    return ManyRows(rows, codes, shares, response.n_outputs, response.fit_intercept)


def class_problem(design: Operator, response: "Response") -> FewWeights | ManyRows | None:
    """The same by the method that takes less time."""
    many = class_rows(design, response)
    n_weights = max(1, response.n_outputs - 1) * (design.shape[1] + 1)
    if many is None or design.shape[0] * n_weights > MOST_PRODUCTS:
        return many
    few = few_weights(design, response)
    return many if few is None else few
