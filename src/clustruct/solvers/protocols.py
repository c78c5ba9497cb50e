"""What solvers need of an objective, checked before they start."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from clustruct.objectives.point import Point
from clustruct.objectives.ray import Ray
from clustruct.results import Projection

__all__ = ["Foresighted", "Objective", "require"]

Floats = NDArray[np.float64]
Labels = NDArray[np.intp]


class Objective(Protocol):
    """A smooth function of ``W`` that can be minimised for given groups."""

    def keep(self, nearest: Projection, near: Point | None = None) -> Point:
        """Value, and what belongs to it, at a projected point as it is."""
        ...

    def ray(self, point: Point) -> Ray:
        """The points along the negative gradient."""
        ...

    def refit(
        self, labels: Labels, n_groups: int, tol: float, start: Floats | None = None
    ) -> Point:
        """The best weights for given groups."""
        ...


@runtime_checkable
class Foresighted(Protocol):
    """An objective that computes trials together for less than one after the other."""

    def foresee(self, trials: Sequence[Projection]) -> None:
        """Prepare for the refits that may come next."""
        ...


def require(solver: str, owner: object, methods: tuple[str, ...]) -> None:
    """Complain of what a solver needs and its objective or constraint does not have."""
    missing = [name for name in methods if not hasattr(owner, name)]
    if missing:
        raise TypeError(
            f"solver {solver!r} needs {', '.join(missing)} of {type(owner).__name__}, "
            "which does not have it. Choose another solver, or add the method."
        )
