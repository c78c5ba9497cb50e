"""Samples about the lines of their experts, and tasks about the centres of their groups."""

import numpy as np

from clustruct.figures.marks import N_COLOURS, Axis, Dots, Figure, Line, Mark, Segments, Text
from clustruct.figures.numbers import cut, part_drawn
from clustruct.inspection import ExpertLines, TaskMap, apart, thinned
from clustruct.results.tables import plural

LONGEST_NAME = 28
RIGHT = 0.75  # names of points beyond this part of the width are written to their left


def experts_figure(found: ExpertLines, unit: str = "") -> Figure:
    """Samples along a feature, in some unit, and the lines of their experts."""
    ends = np.array([found.x.min(), found.x.max()])
    dots: list[Mark] = []
    lines: list[Mark] = []
    for q, (slope, intercept) in enumerate(zip(found.slopes, found.intercepts, strict=True)):
        mine = found.labels == q
        shape, share = q // N_COLOURS, mine.mean() if mine.size else 0.0
        dots.append(Dots(found.x[mine], found.y[mine], 2.1, 0.45, shape, tone=q))
        lines.append(Line(ends, slope * ends + intercept, 2.0, tone=q, label=f"{q}: {share:.0%}"))
    return Figure(
        "Samples and their experts",
        [*dots, *lines],
        Axis(f"{cut(found.feature, 40)}{unit}"),
        Axis("target, less what other features explain" if found.partial else "target"),
        legend="expert",
        note=part_drawn(found.x.size, found.n_samples, "samples"),
        height=320.0,
    )


def tasks_figure(found: TaskMap, max_names: int = 40, most: int | None = None) -> Figure:
    """Tasks in the plane in which their predictors differ most, joined to their centres."""
    order = np.argsort(found.labels, kind="stable")
    drawn = order if most is None else thinned(order, most)
    groups = np.unique(found.labels)
    marks: list[Mark] = []
    for label in groups.tolist():
        mine = drawn[found.labels[drawn] == label]
        if label < len(found.centroids):
            centre = found.centroids[label]
            links = np.hstack([np.tile(centre, (mine.size, 1)), found.points[mine]])
            marks.append(Segments(links, opacity=0.3, tone=label))
            marks.append(Dots(centre[:1], centre[1:], 5.5, shape=5, tone=label,
                              titles=[f"centre of group {label}"]))  # fmt: skip
        titles = [f"{found.names[i]}, group {label}" for i in mine]
        x, y = found.points[mine].T
        marks.append(Dots(x, y, 2.6, shape=label // N_COLOURS, titles=titles, tone=label))
    notes = [part_drawn(drawn.size, order.size, "tasks")]
    if found.names.size > max_names:
        notes.append("too many tasks to name")
    else:
        low, high = found.points[:, 0].min(), found.points[:, 0].max()
        for i in apart(found.points):
            x, y = found.points[i].tolist()
            right = x > low + RIGHT * (high - low)
            shift, anchor = ((-6.0, -3.0), "end") if right else ((6.0, -3.0), "start")
            name = cut(str(found.names[i]), LONGEST_NAME)
            marks.append(Text(x, y, name, shift, anchor, tone="ink"))
    first, second = found.shares
    return Figure(
        f"{plural(found.names.size, 'task')} in {plural(groups.size, 'group')}",
        marks,
        Axis(f"first component of the predictors ({first:.0%} of their variance)"),
        Axis(f"second component ({second:.0%})"),
        note="; ".join(filter(None, notes)),
        height=320.0,
    )
