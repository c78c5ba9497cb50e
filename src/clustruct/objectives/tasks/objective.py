"""Clustered tasks (sec:multitask): tasks in groups, each near the centroid of its group.

    minimise sum_i s_i loss(y_i, x_i' w_t(i)) + 1/K ( alpha/2 sum_t ||w_t||^2
             + within/2 sum_t ||w_t - v_q(t)||^2 + between/2 sum_t ||v_q(t) - v||^2
             + K mean/2 ||v||^2 ),    v = 1/K sum_t v_q(t),    sum_i s_i = 1,

over the weights ``w_t`` of the tasks, the centroids ``v_q`` and the groups ``q(t)``. The rows that
are grouped are those of the paper's ``W~``, the centroid of each task. The weights are at their
best for them throughout: ``W`` is profiled out, as intercepts are elsewhere.
"""

from dataclasses import dataclass, replace

import numpy as np

from clustruct._typing import Floats, Labels
from clustruct.objectives.linear import SINGLE, Point
from clustruct.objectives.tasks.blocks import Profile, Strengths, best_centroids, depths, eliminate
from clustruct.objectives.tasks.data import TaskData, times
from clustruct.results import Projection


@dataclass(frozen=True)
class TaskNewtonSettings:
    """Limits of Newton's method for weights and centroids."""

    max_steps: int = 100
    max_halvings: int = 40
    # Convergence is quadratic: after a step with this relative gain nothing is left to gain.
    negligible: float = 1e-9
    # A step that promises no more than this relative gain is hidden by rounding.
    nothing: float = 1e-13


SETTINGS = TaskNewtonSettings()


@dataclass(frozen=True, eq=False)
class TaskPoint(Point):
    """Weights of the tasks, and the centroids of their groups.

    Shapes: labels (K,).
    W (K, width): a row a task; the last entry is its score at the centre of the rows, where it is
        fitted.
    intercept (K,): that last entry, or zero.
    slope (K, width): derivative of the loss by the weights.
    V (Q, width): the centroids.
    """

    V: Floats
    labels: Labels

    @property
    def rows(self) -> Floats:
        """``W~``: the centroid of each task."""
        return self.V[self.labels]

    @property
    def mean(self) -> Floats:
        """Weights for a task of which nothing is known: the mean of the centroids over tasks."""
        return self.rows.mean(axis=0)

    def in_order(self, order: Labels) -> "TaskPoint":
        """The same groups in another order."""
        return replace(self, V=self.V[order], labels=np.argsort(order)[self.labels])


class TaskObjective:
    """Mean loss plus the penalty of clustered tasks.

    strengths: as in the formula, without the factor ``1/K``.
    """

    def __init__(self, data: TaskData, strengths: Strengths) -> None:
        self.data = data
        self.strengths = strengths.scaled(1.0 / data.n_tasks)
        self.quadratic = data.quadratic
        self.shape = (data.n_tasks, data.width)
        self._profile: Profile | None = None

    @property
    def scale(self) -> float:
        """The mean loss at zero weights, whose rounding all objectives share."""
        size = abs(float(self.data.losses(np.zeros(self.shape)).sum()))
        return size if self.quadratic else SINGLE * size  # rows may be of single precision

    def with_strengths(self, strengths: Strengths) -> "TaskObjective":
        """The same losses with other strengths; the profile of the tasks is kept if it can be."""
        other = TaskObjective(self.data, strengths)
        mine, its = self.strengths, other.strengths
        if np.array_equal(mine.ridge, its.ridge) and np.array_equal(mine.within, its.within):
            other._profile = self._profile
        return other

    # ---- Weights for groups

    def refit(
        self, labels: Labels, n_groups: int, tol: float, start: Floats | None = None
    ) -> TaskPoint:
        """The best weights and centroids for given groups.

        n_groups: groups without tasks are left out.
        tol: Newton's method ends when a step gains less than this fraction of the value.
        start (n_groups, width) or (K, width): centroids, or weights of the tasks, to start from.
        """
        used, labels = np.unique(labels, return_inverse=True)
        labels = labels.reshape(-1).astype(np.intp, copy=False)
        begin = None
        if start is not None and not self.quadratic:
            begin = start if start.shape == self.shape else start[used][labels]
        return self._newton(labels, used.size, None, begin, tol)

    def keep(self, nearest: Projection, near: Point | None = None) -> TaskPoint:
        """Projected centroids as they are, with the best weights for them."""
        begin = None if near is None else near.W
        count = nearest.centers.shape[0]
        rows = nearest.centers[nearest.labels]
        begin = self._shared(rows if begin is None else begin, rows)
        return self._newton(nearest.labels, count, nearest.centers, begin, SETTINGS.negligible)

    def _newton(
        self,
        labels: Labels,
        n_groups: int,
        fixed: Floats | None,
        begin: Floats | None,
        tol: float,
    ) -> TaskPoint:
        """Newton's method for weights and centroids, or for weights at fixed centroids.

        Each step solves the second-order model exactly, tasks first and centroids then. For the
        squared loss the model is the loss.
        """
        W = np.zeros(self.shape) if begin is None else begin
        V = np.stack([W[labels == q].mean(axis=0) for q in range(n_groups)])
        V, W = (V, self._shared(W, V[labels])) if fixed is None else (fixed, W)
        value = np.inf if self.quadratic else self._value(W, V, labels)
        for _ in range(SETTINGS.max_steps):
            profile = self.profile(W)
            aim = fixed
            if aim is None:
                aim = best_centroids(profile, self.strengths, labels, n_groups)
            here, goal = (W, V, value), profile.weights(aim[labels])
            least = SETTINGS.nothing * abs(value)
            if not self.quadratic and self._promise(here, goal, aim, labels) <= least:
                break
            before = value
            W, V, value = self._descend(here, goal, aim, labels)
            if self.quadratic or before - value <= max(tol, SETTINGS.negligible) * abs(value):
                break
        intercept = W[:, -1] if self.data.fit_intercept else np.zeros(W.shape[0])
        return TaskPoint(W, value, intercept, self.data.models(W).slopes(W), V, labels)

    def _promise(
        self, here: tuple[Floats, Floats, float], W: Floats, V: Floats, labels: Labels
    ) -> float:
        """Decrease of the objective that the models of the losses predict for a step."""
        old_W, old_V, _ = here
        model, move = self.data.models(old_W), W - old_W
        losses = np.vdot(move, model.slopes(old_W) + 0.5 * times(model.G, move))
        before = self.strengths.penalties(old_W, old_V, labels)
        return before - self.strengths.penalties(W, V, labels) - float(losses)

    def _descend(
        self, here: tuple[Floats, Floats, float], W: Floats, V: Floats, labels: Labels
    ) -> tuple[Floats, Floats, float]:
        """Backtracking from ``W`` and ``V`` to the first point that is lower; else no move."""
        old_W, old_V, old_value = here
        move_W, move_V = W - old_W, V - old_V
        length = 1.0
        for _ in range(SETTINGS.max_halvings):
            value = self._value(W, V, labels)
            if value < old_value:
                return W, V, value
            length *= 0.5
            W, V = old_W + length * move_W, old_V + length * move_V
        return here

    def _shared(self, W: Floats, rows: Floats) -> Floats:
        """Weights, replaced by centroids in coordinates that a group shares."""
        held = ~np.isfinite(self.strengths.within)
        return np.where(held, rows, W) if held.any() else W

    def _value(self, W: Floats, V: Floats, labels: Labels) -> float:
        return float(self.data.losses(W).sum()) + self.strengths.penalties(W, V, labels)

    def profile(self, W: Floats) -> Profile:
        """Tasks with their best weights for any centroid, by the second-order models at ``W``."""
        if self._profile is not None:
            return self._profile
        profile = eliminate(self.data.models(W), self.strengths)
        if self.quadratic:
            self._profile = profile
        return profile

    # ---- Groups for tasks

    def costs(self, point: TaskPoint) -> Floats:
        """Cost of each task with each centroid, its weights at their best, ``K x Q``.

        ``min_w loss_t(w) + alpha/2 ||w||^2 + within/2 ||w - v_q||^2``, and what the centroid costs
        for one more task. Exact for the squared loss. For others the weights are a Newton step away
        from those of the point, so that no cost is too small.
        """
        profile = self.profile(point.W)
        if self.quadratic:
            constants = self.data.losses(np.zeros(self.shape))
            costs = profile.values(point.V) + constants[:, None]
        else:
            rows = np.broadcast_to(point.V[:, None], (point.V.shape[0], *self.shape))
            weights = np.stack([profile.weights(mine) for mine in rows])
            costs = (self.data.losses_together(weights) + self._prices(weights, rows)).T
        return costs + self._centroid_costs(point.V, point.rows.mean(axis=0))

    def place(self, V: Floats, mean: Floats) -> tuple[Labels, Floats]:
        """The best of given centroids for each task, and its weights there.

        Shapes: V (Q, width).
        mean (width,): that of the centroids of all tasks.

        Returns labels (K,) and weights (K, width).
        """
        costs, weights = np.empty((self.shape[0], V.shape[0])), []
        for q, v in enumerate(V):
            labels = np.full(self.shape[0], 0, dtype=np.intp)
            begin = np.tile(v, (self.shape[0], 1))
            W = self._newton(labels, 1, v[None], begin, SETTINGS.negligible).W
            weights.append(W)
            costs[:, q] = self.data.losses(W) + self._prices(W, begin)
        labels = (costs + self._centroid_costs(V, mean)).argmin(axis=1)
        return labels, np.stack(weights)[labels, np.arange(labels.size)]

    def _centroid_costs(self, V: Floats, mean: Floats) -> Floats:
        """Part of the penalty of a centroid that falls to each of its tasks."""
        drawn = self.strengths.pull * mean
        return 0.5 * np.square(V - drawn) @ self.strengths.between

    def _prices(self, W: Floats, rows: Floats) -> Floats:
        """Ridge and distance from the centroid, of each task."""
        free = np.isfinite(self.strengths.within)
        away = np.square((W - rows)[..., free]) @ self.strengths.within[free]
        return 0.5 * (np.square(W) @ self.strengths.ridge + away)

    def move_gains(self, point: TaskPoint, tasks: Labels, groups: Labels) -> Floats:
        """Decrease of the objective when a task moves to another group, for several moves.

        Both groups get their best centroids, drawn to the same mean as those of the point.
        Group number ``Q`` is a new one.
        """
        profile, between = self.profile(point.W), self.strengths.between
        drawn = between * self.strengths.pull * point.rows.mean(axis=0)
        H = profile.H + np.diag(between)
        g = profile.g + drawn
        sums_H = np.zeros((point.V.shape[0] + 1, *H.shape[1:]))
        sums_g = np.zeros((point.V.shape[0] + 1, g.shape[1]))
        for q in range(point.V.shape[0]):
            sums_H[q] = H[point.labels == q].sum(axis=0)
            sums_g[q] = g[point.labels == q].sum(axis=0)
        now = depths(sums_H, sums_g)
        left = point.labels[tasks]
        fewer = depths(sums_H[left] - H[tasks], sums_g[left] - g[tasks])
        more = depths(sums_H[groups] + H[tasks], sums_g[groups] + g[tasks])
        return fewer + more - now[left] - now[groups]

    # ---- Rows for projected gradient

    def rows(self, point: Point) -> Floats:
        """The rows that are grouped: the centroid of each task."""
        assert isinstance(point, TaskPoint)
        return point.rows

    def gradient(self, point: Point) -> Floats:
        """Gradient by the centroids' rows.

        By the envelope theorem the derivative of a task at its best is that of its loss and ridge.
        """
        assert isinstance(point, TaskPoint)
        strengths, rows = self.strengths, point.rows
        mean = rows.mean(axis=0)
        gradient = point.slope + strengths.ridge * point.W
        gradient += strengths.between * (rows - mean) + strengths.mean * mean
        return gradient

    def bend(self, point: Point, direction: Floats) -> float:
        """Curvature along a direction of the centroids' rows."""
        center = direction.mean(axis=0)
        bend = np.einsum("ti,tij,tj->", direction, self.profile(point.W).H, direction)
        bend += float((np.square(direction - center) @ self.strengths.between).sum())
        return float(bend + self.shape[0] * float(np.square(center) @ self.strengths.mean))
