"""What a search tried, and choices at the end of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from clustruct._typing import Floats
from clustruct.results.features import SearchResult
from clustruct.results.paired import corrected_errors
from clustruct.results.samples import CountSelection
from clustruct.results.tasks import TaskSelection

__all__ = ["Edge", "edges", "total", "tried"]

Search = SearchResult | TaskSelection | CountSelection

# A gain counts if it is more than so many standard errors, and than this part of the score.
CLEAR, MATTERS = 1.0, 0.005


@dataclass(frozen=True)
class Edge:
    """A choice at the end of what was tried, towards which the score was still improving.

    Attributes
    ----------
    name : str
        Parameter, such as "n_clusters" or "alpha".
    value : float
        What was chosen.
    neighbour : float
        The value next to it, which is clearly worse.
    """

    name: str
    value: float
    neighbour: float

    @property
    def end(self) -> str:
        """Of all that was tried: "largest" or "smallest"."""
        return "largest" if self.value > self.neighbour else "smallest"


def tried(found: Search) -> dict[str, tuple[float, ...]]:
    """The values of each parameter of a search, ascending; infinity stands for no limit.

    A parameter with one value was given, not chosen.
    """
    names, values, _, _ = _points(found)
    return {
        name: tuple(np.unique(column).tolist())
        for name, column in zip(names, values.T, strict=True)
    }


def edges(found: Search, most: float = np.inf) -> list[Edge]:
    """Choices at the end of what was tried where values beyond it may be better.

    Parameters
    ----------
    found : SearchResult, TaskSelection or CountSelection
    most : float, default=inf
        Largest number of groups that there can be.

    Returns
    -------
    list of Edge
    """
    names, values, scores, chosen = _points(found)
    result = []
    for name, column in zip(names, values.T, strict=True):
        value = column[chosen]
        neighbour = _inner(np.unique(column), value, name, most)
        if neighbour is None:
            continue
        rivals = np.flatnonzero(column == neighbour)
        rival = rivals[scores[rivals].mean(axis=1).argmax()]
        gains = scores[chosen] - scores[rival]
        least = max(
            CLEAR * float(corrected_errors(gains)), MATTERS * abs(float(scores[chosen].mean()))
        )
        if gains.mean() > least:
            result.append(Edge(name, float(value), float(neighbour)))
    return result


def _inner(levels: Floats, value: float, name: str, most: float) -> float | None:
    """The neighbour of a value at an end of the levels beyond which there are more, or None."""
    counts = name == "n_clusters"
    if levels.size < 2 or name == "n_nonzero":
        return None
    if value == levels[-1] and value < (most if counts else np.inf):
        return float(levels[-2])
    if value == levels[0] and value > 0.0 and not counts:
        return float(levels[1])
    return None


def _points(found: Search) -> tuple[tuple[str, ...], Floats, Floats, int]:
    """Names, values and scores of the points of a search, and which was chosen."""
    if isinstance(found, CountSelection):
        numbers = np.asarray(found.n_clusters, dtype=np.float64)[:, None]
        chosen = int(np.flatnonzero(numbers[:, 0] == found.best)[0])
        return ("n_clusters",), numbers, -np.asarray(found.values)[:, None], chosen
    shape = found.fold_scores.shape[:-1]
    chosen = int(np.ravel_multi_index(found.best_index, shape))
    scores = found.fold_scores.reshape(-1, found.fold_scores.shape[-1])
    names: tuple[str, ...]
    points: list[tuple[float, ...]]
    if isinstance(found, TaskSelection):
        names = ("n_clusters", "alpha", "alpha_mean", "alpha_between", "alpha_within")
        points = [(found.n_clusters[q], *found.strengths[s]) for q, s in np.ndindex(*shape)]
    else:
        names = ("n_clusters", "alpha", "n_nonzero")
        counts, limits = map(total, found.n_clusters), map(total, found.n_nonzero)
        points = list(product(counts, found.alphas.tolist(), limits))
    return names, np.array(points, dtype=np.float64), scores, chosen


def total(count: Any) -> float:
    """A number of groups, in all blocks together; infinity for None, no limit."""
    if isinstance(count, Mapping):
        return float(sum(count.values()))
    return np.inf if count is None else float(count)
