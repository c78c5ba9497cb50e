"""Tasks as objectives take them: targets of positive weight, shares, and few coordinates."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from clustruct._typing import Floats, Indices
from clustruct.design import DenseDesign, Design, Rows
from clustruct.losses import Loss, with_offset
from clustruct.objectives.tasks.data import (
    SquaredData,
    TaskData,
    TaskTargets,
    column_of,
    task_data,
)
from clustruct.objectives.tasks.pieces import Setting, TaskSums, source_of

# Each task has a square matrix, of so many entries all together at most: 3 GB of them.
MOST_ENTRIES = 400_000_000
# Columns of the rows' products that are formed at a time.
BLOCK = 256


@dataclass(frozen=True, eq=False)
class Frame:
    """What weights and prices refer to."""

    means: Floats  # of the columns; zero without intercept
    variances: Floats  # of the columns about their means
    center: float  # subtracted from the targets
    total: float  # weight of all targets
    n_tasks: int


@dataclass(frozen=True, eq=False)
class Entries:
    """Targets of tasks, and the rows of ``X`` that they belong to."""

    design: Design
    targets: Rows  # TaskTargets of positive weight, for each piece of the design
    n_tasks: int  # some of them may have no target, as in a fold
    has_offset: bool = False

    def map(self, function: Any, *rows: Rows) -> "Entries":
        """Other targets of the same rows, made of these and of other rows."""
        return replace(self, targets=self.design.map(function, self.targets, *rows))

    def present(self) -> Indices:
        """Tasks that have a target."""
        count = self.n_tasks
        return np.flatnonzero(
            self.design.fold(lambda a: np.bincount(a.tasks, minlength=count), self.targets)
        )

    def only(self, present: Indices) -> "Entries":
        """The same with these tasks numbered from zero; the others have no target."""
        numbers = np.zeros(self.n_tasks, dtype=np.intp)
        numbers[present] = np.arange(present.size)
        mine = self.map(lambda a: replace(a, tasks=numbers[a.tasks]))
        return replace(mine, n_tasks=present.size)

    def at(self, rows: Indices) -> "Entries":
        """The targets of some of the rows."""
        mask = np.zeros(self.design.shape[0], dtype=bool)
        mask[rows] = True
        return self.map(lambda a, kept: a.take(kept[a.rows]), self.design.attach(mask))

    def prepared(self, loss: Loss, fit_intercept: bool) -> "Prepared":
        """Tasks ready for an objective; every one has a target."""
        if loss.quadratic and self.adds_up:
            check_size(self.n_tasks, self.design.shape[1])
            return self.summed().prepared(loss, fit_intercept)
        frame = self.frame(fit_intercept, loss.centred)
        shifted = self.has_offset and loss.has_identity_link
        loss = loss.with_targets(
            self.design.map(lambda a: (a.y - a.offset if shifted else a.y)[:, None], self.targets),
            self.design.map(lambda a: a.weights / frame.total, self.targets),
            self.design.fold,
        )
        return self.prepared_in(frame, loss, fit_intercept)

    @property
    def adds_up(self) -> bool:
        """Whether squared losses are best told by sums over rows, in one pass."""
        return self.design.streamed and self.design.shape[1] <= self.design.shape[0]

    def summed(self) -> "Summed":
        """Sums over the rows of each task."""
        sums = self.design.sweep(TaskSums.of_piece, self.targets, combine=TaskSums.joined)
        return Summed(sums, self.n_tasks)

    def frame(self, fit_intercept: bool, center_targets: bool) -> Frame:
        """That of all targets; a shift of them may be a matter of the intercept."""
        design, targets = self.design, self.targets
        total = float(design.fold(lambda a: a.weights.sum(), targets))
        by_row = design.map(lambda a: np.bincount(a.rows, a.weights / total, a.height), targets)
        means, variances = design.moments(design.place(by_row))
        if not fit_intercept:
            means, variances = np.zeros_like(means), variances + means**2
        center = 0.0
        if fit_intercept and center_targets:
            center = float(design.fold(lambda a: (a.weights / total) @ a.residual, targets))
        return Frame(means, variances, center, total, self.n_tasks)

    def prepared_in(self, frame: Frame, loss: Loss, fit_intercept: bool) -> "Prepared":
        """Rows of each task with their shares, and few coordinates, in a given frame."""
        self._check_targets(loss)
        design: Any = self.design
        targets, means, rotation = self.targets, frame.means, None
        if design.shape[1] > design.shape[0]:
            rotation = Rotation.of(design)
            targets = design.fold(lambda a: a, targets, combine=TaskTargets.followed_by)
            means = rotation.along(means[None])[0]
            design = DenseDesign(rotation.coordinates)
        check_size(self.n_tasks, design.shape[1])
        setting = Setting(loss, means, frame.center, frame.total, fit_intercept)
        data = task_data(source_of(design, targets, self.n_tasks, setting), loss)
        target = self.design.map(lambda a: column_of(loss, a.y, a.offset)[0], self.targets)
        shares = self.design.map(lambda a: a.weights / frame.total, self.targets)
        mine = with_offset(loss) if self.has_offset else loss
        curvature = mine.start_curvature(target, shares, self.design.fold)
        return Prepared(data, frame, rotation, curvature, loss)

    def _check_targets(self, loss: Loss) -> None:
        """Complain of targets that the loss is not for."""

        def fold(valid: Any, targets: Rows, combine: Any) -> Any:
            def by_row(a: TaskTargets) -> Any:
                good = np.ones(a.height, dtype=bool)
                good[a.rows[~valid(a.y[:, None])]] = False
                return good

            return self.design.fold(by_row, targets, combine=combine)

        loss.check_targets(self.targets, fold)


@dataclass(frozen=True, eq=False)
class Summed:
    """Sums over the targets of each task, for squared losses: entries without rows."""

    sums: TaskSums
    n_tasks: int

    def present(self) -> Indices:
        """Tasks that have a target."""
        return self.sums.stack.tasks

    def only(self, present: Indices) -> "Summed":
        """The same with these tasks numbered from zero; the others have no target."""
        numbered = replace(self.sums.stack, tasks=np.arange(present.size))
        return Summed(replace(self.sums, stack=numbered), present.size)

    def prepared(self, loss: Loss, fit_intercept: bool) -> "Prepared":
        """Tasks ready for an objective; every one has a target."""
        sums = self.sums.centred()
        total, width = sums.weight, sums.x_center.size + int(fit_intercept)
        if not fit_intercept:
            sums = sums.about(np.zeros_like(sums.x_center), 0.0)
        found = sums.stack.scaled(1.0 / total).cut(width)
        variances = np.einsum("tii->i", found.G)[: sums.x_center.size]
        frame = Frame(sums.x_center, variances, sums.y_center, total, self.n_tasks)
        return Prepared(SquaredData(found, fit_intercept), frame, None, 1.0, loss)

    def mean_losses(self, coefs: Floats, intercepts: Floats) -> Floats:
        """The mean loss of each of ``m`` fits, with coefficients ``m x K x d``."""
        sums, tasks = self.sums, self.sums.stack.tasks
        coefs, intercepts = coefs[:, tasks], intercepts[:, tasks]
        offsets = intercepts + coefs @ sums.x_center - sums.y_center
        data = SquaredData(sums.stack, fit_intercept=True)
        stack = np.concatenate([coefs, offsets[:, :, None]], axis=2)
        return data.losses_together(stack).sum(axis=1) / sums.weight


@dataclass(frozen=True, eq=False)
class Prepared:
    """Tasks ready for an objective, and the way to weights of columns and back."""

    data: TaskData
    frame: Frame
    rotation: "Rotation | None"  # where there are fewer rows than columns
    curvature: float  # second derivative of the mean loss by a common shift of all scores
    loss: Loss  # with what it takes from the targets

    def columns(self, W: Floats) -> tuple[Floats, Floats]:
        """Weights of the columns and intercepts, from rows of weights."""
        d = self.data.width - int(self.data.fit_intercept)
        coef = W[:, :d] if self.rotation is None else self.rotation.columns(W[:, :d])
        if not self.data.fit_intercept:
            return coef, np.zeros(W.shape[0])
        return coef, W[:, d] + self.frame.center - coef @ self.frame.means

    def rows(self, coef: Floats, intercept: Floats) -> Floats:
        """Rows of weights, from weights of the columns and intercepts."""
        W = coef if self.rotation is None else self.rotation.along(coef)
        if not self.data.fit_intercept:
            return W
        offsets = intercept - self.frame.center + coef @ self.frame.means
        return np.hstack([W, offsets[:, None]])


@dataclass(frozen=True, eq=False)
class Rotation:
    """Coordinates along the rows of ``X``: ``X = C D'`` with orthonormal ``D``, ``n x r``.

    All prices are the same for all columns, so that weights are combinations of rows; where there
    are fewer rows than columns, there are fewer coordinates, too.
    """

    design: Design
    coordinates: Floats
    combine: Floats

    @classmethod
    def of(cls, design: Design) -> "Rotation":
        """By the eigenvectors of ``X X'``."""
        n = design.shape[0]
        products = np.empty((n, n))
        for first in range(0, n, BLOCK):
            part = design.place(np.eye(n)[:, first : first + BLOCK])
            products[:, first : first + BLOCK] = design.gather(design.scores(design.adjoint(part)))
        values, vectors = np.linalg.eigh(0.5 * (products + products.T))
        kept = values > 1e-12 * max(float(values.max(initial=0.0)), np.finfo(float).tiny)
        roots = np.sqrt(values[kept])
        return cls(design, vectors[:, kept] * roots, vectors[:, kept] / roots)

    def columns(self, W: Floats) -> Floats:
        """Weights of the columns, ``W D'``."""
        return self.design.adjoint(self.design.place(self.combine @ W.T)).T

    def along(self, V: Floats) -> Floats:
        """Coordinates of weights of the columns, ``V D``."""
        return self.design.gather(self.design.scores(V.T)).T @ self.combine


def fits(n_tasks: int, width: int) -> bool:
    """Whether so many matrices fit in memory."""
    return n_tasks * width**2 <= MOST_ENTRIES


def check_size(n_tasks: int, width: int) -> None:
    """Complain of what would not fit in memory."""
    if not fits(n_tasks, width):
        raise ValueError(
            f"{n_tasks} tasks with {width} features each need {n_tasks * width**2:.2g} numbers for "
            "their matrices. Reduce the features first, for example with "
            "sklearn.decomposition.TruncatedSVD or sklearn.feature_selection."
        )
