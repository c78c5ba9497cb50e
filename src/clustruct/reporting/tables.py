"""The tables of the report: groups, and what is in them.

A table that a reader can search and sort holds plain values, which the page draws; long ones are
cut, and say so.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from clustruct._typing import Floats, Indices
from clustruct.figures.numbers import cut, shown, signed
from clustruct.inspection import Levels, final_estimator, prepared, thinned
from clustruct.reporting.comparing.samples import Data
from clustruct.reporting.wording import Wording

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


class Cell(NamedTuple):
    """A weight for one class or output: its name, the weight as text, its size from -1 to 1."""

    name: str
    text: str
    extent: float


class Group(NamedTuple):
    """A row of the table of groups."""

    label: int  # -1 for the zero group
    value: float  # a weight, or a share; with several outputs, the length of the weights
    text: str  # the value as people read it
    extent: float  # length of the bar, between -1 and 1
    size: int
    preview: list[tuple[str, str]]  # some members, each with its effect in raw units
    more: int  # members that the preview leaves out
    remark: str = ""  # the value in other words, such as a factor of the odds
    cells: Sequence[Cell] = ()  # the weight for each output, where there are several

    @property
    def name(self) -> str:
        """Its number, or "zero"."""
        return str(_label(self.label))


class Members(NamedTuple):
    """What is in the groups, for a table with a search."""

    thing: str  # what a row is
    columns: Sequence[str]
    numeric: Sequence[bool]  # which columns hold numbers
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
        cells: Sequence[Cell] = ()
        if wording.several:
            mine = np.zeros(values.shape[1]) if label < 0 else values[label]
            cells = _cells(mine, wording.outputs.names, largest)
        preview = [
            (short_name(levels.names[j]), "" if wording.several else wording.effect(0, 0, j))
            for j in members[:PREVIEW]
        ]
        bar, more = (value, shown(value, 4), value / largest), max(0, members.size - PREVIEW)
        remark = wording.odds_ratio(value)
        groups.append(Group(label, *bar, members.size, preview, more, remark, cells))
    kept = _largest_weights(levels)
    columns: list[tuple[str, list[Any]]] = [
        ("feature", [short_name(levels.names[j]) for j in kept]),
        ("group", [_label(levels.labels[j]) for j in kept]),
        *_feature_columns(wording, kept),
    ]
    rows = [list(row) for row in zip(*(column for _, column in columns), strict=True)]
    names = [name for name, _ in columns]
    numeric = [name not in ("feature", "unit", "of") for name in names]
    return groups, Members("features", names, numeric, rows, levels.labels.size)


def _cells(weights: Floats, names: Sequence[str], largest: float) -> list[Cell]:
    """A cell for each output; of many, those with the largest weights."""
    order = np.sort(np.argsort(-np.abs(weights), kind="stable")[:MOST_CLASSES])
    return [
        Cell(short_name(names[k]), shown(float(weights[k])), float(weights[k]) / largest)
        for k in order
    ]


def _feature_columns(wording: Wording, kept: Indices) -> Iterator[tuple[str, list[Any]]]:
    """Columns of the table of features beyond name and group."""
    weights, values = wording.weights[0][:, kept], wording.values[0][:, kept]
    names = [short_name(name) for name in wording.outputs.names]
    if len(names) > MOST_SIDE_BY_SIDE:
        largest = np.abs(weights).argmax(axis=0)
        yield "largest weight", _numbers(weights[largest, np.arange(kept.size)])
        yield "of", [names[k] for k in largest]
        return
    of = [f": {name}" for name in names] if wording.several else [""]
    for name, row in zip(of, weights, strict=True):
        yield f"weight{name}", _numbers(row)
    if wording.has_effects:
        for name, row in zip(of, values, strict=True):
            yield f"effect{name}", _numbers(row)
        yield "unit", [wording.units[j] or "no raw unit" for j in kept]
    if wording.outputs.kind == "odds" and not wording.several:
        odds = values[0] if wording.has_effects else weights[0]
        yield "odds ratio", _numbers(np.exp(np.minimum(odds, MOST_EXPONENT)))


def _largest_weights(levels: Levels) -> Indices:
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


def sample_tables(model: Any, data: Data, wording: Wording) -> tuple[list[Group], Members]:
    """Experts, and which of them every sample belongs to."""
    estimator = final_estimator(model)
    weights = wording.weights * wording.deviations
    sizes = np.bincount(np.asarray(estimator.labels_), minlength=len(weights)).tolist()
    groups = []
    for q, share in enumerate(estimator.weights_):
        order = np.argsort(-np.abs(weights[q]), axis=None, kind="stable")[:PREVIEW]
        pairs = np.transpose(np.unravel_index(order, weights[q].shape)).tolist()
        preview = [_weight_chip(wording, q, k, j) for k, j in pairs]
        bar = float(share), f"{share:.1%}", float(share / estimator.weights_.max())
        more = max(0, weights[q].size - PREVIEW)
        groups.append(Group(q, *bar, sizes[q], preview, more))
    return groups, _sample_rows(model, data)


def _weight_chip(wording: Wording, q: int, k: int, j: int) -> tuple[str, str]:
    """A weight of an expert with its name, and its effect in raw units."""
    of = f" for {wording.outputs.names[k]}" if wording.several else ""
    text = (
        f"{short_name(wording.names[j])}{short_name(of)} {signed(float(wording.weights[q, k, j]))}"
    )
    return text, wording.effect(q, k, j)


def _sample_rows(model: Any, data: Data) -> Members:
    estimator, y = final_estimator(model), data.y
    rows = thinned(np.arange(len(y)), MOST_SAMPLES)
    sample, routed = prepared(model, data.X, rows), data.rows(rows).routed_to_experts()
    columns: dict[str, list[Any]] = {
        "sample": rows.tolist(),
        "target": [
            _cell(value) if y.ndim == 1 else ", ".join(shown(float(v)) for v in value)
            for value in y[rows]
        ],
        "expert": estimator.assign(sample, y[rows], **routed).tolist(),
    }
    numeric = [True, y.ndim == 1 and y.dtype.kind in "fiu", True]
    predictions = estimator.predict_experts(sample, **routed)
    if predictions.ndim == 2 and y.ndim == 1:
        for q, column in enumerate(predictions.T[:MOST_PREDICTIONS]):
            columns[f"expert {q}"] = [_cell(value) for value in column]
            numeric.append(column.dtype.kind in "fiu")
    table = [list(row) for row in zip(*columns.values(), strict=True)]
    return Members("samples", list(columns), numeric, table, len(y))


def task_tables(model: Any) -> tuple[list[Group], Members]:
    """Groups of tasks, and the tasks."""
    estimator = final_estimator(model)
    labels = np.asarray(estimator.labels_)
    names = [short_name(task) for task in estimator.tasks_]
    most = np.bincount(labels).max()
    groups = []
    for label in np.unique(labels).tolist():
        members = np.flatnonzero(labels == label).tolist()
        size, preview = len(members), [(names[i], "") for i in members[:PREVIEW]]
        bar = float(size), f"{size / labels.size:.1%}", float(size / most)
        groups.append(Group(label, *bar, size, preview, max(0, size - PREVIEW)))
    rows = [[names[i], int(labels[i])] for i in thinned(np.arange(labels.size), MOST_MEMBERS)]
    return groups, Members("tasks", ("task", "group"), (False, True), rows, labels.size)


def short_name(name: object) -> str:
    """A name that is not too long for a table."""
    return cut(str(name), LONGEST_NAME)


def _label(label: int) -> int | str:
    return int(label) if label >= 0 else "zero"


def _cell(value: Any) -> Any:
    """A number, or text, as JSON has them."""
    if isinstance(value, np.floating | float):
        return table_number(float(value))
    if isinstance(value, np.integer | int) and not isinstance(value, bool):
        return int(value)
    return short_name(value)


def _numbers(values: Floats) -> list[float | None]:
    return [table_number(value) for value in values]


def table_number(value: float | None) -> float | None:
    """Five digits, which is what is shown; JSON knows no infinity."""
    return float(f"{value:.5g}") if value is not None and np.isfinite(value) else None
