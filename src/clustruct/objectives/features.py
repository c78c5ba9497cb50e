"""Clustered features: rows of ``W`` stand for features, groups of them share their weights."""

import numpy as np
from numpy.typing import NDArray

from clustruct.design import DenseDesign, Design, GroupedDesign, assignment
from clustruct.objectives.linear import LinearObjective, Response
from clustruct.objectives.point import Point
from clustruct.objectives.quadratic import quadratic_objective

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
