"""The squared loss by its Gram matrix: ``X`` is read once and never touched again."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from clustruct.design import Design, assignment
from clustruct.objectives.linear import Response
from clustruct.objectives.point import Point
from clustruct.objectives.ray import Ray, gradient_ray
from clustruct.results import Projection

__all__ = ["QuadraticObjective", "quadratic_objective"]

Floats = NDArray[np.float64]
Labels = NDArray[np.intp]


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

    def keep(self, nearest: Projection, near: Point | None = None) -> Point:
        """Value at a projected point as it is."""
        return self.at(nearest.point, near)

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
            return max(0.0, self.minimum(0.0).value)
        along = 2.0 * self.constant - float(np.vdot(self.moment, point.W))
        ridge = 0.5 * float(self.penalties @ np.square(point.W).sum(axis=1))
        spread = 2.0 * max(0.0, point.value - ridge) + explained / alpha
        return 0.5 * along**2 / spread if spread > 0.0 else 0.0

    def minimum(self, tol: float, start: Floats | None = None) -> Point:
        """The best weights without constraint, by a factorisation."""
        return self.at(_solve_positive(self.gram + np.diag(self.penalties), self.moment))

    def refit(
        self, labels: Labels, n_groups: int, tol: float, start: Floats | None = None
    ) -> Point:
        """The best weights with the given groups: ``Z'(G + alpha)Z V = Z'C``."""
        Z = assignment(labels, n_groups)
        grouped = Z.T @ (Z.T @ self.gram).T + np.diag(Z.T @ self.penalties)
        return self.at(Z @ _solve_positive(grouped, Z.T @ self.moment))


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
    shares = response.shares
    x_means, y_means = np.zeros(design.shape[1]), np.zeros(response.n_outputs)
    if response.fit_intercept:
        x_means = design.moments(shares)[0]
        y_means = shares @ response.target
    centred = response.target - y_means
    weighted = shares[:, None] * centred
    return QuadraticObjective(
        design.gram(shares, x_means),
        design.adjoint(weighted) - np.outer(x_means, weighted.sum(axis=0)),
        0.5 * float(np.vdot(weighted, centred)),
        penalties=penalties,
        x_means=x_means,
        y_means=y_means,
    )


def _solve_positive(matrix: Floats, right: Floats) -> Floats:
    """Solution of a positive semi-definite system, the shortest one where there are many."""
    try:
        factor = linalg.cho_factor(matrix)
        diagonal = np.abs(np.diagonal(factor[0]))
        if diagonal.min(initial=np.inf) > 1e-7 * diagonal.max(initial=0.0):
            return linalg.cho_solve(factor, right)
    except linalg.LinAlgError:
        pass
    values, vectors = linalg.eigh(matrix)
    kept = values > values.size * np.finfo(np.float64).eps * values.max(initial=0.0)
    inverse = np.divide(1.0, values, where=kept, out=np.zeros_like(values))
    return vectors @ (inverse[:, None] * (vectors.T @ right))
