"""Newton's method with conjugate gradients, for smooth convex problems without constraint.

One method serves all losses. For the squared loss its model is the function itself, so that the
first system, solved to the tolerance asked for, is ridge regression by conjugate gradients.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from clustruct.objectives.point import Point

__all__ = ["minimise"]

Floats = NDArray[np.float64]

SUFFICIENT = 1e-4
ROUNDING = 1e-12
MAX_HALVINGS = 40
MAX_PRODUCTS = 2000


class SmoothObjective(Protocol):
    """What Newton's method needs."""

    quadratic: bool

    def at(self, W: Floats, near: Point | None = None) -> Point:
        """Value and what belongs to it at ``W``."""
        ...

    def gradient(self, point: Point) -> Floats:
        """Gradient at a point."""
        ...

    def hessian(self, point: Point) -> Callable[[Floats], Floats]:
        """The second derivative at a point, as a function of the direction."""
        ...

    def curvatures(self) -> Floats:
        """Rough bounds of the diagonal of the second derivative, one a row of ``W``."""
        ...


def minimise(
    objective: SmoothObjective, start: Floats, *, tol: float, max_steps: int = 100
) -> Point:
    """The point where the gradient is ``tol`` times as large as at zero, or smaller.

    Parameters
    ----------
    objective : SmoothObjective
    start : ndarray of shape (d, K)
    tol : float
    max_steps : int, default=100
        Newton steps at most.

    Returns
    -------
    Point
    """
    scale = 1.0 / np.maximum(objective.curvatures(), np.finfo(np.float64).tiny)[:, None]
    point = objective.at(np.zeros_like(start))
    gradient = objective.gradient(point)
    zero_size = _size(gradient, scale)
    if zero_size == 0.0:
        return point  # nothing to explain, as with constant targets
    enough = tol * zero_size
    if start.any():
        point = objective.at(start)
        gradient = objective.gradient(point)
    for _ in range(max_steps):
        size = _size(gradient, scale)
        if size <= enough:
            break
        # The squared loss is its own model: solve it once. Others get better models as they near.
        forcing = enough / size if objective.quadratic else min(0.1, np.sqrt(size / zero_size))
        move = _solve(objective.hessian(point), -gradient, scale, 0.5 * forcing)
        slope = float(np.vdot(gradient, move))
        close = -slope <= ROUNDING * abs(point.value)  # closer than the value can tell
        trial = (
            objective.at(point.W + move, near=point)
            if close
            else _descend(objective, point, move, slope)
        )
        if trial is None:
            break
        trial_gradient = objective.gradient(trial)
        if close and _size(trial_gradient, scale) >= size:
            break
        point, gradient = trial, trial_gradient
    return point


def _descend(objective: SmoothObjective, point: Point, move: Floats, slope: float) -> Point | None:
    """The first of ``move``, ``move / 2``, ... that lowers the value enough, or None."""
    for halving in range(MAX_HALVINGS):
        length = 0.5**halving
        trial = objective.at(point.W + length * move, near=point)
        if trial.value < point.value + SUFFICIENT * length * slope:
            return trial
    return None


def _solve(
    product: Callable[[Floats], Floats], right: Floats, scale: Floats, forcing: float
) -> Floats:
    """Conjugate gradients, scaled by the diagonal, until the residual has shrunk by ``forcing``."""
    solution = np.zeros_like(right)
    residual = right.copy()
    direction = scale * residual
    energy = float(np.vdot(residual, direction))
    goal = forcing**2 * energy
    for _ in range(MAX_PRODUCTS):
        if energy <= goal:
            break
        image = product(direction)
        bend = float(np.vdot(direction, image))
        if bend <= 0.0:  # flat to rounding: no more to gain
            break
        length = energy / bend
        solution += length * direction
        residual -= length * image
        scaled = scale * residual
        previous, energy = energy, float(np.vdot(residual, scaled))
        direction = scaled + (energy / previous) * direction
    return solution if solution.any() else scale * right


def _size(gradient: Floats, scale: Floats) -> float:
    """Length of the gradient in the scaled norm."""
    return float(np.sqrt(np.vdot(gradient, scale * gradient)))
