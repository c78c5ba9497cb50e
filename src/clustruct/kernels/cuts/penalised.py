"""Exact one-dimensional k-means through a price for every group.

The least cost ``C(Q)`` of ``Q`` groups is convex in ``Q`` (the interval costs satisfy the Monge
inequality), so for a suitable price ``p`` the partition that minimises ``cost + p * groups`` has
exactly ``Q`` groups, and by duality no other partition into ``Q`` groups costs less. One sweep
finds it for a given price whatever ``Q`` is; what is left is to find the price.

Where ``C`` is straight around ``Q`` every price jumps over it. Then the two partitions at the
ends of the straight piece, ``a`` with fewer and ``b`` with more groups, are spliced: some group of
``b`` lies inside a group of ``a`` with the right number of groups before it, and by the Monge
inequality taking ``b`` up to there and ``a`` from there on costs no more than the straight line
(Aggarwal, Schieber and Tokuyama 1994).
"""

import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from clustruct.kernels.cuts.chain import CHAIN_SHARE
from clustruct.kernels.numbers.groups import group_summaries, partition_cost
from clustruct.kernels.numbers.intervals import (
    fast_cost_error,
    priced_sweep,
    running_moments,
    traced_path,
)

# Prices that are interpolated before the secants, which are sure to end, take over; these are taken
# at once where the numbers of groups on both sides are this close.
N_GUESSES = 12
CLOSE = 8
# How far to go in the hope of a bracket, as a power of the ratio of the numbers of groups, which go
# like price^(-1/3) where the values are dense; at least so far from a price found on a sample that
# is so many groups off.
OVERSHOOT = 3.5
SAMPLE_OVERSHOOT = 0.5
NEAR = 2
# The price for a long array is first found on a sample: one value in so many or so many for each
# group, but no more than one in four, nor than so many in all. Fewer than so many for each group
# would not do.
SAMPLED = 12
SAMPLE_SHARE = 16
LEAST_SHARE = 8
MOST_SAMPLED = 8192
# How often the needs of gaps are capped, each time by a total that the last time made smaller.
N_CAPPINGS = 4
# Prices change by this power of e at most, so that the factor is a double.
LONGEST_STEP = 600.0
# Two totals that agree to this relative precision are equal.
TOLERANCE = 2e-15
# Far more moves of boundaries than it takes: each lowers the cost.
MOST_MOVES = 1000


class Trial(NamedTuple):
    """A partition that is best at some price: its number of groups, its cost and itself."""

    count: int
    cost: float
    path: Any = None
    price: float | None = None


def best_partition(values, weights, origin, n_groups):
    """Inner boundaries of the best partition into exactly ``n_groups`` groups, and its price.

    The values ascend, are distinct and at most 1 in size; empty weights stand for weights of one.
    The price is what a group must cost for this number of groups to be best.
    """
    n = values.shape[0]
    check_size(n, n_groups)
    table = running_moments(values, weights, origin, 1)
    noise = fast_cost_error(values, weights, origin, table, 1)
    if n_groups in (1, n):
        path = np.arange(1, n if n_groups == n else 1)
        return path, partition_cost(table, path)
    guess = guess_price(values, table[:, 0], table[:, 2], origin, n_groups)
    found = _search_partitions(table, noise, n_groups, guess)
    if found.exact is not None:
        path = found.exact.path
    else:
        path = splice(found.few.path, found.many.path, n, n_groups)
    return settle(values, weights, origin, table, path), found.price


def _search_partitions(table, noise, n_groups, guess):
    """Search for the price of ``n_groups`` groups of all values, see ``search_price``."""
    n = table.shape[0] - 1
    work = work_space(n)

    def solve(price):
        work[0][0, :] = np.inf
        work[0][:, 0] = 0.0
        priced_sweep(table, price, noise, 0, n, *work)
        path = traced_path(work[1], n)[-2:0:-1].copy()
        return Trial(path.shape[0] + 1, partition_cost(table, path), path, price)

    # A range takes no memory until it is needed as an array.
    few = Trial(1, partition_cost(table, np.empty(0, dtype=np.int64)), range(0))
    many = Trial(n, 0.0, range(1, n))
    return search_price(solve, few, many, n_groups, *guess)


def check_size(n, n_groups):
    """Raise ``ValueError`` where positions do not fit into the integers that sweeps use."""
    if n >= np.iinfo(np.int32).max:
        raise ValueError(
            f"x has {n} distinct values, too many for {n_groups} groups. Round the values, or ask "
            f"for fewer than {int((n / CHAIN_SHARE) ** 0.5)} groups."
        )


def work_space(n, n_swept=None):
    """Arrays for sweeps over ``n_swept`` (all) of ``n`` values: best, previous, queue and since."""
    n_swept = n if n_swept is None else n_swept
    queue = np.empty((2, n_swept + 1), dtype=np.int32)
    return np.zeros((2, n + 1)), np.empty(n + 1, dtype=np.int32), *queue


class Bracket(NamedTuple):
    """What a search ends with.

    The best partition with the number of groups that was asked for, or None where no price gives
    it; the next ones known with fewer and with more groups; the last price, at which the first is
    best, or else both others are.
    """

    exact: Trial | None
    few: Trial
    many: Trial
    price: float


def search_price(solve, few, many, n_groups, price, overshoot):
    """Search for a price at which ``n_groups`` groups are best, beginning at ``price``.

    ``solve`` gives the ``Trial`` that is best at a price; ``few`` and ``many`` are best ones with
    fewer and with more groups, whose prices may be unknown. ``overshoot`` is how far to go until
    there are prices on both sides, as a power of the ratio of the numbers of groups; twice as far
    after a step that changed nothing.
    """
    secant = False
    for number in itertools.count():
        found = solve(price)
        if found.count == n_groups:
            return Bracket(found, few, many, price)
        line = few.cost + price * few.count
        below = found.cost + price * found.count < line - TOLERANCE * line
        if secant and not (below and few.count < found.count < many.count):
            return Bracket(None, few, many, price)
        stalled = found.count in (few.count, many.count)
        if found.count < n_groups:
            few = found
        else:
            many = found
        bracketed = few.price is not None and many.price is not None
        close = many.count - few.count <= CLOSE
        secant = number >= N_GUESSES or close or (bracketed and stalled)
        if secant:
            price = (few.cost - many.cost) / (many.count - few.count)
        elif bracketed:
            least = max(few.count, 0.5)
            share = math.log(n_groups / least) / math.log(many.count / least)
            price = few.price ** (1.0 - share) * many.price**share
        else:
            overshoot = 2.0 * overshoot if stalled else overshoot
            near = abs(found.count - n_groups) <= NEAR
            power = overshoot if near else max(overshoot, OVERSHOOT)
            steps = power * math.log(max(found.count, 0.5) / n_groups)
            price *= math.exp(min(max(steps, -LONGEST_STEP), LONGEST_STEP))


def guess_price(values, mass, sums, origin, n_groups):
    """Price at which about ``n_groups`` groups are best, and the overshoot for `search_price`.

    The price is that of the same number of groups on a sample, when there are many values for each
    group. The values ascend; ``mass`` and ``sums`` are their running weights and first moments
    about the origin.
    """
    edges = _sample(values, mass, n_groups)
    if edges is None:
        return _dense_price(values, mass, n_groups), OVERSHOOT
    # With the means of intervals for values, a partition of the sample costs as much as that of
    # all values, but for a constant.
    sizes = np.diff(mass[edges])
    means = origin + np.diff(sums[edges]) / sizes
    table = running_moments(means, sizes, origin, 1)
    noise = fast_cost_error(means, sizes, origin, table, 1)
    guess = guess_price(means, table[:, 0], table[:, 2], origin, n_groups)
    exact, few, many, price = _search_partitions(table, noise, n_groups, guess)
    if exact is None or few.price is None or many.price is None:
        return price, SAMPLE_OVERSHOOT
    # The middle of the prices for this number of groups, and how far it is to their ends.
    upper = (few.cost - exact.cost) / (n_groups - few.count)
    lower = (exact.cost - many.cost) / (many.count - n_groups)
    reach = 0.5 * n_groups * math.log(upper / lower)
    return math.sqrt(lower * upper), max(reach, SAMPLE_OVERSHOOT)


def _dense_price(values, mass, n_groups):
    """The price for dense values (Panter and Dite).

    The least cost of ``Q`` groups is ``(integral of density^(1/3))^3 / (12 Q^2)`` then, and the
    price is minus its derivative.
    """
    _, need = _needs(values, mass, min(values.shape[0], 16 * n_groups, 4 * MOST_SAMPLED))
    return np.sum(need) ** 3 / (6.0 * n_groups**3)


def _needs(values, mass, n_knots):
    """Some positions, and the integral of the cube root of the density between them."""
    knots = np.linspace(0, values.shape[0] - 1, n_knots).astype(np.int64)
    width = np.diff(values[knots])
    return knots, np.cbrt(np.diff(mass[knots]) * width * width)


def _sample_size(n, n_groups):
    """How many values the first price is found on; 0 if they would be too few for the groups."""
    size = min(n // 4, max(n // SAMPLED, SAMPLE_SHARE * n_groups), MOST_SAMPLED)
    return size if size >= LEAST_SHARE * n_groups else 0


def _sample(values, mass, n_groups):
    """Edges of intervals whose means stand for all values, or None if they would be too few.

    Half of them go by rank, half by the density that good boundaries have.
    """
    n = values.shape[0]
    size = _sample_size(n, n_groups)
    if size == 0:
        return None
    knots, need = _needs(values, mass, size)
    for _ in range(N_CAPPINGS):
        # A gap between values takes no more edges than there are values at its ends.
        need = np.minimum(need, np.diff(knots) * (np.sum(need) / (size // 2)))
    need = np.concatenate([[0.0], np.cumsum(need)])
    by_need = np.interp(np.linspace(0.0, need[-1], size // 2), need, knots)
    edges = np.concatenate([by_need, np.linspace(0, n, size // 2)]).astype(np.int64)
    edges.sort()
    # Each interval has to have a weight, which may be lost beside those before it.
    edges = edges[np.flatnonzero(np.diff(mass[edges], prepend=-1.0))]
    return edges if edges.size >= LEAST_SHARE * n_groups // 2 else None


def settle(values, weights, origin, table, path):
    """Move each boundary to the midpoint of its centres while that lowers the cost.

    In an optimum it lies there. A value whose cost is far below the price of a group may be on the
    wrong side, because the totals that the sweep compares do not resolve it.
    """
    cost = partition_cost(table, path)
    for _ in range(MOST_MOVES):
        edges = np.concatenate([[0], path, [values.shape[0]]])
        centers, _ = group_summaries(values, weights, origin, table, 1, edges)
        moved = np.searchsorted(values, 0.5 * (centers[:-1] + centers[1:]))
        if np.array_equal(moved, path) or not (np.diff(moved) > 0).all():
            return path
        if moved[0] == 0 or moved[-1] == values.shape[0]:  # the first or last group would be empty
            return path
        moved_cost = partition_cost(table, moved)
        if not moved_cost < cost:
            return path
        path, cost = moved, moved_cost
    return path


def splice(few, many, n, n_groups):
    """A partition into ``n_groups`` groups from one with fewer and one with more."""
    # An empty range would become an array of floats.
    a = np.concatenate([[0], np.asarray(few, dtype=np.int64), [n]])
    b = np.concatenate([[0], np.asarray(many, dtype=np.int64), [n]])
    shift = n_groups - (a.shape[0] - 1)
    i = np.arange(a.shape[0] - 1)
    first = np.flatnonzero(b[i + shift + 1] <= a[i + 1])[0]
    return np.concatenate([b[1 : first + shift + 1], a[first + 1 : a.shape[0] - 1]])
