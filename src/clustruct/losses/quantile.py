"""The quantile loss."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import QuantileRegressor

from clustruct._typing import Floats
from clustruct.arrays import expit, namespace, softplus, to_host, xlogy
from clustruct.losses.base import Loss, Measure, Target
from clustruct.losses.intercept import at_once
from clustruct.losses.noise import LaplaceNoise

__all__ = ["QuantileLoss"]

QUARTILES = (0.25, 0.75)
# Ranks that differ by less are the same, up to rounding.
SAME_RANK = 1e-9
# Spreads of less than this part of the targets are rounding.
SAME_VALUE = 1e-12


@dataclass(frozen=True, repr=False)
class QuantileLoss(Loss):
    """``q r + h log(1 + exp(-r / h))`` for residuals ``r = y - z``: a smooth pinball loss.

    The quantile is that of targets with logistic noise of scale ``h`` added to them.

    Parameters
    ----------
    level : float
        The quantile to predict, between 0 and 1.
    smoothing : float
        The width ``h``, in units of the interquartile range of the targets.
    width : float
        The width itself; a fit takes it from its targets. Zero is the pinball loss, by which
        predictions are scored.
    """

    level: float = 0.5
    smoothing: float = 0.05
    width: float = 0.0
    curvature: float = field(default=1.0, compare=False)

    parameters: ClassVar[tuple[str, ...]] = ("level", "smoothing")
    nonnegative = True
    centred = True
    of_residuals = True
    takes_classes = False
    predicts_means = False
    has_likelihood = True
    scoring = "neg_mean_pinball_loss"

    def __post_init__(self) -> None:
        if not 0.0 < self.level < 1.0:
            raise ValueError(f"level={self.level!r} is not between 0 and 1. Give such a number.")
        if not 0.0 < self.smoothing < np.inf:
            raise ValueError(f"smoothing={self.smoothing!r} is no positive number. Give one.")

    def __repr__(self) -> str:
        width = f", width={self.width!r}" if self.width else ""
        return f"QuantileLoss(level={self.level!r}, smoothing={self.smoothing!r}{width})"

    def value(self, target: Target, scores: Floats) -> Floats:
        """``q r + h log(1 + exp(-r / h))``."""
        xp = namespace(scores)
        excess = scores - target
        if self.width:
            beyond = self.width * softplus(excess / self.width)
        else:
            beyond = xp.where(excess > 0.0, excess, 0.0)
        return xp.sum(beyond - self.level * excess, axis=1)

    def gradient(self, target: Target, scores: Floats) -> Floats:
        """``1 / (1 + exp(r / h)) - q``."""
        return self._beyond(target, scores) - self.level

    def hessian_product(self, target: Target, scores: Floats, direction: Floats) -> Floats:
        """``s (1 - s) / h`` times the direction, with ``s`` the slope plus ``q``."""
        if not self.width:
            return 0.0 * direction
        excess = (scores - target) / self.width
        return expit(excess) * expit(-excess) / self.width * direction

    def _beyond(self, target: Target, scores: Floats) -> Floats:
        """How much each score counts as above the target, from 0 to 1."""
        xp = namespace(scores)
        if self.width:
            return expit((scores - target) / self.width)
        return xp.where(scores > target, xp.ones_like(scores), 0.0)

    def conjugate(self, target: Target, slope: Floats) -> Floats:
        """``g y + h (s log s + (1 - s) log(1 - s))`` with ``s = g + q`` from 0 to 1."""
        xp = namespace(slope)
        share = xp.clip(slope + self.level, 0.0, 1.0)
        return xp.sum(slope * target + self.width * (xlogy(share) + xlogy(1.0 - share)), axis=1)

    def with_targets(
        self, target: Any, shares: Any, fold: Callable[..., Any] = at_once
    ) -> "QuantileLoss":
        """The loss with the width for these targets, and the curvature at the best constant."""

        def host(y: Any, s: Any) -> Any:
            return np.column_stack([to_host(s), to_host(y)])

        rows = fold(host, target, shares, combine=lambda *parts: np.vstack(parts))
        spreads = [_spread(column, rows[:, 0]) for column in rows[:, 1:].T]
        mine = replace(self, width=self.smoothing * min(spreads))
        steep = replace(mine, curvature=0.25 / mine.width)  # the bound
        typical = steep._constant_curvature(target, shares, fold, len(spreads))
        return replace(mine, curvature=typical)

    def deviance(self, target: Target, scores: Floats) -> Floats:
        """Twice the pinball loss, without smoothing."""
        return 2.0 * replace(self, width=0.0).value(target, scores)

    def measure(self, scoring: str) -> Measure | None:
        """The pinball loss as well."""
        if scoring == self.scoring:
            return lambda target, scores: -0.5 * self.deviance(target, scores)
        return super().measure(scoring)

    def noise(self, n_outputs: int, mean_loss: float) -> LaplaceNoise:
        """An asymmetric Laplace distribution."""
        return LaplaceNoise(n_outputs, mean_loss, self.level)

    @property
    def constant(self) -> Any:
        """The quantile of the targets."""
        return DummyRegressor(strategy="quantile", quantile=self.level)

    @property
    def constant_name(self) -> str:
        """Which quantile."""
        return f"the {self.level:g} quantile"

    @property
    def boosting(self) -> dict[str, Any]:
        """Boosting by the pinball loss."""
        return {"loss": "quantile", "quantile": self.level}

    def to_regressor(self, coef: Floats, intercept: Any, fit_intercept: bool) -> Any:
        """Quantile regression."""
        model = QuantileRegressor(quantile=self.level, fit_intercept=fit_intercept)
        model.coef_, model.intercept_ = coef, intercept
        return model


def _spread(values: Floats, weights: Floats) -> float:
    """Interquartile range; if it is zero the standard deviation, or the size of a constant."""
    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[order] / weights.sum()
    ranks = np.cumsum(weights)
    # A quartile between two targets is their mean, however the ranks are rounded.
    ends = [
        values[np.minimum(np.searchsorted(ranks, np.array(QUARTILES) + side), values.size - 1)]
        for side in (-SAME_RANK, SAME_RANK)
    ]
    low, high = 0.5 * (ends[0] + ends[1])
    deviation = np.sqrt(weights @ np.square(values - weights @ values))
    size = np.abs(values).max()
    return float(next(s for s in (high - low, deviation, size, 1.0) if s > SAME_VALUE * size))
