"""What results show of themselves in a notebook."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustruct._html import table

__all__ = ["group_rows", "scores_table", "shown_weight", "some_of", "table_of"]

MOST_MEMBERS = 20  # names of a group that a table shows


def shown_weight(weight: float | NDArray[Any]) -> float | str:
    """A weight for a table: one number, or several in a row."""
    if np.ndim(weight) == 0:
        return float(weight)
    return ", ".join(f"{value:.4g}" for value in np.asarray(weight).reshape(-1))


def group_rows(
    values: NDArray[Any], sizes: NDArray[np.intp]
) -> Iterator[tuple[int | str, float | str, int]]:
    """Number, value and size of each group."""
    for q, (value, size) in enumerate(zip(values, sizes, strict=True)):
        yield q, shown_weight(value), int(size)


def some_of(names: Iterable[str]) -> str:
    """The first names, and how many more there are."""
    every = list(names)
    more = f", and {len(every) - MOST_MEMBERS} more" if len(every) > MOST_MEMBERS else ""
    return ", ".join(every[:MOST_MEMBERS]) + more


def scores_table(title: str, rows: list[dict[str, Any]]) -> str:
    """Points of a search, without single folds, the one that was chosen and the best first."""
    shown = [
        {
            **{name: value for name, value in row.items() if not name.startswith("fold")},
            "chosen": "yes" if row["chosen"] else "",
        }
        for row in sorted(rows, key=lambda row: (not row["chosen"], -row["mean_score"]))
    ]
    return table_of(f"{title}, the best first", shown)


def table_of(title: str, rows: list[dict[str, Any]]) -> str:
    """Dictionaries with the same keys as a table."""
    return table(title, [name.replace("_", " ") for name in rows[0]], [[*r.values()] for r in rows])
