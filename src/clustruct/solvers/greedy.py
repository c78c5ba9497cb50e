"""Fit without constraint, then group the weights (the paper's LSK), then refit the groups."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from clustruct.grouping.constraints import Constraint
from clustruct.objectives.point import Point
from clustruct.results import Projection
from clustruct.solvers.driver import Solution
from clustruct.solvers.protocols import Objective, may_refit, require, require_member

__all__ = ["Greedy", "Grouped", "refit"]


@dataclass(frozen=True, eq=False)
class Grouped:
    """A feasible point and its groups, as an iterate."""

    point: Point
    labels: NDArray[np.intp]
    step: float
    gain: float
    done: bool

    @property
    def objective(self) -> float:
        """Objective at the point."""
        return self.point.value


class Greedy:
    """Weights without constraint, grouped once.

    Parameters
    ----------
    objective : Objective
    constraint : Constraint
    minimum : Point
        The best point without constraint.
    refit : bool
        Whether the groups get their best values, or the means of the weights they hold.
        Constraints that cannot be refitted do without.
    tol : float
        Precision of the refit.
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
        """The projection of the free weights."""
        point = self._objective.keep(self._nearest, near=self._minimum)
        return Grouped(point, self._nearest.labels, 0.0, np.inf, done=not self._refit)

    def advance(self, state: Grouped) -> Grouped:
        """Refit, once."""
        best = refit(self._objective, self._nearest, self._tol)
        point = best if best.value < state.objective else state.point
        return Grouped(point, state.labels, 1.0, 0.0, done=True)

    def solution(self, state: Grouped) -> Solution:
        """The point itself."""
        return Solution(state.point, state.labels)

    def verify(self, solution: Solution) -> None:
        """Check that it is in the set."""
        require_member(self._objective, self._constraint, solution.point)


def refit(objective: Objective, nearest: Projection, tol: float) -> Point:
    """The best point with the groups of a projection, whose values are the start."""
    return objective.refit(nearest.labels, nearest.centers.shape[0], tol, start=nearest.centers)
