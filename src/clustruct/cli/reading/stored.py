"""Tables on disk of which some rows or some columns can be read: Parquet files and arrays."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustruct._typing import Indices
from clustruct.cli.messages import listed
from clustruct.cli.reading.streams import TABLE_MAGIC, format_of
from clustruct.cli.reading.tables import pandas

# Bytes of a value in memory: of a number, and of the object around a text.
NUMBER_BYTES, TEXT_BYTES = 8, 64
# A row group is decoded so many rows at a time at most, and read so many bytes at a time.
MOST_ROWS, BUFFER_BYTES = 1 << 16, 1 << 20
# Rows of an array are read in parts of this size. Its columns lie across all of the file, and are
# read together until they take as much.
PART_BYTES, SLAB_BYTES = 1 << 26, 1 << 30


class StoredTable(ABC):
    """A table on disk: rows that are stored together are a part, and rows are numbered from 0."""

    name: str  # for messages, as is the name of the format
    format_name: str
    is_stream = False  # whether it is one file that can be read from beginning to end
    columns: list[str]
    bounds: Indices  # number of the first row of each part, and the number of all rows

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.bounds[-1])

    @abstractmethod
    def bytes_in_memory(self) -> float:
        """Estimate the size of a data frame of the whole table."""

    def is_text(self, name: str) -> bool:
        """Whether a column is stored as text, of which a value may take any memory."""
        return False

    @abstractmethod
    def read(self, first: int, stop: int, columns: Sequence[str]) -> Any:
        """Read the parts between two bounds, as a frame indexed by the numbers of the rows."""

    def batches(self, columns: Sequence[str], n_bytes: int) -> Iterator[Any]:
        """Read some columns of all rows: in frames of about so many bytes, or of a part each."""
        for first, stop in zip(self.bounds[:-1], self.bounds[1:], strict=True):
            yield self.read(first, stop, columns)

    def column_for(self, target: str) -> str:
        """The column that `--target` names."""
        return target

    def column(self, name: str) -> Any:
        """Read all values of a column, as a series."""
        return self.read(0, self.n_rows, [name])[name]

    def load(self) -> Any:
        """Read the whole table."""
        return self.read(0, self.n_rows, self.columns)


def find_table(name: str, wanted: str | None, target: str | None = None) -> StoredTable | None:
    """The table of a folder, of a Parquet file or of an array; None for other files.

    The format `wanted` goes before the name of the file. The `target` of an array may be in a file
    of its own.
    """
    path = Path(name)
    if path.is_dir():
        files = sorted(p for p in path.iterdir() if p.is_file() and format_of(p.name) == "parquet")
        if not files:
            raise ValueError(
                f"{name} is a folder without Parquet files. Name a file, or a folder with files "
                "that end in .parquet."
            )
        return ParquetTable(name, files)
    if not path.is_file():
        return None
    if path.suffix.lower() == ".npy" and wanted is None:
        return ArrayTable(name, target)
    if (wanted or format_of(name)) == "parquet":
        with path.open("rb") as stream:
            if TABLE_MAGIC.get(stream.read(4)) == "parquet":  # not compressed as a whole
                return ParquetTable(name, [path])
    return None


class ParquetTable(StoredTable):
    """Parquet files with the same columns, of types that have a common one; row groups are parts.

    With `format_name`, they are a copy of a table of another format.
    """

    def __init__(self, name: str, files: Sequence[Path], format_name: str = "Parquet") -> None:
        pandas()
        self.name, self.format_name = name, format_name
        self.is_stream = not Path(name).is_dir()
        self._files = tuple(files)

    @cached_property
    def _groups(self) -> list[Any]:
        """A fragment of a dataset for each row group that has rows, in order."""
        groups = []
        for file in self._files:
            with _opening(file) as found:
                (fragment,) = found.get_fragments()
                groups += [one for one in fragment.split_by_row_group() if _n_rows(one)]
        if not groups:
            raise ValueError(f"{self.name} has columns but no rows. Give a table with rows.")
        return groups

    @cached_property
    def _schema(self) -> Any:
        """The columns of all files, each of a type that holds its values in every file."""
        import pyarrow as pa

        schema = None
        for file in self._files:
            with _opening(file) as found:
                schema = schema or found.schema
                missing = [name for name in _names(schema) if name not in _names(found.schema)]
                if missing:
                    raise ValueError(
                        f"{file} has no column {listed(map(repr, missing))}, which "
                        f"{self._files[0]} has. Give files with the same columns."
                    )
                schema = pa.unify_schemas([schema, found.schema], promote_options="permissive")
        return schema

    @cached_property
    def columns(self) -> list[str]:  # type: ignore[override]
        """Names of the columns, without the index that pandas stores among them."""
        return _names(self._schema)

    @cached_property
    def bounds(self) -> Indices:  # type: ignore[override]
        """Number of the first row of each row group, and the number of all rows."""
        return np.cumsum([0, *map(_n_rows, self._groups)])

    def bytes_in_memory(self) -> float:
        """Estimate the size of a data frame: text is held once more as what words are found in."""
        texts = [name for name in self.columns if self.is_text(name)]
        numbers = len(self.columns) - len(texts)
        objects = float(self.n_rows) * (TEXT_BYTES * len(texts) + NUMBER_BYTES * numbers)
        return objects + 2.0 * sum(_stored_bytes(group, texts) for group in self._groups)

    def is_text(self, name: str) -> bool:
        """Whether a column is stored as text, or as anything else of any length."""
        from pyarrow import types

        fixed = (types.is_primitive, types.is_boolean, types.is_dictionary)
        return not any(test(self._schema.field(name).type) for test in fixed)

    def read(self, first: int, stop: int, columns: Sequence[str]) -> Any:
        """Read row groups, as a frame indexed by the numbers of the rows."""
        tables = []
        for group in self._groups[slice(*np.searchsorted(self.bounds, [first, stop]))]:
            with _naming(group.path):
                tables.append(group.to_table(self._schema, columns=list(columns)))
        return _framed(tables, columns, first)

    def batches(self, columns: Sequence[str], n_bytes: int) -> Iterator[Any]:
        """Read some columns of all rows: row groups are divided, or put together."""
        waiting: list[Any] = []
        first, size = 0, 0
        for group in self._groups:
            for table in self._decoded(group, columns, n_bytes):
                waiting.append(table)
                size += table.nbytes
                if size >= n_bytes:
                    yield _framed(waiting, columns, first)
                    first += sum(one.num_rows for one in waiting)
                    waiting, size = [], 0
        if waiting:
            yield _framed(waiting, columns, first)

    def _decoded(self, group: Any, columns: Sequence[str], n_bytes: int) -> Iterator[Any]:
        """Decode a row group bit by bit, in tables of about so many bytes.

        A scanner of the dataset would decode all of it at once.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        height = n_bytes * _n_rows(group) // max(1, _stored_bytes(group, columns))
        schema = pa.schema([self._schema.field(name) for name in columns], self._schema.metadata)
        with (
            _naming(group.path),
            pq.ParquetFile(group.path, buffer_size=BUFFER_BYTES, pre_buffer=False) as opened,
        ):
            number = group.row_groups[0].id
            height = max(1, min(MOST_ROWS, height))
            for batch in opened.iter_batches(height, [number], list(columns)):
                yield pa.Table.from_batches([batch]).select(list(columns)).cast(schema)


@contextmanager
def _opening(file: Path) -> Iterator[Any]:
    """A file as a dataset."""
    from pyarrow import dataset

    with _naming(file):
        yield dataset.dataset(str(file), format="parquet")


def _n_rows(group: Any) -> int:
    return int(group.row_groups[0].num_rows)


@contextmanager
def _naming(file: Path | str) -> Iterator[None]:
    """Name the file of which pyarrow complains."""
    import pyarrow as pa

    try:
        yield
    except (OSError, pa.ArrowException) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ValueError(
            f"{file} cannot be read as Parquet: {reason}. Get an undamaged copy."
        ) from error


def _framed(tables: Sequence[Any], columns: Sequence[str], first: int) -> Any:
    """Tables below each other as a frame, whose rows are numbered from the first one on."""
    import pyarrow as pa

    frame = pa.concat_tables(tables).to_pandas()[list(columns)]
    return frame.set_axis(np.arange(first, first + len(frame)), axis=0)


def _stored_bytes(group: Any, columns: Sequence[str]) -> int:
    """Bytes of some columns of a row group, unpacked; of nested ones, all that they hold."""
    found = group.metadata.row_group(group.row_groups[0].id)
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


class ArrayTable(StoredTable):
    """A matrix of numbers in a ``.npy`` file, mapped; its columns are called ``x0``, ``x1``, ...

    The `target` may be a ``.npy`` file with one more column, which has the name of the file.
    """

    format_name = "NumPy"

    def __init__(self, name: str, target: str | None = None) -> None:
        self.name = name
        self._X = _mapped(name)
        if self._X.ndim != 2 or not self._X.size:
            raise ValueError(
                f"{name} has an array of shape {self._X.shape}. Give one with a row for each "
                "sample and a column for each feature."
            )
        height = max(1, PART_BYTES // (self._X.itemsize * self._X.shape[1]))
        self.bounds = np.array([*range(0, len(self._X), height), len(self._X)])
        self._places = {f"x{j}": j for j in range(self._X.shape[1])}
        self._target: dict[str, NDArray[Any]] = {}
        if target is not None and target.lower().endswith(".npy"):
            stem, values = Path(target).stem, _mapped(target)
            if values.size != self.n_rows or values.shape[0] != self.n_rows:
                raise ValueError(
                    f"{target} has an array of shape {values.shape}, and {name} has {self.n_rows} "
                    "rows. Give one value for each row."
                )
            self._target[stem if stem not in self._places else "target"] = values.reshape(-1)
        self.columns = [*self._places, *self._target]
        self._slab: tuple[int, NDArray[Any]] = (0, self._X[:, :0])

    def column_for(self, target: str) -> str:
        """The column that is meant by a target: a file, a number or a name."""
        if target.lower().endswith(".npy"):
            return next(iter(self._target))
        return f"x{target}" if target.isdecimal() else target

    def bytes_in_memory(self) -> float:
        """Estimate the size of a data frame."""
        return float(NUMBER_BYTES * self._X.size)

    def column(self, name: str) -> Any:
        """Read a column, together with those that follow it in the file."""
        if name in self._target:
            return pandas().Series(np.array(self._target[name]), name=name)
        place, (first, slab) = self._places[name], self._slab
        if not first <= place < first + slab.shape[1]:
            count = max(1, SLAB_BYTES // (self._X.itemsize * self.n_rows))
            wanted = self._X[:, place : place + count]
            first, slab = place, np.empty(wanted.shape, dtype=wanted.dtype, order="F")
            for rows in map(slice, self.bounds[:-1], self.bounds[1:]):
                slab[rows] = wanted[rows]
            self._slab = first, slab
        return pandas().Series(slab[:, place - first].copy(), name=name)

    def read(self, first: int, stop: int, columns: Sequence[str]) -> Any:
        """Read some rows, as a frame indexed by their numbers."""
        names = [name for name in columns if name in self._places]
        values = np.asarray(self._X[first:stop][:, [self._places[name] for name in names]])
        frame = pandas().DataFrame(values, index=np.arange(first, stop), columns=names)
        for name in self._target.keys() & set(columns):
            frame[name] = self._target[name][first:stop]
        return frame[list(columns)]


def _mapped(name: str) -> Any:
    """Map the array of a file."""
    try:
        array = np.load(name, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise FileNotFoundError(f"{name} does not exist. Mend the name.") from None
    except (OSError, ValueError, EOFError) as error:
        raise ValueError(f"{name} cannot be read as NumPy's: {error}. Get a good copy.") from error
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
        raise ValueError(f"{name} holds no array of numbers. Save one with numpy.save.")
    return array
