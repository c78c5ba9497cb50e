"""Rows of many tasks, and the loss of each task as a function of its weights.

The weights of a task are ``d`` numbers and, where there is an intercept, one more: the score of
the task at the centre of all rows. Columns are centred by a common vector, implicitly, so that
this intercept has little to do with the weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from clustruct.design import Design
from clustruct.losses import Loss

__all__ = ["OwnRows", "Quadratics", "Rows", "SharedRows", "TaskData", "times"]

Floats = NDArray[np.float64]
Labels = NDArray[np.intp]


def times(A: Floats, x: Floats) -> Floats:
    """``A_t x_t`` for a stack of matrices and as many vectors."""
    return np.matmul(A, x[..., None])[..., 0]


class Rows(Protocol):
    """The rows that tasks answer to, those of one task after those of the other.

    Attributes
    ----------
    bounds : ndarray of intp, shape (K + 1,)
        The answers of task ``t`` are ``bounds[t]`` to ``bounds[t + 1]``.
    """

    bounds: Labels

    def scores(self, W: Floats) -> Floats:
        """``x_i' w_t`` for the answers of each task, in one row; ``W`` is ``K x d``."""
        ...

    def design(self, task: int) -> Design:
        """The rows of one task."""
        ...


class OwnRows:
    """Each task has rows of its own.

    Parameters
    ----------
    designs : sequence of Design
    """

    def __init__(self, designs: Sequence[Design]) -> None:
        self._designs = tuple(designs)
        self.bounds = np.cumsum([0, *(design.shape[0] for design in designs)], dtype=np.intp)

    def scores(self, W: Floats) -> Floats:
        """One task after the other."""
        parts = [d.scores(w[:, None])[:, 0] for d, w in zip(self._designs, W, strict=True)]
        return np.concatenate(parts)

    def design(self, task: int) -> Design:
        """Its own rows."""
        return self._designs[task]


class SharedRows:
    """All tasks answer to the same rows; what is missing has no weight.

    Parameters
    ----------
    design : Design
    n_tasks : int
    """

    def __init__(self, design: Design, n_tasks: int) -> None:
        self._design = design
        self.bounds = design.shape[0] * np.arange(n_tasks + 1)

    def scores(self, W: Floats) -> Floats:
        """All tasks at once."""
        return self._design.scores(W.T).T.reshape(-1)

    def design(self, task: int) -> Design:
        """All rows."""
        return self._design


@dataclass(frozen=True, eq=False)
class Quadratics:
    """``1/2 w'G w - h'w`` for each task, up to a number: its loss, or a model of it.

    Attributes
    ----------
    G : ndarray of shape (K, width, width)
    h : ndarray of shape (K, width)
    """

    G: Floats
    h: Floats

    def slopes(self, W: Floats) -> Floats:
        """``G w - h`` of each task."""
        return times(self.G, W) - self.h


class TaskData:
    """The losses of all tasks.

    Parameters
    ----------
    rows : Rows
    target : ndarray of shape (m,)
        Answers, those of one task after those of the other.
    shares : ndarray of shape (m,)
        Their weights, which sum to one.
    loss : Loss
        On scores with one column.
    means : ndarray of shape (d,)
        What the columns are centred by; zero without intercept.
    fit_intercept : bool
    """

    def __init__(
        self,
        rows: Rows,
        target: Floats,
        shares: Floats,
        loss: Loss,
        means: Floats,
        fit_intercept: bool,
    ) -> None:
        self.rows = rows
        self.target = target[:, None]
        self.shares = shares
        self.loss = loss
        self.means = means
        self.fit_intercept = fit_intercept
        self.n_tasks = rows.bounds.size - 1
        self.width = means.size + int(fit_intercept)
        self._squares: tuple[Quadratics, Floats] | None = None
        self._recent: tuple[Floats, Quadratics] | None = None
        if loss.quadratic:
            origin = np.zeros((self.n_tasks, self.width))
            self._squares = self._models(origin), self._by_task(shares * 0.5 * np.square(target))

    def losses(self, W: Floats) -> Floats:
        """The part of each task in the mean loss, shape (K,)."""
        if self._squares is not None:
            model, constants = self._squares
            return constants + 0.5 * np.einsum("ti,ti->t", W, model.slopes(W) - model.h)
        return self._by_task(self.shares * self.loss.value(self.target, self._scores(W)))

    def models(self, W: Floats) -> Quadratics:
        """Second-order models of the losses at ``W``; the losses themselves if they are squared."""
        if self._squares is not None:
            return self._squares[0]
        recent = self._recent
        if recent is None or recent[0] is not W:
            recent = W, self._models(W)
            self._recent = recent  # the end of one fit is the start of the next
        return recent[1]

    def dual_loss(self, W: Floats, stretch: float) -> float:
        """Mean conjugate of the loss at its slopes at ``W``, stretched."""
        slopes = self.loss.gradient(self.target, self._scores(W))
        return float(self.shares @ self.loss.conjugate(self.target, stretch * slopes))

    def _models(self, W: Floats) -> Quadratics:
        scores = self._scores(W)
        ones = np.ones_like(scores)
        bends = self.shares * self.loss.hessian_product(self.target, scores, ones)[:, 0]
        slopes = self.shares * self.loss.gradient(self.target, scores)[:, 0]
        both = np.stack([bends, slopes], axis=1)
        G = np.empty((self.n_tasks, self.width, self.width))
        h = np.empty((self.n_tasks, self.width))
        d = self.means.size
        before: tuple[Design, Floats, Floats] | None = None
        for t in range(self.n_tasks):
            design = self.rows.design(t)
            mine = slice(self.rows.bounds[t], self.rows.bounds[t + 1])
            if (
                before is None
                or before[0] is not design
                or not np.array_equal(before[1], bends[mine])
            ):
                before = design, bends[mine], design.gram(bends[mine], self.means)
            crossed = design.cross(both[mine], self.means)
            G[t, :d, :d] = before[2]
            slope = crossed[:, 1]
            if self.fit_intercept:
                G[t, :d, d] = G[t, d, :d] = crossed[:, 0]
                G[t, d, d] = bends[mine].sum()
                slope = np.append(slope, slopes[mine].sum())
            h[t] = G[t] @ W[t] - slope
        return Quadratics(G, h)

    def _by_task(self, numbers: Floats) -> Floats:
        """Sums over the answers of each task, of which each has some."""
        sums: Floats = np.add.reduceat(numbers, self.rows.bounds[:-1])
        return sums

    def _scores(self, W: Floats) -> Floats:
        """Scores of all answers, in one column."""
        d = self.means.size
        scores = self.rows.scores(W[:, :d])
        if self.fit_intercept:
            scores = scores + np.repeat(W[:, d] - W[:, :d] @ self.means, np.diff(self.rows.bounds))
        return scores[:, None]
