"""The tables of the report: groups, and what is in them.

A table that a reader can search and sort holds plain values, which the page draws; long ones are
cut, and say so.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing

from clustruct.inspection import (
    Levels,
    feature_names,
    final_estimator,
    steps_before,
    thinned,
)
from clustruct.reporting.svg import shown

__all__ = ["Group", "Members", "feature_tables", "sample_tables", "task_tables"]

MOST_MEMBERS = 5000
MOST_SAMPLES = 500
MOST_GROUPS = 300
LEAST_PER_GROUP = 20
PREVIEW = 10
LONGEST_NAME = 80
MOST_ANSWERS = 8


@dataclass(frozen=True)
class Group:
    """A row of the table of groups.

    Attributes
    ----------
    label : int
        -1 for the zero group.
    name : str
    value : float
        What the bar shows: a weight, or a share.
    text : str
        The value as people read it.
    extent : float
        Length of the bar, between -1 and 1.
    size : int
    preview : tuple of str
        Some members, or what tells the group from others.
    more : int
        Members that the preview leaves out.
    """

    label: int
    name: str
    value: float
    text: str
    extent: float
    size: int
    preview: tuple[str, ...]
    more: int


@dataclass(frozen=True)
class Members:
    """What is in the groups, for a table with a search.

    Attributes
    ----------
    thing : str
        What a row is.
    columns : tuple of str
    numeric : tuple of bool
        Which columns hold numbers.
    rows : list of list
    total : int
        How many rows there would be if none had been left out.
    """

    thing: str
    columns: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: list[list[Any]]
    total: int


def feature_tables(levels: Levels) -> tuple[list[Group], Members]:
    """Groups of features, and the features."""
    groups = []
    magnitudes = levels.magnitudes
    largest = float(np.abs(magnitudes).max()) or 1.0
    order: list[int] = [*range(len(levels.sizes)), *([-1] if levels.n_zero else [])]
    for label in thinned(np.array(order), MOST_GROUPS).tolist():
        members = levels.members(label)
        value = 0.0 if label < 0 else float(magnitudes[label])
        text = shown(value, 4)
        if label >= 0 and levels.values.shape[1] > 1:
            text = ", ".join(shown(float(weight)) for weight in levels.values[label])
        groups.append(
            Group(
                label,
                "zero" if label < 0 else str(label),
                value,
                text,
                value / largest,
                members.size,
                tuple(_short(name) for name in levels.names[members[:PREVIEW]]),
                max(0, members.size - PREVIEW),
            )
        )
    kept = _largest_weights(levels)
    weights = np.abs(levels.weights).max(axis=1) if levels.weights.shape[1] > 1 else levels.weights
    rows = [
        [_short(levels.names[j]), _label(levels.labels[j]), _number(weights.reshape(-1)[j])]
        for j in kept
    ]
    several = levels.weights.shape[1] > 1
    columns = ("feature", "group", "largest weight" if several else "weight")
    return groups, Members("features", columns, (False, True, True), rows, levels.labels.size)


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
    model: Any, X: Any, y: ArrayLike, names: Sequence[str] | None
) -> tuple[list[Group], Members]:
    """Experts, and who answers which sample."""
    estimator = final_estimator(model)
    known = feature_names(model, names)
    experts = np.asarray(estimator.experts_, dtype=np.float64)
    several = experts.ndim == 3 and experts.shape[1] > 1
    weights = experts if experts.ndim == 2 else experts[:, 0]
    if several:
        weights = np.linalg.norm(experts, axis=1)
    sizes = np.bincount(np.asarray(estimator.labels_), minlength=len(experts))
    groups = []
    for q, share in enumerate(estimator.weights_):
        largest = np.argsort(-np.abs(weights[q]), kind="stable")[:PREVIEW]
        preview = tuple(f"{_short(known[j])} {shown(float(weights[q, j]))}" for j in largest)
        groups.append(
            Group(
                q,
                str(q),
                float(share),
                f"{share:.1%}",
                float(share / estimator.weights_.max()),
                int(sizes[q]),
                preview,
                max(0, weights.shape[1] - PREVIEW),
            )
        )
    return groups, _sample_rows(model, X, np.asarray(y))


def _sample_rows(model: Any, X: Any, y: NDArray[Any]) -> Members:
    estimator, before = final_estimator(model), steps_before(model)
    rows = thinned(np.arange(len(y)), MOST_SAMPLES)
    sample = _safe_indexing(X, rows)
    if before is not None:
        sample = before.transform(sample)
    labels = estimator.assign(sample, y[rows])
    answers = estimator.predict_experts(sample)
    single = answers.ndim == 2 and y.ndim == 1
    count = min(MOST_ANSWERS, answers.shape[1]) if single else 0
    table = []
    for place, row in enumerate(rows):
        truth = _cell(y[row]) if y.ndim == 1 else ", ".join(shown(float(v)) for v in y[row])
        mine = [_cell(answers[place, q]) for q in range(count)]
        table.append([int(row), truth, int(labels[place]), *mine])
    numbers = y.ndim == 1 and y.dtype.kind in "fiu"
    return Members(
        "samples",
        ("sample", "answer", "expert", *(f"expert {q}" for q in range(count))),
        (True, numbers, True, *[answers.dtype.kind in "fiu"] * count),
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
                str(label),
                float(members.size),
                f"{members.size / tasks.size:.1%}",
                float(members.size / sizes.max()),
                members.size,
                tuple(_short(name) for name in tasks[members[:PREVIEW]]),
                max(0, members.size - PREVIEW),
            )
        )
    kept = thinned(np.arange(tasks.size), MOST_MEMBERS)
    rows = [[_short(tasks[i]), int(labels[i])] for i in kept]
    return groups, Members("tasks", ("task", "group"), (False, True), rows, tasks.size)


def _short(name: object) -> str:
    text = str(name)
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 1] + "…"


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
