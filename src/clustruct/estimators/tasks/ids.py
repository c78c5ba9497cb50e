"""Ids of tasks: any hashable, and the numbers that stand for them."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clustruct._typing import Indices

__all__ = ["as_ids", "known_codes", "names_of_columns", "sorted_names"]


def sorted_names(ids: NDArray[Any]) -> NDArray[Any]:
    """The distinct ones of ids, in an order that does not depend on that of the rows."""
    if ids.dtype != object:
        return np.unique(ids)
    distinct = set(ids.tolist())
    try:
        ordered = sorted(distinct)
    except TypeError:
        ordered = sorted(distinct, key=lambda name: (type(name).__name__, repr(name)))
    names = np.empty(len(ordered), dtype=object)
    names[:] = ordered
    return names


def as_ids(tasks: ArrayLike | Sequence[Hashable], n_rows: int) -> NDArray[Any]:
    """One id a row; any hashable will do."""
    if hasattr(tasks, "to_numpy"):
        tasks = tasks.to_numpy()
    ids = np.asarray(tasks) if isinstance(tasks, np.ndarray) else _as_objects(tasks)
    if ids.shape != (n_rows,):
        raise ValueError(
            f"tasks has shape {ids.shape}, but X has {n_rows} samples. Give one id for each."
        )
    if ids.dtype == object:
        missing = [i for i, name in enumerate(ids.tolist()) if name is None or name != name]
        if missing:
            raise ValueError(
                f"tasks[{missing[0]}] is missing ({ids[missing[0]]!r}). Give every sample its task."
            )
        try:
            set(ids.tolist())
        except TypeError as error:
            raise ValueError(
                f"tasks holds ids that cannot be compared ({error}). Give strings, numbers, tuples "
                "or other hashable ids."
            ) from error
    elif ids.dtype.kind == "f" and np.isnan(ids).any():
        place = int(np.flatnonzero(np.isnan(ids))[0])
        raise ValueError(f"tasks[{place}] is missing (nan). Give every sample its task.")
    return ids


def _as_objects(tasks: Any) -> NDArray[Any]:
    """An array of ids from a list of them, tuples left whole."""
    try:
        listed = list(tasks)
    except TypeError:
        raise ValueError(
            f"tasks must hold one id for each sample, got {tasks!r:.80}. Give a list of ids."
        ) from None
    if all(isinstance(name, str) for name in listed):
        return np.asarray(listed, dtype=str)
    if all(isinstance(name, int | np.integer) and not isinstance(name, bool) for name in listed):
        return np.asarray(listed)
    ids = np.empty(len(listed), dtype=object)
    ids[:] = listed
    return ids


def known_codes(ids: NDArray[Any], names: NDArray[Any]) -> Indices:
    """Number of each id among names, -1 for those that are new."""
    if names.size and ids.dtype.kind == names.dtype.kind and ids.dtype.kind in "iufU":
        order = np.argsort(names, kind="stable")
        places = order[np.minimum(np.searchsorted(names, ids, sorter=order), names.size - 1)]
        return np.where(names[places] == ids, places, -1).astype(np.intp)
    numbers = {name: code for code, name in enumerate(names.tolist())}
    return np.array([numbers.get(name, -1) for name in ids.tolist()], dtype=np.intp)


def names_of_columns(Y: Any, n_columns: int) -> NDArray[Any]:
    """Names of the columns of a data frame, or their numbers."""
    columns = getattr(Y, "columns", None)
    if columns is None or len(columns) != n_columns:
        return np.arange(n_columns)
    return np.asarray(
        list(columns), dtype=None if all(isinstance(c, str) for c in columns) else object
    )
