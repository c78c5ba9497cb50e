"""The best intercept for given scores, and the least mean loss."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from clustruct._finite import require_finite
from clustruct._typing import Floats
from clustruct.arrays import beside, cast, namespace

if TYPE_CHECKING:
    from clustruct.losses.base import Loss, Target

__all__ = ["at_once", "best_intercept", "least_mean", "mean_hessian"]

MAX_NEWTON_STEPS = 100
MAX_HALVINGS = 30
INTERCEPT_TOLERANCE = 1e-13
# The least curvature of a step, as a share of the loss's own.
FLAT = 1e-10
# The longest step to where there is no bracket yet, in units of the mean slope over the curvature.
FARTHEST_STEP = 16.0
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
    if getattr(loss, "of_residuals", False):  # as for `nonnegative`
        return _root_of_slopes(loss, rows, start, fold)

    def mean_at(intercept: Floats) -> float:
        return float(fold(lambda y, z, s: s @ loss.value(y, z + beside(intercept, z)), *rows))

    def sums(y: Any, z: Any, s: Any) -> tuple[Any, Any, Any]:
        z = z + beside(intercept, z)
        slope = loss.gradient(y, z)
        return s @ slope, s @ namespace(z).abs(slope), mean_hessian(loss, y, z, s)

    intercept, value = start, mean_at(start)
    for _ in range(MAX_NEWTON_STEPS):
        gradient, sizes, hessian = fold(sums, *rows)
        require_finite(hessian, "the curvature of the loss", "best intercept")
        noise = INTERCEPT_TOLERANCE * sizes.max()
        if np.abs(gradient).max() <= noise:
            break
        move = _newton_move(gradient, hessian, noise, FLAT * loss.curvature)
        if loss.relative:
            move -= move.mean()  # rounding makes a little of the common shift look useful
        if -0.5 * gradient @ move <= EPS * abs(value):
            return intercept + move  # closer than the value can tell
        before = value
        intercept, value = _shorten(mean_at, intercept, value, move)
        if value == before:
            break  # rounding hides what is left to gain
    return intercept


def _newton_move(gradient: Floats, hessian: Floats, noise: float, flat: float) -> Floats:
    """The Newton step, in the directions where there is a gradient."""
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


def _root_of_slopes(
    loss: "Loss", rows: tuple[Any, Any, Any], start: Floats, fold: Callable[..., Any]
) -> Floats:
    """The shift where the mean slope of each output is zero, by Newton's method in brackets.

    For losses that are sums over outputs of a convex function of the residual ``y - z``. Slopes
    tell the side of the minimum even where values are so large that rounding hides every gain.
    Between camps of targets the loss may have a slope and no curvature: the next trial is then the
    mean residual within the bracket, which leaves at least one of them out.
    """

    def sums(y: Any, z: Any, s: Any) -> tuple[Any, ...]:
        xp = namespace(z)
        residuals = loss.residuals(y, z)
        shifted = z + beside(trial, z)
        slope = loss.gradient(y, shifted)
        below = (residuals > beside(low, z)) & (residuals < beside(trial, z))
        above = (residuals > beside(trial, z)) & (residuals < beside(high, z))
        camps = [s @ xp.where(side, residuals, 0.0) for side in (below, above)]
        parts = [s @ cast(side, s.dtype) for side in (below, above)]
        return s @ slope, s @ xp.abs(slope), mean_hessian(loss, y, shifted, s), *camps, *parts

    trial = np.asarray(start, dtype=np.float64)
    low, high, size = np.full_like(trial, -np.inf), np.full_like(trial, np.inf), np.inf
    reach = np.zeros_like(trial)
    for _ in range(MAX_NEWTON_STEPS):
        slopes, sizes, hessian, *camps = map(np.asarray, fold(sums, *rows))
        require_finite(hessian, "the curvature of the loss", "best intercept")
        halved, size = np.abs(slopes) <= 0.5 * size, np.abs(slopes)
        low, high = np.where(slopes < 0.0, trial, low), np.where(slopes > 0.0, trial, high)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            newton = trial - slopes / np.diagonal(hessian)
            camp = np.where(slopes > 0.0, camps[0] / camps[2], camps[1] / camps[3])
            middle = 0.5 * low + 0.5 * high
        closed = np.isfinite(high - low)
        reach = np.maximum(2.0 * reach, FARTHEST_STEP * sizes / loss.curvature)
        reach = np.maximum(reach, np.spacing(np.abs(trial)))
        found = (size <= INTERCEPT_TOLERANCE * sizes) | (newton == trial)
        following = trial
        for proposal in (
            trial - np.sign(slopes) * reach,
            middle,
            camp,
            np.where(halved & (closed | (np.abs(newton - trial) <= reach)), newton, np.nan),
        ):  # the last that is within the bracket
            following = np.where((proposal > low) & (proposal < high), proposal, following)
        if (found | (following == trial)).all():
            break
        trial = np.where(found, trial, following)
    return trial
