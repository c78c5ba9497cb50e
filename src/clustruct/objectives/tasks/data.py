"""The loss of each of many tasks as a function of its weights.

The weights of a task are ``d`` numbers and, where there is an intercept, one more: the score of
the task at the centre of all rows. Columns are centred by a common vector, implicitly, so that
this intercept has little to do with the weights.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np

from clustruct._typing import Floats
from clustruct.arrays import namespace, segment_sums
from clustruct.design import Design, Rows
from clustruct.losses import Loss
from clustruct.objectives.tasks.rows import TaskRows

__all__ = [
    "Expansion",
    "Part",
    "Quadratics",
    "Source",
    "SquaredData",
    "TaskData",
    "task_data",
    "times",
]


def times(A: Floats, x: Floats) -> Floats:
    """``A_t x_t`` for a stack of matrices and as many vectors."""
    return np.matmul(A, x[..., None])[..., 0]


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


@dataclass(frozen=True, eq=False)
class Expansion:
    """The losses of tasks at some weights, and their second-order models there.

    Attributes
    ----------
    values : ndarray of shape (K,)
    model : Quadratics
    """

    values: Floats
    model: Quadratics


class Source(Protocol):
    """Where the losses of tasks come from.

    Attributes
    ----------
    shape : tuple of int
        Tasks, and weights of each.
    streamed : bool
        Whether to read ``X`` costs more than to compute with it.
    """

    shape: tuple[int, int]
    streamed: bool

    def expand(self, W: Floats) -> Expansion:
        """Losses and their models at ``W``, ``K x width``."""
        ...

    def values(self, stack: Floats) -> Floats:
        """Losses, ``m x K``, at several weights, ``m x K x width``."""
        ...

    def duals(self, W: Floats, stretches: Floats) -> Floats:
        """Mean conjugate of the loss at its slopes at ``W``, for each stretch of them."""
        ...


class TaskData(Protocol):
    """The losses of all tasks.

    Attributes
    ----------
    n_tasks, width : int
        Tasks, and weights of each.
    fit_intercept : bool
        Whether the last weight is an intercept.
    quadratic : bool
        Whether models are exact.
    streamed : bool
        Whether losses take a pass over what is not at hand.
    """

    n_tasks: int
    width: int
    fit_intercept: bool
    quadratic: bool
    streamed: bool

    def losses(self, W: Floats) -> Floats:
        """The part of each task in the mean loss, shape (K,)."""
        ...

    def losses_together(self, stack: Floats) -> Floats:
        """The same for several weights, ``m x K``, in one pass."""
        ...

    def models(self, W: Floats) -> Quadratics:
        """Second-order models of the losses at ``W``."""
        ...

    def dual_losses(self, W: Floats, stretches: Floats) -> Floats:
        """Mean conjugate of the loss at its slopes at ``W``, for each stretch of them."""
        ...


def task_data(source: Source, loss: Loss, fit_intercept: bool) -> TaskData:
    """The losses of all tasks.

    Parameters
    ----------
    source : Source
    loss : Loss
        On scores with one column.
    fit_intercept : bool

    Returns
    -------
    TaskData
    """
    if loss.quadratic:
        return SquaredData(source.expand(np.zeros(source.shape)), fit_intercept)
    return CurvedData(source, fit_intercept)


class SquaredData:
    """Squared losses: with their models at zero, no row has to be asked again.

    Parameters
    ----------
    at_zero : Expansion
    fit_intercept : bool
    """

    quadratic = True
    streamed = False

    def __init__(self, at_zero: Expansion, fit_intercept: bool) -> None:
        self.n_tasks, self.width = at_zero.model.h.shape
        self.fit_intercept = fit_intercept
        self._constants = at_zero.values
        self._model = at_zero.model

    def losses(self, W: Floats) -> Floats:
        """``c + 1/2 w'G w - h'w``."""
        model = self._model
        return self._constants + 0.5 * np.einsum("ti,ti->t", W, model.slopes(W) - model.h)

    def losses_together(self, stack: Floats) -> Floats:
        """One after the other."""
        return np.stack([self.losses(W) for W in stack])

    def models(self, W: Floats) -> Quadratics:
        """The losses themselves."""
        return self._model

    def dual_losses(self, W: Floats, stretches: Floats) -> Floats:
        """Sums of ``1/2 (tau r)^2 + tau r y`` over residuals ``r``."""
        along = float(np.vdot(self._model.h, W)) - 2.0 * float(self._constants.sum())
        return stretches**2 * float(self.losses(W).sum()) + stretches * along


class CurvedData:
    """Other losses, whose models are made anew at every point.

    Parameters
    ----------
    source : Source
    fit_intercept : bool
    """

    quadratic = False

    def __init__(self, source: Source, fit_intercept: bool) -> None:
        self.n_tasks, self.width = source.shape
        self.fit_intercept = fit_intercept
        self.streamed = source.streamed
        self._source = source
        self._recent: tuple[Floats, Expansion] | None = None

    def losses(self, W: Floats) -> Floats:
        """By their rows."""
        # Models are likely to be wanted next; where reading takes the time, both are made at once.
        return self._at(W).values if self.streamed else self._source.values(W[None])[0]

    def losses_together(self, stack: Floats) -> Floats:
        """By their rows."""
        return self._source.values(stack)

    def models(self, W: Floats) -> Quadratics:
        """By their rows; those of the last point are kept."""
        return self._at(W).model

    def dual_losses(self, W: Floats, stretches: Floats) -> Floats:
        """By their rows."""
        return self._source.duals(W, stretches)

    def _at(self, W: Floats) -> Expansion:
        recent = self._recent
        if recent is None or recent[0] is not W:
            recent = W, self._source.expand(W)
            self._recent = recent  # the end of one fit is the start of the next
        return recent[1]


class Part:
    """Losses of tasks by their rows, which are at hand.

    Parameters
    ----------
    rows : TaskRows
    target : rows of shape (m,)
        TaskTargets, those of one task after those of the other; where the rows are.
    shares : rows of shape (m,)
        Their weights; those of all parts sum to one.
    loss : Loss
    means : ndarray of shape (d,)
        What the columns are centred by; zero without intercept.
    fit_intercept : bool
    """

    streamed = False

    def __init__(
        self,
        rows: TaskRows,
        target: Rows,
        shares: Rows,
        loss: Loss,
        means: Floats,
        fit_intercept: bool,
    ) -> None:
        self._rows = rows
        self._target = target[:, None]
        self._shares = shares
        self._loss = loss
        self._means = means
        self._fit_intercept = fit_intercept
        self.shape = (rows.bounds.size - 1, means.size + int(fit_intercept))

    def values(self, stack: Floats) -> Floats:
        """One after the other."""
        return np.stack([self._values(self._scores(W)) for W in stack])

    def expand(self, W: Floats) -> Expansion:
        """Scores once, and a Gram matrix for each task."""
        scores = self._scores(W)
        return Expansion(self._values(scores), self._models(W, scores))

    def duals(self, W: Floats, stretches: Floats) -> Floats:
        """Slopes once; infinite, which bounds nothing, where the conjugate is not known."""
        if not getattr(self._loss, "has_conjugate", True):
            none = self._loss.nonnegative & (stretches == 0.0)
            return np.where(none, 0.0, np.inf)
        slopes = self._loss.gradient(self._target, self._scores(W))
        conjugates = (
            self._loss.conjugate(self._target, tau * slopes) for tau in stretches.tolist()
        )
        return np.array([float(self._shares @ mine) for mine in conjugates])

    def _values(self, scores: Rows) -> Floats:
        numbers = self._shares * self._loss.value(self._target, scores)
        return segment_sums(numbers, self._rows.bounds)

    def _models(self, W: Floats, scores: Rows) -> Quadratics:
        xp = namespace(scores)
        bends = self._loss.hessian_product(self._target, scores, xp.ones_like(scores))[:, 0]
        bends = self._shares * bends
        slopes = self._shares * self._loss.gradient(self._target, scores)[:, 0]
        both = xp.stack([bends, slopes], axis=1)
        sums = [segment_sums(both[:, k], self._rows.bounds) for k in range(2)]
        K, width = self.shape
        G, h = np.empty((K, width, width)), np.empty((K, width))
        d = self._means.size
        before: tuple[Design, Rows, Floats] | None = None
        for t, (first, last) in enumerate(pairwise(self._rows.bounds.tolist())):
            design, mine = self._rows.design(t), slice(first, last)
            if (
                before is None
                or before[0] is not design
                or not bool(xp.all(before[1] == bends[mine]))
            ):
                before = design, bends[mine], design.gram(bends[mine], self._means)
            crossed = design.cross(both[mine, :], self._means)
            G[t, :d, :d] = before[2]
            slope = crossed[:, 1]
            if self._fit_intercept:
                G[t, :d, d] = G[t, d, :d] = crossed[:, 0]
                G[t, d, d] = sums[0][t]
                slope = np.append(slope, sums[1][t])
            h[t] = G[t] @ W[t] - slope
        return Quadratics(G, h)

    def _scores(self, W: Floats) -> Rows:
        """Scores of all targets, in one column."""
        d = self._means.size
        offsets = np.zeros(W.shape[0])
        if self._fit_intercept:
            offsets = W[:, d] - W[:, :d] @ self._means
        return self._rows.scores(W[:, :d], offsets)[:, None]
