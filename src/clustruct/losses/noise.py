"""Losses as likelihoods: how probable a target is, given the scores of its expert.

The density of a target is ``exp(-loss / T) / Z(T)``. For the squared loss that is normal noise of
variance ``T``; class probabilities are densities as they are, at ``T = 1``.
"""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import erf

__all__ = ["HuberNoise", "LaplaceNoise", "LogNoise", "Noise", "UnitNoise"]

# A perfect fit would have no noise at all, and a likelihood without bound.
LEAST_SCALE = 1e-12


class Noise:
    """Normal noise of one variance on every output; other families differ from it.

    mean_loss: that of a constant prediction, which sets the scale below which noise counts as none.
    """

    n_parameters = 1  # 0 if the scale is given and not fitted

    def __init__(self, n_outputs: int, mean_loss: float) -> None:
        self._n_outputs = n_outputs
        self._floor = max(LEAST_SCALE * mean_loss, np.finfo(np.float64).tiny)

    def scale(self, mean_loss: float) -> float:
        """The most likely ``T`` for a mean loss: the variance, twice the loss of an output."""
        return max(2.0 * mean_loss / self._n_outputs, self._floor)

    def log_partition(self, scale: float) -> float:
        """``log Z(T)``, which is ``K/2 log(2 pi T)``."""
        return 0.5 * self._n_outputs * float(np.log(2.0 * np.pi * scale))

    def spread(self, mean_loss: float) -> float:
        """How far scores of different experts are apart, when one model has this mean loss."""
        return float(np.sqrt(self.scale(mean_loss)))


class HuberNoise(Noise):
    """Normal in the middle, with the tails of an exponential distribution."""

    def __init__(self, n_outputs: int, mean_loss: float, delta: float) -> None:
        super().__init__(n_outputs, mean_loss)
        self._delta = delta

    def scale(self, mean_loss: float) -> float:
        """The minimum of ``mean_loss / T + log Z(T)``, which has no closed form."""
        guess = super().scale(mean_loss)
        search = minimize_scalar(
            lambda log: mean_loss * np.exp(-log) + self.log_partition(float(np.exp(log))),
            bounds=(np.log(guess) - 7.0, np.log(guess) + 7.0),
            method="bounded",
            options={"xatol": 1e-10},
        )
        return max(float(np.exp(search.x)), self._floor)

    def log_partition(self, scale: float) -> float:
        """The integral of the middle, and that of the tails."""
        middle = np.sqrt(2.0 * np.pi * scale) * erf(self._delta / np.sqrt(2.0 * scale))
        tails = 2.0 * scale / self._delta * np.exp(-0.5 * self._delta**2 / scale)
        return self._n_outputs * float(np.log(middle + tails))

    def spread(self, mean_loss: float) -> float:
        """The size of a residual with that loss."""
        squared = np.sqrt(2.0 * mean_loss / self._n_outputs)
        return float(max(squared, mean_loss / self._n_outputs / self._delta))


class LogNoise(Noise):
    """A deviance over a dispersion, where scores are logarithms (saddlepoint approximation).

    The density of an exponential dispersion model is about
    ``exp(-loss / T) / sqrt(2 pi T V(y))``; the factor ``V(y)`` is the same for all models.
    """

    def __init__(self, n_outputs: int, mean_loss: float, curvature: float) -> None:
        super().__init__(n_outputs, mean_loss)
        self._curvature = curvature

    def spread(self, mean_loss: float) -> float:
        """The difference of logarithms with that loss, by the second derivative."""
        return float(np.sqrt(self.scale(mean_loss) / self._curvature))


class LaplaceNoise(Noise):
    """The asymmetric Laplace distribution of quantile losses: ``Z(T) = T / (q (1 - q))``."""

    def __init__(self, n_outputs: int, mean_loss: float, level: float) -> None:
        super().__init__(n_outputs, mean_loss)
        self._sides = level * (1.0 - level)

    def scale(self, mean_loss: float) -> float:
        """The mean loss of an output."""
        return max(mean_loss / self._n_outputs, self._floor)

    def log_partition(self, scale: float) -> float:
        """``K log(T / (q (1 - q)))``."""
        return self._n_outputs * float(np.log(scale / self._sides))

    def spread(self, mean_loss: float) -> float:
        """The size of a residual with that loss, on a side that counts as half."""
        return 2.0 * self.scale(mean_loss)


class UnitNoise(Noise):
    """The loss is a negative log-likelihood as it is: there is no scale to fit."""

    n_parameters = 0

    def scale(self, mean_loss: float) -> float:
        """One."""
        return 1.0

    def log_partition(self, scale: float) -> float:
        """Zero: probabilities sum to one."""
        return 0.0

    def spread(self, mean_loss: float) -> float:
        """Far enough apart for different predictions."""
        return 2.0
