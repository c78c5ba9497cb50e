"""The greedy solver (the paper's LSK): fit without constraint, group the weights, refit."""

from functools import cached_property

import numpy as np

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

__all__ = ["Greedy"]


class Greedy:
    """Weights without constraint, grouped once.

    minimum: the best point without constraint.
    refit: whether the groups get their best values, or the means of the weights they hold.
        Constraints that cannot be refitted do without.
    tol: precision of the refit.
    """

    name = "greedy"

    def __init__(
        self,
        objective: Objective,
        constraint: Constraint,
        minimum: Point,
        *,
        refit: bool = True,
        tol: float = 1e-10,
    ) -> None:
        require(self.name, objective, ("refit", "keep"))
        require(self.name, constraint, ("project",))
        self._objective = objective
        self._constraint = constraint
        self._minimum = minimum
        self._refit = refit and may_refit(constraint)
        self._tol = tol

    @cached_property
    def _nearest(self) -> Projection:
        return self._constraint.project(self._minimum.W)

    def start(self) -> Grouped:
        """The projection of the unconstrained weights."""
        point = self._objective.keep(self._nearest, near=self._minimum)
        return Grouped(point, self._nearest.labels, 0.0, np.inf, done=not self._refit)

    def advance(self, state: Grouped) -> Grouped:
        """Refit the groups, once."""
        best = refit(self._objective, self._nearest, self._tol)
        point = best if best.value < state.objective else state.point
        return Grouped(point, state.labels, 1.0, 0.0, done=True)

    def solution(self, state: Grouped) -> Solution:
        """The point itself."""
        return Solution(state.point, state.labels)

    def verify(self, solution: Solution) -> None:
        """Check that it is in the set."""
        require_member(self._objective, self._constraint, solution.point)
