"""The tables of the report: groups, and what is in them.

A table that a reader can search and sort holds plain values, which the page draws; long ones are
cut, and say so.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clustruct.figures.numbers import cut, shown, signed
from clustruct.inspection import (
    Levels,
    final_estimator,
    prepared,
    thinned,
)
from clustruct.reporting.wording import Wording

__all__ = ["Cell", "Group", "Members", "feature_tables", "sample_tables", "task_tables"]

MOST_MEMBERS = 5000
MOST_SAMPLES = 500
MOST_GROUPS = 300
LEAST_PER_GROUP = 20
PREVIEW = 10
LONGEST_NAME = 80
MOST_PREDICTIONS = 8
MOST_CLASSES = 8  # with a cell each in the table of groups
MOST_SIDE_BY_SIDE = 4  # classes with columns of their own in the table of features
MOST_EXPONENT = 300.0


@dataclass(frozen=True)
class Cell:
    """A weight for one class or output: its name, the weight as text, its size from -1 to 1."""

    name: str
    text: str
    extent: float


@dataclass(frozen=True)
class Group:
    """A row of the table of groups."""

    label: int  # -1 for the zero group
    value: float  # a weight, or a share; with several outputs, the length of the weights
    text: str  # the value as people read it
    extent: float  # length of the bar, between -1 and 1
    size: int
    preview: tuple[tuple[str, str], ...]  # some members, each with its effect in raw units
    more: int  # members that the preview leaves out
    remark: str = ""  # the value in other words, such as a factor of the odds
    cells: tuple[Cell, ...] = ()  # the weight for each output, where there are several

    @property
    def name(self) -> str:
        """Its number, or "zero"."""
        return str(_label(self.label))


@dataclass(frozen=True)
class Members:
    """What is in the groups, for a table with a search."""

    thing: str  # what a row is
    columns: tuple[str, ...]
    numeric: tuple[bool, ...]  # which columns hold numbers
    rows: list[list[Any]]
    total: int  # rows there would be if none had been left out


def feature_tables(levels: Levels, wording: Wording) -> tuple[list[Group], Members]:
    """Groups of features, and the features."""
    groups = []
    values = levels.values
    lengths = values[:, 0] if values.shape[1] == 1 else np.linalg.norm(values, axis=1)
    largest = float(np.abs(values).max(initial=0.0)) or 1.0
    order: list[int] = [*range(len(levels.sizes)), *([-1] if levels.n_zero else [])]
    for label in thinned(np.array(order), MOST_GROUPS).tolist():
        members = levels.members(label)
        value = 0.0 if label < 0 else float(lengths[label])
        cells: tuple[Cell, ...] = ()
        if wording.several:
            mine = np.zeros(values.shape[1]) if label < 0 else values[label]
            cells = _cells(mine, wording.outputs.names, largest)
        groups.append(
            Group(
                label,
                value,
                shown(value, 4),
                value / largest,
                members.size,
                tuple((_short(levels.names[j]), _effect(wording, j)) for j in members[:PREVIEW]),
                max(0, members.size - PREVIEW),
                wording.odds_ratio(value),
                cells,
            )
        )
    columns, cells_of = _feature_columns(wording)
    rows = [
        [_short(levels.names[j]), _label(levels.labels[j]), *cells_of(j)]
        for j in _largest_weights(levels)
    ]
    names = ("feature", "group", *(name for name, _ in columns))
    numeric = (False, True, *(is_number for _, is_number in columns))
    return groups, Members("features", names, numeric, rows, levels.labels.size)


def _cells(weights: NDArray[np.float64], names: Sequence[str], largest: float) -> tuple[Cell, ...]:
    """A cell for each output; of many, those with the largest weights."""
    order = np.arange(weights.size)
    if weights.size > MOST_CLASSES:
        order = np.sort(np.argsort(-np.abs(weights), kind="stable")[:MOST_CLASSES])
    return tuple(
        Cell(_short(names[k]), shown(float(weights[k])), float(weights[k]) / largest)
        for k in order.tolist()
    )


def _effect(wording: Wording, j: int) -> str:
    return wording.effect(0, 0, j) if wording.has_effects and not wording.several else ""


def _feature_columns(wording: Wording) -> tuple[list[tuple[str, bool]], Callable[[int], list[Any]]]:
    """Columns of the table of features beyond name and group, and the cells of a feature."""
    weights, values, units = wording.weights[0], wording.values[0], wording.units
    names = [_short(name) for name in wording.outputs.names]
    if len(names) > MOST_SIDE_BY_SIDE:

        def largest(j: int) -> list[Any]:
            k = int(np.abs(weights[:, j]).argmax())
            return [_number(weights[k, j]), names[k]]

        return [("largest weight", True), ("of", False)], largest
    effects, odds = wording.has_effects, wording.outputs.kind == "odds" and not wording.several
    of = [f": {name}" for name in names] if wording.several else [""]
    columns = [(f"weight{name}", True) for name in of]
    columns += [*((f"effect{name}", True) for name in of), ("unit", False)] if effects else []
    columns += [("odds ratio", True)] if odds else []

    def cells(j: int) -> list[Any]:
        found: list[Any] = [_number(weight) for weight in weights[:, j]]
        if effects:
            found += [*(_number(value) for value in values[:, j]), units[j] or "no raw unit"]
        if odds:
            value = float(values[0, j] if effects else weights[0, j])
            found.append(_number(float(np.exp(min(value, MOST_EXPONENT)))))
        return found

    return columns, cells


def _largest_weights(levels: Levels) -> NDArray[np.intp]:
    """Features with the largest weights, and some of every group."""
    sizes = np.abs(levels.weights).max(axis=1)
    order = np.argsort(-sizes, kind="stable")
    if order.size <= MOST_MEMBERS:
        return order
    some = [
        levels.members(label)[:LEAST_PER_GROUP]
        for label in thinned(np.unique(levels.labels), MOST_GROUPS)
    ]
    kept = np.unique(np.concatenate([order[: MOST_MEMBERS - LEAST_PER_GROUP], *some]))
    return kept[np.argsort(-sizes[kept], kind="stable")][:MOST_MEMBERS]


def sample_tables(
    model: Any, X: Any, y: ArrayLike, wording: Wording
) -> tuple[list[Group], Members]:
    """Experts, and which of them every sample belongs to."""
    estimator = final_estimator(model)
    weights = wording.weights * wording.deviations
    sizes = np.bincount(np.asarray(estimator.labels_), minlength=len(weights))
    groups = []
    for q, share in enumerate(estimator.weights_):
        order = np.argsort(-np.abs(weights[q]), axis=None, kind="stable")[:PREVIEW]
        outputs, features = np.unravel_index(order, weights[q].shape)
        preview = tuple(
            _weight_chip(wording, q, int(k), int(j), str(wording.names[j]))
            for k, j in zip(outputs, features, strict=True)
        )
        groups.append(
            Group(
                q,
                float(share),
                f"{share:.1%}",
                float(share / estimator.weights_.max()),
                int(sizes[q]),
                preview,
                max(0, weights[q].size - PREVIEW),
            )
        )
    return groups, _sample_rows(model, X, np.asarray(y))


def _weight_chip(wording: Wording, q: int, k: int, j: int, name: str) -> tuple[str, str]:
    """A weight of an expert with its name, and its effect in raw units."""
    of = f" for {wording.outputs.names[k]}" if wording.several else ""
    text = f"{_short(name)}{_short(of)} {signed(float(wording.weights[q, k, j]))}"
    return text, wording.effect(q, k, j) if wording.has_effects else ""


def _sample_rows(model: Any, X: Any, y: NDArray[Any]) -> Members:
    estimator = final_estimator(model)
    rows = thinned(np.arange(len(y)), MOST_SAMPLES)
    sample = prepared(model, X, rows)
    labels = estimator.assign(sample, y[rows])
    predictions = estimator.predict_experts(sample)
    single = predictions.ndim == 2 and y.ndim == 1
    count = min(MOST_PREDICTIONS, predictions.shape[1]) if single else 0
    table = []
    for place, row in enumerate(rows):
        truth = _cell(y[row]) if y.ndim == 1 else ", ".join(shown(float(v)) for v in y[row])
        mine = [_cell(predictions[place, q]) for q in range(count)]
        table.append([int(row), truth, int(labels[place]), *mine])
    numbers = y.ndim == 1 and y.dtype.kind in "fiu"
    return Members(
        "samples",
        ("sample", "target", "expert", *(f"expert {q}" for q in range(count))),
        (True, numbers, True, *[predictions.dtype.kind in "fiu"] * count),
        table,
        len(y),
    )


def task_tables(model: Any) -> tuple[list[Group], Members]:
    """Groups of tasks, and the tasks."""
    estimator = final_estimator(model)
    labels = np.asarray(estimator.labels_)
    tasks = np.array([str(task) for task in estimator.tasks_], dtype=object)
    sizes = np.bincount(labels)
    groups = []
    for label in np.unique(labels).tolist():
        members = np.flatnonzero(labels == label)
        groups.append(
            Group(
                label,
                float(members.size),
                f"{members.size / tasks.size:.1%}",
                float(members.size / sizes.max()),
                members.size,
                tuple((_short(name), "") for name in tasks[members[:PREVIEW]]),
                max(0, members.size - PREVIEW),
            )
        )
    kept = thinned(np.arange(tasks.size), MOST_MEMBERS)
    rows = [[_short(tasks[i]), int(labels[i])] for i in kept]
    return groups, Members("tasks", ("task", "group"), (False, True), rows, tasks.size)


def _short(name: object) -> str:
    return cut(str(name), LONGEST_NAME)


def _label(label: int) -> int | str:
    return int(label) if label >= 0 else "zero"


def _cell(value: Any) -> Any:
    """A number, or text, as JSON has them."""
    if isinstance(value, np.floating | float):
        return _number(float(value))
    if isinstance(value, np.integer | int) and not isinstance(value, bool):
        return int(value)
    return _short(value)


def _number(value: float) -> float | None:
    """Five digits, which is what is shown; JSON knows no infinity."""
    return float(f"{value:.5g}") if np.isfinite(value) else None
