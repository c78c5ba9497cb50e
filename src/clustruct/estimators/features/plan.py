"""What a search does on every fold."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from clustruct.estimators.features.grid import Grid, Method

__all__ = ["Plan"]


@dataclass(frozen=True, eq=False)
class Plan:
    """What is done on every fold.

    Attributes
    ----------
    model : FeatureClusterRegressor or FeatureClusterClassifier
        Unfitted; it knows losses and classes.
    classes : ndarray or None
        All classes, for a classifier.
    grid : Grid
    method : Method
    solver : str
        Solver asked for in the search, or "auto".
    relax : tuple of float
    scoring : str or callable
    """

    model: Any
    classes: NDArray[Any] | None
    grid: Grid
    method: Method
    solver: str
    relax: tuple[float, ...]
    scoring: str | Callable[..., float]

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Of the scores on a fold."""
        return (*self.grid.shape, len(self.relax))
