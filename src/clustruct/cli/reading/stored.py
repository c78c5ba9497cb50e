"""Tables on disk of which some rows or some columns can be read: Parquet files and arrays."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustruct._typing import Indices
from clustruct.cli.reading.cage import Cage
from clustruct.cli.reading.columnar import NUMBER_BYTES, ParquetFiles
from clustruct.cli.reading.streams import TABLE_MAGIC, format_of, size_limit
from clustruct.cli.reading.tables import as_frame, pandas

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


def find_table(
    name: str, wanted: str | None, target: str | None = None, max_size: float | None = None
) -> StoredTable | None:
    """The table of a folder, of a Parquet file or of an array; None for other files.

    The format `wanted` goes before the name of the file. The `target` of an array may be in a file
    of its own. Parquet files that take more than `max_size` bytes unpacked are refused.
    """
    path = Path(name)
    if path.is_dir():
        files = sorted(p for p in path.iterdir() if p.is_file() and format_of(p.name) == "parquet")
        if not files:
            raise ValueError(
                f"{name} is a folder without Parquet files. Name a file, or a folder with files "
                "that end in .parquet."
            )
        return _caged(name, files, max_size)
    if not path.is_file():
        return None
    if path.suffix.lower() == ".npy" and wanted is None:
        return ArrayTable(name, target)
    if (wanted or format_of(name)) == "parquet":
        with path.open("rb") as stream:
            if TABLE_MAGIC.get(stream.read(4)) == "parquet":  # not compressed as a whole
                return _caged(name, [path], max_size)
    return None


def _caged(name: str, files: Sequence[Path], max_size: float | None) -> "ColumnarTable":
    """The table of Parquet files from outside."""
    limit = size_limit(sum(file.stat().st_size for file in files), max_size)
    return ColumnarTable(name, Cage("parquet", name, files, limit))


class ColumnarTable(StoredTable):
    """Parquet files with the same columns; row groups are parts.

    `reader` is that of the files: a `Cage` for files from outside, or `ParquetFiles` itself for
    those of ours. With `format_name`, they are a copy of a table of another format.
    """

    def __init__(
        self, name: str, reader: ParquetFiles | Cage, format_name: str = "Parquet"
    ) -> None:
        pandas()
        self.name, self.format_name = name, format_name
        self.is_stream = not Path(name).is_dir()
        self._reader = reader

    @cached_property
    def _described(self) -> dict[str, Any]:
        return self._reader.describe()

    @cached_property
    def columns(self) -> list[str]:  # type: ignore[override]
        """Names of the columns, without the index that pandas stores among them."""
        return list(self._described["columns"])

    @cached_property
    def bounds(self) -> Indices:  # type: ignore[override]
        """Number of the first row of each row group, and the number of all rows."""
        return np.cumsum([0, *self._described["heights"]])

    def bytes_in_memory(self) -> float:
        """Estimate the size of a data frame: text is held once more as what words are found in."""
        return float(self._described["bytes"])

    def is_text(self, name: str) -> bool:
        """Whether a column is stored as text, or as anything else of any length."""
        return name in self._described["texts"]

    def read(self, first: int, stop: int, columns: Sequence[str]) -> Any:
        """Read row groups, as a frame indexed by the numbers of the rows."""
        begin, end = np.searchsorted(self.bounds, [first, stop]).tolist()
        return self._framed(list(self._reader.parts(begin, end, columns)), columns, first)

    def batches(self, columns: Sequence[str], n_bytes: int) -> Iterator[Any]:
        """Read some columns of all rows: row groups are divided, or put together."""
        waiting: list[Any] = []
        first, size = 0, 0
        for table in self._reader.pieces(columns, n_bytes):
            waiting.append(table)
            size += table.nbytes
            if size >= n_bytes:
                yield self._framed(waiting, columns, first)
                first += sum(one.num_rows for one in waiting)
                waiting, size = [], 0
        if waiting:
            yield self._framed(waiting, columns, first)

    def _framed(self, tables: list[Any], columns: Sequence[str], first: int) -> Any:
        """Tables below each other as a frame, whose rows are numbered from the first one on."""
        frame = as_frame(tables, self.name, self.format_name)[list(columns)]
        return frame.set_axis(np.arange(first, first + len(frame)), axis=0)


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
    except Exception as error:  # headers are parsed as Python, and may raise what that raises
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ValueError(f"{name} cannot be read as NumPy's: {reason}. Get a good copy.") from error
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
        raise ValueError(f"{name} holds no array of numbers. Save one with numpy.save.")
    return array
