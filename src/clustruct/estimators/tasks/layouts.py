"""Targets of tasks: one a sample, a column a task, or classes as tasks; and ids of tasks."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_regressor
from sklearn.utils import check_array

from clustruct._finite import require_squares
from clustruct._typing import Floats, Indices
from clustruct.design import Design, Rows, load
from clustruct.estimators import intake
from clustruct.estimators.offsets import attach_offset, offset_columns
from clustruct.estimators.tasks.entries import Entries
from clustruct.objectives.tasks.data import TaskTargets

Ids = ArrayLike | Sequence[Hashable]
Weights = ArrayLike | None


@dataclass(frozen=True, eq=False)
class Reading:
    """What was passed to a fit: targets of positive weight, and ids of the tasks.

    The layout is "single" (two classes without tasks), "rows" (one task a sample), "columns" (one
    column a task) or "classes" (one task a class).
    """

    entries: Entries
    names: NDArray[Any]
    layout: str


def read(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike,
    tasks: Ids | None,
    sample_weight: Weights,
    offset: Any = None,
) -> Reading:
    """What was passed to a fit, in any layout; a classifier gets to know its classes."""
    intake.require_targets(estimator, y)
    columns, numeric = _has_columns(estimator, y, tasks), is_regressor(estimator)
    design = intake.place_matrix(estimator, X, reset=True).by_rows()
    check = _check_columns if columns else partial(intake.check_targets, multi_output=False)
    targets = design.attach(y, "y", partial(check, estimator))
    n_columns = targets.shape[1] if columns else 1
    targets = design.map(partial(np.asarray, dtype=np.float64 if numeric else None), targets)
    if not columns:
        targets = design.map(lambda a: a.reshape(a.shape[0]), targets)
    intake.require_finite_targets(design, targets, allow_missing=columns)
    weights = design.map(lambda a: np.ones(a.shape[0]), targets)
    if sample_weight is not None:
        weights, _ = intake.check_weights(design, sample_weight)
    given = attach_offset(design, offset)
    own = () if given is None else (given,)
    if columns:
        names = names_of_columns(y, n_columns)
        targets = design.map(_of_columns, targets, weights, *own)
        if not design.fold(lambda a: a.rows.size, targets):
            raise ValueError("y holds no target (of positive weight). Give at least one.")
        reading = Reading(Entries(design, targets, names.size), names, "columns")
    elif tasks is not None:
        reading = _by_ids(design, targets, weights, _take_ids(design, tasks), own)
    elif numeric:
        raise ValueError(
            f"y is a vector of {design.shape[0]} targets, and tasks=None says of none which "
            "task it belongs to. Give tasks, one id for each sample, or a 2-D y with one column "
            "for each task. For a single task, give y.reshape(-1, 1)."
        )
    else:
        codes = design.map(lambda w: np.zeros(w.size, dtype=np.intp), weights)
        targets = design.map(_of_own_task, targets, weights, codes, *own)
        reading = Reading(Entries(design, targets, 1), np.arange(1), "single")
    if given is not None:
        reading = replace(reading, entries=replace(reading.entries, has_offset=True))
    if not numeric:
        reading = _as_signs(estimator, reading)
    if given is not None and reading.layout in ("rows", "single"):
        reading = replace(reading, entries=reading.entries.map(_with_one_offset))
    require_tasks(reading.entries, reading.names)
    return reading


def _check_columns(estimator: Any, y: Any, n_samples: int) -> NDArray[Any]:
    """A column a task, on the host, with NaN where there is no target."""
    numeric = is_regressor(estimator)
    dtype = np.float64 if numeric else None
    y = intake.as_numbers(load(y)) if numeric else load(y)
    Y: NDArray[Any] = check_array(y, dtype=dtype, ensure_all_finite="allow-nan", input_name="y")
    intake.require_as_many(Y, n_samples)
    if numeric:
        require_squares(Y)
    return Y


def _has_columns(estimator: Any, y: Any, tasks: Ids | None) -> bool:
    """Whether there is a column for each task."""
    shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    if tasks is None:
        return len(shape) == 2 and (shape[1] > 1 or is_regressor(estimator))
    if len(shape) == 2 and shape[1] > 1:
        raise ValueError(
            f"y has {shape[1]} columns, each of them a task, and tasks was given as well. Give y "
            "one target a sample, or leave out tasks."
        )
    return False


def _by_ids(design: Design, y: Rows, weights: Rows, ids: Rows, offset: tuple[Rows, ...]) -> Reading:
    """One target a sample, of the task with its id."""
    names = design.fold(
        lambda ids, w: sorted_names(ids[w > 0.0]),
        ids,
        weights,
        combine=lambda a, b: sorted_names(np.concatenate([a, b])),
    )
    codes = design.map(partial(known_codes, names=names), ids)
    targets = design.map(_of_own_task, y, weights, codes, *offset)
    if design.streamed:  # every pass has them in that order
        targets = design.keep(design.map(TaskTargets.by_task, targets))
    return Reading(Entries(design, targets, names.size), names, "rows")


def _of_own_task(
    y: NDArray[Any], weights: Floats, codes: Indices, offset: Floats | None = None
) -> TaskTargets:
    """One target a sample; its offset may have a column for each class."""
    kept = np.flatnonzero(weights)
    own = None if offset is None else offset[kept]
    return TaskTargets(kept, codes[kept], y[kept], weights[kept], y.shape[0], own)


def _of_columns(Y: NDArray[Any], weights: Floats, offset: Floats | None = None) -> TaskTargets:
    """A column a task."""
    tasks, rows = np.nonzero((~intake.is_missing(Y) & (weights > 0.0)[:, None]).T)
    own = None if offset is None else offset_columns(offset, Y.shape[1])[rows, tasks]
    return TaskTargets(rows, tasks, Y[rows, tasks], weights[rows], Y.shape[0], own)


def _with_one_offset(targets: TaskTargets) -> TaskTargets:
    """Targets of one task a sample, whose offset is one number."""
    assert targets.offset is not None
    return replace(targets, offset=offset_columns(targets.offset, 1)[:, 0])


def require_tasks(entries: Entries, names: NDArray[Any]) -> None:
    """Complain of tasks that have no target."""
    missing = np.setdiff1d(np.arange(entries.n_tasks), entries.present())
    if missing.size:
        raise ValueError(
            f"Task {names.tolist()[missing[0]]!r} has no target (of positive weight), as have "
            f"{missing.size - 1} others. Leave such tasks out: predictions for an unknown task are "
            "those of the mean predictor."
        )


# ---- Classes


def _as_signs(estimator: Any, reading: Reading) -> Reading:
    """Classes to tell apart as signs; sets the classes of the estimator."""
    reading = _weigh_classes(estimator.class_weight, reading)
    classes = _classes(reading.entries)
    intake.check_classes(classes, any_type=reading.layout == "columns")
    estimator.classes_ = classes
    if classes.size == 2:

        def signs(a: TaskTargets) -> TaskTargets:
            return replace(a, y=np.where(_plain(a.y) == classes[1], 1.0, -1.0))

        return replace(reading, entries=reading.entries.map(signs))
    if reading.layout != "single":
        raise ValueError(
            f"y holds {classes.size} classes, but each task tells two apart. Give two classes, or "
            "leave out tasks for one classifier a class."
        )
    each = replace(reading.entries.map(partial(_each, classes=classes)), n_tasks=classes.size)
    return Reading(each, classes, "classes")


def _each(targets: TaskTargets, classes: NDArray[Any]) -> TaskTargets:
    """One task a class."""
    count, offset = classes.size, targets.offset
    return TaskTargets(
        np.tile(targets.rows, count),
        np.repeat(np.arange(count), targets.rows.size),
        np.where(classes[:, None] == _plain(targets.y), 1.0, -1.0).reshape(-1),
        np.tile(targets.weights, count),
        targets.height,
        None if offset is None else offset_columns(offset, count).T.reshape(-1),
    )


def _classes(entries: Entries) -> NDArray[Any]:
    """The classes of targets of positive weight."""
    fold = entries.design.fold
    return fold(lambda a: np.unique(_plain(a.y)), entries.targets, combine=np.union1d)


def _weigh_classes(class_weight: Any, reading: Reading) -> Reading:
    """Weights times those of the classes, with the same total."""
    if class_weight is None:
        return reading
    entries = reading.entries
    fold = entries.design.fold
    total = float(fold(lambda a: a.weights.sum(), entries.targets))
    classes = _classes(entries)

    def codes(a: TaskTargets) -> NDArray[np.intp]:
        return np.searchsorted(classes, _plain(a.y))

    totals = fold(lambda a: np.bincount(codes(a), a.weights / total, classes.size), entries.targets)
    mine = intake.class_weights(class_weight, classes, totals)

    def weigh(a: TaskTargets) -> TaskTargets:
        weights = a.weights * mine[codes(a)]
        return replace(a, weights=weights).take(np.flatnonzero(weights))

    weighed = entries.map(weigh)
    scale = total / float(fold(lambda a: a.weights.sum(), weighed.targets))
    return replace(reading, entries=weighed.map(lambda a: replace(a, weights=scale * a.weights)))


def _plain(targets: NDArray[Any]) -> NDArray[Any]:
    """Targets as an array of their own kind, where a column of objects held them."""
    return np.array(targets.tolist()) if targets.dtype == object else targets


# ---- Ids


def _take_ids(design: Design, tasks: Ids) -> Rows:
    """Ids of tasks beside the rows."""
    ids = design.attach(tasks, "tasks", as_ids)
    if len(ids.shape) != 1:
        raise ValueError(f"tasks has shape {ids.shape}. Give one id for each sample.")
    ids = design.map(np.asarray, ids)
    if missing := design.fold(lambda mine: int(intake.is_missing(mine).sum()), ids):
        raise ValueError(f"tasks is missing {missing} times. Give every sample its task.")
    return ids


def sorted_names(ids: NDArray[Any]) -> NDArray[Any]:
    """The distinct ones of ids, in an order that does not depend on that of the rows."""
    if ids.dtype != object:
        return np.unique(ids)
    distinct = set(ids.tolist())
    try:
        ordered = sorted(distinct)
    except TypeError:
        ordered = sorted(distinct, key=lambda name: (type(name).__name__, repr(name)))
    names = np.empty(len(ordered), dtype=object)
    names[:] = ordered
    return names


def as_ids(tasks: Ids, n_rows: int) -> NDArray[Any]:
    """Ids on the host, one a row; any hashable will do."""
    tasks = load(tasks)
    if hasattr(tasks, "to_numpy"):
        tasks = tasks.to_numpy()
    ids = np.asarray(tasks) if isinstance(tasks, np.ndarray) else _as_objects(tasks)
    if ids.shape != (n_rows,):
        raise ValueError(
            f"tasks has shape {ids.shape}, but X has {n_rows} samples. Give one id for each."
        )
    if (missing := np.flatnonzero(intake.is_missing(ids))).size:
        raise ValueError(
            f"tasks[{missing[0]}] is missing ({ids.tolist()[missing[0]]!r}). Give every sample its "
            "task."
        )
    if ids.dtype == object:
        try:
            set(ids.tolist())
        except TypeError as error:
            raise ValueError(
                f"tasks holds ids that cannot be compared ({error}). Give strings, numbers, tuples "
                "or other hashable ids."
            ) from error
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
    if names.size and ids.dtype.kind == names.dtype.kind and ids.dtype.kind in "iufU":
        order = np.argsort(names, kind="stable")
        places = order[np.minimum(np.searchsorted(names, ids, sorter=order), names.size - 1)]
        return np.where(names[places] == ids, places, -1).astype(np.intp)
    numbers = {name: code for code, name in enumerate(names.tolist())}
    return np.array([numbers.get(name, -1) for name in ids.tolist()], dtype=np.intp)


def names_of_columns(Y: Any, n_columns: int) -> NDArray[Any]:
    """Names of the columns of a data frame, or their numbers."""
    columns = list(getattr(Y, "columns", ()))
    if len(columns) != n_columns:
        return np.arange(n_columns)
    return np.asarray(columns, dtype=None if all(isinstance(c, str) for c in columns) else object)
