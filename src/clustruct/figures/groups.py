"""Bars: the groups of a model with their sizes and members, and models in a comparison."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustruct import inspection
from clustruct._typing import Floats, Labels
from clustruct.explanation.effects import weight_axis
from clustruct.figures.marks import Across, Axis, Bars, Figure, Mark, Text
from clustruct.figures.numbers import cut, part_drawn
from clustruct.results.tables import plural

MOST_MEMBERS = 4
LEAST_SHARE = -0.2  # of the loss that a model removes: longer bars say no more


@dataclass(frozen=True, eq=False)
class GroupBars:
    """Bars of each group, one or one for every class: lengths, what is written, its label."""

    lengths: Floats
    texts: tuple[str, ...]
    labels: Labels
    title: str
    length_name: str
    classes: tuple[str, ...] = ()


def groups_of(model: Any, names: Sequence[str] | None = None) -> GroupBars:
    """The groups of a fitted model, as bars."""
    make = {"features": _of_features, "samples": _of_samples, "tasks": _of_tasks}
    return make[inspection.kind_of(model)](model, names)


def groups_figure(bars: GroupBars, most: int = 30) -> Figure:
    """A bar for each group, with its size and some of its members."""
    count = len(bars.lengths)
    drawn = inspection.thinned(np.arange(count), most)
    lengths = bars.lengths[drawn]
    rows = np.arange(drawn.size, dtype=np.float64)[::-1]
    labels = bars.labels[drawn].tolist()
    marks: list[Mark] = [Across(0.0, vertical=True, tone="soft", width=0.8)]
    thickness = 0.44 / len(bars.classes) if bars.classes else 0.36
    for k, name in enumerate(bars.classes):
        places = rows - thickness * (k + 0.5)
        marks.append(Bars(places, lengths[:, k], thickness, tone=k, label=cut(name, 28)))
    if not bars.classes:
        marks.append(Bars(rows - 0.18, lengths, thickness, labels))
    left = min(0.0, float(lengths.min()))
    for row, group in zip(rows, drawn, strict=True):
        marks.append(Text(left, row, bars.texts[group], (0.0, 2.0), tone="ink"))
    ticks = [(row, "zero" if q < 0 else str(q)) for row, q in zip(rows, labels, strict=True)]
    return Figure(
        bars.title,
        marks,
        Axis(bars.length_name),
        Axis("group", ticks, (-0.6, drawn.size - 0.2), rows=True),
        note=part_drawn(drawn.size, count, "groups"),
    )


def _of_features(model: Any, names: Sequence[str] | None) -> GroupBars:
    levels = inspection.levels_of(model, names)
    several = levels.values.shape[1] > 1
    labels = np.arange(len(levels.sizes))
    lengths = levels.values if several else levels.values[:, 0]
    if levels.n_zero:
        labels = np.append(labels, -1)
        lengths = np.concatenate([lengths, np.zeros_like(lengths[:1])])
    return GroupBars(
        lengths,
        tuple(_members("feature", levels.names[levels.members(q)]) for q in labels.tolist()),
        labels,
        f"{plural(levels.labels.size, 'feature')} in {plural(len(levels.sizes), 'group')}",
        weight_axis(model),
        inspection.outputs_of(model).names if several else (),
    )


def _of_samples(model: Any, names: Sequence[str] | None) -> GroupBars:
    estimator = inspection.final_estimator(model)
    known = inspection.feature_names(model, names)
    texts = []
    for q, share in enumerate(estimator.weights_):
        size = np.linalg.norm(np.atleast_2d(estimator.experts_[q]), axis=0)
        largest = known[np.argsort(-size, kind="stable")[:3]]
        told = ", ".join(cut(name, 28) for name in largest)
        texts.append(f"{share:.0%}, largest weights: {told}")
    return GroupBars(
        np.asarray(estimator.weights_, dtype=np.float64),
        tuple(texts),
        np.arange(len(estimator.weights_)),
        f"{plural(len(estimator.labels_), 'sample')}, {plural(len(estimator.weights_), 'expert')}",
        "share of the samples",
    )


def _of_tasks(model: Any, names: Sequence[str] | None) -> GroupBars:
    estimator = inspection.final_estimator(model)
    labels = np.asarray(estimator.labels_)
    tasks = np.array([str(task) for task in estimator.tasks_], dtype=object)
    present = np.unique(labels)
    return GroupBars(
        np.bincount(labels)[present].astype(np.float64),
        tuple(_members("task", tasks[labels == label]) for label in present),
        present,
        f"{plural(tasks.size, 'task')} in {plural(present.size, 'group')}",
        "number of tasks",
    )


def _members(thing: str, names: NDArray[np.object_]) -> str:
    """How many members there are, and the first of them."""
    more = ", \N{HORIZONTAL ELLIPSIS}" if names.size > MOST_MEMBERS else ""
    first = ", ".join(cut(name, 18) for name in names[:MOST_MEMBERS])
    return f"{plural(names.size, thing)}: {first}{more}"


def comparison_figure(shares: Sequence[tuple[str, float, bool]]) -> Figure:
    """The part of the constant model's loss that each model removes: name, part, whether ours."""
    rows = np.arange(len(shares), dtype=np.float64)[::-1]
    lengths = [max(LEAST_SHARE, share) for _, share, _ in shares]
    tones = ["main" if ours else "ghost" for _, _, ours in shares]
    marks: list[Mark] = [Bars(rows, lengths, 0.31, tones)]
    for row, length, (_, share, _) in zip(rows, lengths, shares, strict=True):
        marks.append(Text(max(0.0, length), row, f"{share:.1%}", (6.0, -4.0), tone="ink"))
    low, high = min(0.0, *lengths), max(0.0, *lengths)
    if low < 0.0:
        marks.append(Across(0.0, vertical=True, tone="ghost"))
    room = (high - low) or 1.0
    ticks = [(row, name) for row, (name, _, _) in zip(rows, shares, strict=True)]
    return Figure(
        "Share of the constant model's loss that each model removes",
        marks,
        Axis(ticks=(), limits=(low, high + 0.2 * room)),
        Axis(ticks=ticks, rows=True),
    )
