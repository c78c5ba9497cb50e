"""Exact projections as plain functions: the kernels, with validation of the arguments."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy.sparse import issparse

from clustruct._arguments import as_choice, as_count, as_flag, as_number
from clustruct._typing import Floats
from clustruct.grouping.cuda import lies_on_gpu
from clustruct.grouping.factors import Cyclic, Factor, Monotone, Ordinal
from clustruct.grouping.matrices import as_numbers_of_groups, cast_labels, cluster_matrix
from clustruct.grouping.row_groups import is_tensor
from clustruct.grouping.rows import SAFE_SQUARES, group_rows
from clustruct.kernels.kmeans import kmeans1d
from clustruct.kernels.numbers.finite import all_finite
from clustruct.results import Clustering1D, Projection, Segmentation1D

# Kinds of sequence, which may be decreasing.
SEQUENCES: dict[str, Callable[[bool], Factor]] = {
    "ordinal": lambda decreasing: Ordinal(),
    "monotone": Monotone,
    "cyclic": lambda decreasing: Cyclic(),
}


@overload
def kmeans_1d(
    x: ArrayLike, n_clusters: int, *, sample_weight: ArrayLike | None = None
) -> Clustering1D: ...
@overload
def kmeans_1d(
    x: Any,
    n_clusters: Any,
    *,
    sample_weight: Any = None,
    axis: int = -1,
    n_jobs: int | None = None,
    presorted: bool = False,
    label_dtype: DTypeLike | None = None,
    group_size: int | None = None,
) -> Any: ...
def kmeans_1d(
    x: Any,
    n_clusters: Any,
    *,
    sample_weight: Any = None,
    axis: int = -1,
    n_jobs: int | None = None,
    presorted: bool = False,
    label_dtype: DTypeLike | None = None,
    group_size: int | None = None,
) -> Any:
    """Cluster numbers into groups with the least possible sum of squares.

    The result is the global optimum of weighted k-means in one dimension, not the best of some
    starts, and it takes less time than ``numpy.argsort`` of a long array.

    Parameters
    ----------
    x : array-like of shape (n,) or (n_rows, n)
        Finite numbers, in any order. Each row of a matrix is clustered for itself, on all
        processors. A matrix may be a tensor of torch, also of bfloat16, or an array of CuPy; on an
        NVIDIA GPU it is clustered there. It is converted to double precision row by row.
    n_clusters : int or tuple of int
        Number of groups, at least 1. Fewer come back where there are fewer distinct numbers.
        Several ascending numbers share the sorting and give a tuple of results.
    sample_weight : array-like of shape (n,) or (n_rows, n), default=None
        Weights, not negative and not all zero; of a matrix, those of all rows or of each. An
        integer weight counts as that many repetitions; a number of weight zero has no influence and
        gets the label of the nearest centre.
    axis : {-1, 0, 1}, default=-1
        0 clusters the columns of a matrix instead of its rows.
    n_jobs : int, default=None
        Number of threads for a matrix; None for one on each processor. The result does not depend
        on it.
    presorted : bool, default=False
        Promises ascending numbers; an error says if they are not. A GPU sorts them all the same.
    label_dtype : dtype, default=None
        Type of the labels; None for ``intp`` of a vector, and for the shortest unsigned one of a
        matrix.
    group_size : int, default=None
        Of a matrix, so many columns are clustered at a time; None for whole rows.

    Returns
    -------
    Clustering1D or ClusteringRows
        Labels in the order of the centres, centres, sizes and inertia, of a vector or of each row.
        For several numbers of groups a tuple of them.

    See Also
    --------
    segment_1d : Segments of a sequence of numbers.
    project_clustered : The nearest vector with few distinct values.

    Notes
    -----
    Equal numbers always share a label. Costs are computed with twice the working precision, so an
    offset that is large against the groups does no harm. The groups cost at most 1e-13 C + 1e-30 n
    W R^2 more than the best ones, with the least cost C, the sum W of the weights and the largest
    size R of a number; of up to 32 distinct numbers at most 1e-13 C + 1e-16 T, where one group of
    all would cost T, whatever their weights are. Centres are the means of their groups to one unit
    in the last place (the weights of equal numbers are added first), and the inertia is that of the
    labels to 13 digits. It is infinite (or zero) where it is beyond the range of a double, as it is
    for numbers near 1e300; labels and centres are right all the same.

    Examples
    --------
    >>> import clustruct as cs
    >>> groups = cs.kmeans_1d([1.0, 9.0, 2.0, 8.0, 9.5], 2)
    >>> groups.labels.tolist()
    [0, 1, 0, 1, 1]
    >>> groups.sizes.tolist()
    [2, 3]
    >>> two, three = cs.kmeans_1d([[1.0, 9.0, 2.0, 8.0, 9.5], [1.0, 1.0, 2.0, 3.0, 3.0]], (2, 3))
    >>> three.labels.tolist()
    [[0, 2, 0, 1, 2], [0, 0, 1, 2, 2]]
    >>> three.inertia.tolist()
    [0.625, 0.0]
    """
    x = x if hasattr(x, "ndim") else _as_numbers(x, "x", (1, 2))
    numbers = as_numbers_of_groups(n_clusters)
    sorted_already = as_flag(presorted, "presorted")
    found: tuple[Any, ...]
    if x.ndim == 2:
        found = cluster_matrix(
            as_matrix(x, "x"),
            numbers,
            weights=as_weights_of_matrix(sample_weight),
            axis=axis,
            n_jobs=n_jobs,
            presorted=sorted_already,
            group_size=group_size,
        )
    else:
        values = _as_floats(x, "x", (1, 2))
        weights = _as_weights(sample_weight, values.shape[0])
        if group_size is not None:
            raise ValueError("group_size needs a matrix. Reshape x, for example to one row.")
        if sorted_already and (values[1:] < values[:-1]).any():
            raise ValueError(
                "presorted=True, but x does not ascend. Sort it, or leave presorted at False."
            )
        found = tuple(
            Clustering1D(*kmeans1d.cluster_values(values, weights, number)) for number in numbers
        )
    if label_dtype is not None:
        found = tuple(
            replace(groups, labels=cast_labels(groups.labels, label_dtype)) for groups in found
        )
    return found if isinstance(n_clusters, tuple) else found[0]


def segment_1d(
    x: ArrayLike,
    n_segments: int | None = None,
    *,
    price: float | None = None,
    kind: str = "ordinal",
    decreasing: bool = False,
    sample_weight: ArrayLike | None = None,
    min_weight: float = 0.0,
) -> Segmentation1D:
    """Cut a sequence of numbers into segments with the least possible sum of squares.

    The result is the global optimum of ``1/2 sum w (x - v)^2 + price * (segments - 1)``, where
    ``v`` is the value of a number's segment.

    Parameters
    ----------
    x : array-like of shape (n,)
        Finite numbers, in their order.
    n_segments : int, default=None
        Largest number of segments, at least 1; None for no limit, which needs a price.
    price : float, default=None
        What each segment after the first costs, at least 0; None for nothing, which needs
        `n_segments`.
    kind : {"ordinal", "monotone", "cyclic"}, default="ordinal"
        Segments of the order; segments whose values do not decrease; or segments of a circle, on
        which the last number is a neighbour of the first.
    decreasing : bool, default=False
        With ``kind="monotone"``, values must not increase instead.
    sample_weight : array-like of shape (n,), default=None
        Weights, not negative and not all zero.
    min_weight : float, default=0.0
        Least sum of weights of a segment, unless there is only one; without `sample_weight`, the
        least number of entries.

    Returns
    -------
    Segmentation1D
        Labels in the order of the sequence, centres, sizes and inertia. On a circle the first
        number is in the first segment.

    See Also
    --------
    kmeans_1d : Groups of numbers whose order does not matter.

    Notes
    -----
    With a price the time is hardly more than linear in n; it is quadratic for a given number of
    segments, and for `min_weight` where it matters. On a circle several lines are tried, all n of
    them at worst. Monotone segments with `min_weight` need memory for n x n numbers.

    Sums are in double precision: the segments cost at most 2e-15 n W R^2 more than the best ones,
    with the sum W of the weights and the largest distance R from the mean.

    Examples
    --------
    >>> import clustruct as cs
    >>> x = [1.0, 1.2, 0.9, 5.0, 5.1, 1.1]
    >>> cs.segment_1d(x, 3).labels.tolist()
    [0, 0, 0, 1, 1, 2]
    >>> cs.segment_1d(x, price=0.5, kind="cyclic").labels.tolist()
    [0, 0, 0, 1, 1, 0]
    >>> cs.segment_1d(x, 2, kind="monotone").labels.tolist()
    [0, 0, 0, 1, 1, 1]
    """
    values = _as_floats(x, "x", (1,))
    if n_segments is None and price is None:
        raise ValueError(
            "n_segments=None needs a price: without either, every number would be a segment. Give "
            "n_segments an integer, or set price."
        )
    most = None if n_segments is None else as_count(n_segments, "n_segments", 1)
    factor = SEQUENCES[as_choice(kind, "kind", SEQUENCES)](as_flag(decreasing, "decreasing"))
    weights, least = (
        _as_weights(sample_weight, values.shape[0]),
        _at_least_zero(min_weight, "min_weight"),
    )
    cost_of_one = 0.0 if price is None else _at_least_zero(price, "price")
    with np.errstate(over="ignore", invalid="ignore"):  # kernels that are not compiled would warn
        labels, centers, cost, _ = factor.group(
            values, weights, most, cost_of_one, min_weight=least
        )
    return Segmentation1D(labels, centers, np.bincount(labels), 2.0 * cost)


def project_clustered(
    w: ArrayLike,
    n_clusters: int | None,
    *,
    n_nonzero: int | None = None,
    sample_weight: ArrayLike | None = None,
) -> Projection:
    """Project on vectors with few distinct values, few nonzero entries, or both.

    Without `n_nonzero` the nearest vector with at most `n_clusters` distinct values; with it, the
    nearest one with at most `n_nonzero` nonzero entries, which take at most `n_clusters` distinct
    values. The rows of a matrix are clustered likewise.

    Parameters
    ----------
    w : array-like of shape (d,) or (d, p)
        Finite numbers. Of a matrix, whole rows are grouped and set to zero.
    n_clusters : int or None
        Largest number of distinct nonzero values or rows, at least 1. None, which needs
        `n_nonzero`, sets no limit: plain hard thresholding.
    n_nonzero : int, default=None
        Largest number of entries or rows that are not zero; None for no limit.
    sample_weight : array-like of shape (d,), default=None
        Weights of the entries or rows in the distance, not negative and not all zero. What has
        weight zero does not matter: it joins the nearest group, or is set to zero where
        `n_nonzero` is given.

    Returns
    -------
    Projection
        The point, its labels (-1 for the zero group), its values and the squared distance.
        `exact` tells whether the point is proven to be nearest.

    See Also
    --------
    kmeans_1d : The same groups with their sizes.

    Notes
    -----
    Exact: vectors and one-column matrices, with `n_nonzero` if the weights are equal; and hard
    thresholding. For other matrices k-means is hard, and the point is the best of ten k-means++
    starts. With `n_nonzero` (matrices, or vectors with unequal weights) the start is to keep the
    largest entries and cluster them, and entries are then exchanged for others as long as the
    distance shrinks; so the point is never worse than that start.

    "Exact" means the promise of `kmeans_1d`, and with `n_nonzero` that the squared distance from
    the means of the groups found exceeds the least one by at most 1e-13 of it and of the sum of
    squares about the mean. The entries of the point are rounded, so that where entries differ by a
    few units in the last place `sq_distance` is that from the rounded means.

    The point has the floating-point type of `w`; integers give double precision.

    Examples
    --------
    >>> import clustruct as cs
    >>> cs.project_clustered([3.0, 1.0, 2.9, 1.1, 0.1], 2).point.tolist()
    [2.95, 0.7333333333333334, 2.95, 0.7333333333333334, 0.7333333333333334]
    >>> cs.project_clustered([3.0, 1.0, 2.9, 1.1, 0.1], 2, n_nonzero=4).point.tolist()
    [2.95, 1.05, 2.95, 1.05, 0.0]
    """
    array = _as_floats(w, "w", (1, 2))
    weights = _as_weights(sample_weight, array.shape[0])
    if n_clusters is None and n_nonzero is None:
        raise ValueError(
            "n_clusters=None needs n_nonzero: without a limit on either there is nothing to "
            "project on. Give n_clusters an integer, or set n_nonzero."
        )
    n_groups = None if n_clusters is None else as_count(n_clusters, "n_clusters", 1)
    n_kept = None if n_nonzero is None else as_count(n_nonzero, "n_nonzero", 0)
    grouping = group_rows(array.reshape(array.shape[0], -1), weights, n_groups, n_kept)
    dtype = _float_type(w)
    centers = grouping.centers.reshape(-1, *array.shape[1:]).astype(dtype)
    point = np.zeros(array.shape, dtype=dtype)
    nonzero = grouping.labels >= 0
    point[nonzero] = centers[grouping.labels[nonzero]]
    sq_distance = _sq_distance(array, point, weights)
    return Projection(point, grouping.labels, centers, sq_distance, grouping.exact)


def as_matrix(value: Any, name: str, n_dims: tuple[int, ...] = (2,)) -> Any:
    """A tensor, or an array on a GPU, as it is; anything else as an array of numbers.

    It may have no rows.
    """
    if (is_tensor(value) or lies_on_gpu(value)) and value.ndim in n_dims:
        return value
    usable = type(value) is np.ndarray and value.ndim in n_dims and value.dtype.kind in "biuf"
    if usable and (value.shape[0] == 0 or value.size > 0):
        return value
    return _as_numbers(value, name, n_dims)


def as_weights_of_matrix(value: Any) -> Any:
    """Weights of a matrix, not yet checked, or None."""
    return None if value is None else as_matrix(value, "sample_weight", (1, 2))


def _sq_distance(array: Floats, point: Floats, weights: Floats | None) -> float:
    """``sum w (x - p)^2``, also where squares or products with weights are out of range."""
    with np.errstate(over="ignore", under="ignore"):
        apart = (array - point).reshape(array.shape[0], -1)
        if weights is None:
            plain = float(np.square(apart).sum())
            if plain == 0.0 and not apart.any():
                return plain
            if SAFE_SQUARES[0] < plain < SAFE_SQUARES[1]:
                return plain
        # Mantissas are squared and weighed, and exponents added.
        mantissas, exponents = np.frexp(apart)
        weighing = np.frexp(np.ones(len(apart)) if weights is None else weights)
        squares = np.square(mantissas) * weighing[0][:, None]
        powers = 2 * exponents + weighing[1][:, None]
        counted = squares > 0.0
        if not counted.any():
            return 0.0
        largest = powers[counted].max()
        scaled = float(np.ldexp(squares[counted], powers[counted] - largest).sum())
        return float(np.ldexp(scaled, largest))


def _at_least_zero(value: float, name: str) -> float:
    """A finite number that is not negative."""
    return as_number(value, name, "finite and at least 0", lambda number: number >= 0.0)


def _as_floats(value: ArrayLike, name: str, n_dims: tuple[int, ...]) -> Floats:
    """Contiguous double precision array of one of the given dimensions, finite, not empty."""
    array = value if type(value) is np.ndarray else None
    if array is None or array.dtype != np.float64 or array.ndim not in n_dims or array.size == 0:
        array = _as_numbers(value, name, n_dims)
    floats = np.ascontiguousarray(array, dtype=np.float64)
    if not all_finite(floats.reshape(-1)):
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(floats))[0])
        index = ", ".join(map(str, place))
        raise ValueError(
            f"{name}[{index}] is {floats[place]}; all entries must be finite. "
            "Remove or impute missing and infinite entries first."
        )
    return floats


def _as_numbers(value: ArrayLike, name: str, n_dims: tuple[int, ...]) -> NDArray[Any]:
    """Array of real numbers of one of the given dimensions, not empty."""
    shapes = " or ".join({1: "one-dimensional", 2: "two-dimensional"}[n] for n in n_dims)
    if issparse(value):
        raise ValueError(f"{name} is a sparse matrix; give a dense array: {name}.toarray().")
    try:
        array = np.asarray(value)
        if array.dtype.kind == "O" and not any(isinstance(v, str | bytes) for v in array.flat):
            array = array.astype(np.float64)
        elif array.dtype.kind not in "biuf":
            raise TypeError(f"no numbers: {array.dtype}")
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"{name} must hold real numbers and be {shapes}, got {value!r:.80}. "
            "Convert it to numbers first."
        ) from error
    if array.ndim not in n_dims:
        raise ValueError(
            f"{name} must be {shapes}, got an array of shape {array.shape}. "
            f"Reshape it, for example with {name}.ravel()."
        )
    if array.size == 0:
        raise ValueError(f"{name} is empty (shape {array.shape}). Give at least one number.")
    return array


def _as_weights(value: ArrayLike | None, n: int) -> Floats | None:
    """Weights for ``n`` entries, or None."""
    if value is None:
        return None
    weights = _as_floats(value, "sample_weight", (1,))
    if weights.shape[0] != n:
        raise ValueError(
            f"sample_weight has {weights.shape[0]} entries, but there are {n} to weigh. "
            "Give one weight for each."
        )
    if weights.min() < 0:
        place = int(weights.argmin())
        raise ValueError(
            f"sample_weight[{place}] is {weights[place]}; weights must not be negative. "
            "Use zero to leave an entry out."
        )
    if not weights.any():
        raise ValueError("sample_weight is zero throughout. Give at least one positive weight.")
    return weights


def _float_type(value: ArrayLike) -> np.dtype[np.floating]:
    """The precision of single and half precision arrays, double for everything else."""
    dtype = getattr(value, "dtype", None)
    return np.dtype(dtype if dtype in (np.float32, np.float16) else np.float64)
