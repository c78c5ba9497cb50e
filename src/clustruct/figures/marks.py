"""What a figure consists of: marks on two axes. Renderers draw them; nothing here knows how."""

# ruff: noqa: D102  (what an extent is stands in Mark)

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from clustruct._typing import Floats, Indices

# The number of a group, -1 for the zero group; or the role of a mark: "main", "chosen" (what was
# taken), "soft" (rules and bounds), "ghost" (what is compared with), "ink" (text), "paper".
Tone = int | str
Values = Sequence[float] | Floats | Indices

N_COLOURS = 7  # groups beyond the seventh repeat a colour


@dataclass(frozen=True, eq=False, kw_only=True)
class Mark:
    """Something drawn on axes, in a tone; one with a label stands in the legend."""

    tone: Tone = "main"
    label: str = ""

    def draw(self, pen: Any) -> None:
        """Draw with a renderer, which has a method named after each kind of mark."""
        getattr(pen, type(self).__name__.lower())(self)

    @property
    def extent(self) -> tuple[Values, Values]:
        """Values on both axes that have to be in the picture."""
        return (), ()


@dataclass(frozen=True, eq=False)
class Points(Mark):
    """Points, as a line or as dots."""

    x: Values
    y: Values

    @property
    def extent(self) -> tuple[Values, Values]:
        return self.x, self.y


@dataclass(frozen=True, eq=False)
class Line(Points):
    """A line through points."""

    width: float = 1.5
    dash: str = ""  # "--", ":" or none


@dataclass(frozen=True, eq=False)
class Dots(Points):
    """Dots of one tone; titles are what they tell when pointed at."""

    radius: float | Floats = 3.0
    opacity: float = 1.0
    shape: int = 0  # a renderer may tell groups of the same colour apart by it
    hollow: bool = False
    titles: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class Area(Mark):
    """The area between two lines over the same places."""

    x: Values
    low: Floats
    high: Floats
    opacity: float = 0.16

    @property
    def extent(self) -> tuple[Values, Values]:
        return self.x, np.concatenate([self.low, self.high])


@dataclass(frozen=True, eq=False)
class Bars(Mark):
    """Bars that lie, from zero; tones may differ from bar to bar."""

    y: Values
    lengths: Values
    thickness: float
    tones: Sequence[Tone] = ()

    @property
    def extent(self) -> tuple[Values, Values]:
        y = np.asarray(self.y)
        ends = np.concatenate([y - self.thickness / 2, y + self.thickness / 2])
        return [0.0, *self.lengths], ends


@dataclass(frozen=True, eq=False)
class Segments(Mark):
    """Straight lines, each from one point to another: rows of x0, y0, x1, y1."""

    ends: Floats
    width: float = 1.0
    opacity: float = 1.0
    dash: str = ""

    @property
    def extent(self) -> tuple[Values, Values]:
        return self.ends[:, [0, 2]].ravel(), self.ends[:, [1, 3]].ravel()


@dataclass(frozen=True, eq=False)
class Across(Mark):
    """A line all across the picture at a value of one axis."""

    value: float
    vertical: bool = False
    width: float = 1.0
    dash: str = ""

    @property
    def extent(self) -> tuple[Values, Values]:
        return ([self.value], []) if self.vertical else ([], [self.value])


@dataclass(frozen=True, eq=False)
class Text(Mark):
    """Text beside a point, moved by points to the right and upwards."""

    x: float
    y: float
    text: str
    shift: tuple[float, float] = (0.0, 0.0)
    anchor: str = "start"  # "start", "middle" or "end" of the text is at the point
    bold: bool = False


@dataclass(frozen=True, eq=False)
class Cells(Mark):
    """A map: a value between 0 and 1 for each cell between edges."""

    x_edges: Floats
    y_edges: Floats
    values: Floats
    name: str = ""  # what the values are

    @property
    def extent(self) -> tuple[Values, Values]:
        return self.x_edges, self.y_edges


@dataclass(frozen=True)
class Axis:
    """An axis of a figure."""

    name: str = ""
    ticks: Sequence[tuple[float, str]] | None = None  # round numbers if None
    limits: tuple[float, float] | None = None  # what the marks need if None
    log: bool = False
    whole: bool = False  # it counts
    rows: bool = False  # ticks name rows, and a narrow picture writes them above the marks


@dataclass(frozen=True, eq=False)
class Figure:
    """Marks on axes, with a title, a legend if some mark has a label, and a remark."""

    title: str
    marks: Sequence[Mark]
    x: Axis = Axis()
    y: Axis = Axis()
    legend: str = ""  # what stands above the legend
    note: str = ""  # such as that not all is drawn
    height: float = 270.0  # where the width is 460

    def span(self, place: int) -> tuple[float, float]:
        """The least and the largest value of all marks on the first or the second axis."""
        known = np.array([v for mark in self.marks for v in mark.extent[place]], dtype=np.float64)
        known = known[np.isfinite(known)]
        return (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)


def counted_ticks(texts: Sequence[str], most: int = 12) -> list[tuple[float, str]]:
    """Ticks at 0, 1, 2, ... with these texts; of many, evenly some."""
    step = -(-len(texts) // most)
    return [(float(place), texts[place]) for place in range(0, len(texts), step)]
