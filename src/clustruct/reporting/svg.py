"""Small charts as SVG text, coloured by classes of the page, so that they follow light and dark.

Every text is escaped here; what comes out may go into a page as it is.
"""

import math
from collections.abc import Iterable, Sequence
from html import escape

__all__ = [
    "TIMES",
    "WIDTH",
    "Frame",
    "bars",
    "dot_rows",
    "nice_ticks",
    "score_text",
    "shown",
    "signed",
]

TIMES = "\N{MULTIPLICATION SIGN}"
WIDTH = 460.0
ROW = 42.0  # height of a row of dots, with its name


def shown(value: float, digits: int = 3) -> str:
    """A number as people read it."""
    if value == 0.0 or not math.isfinite(value):
        return "0" if value == 0.0 else str(value)
    if 1e-3 <= abs(value) < 1e6:
        text = f"{value:,.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{value:.{digits - 1}e}"


def signed(value: float, digits: int = 3) -> str:
    """A number as people read it, with its sign."""
    return f"+{shown(value, digits)}" if value > 0.0 else shown(value, digits)


def score_text(value: float, metric: str) -> str:
    """A score: one whose best is 1 with four decimals, others with four digits."""
    if metric in ("R²", "Accuracy", "AUC"):
        return "0" if round(value, 4) == 0.0 else f"{value:.4f}".rstrip("0").rstrip(".")
    return shown(value, 4)


def nice_ticks(low: float, high: float, count: int = 5, *, whole: bool = False) -> list[float]:
    """Round numbers between two others, about as many as asked for."""
    if not high > low:
        return [low]
    raw = (high - low) / count
    if whole:
        raw = max(1.0, raw)
    unit = 10.0 ** math.floor(math.log10(raw))
    factors = (1, 2, 5, 10) if whole else (1, 2, 2.5, 5, 10)
    step = min((unit * factor for factor in factors), key=lambda s: abs(math.log(s / raw)))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [step * number for number in range(first, last + 1)]


def tick_texts(ticks: Sequence[float]) -> list[str]:
    """Ticks as text, with as many digits as tell them apart."""
    largest = max((abs(tick) for tick in ticks), default=0.0)
    if len(ticks) < 2 or largest >= 1e6 or largest < 1e-4:
        return [shown(tick) for tick in ticks]
    step = ticks[1] - ticks[0]
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    if abs(step * 10**decimals - round(step * 10**decimals)) > 1e-6:
        decimals += 1  # steps of 2.5
    return [f"{tick:,.{decimals}f}" for tick in ticks]


class Frame:
    """Axes to draw in, by data coordinates.

    Parameters
    ----------
    x_range, y_range : tuple of float
        What the axes cover.
    label : str
        What the chart shows, for those who cannot see it.
    x_name, y_name : str
        Names of the axes.
    height : float
    counts : bool
        Whether the vertical axis counts, in whole numbers.
    """

    def __init__(
        self,
        x_range: tuple[float, float],
        y_range: tuple[float, float],
        *,
        label: str,
        x_name: str = "",
        y_name: str = "",
        height: float = 270.0,
        counts: bool = False,
    ) -> None:
        self._x = _widened(x_range)
        self._y = _widened(y_range)
        self._y_ticks = nice_ticks(*self._y, whole=counts)
        room = max(len(text) for text in tick_texts(self._y_ticks) or [""])
        self._box = (max(40.0, 14.0 + 7.0 * room), 26.0, WIDTH - 12.0, height - 42.0)
        self._height = height
        self._parts: list[str] = []
        self._label = label
        self._names = (x_name, y_name)

    def x(self, value: float) -> float:
        """Horizontal place of a value."""
        low, high = self._x
        left, _, right, _ = self._box
        return left + (right - left) * (value - low) / (high - low)

    def y(self, value: float) -> float:
        """Vertical place of a value."""
        low, high = self._y
        _, top, _, bottom = self._box
        return bottom - (bottom - top) * (value - low) / (high - low)

    def grid(self, *, x_ticks: Sequence[tuple[float, str]] | None = None) -> None:
        """Lines and numbers of both axes."""
        left, top, right, bottom = self._box
        if x_ticks is None:
            ticks = nice_ticks(*self._x)
            x_ticks = list(zip(ticks, tick_texts(ticks), strict=True))
        for value, text in x_ticks:
            place = self.x(value)
            self._parts.append(_line(place, top, place, bottom, "grid"))
            self._text(place, bottom + 16, text, "tick", "middle")
        for tick, text in zip(self._y_ticks, tick_texts(self._y_ticks), strict=True):
            place = self.y(tick)
            self._parts.append(_line(left, place, right, place, "grid"))
            self._text(left - 6, place + 4, text, "tick", "end")
        x_name, y_name = self._names
        self._text((left + right) / 2, bottom + 35, x_name, "name", "middle")
        self._text(4, 14, y_name, "name", "start")

    def line(self, points: Iterable[tuple[float, float]], kind: str) -> None:
        """A line through points."""
        joined = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        self._parts.append(f'<polyline points="{joined}" class="line {escape(kind)}"/>')

    def area(
        self, upper: Sequence[tuple[float, float]], lower: Sequence[tuple[float, float]]
    ) -> None:
        """The area between two lines."""
        points = [*upper, *reversed(lower)]
        joined = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        self._parts.append(f'<polygon points="{joined}" class="area"/>')

    def dot(self, x: float, y: float, kind: str, *, radius: float = 3.5, title: str = "") -> None:
        """A dot, with what it tells when pointed at."""
        told = f"<title>{escape(title)}</title>" if title else ""
        self._parts.append(
            f'<circle cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="{radius:.1f}" '
            f'class="dot {escape(kind)}">{told}</circle>'
        )

    def block(
        self, x: tuple[float, float], y: tuple[float, float], kind: str, *, title: str = ""
    ) -> None:
        """A filled rectangle."""
        left, right = self.x(x[0]), self.x(x[1])
        top, bottom = self.y(y[1]), self.y(y[0])
        told = f"<title>{escape(title)}</title>" if title else ""
        self._parts.append(
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{max(0.5, right - left):.1f}" '
            f'height="{max(0.0, bottom - top):.1f}" class="{escape(kind)}">{told}</rect>'
        )

    def level(self, y: float, kind: str) -> None:
        """A line all across at a height."""
        self._parts.append(_line(self._box[0], self.y(y), self._box[2], self.y(y), kind))

    def stem(self, x: float, low: float, high: float, kind: str) -> None:
        """A vertical line."""
        place = self.x(x)
        self._parts.append(_line(place, self.y(low), place, self.y(high), kind))

    def words(
        self,
        x: float,
        y: float,
        text: str,
        *,
        shift: tuple[float, float] = (0.0, 0.0),
        anchor: str = "middle",
    ) -> None:
        """Text beside a point."""
        self._text(self.x(x) + shift[0], self.y(y) + shift[1], text, "mark", anchor)

    def _text(self, x: float, y: float, text: str, kind: str, anchor: str) -> None:
        self._parts.append(_words(x, y, text, kind, anchor))

    def svg(self) -> str:
        """The chart."""
        return _svg(self._parts, self._height, self._label)


def bars(rows: Sequence[tuple[str, float, str, str]], *, label: str) -> str:
    """Bars that lie, the name above each: (name, value, value as text, class)."""
    values = [value for _, value, _, _ in rows]
    low, high = min(0.0, *values), max(0.0, *values)
    scale = (WIDTH - 78.0) / ((high - low) or 1.0)
    zero = 4.0 - low * scale
    parts = [_line(zero, 0, zero, 42.0 * len(rows), "grid")]
    for number, (name, value, text, kind) in enumerate(rows):
        top = 42.0 * number
        parts.append(f'<text x="4" y="{top + 13:.1f}" class="mark">{escape(name)}</text>')
        begin, end = sorted((zero, zero + value * scale))
        parts.append(
            f'<rect x="{begin:.1f}" y="{top + 19:.1f}" width="{max(1.0, end - begin):.1f}" '
            f'height="13" rx="3" class="{escape(kind)}"/>'
            f'<text x="{end + 6:.1f}" y="{top + 30:.1f}" class="tick">{escape(text)}</text>'
        )
    return _svg(parts, 42.0 * len(rows), label)


def dot_rows(
    rows: Sequence[tuple[str, Sequence[float]]],
    legend: Sequence[tuple[str, str]],
    *,
    label: str,
    axis: str,
    zero: bool = True,
) -> str:
    """Rows of dots under a legend, the name above each row: (name, values), (name, class)."""
    values = [value for _, row in rows for value in row]
    low, high = min(values), max(values)
    if zero:
        low, high = min(0.0, low), max(0.0, high)
    low, high = _widened((low, high))
    left, right = 14.0, WIDTH - 14.0
    scale = (right - left) / (high - low)
    parts, top = _legend(legend)
    bottom = top + ROW * len(rows)
    ticks = nice_ticks(low, high)
    for tick, text in zip(ticks, tick_texts(ticks), strict=True):
        place = left + (tick - low) * scale
        kind = "axis" if tick == 0.0 else "grid"
        parts.append(_line(place, top, place, bottom, kind))
        parts.append(_words(place, bottom + 16, text, "tick", "middle"))
    for number, (name, row) in enumerate(rows):
        middle = top + ROW * number + 27.0
        parts.append(_words(left - 10, middle - 11, _cut(name, 54), "mark", "start"))
        ends = (left + (min(row) - low) * scale, left + (max(row) - low) * scale)
        parts.append(_line(ends[0], middle, ends[1], middle, "range"))
        for value, (who, kind) in zip(row, legend, strict=True):
            parts.append(
                f'<circle cx="{left + (value - low) * scale:.1f}" cy="{middle:.1f}" r="5.5" '
                f'class="dot {escape(kind)}"><title>{escape(who)}: {shown(value)}</title></circle>'
            )
    parts.append(_words((left + right) / 2, bottom + 35, axis, "name", "middle"))
    return _svg(parts, bottom + 42.0, label)


def _legend(entries: Sequence[tuple[str, str]]) -> tuple[list[str], float]:
    """Dots with their names, in lines, and the height that they take."""
    parts, x, y = [], 8.0, 12.0
    for name, kind in entries:
        text = _cut(name, 24)
        width = 26.0 + 7.2 * len(text)
        if x + width > WIDTH and x > 8.0:
            x, y = 8.0, y + 20.0
        parts.append(f'<circle cx="{x:.1f}" cy="{y - 4:.1f}" r="5" class="dot {escape(kind)}"/>')
        parts.append(_words(x + 10, y, text, "tick", "start"))
        x += width
    return parts, y + 10.0


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _words(x: float, y: float, text: str, kind: str, anchor: str) -> str:
    if not text:
        return ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(text)}</text>'
    )


def _svg(parts: Sequence[str], height: float, label: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH:.0f} {height:.0f}" role="img" aria-label="{escape(label)}">'
        f"{''.join(parts)}</svg>"
    )


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{escape(kind)}"/>'


def _widened(pair: tuple[float, float]) -> tuple[float, float]:
    """A range that is not empty."""
    low, high = pair
    if high > low:
        return low, high
    room = abs(low) * 0.1 or 1.0
    return low - room, high + room
