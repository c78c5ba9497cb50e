"""Samples as solvers take them: a design, and what belongs to its rows, wherever they live."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from clustruct._typing import Floats
from clustruct.arrays import beside, namespace, to_host
from clustruct.design import Design, Rows, any_design, as_design
from clustruct.design.kinds import is_elsewhere, is_large_map, is_partitioned, is_sparse_tensor
from clustruct.estimators.intake.arguments import MATRIX_CHECKS, check_weights, weigh_rows
from clustruct.solvers.experts.problem import SUBSET, draw_rows

__all__ = [
    "Intake",
    "draw_samples",
    "loaded",
    "map_rows",
    "map_samples",
    "mean_of",
    "stays_elsewhere",
    "take_design",
    "take_matrix",
    "take_samples",
    "total_of_rows",
]


MISSING_Y = "{} requires y to be passed, but the target y is None."


class Intake(NamedTuple):
    """Samples to fit.

    Attributes
    ----------
    design : Design
    targets : rows of shape (n,) or (n, K)
    shares : rows of shape (n,)
        Weights, which sum to one.
    total : float
        What the weights summed to before.
    """

    design: Design
    targets: Rows
    shares: Rows
    total: float = 1.0


def stays_elsewhere(X: Any) -> bool:
    """Whether samples are fitted where they are: not arrays of the host that fit into memory."""
    return is_partitioned(X) or is_elsewhere(X) or is_large_map(X)


def take_samples(model: Any, X: Any, y: Any, sample_weight: ArrayLike | None) -> Intake:
    """Samples, targets and weights of a fit, validated."""
    if is_large_map(X):
        from clustruct.design.partitioned.collections import in_chunks

        X = in_chunks(X)
    if is_partitioned(X):
        return _take_pieces(model, X, y, sample_weight)
    if is_elsewhere(X):
        return _take_array(model, X, y, sample_weight)
    matrix, targets = model._check_data(X, y)
    matrix, targets, shares = weigh_rows(matrix, targets, sample_weight)
    return Intake(as_design(matrix), targets, shares)


def draw_samples(samples: Intake, seed: int) -> tuple[Any, NDArray[Any], Floats]:
    """Some samples on the host, drawn by weight: matrix, targets and how often each was drawn.

    All of them, with their own weights, where they are few.
    """
    design = samples.design
    shares = design.place(samples.shares)
    if few := design.shape[0] <= SUBSET:
        index = np.arange(design.shape[0])
    else:
        index, counts = draw_rows(design, shares, seed)
    here = isinstance(samples.targets, np.ndarray)
    matrix, (own, *there) = design.fetch(index, shares, *(() if here else (samples.targets,)))
    weights = own * samples.total if few else counts
    return matrix, samples.targets[index] if here else there[0], weights


def take_design(model: Any, X: Any) -> Design | None:
    """The design of a matrix that is in pieces or on a device, None for one of the host."""
    if is_large_map(X):
        from clustruct.design.partitioned.collections import in_chunks

        X = in_chunks(X)
    if is_partitioned(X):
        from clustruct.design.partitioned.collections import block_design

        _as_array(model, X, reset=True)
        return block_design(X)
    return any_design(_validate_array(model, X, reset=True)) if is_elsewhere(X) else None


def take_matrix(model: Any, X: ArrayLike) -> Any:
    """A matrix to predict from, validated; pieces are validated when they are computed."""
    if is_partitioned(X):
        return _as_array(model, X, reset=False)
    if is_elsewhere(X):
        return _validate_array(model, X, reset=False)
    return validate_data(model, X, reset=False, **MATRIX_CHECKS)


def map_rows(
    function: Any,
    X: Any,
    width: int | tuple[int, ...] | None,
    dtype: Any = np.float64,
    rows: Any = None,
) -> Any:
    """A function of rows, for a matrix that `take_matrix` returned; later, where that is later.

    Parameters
    ----------
    function : callable
        From a matrix of the host, and from rows where there are any, to an array with as many rows.
    X : matrix
    width : int, tuple of int or None
        Columns of what the function returns, or its axes after the first; None for a vector.
    dtype : dtype
        Of what it returns.
    rows : array or collection of Dask, default=None
        What belongs to the rows of the matrix, such as ids.

    Returns
    -------
    array
    """
    if not is_partitioned(X):
        return function(X) if rows is None else function(X, rows)
    axes = () if width is None else (width,) if isinstance(width, int) else width
    # Sparse blocks have no meta that map_blocks could call the function with.
    kinds: dict[str, Any] = {"dtype": dtype, "meta": np.empty((0,) * (1 + len(axes)), dtype=dtype)}
    if rows is not None:
        return _map_both(function, X, rows, "tasks", axes, kinds)
    if width is None:
        return X.map_blocks(partial(_checked, function), drop_axis=1, **kinds)
    return X.map_blocks(
        partial(_checked, function),
        chunks=(X.chunks[0], *((axis,) for axis in axes)),
        new_axis=list(range(2, 1 + len(axes))) or None,
        **kinds,
    )


def map_samples(model: Any, function: Any, X: Any, y: Any, dtype: Any = np.float64) -> Any:
    """A function of samples and their targets, one number for each; later, where that is later.

    Parameters
    ----------
    model : estimator
        Fitted.
    function : callable
        From a matrix and an array of answers to a vector.
    X : matrix
    y : array
    dtype : dtype
        Of what the function returns.

    Returns
    -------
    array
    """
    if is_elsewhere(X):
        matrix = _validate_array(model, X, reset=False)
        return function(matrix, _targets_of(model, int(matrix.shape[0]), y))
    if not is_partitioned(X):
        return function(*model._check_data(X, y, reset=False))
    kinds: dict[str, Any] = {"dtype": dtype, "meta": np.empty(0, dtype=dtype)}
    return _map_both(function, _as_array(model, X, reset=False), y, "y", (), kinds)


def mean_of(values: Any, sample_weight: Any) -> float:
    """Weighted mean of a number for each sample, such as `map_samples` returns."""
    if is_partitioned(values):
        if sample_weight is None:
            return float(values.mean())
        from clustruct.design.partitioned.collections import beside_rows

        _, weights = beside_rows(values, sample_weight, "sample_weight")
        return float((weights * values).sum() / weights.sum())
    n = int(values.shape[0])
    weights = check_weights(
        np.zeros((n, 1)), None if sample_weight is None else to_host(sample_weight)
    )
    shares = np.full(n, 1.0 / n) if weights is None else weights / weights.sum()
    return float(beside(shares, values) @ values)


def loaded(x: Any) -> Any:
    """A collection of Dask in memory; anything else as it is."""
    return x.compute() if is_partitioned(x) else x


def _map_both(
    function: Any, X: Any, rows: Any, name: str, axes: tuple[int, ...], kinds: dict[str, Any]
) -> Any:
    """A function of pieces of a matrix, and of what belongs to their rows."""
    import dask.array as da

    from clustruct.design.partitioned.collections import beside_rows

    X, rows = beside_rows(X, rows, name)
    new_axes = {f"new {place}": width for place, width in enumerate(axes)}
    places = (("i", *new_axes), X, ("i", "j"), rows, ("i", "l")[: rows.ndim])
    more = {"new_axes": new_axes, "concatenate": True, "align_arrays": False}
    return da.blockwise(partial(_checked, function), *places, **more, **kinds)


def _checked(function: Any, block: Any, *rows: Any) -> Any:
    """The function of a piece that has been checked as a whole matrix would be."""
    return function(check_array(block, **MATRIX_CHECKS), *rows)


def _take_array(model: Any, X: Any, y: Any, sample_weight: Any) -> Intake:
    """The same for arrays of other libraries: ``X`` stays where it is."""
    matrix = _validate_array(model, X, reset=True)
    n = int(matrix.shape[0])
    targets = _targets_of(model, n, y)
    weights = None if sample_weight is None else to_host(sample_weight)
    weights = check_weights(np.zeros((n, 1)), weights)
    total = float(n) if weights is None else float(weights.sum())
    shares = np.full(n, 1.0 / n) if weights is None else weights / total
    return Intake(any_design(matrix), targets, shares, total)


def _targets_of(model: Any, n: int, y: Any) -> NDArray[Any]:
    """Validated targets of so many samples, on the host."""
    if y is None:
        raise ValueError(MISSING_Y.format(type(model).__name__))
    _, targets = type(model)()._check_data(np.zeros((n, 1)), to_host(y))
    return np.asarray(targets)


def _validate_array(model: Any, X: Any, *, reset: bool) -> Any:
    """Finite, with two axes, of single or double precision."""
    if is_sparse_tensor(X):
        return _validate_sparse(model, X, reset=reset)
    xp = namespace(X)
    return validate_data(model, X, "no_validation", reset=reset, dtype=(xp.float64, xp.float32))


def _validate_sparse(model: Any, X: Any, *, reset: bool) -> Any:
    """The same for sparse tensors, by rows."""
    from clustruct.design.device.sparse import as_rows

    matrix = as_rows(X)
    validate_data(model, X, "no_validation", reset=reset, skip_check_array=True)
    check_array(matrix.values(), ensure_2d=False, ensure_min_samples=0, input_name="X")
    return matrix if matrix.is_floating_point() else matrix.double()


def _take_pieces(model: Any, X: Any, y: Any, sample_weight: Any) -> Intake:
    """The same for collections of Dask: nothing but their first chunk is loaded here."""
    from clustruct.design.partitioned.collections import block_design, block_rows

    _as_array(model, X, reset=True)
    if y is None:
        raise ValueError(MISSING_Y.format(type(model).__name__))
    design = block_design(X)
    targets = block_rows(design, y, "y")
    _check_targets(design, targets)
    n = design.shape[0]
    if sample_weight is None:
        even = design.map(lambda y: np.full(y.shape[0], 1.0 / n), targets)
        return Intake(design, targets, even, float(n))
    weights = block_rows(design, sample_weight, "sample_weight")
    total = total_of_rows(design, weights)
    return Intake(design, targets, design.map(lambda w: w / total, weights), total)


def total_of_rows(design: Design, weights: Rows) -> float:
    """Weight of all rows, checked."""
    total, least = design.fold(
        lambda w: np.array([w.sum(), min(0.0, w.min())], dtype=np.float64), weights
    )
    if not (np.isfinite(total) and least >= 0.0 and total > 0.0):
        raise ValueError(
            "sample_weight holds negative or non-finite numbers, or is zero throughout. "
            "Give weights of at least 0, and at least one positive weight."
        )
    return float(total)


def _check_targets(design: Design, targets: Rows) -> None:
    def bad(y: NDArray[Any]) -> int:
        return int(y.size - np.count_nonzero(np.isfinite(y))) if y.dtype.kind == "f" else 0

    if count := design.fold(bad, targets):
        raise ValueError(
            f"Input y contains NaN or infinity, {count} times. Replace them, or leave them out."
        )


def _as_array(model: Any, X: Any, *, reset: bool) -> Any:
    """A Dask array with the features that the model knows, or gets to know."""
    if X.ndim != 2:
        raise ValueError(
            f"X has {X.ndim} dimension(s), but samples and features are two. Reshape it."
        )
    framed = hasattr(X, "to_dask_array")
    # Names and numbers of features are all there is to be told from an empty frame.
    validate_data(
        model, X._meta if framed else X, "no_validation", reset=reset, skip_check_array=True
    )
    array = X.to_dask_array() if framed else X
    return array.rechunk({1: -1}) if array.numblocks[1] > 1 else array
