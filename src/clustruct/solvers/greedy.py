"""The greedy solver (the paper's LSK): fit without constraint, group the weights, refit."""

from dataclasses import KW_ONLY, dataclass
from functools import cached_property

from clustruct.grouping.constraints import Constraint
from clustruct.objectives.linear import Point
from clustruct.results import Projection
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

    @cached_property
    def _nearest(self) -> Projection:
        return self.constraint.project(self.minimum.W)

    def start(self) -> Grouped:
        """The projection of the unconstrained weights."""
        point = self.objective.keep(self._nearest, near=self.minimum)
        return Grouped(point, self._nearest.labels, step=0.0, done=not self.refit)

    def advance(self, state: Grouped) -> Grouped:
        """Refit the groups, once."""
        best = refit(self.objective, self._nearest, self.tol)
        point = best if best.value < state.objective else state.point
        return Grouped(point, state.labels, gain=0.0, done=True)

    def solution(self, state: Grouped) -> Solution:
        """The point itself."""
        return Solution(state.point, state.labels)

    def verify(self, solution: Solution) -> None:
        """Check that it is in the set."""
        require_member(self.objective, self.constraint, solution.point)
