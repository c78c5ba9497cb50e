"""How a fit came about and how it was chosen: curves of scores, paths, convergence, calibration."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from clustruct._typing import Floats
from clustruct.figures import marks as m
from clustruct.figures.marks import Axis, Dots, Figure, Line, Mark, counted_ticks
from clustruct.figures.numbers import log_scale, part_drawn, shown
from clustruct.inspection import Convergence, Curve, thinned
from clustruct.results import FeaturePath

MOST_STEPS, MOST_MARKED = 400, 60  # iterations of a solver that are drawn, and that have a dot
LARGEST_DOT, SMALLEST_DOT = 7.6, 1.7


def curve_figure(curve: Curve, things: str = "groups") -> Figure:
    """The score for every number of groups, with one standard error; the one chosen is marked."""
    places = np.arange(len(curve.counts), dtype=np.float64)
    titles = []
    for count, value, error in zip(curve.counts, curve.values, curve.deviations, strict=True):
        spread = f" ± {shown(float(error))}" if error else ""
        titles.append(f"number of {things} {count}: {shown(float(value), 4)}{spread}")
    chosen = slice(curve.chosen, curve.chosen + 1)
    dots = Dots(places, curve.values, 3.0, titles=titles)
    ring: dict[str, Any] = {"radius": 5.5, "hollow": True, "tone": "chosen"}
    marks = [
        m.Area(places, curve.values - curve.deviations, curve.values + curve.deviations),
        Line(places, curve.values),
        dots,
        replace(dots, x=places[chosen], y=curve.values[chosen], titles=titles[chosen], **ring),
    ]
    better = "larger" if curve.larger_is_better else "smaller"
    spread = ", with one standard error" if curve.deviations.any() else ""
    return Figure(
        f"{curve.counts[curve.chosen]} chosen{spread}",
        marks,
        Axis(f"number of {things}", counted_ticks(curve.counts)),
        Axis(f"{curve.name} ({better} is better)"),
    )


def objectives_figure(path: FeaturePath) -> Figure:
    """Objectives of each alpha along a path, and the room down to what is proved."""
    lines = [(a, k) for a in range(path.alphas.size) for k in range(len(path.n_nonzero))]
    drawn = lines[:: -(-len(lines) // m.N_COLOURS)]
    places = np.arange(len(path.n_clusters), dtype=np.float64)
    marks: list[Mark] = []
    for tone, (a, k) in enumerate(drawn):
        sparsity = "" if path.n_nonzero[k] is None else f", {path.n_nonzero[k]} nonzero"
        label, values = f"alpha {path.alphas[a]:.2g}{sparsity}", path.objectives[:, a, k]
        marks.append(m.Area(places, path.lower_bounds[:, a, k], values, 0.12, tone=tone))
        marks.append(Line(places, values, tone=tone, label=label))
        marks.append(Dots(places, values, 2.0, tone=tone))
    return Figure(
        "Objectives, and the room down to their bounds",
        marks,
        Axis("number of groups", counted_ticks([str(q) for q in path.n_clusters])),
        Axis("objective", log=log_scale(path.objectives.min(), path.objectives.max())),
        note=part_drawn(len(drawn), len(lines), "lines"),
    )


def values_figure(path: FeaturePath) -> Figure:
    """Values of the groups for every number of them, at the smallest alpha."""
    if path.coefs.ndim > 4:
        raise ValueError(
            "Values can be drawn for one output only, and this path has several. "
            'Choose quantity="objective".'
        )
    a = int(np.argmin(path.alphas))
    marks: list[Mark] = [m.Across(0.0, tone="soft", width=0.8)]
    for place in range(len(path.n_clusters)):
        labels, coefs = path.labels[place, a, 0], path.coefs[place, a, 0]
        for label in np.unique(labels).tolist():
            members = np.flatnonzero(labels == label)
            share = np.sqrt(members.size / labels.size)
            radius = SMALLEST_DOT + (LARGEST_DOT - SMALLEST_DOT) * share
            told = [f"{members.size:,} features: {shown(float(coefs[members[0]]))}"]
            tone = -1 if label < 0 else "main"
            marks.append(Dots([place], coefs[members[:1]], radius, 0.7, titles=told, tone=tone))
    return Figure(
        f"Values of the groups, alpha {path.alphas[a]:.2g}",
        marks,
        Axis("number of groups", counted_ticks([str(q) for q in path.n_clusters])),
        Axis("weight"),
    )


def convergence_figure(found: Convergence) -> Figure:
    """The objective after every iteration, solver by solver, and the bound below it."""
    marks: list[Mark] = []
    least = [float(stage.objectives.min()) for stage in found.stages]
    begin = 0
    for number, stage in enumerate(found.stages):
        kept = thinned(np.arange(stage.objectives.size), MOST_STEPS)
        marked = kept if kept.size <= MOST_MARKED else kept[-1:]
        marks.append(Line(begin + kept, stage.objectives[kept], tone=number, label=stage.solver))
        titles = [f"{stage.solver}: {shown(float(stage.objectives[i]), 6)}" for i in marked]
        values = stage.objectives[marked]
        marks.append(Dots(begin + marked, values, 2.5, titles=titles, tone=number))
        begin += stage.objectives.size - 1  # the next begins where this one has ended
    if found.bound is not None:
        least.append(found.bound)
        marks.append(m.Across(found.bound, tone="soft", dash="--", label="proven bound"))
    highest = max(float(stage.objectives.max()) for stage in found.stages)
    other = found.other_units
    return Figure(
        "Convergence",
        marks,
        Axis("iteration", whole=True),
        Axis("objective", log=log_scale(min(least), highest)),
        note=f"{other[0].solver}, in other units, not shown" if other else "",
    )


def calibration_figure(chances: Floats, shares: Floats, counts: Sequence[int], what: str) -> Figure:
    """How often what was predicted with some probability came true, in bins of rows."""
    titles = [
        f"{count:,} rows with a mean probability of {chance:.2f}: true in {share:.0%}"
        for chance, share, count in zip(chances, shares, counts, strict=True)
    ]
    marks = [
        Line([0.0, 1.0], [0.0, 1.0], 1.0, tone="soft"),
        Line(chances, shares),
        Dots(chances, shares, 4.5, titles=titles),
    ]
    return Figure(
        f"How often {what} was true, by its predicted probability",
        marks,
        Axis(f"predicted probability of {what[:40]}", limits=(0.0, 1.0)),
        Axis("share of rows where it was true", limits=(0.0, 1.0)),
    )
