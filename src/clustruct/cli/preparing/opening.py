"""The table of a command line: in memory, or piece by piece where it does not fit."""

import argparse
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from clustruct.cli.console import Console
from clustruct.cli.preparing.large import LargeFrame, takes_pieces
from clustruct.cli.reading.conversion import as_parquet
from clustruct.cli.reading.scratch import Scratch
from clustruct.cli.reading.stored import StoredTable, find_table
from clustruct.cli.reading.streams import Source, open_source
from clustruct.cli.reading.tables import read_table

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
    table = find_table(args.data, args.format, target)
    why = "" if table is None else takes_pieces(table.bytes_in_memory(), wanted)
    if table is not None and (why or not table.is_stream):
        if why:
            _announce(args.data, f"piece by piece: {why}", console, check)
        yield _opened(table, in_pieces=bool(why))
        return
    with open_source(args.data, args.format) as source:
        if table is None and not (source.format == "svm" and wanted == "auto"):
            why = takes_pieces(TIMES_THE_FILE * source.n_bytes, wanted)
        if not why:
            load = partial(read_table, source, as_text, args.encoding)
            is_sparse = source.format == "svm"
            yield source if is_sparse else Opened(source.name, source.format_name, load)
            return
        _announce(source.name, f"from a copy that is written first: {why}", console, check)
        table = as_parquet(source, as_text, args.encoding, scratch)
    yield _opened(table, in_pieces=True)


def _opened(table: StoredTable, in_pieces: bool) -> Opened:
    load = partial(LargeFrame, table) if in_pieces else table.load
    return Opened(table.name, table.format_name, load, table.column_for)


def _announce(name: str, how: str, console: Console, check: Callable[[str], None] | None) -> None:
    if check is not None:
        check(name)
    console.note(f"clustruct: {name} is read out of core, {how}.")
