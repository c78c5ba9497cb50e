"""Clustered features where reading ``X`` is what takes the time."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from clustruct.design import Design, Rows, StreamedDesign
from clustruct.objectives.features import FeatureObjective
from clustruct.objectives.linear import Response
from clustruct.objectives.point import Point
from clustruct.results import Projection

__all__ = ["StreamedFeatureObjective"]

Floats = NDArray[np.float64]
Labels = NDArray[np.intp]

# Second derivatives of up to so many features are formed.
FORMED = 300
# Bytes of group sums that may be kept for trials that are perhaps never made.
MOST_FORESEEN = 1 << 29


class StreamedFeatureObjective(FeatureObjective):
    """The same problem, with the trials of a line search read together.

    Parameters
    ----------
    design : StreamedDesign
    response : Response
    alpha : float
    """

    def __init__(self, design: StreamedDesign, response: Response, alpha: float) -> None:
        super().__init__(design, response, alpha)
        self._stream = design
        self._foreseen: dict[bytes, Rows] = {}

    def hessian(self, point: Point) -> Callable[[Floats], Floats]:
        """As a matrix where it is small: one pass over ``X``, and none for the products."""
        if self.shape[1] > 1 or self.shape[0] > FORMED:
            return super().hessian(point)
        loss, width, penalties = self.response.loss, self.shape[0], self.penalties[:, None]
        W, intercept = point.W, point.intercept

        def sums(X: Design, y: Rows, s: Rows) -> tuple[Floats, Floats, Floats]:
            z = X.scores(W) + intercept
            bends = s[:, None] * loss.hessian_product(y, z, np.ones_like(z))
            return X.gram(bends[:, 0], np.zeros(width)), X.adjoint(bends), bends.sum(axis=0)

        bent, tilts, total = self._stream.sweep(sums, self.response.target, self.response.shares)
        if self.response.fit_intercept and total[0] > 0.0:
            bent = bent - tilts @ tilts.T / total  # the best intercept moves along
        return lambda direction: bent @ direction + penalties * direction

    def foresee(self, trials: Sequence[Projection]) -> None:
        """Add up the columns of all groupings that may be refitted next, in one pass."""
        groupings = {
            nearest.labels.tobytes(): (nearest.labels, nearest.centers.shape[0])
            for nearest in trials
            if self._forms_sums(nearest.centers.shape[0])
        }
        n_columns = sum(n_groups for _, n_groups in groupings.values())
        self._foreseen = {}
        if len(groupings) > 1 and 8 * self._stream.shape[0] * n_columns <= MOST_FORESEEN:
            together = self._stream.group_sums_together(list(groupings.values()))
            self._foreseen = dict(zip(groupings, together, strict=True))

    def _sums(self, labels: Labels, n_groups: int) -> Rows:
        known = self._foreseen.get(labels.tobytes())
        return super()._sums(labels, n_groups) if known is None else known
