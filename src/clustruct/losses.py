"""Pointwise losses: value, derivatives, conjugate. They never see ``X``.

Scores are an ``n x K`` array, one column an output, of NumPy or of any library that speaks the
array API. A loss works on all rows at once and returns one number, or one row, for each; weighting
and summing is the business of the objective.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from clustruct._typing import Floats
from clustruct.arrays import (
    beside,
    expit,
    indicator,
    logsumexp,
    namespace,
    row_dots,
    softmax,
    softplus,
    xlogy,
)

__all__ = [
    "HuberLoss",
    "LogisticLoss",
    "Loss",
    "MultinomialLoss",
    "SquaredLoss",
    "best_intercept",
    "least_mean",
]

Target = NDArray[np.float64] | NDArray[np.intp]

MAX_NEWTON_STEPS = 100
MAX_HALVINGS = 30
INTERCEPT_TOLERANCE = 1e-13
FLAT = 1e-10
EPS = float(np.finfo(np.float64).eps)


class Loss(Protocol):
    """A convex function of the scores of each row, given its target.

    Attributes
    ----------
    curvature : float
        No second derivative along a unit direction is larger.
    quadratic : bool
        Whether it is the squared loss, for which much has a closed form.
    relative : bool
        Whether only differences between the outputs matter: a shift of all of them changes nothing.
    nonnegative : bool
        Whether no value is below zero, whatever the target and the scores. Only then may a bound
        be lifted to zero. A loss that does not say so may have negative values.
    """

    curvature: float
    quadratic: bool
    relative: bool
    nonnegative: bool

    def value(self, target: Target, scores: Floats) -> Floats:
        """Loss of each row, shape (n,)."""
        ...

    def gradient(self, target: Target, scores: Floats) -> Floats:
        """Derivative of each row's loss by its scores, shape (n, K)."""
        ...

    def hessian_product(self, target: Target, scores: Floats, direction: Floats) -> Floats:
        """Second derivative of each row's loss, times the row of ``direction``."""
        ...

    def conjugate(self, target: Target, slope: Floats) -> Floats:
        """``max_z <slope, z> - loss(z)`` of each row, for slopes that `gradient` can return."""
        ...


class SquaredLoss:
    """``1/2 |y - z|^2``; a row of targets may have several outputs."""

    curvature = 1.0
    quadratic = True
    relative = False
    nonnegative = True

    def value(self, target: Target, scores: Floats) -> Floats:
        """Half the squared length of each residual."""
        residual = scores - target
        return 0.5 * row_dots(residual, residual)

    def gradient(self, target: Target, scores: Floats) -> Floats:
        """Scores less targets."""
        return scores - target

    def hessian_product(self, target: Target, scores: Floats, direction: Floats) -> Floats:
        """The direction itself."""
        return direction

    def conjugate(self, target: Target, slope: Floats) -> Floats:
        """``1/2 |g|^2 + <g, y>``."""
        return row_dots(slope, 0.5 * slope + target)


class HuberLoss:
    """Squared for residuals up to ``delta``, linear beyond, summed over outputs.

    Parameters
    ----------
    delta : float
        Size of the residual where the loss turns linear, in the units of the targets.
    """

    curvature = 1.0
    quadratic = False
    relative = False
    nonnegative = True

    def __init__(self, delta: float) -> None:
        self.delta = delta

    def value(self, target: Target, scores: Floats) -> Floats:
        """``1/2 r^2``, or ``delta |r| - 1/2 delta^2`` where the residual is larger than delta."""
        xp = namespace(scores)
        size = xp.abs(scores - target)
        inner = xp.clip(size, 0.0, self.delta)
        return xp.sum(inner * (size - 0.5 * inner), axis=1)

    def gradient(self, target: Target, scores: Floats) -> Floats:
        """Residuals, cut at delta."""
        return namespace(scores).clip(scores - target, -self.delta, self.delta)

    def hessian_product(self, target: Target, scores: Floats, direction: Floats) -> Floats:
        """The direction where the loss is squared, zero where it is linear."""
        xp = namespace(scores)
        return xp.where(xp.abs(scores - target) <= self.delta, direction, 0.0)

    def conjugate(self, target: Target, slope: Floats) -> Floats:
        """As for the squared loss: slopes are at most delta."""
        return row_dots(slope, 0.5 * slope + target)


class LogisticLoss:
    """``log(1 + exp(-y z))`` for targets -1 and 1, one output."""

    curvature = 0.25
    quadratic = False
    relative = False
    nonnegative = True

    def value(self, target: Target, scores: Floats) -> Floats:
        """``log(1 + exp(-y z))`` without overflow."""
        return softplus(-target * scores)[:, 0]

    def gradient(self, target: Target, scores: Floats) -> Floats:
        """``-y / (1 + exp(y z))``."""
        return -target * expit(-target * scores)

    def hessian_product(self, target: Target, scores: Floats, direction: Floats) -> Floats:
        """``p (1 - p)`` times the direction."""
        return expit(scores) * expit(-scores) * direction

    def conjugate(self, target: Target, slope: Floats) -> Floats:
        """``t log t + (1 - t) log(1 - t)`` with ``t = -y g``, the mistaken share."""
        xp = namespace(slope)
        share = xp.clip(-target * slope, 0.0, 1.0)
        return (xlogy(share) + (1.0 - share) * xp.log1p(-xp.clip(share, 0.0, 1 - 1e-16)))[:, 0]


class MultinomialLoss:
    """``log sum_k exp(z_k) - z_y`` for targets 0 to K - 1, one output a class."""

    curvature = 0.5
    quadratic = False
    relative = True
    nonnegative = True

    def value(self, target: Target, scores: Floats) -> Floats:
        """Negative log-probability of each row's class."""
        xp = namespace(scores)
        own = xp.where(indicator(target, scores.shape[1]), scores, 0.0)
        return logsumexp(scores) - xp.sum(own, axis=1)

    def gradient(self, target: Target, scores: Floats) -> Floats:
        """Probabilities less the indicator of the class."""
        xp = namespace(scores)
        slope = softmax(scores)
        slope = xp.where(indicator(target, scores.shape[1]), slope - 1.0, slope)
        # Probabilities are rounded on the scale of one. Where slopes are much smaller, what is left
        # of that would be taken for a gradient along the shift of all classes, which has none.
        return slope - xp.mean(slope, axis=1, keepdims=True)

    def hessian_product(self, target: Target, scores: Floats, direction: Floats) -> Floats:
        """``(diag(p) - p p')`` times the direction."""
        shares = softmax(scores)
        moved = shares * direction
        return moved - shares * namespace(scores).sum(moved, axis=1, keepdims=True)

    def conjugate(self, target: Target, slope: Floats) -> Floats:
        """``sum_k p_k log p_k`` with ``p = g + e_y``."""
        xp = namespace(slope)
        shares = xp.where(indicator(target, slope.shape[1]), slope + 1.0, slope)
        return xp.sum(xlogy(xp.clip(shares, 0.0, 1.0)), axis=1)


def mean_hessian(loss: Loss, target: Target, scores: Floats, shares: Floats) -> Floats:
    """Second derivative of the mean loss by a common shift of all scores, ``K x K``."""
    xp = namespace(scores)
    units = beside(np.eye(scores.shape[1]), scores)
    columns = [
        shares @ loss.hessian_product(target, scores, xp.broadcast_to(units[k, :], scores.shape))
        for k in range(scores.shape[1])
    ]
    return xp.stack(columns, axis=1)


def at_once(function: Callable[..., Any], *rows: Any) -> Any:
    """Fold rows that are all at hand."""
    return function(*rows)


def least_mean(
    loss: Loss,
    target: Target,
    n_outputs: int,
    shares: Floats,
    fold: Callable[..., Any] = at_once,
) -> float:
    """A number that the mean loss is not below, whatever the scores; ``-inf`` if there is none.

    Zero where the loss says that it is not negative. Otherwise the mean of each row's own minimum,
    which the conjugate knows: ``min_z loss(z) = -loss*(0)``.

    Parameters
    ----------
    loss : Loss
    target : rows of shape (n, K) or (n,)
    n_outputs : int
    shares : rows of shape (n,)
        Weights of the rows, which sum to one.
    fold : callable, default=at_once
        How functions of rows are summed, see `Operator.fold`.

    Returns
    -------
    float
    """
    if getattr(loss, "nonnegative", False):  # losses written before it was asked for may lack it
        return 0.0

    def total(y: Any, s: Any) -> Any:
        return s @ loss.conjugate(y, namespace(s).stack([0.0 * s] * n_outputs, axis=1))

    return -float(fold(total, target, shares))


def best_intercept(
    loss: Loss,
    target: Target,
    scores: Floats,
    shares: Floats,
    start: Floats,
    fold: Callable[..., Any] = at_once,
) -> Floats:
    """The shift of all scores that minimises the mean loss, in closed form or by Newton's method.

    Taking the best intercept for each ``W`` leaves a smooth problem in ``W`` alone, with the same
    minimum, and conditioned as if the columns of ``X`` had been centred.

    Parameters
    ----------
    loss : Loss
    target : rows of shape (n, K) or (n,)
    scores : rows of shape (n, K)
        Without intercept.
    shares : rows of shape (n,)
        Weights of the rows, which sum to one.
    start : ndarray of shape (K,)
    fold : callable, default=at_once
        How functions of rows are summed, see `Operator.fold`.

    Returns
    -------
    ndarray of shape (K,)
    """
    if loss.quadratic:
        return fold(lambda y, z, s: s @ (y - z), target, scores, shares)
    mean = _MeanLoss(loss, fold, (target, scores, shares))
    intercept = start
    value = mean.value(intercept)
    for _ in range(MAX_NEWTON_STEPS):
        gradient, sizes, hessian = mean.derivatives(intercept)
        noise = INTERCEPT_TOLERANCE * sizes.max()
        if np.abs(gradient).max() <= noise:
            break
        move = _newton_move(gradient, hessian, noise, FLAT * loss.curvature)
        if loss.relative:
            move -= move.mean()  # rounding makes a little of the common shift look useful
        if -0.5 * gradient @ move <= EPS * abs(value):
            return intercept + move  # closer than the value can tell
        before = value
        intercept, value = _shorten(mean, intercept, value, move)
        if value == before:
            break  # rounding hides what is left to gain
    return intercept


class _MeanLoss:
    """The mean loss as a function of the intercept alone."""

    def __init__(self, loss: Loss, fold: Callable[..., Any], rows: tuple[Any, Any, Any]) -> None:
        self._loss = loss
        self._fold = fold
        self._rows = rows

    def value(self, intercept: Floats) -> float:
        """The mean loss."""
        loss = self._loss
        return float(
            self._fold(lambda y, z, s: s @ loss.value(y, z + beside(intercept, z)), *self._rows)
        )

    def derivatives(self, intercept: Floats) -> tuple[Floats, Floats, Floats]:
        """Its gradient, the mean size of what that is a sum of, and its second derivative."""
        loss = self._loss

        def sums(y: Any, z: Any, s: Any) -> tuple[Any, Any, Any]:
            z = z + beside(intercept, z)
            slope = loss.gradient(y, z)
            return s @ slope, s @ namespace(z).abs(slope), mean_hessian(loss, y, z, s)

        return self._fold(sums, *self._rows)


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
    mean: _MeanLoss, intercept: Floats, value: float, move: Floats
) -> tuple[Floats, float]:
    """The first of ``move``, ``move / 4``, ... that lowers the mean loss, or no move."""
    for _ in range(MAX_HALVINGS):
        trial = intercept + move
        trial_value = mean.value(trial)
        if trial_value < value:
            return trial, trial_value
        move = 0.25 * move
    return intercept, value
