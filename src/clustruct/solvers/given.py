"""The best values for given groups: one refit, for features, samples and tasks alike."""

from dataclasses import KW_ONLY, dataclass

from clustruct._typing import Labels
from clustruct.solvers.driver import Grouped, Objective, Solution, require


@dataclass(eq=False)
class GivenGroups:
    """The solver: there is nothing to search.

    labels: group of each feature, sample or task; -1 for features without weight.
    tol: precision of the refit.
    """

    name = "given groups"

    objective: Objective
    labels: Labels
    n_groups: int
    _: KW_ONLY
    tol: float = 1e-10

    def __post_init__(self) -> None:
        require(self.name, self.objective, ("refit",))

    def start(self) -> Grouped:
        """The best values; points of samples and tasks number the groups themselves."""
        point = self.objective.refit(self.labels, self.n_groups, self.tol)
        return Grouped(point, getattr(point, "labels", self.labels), step=0.0, done=True)

    def advance(self, state: Grouped) -> Grouped:
        """The same: there is nothing more to do."""
        return state

    def solution(self, state: Grouped) -> Solution:
        """The point itself."""
        return Solution(state.point, state.labels)
