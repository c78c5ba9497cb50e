"""The best intercept for given scores, and the least mean loss."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from clustruct._finite import require_finite
from clustruct._typing import Floats
from clustruct.arrays import beside, namespace

if TYPE_CHECKING:
    from clustruct.losses.base import Loss, Target

__all__ = ["at_once", "best_intercept", "least_mean", "mean_hessian"]

MAX_NEWTON_STEPS = 100
MAX_HALVINGS = 30
INTERCEPT_TOLERANCE = 1e-13
# The least curvature of a step, as a share of the loss's own, and how much smaller it becomes after
# a whole step from where there is none: a target may be 1e17 away.
FLAT = 1e-10
FLATTER = 0.1
EPS = float(np.finfo(np.float64).eps)


def mean_hessian(loss: "Loss", target: "Target", scores: Floats, shares: Floats) -> Floats:
    """Second derivative of the mean loss by a common shift of all scores, ``K x K``."""
    # Of its own class, as for the closed intercept below.
    closed = getattr(type(loss), "mean_curvature", None)
    if closed is not None:
        return closed(loss, target, scores, shares)
    xp = namespace(scores)
    units = beside(np.eye(scores.shape[1]), scores)
    columns = [
        shares @ loss.hessian_product(target, scores, xp.broadcast_to(units[k, :], scores.shape))
        for k in range(scores.shape[1])
    ]
    return xp.stack(columns, axis=1)


def at_once(function: Callable[..., Any], *rows: Any, combine: Any = None) -> Any:
    """Fold rows that are all at hand."""
    return function(*rows)


def least_mean(
    loss: "Loss",
    target: "Target",
    n_outputs: int,
    shares: Floats,
    fold: Callable[..., Any] = at_once,
) -> float:
    """A number that the mean loss is not below, whatever the scores; ``-inf`` if there is none.

    Zero where the loss says that it is not negative. Otherwise the mean of each row's own minimum,
    which the conjugate knows: ``min_z loss(z) = -loss*(0)``.
    `shares` are the weights of the rows, which sum to one; `fold` sums functions of rows, see
    `Operator.fold`.
    """
    if getattr(loss, "nonnegative", False):  # losses written before it was asked for may lack it
        return 0.0
    if not getattr(loss, "has_conjugate", True):
        return -np.inf

    def total(y: Any, s: Any) -> Any:
        return s @ loss.conjugate(y, namespace(s).stack([0.0 * s] * n_outputs, axis=1))

    return -float(fold(total, target, shares))


def best_intercept(
    loss: "Loss",
    target: "Target",
    scores: Floats,
    shares: Floats,
    start: Floats,
    fold: Callable[..., Any] = at_once,
) -> Floats:
    """The shift of all scores that minimises the mean loss, in closed form or by Newton's method.

    Taking the best intercept for each ``W`` leaves a smooth problem in ``W`` alone, with the same
    minimum, and conditioned as if the columns of ``X`` had been centred.
    `shares` and `fold` are those of `least_mean`; `start` has an entry for each output.
    """
    if loss.quadratic:
        return fold(lambda y, z, s: s @ (y - z), target, scores, shares)
    # Of its own class, which may lack it: a stand-in for a loss has targets of another form.
    closed = getattr(type(loss), "closed_intercept", None)
    found = None if closed is None else closed(loss, target, scores, shares, fold)
    if found is not None:
        return np.asarray(found)
    rows = target, scores, shares

    def mean_at(intercept: Floats) -> float:
        return float(fold(lambda y, z, s: s @ loss.value(y, z + beside(intercept, z)), *rows))

    def sums(y: Any, z: Any, s: Any) -> tuple[Any, Any, Any]:
        z = z + beside(intercept, z)
        slope = loss.gradient(y, z)
        return s @ slope, s @ namespace(z).abs(slope), mean_hessian(loss, y, z, s)

    intercept, value = start, mean_at(start)
    flat = FLAT * loss.curvature
    for _ in range(MAX_NEWTON_STEPS):
        gradient, sizes, hessian = fold(sums, *rows)
        require_finite(hessian, "the curvature of the loss", "best intercept")
        noise = INTERCEPT_TOLERANCE * sizes.max()
        if np.abs(gradient).max() <= noise:
            break
        move = _newton_move(gradient, hessian, noise, flat)
        if loss.relative:
            move -= move.mean()  # rounding makes a little of the common shift look useful
        if -0.5 * gradient @ move <= EPS * abs(value):
            return intercept + move  # closer than the value can tell
        before, whole = value, intercept + move
        intercept, value = _shorten(mean_at, intercept, value, move)
        if value == before:
            break  # rounding hides what is left to gain
        if not hessian.any() and np.array_equal(intercept, whole):
            flat *= FLATTER
    return intercept


def _newton_move(gradient: Floats, hessian: Floats, noise: float, flat: float) -> Floats:
    """The Newton step, in the directions where there is a gradient.

    Where no residual is below the Huber loss's delta there is a gradient without curvature, and the
    step is long.
    """
    curvatures, directions = np.linalg.eigh(hessian)
    along = directions.T @ gradient
    along[np.abs(along) <= noise] = 0.0
    move: Floats = -directions @ (along / np.maximum(curvatures, flat))
    if abs(float(gradient.sum())) <= noise:
        move -= move.mean()  # rounding of the directions, which a long step makes large
    return move


def _shorten(
    mean_at: Callable[[Floats], float], intercept: Floats, value: float, move: Floats
) -> tuple[Floats, float]:
    """The first of ``move``, ``move / 4``, ... that lowers the mean loss, or no move."""
    for _ in range(MAX_HALVINGS):
        trial = intercept + move
        trial_value = mean_at(trial)
        if trial_value < value:
            return trial, trial_value
        move = 0.25 * move
    return intercept, value
