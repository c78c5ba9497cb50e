"""The charts of the report, from what `inspection` says of a model."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clustruct.inspection import (
    Convergence,
    Curve,
    ExpertLines,
    Levels,
    TaskMap,
    apart,
    thinned,
)
from clustruct.reporting.comparing.comparison import Comparison
from clustruct.reporting.svg import Frame, bars, dot_rows, shown
from clustruct.reporting.wording import tidy

__all__ = [
    "comparison_chart",
    "convergence_chart",
    "curve_chart",
    "dots_chart",
    "experts_chart",
    "levels_chart",
    "tasks_chart",
]

MOST_STEPS = 400
MOST_DOTS = 600
MOST_NAMED_TASKS = 25
N_COLOURS = 7
BINS = 60


def comparison_chart(found: Comparison) -> str:
    """How much of the constant model's loss every model removes, as bars.

    For numbers that is R² up to the mean of the training rows; with probabilities it is the share
    of the log loss.
    """
    constant = next(entry for entry in found.entries if entry.role == "constant").loss or 1.0
    same = [entry for entry in found.entries if len(entry.scores) >= len(found.mine.scores)]
    shares = [(entry, 1.0 - entry.loss / constant) for entry in same if entry.role != "constant"]
    rows = [
        (entry.name, max(-0.2, share), f"{share:.1%}", "fill ours" if entry.ours else "fill")
        for entry, share in shares
    ]
    return bars(rows, label="Share of the constant model's loss that each model removes")


def dots_chart(
    rows: Sequence[tuple[str, Sequence[float]]],
    thing: str,
    axis: str,
    *,
    zero: bool = True,
    names: Sequence[str] | None = None,
) -> str:
    """A row of dots for each name, one in the colour of each expert, group or class.

    Parameters
    ----------
    rows : sequence of (str, sequence of float)
        What is compared, and the value for each expert, group or class.
    thing : str
        What a dot is of.
    axis : str
        What the values are.
    zero : bool, default=True
        Whether zero belongs into the picture.
    names : sequence of str, default=None
        What the dots of a row are called; the thing with a number if None.
    """
    count = len(rows[0][1]) if rows else 0
    called = [f"{thing} {q}" for q in range(count)] if names is None else list(names)
    legend = [(name, f"c{q % N_COLOURS}") for q, name in enumerate(called)]
    return dot_rows(rows, legend, label=f"{axis} of each {thing}", axis=axis, zero=zero)


def levels_chart(
    levels: Levels, reference: NDArray[np.float64] | None, axis: str = "weight"
) -> str:
    """Levels at their weights, as tall as their groups; other weights as a histogram behind."""
    values = tidy(levels.values)[:, 0]
    sizes = levels.sizes.astype(np.float64)
    if levels.n_zero:
        values, sizes = np.append(values, 0.0), np.append(sizes, levels.n_zero)
    low, high = float(values.min()), float(values.max())
    if reference is not None:
        low, high = min(low, float(reference.min())), max(high, float(reference.max()))
    room = 0.06 * (high - low)
    top = float(sizes.max())
    frame = Frame(
        (low - room, high + room),
        (0.0, 1.12 * top),
        label="Weights and how many features share them",
        x_name=axis,
        y_name="features",
        counts=True,
    )
    frame.grid()
    if reference is not None:
        counts, edges = np.histogram(reference, bins=BINS, range=(low, high))
        tallest = counts.max() or 1
        for count, left, right in zip(counts, edges[:-1], edges[1:], strict=True):
            frame.block((left, right), (0.0, 0.8 * top * count / tallest), "ghost")
    last = -np.inf
    for place in np.argsort(values, kind="stable"):
        value, size = float(values[place]), float(sizes[place])
        sign = "zero" if value == 0.0 else ("neg" if value < 0.0 else "pos")
        frame.stem(value, 0.0, size, f"stem {sign}")
        title = f"weight {shown(value)}: {int(size):,} feature{'s' if size != 1 else ''}"
        frame.dot(value, size, f"mark-{sign}", radius=5, title=title)
        if value - last > 0.075 * (high - low):
            frame.words(value, size, shown(value, 2), shift=(0.0, -9.0))
            last = value
    return frame.svg()


def curve_chart(curve: Curve, x_name: str) -> str:
    """The score for every number of groups or experts, with one standard error."""
    places = np.arange(len(curve.counts), dtype=np.float64)
    upper, lower = curve.values + curve.deviations, curve.values - curve.deviations
    room = 0.08 * float(upper.max() - lower.min())
    frame = Frame(
        (-0.3, places.size - 0.7),
        (float(lower.min()) - room, float(upper.max()) + room),
        label=f"{curve.name} for every {x_name}",
        x_name=x_name,
        y_name=f"{curve.name} ({'larger' if curve.larger_is_better else 'smaller'} is better)",
    )
    step = -(-places.size // 12)
    frame.grid(x_ticks=[(float(i), curve.counts[i][:12]) for i in range(0, places.size, step)])
    frame.area(
        list(zip(places, upper, strict=True)),
        list(zip(places, lower, strict=True)),
    )
    frame.line(zip(places, curve.values, strict=True), "main")
    for place, value, deviation in zip(places, curve.values, curve.deviations, strict=True):
        chosen = place == curve.chosen
        spread = f" ± {shown(deviation)}" if deviation else ""
        title = f"{x_name} {curve.counts[int(place)]}: {shown(value, 4)}{spread}"
        frame.dot(
            place, value, "chosen" if chosen else "main", radius=6 if chosen else 3.5, title=title
        )
    return frame.svg()


def convergence_chart(found: Convergence) -> str:
    """The objective after every step, and the bound below it."""
    values = np.concatenate([stage.objectives for stage in found.stages])
    bound = found.bound
    low = float(values.min() if bound is None else min(values.min(), bound))
    high = float(values.max())
    room = 0.08 * (high - low)
    n_steps = max(1, values.size - len(found.stages))
    frame = Frame(
        (0.0, float(n_steps)),
        (low - room, high + room),
        label="Objective after every step",
        x_name="step",
        y_name="objective",
    )
    ticks = thinned(np.arange(n_steps + 1), 6)
    frame.grid(x_ticks=[(float(tick), str(tick)) for tick in ticks])
    if bound is not None:
        frame.level(bound, "bound")
        frame.words(0.0, bound, "proven bound", shift=(4.0, -5.0), anchor="start")
    begin = 0
    for number, stage in enumerate(found.stages):
        kept = thinned(np.arange(stage.objectives.size), MOST_STEPS)
        points = [(float(begin + step), float(stage.objectives[step])) for step in kept]
        frame.line(points, f"c{number % N_COLOURS}")
        for x, y in points if kept.size <= 60 else points[-1:]:
            frame.dot(x, y, f"c{number % N_COLOURS}", title=f"{stage.solver}: {shown(y, 6)}")
        begin += stage.objectives.size - 1  # the next begins where this one has ended
    return frame.svg()


def experts_chart(found: ExpertLines, unit: str = "") -> str:
    """Samples and the lines of their experts, along a feature in some unit."""
    low, high = float(found.x.min()), float(found.x.max())
    ends = np.array([low, high])
    lines = found.slopes[:, None] * ends + found.intercepts[:, None]
    bottom = float(min(found.y.min(), np.percentile(lines, 2)))
    top = float(max(found.y.max(), np.percentile(lines, 98)))
    room = 0.04 * (top - bottom)
    frame = Frame(
        (low - 0.02 * (high - low), high + 0.02 * (high - low)),
        (bottom - room, top + room),
        label="Samples and the lines of their experts",
        x_name=f"{found.feature[:40]}{unit}",
        y_name="answer, less what other features explain" if found.partial else "answer",
        height=320.0,
    )
    frame.grid()
    for i in thinned(np.arange(found.x.size), MOST_DOTS):
        frame.dot(
            float(found.x[i]),
            float(found.y[i]),
            f"c{found.labels[i] % N_COLOURS} faint",
            radius=2.6,
        )
    for q, (start, end) in enumerate(lines):
        frame.line([(low, start), (high, end)], f"c{q % N_COLOURS} thick")
    return frame.svg()


def tasks_chart(found: TaskMap) -> str:
    """The map of tasks."""
    places = np.concatenate([found.points, found.centroids])
    low, high = places.min(axis=0), places.max(axis=0)
    room = 0.07 * (high - low)
    frame = Frame(
        (float(low[0] - room[0]), float(high[0] + room[0])),
        (float(low[1] - room[1]), float(high[1] + room[1])),
        label="Map of tasks",
        x_name=f"first component of the predictors ({found.shares[0]:.0%} of their variance)",
        y_name=f"second component ({found.shares[1]:.0%})",
        height=320.0,
    )
    frame.grid()
    drawn = thinned(np.argsort(found.labels, kind="stable"), MOST_DOTS)
    for i in drawn:
        label = int(found.labels[i])
        kind = f"c{label % N_COLOURS}"
        place = (float(found.points[i, 0]), float(found.points[i, 1]))
        if label < len(found.centroids):
            middle = (float(found.centroids[label, 0]), float(found.centroids[label, 1]))
            frame.line([middle, place], f"{kind} hair")
        frame.dot(*place, kind, radius=4, title=f"{found.names[i]}, group {label}")
    named = apart(found.points) if found.names.size <= MOST_NAMED_TASKS else ()
    for i in named:
        place = (float(found.points[i, 0]), float(found.points[i, 1]))
        right = place[0] > float(low[0] + 0.75 * (high[0] - low[0]))
        shift, anchor = ((-7.0, 4.0), "end") if right else ((7.0, 4.0), "start")
        frame.words(*place, str(found.names[i])[:18], shift=shift, anchor=anchor)
    return frame.svg()
