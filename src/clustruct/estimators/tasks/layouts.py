"""How targets of tasks are read: one a sample, a column a task, or classes as tasks."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_regressor
from sklearn.utils.multiclass import check_classification_targets

from clustruct._typing import Floats
from clustruct.estimators.intake.arguments import class_weights
from clustruct.estimators.tasks.entries import Entries
from clustruct.estimators.tasks.ids import known_codes, names_of_columns, sorted_names
from clustruct.estimators.tasks.intake import Taken, missing_targets, take_targets
from clustruct.objectives.tasks.data import TaskTargets

__all__ = ["Reading", "read_classes", "read_numbers"]

Ids = ArrayLike | Sequence[Hashable]
# Times that each class is shown to scikit-learn, which takes values that all differ for numbers.
SHOWN = 3


@dataclass(frozen=True, eq=False)
class Reading:
    """What was passed to a fit.

    Attributes
    ----------
    entries : Entries
        TaskTargets of positive weight.
    names : ndarray of shape (K,)
        Ids of the tasks.
    layout : {"single", "rows", "columns", "classes"}
        Two classes without tasks, one task a sample, one column a task, or one task a class.
    """

    entries: Entries
    names: NDArray[Any]
    layout: str


def read_numbers(
    estimator: Any, X: ArrayLike, y: ArrayLike, tasks: Ids | None, weights: ArrayLike | None
) -> Reading:
    """Numbers to predict, in any layout.

    Parameters
    ----------
    estimator : TaskClusterRegressor
    X, y, tasks, weights
        As passed to its fit.

    Returns
    -------
    Reading
    """
    return _read(estimator, X, y, tasks, weights)


def read_classes(
    estimator: Any, X: ArrayLike, y: ArrayLike, tasks: Ids | None, weights: ArrayLike | None
) -> Reading:
    """Classes to tell apart, in any layout; sets the classes of the estimator.

    Parameters
    ----------
    estimator : TaskClusterClassifier
    X, y, tasks, weights
        As passed to its fit.

    Returns
    -------
    Reading
        With signs as targets.
    """
    reading = _weigh_classes(estimator.class_weight, _read(estimator, X, y, tasks, weights))
    classes = _classes(reading.entries)
    if classes.size < 2:
        raise ValueError(
            f"y holds one class only, {classes[0]!r}; a classifier needs samples (of positive "
            "weight) of at least two classes."
        )
    if reading.layout != "columns":
        check_classification_targets(np.tile(classes, SHOWN))
    estimator.classes_ = classes
    if classes.size == 2:
        signs = partial(_signs, positive=classes[1])
        return replace(reading, entries=reading.entries.map(signs))
    if reading.layout != "single":
        raise ValueError(
            f"y holds {classes.size} classes, but each task tells two apart. Give two classes, or "
            "leave out tasks for one classifier a class."
        )
    each = replace(reading.entries.map(partial(_each, classes=classes)), n_tasks=classes.size)
    return Reading(each, classes, "classes")


def _read(
    estimator: Any, X: ArrayLike, y: ArrayLike, tasks: Ids | None, weights: ArrayLike | None
) -> Reading:
    """Targets of positive weight, in any layout but that of classes as tasks."""
    if _has_columns(estimator, y, tasks):
        taken = take_targets(estimator, X, y, None, weights, columns=True)
        return _columns(taken, y)
    taken = take_targets(estimator, X, y, tasks, weights, columns=False)
    if tasks is None and is_regressor(estimator):
        raise ValueError(
            f"y is a vector of {taken.design.shape[0]} targets, and tasks=None says of none which "
            "task it belongs to. Give tasks, one id for each sample, or a 2-D y with one column "
            "for each task. For a single task, give y.reshape(-1, 1)."
        )
    return _one_a_sample(taken)


def _has_columns(estimator: Any, y: Any, tasks: Ids | None) -> bool:
    """Whether there is a column for each task."""
    if y is None:
        name = type(estimator).__name__
        raise ValueError(
            f"This {name} estimator requires y to be passed, but the target y is None."
        )
    shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    if tasks is None:
        return len(shape) == 2 and (shape[1] > 1 or is_regressor(estimator))
    if len(shape) == 2 and shape[1] > 1:
        raise ValueError(
            f"y has {shape[1]} columns, each of them a task, and tasks was given as well. Give y "
            "one answer a sample, or leave out tasks."
        )
    return False


def _one_a_sample(taken: Taken) -> Reading:
    design, y, weights = taken.design, taken.targets, taken.weights
    if taken.tasks is None:
        targets = design.map(_of_one_task, y, weights)
        return Reading(Entries(design, targets, 1), np.arange(1), "single")
    names = design.fold(
        lambda ids, w: sorted_names(ids[w > 0.0]),
        taken.tasks,
        weights,
        combine=lambda a, b: sorted_names(np.concatenate([a, b])),
    )
    targets = design.map(partial(_of_own_task, names=names), y, weights, taken.tasks)
    if design.streamed:  # every pass has them in that order
        targets = design.keep(design.map(TaskTargets.by_task, targets))
    return Reading(Entries(design, targets, names.size), names, "rows")


def _of_one_task(y: NDArray[Any], weights: Floats) -> TaskTargets:
    kept = np.flatnonzero(weights)
    return TaskTargets(kept, np.zeros(kept.size, dtype=np.intp), y[kept], weights[kept], y.shape[0])


def _of_own_task(
    y: NDArray[Any], weights: Floats, ids: NDArray[Any], names: NDArray[Any]
) -> TaskTargets:
    kept = np.flatnonzero(weights)
    return TaskTargets(kept, known_codes(ids[kept], names), y[kept], weights[kept], y.shape[0])


def _columns(taken: Taken, y: Any) -> Reading:
    design = taken.design
    names = names_of_columns(y, taken.n_columns)
    targets = design.map(_of_columns, taken.targets, taken.weights)
    if not design.fold(lambda a: a.rows.size, targets):
        raise ValueError("y holds no answer (of positive weight). Give at least one.")
    return Reading(Entries(design, targets, names.size), names, "columns")


def _of_columns(Y: NDArray[Any], weights: Floats) -> TaskTargets:
    tasks, rows = np.nonzero((~missing_targets(Y) & (weights > 0.0)[:, None]).T)
    return TaskTargets(rows, tasks, Y[rows, tasks], weights[rows], Y.shape[0])


# ---- Classes


def _signs(targets: TaskTargets, positive: Any) -> TaskTargets:
    """Signs for two classes."""
    return replace(targets, y=np.where(_plain(targets.y) == positive, 1.0, -1.0))


def _each(targets: TaskTargets, classes: NDArray[Any]) -> TaskTargets:
    """One task a class."""
    count = classes.size
    return TaskTargets(
        np.tile(targets.rows, count),
        np.repeat(np.arange(count), targets.rows.size),
        np.where(classes[:, None] == _plain(targets.y), 1.0, -1.0).reshape(-1),
        np.tile(targets.weights, count),
        targets.height,
    )


def _classes(entries: Entries) -> NDArray[Any]:
    """The classes of targets of positive weight."""
    return entries.design.fold(
        lambda a: np.unique(_plain(a.y)), entries.targets, combine=np.union1d
    )


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
    mine = class_weights(class_weight, classes, totals)

    def weigh(a: TaskTargets) -> TaskTargets:
        weights = a.weights * mine[codes(a)]
        return replace(a, weights=weights).take(np.flatnonzero(weights))

    weighed = entries.map(weigh)
    scale = total / float(fold(lambda a: a.weights.sum(), weighed.targets))
    return replace(reading, entries=weighed.map(lambda a: replace(a, weights=scale * a.weights)))


def _plain(targets: NDArray[Any]) -> NDArray[Any]:
    """Targets as an array of their own kind, where a column of objects held them."""
    return np.array(targets.tolist()) if targets.dtype == object else targets
