"""The arrays that are clustered: seven shapes, the same numbers in every run."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Generator = np.random.Generator


def _tight_clusters(rng: Generator, n: int) -> Floats:
    centers = rng.normal(scale=10.0, size=20)
    return centers[rng.integers(20, size=n)] + rng.normal(scale=0.01, size=n)


SHAPES: dict[str, Callable[[Generator, int], Floats]] = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "uniform": lambda rng, n: rng.random(n),
    "t2": lambda rng, n: rng.standard_t(2, n),
    "Cauchy": lambda rng, n: rng.standard_cauchy(n),
    "lognormal": lambda rng, n: rng.lognormal(size=n),
    "many ties": lambda rng, n: rng.standard_normal(n).round(2),
    "20 clusters": _tight_clusters,
}


def make(shape: str, n: int, seed: int = 0) -> Floats:
    """An array of ``n`` numbers of the given shape."""
    return SHAPES[shape](np.random.default_rng([n, seed]), n)
