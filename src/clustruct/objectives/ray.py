"""Where projected gradient goes from a point."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from clustruct._finite import require_finite
from clustruct._typing import Floats
from clustruct.objectives.point import Point

__all__ = ["Ray", "gradient_ray"]


@dataclass(frozen=True, eq=False)
class Ray:
    """The points along the negative gradient.

    Attributes
    ----------
    unit : float
        The step that would be best without constraint and third derivative, ``||g||^2 / g'Hg``;
        zero where there is no gradient.
    at : callable
        What to project for a step: a matrix whose rows are to be grouped.
    """

    unit: float
    at: Callable[[float], Floats]


class Differentiable(Protocol):
    """What a ray is made of."""

    def gradient(self, point: Point) -> Floats:
        """Gradient at a point."""
        ...

    def bend(self, point: Point, direction: Floats) -> float:
        """The second derivative at a point along a direction."""
        ...


def gradient_ray(objective: Differentiable, point: Point) -> Ray:
    """The ray of an objective whose points hold the rows to be grouped themselves.

    Parameters
    ----------
    objective : Differentiable
    point : Point

    Returns
    -------
    Ray
    """
    gradient = objective.gradient(point)
    bend = objective.bend(point, gradient)
    length = float(np.vdot(gradient, gradient))
    require_finite(length + bend, "the gradient or the curvature along it")
    unit = length / bend if bend > 0.0 else 0.0
    return Ray(unit, lambda step: point.W - step * gradient)
