"""Sums over rows, and the same without some rows: Gram matrices of folds by subtraction."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustruct.design import Design
from clustruct.losses import Target

__all__ = ["Moments"]

Floats = NDArray[np.float64]

# Subtraction is trusted where a column keeps this share of its sum of squares: four digits of
# sixteen are lost at most.
LEAST_SHARE = 1e-4
# About a centre this many deviations from zero, sums have lost as many digits already.
FARTHEST = 1e4


@dataclass(frozen=True, eq=False)
class Moments:
    """Weighted sums about a centre: all that squared loss needs to know of some rows.

    Attributes
    ----------
    weight : float
        Sum of the weights.
    x_center : ndarray of shape (d,)
    y_center : ndarray of shape (K,)
    x_sum : ndarray of shape (d,)
        Sum of ``x - x_center``.
    y_sum : ndarray of shape (K,)
    gram : ndarray of shape (d, d)
        Sum of ``(x - x_center)(x - x_center)'``.
    moment : ndarray of shape (d, K)
        The same of ``x`` and ``y``.
    squares : ndarray of shape (K,)
        The same of each output.
    """

    weight: float
    x_center: Floats
    y_center: Floats
    x_sum: Floats
    y_sum: Floats
    gram: Floats
    moment: Floats
    squares: Floats

    @classmethod
    def of(
        cls, design: Design, target: Target, weights: Floats, x_center: Floats, y_center: Floats
    ) -> "Moments":
        """Moments of weighted rows about given centres."""
        centred = target - y_center
        weighted = weights[:, None] * centred
        return cls(
            weight=float(weights.sum()),
            x_center=x_center,
            y_center=y_center,
            x_sum=design.cross(weights[:, None], x_center)[:, 0],
            y_sum=weighted.sum(axis=0),
            gram=design.gram(weights, x_center),
            moment=design.cross(weighted, x_center),
            squares=np.einsum("ik,ik->k", weighted, centred),
        )

    def without(self, part: "Moments") -> "Moments":
        """Moments of the other rows, about the same centres."""
        return Moments(
            weight=self.weight - part.weight,
            x_center=self.x_center,
            y_center=self.y_center,
            x_sum=self.x_sum - part.x_sum,
            y_sum=self.y_sum - part.y_sum,
            gram=self.gram - part.gram,
            moment=self.moment - part.moment,
            squares=self.squares - part.squares,
        )

    def averaged(self) -> "Moments":
        """The same with weights that sum to one."""
        return Moments(
            1.0,
            self.x_center,
            self.y_center,
            self.x_sum / self.weight,
            self.y_sum / self.weight,
            self.gram / self.weight,
            self.moment / self.weight,
            self.squares / self.weight,
        )

    def centred(self) -> "Moments":
        """The same about the means of the rows."""
        mean = self.averaged()
        return Moments(
            1.0,
            mean.x_center + mean.x_sum,
            mean.y_center + mean.y_sum,
            np.zeros_like(mean.x_sum),
            np.zeros_like(mean.y_sum),
            mean.gram - np.outer(mean.x_sum, mean.x_sum),
            mean.moment - np.outer(mean.x_sum, mean.y_sum),
            mean.squares - mean.y_sum**2,
        )

    def reliable(self, whole: "Moments") -> bool:
        """Whether enough of the whole is left in every column for a difference to be accurate."""
        mine = np.concatenate([np.diagonal(self.gram), self.squares])
        theirs = np.concatenate([np.diagonal(whole.gram), whole.squares]) / whole.weight
        centers = np.concatenate([whole.x_center, whole.y_center])
        near = np.abs(centers) <= FARTHEST * np.sqrt(theirs)
        return bool(((mine >= LEAST_SHARE * theirs) & (near | (centers == 0.0))).all())
