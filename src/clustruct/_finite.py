"""Errors for numbers that overflowed or are not numbers, with the step they arose in."""

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["REMEDY", "NotFinite", "require_finite"]

REMEDY = (
    "The numbers are too large, too small or too far apart for double precision. Scale the columns "
    "of X (for example with StandardScaler) and the targets to numbers around 1, and give alpha a "
    "value that suits that scale."
)


class NotFinite(ValueError):
    """A quantity that a fit needs is infinite or not a number.

    Parameters
    ----------
    quantity : str
        What it is, such as "the gradient".
    value : float
    step : str, default=""
        Where it arose, such as "solver 'pg', iteration 3".
    """

    def __init__(self, quantity: str, value: float, step: str = "") -> None:
        self.quantity = quantity
        self.value = value
        where = f" ({step})" if step else ""
        super().__init__(f"The fit broke down{where}: {quantity} is {value}. {REMEDY}")

    def at(self, step: str) -> "NotFinite":
        """The same error with the step that it arose in."""
        return NotFinite(self.quantity, self.value, step)

    def __reduce__(self) -> tuple[type, tuple[str]]:
        # Errors of worker processes are sent by value, and this class takes more than a message.
        return ValueError, (str(self),)


def require_finite(values: float | NDArray[np.float64], quantity: str, step: str = "") -> None:
    """Raise `NotFinite` unless all of a number or an array is finite."""
    finite = math.isfinite(values) if isinstance(values, float) else np.isfinite(values).all()
    if not finite:
        array = np.asarray(values)
        raise NotFinite(quantity, float(array[~np.isfinite(array)].flat[0]), step)
