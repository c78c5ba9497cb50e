"""How answers of tasks are read: one a sample, a column a task, or classes as tasks."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import is_regressor
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, validate_data

from clustruct.estimators.inputs import MATRIX_CHECKS, check_weights, class_weights
from clustruct.estimators.task_inputs import Entries, encode, names_of_columns

__all__ = ["Reading", "missing_answers", "read_classes", "read_numbers"]

Floats = NDArray[np.float64]
Ids = ArrayLike | Sequence[Hashable]


@dataclass(frozen=True, eq=False)
class Reading:
    """What was passed to a fit.

    Attributes
    ----------
    entries : Entries
        Answers of positive weight.
    names : ndarray of shape (K,)
        Ids of the tasks.
    layout : {"single", "rows", "columns", "classes"}
        No tasks, one task a sample, one column a task, or one task a class.
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
    if not _has_columns(estimator, y, tasks):
        matrix, answers = validate_data(estimator, X, y, y_numeric=True, **MATRIX_CHECKS)
        return _one_a_sample(matrix, np.asarray(answers, dtype=np.float64), tasks, weights)
    matrix = _matrix(estimator, X)
    Y = check_array(y, dtype=np.float64, ensure_all_finite="allow-nan", input_name="y")
    check_consistent_length(matrix, Y)
    return _columns(matrix, Y, np.isnan(Y), names_of_columns(y, Y.shape[1]), weights)


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
        With signs as answers.
    """
    if not _has_columns(estimator, y, tasks):
        matrix, answers = validate_data(estimator, X, y, **MATRIX_CHECKS)
        check_classification_targets(answers)
        reading = _one_a_sample(matrix, answers, tasks, weights)
    else:
        matrix = _matrix(estimator, X)
        Y = check_array(y, dtype=None, ensure_all_finite="allow-nan", input_name="y")
        check_consistent_length(matrix, Y)
        names = names_of_columns(y, Y.shape[1])
        reading = _columns(matrix, Y, missing_answers(Y), names, weights)
    reading = _weigh_classes(estimator.class_weight, reading)
    classes = np.unique(_plain(reading.entries.y))
    if classes.size < 2:
        raise ValueError(
            f"y holds one class only, {classes[0]!r}; a classifier needs samples (of positive "
            "weight) of at least two classes."
        )
    estimator.classes_ = classes
    if classes.size > 2 and reading.layout != "single":
        raise ValueError(
            f"y holds {classes.size} classes, but each task tells two apart. Give two classes, or "
            "leave out tasks for one classifier a class."
        )
    return _with_signs(reading, classes)


def missing_answers(Y: NDArray[Any]) -> NDArray[np.bool_]:
    """Where there is no answer: NaN or None."""
    if Y.dtype.kind == "f":
        return np.isnan(Y)
    if Y.dtype != object:
        return np.zeros(Y.shape, dtype=bool)
    flags = [answer is None or answer != answer for answer in Y.reshape(-1).tolist()]
    return np.array(flags, dtype=bool).reshape(Y.shape)


def _has_columns(estimator: Any, y: ArrayLike | None, tasks: Ids | None) -> bool:
    """Whether there is a column for each task."""
    if y is None:
        name = type(estimator).__name__
        raise ValueError(
            f"This {name} estimator requires y to be passed, but the target y is None."
        )
    shape = np.asarray(y).shape
    if tasks is None:
        return len(shape) == 2 and (shape[1] > 1 or is_regressor(estimator))
    if len(shape) == 2 and shape[1] > 1:
        raise ValueError(
            f"y has {shape[1]} columns, each of them a task, and tasks was given as well. Give y "
            "one answer a sample, or leave out tasks."
        )
    return False


def _matrix(estimator: Any, X: ArrayLike) -> Any:
    return validate_data(estimator, X, **MATRIX_CHECKS)


def _one_a_sample(
    matrix: Any, answers: NDArray[Any], tasks: Ids | None, sample_weight: ArrayLike | None
) -> Reading:
    weights = _weights(matrix, sample_weight)
    kept = np.flatnonzero(weights)
    n = matrix.shape[0]
    if tasks is None:
        names, codes = np.arange(1), np.zeros(kept.size, dtype=np.intp)
    else:
        all_names, all_codes = encode(tasks, n)
        used, codes = np.unique(all_codes[kept], return_inverse=True)
        names, codes = all_names[used], codes.reshape(-1).astype(np.intp)
    entries = Entries(_rows(matrix), kept, codes, answers[kept], weights[kept], names.size)
    return Reading(entries, names, "single" if tasks is None else "rows")


def _columns(
    matrix: Any,
    Y: NDArray[Any],
    missing: NDArray[np.bool_],
    names: NDArray[Any],
    sample_weight: ArrayLike | None,
) -> Reading:
    weights = _weights(matrix, sample_weight)
    tasks, rows = np.nonzero((~missing & (weights > 0.0)[:, None]).T)
    entries = Entries(_rows(matrix), rows, tasks, Y[rows, tasks], weights[rows], names.size)
    if not rows.size:
        raise ValueError("y holds no answer (of positive weight). Give at least one.")
    return Reading(entries, names, "columns")


def _with_signs(reading: Reading, classes: NDArray[Any]) -> Reading:
    """Signs for classes; one task a class where there are more than two."""
    entries, answers = reading.entries, _plain(reading.entries.y)
    if classes.size == 2:
        signs = np.where(answers == classes[1], 1.0, -1.0)
        return replace(reading, entries=replace(entries, y=signs))
    count = classes.size
    return Reading(
        Entries(
            entries.X,
            np.tile(entries.rows, count),
            np.repeat(np.arange(count), entries.rows.size),
            np.where(classes[:, None] == answers, 1.0, -1.0).reshape(-1),
            np.tile(entries.weights, count),
            count,
        ),
        classes,
        "classes",
    )


def _weigh_classes(class_weight: Any, reading: Reading) -> Reading:
    """Weights times those of the classes, with the same total."""
    if class_weight is None:
        return reading
    entries = reading.entries
    total = entries.weights.sum()
    classes, codes = np.unique(_plain(entries.y), return_inverse=True)
    totals = np.bincount(codes, entries.weights / total)
    weights = entries.weights * class_weights(class_weight, classes, totals)[codes]
    kept = np.flatnonzero(weights)
    weighed = replace(entries, weights=weights * (total / weights.sum()))
    return replace(reading, entries=weighed.take(kept))


def _plain(answers: NDArray[Any]) -> NDArray[Any]:
    """Answers as an array of their own kind, where a column of objects held them."""
    return np.array(answers.tolist()) if answers.dtype == object else answers


def _weights(matrix: Any, sample_weight: ArrayLike | None) -> Floats:
    weights = check_weights(matrix, sample_weight)
    return np.ones(matrix.shape[0]) if weights is None else weights


def _rows(matrix: Any) -> Any:
    """A matrix of which rows are cheap to take."""
    return matrix.tocsr() if sparse.issparse(matrix) else matrix
