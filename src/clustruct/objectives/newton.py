"""Newton's method with conjugate gradients, for smooth convex problems without constraint.

One method serves all losses. For the squared loss its model is the function itself, so that the
first system, solved to the given tolerance, is ridge regression by conjugate gradients.

The intercept is one more weight, which no ridge holds: at weights ``W`` and an intercept ``b``,
not necessarily the best one,

    f(W + D, b + c) = f + <g, D> + u'c + 1/2 <D, H D> + <D, C c> + 1/2 c'T c + ...

For a given ``D`` the best ``c`` is ``-T^-1 (u + C'D)``. It leaves a problem in ``D`` alone, with
gradient ``g - C T^-1 u`` and second derivative ``H - C T^-1 C'``, which is conditioned as if the
columns of ``X`` had been centred. One pass over ``X`` computes all of it; the best intercept, which
takes several passes over the scores, is found at the end.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from clustruct._finite import require_finite
from clustruct._typing import Floats

if TYPE_CHECKING:
    from clustruct.objectives.linear import LinearObjective, Point


@dataclass(frozen=True)
class NewtonSettings:
    """Limits of Newton's method and of the conjugate gradients inside of it."""

    max_steps: int = 100
    # Products with the second derivative in one system. Without rounding as many as there are
    # weights solve it, so that far more of them only turn rounding over.
    max_products: int = 2000
    products_per_weight: int = 10
    least_products: int = 50
    # The line search halves a step until it gains this share of what the slope promises.
    sufficient: float = 1e-4
    max_halvings: int = 40
    # A full step that gains more than this share, a half for a quadratic, is doubled while that
    # holds and it gains: far from its minimum a loss may be so nearly linear that its curvature
    # tells nothing.
    nearly_linear: float = 0.75
    max_doublings: int = 60
    # Relative differences of the value up to this may be rounding.
    rounding: float = 1e-12
    # A step that promises this part of the value and gains nothing is repeated with damping, in
    # parts of the bound of the curvature.
    promising: float = 1e-6
    dampings: tuple[float, ...] = (1e-8, 1e-5, 1e-2)


SETTINGS = NewtonSettings()


class Expansion(ABC):
    """Second-order expansion of an objective at given weights and an intercept."""

    value: float
    gradient: Floats  # by the weights, with the intercept at its best for them

    @abstractmethod
    def product(self, direction: Floats) -> Floats:
        """Second derivative times a direction, with the intercept at its best."""

    @abstractmethod
    def along(self, move: Floats) -> "Line":
        """The line along a move of the weights; the intercept moves by ``-T^-1 (u + C'D)``."""

    @abstractmethod
    def settled(self) -> "Point":
        """The point with these weights and the best intercept."""


class Line(NamedTuple):
    """Derivative at the start of a move, and the expansion after a fraction of the move."""

    slope: float
    at: Callable[[float], Expansion]


def minimise(
    objective: "LinearObjective", start: Floats, near: "Point | None" = None, *, tol: float
) -> "Point":
    """Minimise until the gradient is at most ``tol`` times as large as at zero weights.

    Shapes: start (d, K).
    near: a known point at or near the start.
    """
    scale = 1.0 / np.maximum(objective.curvatures(), np.finfo(np.float64).tiny)[:, None]
    zero = objective.at(np.zeros_like(start))
    here = objective.around(zero.W, zero)
    zero_size = _size(here.gradient, scale)
    _require_finite(here, zero_size, 0)
    if zero_size == 0.0:
        return zero  # the minimum, as with constant targets
    enough = tol * zero_size
    if start.any():
        begun = objective.around(start, zero if near is None else near)
        # From weights with an exponentially large loss, Newton steps are far too short.
        if objective.quadratic or not begun.value > here.value:
            here = begun
    for number in range(SETTINGS.max_steps):
        size = _size(here.gradient, scale)
        _require_finite(here, size, number)
        following = None
        if size > enough:
            # The squared loss is its own model: solve it once. For others the models get better.
            better = min(0.1, np.sqrt(size / zero_size))
            forcing = enough / size if objective.quadratic else better
            following = _step(here, scale, size, 0.5 * forcing)
        if following is None:
            point = here.settled()
            if here.value - point.value <= SETTINGS.rounding * abs(point.value):
                return point
            following = objective.around(point.W, point)  # the intercept had been left behind
        here = following
    return here.settled()


def _step(here: Expansion, scale: Floats, size: float, forcing: float) -> Expansion | None:
    """One step of Newton's method, or None if it gains nothing."""
    move = _solve(here.product, -here.gradient, scale, forcing)
    line = here.along(move)
    if -line.slope > SETTINGS.rounding * abs(here.value):
        found = _descend(here, line)
        hopeless = found is None and -line.slope > SETTINGS.promising * abs(here.value)
        return _damped_step(here, scale, forcing) if hopeless else found
    # So close that the gain is hidden by rounding: compare gradients.
    trial = line.at(1.0)
    return trial if _size(trial.gradient, scale) < size else None


def _damped_step(here: Expansion, scale: Floats, forcing: float) -> Expansion | None:
    """A step with some of the bound added to the curvature.

    A loss that is nearly linear, such as a quantile loss with little smoothing, may have no
    curvature at all where a fit begins, and Newton steps without end.
    """
    for damping in SETTINGS.dampings:

        def product(V: Floats, damping: float = damping) -> Floats:
            return here.product(V) + damping / scale * V

        move = _solve(product, -here.gradient, scale, forcing)
        found = _descend(here, here.along(move))
        if found is not None:
            return found
    return None


def _descend(here: Expansion, line: Line) -> Expansion | None:
    """Backtracking: the longest of 1, 1/2, 1/4, ... that lowers the value enough, or None.

    A step of 1 goes on to 2, 4, ... where the value falls almost as the slope says.
    """
    for halving in range(SETTINGS.max_halvings):
        length = 0.5**halving
        trial = line.at(length)
        if trial.value < here.value + SETTINGS.sufficient * length * line.slope:
            return trial if halving > 0 else _farther(here, line, trial)
    return None


def _farther(here: Expansion, line: Line, trial: Expansion) -> Expansion:
    """The last of the steps 1 (the trial), 2, 4, ... to which the value falls nearly linearly."""
    for doubling in range(SETTINGS.max_doublings):
        length = 2.0**doubling
        if trial.value > here.value + SETTINGS.nearly_linear * length * line.slope:
            break
        farther = line.at(2.0 * length)
        if not farther.value < trial.value:
            break
        trial = farther
    return trial


def _solve(
    product: Callable[[Floats], Floats], right: Floats, scale: Floats, forcing: float
) -> Floats:
    """Conjugate gradients, scaled by the diagonal, until the residual has shrunk by ``forcing``."""
    solution = np.zeros_like(right)
    residual = right.copy()
    direction = scale * residual
    energy = float(np.vdot(residual, direction))
    goal = forcing**2 * energy
    enough = SETTINGS.least_products + SETTINGS.products_per_weight * right.size
    for _ in range(min(SETTINGS.max_products, enough)):
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


def _require_finite(here: Expansion, size: float, number: int) -> None:
    """Raise an error if the value or the gradient is not finite."""
    step = f"Newton's method, iteration {number}"
    require_finite(float(here.value), "the objective", step)
    require_finite(size, "the gradient", step)


def _size(gradient: Floats, scale: Floats) -> float:
    """Length of the gradient in the scaled norm."""
    return float(np.sqrt(np.vdot(gradient, scale * gradient)))
