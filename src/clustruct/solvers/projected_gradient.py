"""Projected gradient (algo:ICLHCL) with the backtracking line search of sec:impcomp.

    W_{t+1/2} = W_t - step * (grad Loss + grad R),    W_{t+1} = Z V = k-means(W_{t+1/2}, Q).

A gradient step leaves the set; projecting the result groups the weights anew. The paper keeps the
projected point if the objective fell. With `refit` the new groups first get their best values, so
that every trial is as good as its groups allow: fewer steps, and a lower objective. Constraints
that cannot be refitted get plain steps, until the gradient mapping is small.
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass

import numpy as np

from clustruct._finite import require_finite
from clustruct._typing import Floats, Labels
from clustruct.grouping.constraints import Constraint
from clustruct.objectives.linear import Point
from clustruct.results import Projection
from clustruct.solvers.driver import (
    Grouped,
    Objective,
    Solution,
    gain_of,
    may_refit,
    refit,
    require,
    require_member,
)

ROUNDING = 1e-12
TINY = float(np.finfo(np.float64).tiny)
# Sufficient decrease: without refits a step has to gain this share of what a function without
# curvature would, or it is too long and the next one leads back.
SUFFICIENT = 0.2


@dataclass(eq=False)
class ProjectedGradient:
    """The solver: projected gradient steps, accepted if the objective falls.

    begin: rows to start from, those of feasible weights or not.
    longest: the first step to try, in units of the step that minimises the objective along the
        gradient if there were no constraint and no third derivative.
    refit: whether the groups of a trial get their best values before it is judged. Without it steps
        grow by ``1 / shrink`` after a success, as in the paper; with it every search begins at the
        longest step, since short steps cannot leave the groups they start from. Constraints that
        cannot be refitted do without.
    shrink: factor of the backtracking.
    shortest: the search ends when the step is this fraction of the longest one.
    tol: precision of the refits.
    """

    name = "pg"

    objective: Objective
    constraint: Constraint
    begin: Floats
    _: KW_ONLY
    longest: float = 10.0
    refit: bool = True
    shrink: float = 0.8
    shortest: float = 1e-5
    tol: float = 1e-10

    def __post_init__(self) -> None:
        require(self.name, self.objective, ("keep", "rows", "gradient", "bend", "refit"))
        require(self.name, self.constraint, ("project",))
        self._plain = not may_refit(self.constraint)
        self.refit = self.refit and not self._plain

    def start(self) -> Grouped:
        """The projection of the start."""
        nearest = self.constraint.project(self.begin)
        return Grouped(self._trial(nearest, None), nearest.labels, step=0.0)

    def advance(self, state: Grouped) -> Grouped:
        """The longest step that lowers the objective; done if none does."""
        rows, gradient = self.objective.rows(state.point), self.objective.gradient(state.point)
        unit = self._unit_step(state.point, gradient)
        longest = self.longest * unit
        grown = state.step / self.shrink
        first = longest if self.refit or state.step == 0.0 else grown
        for step, nearest in self._projections(rows, gradient, first, self.shortest * longest):
            if self.refit and same_groups(nearest.labels, state.labels):
                break  # the groups are as good as they can be, and shorter steps keep them
            trial = self._trial(nearest, state.point)
            gain = gain_of(state.objective, trial.value)
            if gain > ROUNDING and self._plain:
                gain = self._plain_gain(state, trial, nearest.point, step, unit)
            if gain > ROUNDING:
                return Grouped(trial, nearest.labels, step=step, gain=gain)
        return Grouped(state.point, state.labels, step=state.step, gain=0.0, done=True)

    def _unit_step(self, point: Point, gradient: Floats) -> float:
        """The best step without constraint and third derivative, ``||g||^2 / g'Hg``."""
        bend = self.objective.bend(point, gradient)
        length = float(np.vdot(gradient, gradient))
        require_finite(length + bend, "the gradient or the curvature along it")
        return length / bend if bend > 0.0 else 0.0

    def _plain_gain(
        self, state: Grouped, trial: Point, rows: Floats, step: float, unit: float
    ) -> float:
        """Squared length of the gradient mapping, relative to the weights; zero for a poor trial.

        Without refits the tolerance is compared with this instead of the decrease, since short
        steps gain little even far from a solution.
        """
        before = self.objective.rows(state.point)
        moved = rows - before
        length = float(np.vdot(moved, moved))
        if state.objective - trial.value < 0.5 * SUFFICIENT / step * length:
            return 0.0
        size = max(float(np.vdot(rows, rows)), float(np.vdot(before, before)), TINY)
        return (unit / step) ** 2 * (length / size)

    def _projections(
        self, rows: Floats, gradient: Floats, step: float, shortest: float
    ) -> Iterator[tuple[float, Projection]]:
        """Projections of steps from the longest down; all at once if that saves passes over X."""
        steps = []
        while step > 0.0 and step >= shortest:
            steps.append(step)
            step *= self.shrink
        projections = ((step, self.constraint.project(rows - step * gradient)) for step in steps)
        foresee = getattr(self.objective, "foresee", None)
        if not self.refit or foresee is None:
            yield from projections
            return
        together = list(projections)
        foresee([nearest for _, nearest in together])
        yield from together

    def solution(self, state: Grouped) -> Solution:
        """The point itself."""
        return Solution(state.point, state.labels)

    def verify(self, solution: Solution) -> None:
        """Check that it is in the set."""
        require_member(self.objective, self.constraint, solution.point)

    def _trial(self, nearest: Projection, near: Point | None) -> Point:
        if self.refit:
            return refit(self.objective, nearest, self.tol)
        return self.objective.keep(nearest, near=near)


def same_groups(a: Labels, b: Labels) -> bool:
    """Whether two labellings have the same groups, in any numbering, and the same zeros."""
    if np.array_equal(a, b):
        return True
    width_a, width_b = int(a.max()) + 2, int(b.max()) + 2
    if width_a * width_b > 4 * a.size:
        return False  # with many small groups the comparison costs more than a trial
    together = np.bincount((a + 1) * width_b + (b + 1), minlength=width_a * width_b)
    pairs = together.reshape(width_a, width_b) > 0
    if pairs[0, 1:].any() or pairs[1:, 0].any():
        return False  # zero in one of them only
    return bool((pairs.sum(axis=0) <= 1).all() and (pairs.sum(axis=1) <= 1).all())
