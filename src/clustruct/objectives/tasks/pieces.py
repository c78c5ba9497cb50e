"""Losses of tasks whose rows are in pieces: a pass over ``X`` adds up those of each piece.

A piece returns results for those tasks alone that have targets in it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from clustruct._typing import Floats, Labels
from clustruct.design import Design, PickingDesign, Rows
from clustruct.losses import Loss, SquaredLoss
from clustruct.objectives.tasks.data import (
    Models,
    Part,
    TaskData,
    TaskTargets,
    arrange,
    column_of,
)

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Setting:
    """Loss, centres and total weight, which all pieces share.

    means (d,): centre of the columns; zero without intercept.
    center: subtracted from the targets.
    total: weight of all targets.
    """

    loss: Loss
    means: Floats
    center: float
    total: float
    fit_intercept: bool


def part_of(design: PickingDesign, targets: TaskTargets, n_tasks: int, setting: Setting) -> Part:
    """Losses of tasks by the rows of one piece; every task has a target."""
    rows, y, weights, offset = arrange(design, targets, n_tasks)
    column, loss = column_of(setting.loss, y - setting.center, offset)
    target, shares = design.place(column), design.place(weights / setting.total)
    return Part(rows, target, shares, loss, setting.means, setting.fit_intercept)


class Spread(TaskData):
    """Losses of tasks by a pass over pieces.

    design: in pieces of rows.
    targets: those of each piece; every task has one somewhere.
    """

    streamed = True

    def __init__(self, design: Design, targets: Rows, n_tasks: int, setting: Setting) -> None:
        width = setting.means.size + int(setting.fit_intercept)
        super().__init__(n_tasks, width, setting.fit_intercept)
        self._design = design
        self._targets = targets
        self._setting = setting

    def expand(self, W: Floats) -> Models:
        """One pass for values, slopes and Gram matrices."""
        width = self.width

        def found(part: Part | None, tasks: Labels) -> Models:
            if part is None:
                return Models.empty(width)
            return replace(part.expand(W[tasks]), tasks=tasks)

        return self._sweep(found, Models.joined)

    def losses_together(self, stack: Floats) -> Floats:
        """One pass for all of them."""
        shape = stack.shape[:2]

        def found(part: Part | None, tasks: Labels) -> Floats:
            losses = np.zeros(shape)
            if part is not None:
                losses[:, tasks] = part.losses_together(stack[:, tasks])
            return losses

        return self._sweep(found, np.add)

    def dual_losses(self, W: Floats, stretches: Floats) -> Floats:
        """One pass for all of them."""

        def found(part: Part | None, tasks: Labels) -> Floats:
            none = np.zeros_like(stretches)
            return none if part is None else part.dual_losses(W[tasks], stretches)

        return self._sweep(found, np.add)

    def _sweep(self, function: Callable[..., T], combine: Callable[[T, T], T]) -> T:
        """Add up a function of the losses of each piece, None for a piece without targets."""
        setting = self._setting

        def on_piece(design: PickingDesign, targets: TaskTargets) -> T:
            tasks, known = _present(targets)
            if not tasks.size:
                return function(None, tasks)
            return function(part_of(design, known, tasks.size, setting), tasks)

        return self._design.sweep(on_piece, self._targets, combine=combine)


@dataclass(frozen=True, eq=False)
class TaskSums:
    """Weighted sums over the rows of tasks about a centre: all that squared loss needs of them.

    An intercept, the score at the centre, is always included, so that Gram matrices carry the sums
    of columns and weights in their last row.

    Shapes: x_center (d,).
    """

    stack: Models
    x_center: Floats
    y_center: float

    @classmethod
    def of_piece(cls, design: PickingDesign, targets: TaskTargets) -> "TaskSums":
        """Sums about the means of a piece."""
        tasks, known = _present(targets)
        total = float(known.weights.sum())
        zero = np.zeros(design.shape[1])
        if not tasks.size:
            return cls(Models.empty(zero.size + 1), zero, 0.0)
        by_row = np.bincount(known.rows, known.weights / total, known.height)
        means = design.cross(design.place(by_row[:, None]), zero)[:, 0]
        center = float(known.weights @ known.residual) / total
        part = part_of(design, known, tasks.size, Setting(SquaredLoss(), means, center, 1.0, True))
        found = part.expand(np.zeros((part.n_tasks, part.width)))
        return cls(replace(found, tasks=tasks), means, center)

    @property
    def weight(self) -> float:
        """Weight of all targets."""
        return float(self.stack.G[:, -1, -1].sum())

    def joined(self, other: "TaskSums") -> "TaskSums":
        """Sums over both, each about its means, about the means of both."""
        mine, its = self.weight, other.weight
        if not mine or not its:
            return self if mine else other
        share = its / (mine + its)
        x_center = self.x_center + share * (other.x_center - self.x_center)
        y_center = self.y_center + share * (other.y_center - self.y_center)
        stack = self.about(x_center, y_center).stack.joined(other.about(x_center, y_center).stack)
        return TaskSums(stack, x_center, y_center)

    def about(self, x_center: Floats, y_center: float) -> "TaskSums":
        """The same sums about another centre.

        With ``z`` a row less the centre, and a one after it, ``z`` becomes ``z + delta`` and
        targets grow by ``epsilon``.
        """
        delta, epsilon = np.append(self.x_center - x_center, 0.0), self.y_center - y_center
        stack = self.stack
        sums, weights = stack.G[:, -1], stack.G[:, -1, -1]
        values = stack.values + epsilon * stack.h[:, -1] + 0.5 * epsilon**2 * weights
        h = stack.h + epsilon * sums
        h = h + h[:, -1:] * delta
        mixed = sums[:, :, None] * delta
        G = stack.G + mixed + mixed.transpose(0, 2, 1)
        G += weights[:, None, None] * np.outer(delta, delta)
        return TaskSums(Models(stack.tasks, values, G, h), x_center, y_center)

    def centred(self) -> "TaskSums":
        """The same sums about the means of their rows and targets."""
        total = self.weight
        x_means = self.x_center + self.stack.G[:, -1, :-1].sum(axis=0) / total
        y_mean = self.y_center + float(self.stack.h[:, -1].sum()) / total
        return self.about(x_means, y_mean)

    def only(self, tasks: Labels) -> "TaskSums":
        """Sums of some tasks, given in order, numbered from zero."""
        kept = np.isin(self.stack.tasks, tasks)
        return self.added_up(kept, np.searchsorted(tasks, self.stack.tasks))

    def added_up(self, kept: NDArray[np.bool_], tasks: Labels) -> "TaskSums":
        """Sums of the kept tasks under new numbers; those with equal numbers are added up."""
        stack = self.stack
        numbers, places = np.unique(tasks[kept], return_inverse=True)

        def added(values: Floats) -> Floats:
            sums = np.zeros((numbers.size, *values.shape[1:]))
            for place, mine in zip(places.reshape(-1), np.flatnonzero(kept), strict=True):
                sums[place] += values[mine]
            return sums

        sums = Models(numbers, added(stack.values), added(stack.G), added(stack.h))
        return replace(self, stack=sums)


def _present(targets: TaskTargets) -> tuple[Labels, TaskTargets]:
    """Tasks that have targets, and the targets with tasks renumbered."""
    counts = np.bincount(targets.tasks)
    tasks, numbers = np.flatnonzero(counts), np.zeros(counts.size, dtype=np.intp)
    numbers[tasks] = np.arange(tasks.size)
    return tasks, replace(targets, tasks=numbers[targets.tasks])


def source_of(design: Any, targets: Rows, n_tasks: int, setting: Setting) -> TaskData:
    """Losses of tasks, as suits a design."""
    make = Spread if design.streamed else part_of
    return make(design, targets, n_tasks, setting)
