"""Arguments and results of k-means of every row of a matrix, whatever library it is from."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from clustruct._arguments import as_count
from clustruct.arrays import namespace
from clustruct.grouping.row_groups import Rows, Source, cluster_rows, is_tensor
from clustruct.results import ClusteringRows


def as_numbers_of_groups(value: Any, name: str = "n_clusters") -> tuple[int, ...]:
    """One number of groups, or several that ascend."""
    if not isinstance(value, tuple):
        return (as_count(value, name, 1),)
    numbers = tuple(as_count(number, name, 1) for number in value)
    if not numbers or list(numbers) != sorted(set(numbers)):
        raise ValueError(
            f"{name} must ascend if there are several, got {value!r}. Give for example (2, 4, 8)."
        )
    return numbers


def cluster_matrix(
    x: Any,
    numbers: Sequence[int],
    *,
    weights: Any = None,
    axis: int = -1,
    n_jobs: int | None = None,
    presorted: bool = False,
    group_size: int | None = None,
) -> tuple[ClusteringRows, ...]:
    """The clusterings of a matrix of numbers, one for each number of groups."""
    if axis not in (-1, 0, 1):
        raise ValueError(f"axis must be -1, 0 or 1, got {axis!r}. Use -1 to cluster rows.")
    turned = axis == 0
    rows = x.T if turned else x
    n_rows, n = (int(size) for size in rows.shape)
    if n == 0:
        raise ValueError(f"x has rows without entries (shape {tuple(x.shape)}). Give at least one.")
    size = n if group_size is None else as_count(group_size, "group_size", 1)
    if n % size:
        raise ValueError(
            f"group_size={size} does not divide the {n} columns. Give a divisor, or pad the rows."
        )
    jobs = None if n_jobs is None or n_jobs == -1 else as_count(n_jobs, "n_jobs", 1)
    masses = _weights_of_rows(weights, rows, size, turned)
    source = Source("x.T" if turned else "x", n, presorted)
    found = cluster_rows(rows.reshape(-1, size), masses, numbers, jobs, source)
    lead = (n_rows,) if group_size is None else (n_rows, n // size)
    return tuple(_result(part, x, lead, turned) for part in found)


def _weights_of_rows(weights: Any, rows: Any, size: int, turned: bool) -> Any:
    """Weights shaped like the rows that are clustered, or one row of them for all."""
    if weights is None:
        return None
    n_rows, n = (int(s) for s in rows.shape)
    shape = tuple(int(s) for s in weights.shape)
    expected = (n, n_rows) if turned else (n_rows, n)
    if shape not in ((n,), expected):
        raise ValueError(
            f"sample_weight has shape {shape}. Give one weight for each entry of a row, shape "
            f"({n},), or for each entry of x, shape {expected}."
        )
    if len(shape) == 2:
        return (weights.T if turned else weights).reshape(-1, size)
    if size == n:
        return weights
    return namespace(weights).broadcast_to(weights, (n_rows, n)).reshape(-1, size)


def _result(found: Rows, x: Any, lead: tuple[int, ...], turned: bool) -> ClusteringRows:
    """The groups of all rows, shaped as the caller's matrix is."""
    shape = (lead[0], -1 if found.labels.shape[0] else 0)
    labels = found.labels.reshape(shape) if lead[0] else found.labels
    width = int(found.centers.shape[-1])
    return ClusteringRows(
        labels.T if turned else labels,
        _in_precision(found.centers, x).reshape(*lead, width),
        found.sizes.reshape(*lead, width),
        found.n_found.reshape(lead),
        found.inertia.reshape(lead),
    )


def _in_precision(centers: Any, x: Any) -> Any:
    """Centres in the precision of the matrix; double for integers."""
    if is_tensor(x):
        return centers.to(x.dtype) if x.dtype.is_floating_point else centers
    return centers.astype(x.dtype if x.dtype.kind == "f" else np.float64)


def cast_labels(labels: Any, dtype: Any) -> Any:
    """Labels as another type of integers, which must hold them."""
    if is_tensor(labels):
        return labels.to(dtype)
    kind = np.dtype(dtype)
    largest = int(labels.max(initial=0))
    if kind.kind not in "iu" or largest > np.iinfo(kind).max:
        raise ValueError(
            f"label_dtype={dtype!r} does not hold labels up to {largest}. Give a type of integers "
            "that does, or None."
        )
    return labels.astype(kind)
