"""Clustered features: rows of ``W`` stand for features, groups of them share their weights."""

import numpy as np
from numpy.typing import NDArray

from clustruct.design import DenseDesign, Design, GroupedDesign, assignment
from clustruct.objectives.linear import LinearObjective, Response
from clustruct.objectives.point import Point
from clustruct.objectives.quadratic import QuadraticObjective, quadratic_objective

__all__ = ["FeatureObjective"]

Floats = NDArray[np.float64]
Labels = NDArray[np.intp]

# Group sums up to this many entries are formed; larger ones are applied.
SMALL = 1 << 20


class FeatureObjective(LinearObjective):
    """Mean loss plus ridge, by products with ``X``.

    Parameters
    ----------
    design : Design
    response : Response
    alpha : float
    """

    def __init__(self, design: Design, response: Response, alpha: float) -> None:
        super().__init__(design, response, np.full(design.shape[1], alpha))
        self.alpha = alpha
        self.data = design

    def refit(
        self, labels: Labels, n_groups: int, tol: float, start: Floats | None = None
    ) -> Point:
        """The best weights with the given groups: a problem in ``V`` alone.

        Parameters
        ----------
        labels : ndarray of intp, shape (d,)
            -1 for weights that are zero.
        n_groups : int
        tol : float
        start : ndarray of shape (n_groups, K), default=None
            Values of the groups to start from.
        """
        Z = assignment(labels, n_groups)
        penalties = Z.T @ self.penalties
        if self.data.shape[0] * n_groups > max(SMALL, self.data.n_entries // 4):
            applied = GroupedDesign(self.data, labels, n_groups)
            best = LinearObjective(applied, self.response, penalties).minimum(tol, start)
        else:
            sums = DenseDesign(self.data.group_sums(labels, n_groups))
            grouped = LinearObjective(sums, self.response, penalties)
            if self.quadratic:
                start = quadratic_objective(sums, self.response, penalties).minimum(tol).W
                best = grouped.at(start)
            else:
                best = grouped.minimum(tol, start)
        return Point(Z @ best.W, best.value, best.intercept, best.slope)

    def quadratic_model(self, point: Point) -> QuadraticObjective:
        """The squared loss whose value and gradient at a point are those of this one.

        Its Gram matrix is ``X' diag(h) X`` with each row's mean second derivative ``h``: the second
        derivative itself where there is one output.
        """
        response = self.response
        scores = self.data.scores(point.W) + point.intercept
        weights = response.shares * _mean_curvature(response, scores)
        means = np.zeros(self.shape[0])
        if response.fit_intercept and weights.sum() > 0.0:
            means = self.data.adjoint(weights[:, None])[:, 0] / weights.sum()
        gram = self.data.gram(weights, means)
        slope = self.loss_gradient(point)
        ridge = 0.5 * self.alpha * float(np.vdot(point.W, point.W))
        bent = gram @ point.W
        constant = point.value - ridge + float(np.vdot(point.W, 0.5 * bent - slope))
        return QuadraticObjective(
            gram,
            bent - slope,
            max(0.0, constant),
            penalties=self.penalties,
            x_means=means,
            y_means=point.intercept + means @ point.W,
        )


def _mean_curvature(response: Response, scores: Floats) -> Floats:
    """Mean over the outputs of each row's second derivatives."""
    total = np.zeros(scores.shape[0])
    for k, unit in enumerate(np.eye(response.n_outputs)):
        direction = np.broadcast_to(unit, scores.shape)
        total += response.loss.hessian_product(response.target, scores, direction)[:, k]
    return total / response.n_outputs
