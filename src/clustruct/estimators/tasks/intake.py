"""What is passed to a fit of tasks, validated: targets, ids and weights beside the rows of X."""

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import is_regressor
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, validate_data

from clustruct._finite import require_squares
from clustruct._typing import Floats
from clustruct.arrays import to_host
from clustruct.design import Design, Rows, as_design
from clustruct.design.kinds import is_elsewhere, is_partitioned
from clustruct.estimators.intake.arguments import MATRIX_CHECKS, check_weights
from clustruct.estimators.intake.samples import take_design, total_of_rows
from clustruct.estimators.tasks.ids import as_ids

__all__ = ["Taken", "missing_targets", "on_host", "take_targets"]

Ids = ArrayLike | Sequence[Hashable]


class Taken(NamedTuple):
    """Samples of tasks; what belongs to rows is on the host, or in the pieces of the design.

    Attributes
    ----------
    design : Design
    targets : rows of shape (n,) or (n, K)
    weights : rows of shape (n,)
    tasks : rows of shape (n,), or None
        An id each.
    n_columns : int
        Of the targets.
    """

    design: Design
    targets: Rows
    weights: Rows
    tasks: Rows | None
    n_columns: int


def take_targets(
    estimator: Any,
    X: Any,
    y: Any,
    tasks: Ids | None,
    sample_weight: ArrayLike | None,
    *,
    columns: bool,
) -> Taken:
    """Samples, targets, ids and weights of a fit.

    Parameters
    ----------
    estimator : TaskCluster
        Gets to know the features.
    X, y, tasks, sample_weight
        As passed to its fit.
    columns : bool
        Whether ``y`` has a column for each task, and may lack targets.

    Returns
    -------
    Taken
    """
    design = take_design(estimator, X)
    if design is not None and design.streamed:
        return _take_pieces(estimator, design, y, tasks, sample_weight, columns=columns)
    y, tasks, sample_weight = (on_host(given) for given in (y, tasks, sample_weight))
    if design is not None:  # on a device, which holds no targets
        estimator, X = type(estimator)(), np.zeros((design.shape[0], 1))
    matrix, targets = _checked(estimator, X, y, columns=columns)
    weights = check_weights(matrix, sample_weight)
    n = matrix.shape[0]
    return Taken(
        as_design(_rows(matrix)) if design is None else design,
        targets,
        np.ones(n) if weights is None else weights,
        None if tasks is None else as_ids(tasks, n),
        targets.shape[1] if columns else 1,
    )


def _checked(estimator: Any, X: Any, y: Any, *, columns: bool) -> tuple[Any, NDArray[Any]]:
    """Matrix and targets on the host."""
    numeric = is_regressor(estimator)
    if columns:
        matrix = validate_data(estimator, X, **MATRIX_CHECKS)
        dtype = np.float64 if numeric else None
        Y = check_array(y, dtype=dtype, ensure_all_finite="allow-nan", input_name="y")
        check_consistent_length(matrix, Y)
        if numeric:
            require_squares(Y)
        return matrix, Y
    matrix, targets = validate_data(estimator, X, y, y_numeric=numeric, **MATRIX_CHECKS)
    if numeric:
        require_squares(targets)
        return matrix, np.asarray(targets, dtype=np.float64)
    check_classification_targets(targets)
    return matrix, targets


def _take_pieces(
    estimator: Any,
    design: Any,
    y: Any,
    tasks: Ids | None,
    sample_weight: ArrayLike | None,
    *,
    columns: bool,
) -> Taken:
    """The same in the pieces of a design."""
    from clustruct.design.partitioned.collections import block_rows

    numeric = is_regressor(estimator)
    given = block_rows(design, y, "y")
    targets = design.map(_numbers if numeric else _labels, given)
    if not columns:
        targets = design.map(lambda a: a.reshape(a.shape[0]), targets)
    _check_missing(design, targets, allowed=columns)
    if sample_weight is None:
        weights = design.map(lambda a: np.ones(a.shape[0]), targets)
    else:
        weights = design.map(_numbers, block_rows(design, sample_weight, "sample_weight"))
        total_of_rows(design, weights)
    ids = None if tasks is None else _take_ids(design, tasks)
    assert given.shape is not None
    return Taken(design, targets, weights, ids, given.shape[1] if columns else 1)


def _take_ids(design: Any, tasks: Ids) -> Rows:
    """Ids of tasks in the pieces of a design."""
    from clustruct.design.partitioned.collections import block_rows

    if not is_partitioned(tasks):
        return design.place(as_ids(tasks, design.shape[0]))
    ids = block_rows(design, tasks, "tasks")
    if ids.shape is None or len(ids.shape) != 1:
        raise ValueError(f"tasks has shape {ids.shape}. Give one id for each sample.")
    ids = design.map(_labels, ids)
    missing = design.fold(lambda mine: int(missing_targets(mine).sum()), ids)
    if missing:
        raise ValueError(f"tasks is missing {missing} times. Give every sample its task.")
    return ids


def missing_targets(Y: NDArray[Any]) -> NDArray[np.bool_]:
    """Where there is no answer: NaN or None."""
    if Y.dtype.kind == "f":
        return np.isnan(Y)
    if Y.dtype != object:
        return np.zeros(Y.shape, dtype=bool)
    flags = [answer is None or answer != answer for answer in Y.reshape(-1).tolist()]
    return np.array(flags, dtype=bool).reshape(Y.shape)


def _numbers(piece: Any) -> Floats:
    return np.asarray(piece, dtype=np.float64)


def _labels(piece: Any) -> NDArray[Any]:
    return np.asarray(piece)


def _check_missing(design: Any, targets: Rows, *, allowed: bool) -> None:
    """Complain of targets that are not there, or infinite."""

    def bad(y: NDArray[Any]) -> int:
        missing = missing_targets(y)
        infinite = np.isinf(y) if y.dtype.kind == "f" else np.zeros_like(missing)
        return int(np.count_nonzero(infinite if allowed else missing | infinite))

    if count := design.fold(bad, targets):
        kind = "infinity" if allowed else "NaN or infinity"
        raise ValueError(
            f"Input y contains {kind}, {count} times. Replace them, or leave them out."
        )


def on_host(given: Any) -> Any:
    """Arrays of other libraries as NumPy's, collections of Dask computed; all else as it is."""
    if is_partitioned(given):
        return given.compute()
    return to_host(given) if is_elsewhere(given) else given


def _rows(matrix: Any) -> Any:
    """A matrix of which rows are cheap to take."""
    return matrix.tocsr() if sparse.issparse(matrix) else matrix
