"""The paper's figures beside ours, and whether they agree."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

LEAST_COUNT = 4  # fewer repetitions give no usable standard deviation


@dataclass(frozen=True)
class Figure:
    """A mean and a standard deviation over repetitions."""

    mean: float
    deviation: float
    count: int
    unit: float = 0.0  # of the last printed digit: rounding makes the mean uncertain, too

    @property
    def variance(self) -> float:
        """Squared standard error of the mean."""
        return self.deviation**2 / self.count + self.unit**2 / 12

    def __str__(self) -> str:
        digits = 2 if abs(self.mean) < 100 else 1
        if 0 < abs(self.mean) < 0.1:
            digits = 4
        return f"{self.mean:.{digits}f} ± {self.deviation:.{digits}f}"


def figure_of(values: Sequence[float]) -> Figure | None:
    """Mean and standard deviation of some values; None if there are none."""
    if not values:
        return None
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return Figure(statistics.fmean(values), deviation, len(values))


def printed_names(methods: str) -> dict[str, str]:
    """The printed name of each method."""
    special = {"oracle": "Oracle", "lasso": "Lasso", "auto": "auto (ours)"}
    return {method: special.get(method, method.upper()) for method in methods.split()}


def paper_figures(printed: str, columns: Iterable[str], count: int) -> dict[str, dict[str, Figure]]:
    """Parse a table of the paper, with lines such as ``pg 63.31±18.24 52.72±16.51``."""
    table: dict[str, dict[str, Figure]] = {column: {} for column in columns}
    for method, *cells in map(str.split, printed.strip().splitlines()):
        for column, cell in zip(table, cells, strict=True):
            mean, _, deviation = cell.partition("±")
            table[column][method] = Figure(float(mean), float(deviation), count, unit=0.01)
    return table


@dataclass(frozen=True)
class Entry:
    """One cell of a table: the paper's figure and ours; smaller is better."""

    method: str
    column: str
    ours: Figure | None  # None if it was not measured
    paper: Figure | None  # None if the paper has no such figure
    rival: str = ""  # the method that the paper's figure belongs to, if it is another one

    @property
    def verdict(self) -> str:
        """Agrees within two standard errors of the difference, or is better or worse."""
        if self.ours is None:
            return "not measured"
        if self.paper is None:
            return "not in the paper"
        if self.ours.count < LEAST_COUNT:
            return "too few repetitions"
        difference = self.ours.mean - self.paper.mean
        if abs(difference) <= 2 * math.sqrt(self.ours.variance + self.paper.variance):
            return "agrees"
        return "better" if difference < 0 else "worse"


@dataclass(frozen=True)
class Comparison:
    """A table of the paper beside ours.

    The method ``auto``, which the paper does not have, is compared with the best of the paper's
    figures in its column, the oracle's left out.
    """

    title: str
    quantity: str  # what the figures measure
    methods: Mapping[str, str]  # key and printed name of each row, in order
    values: Mapping[str, Mapping[str, Sequence[float]]]  # of all repetitions, by column and method
    paper: Mapping[str, Mapping[str, Figure]]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.values)

    def entry(self, method: str, column: str) -> Entry:
        """The entry of a method in a column."""
        ours = figure_of(self.values[column].get(method, ()))
        known = self.paper.get(column, {})
        rival = ""
        if method == "auto" and known:
            rivals = {known[name].mean: name for name in known if name != "oracle"}
            rival = rivals[min(rivals)]
        return Entry(method, column, ours, known.get(rival or method), rival)

    @property
    def entries(self) -> list[Entry]:
        """The entries of all methods, column by column."""
        return [self.entry(method, column) for column in self.values for method in self.methods]

    def count(self, verdict: str) -> int:
        """The number of entries with a verdict."""
        return sum(entry.verdict == verdict for entry in self.entries)

    def gains(self) -> dict[str, str]:
        """A clause for each column in which ``auto`` is better than the best of the paper."""
        clauses = {}
        for column in self.values:
            entry = self.entry("auto", column)
            if entry.verdict == "better" and entry.ours and entry.paper:
                clauses[column] = (
                    f"{column}: `auto` {entry.ours}, the paper's best "
                    f"({self.methods[entry.rival]}) {entry.paper}: "
                    f"{entry.paper.mean / entry.ours.mean:.3g} times less"
                )
        return clauses
