"""What solvers need of an objective, checked before they start."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from clustruct._typing import Floats, Labels
from clustruct.grouping.constraints import Constraint
from clustruct.objectives.point import Point
from clustruct.objectives.ray import Ray
from clustruct.results import Projection

__all__ = [
    "Foresighted",
    "Objective",
    "may_refit",
    "require",
    "require_member",
    "require_refits",
]


# Relative distance from a set up to which a point counts as one of it: rounding of projections.
OUTSIDE = 1e-6


class Objective(Protocol):
    """A smooth function of ``W`` that can be minimised for given groups."""

    def keep(self, nearest: Projection, near: Point | None = None) -> Point:
        """Value, and what belongs to it, at a projected point as it is."""
        ...

    def rows(self, point: Point) -> Floats:
        """What the constraint is about: the weights, or rows that stand for them."""
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


def may_refit(constraint: Constraint) -> bool:
    """Whether groups may get any values: so it is where a constraint does not say otherwise."""
    return getattr(constraint, "refits", True)


def require_refits(asker: str, constraint: Constraint) -> None:
    """Complain of a set that is not a union of subspaces, for solvers that need one."""
    if not may_refit(constraint):
        raise ValueError(
            f"{asker} gives groups their best values, which would lead out of the set of "
            f"{type(constraint).__name__} (refits = False). Choose solver='pg' without relax."
        )


def require_member(objective: Objective, constraint: Constraint, point: Point) -> None:
    """Complain of a point outside the set that it should be in.

    A set that says that it is a union of subspaces holds whatever values its groups have.
    """
    if getattr(constraint, "refits", False):
        return
    rows = objective.rows(point)
    size, distance = float(np.vdot(rows, rows)), constraint.project(rows).sq_distance
    if distance > OUTSIDE**2 * size:
        raise ValueError(
            f"The solution is not in the set of {type(constraint).__name__}: its distance is "
            f"{np.sqrt(distance / size):.2g} of its length. If groups must not get arbitrary "
            "values, give the class the attribute refits = False; otherwise check its `project`."
        )


def require(solver: str, owner: object, methods: tuple[str, ...]) -> None:
    """Complain of what a solver needs and its objective or constraint does not have."""
    missing = [name for name in methods if not hasattr(owner, name)]
    if missing:
        raise TypeError(
            f"solver {solver!r} needs {', '.join(missing)} of {type(owner).__name__}, "
            "which does not have it. Choose another solver, or add the method."
        )
