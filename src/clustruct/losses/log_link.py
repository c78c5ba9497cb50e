"""Losses for counts and amounts, whose logarithm is linear: Poisson, gamma and Tweedie.

All are half the deviance of a Tweedie family: with the prediction ``mu = exp(z)`` the variance is
proportional to ``mu^p``. With ``a = 1 - p <= 0`` and ``b = 2 - p >= 0``, so that ``b - a = 1``,

    loss(y, z) = exp(b z) / b - y exp(a z) / a + y^b / (a b),
    loss'  = exp(b z) - y exp(a z),
    loss'' = b exp(b z) - a y exp(a z) >= 0.

For ``y > 0`` and ``t = z - log y`` the loss is ``y^b (expm1(b t) / b - expm1(a t) / a)``, which
has no cancellation and holds for Poisson (``a = 0``) and gamma (``b = 0``) as well, where one of
the fractions becomes ``t``. For ``y = 0`` the loss is ``exp(b z) / b``.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import GammaRegressor, PoissonRegressor, TweedieRegressor
from sklearn.multioutput import MultiOutputRegressor

from clustruct._typing import Floats
from clustruct.arrays import namespace, xlogy
from clustruct.losses.base import Loss, Target
from clustruct.losses.intercept import at_once
from clustruct.losses.noise import LogNoise, Noise, UnitNoise

__all__ = ["GammaLoss", "PoissonLoss", "TweedieLoss"]

# Beyond scores of this size, predictions of 1e130, the loss is continued by its second-order
# expansion: convex, never infinite, and one Newton step leads back. Squares of it do not overflow.
FARTHEST = 300.0
# Exponents up to this do not overflow.
LARGEST_EXPONENT = 700.0
# If all targets are zero, they count as this much, so that intercepts are finite.
LEAST_MEAN = 1e-30
# Newton's method for the conjugate ends when a step is this small, relative to the unknown.
ROOT_TOLERANCE = 1e-14
MAX_ROOT_STEPS = 100


class _LogLinkLoss(Loss):
    """Half the deviance of a family with variance ``mu^power`` and the logarithm as link."""

    nonnegative = True
    positive = True
    takes_classes = False
    has_likelihood = True
    power: float

    def __repr__(self) -> str:
        mine = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.parameters)
        return f"{type(self).__name__}({mine})"  # without what it takes from targets

    # ---- The function

    def value(self, target: Target, scores: Floats) -> Floats:
        """``y^b (expm1(b t) / b - expm1(a t) / a)``, or ``exp(b z) / b`` for ``y = 0``."""
        xp, (a, b) = namespace(scores), self._exponents
        inner = xp.clip(scores, -FARTHEST, FARTHEST)
        positive = target > 0.0
        size = xp.where(positive, target, 1.0)
        t = xp.clip(inner - xp.log(size), -LARGEST_EXPONENT, LARGEST_EXPONENT)
        values = size**b * (_relative_power(b, t) - _relative_power(a, t))
        if b > 0.0:  # gamma targets are positive
            values = xp.where(positive, values, xp.exp(b * inner) / b)
        values = xp.where(values > 0.0, values, 0.0)  # rounding, next to the minimum
        rest = scores - inner
        if bool(xp.any(rest != 0.0)):
            slope, bend = self._derivatives(target, inner)
            values = values + rest * (slope + 0.5 * bend * rest)
        return xp.sum(values, axis=1)

    def gradient(self, target: Target, scores: Floats) -> Floats:
        """``exp(b z) - y exp(a z)``."""
        inner = namespace(scores).clip(scores, -FARTHEST, FARTHEST)
        slope, bend = self._derivatives(target, inner)
        return slope + bend * (scores - inner)

    def hessian_product(self, target: Target, scores: Floats, direction: Floats) -> Floats:
        """``b exp(b z) - a y exp(a z)`` times the direction."""
        inner = namespace(scores).clip(scores, -FARTHEST, FARTHEST)
        return self._derivatives(target, inner)[1] * direction

    def _derivatives(self, target: Target, scores: Floats) -> tuple[Floats, Floats]:
        """First and second derivative, of scores that are not beyond the farthest."""
        a, b = self._exponents
        rise, fall = self._parts(target, scores)
        return rise - fall, b * rise - a * fall

    def _parts(self, target: Any, scores: Floats) -> tuple[Floats, Floats]:
        """``exp(b z)`` and ``y exp(a z)``."""
        xp, (a, b) = namespace(scores), self._exponents
        return xp.exp(b * scores), target * xp.exp(a * scores) if a else target

    @property
    def _exponents(self) -> tuple[float, float]:
        """``a`` and ``b``."""
        return 1.0 - self.power, 2.0 - self.power

    def closed_intercept(
        self, target: Any, scores: Any, shares: Any, fold: Callable[..., Any] = at_once
    ) -> Floats:
        """``log sum y exp(a z) - log sum exp(b z)``: with it the slopes sum to zero."""

        def sums(y: Any, z: Any, s: Any) -> tuple[Any, Any, Any]:
            inner = namespace(z).clip(z, -FARTHEST, FARTHEST)
            rise, fall = self._parts(y, inner)
            return s @ rise, s @ fall, s @ self._parts(LEAST_MEAN + 0.0 * z, inner)[1]

        rise, fall, least = (np.asarray(part) for part in fold(sums, target, scores, shares))
        return np.log(np.where(fall > 0.0, fall, least)) - np.log(rise)

    def with_targets(self, target: Any, shares: Any, fold: Callable[..., Any] = at_once) -> Self:
        """The loss with the curvature at the mean of the targets, ``m^b``, as a typical one."""
        means = np.asarray(fold(lambda y, s: s @ y, target, shares))
        mine = copy(self)
        typical = float(np.mean(np.where(means > 0.0, means, LEAST_MEAN) ** self._exponents[1]))
        object.__setattr__(mine, "curvature", typical)
        return mine

    # ---- Targets and predictions

    def valid(self, target: Target) -> NDArray[np.bool_]:
        """Whether no target of a row is negative, or zero where the variance is ``mu^2``."""
        good = target > 0.0 if self.power == 2.0 else target >= 0.0
        return np.asarray(good.all(axis=1))

    @property
    def targets(self) -> str:  # type: ignore[override]
        """What `valid` accepts."""
        return "numbers above 0" if self.power == 2.0 else "numbers of at least 0"

    def predictions(self, scores: Floats) -> Floats:
        """``exp(z)``, never infinite."""
        xp = namespace(scores)
        return xp.exp(xp.clip(scores, -LARGEST_EXPONENT, LARGEST_EXPONENT))

    def link(self, predictions: Floats) -> Floats:
        """The logarithm."""
        return namespace(predictions).log(predictions)

    def variance(self, predictions: Floats) -> Floats:
        """``mu^p``."""
        return predictions**self.power

    def as_rates(self, target: Any, offset: Any) -> tuple[Any, Any]:
        """``y / e`` with weight ``e^b``: ``loss(y, z + log e) = e^b loss(y / e, z)``.

        The loss is homogeneous, as ``t`` does not change. Counts have the weight ``e``; amounts of
        a gamma family none, since their deviance does not depend on the unit.
        """
        return target / np.exp(offset), np.exp(self._exponents[1] * offset)

    # ---- Likelihood and scikit-learn

    def noise(self, n_outputs: int, mean_loss: float) -> Noise:
        """Deviance over a fitted dispersion: the saddlepoint approximation of the density."""
        return LogNoise(n_outputs, mean_loss, self.curvature)

    def to_regressor(self, coef: Floats, intercept: Any, fit_intercept: bool) -> Any:
        """The generalised linear model of the family; one for each output if there are several."""
        if coef.ndim == 2:
            several = MultiOutputRegressor(self._regressor(fit_intercept))
            several.estimators_ = [
                self.to_regressor(mine, offset, fit_intercept)
                for mine, offset in zip(coef, intercept, strict=True)
            ]
            for one in several.estimators_:
                one.n_features_in_ = coef.shape[1]
            return several
        model = self._regressor(fit_intercept)
        model.coef_, model.intercept_ = coef, float(intercept)
        model._base_loss = model._get_loss()
        return model

    @property
    def ridge(self) -> Any:
        """The generalised linear model of the family."""
        return self._regressor(fit_intercept=True)

    def _regressor(self, fit_intercept: bool) -> Any:
        """An unfitted model of scikit-learn."""
        return TweedieRegressor(power=self.power, link="log", fit_intercept=fit_intercept)


class PoissonLoss(_LogLinkLoss):
    """``exp(z) - y - y (z - log y)``: half the Poisson deviance of counts or rates.

    Its likelihood lacks a term that depends on the targets alone, the same for all models.
    """

    power = 1.0

    def conjugate(self, target: Target, slope: Floats) -> Floats:
        """``m log m - g - y log y`` with ``m = g + y``, for slopes of at least ``-y``."""
        xp = namespace(slope)
        positive = target > 0.0
        size = xp.where(positive, target, 1.0)
        ratio = slope / size
        inside = _entropy(size, ratio) - slope + slope * xp.log(size)
        rise = xp.where(slope > 0.0, slope, 0.0)
        return xp.sum(xp.where(positive, inside, xlogy(rise) - rise), axis=1)

    def noise(self, n_outputs: int, mean_loss: float) -> Noise:
        """Counts have no dispersion to fit."""
        return UnitNoise(n_outputs, mean_loss)

    def _regressor(self, fit_intercept: bool) -> Any:
        return PoissonRegressor(fit_intercept=fit_intercept)


class GammaLoss(_LogLinkLoss):
    """``y exp(-z) - 1 + z - log y``: half the gamma deviance of positive amounts."""

    power = 2.0

    def conjugate(self, target: Target, slope: Floats) -> Floats:
        """``m log m + g (1 + log y)`` with ``m = 1 - g``, for slopes of at most 1."""
        xp = namespace(slope)
        size = xp.where(target > 0.0, target, 1.0)  # rows without weight may have any target
        return xp.sum(_entropy(1.0, -slope) + slope + slope * xp.log(size), axis=1)

    @property
    def boosting(self) -> dict[str, Any]:
        """Gamma boosting."""
        return {"loss": "gamma"}

    def _regressor(self, fit_intercept: bool) -> Any:
        return GammaRegressor(fit_intercept=fit_intercept)


@dataclass(frozen=True, repr=False)
class TweedieLoss(_LogLinkLoss):
    """Half the Tweedie deviance of amounts that may be zero, such as claims of a year.

    Parameters
    ----------
    power : float
        The variance is proportional to this power of the mean; between 1, as for counts, and 2.
    """

    power: float = 1.5

    parameters: ClassVar[tuple[str, ...]] = ("power",)

    def __post_init__(self) -> None:
        if not 1.0 < self.power < 2.0:
            raise ValueError(
                f"power={self.power!r} is not between 1 and 2. Give such a number, or choose "
                "PoissonLoss() for 1 or GammaLoss() for 2."
            )

    def conjugate(self, target: Target, slope: Floats) -> Floats:
        """``g z - loss(z)`` where ``exp(b z) - y exp(a z) = g``; ``g >= 0`` for ``y = 0``.

        For ``y > 0`` and ``r = g / y^b`` the unknown is ``s = exp(b t)`` if ``r >= 0``, otherwise
        ``s = exp(a t)``; in both cases ``s >= 1`` solves ``s - s^-m = |r|``.
        """
        xp, (a, b) = namespace(slope), self._exponents
        positive = target > 0.0
        size = xp.where(positive, target, 1.0)
        ratio = slope / size**b
        rises, ones = ratio >= 0.0, xp.ones_like(ratio)
        root = _root(xp.abs(ratio), xp.where(rises, -a / b * ones, -b / a))
        t = xp.log(root) * xp.where(rises, ones / b, 1.0 / a)
        inside = slope * (xp.log(size) + t) - size**b * (
            _relative_power(b, t) - _relative_power(a, t)
        )
        rise = xp.where(slope > 0.0, slope, 0.0)
        return xp.sum(xp.where(positive, inside, (xlogy(rise) - rise) / b), axis=1)


def _relative_power(exponent: float, t: Floats) -> Floats:
    """``(exp(c t) - 1) / c``, which is ``t`` for ``c = 0``."""
    return namespace(t).expm1(exponent * t) / exponent if exponent else t


def _entropy(size: Any, ratio: Floats) -> Floats:
    """``(1 + r) log(1 + r)`` times a size, for ``r >= -1``: precise also next to ``r = 0``."""
    xp = namespace(ratio)
    inner = xp.where(ratio > -1.0, ratio, 0.0)
    return size * xp.where(ratio > -1.0, (1.0 + inner) * xp.log1p(inner), 0.0)


def _root(ratio: Floats, power: Floats) -> Floats:
    """The ``s >= 1`` with ``s - s^-m = r`` for ``r >= 0``, by Newton's method.

    The function is concave and grows: from the left, steps come nearer and never pass the root.
    """
    xp = namespace(ratio)
    root = xp.where(ratio > 1.0, ratio, 1.0)
    for _ in range(MAX_ROOT_STEPS):
        fall = root**-power
        step = (ratio - root + fall) / (1.0 + power * fall / root)
        root = root + step
        if bool(xp.all(xp.abs(step) <= ROOT_TOLERANCE * root)):
            break
    return root
