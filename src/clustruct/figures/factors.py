"""Levels of factors with their exposure, and how rows are ranked: what actuaries look at first."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from clustruct._typing import Floats
from clustruct.figures.marks import (
    Across,
    Axis,
    Dots,
    Figure,
    Line,
    Mark,
    Segments,
    Tone,
    counted_ticks,
)
from clustruct.figures.numbers import nice_ticks, shown, tick_texts

# Parts of the span of values: the longest bar of exposure, and the room that bars take.
LONGEST_BAR, ROOM_FOR_BARS, ROOM = 0.3, 0.42, 0.06
WIDTH, HEIGHT_OF_ROW, HEIGHT_OF_FRAME = 390.0, 21.0, 96.0
LETTERS = 56  # that fit below an axis
LONGEST_NAME = 12  # below an axis
MOST_DOTS = 60  # beyond that, a line of steps has none
COMMON = 0.03  # share of the exposure of levels whose errors are drawn in full


@dataclass(frozen=True, eq=False)
class LevelSeries:
    """A value for each level, NaN where it is not known: a line in the order of levels, or dots.

    errors: half the length of a bar around each value.
    """

    label: str
    values: Floats
    line: bool = True
    tone: Tone = "main"
    errors: Floats | None = None


@dataclass(frozen=True, eq=False)
class FactorLevelsView:
    """Levels of a factor, or bands of them, in the order in which they are drawn.

    shares: of the exposure, or of that of held-out rows.
    ordered: whether levels have an order of their own; otherwise each has a row with its name.
    in_order: which of them belong to that order; missing values do not.
    """

    title: str
    names: Sequence[str]
    shares: Floats
    ordered: bool
    in_order: NDArray[np.bool_]
    series: Sequence[LevelSeries] = field(default_factory=tuple)
    value_name: str = ""
    reference: float | None = None  # a value to draw a line at


def factor_figure(view: FactorLevelsView) -> Figure:
    """Values of the levels above bars of their exposure; levels without order as rows."""
    count = len(view.names)
    known = np.concatenate([_reach(each, view.shares) for each in view.series])
    known = known[np.isfinite(known)]
    if view.reference is not None:
        known = np.append(known, view.reference)
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    span = (high - low) or abs(high) * 0.2 or 1.0
    base = low - ROOM_FOR_BARS * span
    places: Floats = np.arange(count, dtype=np.float64)
    if not view.ordered:
        places = places[::-1]
    bars = base + LONGEST_BAR * span * view.shares / (float(view.shares.max(initial=0.0)) or 1.0)
    ends = np.stack([places, np.full(count, base), places, bars], axis=1)
    largest = f"exposure, at most {float(view.shares.max(initial=0.0)):.1%}"
    thick = max(1.0, 0.7 * WIDTH / count) if view.ordered else 0.5 * HEIGHT_OF_ROW
    bar = Segments(ends if view.ordered else _turned(ends), thick, tone="ghost", label=largest)
    marks: list[Mark] = [bar]
    if view.reference is not None:
        marks.append(Across(view.reference, not view.ordered, 0.8, "--", tone="soft"))
    for each in view.series:
        marks += _series_marks(view, each, places, (low, high))
    ticks = nice_ticks(low, high)
    values = Axis(
        view.value_name,
        list(zip(ticks, tick_texts(ticks), strict=True)),
        (base, high + ROOM * span),
    )
    if not view.ordered:
        named = [(float(p), name) for p, name in zip(places, view.names, strict=True)]
        rows = Axis(ticks=named, limits=(-0.6, count - 0.4))
        height = HEIGHT_OF_FRAME + HEIGHT_OF_ROW * count
        return Figure(view.title, marks, values, rows, height=height)
    longest = max((min(len(name), LONGEST_NAME) for name in view.names), default=1)
    most = max(2, LETTERS // (longest + 2))
    return Figure(
        view.title,
        marks,
        Axis(ticks=counted_ticks(view.names, most), limits=(-0.6, count - 0.4)),
        values,
    )


def _series_marks(
    view: FactorLevelsView, each: LevelSeries, places: Floats, limits: tuple[float, float]
) -> list[Mark]:
    """A line of steps, or dots with bars of their errors, which end at the limits."""
    marks: list[Mark] = []
    known = np.isfinite(each.values)
    titles = np.array(
        [
            f"{name}: {each.label} {shown(float(value))}, exposure {share:.1%}"
            for name, value, share in zip(view.names, each.values, view.shares, strict=True)
        ],
        dtype=object,
    )
    if each.errors is not None:
        some = known & np.isfinite(each.errors)
        low, high = (np.clip((each.values + s * each.errors)[some], *limits) for s in (-1.0, 1.0))
        ends = np.stack([places[some], low, places[some], high], axis=1)
        marks.append(Segments(ends if view.ordered else _turned(ends), 1.2, 0.7, tone=each.tone))
    steps = known & view.in_order if view.ordered and each.line else np.zeros_like(known)
    if steps.any():
        x = np.stack([places[steps] - 0.5, places[steps] + 0.5], axis=1).ravel()
        label = each.label
        marks.append(Line(x, np.repeat(each.values[steps], 2), 2.0, tone=each.tone, label=label))
    dotted = known if len(view.names) <= MOST_DOTS or not each.line else known & ~steps
    if dotted.any():
        x, y = places[dotted], each.values[dotted]
        x, y = (x, y) if view.ordered else (y, x)
        label = "" if steps.any() else each.label
        radius = 3.2 if not each.line or not view.ordered else 2.2
        told = titles[dotted].tolist()
        marks.append(Dots(x, y, radius, titles=told, tone=each.tone, label=label))
    return marks


def _reach(each: LevelSeries, shares: Floats) -> Floats:
    """Values, with the ends of their errors where levels are not rare; not below 0 for these."""
    if each.errors is None:
        return each.values
    errors = np.where(shares >= COMMON, np.nan_to_num(each.errors), 0.0)
    low = each.values - errors
    if not (each.values < 0.0).any():
        low = np.maximum(low, 0.0)
    return np.concatenate([low, each.values + errors])


def _turned(ends: Floats) -> Floats:
    """Segments with both axes exchanged."""
    return ends[:, [1, 0, 3, 2]]


def lift_figure(observed: Floats, predicted: Floats, value_name: str) -> Figure:
    """Observed and predicted means of equal parts of the exposure, by rising predictions."""
    places = np.arange(1.0, observed.size + 1.0)
    marks: list[Mark] = []
    for label, values, tone in (("predicted", predicted, "main"), ("observed", observed, "chosen")):
        told = [f"part {int(p)}: {label} {shown(v)}" for p, v in zip(places, values, strict=True)]
        marks.append(Line(places, values, tone=tone, dash="" if tone == "main" else "--"))
        marks.append(Dots(places, values, 4.0, titles=told, tone=tone, label=label))
    ticks = [(place, str(int(place))) for place in places]
    return Figure(
        "Lift: observed and predicted means by tenths of the exposure",
        marks,
        Axis("tenth of the exposure, by predicted value", ticks),
        Axis(value_name),
    )
