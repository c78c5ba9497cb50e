"""Answers of tasks, and the rows that they are given to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from clustruct._typing import Floats, Labels
from clustruct.arrays import beside, concatenated, namespace
from clustruct.design import Design, PickingDesign
from clustruct.design import Rows as Numbers

__all__ = ["Answers", "OwnRows", "Rows", "SharedRows", "arrange", "members_of"]


# Tasks that answer to more than this share of all rows, on average, keep them in common.
SHARED = 0.3


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers to some rows, each of one task to one row.

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
        Number of rows, those without answers included.
    """

    rows: Labels
    tasks: Labels
    y: NDArray[Any]
    weights: Floats
    height: int

    def take(self, kept: NDArray[Any]) -> "Answers":
        """Some of the answers."""
        return replace(
            self,
            rows=self.rows[kept],
            tasks=self.tasks[kept],
            y=self.y[kept],
            weights=self.weights[kept],
        )

    def by_task(self) -> "Answers":
        """The same, those of one task after those of the other."""
        return self.take(np.argsort(self.tasks, kind="stable"))

    def followed_by(self, other: "Answers") -> "Answers":
        """These, and the answers to the rows that come next."""
        return Answers(
            np.concatenate([self.rows, self.height + other.rows]),
            np.concatenate([self.tasks, other.tasks]),
            np.concatenate([self.y, other.y]),
            np.concatenate([self.weights, other.weights]),
            self.height + other.height,
        )


class Rows(Protocol):
    """The rows that tasks answer to, those of one task after those of the other.

    Attributes
    ----------
    bounds : ndarray of intp, shape (K + 1,)
        The answers of task ``t`` are ``bounds[t]`` to ``bounds[t + 1]``.
    """

    bounds: Labels

    def scores(self, W: Floats, offsets: Floats) -> Numbers:
        """``x_i' w_t + b_t`` for the answers of each task, in one row; ``W`` is ``K x d``."""
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

    def scores(self, W: Floats, offsets: Floats) -> Numbers:
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

    def scores(self, W: Floats, offsets: Floats) -> Numbers:
        """All tasks at once."""
        scores = self._design.scores(W.T)
        scores = (scores + beside(offsets, scores)).T
        return namespace(scores).reshape(scores, (-1,))

    def design(self, task: int) -> Design:
        """All rows."""
        return self._design


def arrange(design: PickingDesign, answers: Answers, n_tasks: int) -> tuple[Rows, Floats, Floats]:
    """Rows of each task, with answers and weights in their order.

    Parameters
    ----------
    design : PickingDesign
    answers : Answers
        Every task has one.
    n_tasks : int

    Returns
    -------
    rows : Rows
    y, weights : ndarray of shape (m,)
    """
    n = design.shape[0]
    if answers.rows.size > SHARED * n * n_tasks:
        places = answers.tasks * n + answers.rows
        spread = np.zeros((2, n * n_tasks))
        spread[0, places], spread[1, places] = answers.y, answers.weights
        return SharedRows(design, n_tasks), spread[0], spread[1]
    members = members_of(answers.tasks, n_tasks)
    order = np.concatenate(members)
    mine = [answers.rows[some] for some in members]
    if design.on_host:
        rows = OwnRows.of([design.rows(index) for index in mine])
    else:  # a copy of all of them would take the memory of ``X`` again
        rows = OwnRows(lambda t: design.rows(mine[t]), [index.size for index in mine])
    return rows, answers.y[order], answers.weights[order]


def members_of(tasks: Labels, n_tasks: int) -> list[Labels]:
    """The answers of each task, in their order."""
    order = np.argsort(tasks, kind="stable")
    ends = np.cumsum(np.bincount(tasks, minlength=n_tasks))
    return np.split(order, ends[:-1])
