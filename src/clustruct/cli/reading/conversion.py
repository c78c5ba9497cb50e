"""Tables that can only be read from beginning to end, written anew so that parts can be read."""

import shutil
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from clustruct.cli.messages import BadUsage
from clustruct.cli.reading.parquet import ParquetTable
from clustruct.cli.reading.shelf import Shelf
from clustruct.cli.reading.streams import Source
from clustruct.cli.reading.tables import codes_in, pandas, read_lines

__all__ = ["as_parquet"]

# Bytes that are read at a time.
PIECE_BYTES = 1 << 26


def as_parquet(
    source: Source, as_text: Collection[str], encoding: str, shelf: Shelf
) -> ParquetTable:
    """A table as Parquet, in the folder of a shelf.

    Columns have the types that they have when the whole table is read: lines are read twice, as
    only the last one tells.

    Parameters
    ----------
    source : Source
        Of any format but libsvm.
    as_text, encoding
        As `read_table` takes them.
    shelf : Shelf

    Returns
    -------
    ParquetTable
    """
    if source.format == "svm":
        raise BadUsage(
            f"--out-of-core yes is for tables with named columns, and {source.name} is libsvm. "
            "Leave the option out."
        )
    pandas()
    with shelf.writing() as folder:
        path = folder / "table.parquet"
        if source.format == "parquet":
            with path.open("wb") as stream:
                shutil.copyfileobj(source.stream, stream)
        elif source.format == "arrow":
            _write(path, _record_batches(source))
        else:
            _write(path, _lines(source, as_text, encoding))
    return ParquetTable(source.name, [path], source.format_name)


def _write(path: Path, tables: Iterable[Any]) -> None:
    """Tables with the same columns below each other, a row group for each."""
    import pyarrow.parquet as pq

    rest = iter(tables)
    first = next(rest)
    with pq.ParquetWriter(path, first.schema, compression="lz4") as writer:
        for table in chain([first], rest):
            writer.write_table(table)


def _record_batches(source: Source) -> Iterator[Any]:
    """The content of an Arrow file."""
    import pyarrow as pa

    try:
        reader = pa.ipc.open_file(source.stream)
        yield reader.schema.empty_table()
        for number in range(reader.num_record_batches):
            yield pa.Table.from_batches([reader.get_batch(number)])
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{source.name} cannot be read as Arrow: {str(error).splitlines()[0]}. "
            "Get an undamaged copy."
        ) from error


def _lines(source: Source, as_text: Collection[str], encoding: str) -> Iterator[Any]:
    """The content of a file of lines, in columns of the types that all of their values have."""
    import pyarrow as pa

    ends = b"}" if source.format == "json" else b"\n"
    line = len(source.start) / max(1, source.start.count(ends))
    n_rows = max(1, int(PIECE_BYTES / line))
    as_text = [*as_text, *codes_in(source, encoding)]
    kinds = _kinds(read_lines(source, as_text, encoding, n_rows))
    if not kinds:
        raise ValueError(f"{source.name} has no rows. Give a table with rows.")
    schema = pa.schema([(name, _types()[kind]) for name, kind in kinds.items()])
    texts = {*as_text, *(name for name, kind in kinds.items() if kind == "text")}
    source.stream.seek(0)
    for frame in read_lines(source, texts, encoding, n_rows):
        frame = frame.reindex(columns=list(kinds))
        for name, kind in kinds.items():
            if kind in _OBJECTS:
                frame[name] = _OBJECTS[kind](frame[name].astype(object))
        yield pa.Table.from_pandas(frame, schema, preserve_index=False, safe=False)


def _kinds(frames: Iterable[Any]) -> dict[str, str]:
    """The kinds of columns, of which a frame need not have all."""
    found: dict[str, _Values] = {}
    before = 0
    for frame in frames:
        for name in frame.columns:
            found.setdefault(name, _Values(before)).add(frame[name])
        before += len(frame)
    return {name: values.kind(before) for name, values in found.items()}


def _types() -> dict[str, Any]:
    import pyarrow as pa

    return {
        "whole": pa.int64(),
        "number": pa.float64(),
        "truth": pa.bool_(),
        "text": pa.string(),
        "list": pa.list_(pa.string()),
    }


# Columns that stay columns of objects: what is missing in all rows of a frame has no type, and
# lists are kept as such, so that they are complained of where they are used.
_OBJECTS: dict[str, Callable[[Any], Any]] = {
    "truth": lambda values: values.where(values.notna(), None),
    "list": lambda values: values.map(lambda value: [str(value)], na_action="ignore"),
}


class _Values:
    """What all values of a column have in common, from some of them after the other.

    Parameters
    ----------
    n_before : int
        Rows that did not name the column.
    """

    def __init__(self, n_before: int) -> None:
        self._kinds: set[str] = set()
        self._some_missing = n_before > 0
        self._n_rows = n_before

    def add(self, series: Any) -> None:
        """The next ones."""
        present = series.dropna()
        self._n_rows += len(series)
        self._some_missing |= len(present) < len(series)
        if len(present):
            self._kinds.add(_kind_of(present))

    def kind(self, n_rows: int) -> str:
        """What they are read as, if all rows are read together."""
        if self._kinds <= {"whole", "number"}:
            complete = not self._some_missing and self._n_rows == n_rows
            return "whole" if self._kinds == {"whole"} and complete else "number"
        if "list" in self._kinds:
            return "list"
        return "truth" if self._kinds == {"truth"} else "text"


def _kind_of(present: Any) -> str:
    """The type of values of which none is missing."""
    types = pandas().api.types
    if types.is_bool_dtype(present.dtype):
        return "truth"
    if present.dtype == np.int64:
        return "whole"
    if types.is_float_dtype(present.dtype):
        return "number"
    inferred = types.infer_dtype(present)
    if inferred == "boolean":
        return "truth"
    is_list = inferred == "mixed" and present.map(lambda v: isinstance(v, list | dict)).any()
    return "list" if is_list else "text"
