"""Alternating minimisation over groups of tasks and their weights.

Every task is assigned to the centroid with the least cost, its weights at their best, then weights
and centroids are refitted. When no task changes its group that way, single tasks are moved with the
centroids of both groups at their best: otherwise a task stays with a centroid that it has drawn to
itself. Neither step can raise the objective.
"""

from dataclasses import KW_ONLY, dataclass

import numpy as np

from clustruct._typing import Floats, Labels
from clustruct.objectives.linear import Point
from clustruct.objectives.tasks.objective import TaskObjective, TaskPoint
from clustruct.solvers.driver import Grouped, Solution, gain_of, require

ROUNDING = 1e-12
# Of all moves, the gains of this many with the least costs are computed, and the best are tried.
CANDIDATES, TRIALS = 48, 3


@dataclass(eq=False)
class TaskAlternation:
    """The solver: assign and refit, then move single tasks, and so on.

    labels (K,): groups to start from.
    n_clusters: how many groups there may be.
    begin (K, width): weights to start from, for losses other than squared.
    tol: precision of the fits on the way.
    sharp: precision of the solution.
    """

    name = "am"

    objective: TaskObjective
    labels: Labels
    n_clusters: int
    begin: Floats | None = None
    _: KW_ONLY
    tol: float = 1e-7
    sharp: float = 1e-12

    def __post_init__(self) -> None:
        require(self.name, self.objective, ("refit", "costs", "move_gains"))

    def start(self) -> Grouped:
        """The best weights for the first groups."""
        point = self.objective.refit(self.labels, self.n_clusters, self.tol, self.begin)
        return Grouped(point, point.labels, step=0.0, done=point.V.shape[0] == point.W.shape[0])

    def advance(self, state: Grouped) -> Grouped:
        """Assign every task to its best group; move single tasks if that gains nothing."""
        point = point_of(state.point)
        costs = self.objective.costs(point)
        trial = self._try(point, costs.argmin(axis=1))
        if trial is None:
            trial = self._best_move(point, costs)
        if trial is None:
            return Grouped(point, point.labels, step=0.0, gain=0.0, done=True)
        gain = gain_of(point.value, trial.value)
        return Grouped(trial, trial.labels, gain=gain)

    def solution(self, state: Grouped) -> Solution:
        """The weights at full precision."""
        point = point_of(state.point)
        count = point.V.shape[0]
        if self.objective.quadratic or self.sharp >= self.tol:
            return Solution(point, point.labels)
        sharp = self.objective.refit(point.labels, count, self.sharp, point.W)
        point = sharp if sharp.value < point.value else point
        return Solution(point, point.labels)

    def _try(self, point: TaskPoint, labels: Labels) -> TaskPoint | None:
        """The best weights for other groups, or None if they are no better."""
        if np.array_equal(labels, point.labels):
            return None
        trial = self.objective.refit(labels, self.n_clusters, self.tol, point.W)
        better = trial.value < point.value - ROUNDING * abs(point.value)
        return trial if better else None

    def _best_move(self, point: TaskPoint, costs: Floats) -> TaskPoint | None:
        """The move of one task that gains most, among those that cost little."""
        n_tasks, count = costs.shape
        everyone = np.arange(n_tasks)
        excess = costs - costs[everyone, point.labels][:, None]
        excess[everyone, point.labels] = np.inf
        if count < self.n_clusters:  # a new group, for tasks far from their centroid
            # The cost of a task with a centroid of its own is unknown; try the costliest first.
            excess = np.hstack([excess, -costs[everyone, point.labels][:, None]])
        order = np.argsort(excess, axis=None, kind="stable")[:CANDIDATES]
        order = order[np.isfinite(excess.reshape(-1)[order])]
        if not order.size:
            return None
        tasks, groups = np.divmod(order, excess.shape[1])
        gains = self.objective.move_gains(point, tasks, groups)
        for move in np.argsort(-gains, kind="stable")[:TRIALS]:
            if gains[move] <= 0.0:
                return None
            labels = point.labels.copy()
            labels[tasks[move]] = groups[move]
            trial = self._try(point, labels)
            if trial is not None:
                return trial
        return None


def point_of(point: Point) -> TaskPoint:
    """A point as a `TaskPoint`."""
    assert isinstance(point, TaskPoint)
    return point
