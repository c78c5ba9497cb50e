"""Tables that do not fit into memory: understood a column at a time, then read in pieces."""

import os
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustruct.cli.columns import Column, as_kind
from clustruct.cli.messages import BadUsage, needs_extra
from clustruct.cli.parts import Part, PartedTable
from clustruct.cli.tables import pandas

__all__ = ["LargeColumns", "LargeFrame", "check_dask", "in_pieces", "pieces_of", "takes_pieces"]

Indices = NDArray[np.intp]

# A table in memory is held about so many times over while a model is fitted to it.
COPIES = 3
# Size of the matrix that is made of a piece.
PIECE_BYTES = 1 << 26


def takes_pieces(table: PartedTable | None, wanted: str, name: str) -> str:
    """Why a table is read in pieces; an empty string where it is not.

    Parameters
    ----------
    table : PartedTable or None
        None for formats that cannot be read so.
    wanted : {"auto", "yes", "no"}
    name : str
        Of the file, for messages.

    Returns
    -------
    str
    """
    if wanted == "no" or (table is None and wanted == "auto"):
        return ""
    if table is None:
        raise BadUsage(
            f"--out-of-core yes reads Parquet files, folders of them and .npy files, and {name} is "
            "none of these. Write the table as Parquet, or leave the option out."
        )
    needed, free = COPIES * table.bytes_in_memory(), _free_bytes()
    if wanted == "auto" and needed <= free:
        return ""
    if wanted == "yes":
        return "as asked for"
    return f"work on it takes about {_size(needed)} of memory, and {_size(free)} are free"


def check_dask(name: str) -> None:
    """Complain where what fits are made with piece by piece is not installed."""
    if find_spec("dask") is None:
        raise needs_extra("dask", f"a fit to {name} piece by piece", "dask")


def _free_bytes() -> float:
    """Memory that is free; infinite where nobody knows."""
    if find_spec("psutil") is not None:
        import psutil

        return float(psutil.virtual_memory().available)
    names = os.sysconf_names if hasattr(os, "sysconf_names") else {}
    if "SC_AVPHYS_PAGES" in names:
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return np.inf


def _size(n_bytes: float) -> str:
    return f"{n_bytes / 1e9:.3g} GB"


class LargeFrame:
    """A table of which one column at a time is in memory: what is asked of a frame to know it.

    Parameters
    ----------
    table : PartedTable
    index : ndarray of int, default=None
        Numbers of the rows in use; all of them if not given.
    """

    def __init__(self, table: PartedTable, index: Indices | None = None) -> None:
        self.table = table
        self.index = np.arange(table.n_rows) if index is None else index
        self.columns = table.columns

    def __len__(self) -> int:
        return int(self.index.size)

    def __getitem__(self, key: Any) -> Any:
        """A column by its name, or the table with the rows of a mask."""
        if not isinstance(key, str):
            return LargeFrame(self.table, self.index[np.asarray(key)])
        series = self.table.column(key)
        return series if len(self) == len(series) else series.loc[self.index]


class LargeColumns:
    """The columns that a model sees, with values as it takes them.

    Parameters
    ----------
    frame : LargeFrame
    columns : sequence of Column
    """

    def __init__(self, frame: LargeFrame, columns: Sequence[Column]) -> None:
        self._frame = frame
        self.name = frame.table.name
        self._kinds = {column.name: column.kind for column in columns}
        # The type of a whole column, which that of a piece may differ from: missing numbers make
        # fractions of whole ones, and other text of categories.
        self._types: dict[str, Any] = {}
        self.shape = (len(frame), len(self._kinds))

    def column(self, name: str, rows: Indices) -> Any:
        """Some rows of a column, as a frame."""
        series = self._frame[name]
        self._types[name] = series.dtype
        values = as_kind(series, self._kinds[name], self.name)
        return values.iloc[rows].to_frame()

    def take(self, rows: Indices) -> Any:
        """Some rows, in ascending order, as a frame."""
        found = [self.read(parts, mine) for parts, mine in self.pieces(rows, self.shape[1])]
        return pandas().concat(found, ignore_index=True)

    def pieces(self, rows: Indices, width: int) -> Iterator[tuple[list[Part], Indices]]:
        """Parts of the table that make a piece each, and the numbers of the rows wanted of it.

        Parameters
        ----------
        rows : ndarray of int
            Ascending.
        width : int
            Columns of the matrix that is made of a piece.
        """
        numbers = self._frame.index[rows]
        for parts in pieces_of(self._frame.table, width):
            first, last = parts[0].first, parts[-1].first + parts[-1].n_rows
            mine = numbers[slice(*np.searchsorted(numbers, [first, last]))]
            if mine.size:
                yield parts, mine

    def read(self, parts: Sequence[Part], numbers: Indices) -> Any:
        """Rows of some parts, by their numbers in the table."""
        frame = self._frame.table.frame(parts, list(self._kinds)).loc[numbers]
        frame = frame.astype(self._types)
        return pandas().DataFrame(
            {name: as_kind(frame[name], kind, self.name) for name, kind in self._kinds.items()}
        )


def pieces_of(table: PartedTable, width: int) -> Iterator[list[Part]]:
    """Parts that follow each other, until they make a matrix of so many columns large enough."""
    most = max(1, PIECE_BYTES // (8 * max(1, width)))
    waiting: list[Part] = []
    for part in table.parts:
        if waiting and sum(one.n_rows for one in waiting) + part.n_rows > most:
            yield waiting
            waiting = []
        waiting.append(part)
    yield waiting


def in_pieces(columns: LargeColumns, rows: Indices, steps: Any, width: int) -> Any:
    """The matrix of some rows, made piece by piece when it is read.

    Parameters
    ----------
    columns : LargeColumns
    rows : ndarray of int
        Ascending.
    steps : ColumnTransformer
        Fitted.
    width : int
        Columns that it makes.

    Returns
    -------
    dask.array.Array
    """
    import dask
    import dask.array as da

    def make(parts: Sequence[Part], numbers: Indices) -> Any:
        matrix = steps.transform(columns.read(parts, numbers))
        return matrix.to_numpy() if hasattr(matrix, "to_numpy") else matrix

    delayed = dask.delayed(make, pure=False, traverse=False)
    pieces = list(columns.pieces(rows, width))
    meta = make(pieces[0][0], pieces[0][1][:1])[:0]
    arrays = [
        da.from_delayed(delayed(parts, mine), (mine.size, width), meta.dtype, meta=meta)
        for parts, mine in pieces
    ]
    return da.concatenate(arrays, axis=0)
