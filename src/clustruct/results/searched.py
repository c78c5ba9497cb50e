"""What a search tried, and choices at the end of it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from clustruct._typing import Floats
from clustruct.results.paired import corrected_errors
from clustruct.results.scores import CountSelection, SearchResult, TaskSelection, total

Search = SearchResult | TaskSelection | CountSelection

# Parameters of points that are no numbers to go on along; the best `relax` is kept at each point.
NO_AXES = {"relax", "solver", "solver_options", "use_inputs"}
# A gain counts if it is more than so many standard errors, and than this part of the score.
CLEAR, MATTERS = 1.0, 0.005


@dataclass(frozen=True)
class Edge:
    """A choice at the end of what was tried, towards which the score was still improving.

    `name` is a parameter, such as "n_clusters" or "alpha", `value` was chosen, and `neighbour` is
    the value next to it, which is clearly worse.
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
        name: tuple(_levels(column).tolist()) for name, column in zip(names, values.T, strict=True)
    }


def edges(found: Search, most: float = np.inf) -> list[Edge]:
    """Choices at the end of what was tried where values beyond it may be better.

    There can be at most `most` groups.
    """
    names, values, scores, chosen = _points(found)
    exact = getattr(found, "exact", None)
    fitted = np.ones(len(scores), dtype=bool) if exact is None else exact.reshape(-1)
    result = []
    for name, column in zip(names, values.T, strict=True):
        value = column[chosen]
        neighbour = _inner(_levels(column), value, name, most)
        if neighbour is None:
            continue
        rivals = np.flatnonzero((column == neighbour) & fitted)
        if not rivals.size:
            continue
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
    points = found.points()
    names = tuple(name for name in points[0] if name not in NO_AXES)
    values = np.array([[_number(point[name]) for name in names] for point in points])
    return names, values, found.point_scores, found.flat_index


def _number(value: Any) -> float:
    """A parameter as a number, NaN where the fit has learnt it."""
    return np.nan if isinstance(value, str) else total(value)


def _levels(column: Floats) -> Floats:
    """The values of a parameter that were tried, ascending."""
    return np.unique(column[~np.isnan(column)])
