"""Dask arrays and data frames: their rows counted, brought into line and mapped."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import dask
import dask.array as da
import numpy as np
from numpy.typing import NDArray

from clustruct.design.sources import Beside, is_partitioned

# Size of the pieces in which a file is read.
CHUNK_BYTES = 1 << 26


def in_chunks(X: np.memmap[Any, Any]) -> Any:
    """A mapped file as a Dask array that reads it chunk by chunk.

    Mapped pages stay in memory for as long as there is room; what is read is freed after use.
    """
    height = max(1, CHUNK_BYTES // max(1, X.shape[1] * X.itemsize))
    read = dask.delayed(_read_rows, pure=False)
    parts = [
        da.from_delayed(
            read(str(X.filename), X.offset, X.dtype, first, rows, X.shape[1]),
            (rows, X.shape[1]),
            X.dtype,
        )
        for first in range(0, X.shape[0], height)
        if (rows := min(height, X.shape[0] - first))
    ]
    return da.concatenate(parts, axis=0)


def _read_rows(
    path: str, offset: int, dtype: Any, first: int, rows: int, width: int
) -> NDArray[Any]:
    """Some rows of a matrix in a file."""
    start = offset + first * width * dtype.itemsize
    values = np.fromfile(path, dtype=dtype, count=rows * width, offset=start)
    return values.reshape(rows, width)


def map_pieces(
    function: Callable[..., Any],
    X: Any,
    axes: tuple[int, ...],
    dtype: Any,
    beside: Sequence[Beside],
) -> Any:
    """Apply a function to the chunks of an array, and to what is beside their rows, lazily.

    `axes` and `dtype` are those of what it returns, without the rows.
    """
    X, each = _in_line(X, beside)
    rows: list[Any] = []
    for place, mine in enumerate(each):
        rows += [mine, ("i", f"column {place}")[: mine.ndim]]
    new_axes = {f"new {place}": width for place, width in enumerate(axes)}
    return da.blockwise(
        function,
        ("i", *new_axes),
        X,
        ("i", "j"),
        *rows,
        new_axes=new_axes,
        concatenate=True,
        align_arrays=False,
        dtype=dtype,
        # Sparse blocks have no meta that the function could be called with.
        meta=np.empty((0,) * (1 + len(axes)), dtype=dtype),
    )


def average_pieces(values: Any, beside: Beside | None) -> float:
    """Mean of a vector, weighted by what belongs to its entries."""
    if beside is None:
        return float(values.mean())
    values, (weights,) = _in_line(values, [beside])
    return float((weights * values).sum() / weights.sum())


def _in_line(X: Any, beside: Sequence[Beside]) -> tuple[Any, list[Any]]:
    """An array, and what belongs to its rows in the same chunks."""
    if not beside:
        return X, []
    given = [mine.values for mine in beside]
    if not all(map(is_partitioned, given)):
        X = with_known_rows(X)
    rows = [
        _as_array(values, lengths=None)
        if hasattr(values, "to_dask_array")
        else values
        if is_partitioned(values)
        else da.from_array(mine.check(values, X.shape[0]), chunks=-1)
        for values, mine in zip(given, beside, strict=True)
    ]
    if np.isnan(X.shape[0]) and all(
        np.isnan(mine.shape[0]) and mine.numblocks[0] == X.numblocks[0] for mine in rows
    ):
        return X, rows  # pieces of the same frame, which are not counted for this
    X = with_known_rows(X)
    lined = []
    for mine, name in zip(map(with_known_rows, rows), (each.name for each in beside), strict=True):
        check_length(mine, X, name)
        lined.append(mine.rechunk((X.chunks[0], *((-1,) * (mine.ndim - 1)))))
    return X, lined


def with_known_rows(X: Any) -> Any:
    """An array whose pieces have known numbers of rows; they are counted where they have not."""
    if hasattr(X, "to_dask_array"):
        return _as_array(X, lengths=True)
    return X.compute_chunk_sizes() if np.isnan(X.shape[0]) else X


def _as_array(frame: Any, lengths: bool | None) -> Any:
    """The values of a data frame or series; strings become objects, of which Dask would warn."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Dask currently has limited support", UserWarning)
        return frame.to_dask_array(lengths=lengths)


def check_length(rows: Any, X: Any, name: str) -> None:
    """Complain of rows that are not as many as those of ``X``."""
    shape = tuple(rows.shape)
    if len(shape) not in (1, 2) or shape[0] != X.shape[0]:
        raise ValueError(
            f"{name} has shape {shape}, but X has {X.shape[0]} samples. "
            "Give one entry, or one row, for each."
        )
