"""The best groups on both sides of a zero group, through a price for every group.

At a given price one sweep inwards from either end gives the best groups of every prefix and of
every suffix, whatever their number is. With running minima over the feasible zero groups, that
gives the cheapest chain, and if it has ``Q`` groups, no other one with ``Q`` groups costs less.

Unlike that of plain partitions, the least cost need not be convex in ``Q`` where the size of the
zero group is bounded, so there may be no such price. Then the price where the number of groups
jumps over ``Q`` still bounds the cost of every chain from below. Sweeps outwards, from
the zero group to either end, tell the least cost of a chain through each position; two prices
together tell how many groups may lie before it. The few positions that are left, each with its
window of layers, go to the dynamic program of ``layers``.
"""

import numpy as np

from clustruct.kernels.cuts.layers import best_zero_group
from clustruct.kernels.cuts.penalised import (
    Trial,
    best_partition,
    check_size,
    guess_price,
    search_price,
    settle,
    splice,
    work_space,
)
from clustruct.kernels.numbers.groups import partition_cost
from clustruct.kernels.numbers.intervals import (
    fast_cost_error,
    priced_sweep,
    running_moments,
    traced_path,
)

# How much the second price is above the first, as a multiple of that over the number of groups.
PRICE_STEP = 4.0
# Room for rounding, relative to the total cost; and that of costs in pairs of doubles, for each
# group and relative to the squares of all items.
TOLERANCE = 1e-13
PAIR_ERROR = 2.0**-98


def best_two_sided(items, counts, gap, n_groups):
    """Edges of the groups of negative and of those of positive items, as positions.

    The items ascend, are at most 1 in size, and just one of them is zero; ``counts`` is how often
    each occurs, empty for once. ``gap`` is the least size of the zero group, and ``n_groups`` the
    number of the others, fewer than the values that may be kept.
    """
    check_size(items.shape[0], n_groups)
    return _TwoSided(items, counts, gap).best_edges(n_groups)


class _TwoSided:
    """Sorted items around a zero group, with what all sweeps share.

    Positions ``0 .. last`` may be the beginning of the zero group, positions ``first .. n`` its
    end; a group lies before or after it.
    """

    def __init__(self, items, counts, gap):
        self.items, self.counts, self.gap = items, counts, gap
        self.table = table = running_moments(items, counts, 0.0, 1)
        self.noise = fast_cost_error(items, counts, 0.0, table, 1)
        self.n = items.shape[0]
        middle = int(np.searchsorted(items, 0.0))
        before, after = table[: middle + 1, 0], table[middle + 1 :, 0]
        self.last = int(np.searchsorted(before, after[-1] - gap, side="right")) - 1
        # The first end of the zero group that each beginning allows.
        ends = middle + 1 + np.searchsorted(after, before[: self.last + 1] + gap)
        self.ends, self.first = ends.astype(np.int32), int(ends[0])
        # What the items between a position and the zero in the middle cost when they are zero.
        self.squares = np.abs(table[:, 4] - table[middle, 4] + (table[:, 5] - table[middle, 5]))

    def best_edges(self, n_groups):
        """Edges of the groups to the left and to the right of the best zero group."""
        few = self._all_zero()
        many = self._hard_threshold()
        if many.count <= n_groups:
            # The squares of the others are below the least double.
            return [np.array(edges) for edges in many.path]
        guess = self._guess(many.path, n_groups)
        longest = max(self.last, self.n - self.first)
        self.inward, self.previous, *self.queue = work_space(self.n, longest)
        found = search_price(self._solve, few, many, n_groups, *guess)
        if found.exact is not None:
            return [self._settled(edges) for edges in found.exact.path]
        return self._between(found.few, found.many, found.price, n_groups)

    def _all_zero(self):
        """The chain without groups."""
        return self._trial((np.array([0]), np.array([self.n])))

    def _hard_threshold(self):
        """The largest items that there is room for, each a group of its own."""
        begin, end = self._join(0.0)
        # Ranges take no memory until they are needed as arrays.
        path = range(begin + 1), range(end, self.n + 1)
        return Trial(begin + self.n - end, self.squares[begin] + self.squares[end], path)

    def _guess(self, path, n_groups):
        """A price for ``n_groups`` groups: what it is for the items that a chain keeps."""
        begin, end = path[0][-1], path[1][0]
        kept = np.concatenate([self.items[:begin], self.items[end:]])
        mass, sums = (
            np.concatenate([column[:begin], column[end:] - (column[end] - column[begin])])
            for column in (self.table[:, 0], self.table[:, 2])
        )
        return guess_price(kept, mass, sums, 0.0, n_groups)

    def _solve(self, price):
        """The best chain at a price."""
        self._sweep_inwards(price)
        return self._trial(self._traced(*self._join(self.inward[0])), price)

    def _traced(self, begin, end):
        """Edges of the groups on both sides of a zero group, by the last sweep inwards."""
        left = traced_path(self.previous, begin)[::-1].copy()
        return left, traced_path(self.previous, end)

    def _trial(self, path, price=None):
        """The chain with the given edges on both sides."""
        cost = self.squares[path[0][-1]] + self.squares[path[1][0]]
        for edges in path:
            cost += partition_cost(self.table[edges[0] : edges[-1] + 1], edges[1:-1] - edges[0])
        return Trial(path[0].shape[0] + path[1].shape[0] - 2, cost, path, price)

    def _sweep_inwards(self, price):
        """Find the best groups of every prefix and of every suffix."""
        self.inward[0] = np.inf
        self.inward[:, [0, self.n]] = 0.0
        work = self.inward, self.previous, *self.queue
        priced_sweep(self.table, price, self.noise, 0, self.last, *work)
        priced_sweep(self.table, price, self.noise, self.n, self.first, *work)

    def _join(self, costs):
        """The feasible zero group that is cheapest together with the costs up to its ends."""
        costs = np.broadcast_to(costs, self.n + 1)
        totals = self._best_ends(costs)
        totals += costs[: self.last + 1]
        begin = int(np.argmin(totals))
        end = int(self.ends[begin])
        return begin, end + int(np.argmin(costs[end:] + self.squares[end:]))

    def _best_ends(self, costs):
        """Least cost of a zero group that begins at each position, with the costs after its end."""
        least = costs[self.first :] + self.squares[self.first :]
        np.minimum.accumulate(least[::-1], out=least[::-1])
        least = least[self.ends - self.first]
        least += self.squares[: self.last + 1]
        return least

    def _best_begins(self, costs):
        """Least cost of a zero group that ends at each position, with the costs up to it."""
        least = costs[: self.last + 1] + self.squares[: self.last + 1]
        np.minimum.accumulate(least, out=least)
        ends = np.arange(self.first, self.n + 1)
        least = least[np.searchsorted(self.ends, ends, side="right") - 1]
        least += self.squares[self.first :]
        return least

    def _sweep_outwards(self, price):
        """Least cost from each position through a zero group to the other end, at a price.

        Follows a sweep inwards at the same price.
        """
        outward = np.zeros_like(self.inward)
        outward[0, : self.last + 1] = self._best_ends(self.inward[0])
        outward[0, self.first :] = self._best_begins(self.inward[0])
        work = outward, self.previous, *self.queue
        priced_sweep(self.table, price, self.noise, self.last, 0, *work)
        priced_sweep(self.table, price, self.noise, self.first, self.n, *work)
        return outward[0]

    def _costs_through(self, price):
        """Least priced costs of what lies before each position, and of what lies after it."""
        self._sweep_inwards(price)
        before, after = self.inward[0].copy(), self._sweep_outwards(price)
        right = slice(self.first, None)
        before[right], after[right] = after[right], before[right].copy()
        # No zero group begins or ends in between.
        before[self.last + 1 : self.first] = np.inf
        return before, after

    def _between(self, few, many, price, n_groups):
        """Edges of the best groups for a number of them that no price gives.

        The chains next to it are given with the price at which both are best.
        """
        bound = few.cost - price * (n_groups - few.count)
        # More groups may gain less than the last digit of the cost.
        if few.cost <= bound + TOLERANCE * bound:
            return [self._settled(edges) for edges in few.path]
        known = self._with_fewer_groups(many, price, n_groups)
        if known.cost <= bound + TOLERANCE * bound:
            return [self._settled(edges) for edges in known.path]
        limit = known.cost + TOLERANCE * (bound + price * n_groups)
        limit += PAIR_ERROR * n_groups * self.table[-1, 4]
        return self._by_layers(price, n_groups, limit, known)

    def _by_layers(self, price, n_groups, limit, known):
        """Edges of the best groups, whose cost must be at most ``limit``; any price will do.

        But the less the limit is above what the price says, the fewer positions are left. Where
        costs are as small as their rounding, the chain already known may be as good as any.
        """
        dearer = price * (1.0 + PRICE_STEP / n_groups)
        through = self._costs_through(price), self._costs_through(dearer)
        low, high = _windows(through, price, dearer, n_groups, limit)
        places = np.flatnonzero(low <= high)
        table = self.table if places.shape[0] == self.n + 1 else self.table[places]
        n_left = int(np.searchsorted(places, self.last, side="right"))
        total, begin, end, n_before = best_zero_group(
            table, places, low[places], high[places], n_left, self.gap, n_groups, self.noise
        )
        if not total < known.cost:
            return [self._settled(edges) for edges in known.path]
        return self._cut(0, begin, n_before), self._cut(end, self.n, n_groups - n_before)

    def _with_fewer_groups(self, many, price, n_groups):
        """A good chain with ``n_groups`` groups around the zero group of one that has more.

        Spliced, on either side, from that one and one that is best at a higher price. Where both
        sides must have a group and just one is allowed, the chain without groups has to do.
        """
        most = [len(edges) - 1 for edges in many.path]
        step = PRICE_STEP / n_groups
        while price < self.squares[0] + self.squares[-1]:
            price *= 1.0 + step
            step *= 2.0
            self._sweep_inwards(price)
            fewer = self._traced(many.path[0][-1], many.path[1][0])
            least = [edges.shape[0] - 1 for edges in fewer]
            if sum(least) <= n_groups:
                splits = range(
                    max(least[0], n_groups - most[1]), min(most[0], n_groups - least[1]) + 1
                )
                return min(
                    (self._spliced(fewer, many.path, (q, n_groups - q)) for q in splits),
                    key=lambda trial: trial.cost,
                )
        return self._all_zero()

    def _spliced(self, few, many, numbers):
        """The chain with the given numbers of groups from one with fewer and one with more."""
        path = []
        for a, b, number in zip(few, map(np.asarray, many), numbers, strict=True):
            first, last = a[0], a[-1]
            if number > 0:
                inner = splice(a[1:-1] - first, b[1:-1] - first, last - first, number)
                a = np.concatenate([[first], inner + first, [last]])
            path.append(a)
        return self._trial(path)

    def _settled(self, edges):
        """Edges of the groups on one side, each moved to the midpoint of its centres."""
        first, last = int(edges[0]), int(edges[-1])
        if edges.shape[0] < 3:
            return edges
        inner = settle(
            self.items[first:last], self.counts[first:last], 0.0,
            self.table[first : last + 1], edges[1:-1] - first,
        )  # fmt: skip
        return np.concatenate([[first], inner + first, [last]])

    def _cut(self, first, last, n_groups):
        """Edges of the best groups of the items from ``first`` to ``last``."""
        if first == last:
            return np.array([first])
        items, counts = self.items[first:last], self.counts[first:last]
        inner, _ = best_partition(items, counts, 0.0, min(n_groups, last - first))
        return np.concatenate([[first], inner + first, [last]])


def _windows(through, price, dearer, n_groups, limit):
    """The least and the largest number of groups before each position of a chain within ``limit``.

    A chain with ``q`` groups before a position and the others after it costs at least ``before -
    p q + after - p' (Q - q)`` for any two prices ``p`` and ``p'``: that bounds ``q`` from above
    for ``p < p'``, and from below for ``p > p'``.
    """
    (before, after), (before_dearer, after_dearer) = through
    step = dearer - price
    low = np.ceil((before_dearer + after - price * n_groups - limit) / step)
    high = np.floor((limit + dearer * n_groups - before - after_dearer) / step)
    low[before + after - price * n_groups > limit] = n_groups + 1
    return (
        np.clip(bound, -1, n_groups + 1).astype(np.int32)
        for bound in (np.maximum(low, 0.0), np.minimum(high, n_groups))
    )
