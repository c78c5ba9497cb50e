"""Targets of tasks, and the rows that they are given to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from clustruct._typing import Floats, Labels
from clustruct.arrays import beside, concatenated, namespace
from clustruct.design import Design, PickingDesign, Rows

__all__ = ["TaskTargets", "OwnRows", "TaskRows", "SharedRows", "arrange", "members_of"]


# Tasks that answer to more than this share of all rows, on average, keep them in common.
SHARED = 0.3


@dataclass(frozen=True, eq=False)
class TaskTargets:
    """Targets to some rows, each of one task to one row.

    Attributes
    ----------
    rows : ndarray of intp, shape (m,)
        Row of each answer.
    tasks : ndarray of intp, shape (m,)
        Number of its task.
    y : ndarray of shape (m,)
        The answer.
    weights : ndarray of shape (m,)
        Positive.
    height : int
        Number of rows, those without targets included.
    """

    rows: Labels
    tasks: Labels
    y: NDArray[Any]
    weights: Floats
    height: int

    def take(self, kept: NDArray[Any]) -> "TaskTargets":
        """Some of the targets."""
        return replace(
            self,
            rows=self.rows[kept],
            tasks=self.tasks[kept],
            y=self.y[kept],
            weights=self.weights[kept],
        )

    def by_task(self) -> "TaskTargets":
        """The same, those of one task after those of the other."""
        return self.take(np.argsort(self.tasks, kind="stable"))

    def followed_by(self, other: "TaskTargets") -> "TaskTargets":
        """These, and the answers to the rows that come next."""
        return TaskTargets(
            np.concatenate([self.rows, self.height + other.rows]),
            np.concatenate([self.tasks, other.tasks]),
            np.concatenate([self.y, other.y]),
            np.concatenate([self.weights, other.weights]),
            self.height + other.height,
        )


class TaskRows(Protocol):
    """The rows that tasks answer to, those of one task after those of the other.

    Attributes
    ----------
    bounds : ndarray of intp, shape (K + 1,)
        The targets of task ``t`` are ``bounds[t]`` to ``bounds[t + 1]``.
    """

    bounds: Labels

    def scores(self, W: Floats, offsets: Floats) -> Rows:
        """``x_i' w_t + b_t`` for the targets of each task, in one row; ``W`` is ``K x d``."""
        ...

    def design(self, task: int) -> Design:
        """The rows of one task."""
        ...


class OwnRows:
    """Each task has rows of its own.

    Parameters
    ----------
    pick : callable
        Returns the rows of the task of that number.
    sizes : sequence of int
        How many they are.
    """

    def __init__(self, pick: Callable[[int], Design], sizes: Sequence[int]) -> None:
        self.design = pick
        self.bounds: Labels = np.cumsum([0, *sizes], dtype=np.intp)

    @classmethod
    def of(cls, designs: Sequence[Design]) -> "OwnRows":
        """Rows that are all at hand."""
        return cls(designs.__getitem__, [design.shape[0] for design in designs])

    def scores(self, W: Floats, offsets: Floats) -> Rows:
        """One task after the other."""
        pairs = enumerate(zip(W, offsets.tolist(), strict=True))
        return concatenated([self.design(t).scores(w[:, None])[:, 0] + b for t, (w, b) in pairs])


class SharedRows:
    """All tasks answer to the same rows; what is missing has no weight.

    Parameters
    ----------
    design : Design
    n_tasks : int
    """

    def __init__(self, design: Design, n_tasks: int) -> None:
        self._design = design
        self.bounds: Labels = design.shape[0] * np.arange(n_tasks + 1)

    def scores(self, W: Floats, offsets: Floats) -> Rows:
        """All tasks at once."""
        scores = self._design.scores(W.T)
        scores = (scores + beside(offsets, scores)).T
        return namespace(scores).reshape(scores, (-1,))

    def design(self, task: int) -> Design:
        """All rows."""
        return self._design


def arrange(
    design: PickingDesign, targets: TaskTargets, n_tasks: int
) -> tuple[TaskRows, Floats, Floats]:
    """Rows of each task, with targets and weights in their order.

    Parameters
    ----------
    design : PickingDesign
    targets : TaskTargets
        Every task has one.
    n_tasks : int

    Returns
    -------
    rows : TaskRows
    y, weights : ndarray of shape (m,)
    """
    n = design.shape[0]
    if targets.rows.size > SHARED * n * n_tasks:
        places = targets.tasks * n + targets.rows
        spread = np.zeros((2, n * n_tasks))
        spread[0, places], spread[1, places] = targets.y, targets.weights
        return SharedRows(design, n_tasks), spread[0], spread[1]
    members = members_of(targets.tasks, n_tasks)
    order = np.concatenate(members)
    mine = [targets.rows[some] for some in members]
    if design.on_host:
        rows = OwnRows.of([design.rows(index) for index in mine])
    else:  # a copy of all of them would take the memory of ``X`` again
        rows = OwnRows(lambda t: design.rows(mine[t]), [index.size for index in mine])
    return rows, targets.y[order], targets.weights[order]


def members_of(tasks: Labels, n_tasks: int) -> list[Labels]:
    """The targets of each task, in their order."""
    order = np.argsort(tasks, kind="stable")
    ends = np.cumsum(np.bincount(tasks, minlength=n_tasks))
    return np.split(order, ends[:-1])
