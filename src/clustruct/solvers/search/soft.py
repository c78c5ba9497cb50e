"""Many cheap starts by message passing, each polished by moves of single features.

The search (`soft_search`) sees the quadratic form of squared loss only. Other losses are modelled
by one at the current point; the groups found are refitted with the loss itself and modelled anew,
for as long as the objective falls.
"""

import numpy as np

from clustruct.grouping.constraints import Places
from clustruct.objectives.features.objective import FeatureObjective
from clustruct.objectives.point import Point
from clustruct.objectives.quadratic import QuadraticObjective
from clustruct.solvers.driver import Solution
from clustruct.solvers.greedy import Grouped
from clustruct.solvers.protocols import require
from clustruct.solvers.search.partition_problem import PartitionProblem
from clustruct.solvers.search.soft_search import Effort, search

__all__ = ["Soft"]


class Soft:
    """A search over partitions, from a feasible start.

    Parameters
    ----------
    objective : QuadraticObjective or FeatureObjective
    places : Places
        The groups that the search has to better, and where features may go.
    effort : Effort
    rng : numpy.random.Generator
    tol : float
        Precision of the refit.
    """

    name = "soft"

    def __init__(
        self,
        objective: QuadraticObjective | FeatureObjective,
        places: Places,
        *,
        effort: Effort,
        rng: np.random.Generator,
        tol: float = 1e-10,
    ) -> None:
        require(self.name, objective, ("quadratic_model", "refit"))
        self._objective = objective
        self._places = places
        self._effort = effort
        self._rng = rng
        self._tol = tol

    def start(self) -> Grouped:
        """The groups of the start."""
        labels = self._places.labels
        point = self._objective.refit(labels, self._places.n_groups, self._tol)
        return Grouped(point, labels, 0.0, np.inf, done=False)

    def advance(self, state: Grouped) -> Grouped:
        """Search the model at the current point. One search settles the squared loss."""
        labels = search(
            self._model(state.point), self._rng, effort=self._effort, starts=state.labels[None, :]
        ).labels
        point = self._objective.refit(labels, self._places.n_groups, self._tol)
        if not point.value < state.objective:
            return Grouped(state.point, state.labels, 0.0, 0.0, done=True)
        gain = (state.objective - point.value) / max(abs(state.objective), np.finfo(float).tiny)
        return Grouped(point, labels, 1.0, gain, done=self._objective.quadratic)

    def _model(self, point: Point) -> PartitionProblem:
        model, places = self._objective.quadratic_model(point), self._places
        return PartitionProblem(
            gram=model.gram,
            moment=model.moment,
            constant=2.0 * model.constant,
            alpha=float(model.penalties[0]),
            n_clusters=places.n_groups,
            first=places.first,
            last=places.last,
            n_nonzero=places.n_nonzero,
        )

    def solution(self, state: Grouped) -> Solution:
        """The point itself."""
        return Solution(state.point, state.labels)
