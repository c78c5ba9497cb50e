"""Parquet files, one or a folder of them, as one table that is read in parts."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from clustruct.cli.messages import listed
from clustruct.cli.reading.parts import Part
from clustruct.cli.reading.tables import pandas

__all__ = ["ParquetTable"]

# What a value takes in memory: a number, and the object around a text.
NUMBER_BYTES, TEXT_BYTES = 8, 64
# A row group is decoded so many rows at a time at most, and read so many bytes at a time.
MOST_ROWS, BUFFER_BYTES = 1 << 16, 1 << 20


class ParquetTable:
    """Parquet files with the same columns.

    Parameters
    ----------
    name : str
        For messages.
    files : sequence of Path
    format_name : str, default="Parquet"
        What they were before they were Parquet, for messages.
    """

    def __init__(self, name: str, files: Sequence[Path], format_name: str = "Parquet") -> None:
        pandas()
        self.name = name
        self.format_name = format_name
        self.files = tuple(files)
        self.is_stream = not Path(name).is_dir()

    @cached_property
    def parts(self) -> list[Part]:
        """All row groups that have rows, in order."""
        parts, first = [], 0
        for file in self.files:
            found = _metadata(file)
            _check_columns(file, found, self.files[0], self.columns)
            for group in range(found.num_row_groups):
                n_rows = found.row_group(group).num_rows
                if n_rows:
                    parts.append(Part(file, group, first, n_rows))
                first += n_rows
        if not parts:
            raise ValueError(f"{self.name} has columns but no rows. Give a table with rows.")
        return parts

    @cached_property
    def columns(self) -> list[str]:
        """Names of the columns, but for those that only number the rows."""
        return _names(_metadata(self.files[0]))

    @property
    def n_rows(self) -> int:
        """Rows of all files."""
        return self.parts[-1].first + self.parts[-1].n_rows

    def column_for(self, target: str) -> str:
        """The one of that name."""
        return target

    def bytes_in_memory(self) -> float:
        """What a data frame of all of it would take, about."""
        texts = [name for name in self.columns if self.is_text(name)]
        numbers = len(self.columns) - len(texts)
        objects = float(self.n_rows) * (TEXT_BYTES * len(texts) + NUMBER_BYTES * numbers)
        # Text is held by the table, and once more as what words are found in.
        return objects + 2.0 * sum(_stored_bytes(file, texts) for file in self.files if texts)

    @cached_property
    def _schema(self) -> Any:
        return _metadata(self.files[0]).schema.to_arrow_schema()

    def is_text(self, name: str) -> bool:
        """Whether a column is stored as text, or as anything else of any length."""
        return _is_text(self._schema.field(name).type)

    def column(self, name: str) -> Any:
        """All values of a column, as a series."""
        return self.frame(self.parts, [name])[name]

    def frame(self, parts: Sequence[Part], columns: Sequence[str]) -> Any:
        """Some rows of some columns; rows are numbered as in the whole table."""
        numbers = [np.arange(part.first, part.first + part.n_rows) for part in parts]
        return _framed([_read(part, columns) for part in parts], columns, np.concatenate(numbers))

    def stretches(self, columns: Sequence[str], n_bytes: int) -> Iterator[Any]:
        """Some columns from the first row to the last: row groups are divided or put together."""
        waiting: list[Any] = []
        first, last, size = 0, 0, 0
        for part in self.parts:
            for table in _decoded(part, columns, n_bytes):
                waiting.append(table)
                last, size = last + table.num_rows, size + table.nbytes
                if size >= n_bytes:
                    yield _framed(waiting, columns, np.arange(first, last))
                    waiting, first, size = [], last, 0
        if waiting:
            yield _framed(waiting, columns, np.arange(first, last))

    def load(self) -> Any:
        """All of it, as a data frame."""
        return self.frame(self.parts, self.columns)


def _metadata(file: Path) -> Any:
    """What a file says of itself."""
    import pyarrow.parquet as pq

    try:
        return pq.read_metadata(file)
    except (OSError, ValueError) as error:
        raise ValueError(_damaged(file, error)) from error


def _read(part: Part, columns: Sequence[str]) -> Any:
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(part.file) as opened:
            return opened.read_row_group(part.number, columns=list(columns))
    except (OSError, ValueError) as error:
        raise ValueError(_damaged(part.file, error)) from error


def _decoded(part: Part, columns: Sequence[str], n_bytes: int) -> Iterator[Any]:
    """A row group in tables of at most so many bytes, about; not even its file is read at once."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(part.file, buffer_size=BUFFER_BYTES, pre_buffer=False) as opened:
            stored = _column_bytes(opened.metadata.row_group(part.number), columns)
            height = max(1, min(MOST_ROWS, n_bytes * part.n_rows // max(1, stored)))
            for batch in opened.iter_batches(height, [part.number], list(columns)):
                yield pa.Table.from_batches([batch])
    except (OSError, ValueError) as error:
        raise ValueError(_damaged(part.file, error)) from error


def _framed(tables: Sequence[Any], columns: Sequence[str], numbers: Any) -> Any:
    """Tables below each other as a data frame with these columns, and these numbers of rows."""
    import pyarrow as pa

    frame = pa.concat_tables(tables, promote_options="permissive").to_pandas()
    return frame[list(columns)].set_axis(numbers, axis=0)


def _stored_bytes(file: Path, columns: Sequence[str]) -> int:
    """What some columns of a file take, unpacked."""
    found = _metadata(file)
    return sum(
        _column_bytes(found.row_group(group), columns) for group in range(found.num_row_groups)
    )


def _column_bytes(group: Any, columns: Sequence[str]) -> int:
    """What some columns of a row group take, unpacked; of nested ones, all that they hold."""
    chunks = (group.column(place) for place in range(group.num_columns))
    return sum(
        int(chunk.total_uncompressed_size)
        for chunk in chunks
        if chunk.path_in_schema in columns or chunk.path_in_schema.split(".")[0] in columns
    )


def _damaged(file: Path, error: Exception) -> str:
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    return f"{file} cannot be read as Parquet: {reason}. Get an undamaged copy."


def _names(metadata: Any) -> list[str]:
    """Columns of a file, less the index that pandas stores among them."""
    schema = metadata.schema.to_arrow_schema()
    stored = (schema.pandas_metadata or {}).get("index_columns", [])
    return [str(name) for name in schema.names if name not in stored]


def _check_columns(file: Path, metadata: Any, first: Path, columns: Sequence[str]) -> None:
    """All files have the columns of the first one."""
    missing = [name for name in columns if name not in _names(metadata)]
    if missing:
        raise ValueError(
            f"{file} has no column {listed(map(repr, missing))}, which {first} has. Give files "
            "with the same columns."
        )


def _is_text(kind: Any) -> bool:
    import pyarrow.types as types

    return not (
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_temporal(kind)
        or types.is_dictionary(kind)
    )
