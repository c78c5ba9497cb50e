"""The squared loss."""

import numpy as np

from clustruct._typing import Floats
from clustruct.arrays import row_dots
from clustruct.losses.base import SQUARED_ERROR, Loss, Target

__all__ = ["SquaredLoss"]


class SquaredLoss(Loss):
    """``1/2 |y - z|^2``; a row of targets may have several outputs."""

    quadratic = True
    nonnegative = True
    centred = True
    has_likelihood = True
    scoring = SQUARED_ERROR
    # The conjugate is finite everywhere; bounds at slopes stretched by more were never better.
    stretch = 4.0

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

    def minus_two_log_likelihood(self, mean_loss: float, n_samples: float, n_outputs: int) -> float:
        """Of normal noise, without the terms that are the same for all models."""
        variance = max(2.0 * mean_loss / n_outputs, np.finfo(np.float64).tiny)
        return float(n_samples * n_outputs * np.log(variance))
