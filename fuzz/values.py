"""Numbers that are hard to handle: ties, neighbours, offsets, many decades, the ends of the range.

Lists of numbers hold Python's floats, so that recipes hold the same bits that cases ran with.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuzz.cases import Random

Floats = NDArray[Any]


def _neighbours(rng: Random, n: int) -> Floats:
    """A few units in the last place apart, about some number."""
    about = float(rng.choice([1.0, -1.0, 1e15, 1e-300, 3.0, 2.0**52, 0.1]))
    return about + rng.integers(0, 7, n) * np.spacing(about)


def _clusters(rng: Random, n: int) -> Floats:
    spots = rng.uniform(-1.0, 1.0, int(rng.integers(1, 5)))
    return rng.choice(spots, n) + 10.0 ** rng.uniform(-16.0, 0.0) * rng.standard_normal(n)


def _offset(rng: Random, n: int) -> Floats:
    return 10.0 ** rng.uniform(0.0, 16.0) + rng.standard_normal(n)


def _decades(rng: Random, n: int) -> Floats:
    return rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-20.0, 20.0, n)


def _special(rng: Random, n: int) -> Floats:
    """Zeros of both signs, the smallest and the largest numbers."""
    kinds = [0.0, -0.0, 5e-324, -5e-324, 2.2e-308, 1.0, -1.0, 1.0 + 2.0**-52, 1e308, -1.7e308]
    return rng.choice(kinds, n)


SHAPES: dict[str, Callable[[Random, int], Floats]] = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "ties": lambda rng, n: rng.integers(-3, 4, n) / 4.0,
    "constant": lambda rng, n: np.full(n, rng.standard_normal()),
    "grid": lambda rng, n: rng.permutation(n) - float(n // 3),
    "neighbours": _neighbours,
    "clusters": _clusters,
    "offset": _offset,
    "decades": _decades,
    "cauchy": lambda rng, n: rng.standard_cauchy(n),
    "tiny": lambda rng, n: 1e-305 * rng.standard_normal(n),
    "huge": lambda rng, n: 1e300 * rng.standard_normal(n),
    "special": _special,
}


def draw_values(rng: Random, n: int) -> list[float]:
    """Numbers of one shape or, now and then, of two, with or without a common factor."""
    names = list(SHAPES)
    values = SHAPES[names[int(rng.integers(len(names)))]](rng, n)
    if rng.random() < 0.15:
        other = SHAPES[names[int(rng.integers(len(names)))]](rng, n)
        values = np.where(rng.random(n) < 0.5, values, other)
    if rng.random() < 0.1:
        with np.errstate(all="ignore"):
            scaled = values * 2.0 ** int(rng.integers(-300, 300))
        if np.isfinite(scaled).all():
            values = scaled
    return [float(value) for value in values]


def draw_weights(rng: Random, n: int) -> list[float] | None:
    """None, or weights of which some may be zero, but not all."""
    kind = int(rng.integers(8))
    if kind < 3:
        return None
    if kind == 3:
        weights = rng.integers(1, 5, n).astype(float)
    elif kind == 4:
        weights = 10.0 ** rng.uniform(-6.0, 6.0, n)
    elif kind == 5:
        weights = rng.random(n) * (rng.random(n) < 0.7)
    elif kind == 6:
        weights = 1.0 + rng.integers(0, 3, n) * 2.0**-52
    else:
        weights = 10.0 ** rng.uniform(-300.0, 300.0) * rng.uniform(0.5, 2.0, n)
    if not weights.any():
        weights[int(rng.integers(n))] = 1.0
    return [float(weight) for weight in weights]


# Other forms of the same numbers, which functions must accept all the same.
FORMS: dict[str, Callable[[Floats], Any]] = {
    "array": lambda x: x,
    "list": lambda x: x.tolist(),
    "reversed view": lambda x: x[::-1].copy()[::-1],
    "strided": lambda x: np.repeat(x, 2, axis=0)[::2],
    "read-only": lambda x: _read_only(x),
    "big-endian": lambda x: x.astype(">f8"),
    "objects": lambda x: x.astype(object),
    "long double": lambda x: x.astype(np.longdouble),
}


def _read_only(x: Floats) -> Floats:
    x = x.copy()
    x.flags.writeable = False
    return x


def draw_form(rng: Random) -> str:
    """Mostly a plain array."""
    return "array" if rng.random() < 0.7 else list(FORMS)[int(rng.integers(len(FORMS)))]
