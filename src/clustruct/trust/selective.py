"""Tests of a difference of two groups that were found on the same data (selective inference).

Values ``x`` with independent normal errors of variance ``s_l^2`` were put in groups by some rule.
The difference of two groups' means is ``eta'x``. Along the line

    x(t) = x + (t - eta'x) c,    c = S eta / (eta'S eta),    S = diag(s^2),

everything independent of ``eta'x`` stays as it is. Given that, and given that the rule finds the
two groups, ``eta'x`` is normal with variance ``eta'S eta``, truncated to

    T = {t : the rule puts x(t) in the same two groups}.

Under equal means its tail probability is uniform, however the groups were found: the rule has only
to be repeated on ``x(t)``. Where it is exact k-means that is a dynamic program of microseconds.
``T`` is a union of intervals. It is found on a grid with `STEPS` points for each standard error,
and its ends by bisection; an interval between two points of the grid is missed.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp

from clustruct._typing import Floats, Labels

# Points of the grid for each standard error, and the most points in all. The grid ends where the
# density is exp(-FAR^2 / 2) = 1e-14 of that at the difference that was seen.
STEPS, FAR, MOST_POINTS = 25, 8.0, 4000
# Bisections of a step.
N_HALVINGS = 40

Rule = Callable[[Floats], Labels]


class Contrast(NamedTuple):
    """The difference of the means of two groups, the first less the second, as a linear function.

    Means are weighted by the precision of the values.
    """

    eta: Floats
    direction: Floats
    difference: float
    std_error: float

    @classmethod
    def of(
        cls, x: Floats, std_error: Floats, first: NDArray[np.bool_], second: NDArray[np.bool_]
    ) -> "Contrast":
        """That of two groups, given as masks."""
        precision = (std_error.min() / std_error) ** 2
        eta = first * precision / precision[first].sum()
        eta = eta - second * precision / precision[second].sum()
        spread = np.square(std_error) * eta
        variance = float(spread @ eta)
        return cls(eta, spread / variance, float(eta @ x), float(np.sqrt(variance)))


def selective_p_value(
    x: Floats, std_error: Floats, first: NDArray[np.bool_], second: NDArray[np.bool_], rule: Rule
) -> tuple[Contrast, float]:
    """The contrast of two groups, and the p-value of a difference that is none."""
    contrast = Contrast.of(x, std_error, first, second)

    def found(t: float) -> bool:
        labels = rule(x + (t - contrast.difference) * contrast.direction)
        return _is_group(labels, first) and _is_group(labels, second)

    bounds = truncation(found, contrast.difference, contrast.std_error)
    return contrast, tail(bounds / contrast.std_error, contrast.difference / contrast.std_error)


def _is_group(labels: Labels, members: NDArray[np.bool_]) -> bool:
    """Whether some group has just these members."""
    return bool(np.array_equal(labels == labels[members][0], members))


def truncation(found: Callable[[float], bool], seen: float, std_error: float) -> Floats:
    """The intervals (k, 2) in which the groups are found again, as far as they matter."""
    reach = float(np.hypot(seen, FAR * std_error))
    n_points = int(min(2.0 * STEPS * reach / std_error, MOST_POINTS)) | 1
    grid = np.union1d(np.linspace(-reach, reach, n_points), [seen])
    inside = np.array([t == seen or found(t) for t in grid])
    ends = [
        _end(found, grid[k], grid[k + 1], bool(inside[k]))
        for k in np.flatnonzero(inside[1:] != inside[:-1])
    ]
    # Beyond the grid nothing changes that matters: far apart, the two groups are found or not.
    ends = [-np.inf] * int(inside[0]) + ends + [np.inf] * int(inside[-1])
    return np.array(ends).reshape(-1, 2)


def _end(found: Callable[[float], bool], low: float, high: float, inside: bool) -> float:
    """Where the groups begin or cease to be found."""
    for _ in range(N_HALVINGS):
        middle = 0.5 * (low + high)
        if found(middle) == inside:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def tail(bounds: Floats, seen: float) -> float:
    """``P(|Z| >= |seen|)`` of a standard normal that is truncated to intervals."""
    beyond = [
        np.clip(bounds, abs(seen), np.inf),
        np.clip(bounds, -np.inf, -abs(seen)),
    ]
    every = logsumexp(_log_masses(bounds))
    outside = logsumexp(np.concatenate([_log_masses(each) for each in beyond]))
    return float(np.exp(min(0.0, outside - every)))


def _log_masses(bounds: Floats) -> Floats:
    """Logarithms of the probabilities of intervals under the standard normal."""
    low, high = bounds.T
    mirrored = low > 0.0  # the tail on the left has all its digits
    low, high = np.where(mirrored, -high, low), np.where(mirrored, -low, high)
    log_low, log_high = log_ndtr(low), log_ndtr(high)
    with np.errstate(divide="ignore", invalid="ignore"):
        masses = log_high + np.log1p(-np.exp(log_low - log_high))
    return np.where(high > low, masses, -np.inf)
