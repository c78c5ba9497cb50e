"""Parquet and Arrow files as pyarrow reads them: what is in them, and their tables.

The classes here run in a process of their own where a file comes from outside (`cage`), since a
damaged one can end the process that reads it. They load pyarrow but not pandas, which starts such
a process three times as fast. Whatever pyarrow complains of becomes a ValueError with the name of
the file, and tables are checked throughout before they are handed on.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from clustruct.cli.messages import listed
from clustruct.cli.reading.streams import check_size

# Bytes of a value in memory: of a number, and of the object around a text.
NUMBER_BYTES, TEXT_BYTES = 8, 64
# A row group is decoded so many rows at a time at most, and read so many bytes at a time.
MOST_ROWS, BUFFER_BYTES = 1 << 16, 1 << 20


class ParquetFiles:
    """Parquet files with the same columns, of types that have a common one."""

    def __init__(self, name: str, files: Sequence[str], max_size: float) -> None:
        self._name = name
        self._files = tuple(files)
        self._max_size = max_size

    @cached_property
    def _groups(self) -> list[tuple[str, Any, int]]:
        """The file, its metadata and the number of each row group that has rows, in order."""
        groups = []
        for file in self._files:
            with self._naming(file):
                metadata = self._metadata[file]
                groups += [
                    (file, metadata, number)
                    for number in range(metadata.num_row_groups)
                    if metadata.row_group(number).num_rows
                ]
        if not groups:
            raise ValueError(f"{self._name} has columns but no rows. Give a table with rows.")
        return groups

    @cached_property
    def _metadata(self) -> dict[str, Any]:
        import pyarrow.parquet as pq

        found = {}
        for file in self._files:
            with self._naming(file):
                found[file] = pq.read_metadata(file)
        return found

    @cached_property
    def _schema(self) -> Any:
        """The columns of all files, each of a type that holds its values in every file."""
        import pyarrow as pa

        schema = None
        for file in self._files:
            with self._naming(file):
                found = self._metadata[file].schema.to_arrow_schema()
                schema = schema or found
                missing = [name for name in _names(schema) if name not in _names(found)]
            if missing:
                raise ValueError(
                    f"{file} has no column {listed(map(repr, missing))}, which "
                    f"{self._files[0]} has. Give files with the same columns."
                )
            with self._naming(file):
                schema = pa.unify_schemas([schema, found], promote_options="permissive")
        return schema

    def _naming(self, file: str) -> AbstractContextManager[None]:
        """Name one of several files, or the table, of which there may be a copy only."""
        return naming(file if len(self._files) > 1 else self._name, "Parquet")

    def describe(self) -> dict[str, Any]:
        """Columns, those of them that are text, rows of the row groups, and size in memory."""
        from pyarrow import types

        fixed = (types.is_primitive, types.is_boolean, types.is_dictionary)
        names = _names(self._schema)
        texts = [n for n in names if not any(test(self._schema.field(n).type) for test in fixed)]
        heights = [_n_rows(group) for group in self._groups]
        width = NUMBER_BYTES * len(names) + (TEXT_BYTES - NUMBER_BYTES) * len(texts)
        # Text is held once more as what words are found in.
        size = sum(heights) * width + 2 * sum(_stored_bytes(group, texts) for group in self._groups)
        check_size(self._name, size, self._max_size)
        return {"columns": names, "texts": texts, "heights": heights, "bytes": size}

    def whole(self) -> Iterator[Any]:
        """All row groups with all columns, the index that pandas stores among them included."""
        self.describe()
        yield from self._read(range(len(self._groups)), self._schema.names)

    def parts(self, first: int, stop: int, columns: Sequence[str]) -> Iterator[Any]:
        """Some columns of the row groups from `first` to before `stop`."""
        yield from self._read(range(first, stop), columns)

    def _read(self, numbers: range, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow.parquet as pq

        schema = self._chosen(columns)
        for place in numbers:
            file, metadata, number = self._groups[place]
            with self._naming(file):
                with pq.ParquetFile(file, metadata=metadata, pre_buffer=True) as opened:
                    table = opened.read_row_group(number, list(columns))
                table = table.select(list(columns)).cast(schema)
                table.validate(full=True)
            yield table

    def pieces(self, columns: Sequence[str], n_bytes: int) -> Iterator[Any]:
        """Some columns of all rows, in tables of about so many bytes.

        Row groups are decoded bit by bit.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = self._chosen(columns)
        for group in self._groups:
            file, metadata, number = group
            height = n_bytes * _n_rows(group) // max(1, _stored_bytes(group, columns))
            height = max(1, min(MOST_ROWS, height))
            with (
                self._naming(file),
                pq.ParquetFile(
                    file, metadata=metadata, buffer_size=BUFFER_BYTES, pre_buffer=False
                ) as opened,
            ):
                for batch in opened.iter_batches(height, [number], list(columns)):
                    table = pa.Table.from_batches([batch]).select(list(columns)).cast(schema)
                    table.validate(full=True)
                    yield table

    def _chosen(self, columns: Sequence[str]) -> Any:
        import pyarrow as pa

        return pa.schema([self._schema.field(name) for name in columns], self._schema.metadata)


class ArrowFile:
    """An Arrow file, which can be read from beginning to end."""

    def __init__(self, name: str, files: Sequence[str], max_size: float) -> None:
        self._name = name
        (self._file,) = files
        self._max_size = max_size

    def whole(self) -> Iterator[Any]:
        """All record batches."""
        import pyarrow as pa

        size = 0
        with naming(self._name, "Arrow"), pa.memory_map(self._file) as stream:
            reader = pa.ipc.open_file(stream)
            if not reader.num_record_batches:
                yield reader.schema.empty_table()
            for number in range(reader.num_record_batches):
                table = pa.Table.from_batches([reader.get_batch(number)])
                table.validate(full=True)
                # Columns of nothing take no bytes in the file, whatever their length.
                size += max(table.nbytes, NUMBER_BYTES * table.num_rows * table.num_columns)
                check_size(self._name, size, self._max_size)
                yield table


READERS = {"parquet": ParquetFiles, "arrow": ArrowFile}


@contextmanager
def naming(file: str | Path, format_name: str) -> Iterator[None]:
    """Name the file of which pyarrow, or what uses it, complains."""
    try:
        yield
    except ValueError as error:
        if type(error) is ValueError and str(error).startswith(str(file)):
            raise  # it is named already
        raise ValueError(_unreadable(file, format_name, error)) from error
    except Exception as error:
        raise ValueError(_unreadable(file, format_name, error)) from error


def _unreadable(file: str | Path, format_name: str, error: Exception) -> str:
    reason = (str(error).splitlines() or [""])[0].rstrip(".")
    if isinstance(error, KeyError | MemoryError) or not reason:
        reason = f"{type(error).__name__} {reason}".strip()
    return f"{file} cannot be read as {format_name}: {reason}. Get an undamaged copy."


def _n_rows(group: tuple[str, Any, int]) -> int:
    _, metadata, number = group
    return int(metadata.row_group(number).num_rows)


def _stored_bytes(group: tuple[str, Any, int], columns: Sequence[str]) -> int:
    """Bytes of some columns of a row group, unpacked; of nested ones, all that they hold."""
    _, metadata, number = group
    found = metadata.row_group(number)
    chunks = (found.column(place) for place in range(found.num_columns))
    return sum(
        int(chunk.total_uncompressed_size)
        for chunk in chunks
        if chunk.path_in_schema in columns or chunk.path_in_schema.split(".")[0] in columns
    )


def _names(schema: Any) -> list[str]:
    """Names of columns, without the index that pandas stores among them."""
    stored = (schema.pandas_metadata or {}).get("index_columns", [])
    return [str(name) for name in schema.names if name not in stored]
