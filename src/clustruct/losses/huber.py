"""The Huber loss."""

from dataclasses import dataclass
from typing import ClassVar

from clustruct._typing import Floats
from clustruct.arrays import namespace, row_dots
from clustruct.losses.base import SQUARED_ERROR, Loss, Target
from clustruct.losses.noise import HuberNoise

__all__ = ["HuberLoss"]


@dataclass(frozen=True)
class HuberLoss(Loss):
    """Squared for residuals up to ``delta``, linear beyond, summed over outputs.

    Parameters
    ----------
    delta : float
        Size of the residual where the loss turns linear, in the units of the targets.
    """

    delta: float

    parameters: ClassVar[tuple[str, ...]] = ("delta",)
    nonnegative = True
    centred = True
    of_residuals = True
    has_likelihood = True
    scoring = SQUARED_ERROR

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

    def noise(self, n_outputs: int, mean_loss: float) -> HuberNoise:
        """Normal in the middle, with exponential tails."""
        return HuberNoise(n_outputs, mean_loss, self.delta)
