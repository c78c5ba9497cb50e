"""A matrix in a ``.npy`` file as a table, which is mapped and not loaded."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustruct.cli.reading.parts import Part
from clustruct.cli.reading.tables import pandas

__all__ = ["ArrayTable"]

# Rows are read in parts of this size. Columns lie across all of the file, and are read together
# until they take as much.
PART_BYTES = 1 << 26
SLAB_BYTES = 1 << 30


class ArrayTable:
    """A matrix of numbers; its columns are called ``x0``, ``x1``, ...

    Parameters
    ----------
    name : str
        Of the file.
    target : str or None
        A ``.npy`` file with one more column, which is called as the file is.
    """

    format_name = "NumPy"
    is_stream = False

    def __init__(self, name: str, target: str | None = None) -> None:
        self.name = name
        self._X = _mapped(name)
        if self._X.ndim != 2 or not self._X.size:
            raise ValueError(
                f"{name} has an array of shape {self._X.shape}. Give one with a row for each "
                "sample and a column for each feature."
            )
        self._places = {f"x{j}": j for j in range(self._X.shape[1])}
        self.columns = list(self._places)
        self._target: dict[str, NDArray[Any]] = {}
        if target is not None and target.lower().endswith(".npy"):
            self._add_target(target)
        self._slab: tuple[int, NDArray[Any]] = (0, self._X[:, :0])

    def _add_target(self, file: str) -> None:
        values = _mapped(file)
        if values.size != self.n_rows or values.shape[0] != self.n_rows:
            raise ValueError(
                f"{file} has an array of shape {values.shape}, and {self.name} has {self.n_rows} "
                "rows. Give one value for each row."
            )
        stem = Path(file).stem
        self._target[stem if stem not in self._places else "target"] = values.reshape(-1)
        self.columns = [*self.columns, *self._target]

    def column_for(self, target: str) -> str:
        """The column that is meant by a target: a file, a number or a name."""
        if target.lower().endswith(".npy"):
            return next(iter(self._target))
        return f"x{target}" if target.isdecimal() else target

    @property
    def n_rows(self) -> int:
        """Rows of the matrix."""
        return int(self._X.shape[0])

    @property
    def parts(self) -> list[Part]:
        """Rows that follow each other."""
        height = max(1, PART_BYTES // (self._X.itemsize * self._X.shape[1]))
        return [
            Part(Path(self.name), number, first, min(height, self.n_rows - first))
            for number, first in enumerate(range(0, self.n_rows, height))
        ]

    def bytes_in_memory(self) -> float:
        """What a data frame of all of it would take, about."""
        return 8.0 * self._X.size

    def is_text(self, name: str) -> bool:
        """Never: a matrix holds numbers."""
        return False

    def column(self, name: str) -> Any:
        """All values of a column, as a series."""
        if name in self._target:
            values = np.array(self._target[name])
        else:
            values = self._column(self._places[name])
        return pandas().Series(values, name=name)

    def _column(self, place: int) -> NDArray[Any]:
        """A column of the matrix, read together with those that follow it."""
        first, slab = self._slab
        if not first <= place < first + slab.shape[1]:
            count = max(1, SLAB_BYTES // (self._X.itemsize * self.n_rows))
            wanted = self._X[:, place : place + count]
            first, slab = place, np.empty(wanted.shape, dtype=wanted.dtype, order="F")
            for part in self.parts:
                rows = slice(part.first, part.first + part.n_rows)
                slab[rows] = wanted[rows]
            self._slab = first, slab
        return slab[:, place - first].copy()

    def stretches(self, columns: Sequence[str], n_bytes: int) -> Iterator[Any]:
        """Some columns from the first row to the last, a part at a time, whatever is asked for."""
        for part in self.parts:
            yield self.frame([part], columns)

    def frame(self, parts: Sequence[Part], columns: Sequence[str]) -> Any:
        """Some rows of some columns; rows are numbered as in the whole table."""
        numbers = np.arange(parts[0].first, parts[-1].first + parts[-1].n_rows)
        rows = slice(int(numbers[0]), int(numbers[-1]) + 1)
        mine = [name for name in columns if name in self._places]
        frame = pandas().DataFrame(
            np.asarray(self._X[rows][:, [self._places[name] for name in mine]]),
            columns=mine,
            index=numbers,
        )
        for name, values in self._target.items():
            if name in columns:
                frame[name] = values[rows]
        return frame[list(columns)]

    def load(self) -> Any:
        """All of it, as a data frame."""
        return self.frame(self.parts, self.columns)


def _mapped(name: str) -> Any:
    """The array of a file."""
    try:
        array = np.load(name, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise FileNotFoundError(f"{name} does not exist. Mend the name.") from None
    except (OSError, ValueError, EOFError) as error:
        raise ValueError(f"{name} cannot be read as NumPy's: {error}. Get a good copy.") from error
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
        raise ValueError(f"{name} holds no array of numbers. Save one with numpy.save.")
    return array
