"""What an experiment is: cells of a table, what is measured in each, and how it is shown."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from clustruct.experiments.comparison import Comparison, figure_of
from clustruct.experiments.output.pictures import Picture

__all__ = [
    "Cell",
    "Experiment",
    "Measurement",
    "PlainTable",
    "Presentation",
    "Row",
    "Task",
    "readings_table",
    "values_in",
]

Cell = Mapping[str, float | int | str]

# The root of all seeds; a task's own seed follows from its measurement, cell and repetition alone.
ENTROPY = 2017


@dataclass(frozen=True, eq=False)
class Measurement:
    """What one repetition does; several experiments may show the same measurement.

    Attributes
    ----------
    name : str
        Name of the file of results.
    measure : callable
        From a cell and a seed to a mapping that JSON can hold; of module level, as it is sent to
        other processes.
    settings : callable
        All constants that the results depend on. Rows of other settings are not taken for these.
    check : callable
        Raises OSError or ImportError, with the remedy, where data or packages are missing.
    cost : callable
        About how many seconds of processor time a repetition of a cell takes.
    """

    name: str
    measure: Callable[[Cell, np.random.SeedSequence], dict[str, Any]]
    settings: Callable[[], dict[str, Any]]
    check: Callable[[], None] = lambda: None
    cost: Callable[[Cell], float] = lambda cell: 1.0

    @property
    def digest(self) -> str:
        """What tells these settings from others."""
        return _digest(self.settings())  # asked anew, as packages may have come since


@dataclass(frozen=True, eq=False)
class Task:
    """One repetition of one cell."""

    measurement: Measurement
    cell: Cell
    repetition: int

    @property
    def key(self) -> str:
        """The same for the same work, and for nothing else."""
        return f"{_text(self.cell)} {self.repetition} {self.measurement.digest}"

    @property
    def seed(self) -> np.random.SeedSequence:
        """Depends on nothing but the task, so that order and number of jobs do not matter."""
        names = (self.measurement.name, _text(self.cell))
        path = (*(int(_digest(name)[:8], 16) for name in names), self.repetition)
        return np.random.SeedSequence(ENTROPY, spawn_key=path)


@dataclass(frozen=True)
class Row:
    """What a repetition found.

    Attributes
    ----------
    key : str
        Key of the task.
    cell : mapping
    repetition : int
    seconds : float
        Processor time.
    values : mapping
        What `Measurement.measure` returned.
    """

    key: str
    cell: Cell
    repetition: int
    seconds: float
    values: Mapping[str, Any]


@dataclass(frozen=True)
class PlainTable:
    """A table without figures of the paper."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Presentation:
    """How an experiment is shown.

    Attributes
    ----------
    comparisons : sequence of Comparison
        The paper's figures and ours, side by side.
    tables : sequence of PlainTable
    pictures : sequence of Picture
    remarks : sequence of str
        What the figures say, computed from them: a sentence each.
    """

    comparisons: Sequence[Comparison] = ()
    tables: Sequence[PlainTable] = ()
    pictures: Sequence[Picture] = ()
    remarks: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class Experiment:
    """A table or a figure of the paper.

    Attributes
    ----------
    name : str
        What the command line calls it.
    title : str
    about : str
        What is done, in a few sentences.
    measurement : Measurement
    cells : sequence of Cell
    repetitions : int
        As many as in the paper.
    present : callable
        From the rows of all cells to what is shown.
    quick_cells : sequence of Cell
        Cells of a quick run.
    quick_repetitions : int
    readings : sequence of str
        How the paper was read where it leaves a choice.
    other_cells : sequence of Cell
        Cells that read the paper otherwise, to see what depends on it; not in a quick run.
    other_repetitions : int
    """

    name: str
    title: str
    about: str
    measurement: Measurement
    cells: Sequence[Cell]
    repetitions: int
    present: Callable[[Sequence[Row]], Presentation]
    quick_cells: Sequence[Cell]
    quick_repetitions: int = 2
    readings: Sequence[str] = ()
    other_cells: Sequence[Cell] = ()
    other_repetitions: int = 5

    def tasks(self, *, repetitions: int | None, quick: bool) -> list[Task]:
        """The tasks, one repetition of all cells after the other."""
        cells = self.quick_cells if quick else self.cells
        usual = self.quick_repetitions if quick else self.repetitions
        count = usual if repetitions is None else repetitions
        if self.repetitions == 1:
            count = 1  # a fit to all data has nothing to repeat
        tasks = [Task(self.measurement, cell, r) for r in range(count) for cell in cells]
        if not quick:
            others = min(count, self.other_repetitions)
            tasks += [Task(self.measurement, c, r) for r in range(others) for c in self.other_cells]
        return tasks


def values_in(rows: Sequence[Row], cell: Cell, *path: str) -> list[float]:
    """The values of all repetitions of a cell under some path; those that are None are left out."""
    found = []
    for row in rows:
        if row.cell != cell:
            continue
        value: Any = row.values
        for name in path:
            value = value.get(name) if isinstance(value, Mapping) else None
        if value is not None:
            found.append(float(value))
    return found


def readings_table(
    title: str,
    rows: Sequence[Row],
    cells: Mapping[str, Cell],
    methods: Mapping[str, str],
    *,
    path: str,
    factor: float = 1.0,
) -> PlainTable:
    """Means and deviations of cells that read the paper otherwise.

    Parameters
    ----------
    title : str
    rows : sequence of Row
    cells : mapping
        What each reading is called, and its cell.
    methods : mapping
        Keys and printed names.
    path : str
        Where a row's values are.
    factor : float
        What they are multiplied by.

    Returns
    -------
    PlainTable
    """
    body = []
    for name, cell in cells.items():
        figures = [
            figure_of([factor * value for value in values_in(rows, cell, path, method)])
            for method in methods
        ]
        if any(figures):
            count = max(figure.count for figure in figures if figure)
            body.append([name, str(count), *("-" if f is None else str(f) for f in figures)])
    return PlainTable(title, ["", "repetitions", *methods.values()], body)


def _text(cell: Cell) -> str:
    return json.dumps(dict(cell), sort_keys=True, separators=(",", ":"))


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]
