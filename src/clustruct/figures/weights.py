"""Weights: of features and the levels they share, and of several linear models side by side."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from clustruct._typing import Floats
from clustruct.explanation.contrasts import Contrasts, GateView
from clustruct.figures.marks import N_COLOURS, Across, Axis, Dots, Figure, Mark, Segments, Text
from clustruct.figures.numbers import cut, part_drawn, shown, signed
from clustruct.inspection import Levels, thinned

MOST_NAMED = 40  # features with their names at the axis
MOST_ROWS = 30
LONGEST_NAME = 28
ROOM_FOR_LEVELS = 0.14  # at both sides, of the width, since levels are written beside their line


def weights_figure(
    levels: Levels,
    axis: str = "weight",
    outputs: Sequence[str] | None = None,
    reference: Floats | None = None,
    *,
    most: int = 2000,
) -> Figure:
    """Weights of features in order, at the levels they share; with several outputs, of each group.

    A reference holds other weights of the same features, drawn as dots joined to their level.
    """
    if levels.values.shape[1] > 1:
        return _weights_of_outputs(levels, axis, outputs)
    weights = levels.weights[:, 0]
    dots = weights if reference is None else reference
    order = np.lexsort((dots, weights))
    place = np.empty(order.size)
    place[order] = np.arange(order.size)
    drawn = thinned(order, most)
    named = drawn.size <= MOST_NAMED
    marks: list[Mark] = [Across(0.0, vertical=True, tone="soft", width=0.8)]
    for label in np.unique(levels.labels).tolist():
        members = drawn[levels.labels[drawn] == label]
        rows = place[levels.members(label)]
        level = 0.0 if label < 0 else float(levels.values[label, 0])
        ends = np.array([[level, rows.min() - 0.4, level, rows.max() + 0.4]])
        marks.append(Segments(ends, width=2.5, tone=label))
        if reference is not None:
            same = np.full(members.size, level)
            links = np.stack([dots[members], place[members], same, place[members]], axis=1)
            marks.append(Segments(links, width=0.8, opacity=0.5, tone=label))
        told = [_told(levels, j, dots[j], reference is not None) for j in members]
        shape, radius = max(label, 0) // N_COLOURS, 3.0 if named else 1.6
        points = dots[members], place[members]
        marks.append(Dots(*points, radius, shape=shape, titles=told, tone=label))
        # In its lowest row the group's dot lies left of the level: there is room to the right.
        marks.append(Text(level, rows.min(), signed(level), (6.0, -3.0), bold=True, tone=label))
    ticks = [(place[j], cut(str(levels.names[j]), LONGEST_NAME)) for j in drawn]
    low, high = min(0.0, dots.min(), weights.min()), max(0.0, dots.max(), weights.max())
    room = ROOM_FOR_LEVELS * float(high - low) or 1.0
    return Figure(
        _title(levels),
        marks,
        Axis(axis, limits=(float(low) - room, float(high) + room)),
        Axis(ticks=ticks) if named else Axis("features, in order"),
        note=part_drawn(drawn.size, order.size, "features"),
    )


def _told(levels: Levels, j: int, dot: float, is_reference: bool) -> str:
    """The name of a feature and its weight, with the group it is in."""
    label = int(levels.labels[j])
    group = "weight 0" if label < 0 else f"group {label}, weight {shown(levels.weights[j, 0])}"
    return f"{levels.names[j]}: {group}{f', without groups {shown(dot)}' if is_reference else ''}"


def _weights_of_outputs(levels: Levels, axis: str, outputs: Sequence[str] | None) -> Figure:
    """A row for each group of features, a dot for its weight for each output."""
    count = len(levels.sizes)
    drawn = thinned(np.arange(count), MOST_ROWS)
    rows = []
    for q in drawn.tolist():
        members = levels.names[levels.members(q)]
        more = f" and {members.size - 3:,} more" if members.size > 3 else ""
        rows.append((f"{q}: {', '.join(map(str, members[:3]))}{more}", levels.values[q].tolist()))
    names = outputs or [str(k) for k in range(levels.values.shape[1])]
    note = part_drawn(drawn.size, count, "groups")
    return rows_figure(_title(levels), rows, names, axis, note=note)


def _title(levels: Levels) -> str:
    count = len(levels.sizes)
    zero = f", {levels.n_zero:,} zero" if levels.n_zero else ""
    return f"{levels.labels.size:,} weights, {count} level{'s' * (count != 1)}{zero}"


def rows_figure(
    title: str,
    rows: Sequence[tuple[str, Sequence[float]]],
    names: Sequence[str],
    axis: str,
    *,
    legend: str = "",
    zero: bool = True,
    note: str = "",
) -> Figure:
    """A row of dots for each thing that is compared, the first on top.

    Each row has a name and the values of all experts, groups or classes; `names` are what these are
    called, `axis` what the values are, and `zero` says whether zero belongs into the picture.
    """
    places = np.arange(len(rows), dtype=np.float64)[::-1]
    values = np.array([row for _, row in rows], dtype=np.float64)
    ends = np.stack([values.min(axis=1), places, values.max(axis=1), places], axis=1)
    marks: list[Mark] = [Across(0.0, vertical=True, tone="soft", width=0.8)] if zero else []
    marks.append(Segments(ends, width=3.0, opacity=0.6, tone="ghost"))
    for number, name in enumerate(names):
        called = f"{legend} {name}" if legend else name
        told = [f"{called}: {shown(float(value))}" for value in values[:, number]]
        style: dict[str, Any] = {"titles": told, "tone": number, "label": name}
        marks.append(Dots(values[:, number], places, 4.0, 0.85, number // N_COLOURS, **style))
    ticks = [(place, name) for place, (name, _) in zip(places.tolist(), rows, strict=True)]
    return Figure(
        title,
        marks,
        Axis(axis),
        Axis(ticks=ticks, limits=(-0.5, len(rows) - 0.5), rows=True),
        legend,
        note,
    )


def contrasts_figure(found: Contrasts, axis: str, most: int = MOST_ROWS) -> Figure:
    """The weights in which models differ most, the widest on top."""
    several = len(found.outputs.names) > 1
    pairs = found.widest(most) or [(0, 0)]
    rows = []
    for k, j in pairs:
        of = f", {cut(found.outputs.names[k], 16)}" if several else ""
        rows.append((cut(str(found.names[j]), LONGEST_NAME) + of, found.weights[:, k, j].tolist()))
    names = [str(q) for q in range(len(found.weights))]
    note = part_drawn(len(pairs), found.weights[0].size, "weights")
    title = f"Weights of the {found.things}"
    return rows_figure(title, rows, names, axis, legend=found.thing, note=note)


def middles_figure(found: Contrasts, most: int) -> Figure:
    """The score of the average sample, by each model."""
    outputs = found.outputs.names[:most]
    rows = [
        (name or "average sample", found.middles[:, k].tolist()) for k, name in enumerate(outputs)
    ]
    axis = f"{found.outputs.quantity} for the average sample"
    title = f"{axis[0].upper()}{axis[1:]}"
    names = [str(q) for q in range(len(found.weights))]
    return rows_figure(title, rows, names, axis, legend=found.thing, zero=False)


def gate_figure(gate: GateView, most: int) -> Figure:
    """The features by which a gate sends samples to experts."""
    order = np.argsort(-np.ptp(gate.pulls, axis=0), kind="stable")[:most]
    rows = [(str(gate.names[j]), gate.pulls[:, j].tolist()) for j in order]
    axis = (
        "log odds of being sent there, per standard deviation"
        if gate.linear
        else "mean of the samples sent there, in standard deviations"
    )
    names = [str(q) for q in range(len(gate.pulls))]
    return rows_figure("What the gate looks at", rows, names, axis, legend="expert")
