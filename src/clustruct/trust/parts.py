"""Which samples each refit has: halves without replacement, or bootstrap resamples."""

import numpy as np
from numpy.typing import NDArray

from clustruct._typing import Counts, Labels

# As in ``scheme=``.
SUBSAMPLE, BOOTSTRAP = "subsample", "bootstrap"


def draw_parts(
    scheme: str, n_resamples: int, strata: Labels, kept: NDArray[np.bool_], seed: int
) -> list[Counts]:
    """How often each sample is in each resample.

    strata (n,): numbers of the classes, tasks or both. Each stratum is resampled by itself, so that
        none is lost.
    kept (n,): samples of positive weight; the others are in no resample.
    """
    rng = np.random.default_rng(seed)
    members = [
        mine
        for mine in (np.flatnonzero((strata == s) & kept) for s in np.unique(strata))
        if mine.size
    ]
    draw = _halves if scheme == SUBSAMPLE else _bootstrap
    parts: list[Counts] = []
    while len(parts) < n_resamples:
        parts += draw(members, strata.size, rng)
    return parts[:n_resamples]


def _halves(members: list[Labels], n: int, rng: np.random.Generator) -> list[Counts]:
    """A half of the samples and the other half: complementary pairs (Shah and Samworth, 2013)."""
    first = np.zeros(n, dtype=np.uint8)
    second = np.zeros(n, dtype=np.uint8)
    for mine in members:
        mixed = rng.permutation(mine)
        middle = mine.size // 2 + int(mine.size % 2 and rng.random() < 0.5)
        if mine.size == 1:  # a single sample of its class or task is in both
            first[mine] = second[mine] = 1
            continue
        first[mixed[:middle]] = 1
        second[mixed[middle:]] = 1
    return [first, second]


def _bootstrap(members: list[Labels], n: int, rng: np.random.Generator) -> list[Counts]:
    """As many samples as there are, drawn with replacement."""
    counts = np.zeros(n, dtype=np.uint16)
    for mine in members:
        counts[mine] = np.bincount(rng.integers(mine.size, size=mine.size), minlength=mine.size)
    return [counts]
