"""Dask arrays and data frames, as designs and rows."""

import warnings
from typing import Any

import dask
import dask.array as da
import numpy as np
from numpy.typing import NDArray

from clustruct.design.kinds import is_partitioned
from clustruct.design.partitioned.blocks import BlockDesign
from clustruct.design.partitioned.pieces import Pieces, available_bytes, keep

__all__ = ["beside_rows", "block_design", "block_rows", "in_chunks"]

# Size of the pieces in which a file is read.
CHUNK_BYTES = 1 << 26


def block_design(X: Any) -> BlockDesign:
    """The design of a Dask array or data frame; read once and kept, if it fits into memory.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame
        With NumPy arrays, SciPy sparse matrices or data frames as chunks.

    Returns
    -------
    BlockDesign
    """
    array = _with_known_rows(X)
    array = array.rechunk({1: -1}) if array.numblocks[1] > 1 else array
    pairs = zip(array.to_delayed()[:, 0], array.chunks[0], strict=True)
    filled = [(block, height) for block, height in pairs if height > 0]
    if not filled:
        raise ValueError(
            f"Found array with 0 sample(s) (shape={array.shape}) in X. Give some rows."
        )
    blocks, heights = zip(*filled, strict=True)
    design = BlockDesign(blocks, heights, array.shape[1])
    if design.survey() <= available_bytes():
        design.hold()
    return design


def in_chunks(X: np.memmap[Any, Any]) -> Any:
    """A mapped file as a Dask array that reads it chunk by chunk.

    Mapped pages stay in memory for as long as there is room; what is read is freed after use.

    Parameters
    ----------
    X : memmap of shape (n, d)

    Returns
    -------
    dask.array.Array
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


def block_rows(design: BlockDesign, rows: Any, name: str) -> Pieces:
    """What belongs to the rows of a design, in the same pieces, and kept.

    Parameters
    ----------
    design : BlockDesign
    rows : array-like, dask.array.Array, dask.dataframe.Series or DataFrame
    name : str
        What users call it.

    Returns
    -------
    Pieces
    """
    if not is_partitioned(rows):
        rows = np.asarray(rows)
        _check_length(rows, design, name)
        return design.place(rows)
    array = _with_known_rows(rows)
    _check_length(array, design, name)
    array = array.rechunk((design.heights, *((-1,) * (array.ndim - 1))))
    return Pieces.of(keep(list(array.to_delayed().reshape(-1))), array.shape)


def beside_rows(X: Any, rows: Any, name: str) -> tuple[Any, Any]:
    """A Dask array, and what belongs to its rows in the same pieces, computed later.

    Parameters
    ----------
    X : dask.array.Array
    rows : array-like, dask.array.Array, dask.dataframe.Series or DataFrame
    name : str
        What users call the rows.

    Returns
    -------
    tuple of dask.array.Array
    """
    if not is_partitioned(rows):
        rows = da.from_array(np.asarray(rows), chunks=-1)
    if hasattr(rows, "to_dask_array"):
        rows = _as_array(rows, lengths=None)
    if np.isnan(X.shape[0]) and np.isnan(rows.shape[0]) and rows.numblocks[0] == X.numblocks[0]:
        return X, rows  # pieces of the same frame, which are not counted for this
    X, rows = _with_known_rows(X), _with_known_rows(rows)
    _check_length(rows, X, name)
    return X, rows.rechunk((X.chunks[0], *((-1,) * (rows.ndim - 1))))


def _with_known_rows(X: Any) -> Any:
    """An array whose pieces have known numbers of rows; they are counted where they have not."""
    if hasattr(X, "to_dask_array"):
        return _as_array(X, lengths=True)
    return X.compute_chunk_sizes() if np.isnan(X.shape[0]) else X


def _as_array(frame: Any, lengths: bool | None) -> Any:
    """The values of a data frame or series; strings become objects, of which Dask would warn."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Dask currently has limited support", UserWarning)
        return frame.to_dask_array(lengths=lengths)


def _check_length(rows: Any, X: Any, name: str) -> None:
    if rows.ndim not in (1, 2) or rows.shape[0] != X.shape[0]:
        raise ValueError(
            f"{name} has shape {tuple(rows.shape)}, but X has {X.shape[0]} samples. "
            "Give one entry, or one row, for each."
        )
