"""A loss bound to a linear map: the smooth problem that everything else restricts.

    minimise (1/S) sum_i s_i loss(y_i, x_i' W + b) + 1/2 sum_j penalty_j ||W_j||^2   over W (d x K),

with the intercept ``b`` always at its best for ``W``. A value takes one product with ``X``, a
gradient one more.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import minimize_scalar

from clustruct._typing import Floats
from clustruct.arrays import beside, namespace, row_dots
from clustruct.design import Operator, Rows
from clustruct.losses import Loss, best_intercept, least_mean, mean_hessian
from clustruct.objectives.expansions import RowsExpansion, inverse
from clustruct.objectives.newton import Expansion, minimise
from clustruct.objectives.point import Point
from clustruct.objectives.ray import Ray, gradient_ray
from clustruct.results import Projection

__all__ = ["SINGLE", "LinearObjective", "Response"]


# A hundred times the rounding of a number, in units of what `Certificate.of` takes for rounding.
ROUNDED = 2e-6
# How much coarser the same is where ``X`` is of single precision.
SINGLE = 1e3


@dataclass(frozen=True, eq=False)
class Response:
    """What the scores are held against.

    Attributes
    ----------
    target : rows of shape (n, K) or (n,)
    loss : Loss
    n_outputs : int
        ``K``, the number of columns of the scores.
    shares : rows of shape (n,)
        Weights of the rows, which sum to one.
    fit_intercept : bool
    """

    target: Rows
    loss: Loss
    n_outputs: int
    shares: Rows
    fit_intercept: bool


class LinearObjective:
    """Mean loss plus ridge, by products with ``X``.

    Parameters
    ----------
    design : Operator
    response : Response
    penalties : ndarray of shape (d,)
        Strength of the ridge on each row of ``W``: alpha, or alpha times the size of a group.
    """

    def __init__(self, design: Operator, response: Response, penalties: Floats) -> None:
        self.design = design
        self.response = response
        self.penalties = penalties
        self.shape = (design.shape[1], response.n_outputs)
        self.quadratic = response.loss.quadratic
        self._moments: tuple[Floats, Floats] | None = None

    @cached_property
    def least(self) -> float:
        """A number that the objective is not below, whatever the weights."""
        response, fold = self.response, self.design.fold
        return least_mean(response.loss, response.target, response.n_outputs, response.shares, fold)

    @property
    def scale(self) -> float:
        """Size of the numbers that values and bounds are sums of; `Certificate.of` asks for it.

        That of the objective at zero weights, and more where targets are far from zero: residuals
        of targets ``y`` are rounded in proportion to ``|y|``, their squares to ``|r| |y|``.
        """
        n_outputs, rows = self.shape[1], (self.response.target, self.response.shares)
        loss = self.response.loss
        scores = self.design.map(
            lambda s: namespace(s).stack([0.0 * s] * n_outputs, axis=1), self.response.shares
        )
        offset = self.design.fold(lambda y, s, z: s @ loss.value(y, z), *rows, scores)
        around = abs(self.at_scores(np.zeros(self.shape), scores, np.zeros(n_outputs)).value)
        size = max(around, ROUNDED * float(np.sqrt(abs(float(offset)) * around)))
        return SINGLE * size if self.design.single else size

    def at(self, W: Floats, near: Point | None = None) -> Point:
        """Value at ``W``; a point near it is a good start for the intercept."""
        intercept = np.zeros(self.shape[1]) if near is None else near.intercept
        return self.at_scores(W, self.design.scores(W), intercept)

    def at_scores(self, W: Floats, scores: Rows, intercept: Floats) -> Point:
        """Value at ``W``, given its scores and where to seek the intercept."""
        response, loss = self.response, self.response.loss
        if response.fit_intercept:
            intercept = best_intercept(
                loss, response.target, scores, response.shares, intercept, self.design.fold
            )
        scores = self.shift(scores, intercept)
        rows = (response.target, scores, response.shares)
        mean = float(self.design.fold(lambda y, z, s: s @ loss.value(y, z), *rows))
        slope = self.design.map(lambda y, z, s: s[:, None] * loss.gradient(y, z), *rows)
        return Point(W, mean + self.ridge(W), intercept, slope)

    def ridge(self, W: Floats) -> float:
        """What the weights cost by themselves."""
        return 0.5 * float(self.penalties @ np.square(W).sum(axis=1))

    def shift(self, scores: Rows, intercept: Floats) -> Rows:
        """Scores with the intercept."""
        return self.design.map(lambda z: z + beside(intercept, z), scores)

    def gradient(self, point: Point) -> Floats:
        """``X' slope + penalty W``: the best intercept adds nothing to it."""
        return self.loss_gradient(point) + self.penalties[:, None] * point.W

    def loss_gradient(self, point: Point) -> Floats:
        """Gradient of the mean loss alone."""
        return self.design.adjoint(point.slope)

    def around(self, W: Floats, near: Point) -> Expansion:
        """The loss up to second order, at ``W`` and the intercept of a point."""
        return RowsExpansion(self, W, near.intercept, self.design.scores(W))

    def bend(self, point: Point, direction: Floats) -> float:
        """Second derivative along a direction: one pass over ``X``, as the scores suffice."""
        design, loss, n_outputs = self.design, self.response.loss, self.shape[1]
        both = design.scores(np.hstack([point.W, direction]))
        scores = self.shift(design.map(lambda b: b[:, :n_outputs], both), point.intercept)
        moved = design.map(lambda b: b[:, n_outputs:], both)
        rows = (self.response.target, scores, self.response.shares)
        if self.response.fit_intercept:
            slopes, bends = design.fold(
                lambda m, y, z, s: (
                    s @ loss.hessian_product(y, z, m),
                    mean_hessian(loss, y, z, s),
                ),
                moved,
                *rows,
            )
            moved = self.shift(moved, -(inverse(bends) @ slopes))
        curved = design.fold(
            lambda m, y, z, s: s @ row_dots(m, loss.hessian_product(y, z, m)), moved, *rows
        )
        return float(curved) + float(self.penalties @ np.square(direction).sum(axis=1))

    def keep(self, nearest: Projection, near: Point | None = None) -> Point:
        """Value at a projected point as it is."""
        return self.at(nearest.point, near)

    def rows(self, point: Point) -> Floats:
        """What is grouped: the weights."""
        return point.W

    def ray(self, point: Point) -> Ray:
        """The points along the negative gradient."""
        return gradient_ray(self, point)

    def curvatures(self) -> Floats:
        """Bounds of the diagonal of the second derivative."""
        means, variances = self._column_moments()
        squares = variances if self.response.fit_intercept else variances + means**2
        return self.response.loss.curvature * squares + self.penalties

    def _column_moments(self) -> tuple[Floats, Floats]:
        """Mean and variance of each column, computed once."""
        if self._moments is None:
            self._moments = self.design.moments(self.response.shares)
        return self._moments

    def dual_bound(self, point: Point, explained: float) -> float:
        """A lower bound of the objective on a union of subspaces, by Fenchel duality.

        With ``g`` the derivative of the loss by the scores at the point, every ``W`` of the union
        has

            f(W) >= -sum_i share_i loss*(tau g_i) - tau^2 explained / (2 alpha)

        for ``0 <= tau <= 1``, where ``explained`` is the most that a subspace holds of
        ``||X' g||^2`` (weighted). The best intercept makes the slopes sum to zero, as it must be;
        what rounding leaves of that sum counts at the intercept, not at zero, which may be far.

        Parameters
        ----------
        point : Point
        explained : float

        Returns
        -------
        float
        """
        response = self.response
        alpha, loss = float(self.penalties.min()), response.loss
        # Without ridge nothing keeps the weights from undoing any slope.
        if alpha <= 0.0 or not getattr(loss, "has_conjugate", True):
            return self.least
        slope = self.design.map(_per_share, point.slope, response.shares)
        rows = (response.target, slope, response.shares)

        left = 0.0
        if response.fit_intercept:
            left = float(self.design.fold(_column_sums, point.slope) @ point.intercept)

        def bound(tau: float) -> float:
            conjugate = self.design.fold(lambda y, g, s: s @ loss.conjugate(y, tau * g), *rows)
            return tau * left - float(conjugate) - 0.5 * tau**2 * explained / alpha

        longest = getattr(loss, "stretch", 1.0)
        best = minimize_scalar(
            lambda tau: -bound(float(tau)), bounds=(0.0, longest), method="bounded"
        )
        return max(self.least, -float(best.fun), bound(1.0))

    def minimum(self, tol: float, start: Floats | None = None, near: Point | None = None) -> Point:
        """The best weights without constraint, from weights or a point to start with."""
        if start is None:
            start = np.zeros(self.shape) if near is None else near.W
        return minimise(self, start, near, tol=tol)


def _column_sums(rows: Rows) -> Rows:
    """Sums over the rows, one a column."""
    return namespace(rows).sum(rows, axis=0)


def _per_share(slope: Rows, shares: Rows) -> Rows:
    """Slopes of rows of weight one; zero, whose conjugate is finite, for rows without weight."""
    xp = namespace(slope)
    weighed = shares[:, None] > 0.0
    divisor = xp.where(weighed, shares[:, None], 1.0)
    return xp.where(weighed, slope / divisor, 0.0)
