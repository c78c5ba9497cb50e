"""What the sections share when they report: targets, tables, and the facts about the machine."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from clustruct.experiments import environment as facts

PACKAGES = (
    "clustruct",
    "numpy",
    "scipy",
    "scikit-learn",
    "ckmeans-1d-dp",
    "ckwrap",
    "fast1dkmeans",
    "flash1dkmeans",
    "jenkspy",
    "kmeans1d",
)


@dataclass(frozen=True)
class Options:
    """What the command line says about how much to measure."""

    quick: bool = False
    repeats: int = 7
    size: int | None = None  # of the arrays of section kmeans; None for all sizes


class Target(NamedTuple):
    """A promise and what was found; ``figure`` is None where the run had nothing to show for it."""

    promise: str
    figure: float | None
    limit: float
    at_least: bool = False
    detail: str = ""

    @property
    def verdict(self) -> str:
        """PASS, FAIL or, without a figure, SKIP."""
        if self.figure is None:
            return "SKIP"
        met = self.figure >= self.limit if self.at_least else self.figure <= self.limit
        return "PASS" if met else "FAIL"

    def __str__(self) -> str:
        figure = "not measured in this run" if self.figure is None else f"{self.figure:.3g}"
        sign = ">=" if self.at_least else "<="
        detail = f"  ({self.detail})" if self.detail else ""
        return f"{self.verdict}  {self.promise} {sign} {self.limit:g}: {figure}{detail}"


class Table(NamedTuple):
    """A header, rows of text, and remarks to print below them."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()

    def __str__(self) -> str:
        widths = [max(map(len, column)) for column in zip(self.header, *self.rows, strict=True)]
        lines = [
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in (self.header, *self.rows)
        ]
        return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:], *self.notes])


def milliseconds(value: float) -> str:
    """A time in milliseconds with about three digits."""
    return f"{1e3 * value:.{2 if value < 0.01 else 1 if value < 0.1 else 0}f}"


def environment() -> dict[str, Any]:
    """The facts that a reader needs to judge the figures."""
    return facts.environment(PACKAGES)
