"""Rows of many tasks, and the loss of each task as a function of its weights.

The weights of a task are ``d`` numbers and, where there is an intercept, one more: the score of
the task at the centre of all rows. Columns are centred by a common vector, implicitly, so that
this intercept has little to do with the weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustruct.design import Design
from clustruct.losses import Loss

__all__ = ["Quadratics", "TaskData", "TaskRows"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TaskRows:
    """The rows of one task.

    Attributes
    ----------
    design : Design
        Tasks that answer to the same rows share it.
    target : ndarray of shape (n, 1)
    shares : ndarray of shape (n,)
        Weights of the rows; over all tasks they sum to one.
    """

    design: Design
    target: Floats
    shares: Floats


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


class TaskData:
    """The losses of all tasks.

    Parameters
    ----------
    tasks : sequence of TaskRows
    loss : Loss
        On scores with one column.
    means : ndarray of shape (d,)
        What the columns are centred by; zero without intercept.
    fit_intercept : bool
    """

    def __init__(
        self, tasks: Sequence[TaskRows], loss: Loss, means: Floats, fit_intercept: bool
    ) -> None:
        self.tasks = tuple(tasks)
        self.loss = loss
        self.means = means
        self.fit_intercept = fit_intercept
        self.n_tasks = len(self.tasks)
        self.width = means.size + int(fit_intercept)
        self._squares: tuple[Quadratics, Floats] | None = None
        if loss.quadratic:
            origin = self._models(np.zeros((self.n_tasks, self.width)))
            constants = [0.5 * float(t.shares @ np.square(t.target[:, 0])) for t in self.tasks]
            self._squares = origin, np.array(constants)

    def losses(self, W: Floats) -> Floats:
        """The part of each task in the mean loss, shape (K,)."""
        if self._squares is not None:
            model, constants = self._squares
            image = np.einsum("tij,tj->ti", model.G, W)
            return constants + np.einsum("ti,ti->t", W, 0.5 * image - model.h)
        return np.array(
            [
                float(task.shares @ self.loss.value(task.target, self._scores(task, w)))
                for task, w in zip(self.tasks, W, strict=True)
            ]
        )

    def slopes(self, W: Floats) -> Floats:
        """Derivative of the loss by the weights of each task, shape (K, width)."""
        if self._squares is not None:
            model, _ = self._squares
            return np.einsum("tij,tj->ti", model.G, W) - model.h
        slopes = [
            self._adjoint(task, self._row_slopes(task, w))
            for task, w in zip(self.tasks, W, strict=True)
        ]
        return np.stack(slopes)

    def models(self, W: Floats) -> Quadratics:
        """Second-order models of the losses at ``W``; the losses themselves if they are squared."""
        return self._models(W) if self._squares is None else self._squares[0]

    def dual_losses(self, W: Floats, stretch: float) -> float:
        """Mean conjugate of the loss at the slopes of ``W``, stretched."""
        return sum(
            float(
                task.shares
                @ self.loss.conjugate(
                    task.target,
                    stretch * self.loss.gradient(task.target, self._scores(task, w)),
                )
            )
            for task, w in zip(self.tasks, W, strict=True)
        )

    def _models(self, W: Floats) -> Quadratics:
        G = np.empty((self.n_tasks, self.width, self.width))
        h = np.empty((self.n_tasks, self.width))
        known: dict[int, tuple[Floats, Floats]] = {}
        for t, (task, w) in enumerate(zip(self.tasks, W, strict=True)):
            scores = self._scores(task, w)
            ones = np.ones_like(scores)
            bends = task.shares * self.loss.hessian_product(task.target, scores, ones)[:, 0]
            before = known.get(id(task.design))
            if before is None or not np.array_equal(before[0], bends):
                before = bends, self._gram(task, bends)
                known[id(task.design)] = before
            G[t] = before[1]
            slope = task.shares[:, None] * self.loss.gradient(task.target, scores)
            h[t] = G[t] @ w - self._adjoint(task, slope)
        return Quadratics(G, h)

    def _gram(self, task: TaskRows, bends: Floats) -> Floats:
        d = self.means.size
        gram = np.empty((self.width, self.width))
        gram[:d, :d] = task.design.gram(bends, self.means)
        if self.fit_intercept:
            gram[:d, d] = gram[d, :d] = task.design.cross(bends[:, None], self.means)[:, 0]
            gram[d, d] = bends.sum()
        return gram

    def _scores(self, task: TaskRows, w: Floats) -> Floats:
        d = self.means.size
        scores = task.design.scores(w[:d, None])
        if self.fit_intercept:
            scores = scores + (w[d] - self.means @ w[:d])
        return scores

    def _row_slopes(self, task: TaskRows, w: Floats) -> Floats:
        slope = self.loss.gradient(task.target, self._scores(task, w))
        return task.shares[:, None] * slope

    def _adjoint(self, task: TaskRows, slope: Floats) -> Floats:
        products = task.design.cross(slope, self.means)[:, 0]
        return np.append(products, slope.sum()) if self.fit_intercept else products
