"""Targets of tasks, the rows that they belong to, and the loss of each task.

The weights of a task are ``d`` numbers and, if there is an intercept, one more: the score of
the task at the centre of all rows. Columns are centred by a common vector, implicitly, so that
this intercept has little to do with the weights.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustruct._typing import Floats, Labels
from clustruct.arrays import beside, concatenated, namespace, segment_sums
from clustruct.design import Design, PickingDesign, Rows
from clustruct.kernels import COMPILED
from clustruct.kernels.fits.task_sums import task_scores, task_sums
from clustruct.losses import Loss, join_offset, with_offset

# Tasks with targets for more than this share of all rows, on average, share one matrix.
SHARED = 0.3
# Up to this many columns, the sums of all tasks are made by one call of a kernel: a call for each
# task takes longer than the products themselves. More columns are faster by BLAS.
NARROW = 32
# Largest number of entries of which the kernel gets a copy.
COPIED = 1 << 24


@dataclass(frozen=True, eq=False)
class TaskTargets:
    """Targets, each of one task for one row.

    rows (m,): row of each target.
    tasks (m,): number of its task.
    y (m,): the target itself.
    weights (m,): positive.
    height: number of rows, those without targets included.
    offset (m,): added to the scores, if there is one.
    """

    rows: Labels
    tasks: Labels
    y: NDArray[Any]
    weights: Floats
    height: int
    offset: Floats | None = None

    def take(self, kept: NDArray[Any]) -> "TaskTargets":
        """Some of the targets."""
        return replace(
            self,
            rows=self.rows[kept],
            tasks=self.tasks[kept],
            y=self.y[kept],
            weights=self.weights[kept],
            offset=None if self.offset is None else self.offset[kept],
        )

    @property
    def residual(self) -> Floats:
        """Targets less the offset: what is left to scores that are predictions."""
        return self.y if self.offset is None else self.y - self.offset

    def by_task(self) -> "TaskTargets":
        """The targets sorted by task."""
        return self.take(np.argsort(self.tasks, kind="stable"))

    def followed_by(self, other: "TaskTargets") -> "TaskTargets":
        """These targets, and those of the rows that come next."""
        return TaskTargets(
            np.concatenate([self.rows, self.height + other.rows]),
            np.concatenate([self.tasks, other.tasks]),
            np.concatenate([self.y, other.y]),
            np.concatenate([self.weights, other.weights]),
            self.height + other.height,
            None
            if self.offset is None or other.offset is None
            else np.concatenate([self.offset, other.offset]),
        )


class OwnRows:
    """Rows of tasks that each have their own, sorted by task.

    design: returns the rows of a task.
    bounds (K + 1,): the targets of task ``t`` are ``bounds[t]`` to ``bounds[t + 1]``.
    """

    def __init__(self, pick: Callable[[int], Design], sizes: Sequence[int]) -> None:
        self.design = pick
        self.bounds: Labels = np.cumsum([0, *sizes], dtype=np.intp)

    @classmethod
    def of(cls, designs: Sequence[Design]) -> "OwnRows":
        """Rows of tasks from the design of each."""
        return cls(designs.__getitem__, [design.shape[0] for design in designs])

    def scores(self, W: Floats, offsets: Floats) -> Rows:
        """Scores ``x_i' w_t + b_t`` of all targets, in one vector; ``W`` is ``K x d``."""
        pairs = enumerate(zip(W, offsets.tolist(), strict=True))
        return concatenated([self.design(t).scores(w[:, None])[:, 0] + b for t, (w, b) in pairs])

    def sums(self, bends: Rows, slopes: Rows, means: Floats) -> tuple[Floats, Floats]:
        """``sum_i b_i z_i z_i'`` and ``sum_i (b_i, g_i) z_i`` of rows less the means, by task."""
        xp = namespace(bends)
        both = xp.stack([bends, slopes], axis=1)
        grams, crossed = [], []
        before: tuple[Design, Rows, Floats] | None = None
        for t, (first, last) in enumerate(pairwise(self.bounds.tolist())):
            design, mine = self.design(t), slice(first, last)
            if (
                before is None
                or before[0] is not design
                or not bool(xp.all(before[1] == bends[mine]))
            ):
                before = design, bends[mine], design.gram(bends[mine], means)
            grams.append(before[2])
            crossed.append(design.cross(both[mine, :], means))
        return np.stack(grams), np.stack(crossed)

    def narrow(self, means: Floats, fit_intercept: bool) -> "NarrowRows | None":
        """The rows for the kernel, if they are dense, of the host, and have few columns."""
        if not COMPILED or means.size > NARROW or self.bounds[-1] * means.size > COPIED:
            return None
        if self.design(0).dense_rows() is None:
            return None
        stack, firsts = self._stacked()
        rows = np.concatenate(stack) - means
        ones = np.ones((rows.shape[0], int(fit_intercept)))
        return NarrowRows(np.hstack([rows, ones]), firsts, self.bounds)

    def _stacked(self) -> tuple[list[Any], Labels]:
        """Matrices of rows, to be put one below the other, and the first row of each task."""
        tasks = range(self.bounds.size - 1)
        return [self.design(t).dense_rows() for t in tasks], self.bounds[:-1].copy()


class SharedRows(OwnRows):
    """Rows that all tasks share; missing targets have weight zero."""

    def __init__(self, design: Design, n_tasks: int) -> None:
        super().__init__(lambda task: design, [design.shape[0]] * n_tasks)

    def scores(self, W: Floats, offsets: Floats) -> Rows:
        """Scores of all tasks in one product."""
        scores = self.design(0).scores(W.T)
        scores = (scores + beside(offsets, scores)).T
        return namespace(scores).reshape(scores, (-1,))

    def _stacked(self) -> tuple[list[Any], Labels]:
        """All rows, with which each task begins."""
        return [self.design(0).dense_rows()], np.zeros(self.bounds.size - 1, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class NarrowRows:
    """Rows of few columns, less their means and followed by a one where there is an intercept.

    Shapes: rows (n, width), firsts (K,), bounds (K + 1,); see `task_sums`.
    """

    rows: Floats
    firsts: Labels
    bounds: Labels

    def scores(self, W: Floats) -> Floats:
        """Scores of all targets, in one vector; ``W`` is ``K x width``."""
        scores = np.empty(self.bounds[-1])
        task_scores(self.rows, self.firsts, self.bounds, np.ascontiguousarray(W), scores)
        return scores

    def sums(self, bends: Floats, slopes: Floats) -> tuple[Floats, Floats]:
        """``sum_i b_i z_i z_i'`` and ``sum_i g_i z_i`` of the rows of each task."""
        n_tasks, width = self.firsts.size, self.rows.shape[1]
        grams, crossed = np.empty((n_tasks, width, width)), np.empty((n_tasks, width))
        task_sums(self.rows, self.firsts, self.bounds, bends, slopes, grams, crossed)
        return grams, crossed


def arrange(
    design: PickingDesign, targets: TaskTargets, n_tasks: int
) -> tuple[OwnRows, Floats, Floats, Floats | None]:
    """Rows of each task, with targets, weights and offset sorted likewise; no task is empty."""
    n, offset = design.shape[0], targets.offset
    if targets.rows.size > SHARED * n * n_tasks:
        places = targets.tasks * n + targets.rows

        def spread(values: Floats) -> Floats:
            everywhere = np.zeros(n * n_tasks)
            everywhere[places] = values
            return everywhere

        y, weights = spread(targets.y), spread(targets.weights)
        own = None if offset is None else spread(offset)
        return SharedRows(design, n_tasks), y, weights, own
    members = members_of(targets.tasks, n_tasks)
    order = np.concatenate(members)
    mine = [targets.rows[some] for some in members]
    if design.on_host:
        rows = OwnRows.of([design.rows(index) for index in mine])
    else:  # a copy of all of them would take the memory of ``X`` again
        rows = OwnRows(lambda t: design.rows(mine[t]), [index.size for index in mine])
    own = None if offset is None else offset[order]
    return rows, targets.y[order], targets.weights[order], own


def column_of(loss: Loss, y: Floats, offset: Floats | None) -> tuple[Floats, Loss]:
    """Targets as one column, and their loss; with the offset, if there is one."""
    column = y[:, None]
    if offset is None:
        return column, loss
    joined: Any = join_offset(loss, column, offset[:, None])
    return joined, with_offset(loss)


def members_of(tasks: Labels, n_tasks: int) -> list[Labels]:
    """Indices of the targets of each task."""
    order = np.argsort(tasks, kind="stable")
    ends = np.cumsum(np.bincount(tasks, minlength=n_tasks))
    return np.split(order, ends[:-1])


def times(A: Floats, x: Floats) -> Floats:
    """``A_t x_t`` for a stack of matrices and as many vectors."""
    return np.matmul(A, x[..., None])[..., 0]


@dataclass(frozen=True, eq=False)
class Models:
    """Losses of some tasks at some weights, and second-order models ``1/2 w'G w - h'w`` of them.

    Shapes: values (p,), G (p, width, width), h (p, width).
    tasks (p,): numbers of the tasks, ascending.
    """

    tasks: Labels
    values: Floats
    G: Floats
    h: Floats

    @classmethod
    def empty(cls, width: int) -> "Models":
        """No task."""
        none = np.empty(0, dtype=np.intp)
        return cls(none, np.empty(0), np.empty((0, width, width)), np.empty((0, width)))

    def slopes(self, W: Floats) -> Floats:
        """``G w - h`` of each task."""
        return times(self.G, W) - self.h

    def joined(self, other: "Models") -> "Models":
        """Sums for the tasks of both."""
        tasks = np.union1d(self.tasks, other.tasks)

        def added(mine: Floats, its: Floats) -> Floats:
            if np.array_equal(self.tasks, other.tasks):
                return mine + its
            both = np.zeros((tasks.size, *mine.shape[1:]))
            both[np.searchsorted(tasks, self.tasks)] = mine
            both[np.searchsorted(tasks, other.tasks)] += its
            return both

        pairs = ((self.values, other.values), (self.G, other.G), (self.h, other.h))
        return Models(tasks, *(added(*pair) for pair in pairs))

    def scaled(self, factor: float) -> "Models":
        """Values and models times a number."""
        return Models(self.tasks, factor * self.values, factor * self.G, factor * self.h)

    def cut(self, width: int) -> "Models":
        """The first coordinates alone."""
        return replace(self, G=self.G[:, :width, :width], h=self.h[:, :width])


class TaskData(ABC):
    """The losses of all tasks; their models are computed anew at every point.

    n_tasks, width: tasks, and weights of each.
    fit_intercept: whether the last weight is an intercept.
    quadratic: whether models are exact.
    streamed: whether losses take a pass over ``X``.
    """

    quadratic = False
    streamed = False

    def __init__(self, n_tasks: int, width: int, fit_intercept: bool) -> None:
        self.n_tasks = n_tasks
        self.width = width
        self.fit_intercept = fit_intercept
        self._recent: tuple[Floats, Models] | None = None

    @abstractmethod
    def expand(self, W: Floats) -> Models:
        """Losses and their models at ``W``, ``K x width``."""

    @abstractmethod
    def losses_together(self, stack: Floats) -> Floats:
        """Losses, ``m x K``, at several weights, ``m x K x width``, in one pass."""

    @abstractmethod
    def dual_losses(self, W: Floats, stretches: Floats) -> Floats:
        """Mean conjugate of the loss at its slopes at ``W``, for each stretch of them."""

    def losses(self, W: Floats) -> Floats:
        """The part of each task in the mean loss, shape (K,)."""
        # Models are likely to be needed next: if passes are dear, one computes both.
        return self.models(W).values if self.streamed else self.losses_together(W[None])[0]

    def models(self, W: Floats) -> Models:
        """Second-order models of the losses at ``W``; those of the last point are kept."""
        recent = self._recent
        if recent is None or recent[0] is not W:
            recent = W, self.expand(W)
            self._recent = recent  # the end of one fit is the start of the next
        return recent[1]


def task_data(rows: TaskData, loss: Loss) -> TaskData:
    """The losses of all tasks: by their models if these are exact, else by the rows.

    loss: on scores with one column.
    """
    if not loss.quadratic:
        return rows
    return SquaredData(rows.expand(np.zeros((rows.n_tasks, rows.width))), rows.fit_intercept)


class SquaredData(TaskData):
    """Squared losses: their models at zero are exact, and no row is read again."""

    quadratic = True

    def __init__(self, at_zero: Models, fit_intercept: bool) -> None:
        super().__init__(at_zero.h.shape[0], at_zero.h.shape[1], fit_intercept)
        self._model = at_zero

    def expand(self, W: Floats) -> Models:
        """The losses themselves."""
        return self._model

    models = expand

    def losses(self, W: Floats) -> Floats:
        """``c + 1/2 w'G w - h'w``."""
        model = self._model
        return model.values + 0.5 * np.einsum("ti,ti->t", W, model.slopes(W) - model.h)

    def losses_together(self, stack: Floats) -> Floats:
        """Losses at several weights."""
        return np.stack([self.losses(W) for W in stack])

    def dual_losses(self, W: Floats, stretches: Floats) -> Floats:
        """Sums of ``1/2 (tau r)^2 + tau r y`` over residuals ``r``."""
        along = float(np.vdot(self._model.h, W)) - 2.0 * float(self._model.values.sum())
        return stretches**2 * float(self.losses(W).sum()) + stretches * along


class Part(TaskData):
    """Losses of tasks by rows that are in memory or on the device.

    target (m,) or (m, 2): targets sorted by task, with the offset that the loss takes, placed
        where the rows are.
    shares (m,): their weights; those of all parts sum to one.
    means (d,): centre of the columns; zero without intercept.
    """

    def __init__(
        self,
        rows: OwnRows,
        target: Rows,
        shares: Rows,
        loss: Loss,
        means: Floats,
        fit_intercept: bool,
    ) -> None:
        super().__init__(rows.bounds.size - 1, means.size + int(fit_intercept), fit_intercept)
        self._rows = rows
        self._target = target if target.ndim == 2 else target[:, None]
        self._shares = shares
        self._loss = loss
        self._means = means
        self._narrow = rows.narrow(means, fit_intercept)

    def losses_together(self, stack: Floats) -> Floats:
        """Losses at several weights."""
        return np.stack([self._values(self._scores(W)) for W in stack])

    def dual_losses(self, W: Floats, stretches: Floats) -> Floats:
        """Mean conjugates for several stretches; infinite where the conjugate is not known."""
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

    def expand(self, W: Floats) -> Models:
        """Losses and models: scores once, and a Gram matrix for each task."""
        scores = self._scores(W)
        xp = namespace(scores)
        bends = self._loss.hessian_product(self._target, scores, xp.ones_like(scores))[:, 0]
        bends = self._shares * bends
        slopes = self._shares * self._loss.gradient(self._target, scores)[:, 0]
        G, slope = self._sums(bends, slopes)
        h = times(G, W) - slope
        return Models(np.arange(self.n_tasks), self._values(scores), G, h)

    def _sums(self, bends: Rows, slopes: Rows) -> tuple[Floats, Floats]:
        """Second derivatives and gradients by the weights of each task."""
        if self._narrow is not None:
            return self._narrow.sums(bends, slopes)
        grams, crossed = self._rows.sums(bends, slopes, self._means)
        if not self.fit_intercept:
            return grams, crossed[:, :, 1]
        totals = [segment_sums(numbers, self._rows.bounds) for numbers in (bends, slopes)]
        d = self._means.size
        G = np.empty((self.n_tasks, self.width, self.width))
        G[:, :d, :d] = grams
        G[:, :d, d] = G[:, d, :d] = crossed[:, :, 0]
        G[:, d, d] = totals[0]
        return G, np.column_stack([crossed[:, :, 1], totals[1]])

    def _scores(self, W: Floats) -> Rows:
        """Scores of all targets, in one column."""
        if self._narrow is not None:
            return self._narrow.scores(W)[:, None]
        d = self._means.size
        offsets = np.zeros(W.shape[0])
        if self.fit_intercept:
            offsets = W[:, d] - W[:, :d] @ self._means
        return self._rows.scores(W[:, :d], offsets)[:, None]
