"""Checks of arguments, whose errors state the reason and the remedy."""

import math
import numbers
from collections.abc import Callable, Collection

import numpy as np
from numpy.typing import ArrayLike, NDArray


def as_count(value: object, name: str, least: int = 1) -> int:
    """An integer that is at least ``least``."""
    if type(value) is int and value >= least:
        return value
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
        raise ValueError(
            f"{name} must be an integer, got {value!r} of type {type(value).__name__}. "
            f"Give a whole number that is at least {least}."
        )
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}. Give a larger number.")
    return int(value)


def as_number(
    value: object, name: str, wanted: str = "finite", allowed: Callable[[float], bool] | None = None
) -> float:
    """A finite number that is ``allowed``, which ``wanted`` says in words."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise ValueError(
            f"{name} must be a number, got {value!r} of type {type(value).__name__}. "
            f"Give a number that is {wanted}."
        )
    number = float(value)
    if not math.isfinite(number) or (allowed is not None and not allowed(number)):
        raise ValueError(f"{name} must be {wanted}, got {value!r}. Give a number that is {wanted}.")
    return number


def as_numbers(value: ArrayLike, name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Finite numbers of the given shape; a single number is repeated."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must hold numbers, got {value!r:.80}. Give one number, or an array of them."
        ) from error
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {value!r:.80}. Give finite numbers.")
    if array.shape not in ((), shape):
        raise ValueError(
            f"{name} has shape {array.shape}. Give one number, or an array of shape {shape}."
        )
    return np.broadcast_to(array, shape).copy()


def as_flag(value: object, name: str) -> bool:
    """True or False; anything else is an error."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {value!r}. Give one of the two.")
    return bool(value)


def as_choice(value: object, name: str, choices: Collection[str]) -> str:
    """One of the given words."""
    if not isinstance(value, str) or value not in choices:
        words = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {words}, got {value!r}. Give one of them.")
    return value
