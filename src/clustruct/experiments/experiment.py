"""What an experiment is: the cells of a table, the measurement in each, and its presentation."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from clustruct import __version__
from clustruct.experiments.comparison import Comparison, figure_of
from clustruct.experiments.output.pictures import Picture
from clustruct.experiments.output.tables import Table

Cell = Mapping[str, float | int | str]

ENTROPY = 2017  # root of all seeds


@dataclass(frozen=True, eq=False)
class Measurement:
    """What one repetition computes; several experiments may present the same measurement."""

    name: str  # of the file of results
    # Returns what JSON can hold. A module-level function, since it is sent to other processes.
    measure: Callable[[Cell, np.random.SeedSequence], dict[str, Any]]
    settings: Mapping[str, Any]  # the constants that the results depend on
    # Raises OSError or ImportError, with the remedy, if data or packages are missing.
    check: Callable[[], None] = lambda: None
    cost: Callable[[Cell], float] = lambda cell: 1.0  # estimated processor seconds a repetition

    @property
    def digest(self) -> str:
        """A digest of the settings and of the version of this package."""
        return _digest({"clustruct": __version__, "version": 1, **self.settings})


@dataclass(frozen=True, eq=False)
class Task:
    """One repetition of one cell."""

    measurement: Measurement
    cell: Cell
    repetition: int

    @property
    def key(self) -> str:
        """Identifies the work: cell, repetition and settings."""
        return f"{_text(self.cell)} {self.repetition} {self.measurement.digest}"

    @property
    def seed(self) -> np.random.SeedSequence:
        """Depends on the task alone, so that the order and the number of jobs do not matter."""
        names = (self.measurement.name, _text(self.cell))
        path = (*(int(_digest(name)[:8], 16) for name in names), self.repetition)
        return np.random.SeedSequence(ENTROPY, spawn_key=path)


@dataclass(frozen=True)
class Row:
    """The result of one repetition."""

    key: str  # of the task
    cell: Cell
    repetition: int
    seconds: float  # of processor time
    values: Mapping[str, Any]  # what `Measurement.measure` returned


@dataclass(frozen=True)
class Presentation:
    """The tables, pictures and remarks of an experiment."""

    comparisons: Sequence[Comparison] = ()
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()
    remarks: Sequence[str] = ()  # sentences computed from the figures


@dataclass(frozen=True, eq=False)
class Experiment:
    """A table or a figure of the paper."""

    name: str  # on the command line
    title: str
    about: str  # the set-up, in a few sentences
    measurement: Measurement
    cells: Sequence[Cell]
    repetitions: int  # as many as in the paper
    present: Callable[[Sequence[Row]], Presentation]
    quick_cells: Sequence[Cell] = ()  # by default all cells
    quick_repetitions: int = 2
    readings: Sequence[str] = ()  # how we read the paper where it is ambiguous
    other_cells: Sequence[Cell] = ()  # other readings of the paper; not in a quick run
    other_repetitions: int = 5

    def tasks(self, *, repetitions: int | None, quick: bool) -> list[Task]:
        """The tasks, one repetition of all cells after the other."""
        cells = (quick and self.quick_cells) or self.cells
        count = repetitions or (self.quick_repetitions if quick else self.repetitions)
        if self.repetitions == 1:
            count = 1  # a fit to all data has nothing to repeat
        tasks = [Task(self.measurement, cell, r) for r in range(count) for cell in cells]
        if not quick:
            others = min(count, self.other_repetitions)
            tasks += [Task(self.measurement, c, r) for r in range(others) for c in self.other_cells]
        return tasks


def values_in(rows: Sequence[Row], cell: Cell, *path: str) -> list[float]:
    """The values of all repetitions of a cell under a path of keys, without those that are None."""
    found: list[Any] = [row.values for row in rows if row.cell == cell]
    for name in path:
        found = [value.get(name) if isinstance(value, Mapping) else None for value in found]
    return [float(value) for value in found if value is not None]


def values_by_method(
    rows: Sequence[Row],
    cells: Mapping[str, Cell],
    methods: Mapping[str, str],
    path: str,
    factor: float = 1.0,
) -> dict[str, dict[str, list[float]]]:
    """The values under ``path/method``, by column and method, for the columns that have rows."""
    return {
        column: {
            name: [factor * value for value in values_in(rows, cell, path, name)]
            for name in methods
        }
        for column, cell in cells.items()
        if any(row.cell == cell for row in rows)
    }


def readings_table(
    title: str, methods: Mapping[str, str], values: Mapping[str, Mapping[str, Sequence[float]]]
) -> Table:
    """Means and deviations for other readings of the paper, a row for each."""
    body = []
    for name, found in values.items():
        figures = [figure_of(mine) for mine in found.values()]
        if any(figures):
            count = max(figure.count for figure in figures if figure)
            body.append([name, str(count), *("-" if f is None else str(f) for f in figures)])
    return Table(title, ["", "repetitions", *methods.values()], body)


def shares_table(
    title: str,
    methods: Mapping[str, str],
    columns: Sequence[str],
    values: Callable[[str, str], Sequence[float | bool]],
) -> Table:
    """The mean of ``values(method, column)`` in percent, "-" if there are none."""
    body = [
        [printed, *(f"{np.mean(v):.0%}" if (v := values(name, c)) else "-" for c in columns)]
        for name, printed in methods.items()
    ]
    return Table(title, ["", *columns], body)


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _digest(value: Any) -> str:
    return hashlib.sha256(_text(value).encode()).hexdigest()[:12]
