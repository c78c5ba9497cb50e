"""Projected gradient, algorithm 3 of the paper, with the backtracking of its section 4.3.

A gradient step leads out of the set; projecting it groups the weights anew. The paper keeps the
projected point if the objective fell. We may first give the new groups their best values (`refit`),
which makes every trial as good as its groups allow: a few steps do the work of dozens, and land
lower.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from clustruct.constraints import Constraint
from clustruct.objectives.point import Point
from clustruct.objectives.ray import Ray
from clustruct.results import Projection
from clustruct.solvers.driver import Answer
from clustruct.solvers.greedy import Grouped, refit
from clustruct.solvers.protocols import Foresighted, Objective, require

__all__ = ["ProjectedGradient", "same_groups"]

Floats = NDArray[np.float64]
Labels = NDArray[np.intp]

ROUNDING = 1e-12


class ProjectedGradient:
    """Steps along the gradient, projected, accepted where the objective falls.

    Parameters
    ----------
    objective : Objective
    constraint : Constraint
    start : ndarray
        Rows to start from, those of feasible weights or not.
    longest : float
        The first step to try, in units of the step that minimises the objective along the gradient
        if there were no constraint and no third derivative.
    refit : bool
        Whether the groups of a trial get their best values before it is judged. Without it steps
        grow by ``1 / shrink`` after a success, as in the paper; with it every search
        begins at the longest step, since short steps cannot leave the groups they start from.
    shrink : float
        Factor of the backtracking.
    shortest : float
        The search ends when the step is this fraction of the longest one.
    tol : float
        Precision of the refits.
    """

    name = "pg"

    def __init__(
        self,
        objective: Objective,
        constraint: Constraint,
        start: Floats,
        *,
        longest: float = 10.0,
        refit: bool = True,
        shrink: float = 0.8,
        shortest: float = 1e-5,
        tol: float = 1e-10,
    ) -> None:
        require(self.name, objective, ("keep", "ray", "refit"))
        require(self.name, constraint, ("project",))
        self._objective = objective
        self._constraint = constraint
        self._start = start
        self._longest = longest
        self._refit = refit
        self._shrink = shrink
        self._shortest = shortest
        self._tol = tol

    def start(self) -> Grouped:
        """The projection of the start."""
        nearest = self._constraint.project(self._start)
        return Grouped(self._trial(nearest, None), nearest.labels, 0.0, np.inf, done=False)

    def advance(self, state: Grouped) -> Grouped:
        """The first trial that lowers the objective; none if the shortest step does not."""
        ray = self._objective.ray(state.point)
        longest = self._longest * ray.unit
        grown = state.step / self._shrink
        first = longest if self._refit or state.step == 0.0 else grown
        for step, nearest in self._projections(ray, first, self._shortest * longest):
            if self._refit and same_groups(nearest.labels, state.labels):
                break  # the groups are as good as they can be, and shorter steps keep them
            trial = self._trial(nearest, state.point)
            gain = (state.objective - trial.value) / max(abs(state.objective), np.finfo(float).tiny)
            if gain > ROUNDING:
                return Grouped(trial, nearest.labels, step, gain, done=False)
        return Grouped(state.point, state.labels, state.step, 0.0, done=True)

    def _projections(
        self, ray: Ray, step: float, shortest: float
    ) -> Iterator[tuple[float, Projection]]:
        """Steps from the longest down, projected; all at once where that saves passes."""
        steps = []
        while step > 0.0 and step >= shortest:
            steps.append(step)
            step *= self._shrink
        projections = ((step, self._constraint.project(ray.at(step))) for step in steps)
        if not (self._refit and isinstance(self._objective, Foresighted)):
            yield from projections
            return
        together = list(projections)
        self._objective.foresee([nearest for _, nearest in together])
        yield from together

    def answer(self, state: Grouped) -> Answer:
        """The point itself."""
        return Answer(state.point, state.labels)

    def _trial(self, nearest: Projection, near: Point | None) -> Point:
        if self._refit:
            return refit(self._objective, nearest, self._tol)
        return self._objective.keep(nearest, near=near)


def same_groups(a: Labels, b: Labels) -> bool:
    """Whether two labellings stand for the same groups, whatever their numbers, and zeros."""
    if np.array_equal(a, b):
        return True
    width_a, width_b = int(a.max()) + 2, int(b.max()) + 2
    if width_a * width_b > 4 * a.size:
        return False  # many small groups: to compare them costs more than a trial
    together = np.bincount((a + 1) * width_b + (b + 1), minlength=width_a * width_b)
    pairs = together.reshape(width_a, width_b) > 0
    if pairs[0, 1:].any() or pairs[1:, 0].any():
        return False  # zero in one of them only
    return bool((pairs.sum(axis=0) <= 1).all() and (pairs.sum(axis=1) <= 1).all())
