"""Exact k-means of numbers that lie on a device.

Sorting, adding up and comparing with thresholds take most of the time for many numbers; they run on
the device. The search for the best cuts looks at few of the sorted values and their sums; it runs
on the host (`kernels.kmeans.kmeans1d`) and gives the same result.

Running sums are exact here: numbers are split into integers of 31 bits each, whose sums no order of
additions changes, and four of which hold 124 bits.
"""

from typing import Any

import numpy as np

from clustruct._typing import Floats, Labels
from clustruct.arrays import beside, cast, namespace, to_host
from clustruct.kernels.kmeans.kmeans1d import Sorted, choose_origin, cut, ldexp
from clustruct.kernels.numbers.intervals import BLOCK, NO_WEIGHTS
from clustruct.kernels.numbers.sorting import scale_factors

Array = Any

# Four integers of 31 bits hold a number.
N_DIGITS, BASE = 4, 2.0**31
# Splits a double into halves of 26 bits, whose products are exact.
SPLITTER = 134217729.0
# Largest label that fits into eight bits.
MOST_SMALL = 127


def cluster_on_device(x: Array, n_clusters: int) -> tuple[Labels, Floats, Labels, float]:
    """Exact k-means of numbers in any order, as `kernels.kmeans.kmeans1d.cluster_values` has it.

    x (n,): finite, of double precision, of any library that speaks the array API.
    n_clusters: at least 1.

    Returns labels (n,) in the order of the centres, centres (q,), sizes (q,) and the inertia.
    """
    xp = namespace(x)
    ordered = xp.sort(x)
    starts, centers, cost, exponent = cut(_prepare(ordered), n_clusters)
    thresholds = xp.take(ordered, beside(starts, x))
    labels = xp.searchsorted(thresholds, x, side="right")
    small = xp.int8 if n_clusters <= MOST_SMALL else xp.int32  # there is less to bring to the host
    sizes = np.diff(starts, prepend=0, append=x.shape[0])
    return to_host(cast(labels, small)).astype(np.intp), centers, sizes, ldexp(cost, exponent)


def _prepare(ordered: Array) -> Sorted:
    """Sorted values with their moments, on the host."""
    xp = namespace(ordered)
    n = int(ordered.shape[0])
    factor, factor_too, exponent = scale_factors(max(-float(ordered[0]), float(ordered[-1])))
    scaled = ordered * factor * factor_too
    begins = xp.concat([xp.ones_like(scaled[:1], dtype=xp.bool), scaled[1:] != scaled[:-1]])
    (firsts,) = xp.nonzero(begins)
    count = int(firsts.shape[0])
    distinct = scaled if count == n else xp.take(scaled, firsts)
    origin = choose_origin(float(distinct[0]), float(distinct[count // 2]), float(distinct[-1]))
    ends = _ends_of_blocks(firsts, n)
    table = _running_moments(scaled, origin, ends)
    if count == n:
        return Sorted(to_host(distinct), NO_WEIGHTS, None, origin, table, exponent)
    places = to_host(firsts).astype(np.int64, copy=False)
    weights = np.diff(places, append=n).astype(np.float64)
    return Sorted(to_host(distinct), weights, places, origin, table, exponent)


def _ends_of_blocks(firsts: Array, n: int) -> Array:
    """How many of all values come before each block of distinct ones but the first."""
    xp = namespace(firsts)
    whole = xp.concat([firsts, xp.full_like(firsts[:1], n)])
    return whole[::BLOCK][1:]


def _running_moments(x: Array, origin: float, ends: Array) -> Floats:
    """The table of `kernels.numbers.intervals.running_moments`, from exact sums over all values."""
    xp = namespace(x)
    moved = x - origin
    part = moved - x
    # moved + rest = x - origin and square + square_rest = moved^2, exactly.
    rest = (x - (moved - part)) - (origin + part)
    square = moved * moved
    part = SPLITTER * moved
    high = part - (part - moved)
    low = moved - high
    square_rest = ((high * high - square) + 2.0 * high * low) + low * low + 2.0 * moved * rest
    sums = xp.stack([*_sums_before(moved, rest, ends), *_sums_before(square, square_rest, ends)])
    table = np.zeros((1 + int(ends.shape[0]), 6))  # pairs; weights have no second part
    table[1:, 0] = to_host(ends)
    table[1:, 2:] = to_host(sums).T
    return table


def _sums_before(x: Array, rest: Array, ends: Array) -> tuple[Array, Array]:
    """Sums of ``x + rest`` over all entries before each place, as pairs of doubles.

    Both are at most 1 in size, or a little above.
    """
    xp = namespace(x)
    total, error = xp.zeros_like(x[:1]), xp.zeros_like(x[:1])
    scale = 1.0
    for _ in range(N_DIGITS):
        x, rest, scale = x * BASE, rest * BASE, scale / BASE
        digits, digits_too = xp.trunc(x), xp.trunc(rest)
        x, rest = x - digits, rest - digits_too
        sums = xp.cumulative_sum(cast(digits, xp.int64) + cast(digits_too, xp.int64))
        some = cast(xp.take(sums, ends - 1), xp.float64) * scale
        # total + error takes up what is added without loss.
        new = total + some
        part = new - total
        error = error + ((total - (new - part)) + (some - part))
        total = new
    new = total + error
    return new, (total - new) + error
