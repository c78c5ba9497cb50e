"""A loss bound to a linear map: the smooth problem that everything else restricts.

    minimise (1/S) sum_i s_i loss(y_i, x_i' W + b) + 1/2 sum_j penalty_j ||W_j||^2   over W (d x K),

with the intercept ``b`` always at its best for ``W``. A value takes one product with ``X``, a
gradient one more.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from clustruct.arrays import beside, namespace, row_dots
from clustruct.design import Operator, Rows
from clustruct.losses import Loss, best_intercept, mean_hessian
from clustruct.objectives.newton import minimise
from clustruct.objectives.point import Point
from clustruct.objectives.ray import Ray, gradient_ray
from clustruct.results import Projection

__all__ = ["LinearObjective", "Response"]

Floats = NDArray[np.float64]

# The conjugate of the squared loss is finite everywhere, so that its slopes may be stretched.
MAX_STRETCH = 4.0
ROUNDING = 1e-12


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
        self._bends: Floats | None = None

    def at(self, W: Floats, near: Point | None = None) -> Point:
        """Value at ``W``; a point near it is a good start for the intercept."""
        response, loss = self.response, self.response.loss
        scores = self.design.scores(W)
        intercept = np.zeros(self.shape[1]) if near is None else near.intercept
        if response.fit_intercept:
            intercept = best_intercept(
                loss, response.target, scores, response.shares, intercept, self.design.fold
            )
        scores = self._shift(scores, intercept)
        rows = (response.target, scores, response.shares)
        ridge = 0.5 * float(self.penalties @ np.square(W).sum(axis=1))
        value = float(self.design.fold(lambda y, z, s: s @ loss.value(y, z), *rows)) + ridge
        slope = self.design.map(lambda y, z, s: s[:, None] * loss.gradient(y, z), *rows)
        return Point(W, value, intercept, slope)

    def _shift(self, scores: Rows, intercept: Floats) -> Rows:
        """Scores with the intercept."""
        return self.design.map(lambda z: z + beside(intercept, z), scores)

    def gradient(self, point: Point) -> Floats:
        """``X' slope + penalty W``: the best intercept adds nothing to it."""
        return self.loss_gradient(point) + self.penalties[:, None] * point.W

    def loss_gradient(self, point: Point) -> Floats:
        """Gradient of the mean loss alone."""
        return self.design.adjoint(point.slope)

    def hessian(self, point: Point) -> Callable[[Floats], Floats]:
        """Second derivative, as a function of the direction.

        With ``H`` that of the mean loss by the scores, it is
        ``X' (H - H 1 (1'H 1)^-1 1'H) X + penalty``; the middle term is for the best intercept.
        """
        if self.design.streamed:
            return self._streamed_hessian(point)
        design, loss = self.design, self.response.loss
        scores = self._shift(design.scores(point.W), point.intercept)
        rows = (self.response.target, scores, self.response.shares)
        inner = np.zeros((self.shape[1], self.shape[1]))
        if self.response.fit_intercept:
            inner[:] = _inverse(design.fold(lambda y, z, s: mean_hessian(loss, y, z, s), *rows))

        def product(direction: Floats) -> Floats:
            moved = design.scores(direction)
            slopes = design.fold(lambda m, y, z, s: s @ loss.hessian_product(y, z, m), moved, *rows)
            moved = self._shift(moved, -(inner @ slopes))
            bent = design.map(
                lambda m, y, z, s: s[:, None] * loss.hessian_product(y, z, m), moved, *rows
            )
            return design.adjoint(bent) + self.penalties[:, None] * direction

        return product

    def _streamed_hessian(self, point: Point) -> Callable[[Floats], Floats]:
        """The same with one pass over ``X`` a product.

        The middle term is known before: with ``C_k = X' H e_k`` the shift of the intercept is
        ``(1'H 1)^-1`` times the numbers ``<C_k, direction>``. Scores are computed anew on the way.
        """
        design, loss, penalties = self.design, self.response.loss, self.penalties[:, None]
        rows = (self.response.target, self.response.shares)
        W, intercept, n_outputs = point.W, point.intercept, self.shape[1]
        inner, tilts = np.zeros((n_outputs, n_outputs)), np.zeros((n_outputs, *self.shape))

        def tilt(X: Operator, y: Rows, s: Rows) -> tuple[Floats, Floats]:
            z = X.scores(W) + intercept
            columns = [
                s[:, None] * loss.hessian_product(y, z, np.broadcast_to(unit, z.shape))
                for unit in np.eye(n_outputs)
            ]
            together = X.adjoint(np.hstack(columns)).reshape(-1, n_outputs, n_outputs)
            # In the layout that it also has after a journey, or the last bits would differ.
            tilted = np.ascontiguousarray(together.transpose(1, 0, 2))
            return tilted, mean_hessian(loss, y, z, s)

        if self.response.fit_intercept:
            tilts, bends = design.sweep(tilt, *rows)
            inner[:] = _inverse(bends)

        def product(direction: Floats) -> Floats:
            shift = inner @ np.tensordot(tilts, direction, axes=2)

            def bend(X: Operator, y: Rows, s: Rows) -> Floats:
                both = X.scores(np.hstack([W, direction]))
                z, moved = both[:, :n_outputs] + intercept, both[:, n_outputs:] - shift
                return X.adjoint(s[:, None] * loss.hessian_product(y, z, moved))

            return design.sweep(bend, *rows) + penalties * direction

        return product

    def bend(self, point: Point, direction: Floats) -> float:
        """Second derivative along a direction: one pass over ``X``, where `hessian` takes more."""
        design, loss, n_outputs = self.design, self.response.loss, self.shape[1]
        both = design.scores(np.hstack([point.W, direction]))
        scores = self._shift(design.map(lambda b: b[:, :n_outputs], both), point.intercept)
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
            moved = self._shift(moved, -(_inverse(bends) @ slopes))
        curved = design.fold(
            lambda m, y, z, s: s @ row_dots(m, loss.hessian_product(y, z, m)), moved, *rows
        )
        return float(curved) + float(self.penalties @ np.square(direction).sum(axis=1))

    def keep(self, nearest: Projection, near: Point | None = None) -> Point:
        """Value at a projected point as it is."""
        return self.at(nearest.point, near)

    def ray(self, point: Point) -> Ray:
        """The points along the negative gradient."""
        return gradient_ray(self, point)

    def curvatures(self) -> Floats:
        """Bounds of the diagonal of the second derivative."""
        if self._bends is None:
            means, variances = self.design.moments(self.response.shares)
            squares = variances if self.response.fit_intercept else variances + means**2
            self._bends = self.response.loss.curvature * squares
        return self._bends + self.penalties

    def dual_bound(self, point: Point, explained: float) -> float:
        """A lower bound of the objective on a union of subspaces, by Fenchel duality.

        With ``g`` the derivative of the loss by the scores at the point, every ``W`` of the union
        has

            f(W) >= -sum_i share_i loss*(tau g_i) - tau^2 explained / (2 alpha)

        for ``0 <= tau <= 1``, where ``explained`` is the most that a subspace holds of
        ``||X' g||^2`` (weighted). The best intercept makes the slopes sum to zero, as it must be.

        Parameters
        ----------
        point : Point
        explained : float

        Returns
        -------
        float
        """
        response = self.response
        alpha = float(self.penalties.min())
        if alpha <= 0.0:
            return 0.0  # without ridge nothing keeps the weights from undoing any slope
        loss = response.loss
        slope = self.design.map(_per_share, point.slope, response.shares)
        rows = (response.target, slope, response.shares)

        def bound(tau: float) -> float:
            conjugate = self.design.fold(lambda y, g, s: s @ loss.conjugate(y, tau * g), *rows)
            return -float(conjugate) - 0.5 * tau**2 * explained / alpha

        longest = MAX_STRETCH if self.quadratic else 1.0
        best = minimize_scalar(
            lambda tau: -bound(float(tau)), bounds=(0.0, longest), method="bounded"
        )
        return max(0.0, -float(best.fun), bound(1.0))

    def minimum(self, tol: float, start: Floats | None = None) -> Point:
        """The best weights without constraint."""
        return minimise(self, np.zeros(self.shape) if start is None else start, tol=tol)


def _inverse(bends: Floats) -> Floats:
    """Inverse of the second derivative by the intercept, zero along directions that are flat.

    A common shift of all classes is flat, and what rounding leaves of it must not be inverted.
    """
    return np.asarray(np.linalg.pinv(bends, rcond=ROUNDING), dtype=np.float64)


def _per_share(slope: Rows, shares: Rows) -> Rows:
    """Slopes of rows of weight one; zero, whose conjugate is finite, for rows without weight."""
    xp = namespace(slope)
    weighed = shares[:, None] > 0.0
    divisor = xp.where(weighed, shares[:, None], 1.0)
    return xp.where(weighed, slope / divisor, 0.0)
