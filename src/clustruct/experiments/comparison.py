"""The paper's figures and ours, and whether they agree."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["LEAST_COUNT", "Comparison", "Entry", "Figure", "figure_of"]


LEAST_COUNT = 4  # the deviation of fewer repetitions is no measure of anything


@dataclass(frozen=True)
class Figure:
    """A mean over repetitions.

    Attributes
    ----------
    mean : float
    deviation : float
        Standard deviation over the repetitions.
    count : int
        Number of repetitions.
    unit : float
        Unit of the last digit printed; a rounded mean is uncertain by it, too.
    """

    mean: float
    deviation: float
    count: int
    unit: float = 0.0

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
    """Mean and deviation of what repetitions found; None where there are none."""
    if not values:
        return None
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return Figure(statistics.fmean(values), deviation, len(values))


@dataclass(frozen=True)
class Entry:
    """A cell of a table: what the paper says, and what we find; less is better.

    Attributes
    ----------
    method, column : str
    ours, paper : Figure or None
        None where there is no such figure.
    rival : str
        Whose figure the paper's is, where it is not that of the same method.
    """

    method: str
    column: str
    ours: Figure | None
    paper: Figure | None
    rival: str = ""

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
    """A table of the paper and ours.

    Attributes
    ----------
    title : str
    quantity : str
        What the figures are.
    methods : mapping
        Keys of the methods and how they are called in print, in the order of the rows.
    columns : sequence of str
    entries : sequence of Entry
    """

    title: str
    quantity: str
    methods: Mapping[str, str]
    columns: Sequence[str]
    entries: Sequence[Entry]

    @classmethod
    def of(
        cls,
        title: str,
        quantity: str,
        methods: Mapping[str, str],
        ours: Mapping[str, Mapping[str, Sequence[float]]],
        paper: Mapping[str, Mapping[str, Figure]],
        *,
        against_best: str = "auto",
        not_best: Sequence[str] = ("oracle",),
    ) -> "Comparison":
        """Side by side; `against_best` is held against the best of the paper's own figures.

        Parameters
        ----------
        title, quantity : str
        methods : mapping
            Keys and printed names.
        ours : mapping
            By column, then by method: the values of all repetitions.
        paper : mapping
            By column, then by method.
        against_best : str
            A method that the paper does not have.
        not_best : sequence of str
            Methods that are out of competition.

        Returns
        -------
        Comparison
        """
        entries = []
        for column, found in ours.items():
            known = paper.get(column, {})
            for method in methods:
                figure, rival = known.get(method), ""
                if method == against_best and known:
                    rivals = {known[name].mean: name for name in known if name not in not_best}
                    rival = rivals[min(rivals)]
                    figure = known[rival]
                mine = figure_of(found.get(method, ()))
                entries.append(Entry(method, column, mine, figure, rival))
        return cls(title, quantity, methods, tuple(ours), entries)

    def entry(self, method: str, column: str) -> Entry:
        """One cell."""
        return next(e for e in self.entries if (e.method, e.column) == (method, column))

    def count(self, verdict: str) -> int:
        """How many cells have that verdict."""
        return sum(entry.verdict == verdict for entry in self.entries)
