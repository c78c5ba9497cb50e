"""Tables that do not fit into memory: understood a column at a time, then read in pieces."""

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from clustruct._typing import Indices
from clustruct.cli.messages import needs_extra
from clustruct.cli.preparing.columns import Column, as_kind
from clustruct.cli.reading.memory import free_bytes, size_in_words
from clustruct.cli.reading.parts import Part, PartedTable
from clustruct.cli.reading.shelf import Shelf
from clustruct.cli.reading.tables import pandas

__all__ = [
    "LargeColumns",
    "LargeFrame",
    "check_dask",
    "frames_of",
    "in_kept_pieces",
    "in_pieces",
    "takes_pieces",
]


# A table in memory is held about so many times over while a model is fitted to it.
COPIES = 3
# Size of the matrix that is made of a piece.
PIECE_BYTES = 1 << 26


def takes_pieces(n_bytes: float, wanted: str) -> str:
    """Why a table is read in pieces; an empty string where it is not.

    Parameters
    ----------
    n_bytes : float
        What it takes in memory, about.
    wanted : {"auto", "yes", "no"}

    Returns
    -------
    str
    """
    if wanted != "auto":
        return "as asked for" if wanted == "yes" else ""
    needed, free = COPIES * n_bytes, free_bytes()
    if needed <= free:
        return ""
    takes = f"work on it takes about {size_in_words(needed)} of memory"
    return f"{takes}, and {size_in_words(free)} are free"


def check_dask(name: str) -> None:
    """Complain where what fits are made with piece by piece is not installed."""
    if find_spec("dask") is None:
        raise needs_extra("dask", f"a fit to {name} piece by piece", "dask")


class LargeFrame:
    """A table of which one column at a time is in memory: what is asked of a frame to know it.

    Of columns that are stored as text it is a stretch at a time.

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

    def stretches(self, name: str) -> Iterator[Any]:
        """A column at once, or in stretches if it is stored as text."""
        if not self.table.is_text(name):
            yield self[name]
            return
        for frame in frames_of(self.table, [name], self.index):
            yield frame[name]


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
        self._styles = {column.name: column.style for column in columns}
        # The type of a whole column, which that of a piece may differ from: missing numbers make
        # fractions of whole ones, and other text of categories.
        self._types: dict[str, Any] = {}
        self.shape = (len(frame), len(self._kinds))

    @property
    def has_text(self) -> bool:
        """Whether the words of a column are to be found."""
        return "text" in self._kinds.values()

    def column(self, name: str, rows: Indices) -> Any:
        """Some rows of a column, as a frame."""
        series = self._frame[name]
        self._types[name] = series.dtype
        values = self._as_kind(series)
        return values.iloc[rows].to_frame()

    def stretches(self, name: str, rows: Indices) -> Iterator[Any]:
        """The same, with rows in ascending order, in as many frames as the column has stretches."""
        if not self._frame.table.is_text(name):
            yield self.column(name, rows)
            return
        for frame in frames_of(self._frame.table, [name], self._frame.index[rows]):
            yield self._as_kind(frame[name]).to_frame()

    def take(self, rows: Indices) -> Any:
        """Some rows, in ascending order, as a frame."""
        return pandas().concat(list(self.frames(rows)), ignore_index=True)

    def frames(self, rows: Indices) -> Iterator[Any]:
        """The same in frames of limited size."""
        for frame in frames_of(self._frame.table, list(self._kinds), self._frame.index[rows]):
            yield self._as_kinds(frame)

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
        for parts in _pieces_of(self._frame.table, width):
            first, last = parts[0].first, parts[-1].first + parts[-1].n_rows
            mine = numbers[slice(*np.searchsorted(numbers, [first, last]))]
            if mine.size:
                yield parts, mine

    def read(self, parts: Sequence[Part], numbers: Indices) -> Any:
        """Rows of some parts, by their numbers in the table."""
        return self._as_kinds(self._frame.table.frame(parts, list(self._kinds)).loc[numbers])

    def _as_kinds(self, frame: Any) -> Any:
        frame = frame.astype(self._types)
        return pandas().DataFrame({name: self._as_kind(frame[name]) for name in self._kinds})

    def _as_kind(self, series: Any) -> Any:
        name = series.name
        return as_kind(series, self._kinds[name], self.name, self._styles[name])


def frames_of(
    table: PartedTable, columns: Sequence[str], numbers: Indices | None = None
) -> Iterator[Any]:
    """Some columns of a table from its first row to its last, in frames of limited size.

    Parameters
    ----------
    table : PartedTable
    columns : sequence of str
    numbers : ndarray of int, default=None
        Rows that are wanted, ascending; all of them if not given.

    Yields
    ------
    DataFrame
    """
    for frame in table.stretches(columns, PIECE_BYTES):
        if numbers is None:
            yield frame
            continue
        first, last = frame.index[0], frame.index[-1]
        mine = numbers[slice(*np.searchsorted(numbers, [first, last + 1]))]
        if mine.size:
            yield frame.iloc[mine - first]
        if last >= numbers[-1]:
            return


def _pieces_of(table: PartedTable, width: int) -> Iterator[list[Part]]:
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


def in_kept_pieces(columns: LargeColumns, rows: Indices, steps: Any, shelf: Shelf) -> Any:
    """The same, made once and kept on a shelf: text takes longer to prepare than to read again."""
    import dask.array as da

    return da.concatenate([shelf.put(steps.transform(frame)) for frame in columns.frames(rows)])
