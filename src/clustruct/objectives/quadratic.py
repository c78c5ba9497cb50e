"""The squared loss by its Gram matrix: ``X`` is read once and never touched again."""

from collections.abc import Callable, Sequence

import numpy as np
from scipy import linalg

from clustruct._finite import require_finite
from clustruct._typing import Floats, Labels
from clustruct.design import Design, assignment, one_by_one
from clustruct.kernels.kmeans1d import cluster_values
from clustruct.objectives.linear import Response
from clustruct.objectives.moments import Moments
from clustruct.objectives.point import Point
from clustruct.objectives.ray import Ray, gradient_ray
from clustruct.results import Projection

__all__ = [
    "QuadraticObjective",
    "inverse_roots",
    "objective_of",
    "quadratic_objective",
    "remaining_objective",
]


class QuadraticObjective:
    """The squared loss by its Gram matrix.

    ``f(W) = 1/2 tr W'(G + alpha) W - tr C'W + constant``

    Parameters
    ----------
    gram : ndarray of shape (d, d)
        ``G``, weighted by shares and centred if there is an intercept.
    moment : ndarray of shape (d, K)
        ``C``, the same of ``X'y``.
    constant : float
        Half the mean square of the (centred) targets.
    penalties : ndarray of shape (d,)
    x_means : ndarray of shape (d,)
        What the columns of ``X`` were centred by, zeros without intercept.
    y_means : ndarray of shape (K,)
    """

    quadratic = True
    least = 0.0  # no squared loss is negative
    cluster = staticmethod(cluster_values)
    side_by_side = staticmethod(one_by_one)

    def __init__(
        self,
        gram: Floats,
        moment: Floats,
        constant: float,
        *,
        penalties: Floats,
        x_means: Floats,
        y_means: Floats,
    ) -> None:
        self.gram = gram
        self.moment = moment
        self.constant = constant
        self.penalties = penalties
        self.x_means = x_means
        self.y_means = y_means
        self.shape: tuple[int, int] = moment.shape

    def with_alpha(self, alpha: float) -> "QuadraticObjective":
        """The same loss with another ridge, alike for all rows."""
        return self.with_penalties(np.full(self.shape[0], alpha))

    def with_penalties(self, penalties: Floats) -> "QuadraticObjective":
        """The same loss with another ridge."""
        return QuadraticObjective(
            self.gram,
            self.moment,
            self.constant,
            penalties=penalties,
            x_means=self.x_means,
            y_means=self.y_means,
        )

    @property
    def scale(self) -> float:
        """The objective at zero weights, to whose rounding others are known."""
        return self.constant

    def at(self, W: Floats, near: Point | None = None) -> Point:
        """Value at ``W``."""
        slope = self.gram @ W - self.moment
        ridge = 0.5 * float(self.penalties @ np.square(W).sum(axis=1))
        value = self.constant + 0.5 * float(np.vdot(W, slope - self.moment)) + ridge
        return Point(W, max(value, ridge), self.y_means - self.x_means @ W, slope)

    def gradient(self, point: Point) -> Floats:
        """``(G + alpha) W - C``."""
        return self.loss_gradient(point) + self.penalties[:, None] * point.W

    def loss_gradient(self, point: Point) -> Floats:
        """``G W - C``."""
        return point.slope

    def hessian(self, point: Point) -> Callable[[Floats], Floats]:
        """``G + alpha``, as a function of the direction."""
        return lambda direction: self.gram @ direction + self.penalties[:, None] * direction

    def bend(self, point: Point, direction: Floats) -> float:
        """Second derivative along a direction."""
        return float(np.vdot(direction, self.hessian(point)(direction)))

    def curvatures(self) -> Floats:
        """The diagonal of the second derivative."""
        return np.diagonal(self.gram) + self.penalties

    def quadratic_model(self, point: Point) -> "QuadraticObjective":
        """Itself."""
        return self

    def keep(self, nearest: Projection, near: Point | None = None) -> Point:
        """Value at a projected point as it is."""
        return self.at(nearest.point, near)

    def rows(self, point: Point) -> Floats:
        """What is grouped: the weights."""
        return point.W

    def ray(self, point: Point) -> Ray:
        """The points along the negative gradient."""
        return gradient_ray(self, point)

    def dual_bound(self, point: Point, explained: float) -> float:
        """A lower bound on a union of subspaces; see `LinearObjective.dual_bound`.

        With the residual ``b`` of the point the bound is
        ``tau <y, b> - tau^2/2 (||b||^2 + explained / alpha)``, and the best ``tau`` is known.
        """
        alpha = float(self.penalties.min())
        if alpha <= 0.0:
            return self.minimum(0.0).value
        along = 2.0 * self.constant - float(np.vdot(self.moment, point.W))
        ridge = 0.5 * float(self.penalties @ np.square(point.W).sum(axis=1))
        spread = 2.0 * max(0.0, point.value - ridge) + explained / alpha
        return 0.5 * along * (along / spread) if spread > 0.0 else 0.0

    def minimum(self, tol: float, start: Floats | None = None, near: Point | None = None) -> Point:
        """The best weights without constraint, by a factorisation."""
        return self.at(_solve_positive(self.gram + np.diag(self.penalties), self.moment))

    def refit(
        self, labels: Labels, n_groups: int, tol: float, start: Floats | None = None
    ) -> Point:
        """The best weights with the given groups: ``Z'(G + alpha)Z V = Z'C``."""
        return self.refits(labels, n_groups, tol, (1.0,), start)[0]

    def refits(
        self,
        labels: Labels,
        n_groups: int,
        tol: float,
        factors: Sequence[float],
        start: Floats | None = None,
    ) -> list[Point]:
        """The same with each of some multiples of the ridge."""
        Z = assignment(labels, n_groups)
        grouped, sizes, moment = Z.T @ (Z.T @ self.gram).T, Z.T @ self.penalties, Z.T @ self.moment
        return [
            self.with_penalties(factor * self.penalties).at(
                Z @ _solve_positive(grouped + factor * np.diag(sizes), moment)
            )
            for factor in factors
        ]


def quadratic_objective(
    design: Design, response: Response, penalties: Floats
) -> QuadraticObjective:
    """The squared loss of a design, by its Gram matrix.

    Parameters
    ----------
    design : Design
    response : Response
    penalties : ndarray of shape (d,)

    Returns
    -------
    QuadraticObjective
    """
    moments = Moments.about_mean if response.fit_intercept else Moments.about_zero
    about = design.sweep(moments, response.target, response.shares, combine=Moments.joined)
    return objective_of(about, penalties)


def objective_of(mean: Moments, penalties: Floats) -> QuadraticObjective:
    """The squared loss of rows whose weights sum to one, about their means or zero."""
    require_finite(mean.gram, "a sum of products of columns of X")
    require_finite(mean.moment, "a sum of products of a column of X with y")
    require_finite(mean.squares, "the sum of the squared targets")
    return QuadraticObjective(
        mean.gram,
        mean.moment,
        0.5 * float(mean.squares.sum()),
        penalties=penalties,
        x_means=mean.x_center,
        y_means=mean.y_center,
    )


def remaining_objective(
    whole: Moments, part: Moments, fit_intercept: bool, penalties: Floats
) -> QuadraticObjective | None:
    """The squared loss of the rows that are not in a part, or None where digits would be lost.

    Parameters
    ----------
    whole, part : Moments
        Of all rows and of those to leave out, about the same centres.
    fit_intercept : bool
    penalties : ndarray of shape (d,)

    Returns
    -------
    QuadraticObjective or None
    """
    rest = whole.without(part)
    mean = rest.centred() if fit_intercept else rest.averaged()
    return objective_of(mean, penalties) if mean.reliable(whole) else None


def inverse_roots(diagonal: Floats) -> Floats:
    """What scales a diagonal to ones; ones where it is zero."""
    return 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))


def _solve_positive(matrix: Floats, right: Floats) -> Floats:
    """Run of a positive semi-definite system, the shortest one where there are many."""
    # Scaled to a diagonal of ones, so that columns in small units are not taken for dependent ones.
    scale = inverse_roots(np.diagonal(matrix))
    try:
        # Sums of products were found finite before.
        factor = linalg.cho_factor(scale[:, None] * matrix * scale, check_finite=False)
        if np.abs(np.diagonal(factor[0])).min(initial=np.inf) > 1e-7:
            return scale[:, None] * linalg.cho_solve(factor, scale[:, None] * right)
    except linalg.LinAlgError:
        pass
    values, vectors = linalg.eigh(matrix)
    kept = values > values.size * np.finfo(np.float64).eps * values.max(initial=0.0)
    inverse = np.divide(1.0, values, where=kept, out=np.zeros_like(values))
    return vectors @ (inverse[:, None] * (vectors.T @ right))
