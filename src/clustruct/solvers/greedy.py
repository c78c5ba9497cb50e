"""The greedy solver (the paper's LSK): fit without constraint, group the weights, refit."""

from dataclasses import KW_ONLY, dataclass

from clustruct.grouping.constraints import Constraint
from clustruct.objectives.linear import Point
from clustruct.solvers.driver import (
    Grouped,
    Objective,
    Solution,
    may_refit,
    refit,
    require,
    require_member,
)


@dataclass(eq=False)
class Greedy:
    """Weights without constraint, grouped once.

    minimum: the best point without constraint.
    refit: whether the groups get their best values, or the means of the weights they hold.
        Constraints that cannot be refitted do without.
    tol: precision of the refit.
    """

    name = "greedy"

    objective: Objective
    constraint: Constraint
    minimum: Point
    _: KW_ONLY
    refit: bool = True
    tol: float = 1e-10

    def __post_init__(self) -> None:
        require(self.name, self.objective, ("refit", "keep"))
        require(self.name, self.constraint, ("project",))
        self.refit = self.refit and may_refit(self.constraint)

    def start(self) -> Grouped:
        """The projection of the unconstrained weights, its groups with their best values."""
        nearest = self.constraint.project(self.minimum.W)
        if self.refit:
            point = refit(self.objective, nearest, self.tol)
        elif nearest.point is self.minimum.W:
            point = self.minimum
        else:
            point = self.objective.keep(nearest, near=self.minimum)
        return Grouped(point, nearest.labels, step=0.0, done=True)

    def advance(self, state: Grouped) -> Grouped:
        """The same: there is nothing more to do."""
        return state

    def solution(self, state: Grouped) -> Solution:
        """The point itself."""
        return Solution(state.point, state.labels)

    def verify(self, solution: Solution) -> None:
        """Check that it is in the set."""
        require_member(self.objective, self.constraint, solution.point)
