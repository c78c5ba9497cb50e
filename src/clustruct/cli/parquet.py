"""Parquet files, one or a folder of them, as one table that is read in parts."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from clustruct.cli.messages import listed
from clustruct.cli.parts import Part
from clustruct.cli.tables import pandas

__all__ = ["ParquetTable"]

# What a value takes in memory: a number, and a text with the object around it.
NUMBER_BYTES, TEXT_BYTES = 8, 64


class ParquetTable:
    """Parquet files with the same columns.

    Parameters
    ----------
    name : str
        For messages.
    files : sequence of Path
    """

    format_name = "Parquet"

    def __init__(self, name: str, files: Sequence[Path]) -> None:
        pandas()
        self.name = name
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
        schema = _metadata(self.files[0]).schema.to_arrow_schema()
        each = [
            TEXT_BYTES if _is_text(schema.field(name).type) else NUMBER_BYTES
            for name in self.columns
        ]
        return float(self.n_rows) * sum(each)

    def column(self, name: str) -> Any:
        """All values of a column, as a series."""
        return self.frame(self.parts, [name])[name]

    def frame(self, parts: Sequence[Part], columns: Sequence[str]) -> Any:
        """Some rows of some columns; rows are numbered as in the whole table."""
        import pyarrow as pa

        tables = [_read(part, columns) for part in parts]
        frame = pa.concat_tables(tables, promote_options="permissive").to_pandas()
        numbers = [np.arange(part.first, part.first + part.n_rows) for part in parts]
        return frame[list(columns)].set_axis(np.concatenate(numbers), axis=0)

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
