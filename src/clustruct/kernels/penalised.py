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

import numpy as np

from clustruct.kernels.chain import CHAIN_SHARE
from clustruct.kernels.intervals import (
    fast_cost_error,
    group_summaries,
    partition_cost,
    penalised_path,
    running_moments,
)

# Prices that are interpolated before the secants, which are sure to end, take over; these are taken
# at once where the numbers of groups on both sides are this close.
N_GUESSES = 12
CLOSE = 8
# Size of the sample that the price for a long array is first found on.
MOST_SAMPLED = 8192
# Two totals that agree to this relative precision are equal.
TOLERANCE = 1e-13


def best_partition(values, weights, origin, n_groups):
    """Inner boundaries of the best partition into exactly ``n_groups`` groups, and its price.

    Parameters
    ----------
    values : ndarray of float64, shape (n,)
        Ascending, distinct, none larger than 1 in size.
    weights : ndarray of float64, shape (n,) or (0,)
        Their weights; empty stands for weights of one.
    origin : float
        The point that the moments are taken about.
    n_groups : int
        From 1 to n.

    Returns
    -------
    boundaries : ndarray of int64, shape (n_groups - 1,)
    price : float
        What a group must cost for this number of groups to be best.
    """
    n = values.shape[0]
    if n >= np.iinfo(np.int32).max:
        raise ValueError(
            f"x has {n} distinct values, too many for {n_groups} groups. Round the values, or ask "
            f"for fewer than {int((n / CHAIN_SHARE) ** 0.5)} groups."
        )
    table = running_moments(values, weights, origin, 1)
    noise = fast_cost_error(values, weights, origin, table, 1)
    few, few_cost = np.empty(0, dtype=np.int64), partition_cost(table, np.empty(0, dtype=np.int64))
    if n_groups == 1:
        return few, few_cost
    # A range takes no memory until it is needed as an array.
    many, many_cost = range(1, n), 0.0
    if n_groups == n:
        return np.arange(1, n), 0.0
    few_price, many_price = None, None
    price = guess_price(values, origin, table, n_groups)
    work = (np.empty((2, n + 1)), *np.empty((3, n + 1), dtype=np.int32))
    secant, step = False, 1.0 if _sample_size(n, n_groups) else 3.5
    for trial in itertools.count():
        path = penalised_path(table, price, noise, *work)
        cost, count = partition_cost(table, path), path.shape[0] + 1
        if count == n_groups:
            return settle(values, weights, origin, table, path), price
        line = few_cost + price * (len(few) + 1)
        if secant and cost + price * count >= line - TOLERANCE * line:
            path = splice(few, many, n, n_groups)
            return settle(values, weights, origin, table, path), price
        stalled = count in (len(few) + 1, len(many) + 1)
        if count < n_groups:
            few, few_cost, few_price = path, cost, price
        else:
            many, many_cost, many_price = path, cost, price
        bracketed = few_price is not None and many_price is not None
        close = len(many) - len(few) <= CLOSE
        secant = trial >= N_GUESSES or close or (bracketed and stalled)
        if secant:
            price = (few_cost - many_cost) / (len(many) - len(few))
        elif bracketed:
            share = np.log(n_groups / (len(few) + 1)) / np.log((len(many) + 1) / (len(few) + 1))
            price = few_price ** (1.0 - share) * many_price**share
        else:
            # Groups go like price^(-1/3) where the values are dense. Overshoot to get a bracket,
            # but not by much from a price that a sample gave.
            step = 2.0 * step if stalled else step
            price *= (count / n_groups) ** step


def guess_price(values, origin, table, n_groups):
    """Price at which about ``n_groups`` groups are best.

    That of the same number of groups on a sample, when there are many values for each group.
    Otherwise the one of dense values (Panter and Dite), for which the least cost of ``Q`` groups is
    ``(integral of density^(1/3))^3 / (12 Q^2)``; the price is minus its derivative.
    """
    n = values.shape[0]
    size = _sample_size(n, n_groups)
    n_knots = 2 * size if size else min(n, 16 * n_groups, 4 * MOST_SAMPLED)
    knots = np.linspace(0, n - 1, n_knots).astype(np.int64)
    width = np.diff(values[knots])
    need = np.cbrt(np.diff(table[knots, 0]) * width * width)
    if not size:
        return np.sum(need) ** 3 / (6.0 * n_groups**3)
    # Half of the sample goes by rank, half by the density that good boundaries have.
    need = np.concatenate([[0.0], np.cumsum(need)])
    by_need = np.interp(np.linspace(0.0, need[-1], size // 2), need, knots)
    by_rank = np.linspace(0, n, size // 2)
    edges = np.unique(np.concatenate([by_need, by_rank]).astype(np.int64))
    middles = values[(edges[:-1] + edges[1:]) // 2]
    return best_partition(middles, np.diff(table[edges, 0]), origin, n_groups)[1]


def _sample_size(n, n_groups):
    """How many values the first price is found on; 0 if they would be too few for the groups."""
    size = min(n // 4, MOST_SAMPLED)
    return size if size >= 8 * n_groups else 0


def settle(values, weights, origin, table, path):
    """Move each boundary to the midpoint of its centres while that lowers the cost.

    In an optimum it lies there. A value whose cost is far below the price of a group may be on the
    wrong side, because the totals that the sweep compares do not resolve it.
    """
    cost = partition_cost(table, path)
    while True:
        edges = np.concatenate([[0], path, [values.shape[0]]])
        centers, _ = group_summaries(values, weights, origin, table, 1, edges)
        moved = np.searchsorted(values, 0.5 * (centers[:-1] + centers[1:]))
        if np.array_equal(moved, path) or not (np.diff(moved) > 0).all():
            return path
        moved_cost = partition_cost(table, moved)
        if not moved_cost < cost:
            return path
        path, cost = moved, moved_cost


def splice(few, many, n, n_groups):
    """A partition into ``n_groups`` groups from one with fewer and one with more."""
    a = np.concatenate([[0], few, [n]])
    b = np.concatenate([[0], many, [n]])
    shift = n_groups - (a.shape[0] - 1)
    i = np.arange(a.shape[0] - 1)
    first = np.flatnonzero(b[i + shift + 1] <= a[i + 1])[0]
    return np.concatenate([b[1 : first + shift + 1], a[first + 1 : a.shape[0] - 1]])
