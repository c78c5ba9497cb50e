"""Clustered features where reading ``X`` is what takes the time."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clustruct.design import Rows, StreamedDesign
from clustruct.objectives.features import FeatureObjective
from clustruct.objectives.linear import Response
from clustruct.results import Projection

__all__ = ["StreamedFeatureObjective"]

Labels = NDArray[np.intp]

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
