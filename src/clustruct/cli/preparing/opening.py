"""The table of a command line, opened: in memory, or piece by piece where it does not fit.

One that does not fit is understood a column at a time, and then read in pieces.
"""

import argparse
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from clustruct._extras import missing_extra
from clustruct._typing import Indices
from clustruct.cli.console import Console
from clustruct.cli.preparing.columns import Column, as_kind
from clustruct.cli.reading.columnar import NUMBER_BYTES
from clustruct.cli.reading.conversion import as_parquet
from clustruct.cli.reading.memory import free_bytes
from clustruct.cli.reading.scratch import Scratch, size_in_words
from clustruct.cli.reading.stored import StoredTable, find_table
from clustruct.cli.reading.streams import Source, open_source
from clustruct.cli.reading.tables import pandas, read_table

# A table in memory is held about so many times over while a model is fitted to it.
COPIES = 3
# Size of the matrix that is made of a piece.
PIECE_BYTES = 1 << 26
# What a table takes in memory, as a multiple of the file: most of all where it is text.
TIMES_THE_FILE = 2.0


@dataclass(frozen=True, eq=False)
class Opened:
    """A table that can be loaded as a frame: a `DataFrame`, or a `LargeFrame` if out of core."""

    name: str  # for messages, as is the name of the format
    format_name: str
    load: Callable[[], Any]
    column_for: Callable[[str], str] = str  # the column that `--target` names


@contextmanager
def open_data(
    args: argparse.Namespace,
    as_text: Collection[str],
    scratch: Scratch,
    console: Console,
    target: str | None = None,
    check: Callable[[str], None] | None = None,
) -> Iterator[Source | Opened]:
    """Open the table that a command line names; yield the source itself if that is libsvm.

    The copy of a table whose parts cannot be read is in `scratch`. `as_text` names columns whose
    values stay as they are written, and `target` may be a file that goes with an array. `check` is
    called with the name of a table that is read out of core, before work is done on it.
    """
    wanted = getattr(args, "out_of_core", "no")
    table = find_table(args.data, args.format, target, args.max_size)
    why = "" if table is None else takes_pieces(table.bytes_in_memory(), wanted)
    if table is not None and (why or not table.is_stream):
        if why:
            _announce(args.data, f"piece by piece: {why}", console, check)
        yield _opened(table, in_pieces=bool(why))
        return
    with open_source(args.data, args.format, args.max_size) as source:
        if table is None and not (source.format == "svm" and wanted == "auto"):
            why = takes_pieces(_bytes_in_memory(source), wanted)
        if not why:
            load = partial(read_table, source, as_text, args.encoding)
            is_sparse = source.format == "svm"
            yield source if is_sparse else Opened(source.name, source.format_name, load)
            return
        _announce(source.name, f"from a copy that is written first: {why}", console, check)
        table = as_parquet(source, as_text, args.encoding, scratch)
    yield _opened(table, in_pieces=True)


def _bytes_in_memory(source: Source) -> float:
    """Estimate the size of a data frame: by the length of the file, and of its fields if short."""
    fields = sum(source.start.count(sign) for sign in (b",", b";", b"\t", b"|", b"\n"))
    times = NUMBER_BYTES * fields / max(1, len(source.start))
    return source.n_bytes * max(TIMES_THE_FILE, times if source.format in ("csv", "tsv") else 0.0)


def _opened(table: StoredTable, in_pieces: bool) -> Opened:
    load = partial(LargeFrame, table) if in_pieces else table.load
    return Opened(table.name, table.format_name, load, table.column_for)


def _announce(name: str, how: str, console: Console, check: Callable[[str], None] | None) -> None:
    if check is not None:
        check(name)
    console.note(f"clustruct: {name} is read out of core, {how}.")


def takes_pieces(n_bytes: float, wanted: str) -> str:
    """Why a table of about so many bytes is read in pieces; empty where it is not.

    `wanted` is what the option says: "auto", "yes" or "no".
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
        raise missing_extra("dask", f"a fit to {name} piece by piece", "dask")


class LargeFrame:
    """A table of which one column at a time is in memory; of columns of text, a batch at a time.

    It has those methods of a data frame with which columns are recognised. `index` holds the
    numbers of the rows in use, all of them if not given.
    """

    def __init__(self, table: StoredTable, index: Indices | None = None) -> None:
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

    def batches(self, name: str, rows: Any = slice(None)) -> Iterator[Any]:
        """Ascending rows of a column: at once, or in batches if it is stored as text."""
        if not self.table.is_text(name):
            yield self[name].iloc[rows]
            return
        for frame in frames_of(self.table, [name], self.index[rows]):
            yield frame[name]


class LargeColumns:
    """The columns that a model sees, with values as it takes them."""

    def __init__(self, frame: LargeFrame, columns: Sequence[Column]) -> None:
        self._frame = frame
        self.name = frame.table.name
        self._columns = {column.name: column for column in columns}
        # The type of a whole column, which that of a piece may differ from: missing numbers make
        # fractions of whole ones, and other text of categories.
        self._types: dict[str, Any] = {}
        self.shape = (len(frame), len(columns))
        self.has_text = any(column.kind == "text" for column in columns)

    def column(self, name: str, rows: Indices) -> Any:
        """Some rows of a column, as a frame."""
        series = self._frame[name]
        self._types[name] = series.dtype
        return self._as_kind(series).iloc[rows].to_frame()

    def batches(self, name: str, rows: Indices) -> Iterator[Any]:
        """The same for ascending rows, in batches if the column is stored as text."""
        if not self._frame.table.is_text(name):
            yield self.column(name, rows)
            return
        for series in self._frame.batches(name, rows):
            yield self._as_kind(series).to_frame()

    def take(self, rows: Indices, names: Sequence[str] | None = None) -> Any:
        """Some rows, in ascending order, as a frame of some columns or all of them."""
        return pandas().concat(list(self.frames(rows, names)), ignore_index=True)

    def frames(self, rows: Indices, names: Sequence[str] | None = None) -> Iterator[Any]:
        """The same in frames of limited size."""
        columns = list(self._columns if names is None else names)
        for frame in frames_of(self._frame.table, columns, self._frame.index[rows]):
            yield self._as_kinds(frame)

    def pieces(self, rows: Indices, width: int) -> Iterator[tuple[int, int, Indices]]:
        """Divide ascending rows into pieces that make matrices of `width` columns and limited size.

        Yields the bounds of a piece in the table, and the numbers of the rows that are wanted.
        """
        numbers, bounds = self._frame.index[rows], self._frame.table.bounds
        most = max(1, PIECE_BYTES // (8 * max(1, width)))
        first = 0
        for stop, after in zip(bounds[1:], [*bounds[2:], np.inf], strict=True):
            if after - first > most:
                mine = numbers[slice(*np.searchsorted(numbers, [first, stop]))]
                if mine.size:
                    yield first, stop, mine
                first = stop

    def read(self, first: int, stop: int, numbers: Indices) -> Any:
        """Rows between two bounds, by their numbers in the table."""
        return self._as_kinds(self._frame.table.read(first, stop, list(self._columns)).loc[numbers])

    def _as_kinds(self, frame: Any) -> Any:
        frame = frame.astype({name: t for name, t in self._types.items() if name in frame.columns})
        return pandas().DataFrame({name: self._as_kind(frame[name]) for name in frame.columns})

    def _as_kind(self, series: Any) -> Any:
        column = self._columns[series.name]
        return as_kind(series, column.kind, self.name, column.style)


def frames_of(table: StoredTable, columns: Sequence[str], numbers: Indices) -> Iterator[Any]:
    """Read some columns of rows with ascending `numbers`, in frames of limited size."""
    for frame in table.batches(columns, PIECE_BYTES):
        first, last = frame.index[0], frame.index[-1]
        mine = numbers[slice(*np.searchsorted(numbers, [first, last + 1]))]
        if mine.size:
            yield frame.iloc[mine - first]
        if last >= numbers[-1]:
            return


def in_pieces(columns: LargeColumns, rows: Indices, steps: Any, width: int) -> Any:
    """A Dask array of ascending rows, of which a piece is made whenever it is read.

    The fitted transformer `steps` makes a matrix of `width` columns.
    """
    import dask
    import dask.array as da

    def make(first: int, stop: int, numbers: Indices) -> Any:
        matrix = steps.transform(columns.read(first, stop, numbers))
        return matrix.to_numpy() if hasattr(matrix, "to_numpy") else matrix

    delayed = dask.delayed(make, pure=False, traverse=False)
    pieces = list(columns.pieces(rows, width))
    first, stop, numbers = pieces[0]
    meta = make(first, stop, numbers[:1])[:0]
    arrays = [
        da.from_delayed(delayed(*piece), (piece[-1].size, width), meta.dtype, meta=meta)
        for piece in pieces
    ]
    return da.concatenate(arrays, axis=0)


def in_kept_pieces(columns: LargeColumns, rows: Indices, steps: Any, scratch: Scratch) -> Any:
    """The same, made once and kept as scratch: text takes longer to prepare than to read again."""
    import dask.array as da

    return da.concatenate([scratch.put(steps.transform(frame)) for frame in columns.frames(rows)])
