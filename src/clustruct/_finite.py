"""Errors for numbers that are infinite or NaN, which name the step and the remedy."""

import math
from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from clustruct._typing import Floats

REMEDY = (
    "The numbers are too large, too small or too far apart for double precision. Scale the columns "
    "of X (for example with StandardScaler) and the targets to numbers around 1, and give alpha a "
    "value that suits that scale."
)


# Targets of a size between these can be squared and summed, with room for weights and ridges.
SMALLEST, LARGEST = 1e-150, 1e150

Function = TypeVar("Function", bound=Callable[..., Any])


class NotFinite(ValueError):
    """A quantity that a fit needs, such as "the gradient", is infinite or not a number.

    The step is where it arose, such as "solver 'pg', iteration 3".
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


def finite_moments(means: Floats, variances: Floats) -> tuple[Floats, Floats]:
    """Return means and variances of columns; raise an error if a square overflowed.

    Columns whose means are not finite hold entries that are not, which are reported elsewhere.
    """
    bad = np.flatnonzero(np.isfinite(means) & ~np.isfinite(variances))
    if bad.size:
        raise ValueError(
            f"X holds numbers too large to be squared in double precision, in {bad.size} of "
            f"{variances.size} columns; the first of them has index {bad[0]}. Scale the columns of "
            "X, for example with StandardScaler."
        )
    return means, variances


def refuse_offset(column: int, least: float, largest: float) -> NoReturn:
    """Raise an error for a column that varies too little beside its size."""
    if least == largest:
        raise ValueError(
            f"X holds numbers too large to be squared in double precision: column {column} is "
            f"{least!r} throughout. Leave it out: a constant column tells nothing."
        )
    size = max(abs(least), abs(largest))
    raise ValueError(
        f"X lies far from zero for its spread: column {column} has values from {least!r} to "
        f"{largest!r}, about {size / (largest - least):.0e} times as far from zero as from each "
        "other, and its precision leaves too few digits to tell them apart. Subtract the mean of "
        "each column first, for example with StandardScaler."
    )


def require_squares(y: NDArray[Any], name: str = "y") -> None:
    """Raise an error if numbers, NaN ignored, are too large or too small to be squared."""
    size = float(np.fmax.reduce(np.abs(y), axis=None, initial=0.0))
    if size > LARGEST or 0.0 < size < SMALLEST:
        what = "large" if size > LARGEST else "small"
        raise ValueError(
            f"{name} holds numbers too {what} to be squared in double precision: the largest is "
            f"{size:.3g}. Divide {name} by its standard deviation, or by any number of that size."
        )


def broken_down(error: np.linalg.LinAlgError, step: str = "") -> ValueError:
    """The error for a decomposition that failed, with the remedy."""
    where = f" ({step})" if step else ""
    return ValueError(f"The fit broke down{where}: {error}. {REMEDY}")


def without_warnings(function: Function) -> Function:
    """Silence NumPy's warnings of overflow and zeros, which end in an error that says more."""

    @wraps(function)
    def silent(*args: Any, **kwargs: Any) -> Any:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            try:
                return function(*args, **kwargs)
            except np.linalg.LinAlgError as error:
                raise broken_down(error) from error

    return cast("Function", silent)
