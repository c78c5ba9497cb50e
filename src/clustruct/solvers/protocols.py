"""What solvers need of an objective, checked before they start."""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from clustruct.objectives.point import Point

__all__ = ["Objective", "require"]

Floats = NDArray[np.float64]
Labels = NDArray[np.intp]


class Objective(Protocol):
    """A smooth function of ``W`` that can be minimised without constraint or for given groups."""

    shape: tuple[int, int]
    quadratic: bool
    penalties: Floats

    def at(self, W: Floats, near: Point | None = None) -> Point:
        """Value and what belongs to it."""
        ...

    def gradient(self, point: Point) -> Floats:
        """Gradient."""
        ...

    def loss_gradient(self, point: Point) -> Floats:
        """Gradient of the loss without the ridge."""
        ...

    def minimum(self, tol: float, start: Floats | None = None) -> Point:
        """The best weights without constraint."""
        ...

    def refit(
        self, labels: Labels, n_groups: int, tol: float, start: Floats | None = None
    ) -> Point:
        """The best weights for given groups."""
        ...

    def refits(
        self,
        labels: Labels,
        n_groups: int,
        tol: float,
        factors: Sequence[float],
        start: Floats | None = None,
    ) -> list[Point]:
        """The best weights for given groups, with some multiples of the ridge."""
        ...

    def hessian(self, point: Point) -> Callable[[Floats], Floats]:
        """The second derivative at a point, as a function of the direction."""
        ...

    def dual_bound(self, point: Point, explained: float) -> float:
        """A lower bound of the objective on a union of subspaces."""
        ...


def require(solver: str, owner: object, methods: tuple[str, ...]) -> None:
    """Complain of what a solver needs and its objective or constraint does not have."""
    missing = [name for name in methods if not hasattr(owner, name)]
    if missing:
        raise TypeError(
            f"solver {solver!r} needs {', '.join(missing)} of {type(owner).__name__}, "
            "which does not have it. Choose another solver, or add the method."
        )
