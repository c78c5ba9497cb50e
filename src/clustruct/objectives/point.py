"""Weights together with what was computed at them."""

from dataclasses import dataclass

from clustruct._typing import Floats

__all__ = ["Point"]


@dataclass(frozen=True, eq=False)
class Point:
    """Weights, the objective there, and what its gradient is made of.

    Attributes
    ----------
    W : ndarray of shape (d, K)
    value : float
    intercept : ndarray of shape (K,)
        The best one for these weights.
    slope : ndarray
        Derivative of the loss: by the scores (``n x K``, weighted) where ``X`` is at hand, by the
        weights (``d x K``) where only the Gram matrix is.
    """

    W: Floats
    value: float
    intercept: Floats
    slope: Floats
