"""Figures as SVG text, coloured by classes of the page, so that they follow light and dark.

Every text is escaped here; what comes out may go into a page as it is.
"""

import math
from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise
from typing import Any

import numpy as np

from clustruct.figures import marks as m
from clustruct.figures.numbers import cut, nice_ticks, shown, tick_texts

__all__ = ["render"]

WIDTH = 460.0
ROW, BELOW_NAME = 42.0, 27.0  # height of a row, and of its mark below the top of the row
NAMED_ROW = 15.0  # height of a row that is named at the axis
LONGEST_ABOVE, LONGEST_BESIDE, LONGEST_IN_LEGEND = 54, 24, 24
LETTER = 7.0
ROOM = 0.05  # around the marks, of what they take
DASHES = {"": "", "--": ' stroke-dasharray="5 4"', ":": ' stroke-dasharray="2 3"'}


def render(figure: m.Figure) -> str:
    """The figure as an SVG element, with its title for those who cannot see it."""
    pen = SvgPen(figure)
    for mark in figure.marks:
        mark.draw(pen)
    return (
        f'<svg viewBox="0 0 {WIDTH:.0f} {pen.height:.0f}" role="img" '
        f'aria-label="{escape(figure.title)}">{"".join(pen.parts)}</svg>'
    )


class Scale:
    """Values of an axis as parts of its length, and its ticks."""

    def __init__(self, axis: m.Axis, span: tuple[float, float]) -> None:
        self._log = axis.log
        low, high = (self._linear(end) for end in axis.limits or span)
        if axis.limits is None:
            room = ROOM * (high - low) or (abs(low) * 0.1 or 1.0)
            low, high = low - room, high + room
        if axis.rows and axis.ticks is not None:
            low, high = BELOW_NAME / ROW - 1.0, len(axis.ticks) - 1.0 + BELOW_NAME / ROW
        self._low, self._high = low, high
        self.ticks = list(axis.ticks) if axis.ticks is not None else self._round(axis.whole)

    def _linear(self, value: float) -> float:
        return math.log10(value) if self._log else float(value)

    def _round(self, whole: bool) -> list[tuple[float, str]]:
        if not self._log:
            ticks = nice_ticks(self._low, self._high, whole=whole)
            return list(zip(ticks, tick_texts(ticks), strict=True))
        powers = range(math.floor(self._low), math.ceil(self._high) + 1)
        factors = (1, 2, 5) if len(powers) < 4 else (1,)
        every = [factor * 10.0**power for power in powers for factor in factors]
        return [(t, shown(t)) for t in every if self._low <= math.log10(t) <= self._high]

    def __call__(self, value: float) -> float:
        return (self._linear(value) - self._low) / (self._high - self._low)


class SvgPen:
    """Draws marks as SVG elements: at first the frame, then what it is given."""

    def __init__(self, figure: m.Figure) -> None:
        self.parts: list[str] = []
        self._add = self.parts.append
        self._x = Scale(figure.x, figure.span(0))
        self._y = Scale(figure.y, figure.span(1))
        top = self._legend(figure)
        top += 20.0 if figure.y.name else 6.0
        bare = not self._x.ticks and not figure.x.name
        n_ticks = len(figure.y.ticks or ())
        if figure.y.rows:
            left, tall = 8.0, ROW * n_ticks
        else:
            texts = [cut(text, LONGEST_BESIDE) for _, text in self._y.ticks]
            left = max(40.0, 14.0 + LETTER * max(map(len, texts), default=0))
            tall = max(figure.height - 42.0 - top, NAMED_ROW * n_ticks)
        self._box = (left, top, WIDTH - 14.0, top + tall)
        self.height = top + tall + (6.0 if bare else 42.0)
        self._frame(figure)

    # ---- The frame.

    def _legend(self, figure: m.Figure) -> float:
        """Dots with the labels of marks, in lines; returns the height that they take."""
        labelled = [mark for mark in figure.marks if mark.label]
        if not labelled:
            return 6.0
        x, y = 8.0, 12.0
        for mark in labelled:
            name = f"{figure.legend} {mark.label}" if figure.legend else mark.label
            text = cut(name, LONGEST_IN_LEGEND)
            width = 26.0 + 1.03 * LETTER * len(text)
            if x + width > WIDTH and x > 8.0:
                x, y = 8.0, y + 20.0
            dot = f'r="5" class="dot {tone(mark.tone)}"'
            self._add(f'<circle cx="{x:.1f}" cy="{y - 4:.1f}" {dot}/>')
            self._words(x + 10, y, text, "tick", "start")
            x += width
        return y + 6.0

    def _frame(self, figure: m.Figure) -> None:
        left, top, right, bottom = self._box
        for value, text in self._x.ticks:
            place = self._at_x(value)
            self._stroke((place, top, place, bottom), "grid")
            self._words(place, bottom + 16, cut(text, 12), "tick", "middle")
        for value, text in self._y.ticks:
            place = self._at_y(value)
            if figure.y.rows:
                self._words(left, place - 11, cut(text, LONGEST_ABOVE), "mark", "start")
                continue
            self._stroke((left, place, right, place), "grid")
            self._words(left - 6, place + 4, cut(text, LONGEST_BESIDE), "tick", "end")
        half = 0.45 * LETTER * len(figure.x.name)  # a long name is moved to where it has room
        middle = max(half + 4.0, min((left + right) / 2, WIDTH - half - 4.0))
        self._words(middle, bottom + 35, figure.x.name, "name", "middle")
        self._words(4, top - 8, figure.y.name, "name", "start")

    def _at_x(self, value: float) -> float:
        left, _, right, _ = self._box
        return left + (right - left) * self._x(value)

    def _at_y(self, value: float) -> float:
        _, top, _, bottom = self._box
        return bottom - (bottom - top) * self._y(value)

    def _points(self, x: Iterable[float], y: Iterable[float]) -> list[tuple[float, float]]:
        return [(self._at_x(a), self._at_y(b)) for a, b in zip(x, y, strict=True)]

    # ---- Marks.

    def line(self, mark: m.Line) -> None:
        self._add(
            f'<polyline points="{_joined(self._points(mark.x, mark.y))}" '
            f'class="line {tone(mark.tone)}" stroke-width="{mark.width:g}"{DASHES[mark.dash]}/>'
        )

    def dots(self, mark: m.Dots) -> None:
        look = f'class="{"ring" if mark.hollow else "dot"} {tone(mark.tone)}"{_opacity(mark)}'
        points = self._points(mark.x, mark.y)
        radii = np.broadcast_to(mark.radius, len(points))
        titles = mark.titles or [""] * len(points)
        for (x, y), radius, title in zip(points, radii, titles, strict=True):
            told = f"<title>{escape(title)}</title>" if title else ""
            self._add(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" {look}>{told}</circle>')

    def area(self, mark: m.Area) -> None:
        """Draw an area; not where one of its lines is not known."""
        known = np.isfinite(mark.low) & np.isfinite(mark.high)
        x = np.asarray(mark.x)[known]
        points = self._points(x, mark.high[known]) + self._points(x, mark.low[known])[::-1]
        look = f'class="dot {tone(mark.tone)}"{_opacity(mark)}'
        self._add(f'<polygon points="{_joined(points)}" {look}/>')

    def bars(self, mark: m.Bars) -> None:
        tones = mark.tones or [mark.tone] * len(mark.lengths)
        for y, length, one in zip(mark.y, mark.lengths, tones, strict=True):
            ends = (y - mark.thickness / 2, y + mark.thickness / 2)
            self._rectangle(sorted((0.0, length)), ends, tone(one), 'rx="3"')

    def cells(self, mark: m.Cells) -> None:
        for row, y in zip(mark.values, pairwise(mark.y_edges), strict=True):
            for value, x in zip(row, pairwise(mark.x_edges), strict=True):
                self._rectangle(x, y, tone(mark.tone), f'opacity="{value:.2f}"')

    def _rectangle(self, x: Sequence[float], y: Sequence[float], kind: str, more: str) -> None:
        left, right, top, bottom = *map(self._at_x, x), self._at_y(y[1]), self._at_y(y[0])
        self._add(
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{max(1.0, right - left):.1f}" '
            f'height="{bottom - top:.1f}" class="dot {kind}" {more}/>'
        )

    def segments(self, mark: m.Segments) -> None:
        for x0, y0, x1, y1 in mark.ends.tolist():
            ends = (self._at_x(x0), self._at_y(y0), self._at_x(x1), self._at_y(y1))
            self._stroke(ends, f"line {tone(mark.tone)}", mark)

    def across(self, mark: m.Across) -> None:
        left, top, right, bottom = self._box
        if mark.vertical:
            left = right = self._at_x(mark.value)
        else:
            top = bottom = self._at_y(mark.value)
        self._stroke((left, top, right, bottom), f"line {tone(mark.tone)}", mark)

    def text(self, mark: m.Text) -> None:
        x, y = self._at_x(mark.x) + mark.shift[0], self._at_y(mark.y) - mark.shift[1]
        kind = f"mark {tone(mark.tone)}{' bold' * mark.bold}"
        self._words(x, y, mark.text, kind, mark.anchor)

    # ---- Elements.

    def _words(self, x: float, y: float, text: str, kind: str, anchor: str) -> None:
        if text:
            self._add(
                f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">'
                f"{escape(text)}</text>"
            )

    def _stroke(self, ends: Sequence[float], kind: str, mark: Any = None) -> None:
        x0, y0, x1, y1 = ends
        look = ""
        if mark is not None:
            look = f' stroke-width="{mark.width:g}"{_opacity(mark)}{DASHES[mark.dash]}'
        self._add(
            f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" class="{kind}"{look}/>'
        )


def tone(value: m.Tone) -> str:
    """The class of a tone."""
    if isinstance(value, str):
        return value
    return "soft" if value < 0 else f"c{value % m.N_COLOURS}"


def _opacity(mark: Any) -> str:
    opacity = getattr(mark, "opacity", 1.0)
    return "" if opacity == 1.0 else f' opacity="{opacity:g}"'


def _joined(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
