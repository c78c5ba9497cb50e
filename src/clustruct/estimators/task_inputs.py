"""From what users pass to tasks: the two layouts, names of tasks, shares, and few coordinates."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clustruct.design import DenseDesign, LocalDesign, as_design
from clustruct.losses import Loss
from clustruct.objectives.task_data import OwnRows, Rows, SharedRows, TaskData

__all__ = [
    "Entries",
    "Frame",
    "Prepared",
    "as_ids",
    "encode",
    "known_codes",
    "names_of_columns",
    "prepare",
]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# Each task has a square matrix, of so many entries all together at most: 3 GB of them.
MOST_ENTRIES = 400_000_000
# Tasks that answer to more than this share of all rows, on average, keep them in common.
SHARED = 0.3
# Columns of the rows' products that are formed at a time.
BLOCK = 256


@dataclass(frozen=True, eq=False)
class Entries:
    """Answers, each of one task to one row.

    Attributes
    ----------
    X : ndarray or CSR matrix
    rows : ndarray of intp, shape (m,)
        Row of each answer.
    tasks : ndarray of intp, shape (m,)
        Number of its task.
    y : ndarray of shape (m,)
        The answer.
    weights : ndarray of shape (m,)
        Positive.
    n_tasks : int
        Some of them may have no answer, as in a fold.
    """

    X: Any
    rows: Indices
    tasks: Indices
    y: NDArray[Any]
    weights: Floats
    n_tasks: int

    def take(self, kept: NDArray[Any]) -> "Entries":
        """Some of the answers."""
        return replace(
            self,
            rows=self.rows[kept],
            tasks=self.tasks[kept],
            y=self.y[kept],
            weights=self.weights[kept],
        )

    def present(self) -> Indices:
        """Tasks that have an answer."""
        return np.flatnonzero(np.bincount(self.tasks, minlength=self.n_tasks))


@dataclass(frozen=True, eq=False)
class Frame:
    """What weights and prices refer to.

    Attributes
    ----------
    means : ndarray of shape (d,)
        Of the columns; zero without intercept.
    variances : ndarray of shape (d,)
        Of the columns about their means.
    center : float
        What is subtracted from the answers.
    total : float
        Weight of all answers.
    n_tasks : int
    """

    means: Floats
    variances: Floats
    center: float
    total: float
    n_tasks: int

    @classmethod
    def of(cls, entries: Entries, fit_intercept: bool, center_answers: bool) -> "Frame":
        """That of all answers; a shift of them may be a matter of the intercept."""
        total = float(entries.weights.sum())
        shares = entries.weights / total
        design = as_design(entries.X)
        by_row = np.bincount(entries.rows, shares, design.shape[0]).astype(np.float64)
        means, variances = design.moments(by_row)
        if not fit_intercept:
            means, variances = np.zeros_like(means), variances + means**2
        center = float(shares @ entries.y) if fit_intercept and center_answers else 0.0
        return cls(means, variances, center, total, entries.n_tasks)


@dataclass(frozen=True, eq=False)
class Prepared:
    """Tasks ready for an objective, and the way to weights of columns and back.

    Attributes
    ----------
    data : TaskData
    frame : Frame
    rotation : Rotation or None
        Where there are fewer rows than columns.
    """

    data: TaskData
    frame: Frame
    rotation: "Rotation | None"

    def columns(self, W: Floats) -> tuple[Floats, Floats]:
        """Weights of the columns and intercepts, from rows of weights."""
        d = self.data.means.size
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

    design: LocalDesign
    coordinates: Floats
    combine: Floats

    @classmethod
    def of(cls, design: LocalDesign) -> "Rotation":
        """By the eigenvectors of ``X X'``."""
        n = design.shape[0]
        products = np.empty((n, n))
        for first in range(0, n, BLOCK):
            part = np.eye(n)[:, first : first + BLOCK]
            products[:, first : first + BLOCK] = design.scores(design.adjoint(part))
        values, vectors = np.linalg.eigh(0.5 * (products + products.T))
        kept = values > 1e-12 * max(float(values.max(initial=0.0)), np.finfo(float).tiny)
        roots = np.sqrt(values[kept])
        return cls(design, vectors[:, kept] * roots, vectors[:, kept] / roots)

    def columns(self, W: Floats) -> Floats:
        """Weights of the columns, ``W D'``."""
        return self.design.adjoint(self.combine @ W.T).T

    def along(self, V: Floats) -> Floats:
        """Coordinates of weights of the columns, ``V D``."""
        return self.design.scores(V.T).T @ self.combine


def prepare(entries: Entries, loss: Loss, fit_intercept: bool, frame: Frame) -> Prepared:
    """Rows of each task with their shares, and few coordinates.

    Parameters
    ----------
    entries : Entries
        Every task has an answer.
    loss : Loss
    fit_intercept : bool
    frame : Frame

    Returns
    -------
    Prepared
    """
    design = as_design(entries.X)
    n, d = design.shape
    rotation = Rotation.of(design) if d > n else None
    inner: LocalDesign = design if rotation is None else DenseDesign(rotation.coordinates)
    means = frame.means if rotation is None else rotation.along(frame.means[None])[0]
    check_size(entries.n_tasks, inner.shape[1])
    members = members_of(entries.tasks, entries.n_tasks)
    target, shares = entries.y - frame.center, entries.weights / frame.total
    if entries.rows.size > SHARED * n * entries.n_tasks:
        rows: Rows = SharedRows(inner, entries.n_tasks)
        places = entries.tasks * n + entries.rows
        target, shares = (
            _spread(target, places, n * entries.n_tasks),
            _spread(shares, places, n * entries.n_tasks),
        )
    else:
        rows = OwnRows([inner.rows(entries.rows[mine]) for mine in members])
        order = np.concatenate(members)
        target, shares = target[order], shares[order]
    data = TaskData(rows, target, shares, loss, means, fit_intercept)
    return Prepared(data, frame, rotation)


def _spread(values: Floats, places: Indices, size: int) -> Floats:
    """Values at their places, zero elsewhere."""
    spread = np.zeros(size)
    spread[places] = values
    return spread


def members_of(tasks: Indices, n_tasks: int) -> list[Indices]:
    """The answers of each task, in their order."""
    order = np.argsort(tasks, kind="stable")
    ends = np.cumsum(np.bincount(tasks, minlength=n_tasks))
    return np.split(order, ends[:-1])


def check_size(n_tasks: int, width: int) -> None:
    """Complain of what would not fit in memory."""
    if n_tasks * width**2 > MOST_ENTRIES:
        raise ValueError(
            f"{n_tasks} tasks with {width} features each need {n_tasks * width**2:.2g} numbers for "
            "their matrices. Reduce the features first, for example with "
            "sklearn.decomposition.TruncatedSVD or sklearn.feature_selection."
        )


def encode(tasks: ArrayLike | Sequence[Hashable], n_rows: int) -> tuple[NDArray[Any], Indices]:
    """Names of the tasks in an order that does not depend on that of the rows, and codes."""
    ids = as_ids(tasks, n_rows)
    if ids.dtype != object:
        names, codes = np.unique(ids, return_inverse=True)
        return names, codes.reshape(-1).astype(np.intp)
    distinct = set(ids.tolist())
    try:
        ordered = sorted(distinct)
    except TypeError:
        ordered = sorted(distinct, key=lambda name: (type(name).__name__, repr(name)))
    names = np.empty(len(ordered), dtype=object)
    names[:] = ordered
    return names, known_codes(ids, names)


def as_ids(tasks: ArrayLike | Sequence[Hashable], n_rows: int) -> NDArray[Any]:
    """One id a row; any hashable will do."""
    if hasattr(tasks, "to_numpy"):
        tasks = tasks.to_numpy()
    ids = np.asarray(tasks) if isinstance(tasks, np.ndarray) else _as_objects(tasks)
    if ids.shape != (n_rows,):
        raise ValueError(
            f"tasks has shape {ids.shape}, but X has {n_rows} samples. Give one id for each."
        )
    if ids.dtype == object:
        missing = [i for i, name in enumerate(ids.tolist()) if name is None or name != name]
        if missing:
            raise ValueError(
                f"tasks[{missing[0]}] is missing ({ids[missing[0]]!r}). Give every sample its task."
            )
        try:
            set(ids.tolist())
        except TypeError as error:
            raise ValueError(
                f"tasks holds ids that cannot be compared ({error}). Give strings, numbers, tuples "
                "or other hashable ids."
            ) from error
    elif ids.dtype.kind == "f" and np.isnan(ids).any():
        place = int(np.flatnonzero(np.isnan(ids))[0])
        raise ValueError(f"tasks[{place}] is missing (nan). Give every sample its task.")
    return ids


def _as_objects(tasks: Any) -> NDArray[Any]:
    """An array of ids from a list of them, tuples left whole."""
    try:
        listed = list(tasks)
    except TypeError:
        raise ValueError(
            f"tasks must hold one id for each sample, got {tasks!r:.80}. Give a list of ids."
        ) from None
    if all(isinstance(name, str) for name in listed):
        return np.asarray(listed, dtype=str)
    if all(isinstance(name, int | np.integer) and not isinstance(name, bool) for name in listed):
        return np.asarray(listed)
    ids = np.empty(len(listed), dtype=object)
    ids[:] = listed
    return ids


def known_codes(ids: NDArray[Any], names: NDArray[Any]) -> Indices:
    """Number of each id among names, -1 for those that are new."""
    numbers = {name: code for code, name in enumerate(names.tolist())}
    return np.array([numbers.get(name, -1) for name in ids.tolist()], dtype=np.intp)


def names_of_columns(Y: Any, n_columns: int) -> NDArray[Any]:
    """Names of the columns of a data frame, or their numbers."""
    columns = getattr(Y, "columns", None)
    if columns is None or len(columns) != n_columns:
        return np.arange(n_columns)
    return np.asarray(
        list(columns), dtype=None if all(isinstance(c, str) for c in columns) else object
    )
