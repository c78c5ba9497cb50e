"""Clustered features for data that is streamed: few passes over ``X``."""

from collections.abc import Sequence
from typing import cast

from clustruct._typing import Floats
from clustruct.design import Design, assignment
from clustruct.objectives.features.objective import FeatureObjective
from clustruct.objectives.linear import Point, Response
from clustruct.objectives.quadratic import QuadraticObjective
from clustruct.objectives.streamed import ReadingObjective
from clustruct.results import Projection

# Largest size in bytes of group sums that are computed ahead for trials that may not be made.
MOST_FORESEEN = 1 << 29


class StreamedFeatureObjective(ReadingObjective, FeatureObjective):
    """The same problem, with one pass for a step and one for all trials of a line search."""

    def __init__(self, design: Design, response: Response, alpha: float) -> None:
        super().__init__(design, response, alpha)
        self._stream = design

    def with_alpha(self, alpha: float) -> "StreamedFeatureObjective":
        """The same loss with another alpha; the sums of passes are kept."""
        other = cast(StreamedFeatureObjective, super().with_alpha(alpha))
        other._origin = self._origin
        return other

    def keep(self, nearest: Projection, near: Point | None = None) -> Point:
        """The point with projected weights, by the group sums that a refit needs, too."""
        n_groups = nearest.centers.shape[0]
        if not self._forms_sums(n_groups):
            return self.at(nearest.point, near)
        Z = assignment(nearest.labels, n_groups)
        sums = self.data.over(self._sums(nearest.labels, n_groups))
        best = self._grouped(sums, Z.T @ self.penalties).at(nearest.centers)
        return Point(nearest.point, best.value, best.intercept, best.slope)

    def quadratic_model(self, point: Point) -> QuadraticObjective:
        """The quadratic model at a point; one pass if second derivatives are formed."""
        if self._centre() is None:
            return super().quadratic_model(point)
        reading = self.read(point.W, point.intercept)
        means = (reading.tilts[0] @ reading.inner)[:, 0]
        return self._model(point, cast(Floats, reading.bent), means, reading.gradient)

    def foresee(self, trials: Sequence[Projection]) -> None:
        """Compute the group sums of all projections that may be refitted next, in one pass."""
        groupings = {
            (nearest.labels.tobytes(), n_groups): (nearest.labels, n_groups)
            for nearest in trials
            if self._forms_sums(n_groups := nearest.centers.shape[0])
        }
        n_columns = sum(n_groups for _, n_groups in groupings.values())
        self._foreseen = {}
        if len(groupings) > 1 and 8 * self._stream.shape[0] * n_columns <= MOST_FORESEEN:
            together = self._stream.group_sums_together(list(groupings.values()))
            self._foreseen = dict(zip(groupings, together, strict=True))


def feature_objective(design: Design, response: Response, alpha: float) -> FeatureObjective:
    """The objective of clustered features that suits a design, by products with ``X``."""
    if design.streamed:
        return StreamedFeatureObjective(design, response, alpha)
    return FeatureObjective(design, response, alpha)
