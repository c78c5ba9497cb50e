"""How often groups come again: a map of co-membership, and the members that waver."""

import numpy as np

from clustruct.figures.marks import Across, Axis, Bars, Cells, Figure, Mark, Text
from clustruct.figures.numbers import cut, part_drawn
from clustruct.inspection import thinned
from clustruct.results.stability import FIRM, StabilityResult
from clustruct.results.tables import plural

LONGEST_NAME = 28


def map_figure(found: StabilityResult, most: int = 200) -> Figure:
    """Co-membership of pairs, in the order of the groups and the firmest of each first.

    Without labels of single resamples, as models keep it, that of groups.
    """
    if found.labels is None:
        return _group_map(found)
    order = np.lexsort((-found.firmness, found.model_labels))
    drawn = thinned(order, most)
    together = np.nan_to_num(
        np.stack([np.asarray(found.co_membership(i))[drawn] for i in drawn.tolist()])
    )
    edges = np.arange(drawn.size + 1, dtype=np.float64)
    labels = found.model_labels[drawn]
    bounds = np.flatnonzero(np.diff(labels)) + 1.0
    marks: list[Mark] = [Cells(edges, edges, together, "co-membership")]
    for bound in bounds.tolist():
        marks += [Across(bound, tone="soft", width=0.6)]
        marks += [Across(bound, vertical=True, tone="soft", width=0.6)]
    ends = np.concatenate([[0.0], bounds, [float(drawn.size)]])
    middles = 0.5 * (ends[:-1] + ends[1:])
    names = ["zero" if q < 0 else str(q) for q in np.unique(labels).tolist()]
    ticks = list(zip(middles.tolist(), names, strict=True))
    limits = (0.0, float(drawn.size))
    return Figure(
        f"Co-membership in {plural(found.n_resamples, 'resample')}",
        marks,
        Axis("group", ticks, limits),
        Axis("group", ticks, limits),
        note=part_drawn(drawn.size, order.size, found.kind),
        height=400.0,
    )


def _group_map(found: StabilityResult) -> Figure:
    """Mean co-membership of groups; a group of one is as firm as its member."""
    alone = np.diag(found.group_firmness)
    together = np.where(np.isnan(found.together), alone, found.together)
    edges = np.arange(found.groups.size + 1, dtype=np.float64)
    names = ["zero" if q < 0 else str(q) for q in found.groups.tolist()]
    axis = Axis("group", [(k + 0.5, name) for k, name in enumerate(names)], (0.0, edges[-1]))
    title = f"Co-membership in {plural(found.n_resamples, 'resample')}"
    return Figure(title, [Cells(edges, edges, together, "co-membership")], axis, axis, height=320.0)


def wavering_figure(found: StabilityResult, most: int = 20) -> Figure:
    """The members that change groups most often, and how often they do."""
    items = found.wavering()
    drawn = items[:most] if items.size else np.argsort(found.firmness, kind="stable")[:1]
    away = 1.0 - found.firmness[drawn]
    rows = np.arange(drawn.size, dtype=np.float64)[::-1]
    labels = found.model_labels[drawn].tolist()
    names = [str(i) if found.names is None else cut(found.names[i], LONGEST_NAME) for i in drawn]
    marks: list[Mark] = [
        Bars(rows - 0.18, away, 0.36, labels),
        Across(1.0 - FIRM, vertical=True, tone="soft", dash="--"),
    ]
    marks += [
        Text(0.0, row, name, (0.0, 2.0), tone="ink")
        for row, name in zip(rows.tolist(), names, strict=True)
    ]
    return Figure(
        f"{items.size:,} of {found.firmness.size:,} {found.kind} waver",
        marks,
        Axis("share of the resamples in another group", limits=(0.0, 1.0)),
        Axis("", [], (-0.6, drawn.size - 0.2)),
        note=part_drawn(drawn.size, items.size, found.kind) if items.size else "",
        height=100.0 + 28.0 * drawn.size,
    )
