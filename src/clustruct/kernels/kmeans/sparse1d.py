"""The exact projection on k-sparse, Q-clustered vectors (eq:k_sparse_Q_clust).

The point has at most ``k`` nonzero entries of at most ``Q`` distinct values.

Sorted, such a projection reads: some groups of the smallest negative values, the zero group, some
groups of the largest positive values, where the zero group has at least ``d - k`` members. (A group
of negative mean never gains by taking in a value that is not negative, so only the ``k`` smallest
negative and the ``k`` largest positive values matter.) Two exact searches share the work. For few
groups of many values, each number ``q`` of negative groups is a chain with ``q`` groups, the zero
group and ``Q - q`` groups, solved by ``chain``; the best chain known bounds the next, and most are
dropped soon. Otherwise ``two_sided`` finds a price for every group at which ``Q`` are best.
"""

import math
import sys

import numpy as np

from clustruct.kernels.cuts.chain import cheapest_chain
from clustruct.kernels.cuts.two_sided import best_two_sided
from clustruct.kernels.kmeans.kmeans1d import cut, prepare
from clustruct.kernels.numbers.groups import group_summaries
from clustruct.kernels.numbers.intervals import (
    BLOCK,
    NO_WEIGHTS,
    fast_cost_error,
    running_moments,
)
from clustruct.kernels.numbers.partition import label_by_threshold, with_ends
from clustruct.kernels.numbers.sorting import scale_down, sort_values

# Chains are faster while there are at least this many values for the cube of the number of groups:
# the square for each chain, as many chains as groups.
CHAIN_SHARE = 20
# Of more items than this, a sample tells which chain to begin with.
SAMPLED_ABOVE = 50_000
N_SAMPLED = 2000
# Groups that cost less than this share of the squares of all entries are cut once more: sums about
# zero resolve about 2^-100.
TIGHT = 2.0**-60


def project_sparse(values, n_clusters, n_nonzero):
    """Groups of the nearest vector with few nonzero entries of few distinct values.

    The values are finite and contiguous, and left as they are; ``n_clusters``, at least 1, is the
    largest number of distinct nonzero values. Returns the group of each value in the order of the
    centres, -1 for the zero group, and the centres, ascending, none of them zero.
    """
    kept, n_left = _extremes(values, n_nonzero)
    if kept.shape[0] == 0:
        return np.full(values.shape, -1, dtype=np.intp), np.empty(0)
    edges = _few_distinct(kept, n_left, n_nonzero, n_clusters)
    if edges is None:
        kept, n_left, edges = _without_vanishing(kept, n_left, n_nonzero, n_clusters)
    if edges is None:
        edges = _best_groups(kept, n_left, n_nonzero, n_clusters)
    edges = [_between_different(kept, side) for side in edges]
    centers, cost = _summaries(kept, edges)
    if 0.0 < cost < TIGHT:
        edges = _cut_anew(kept, edges, n_clusters)
        centers, _ = _summaries(kept, edges)
    return _labels(values, kept, *edges), centers


def _extremes(values, n_nonzero):
    """The ``n_nonzero`` smallest negative and largest positive values; how many are negative."""
    ordered, _ = sort_values(values)
    n_negative = int(np.searchsorted(ordered, 0.0, side="left"))
    n_positive = ordered.shape[0] - int(np.searchsorted(ordered, 0.0, side="right"))
    n_left, n_right = min(n_nonzero, n_negative), min(n_nonzero, n_positive)
    return np.concatenate([ordered[:n_left], ordered[ordered.shape[0] - n_right :]]), n_left


def _summaries(kept, edges):
    """Means of the groups with the given edges on both sides, and their share of the squares."""
    scaled, exponent = scale_down(kept, max(-kept[0], kept[-1]))
    table = running_moments(scaled, NO_WEIGHTS, 0.0, BLOCK)
    sides = [group_summaries(scaled, NO_WEIGHTS, 0.0, table, BLOCK, side) for side in edges]
    means, costs = (np.concatenate(parts) for parts in zip(*sides, strict=True))
    return np.ldexp(means, exponent), costs.sum() / max(table[-1, 4], 1.0)


def _cut_anew(kept, edges, n_clusters):
    """Edges of the groups of the same entries by k-means on either side, about its own median.

    Moments about zero hardly resolve the cost of groups this tight. The number of groups of a side
    may be wrong as well: some may be left to give, and the next numbers are tried.
    """
    scaled, _ = scale_down(kept, max(-kept[0], kept[-1]))
    n_left, n_right = (side.shape[0] - 1 for side in edges)
    numbers = {n + step for n in (n_left, n_clusters - n_right) for step in (-1, 0, 1)}
    tried = [
        _cut_sides(scaled, edges, (n, n_clusters - n))
        for n in sorted(numbers)
        if 0 <= n <= n_clusters
    ]
    return min(tried, key=lambda sides: sides[0])[1]


def _cut_sides(scaled, edges, numbers):
    """The cost of so many groups on either side, infinite if some have no group; their edges."""
    total, found = 0.0, []
    for side, number in zip(edges, numbers, strict=True):
        first, last = int(side[0]), int(side[-1])
        if first < last and number == 0:
            return math.inf, edges
        if first < last:
            starts, _, cost, exponent = cut(prepare(scaled[first:last], NO_WEIGHTS), number)
            total += math.ldexp(cost, exponent)
            side = with_ends(starts, last - first) + first
        found.append(side)
    return total, found


def _between_different(kept, edges):
    """Leave out inner edges between equal values, and those of empty groups.

    Neither lowers the cost by more than a rounding error.
    """
    edges = np.unique(edges)
    inner = edges[1:-1]
    return np.concatenate([edges[:1], inner[kept[inner - 1] < kept[inner]], edges[1:][-1:]])


def _few_distinct(kept, n_left, n_nonzero, n_clusters):
    """Edges of the groups if the largest entries already take few enough distinct values.

    Keeping the ``n_nonzero`` largest entries as they are is then optimal; returns None otherwise.
    """
    n = kept.shape[0]
    room = min(n_nonzero, n)
    level = np.partition(np.abs(kept), n - room)[n - room]
    # On each side, the entries larger than the last one kept, and those at least as large.
    larger_left = int(np.searchsorted(kept, -level, side="left"))
    reach_left = int(np.searchsorted(kept[:n_left], -level, side="right"))
    larger_right = n - int(np.searchsorted(kept, level, side="right"))
    reach_right = n - max(n_left, int(np.searchsorted(kept, level, side="left")))
    # Entries of equal size compete for the last places: those of one sign first, then those of the
    # other, since that keeps fewer distinct values.
    for n_taken in (min(reach_left, room - larger_right), max(larger_left, room - reach_right)):
        edges = _run_edges(kept, 0, n_taken), _run_edges(kept, n - (room - n_taken), n)
        if edges[0].shape[0] + edges[1].shape[0] - 2 <= n_clusters:
            return edges
    return None


def _without_vanishing(kept, n_left, n_nonzero, n_clusters):
    """Leave entries to the zero group that are zero once they are scaled with the largest one.

    Their squares are less than 2^-2000 of its square. Returns what is left, how much of it is
    negative, and the edges if so few entries take few enough values.
    """
    scaled, _ = scale_down(kept, max(-kept[0], kept[-1]))
    if scaled.all():
        return kept, n_left, None
    n_left = int(np.count_nonzero(scaled[:n_left]))
    kept = kept[scaled != 0.0]
    return kept, n_left, _few_distinct(kept, n_left, n_nonzero, n_clusters)


def _run_edges(values, start, stop):
    """Where the runs of equal values in ``values[start:stop]`` begin, and ``stop``."""
    jumps = np.flatnonzero(np.diff(values[start:stop])) + start + 1
    return np.concatenate([[start], jumps, [stop]]) if start < stop else np.array([stop])


def _best_groups(kept, n_left, n_nonzero, n_clusters):
    """Edges of the negative and of the positive groups of the projection."""
    # A zero stands between the signs, so that the zero group is never empty.
    items, _ = scale_down(np.insert(kept, n_left, 0.0), max(-kept[0], kept[-1]))
    gap = items.shape[0] - n_nonzero if n_nonzero < kept.shape[0] else 1
    cuts, counts = _candidate_boundaries(items, n_left, gap), NO_WEIGHTS
    if cuts is not None:
        items, counts = items[cuts[:-1]], np.diff(cuts).astype(np.float64)
    if items.shape[0] <= CHAIN_SHARE * n_clusters**3:
        edges = best_two_sided(items, counts, float(gap), n_clusters)
    else:
        edges = _best_chain(items, counts, gap, n_clusters)
    left, right = edges if cuts is None else (cuts[side] for side in edges)
    return left, right - 1


def _best_chain(items, counts, gap, n_clusters):
    """Edges of the groups on both sides of the zero, by bounding and refining."""
    middle = int(np.searchsorted(items, 0.0))
    n_right = items.shape[0] - middle - 1
    table = running_moments(items, counts, 0.0, BLOCK)
    error = fast_cost_error(items, counts, 0.0, table, BLOCK)
    numbers = range(max(0, n_clusters - n_right), min(n_clusters, middle) + 1)
    likely = _likely_number(items, counts, middle, gap, n_clusters)
    bound, best = np.inf, None
    for n_negative in sorted(numbers, key=lambda number: abs(number - likely)):
        found = cheapest_chain(
            items, counts, 0.0, table, BLOCK, n_clusters + 1, n_negative, middle, float(gap),
            bound, error, sys.maxsize,
        )  # fmt: skip
        if found is not None:
            inner, bound = found
            edges = np.concatenate([[0], inner, [items.shape[0]]])
            best = edges[: n_negative + 1], edges[n_negative + 1 :]
    return best


def _likely_number(items, counts, middle, gap, n_clusters):
    """About how many groups of the best projection are negative, by a sample of many items.

    A good chain to begin with saves time: it has the others dropped early.
    """
    n = items.shape[0]
    if n < SAMPLED_ABOVE:
        return n_clusters * middle / (n - 1)
    edges = np.unique(np.linspace(0, n, N_SAMPLED).astype(np.int64))
    # The zero between the signs stays alone.
    edges = np.unique(np.concatenate([edges, [middle, middle + 1]]))
    sizes = np.diff(edges) if counts is NO_WEIGHTS else np.add.reduceat(counts, edges[:-1])
    middles = items[(edges[:-1] + edges[1:]) // 2]
    left, _ = best_two_sided(middles, sizes.astype(np.float64), float(gap), n_clusters)
    return left.shape[0] - 1


def _candidate_boundaries(signed, n_left, gap):
    """Positions where a group may begin or end; None for all of them.

    Among equal values the cost is concave in the place of a boundary of the zero group, so one of
    its two boundaries lies between different values, and the other there too or ``gap`` away.
    """
    runs = _run_edges(signed, 0, signed.shape[0])
    if runs.shape[0] == signed.shape[0] + 1:
        return None
    after, before = runs[runs <= n_left] + gap, runs[runs > n_left] - gap
    after, before = after[after > n_left], before[before <= n_left]
    cuts = np.unique(np.concatenate([runs, after, before]))
    return cuts[(cuts >= 0) & (cuts <= signed.shape[0])]


def _labels(values, kept, left, right):
    """Label of each value for groups of the kept ones with the given edges."""
    n_left_groups = left.shape[0] - 1
    thresholds = kept[left[1:-1]] if n_left_groups else np.empty(0)
    if n_left_groups:
        thresholds = np.append(thresholds, np.nextafter(kept[left[-1] - 1], np.inf))
    thresholds = np.concatenate([thresholds, kept[right[:-1]]])
    labels = label_by_threshold(values, thresholds)
    labels[labels == n_left_groups] = -1
    labels[labels > n_left_groups] -= 1
    # Of equal values at the edge of the zero group only as many count as there is room for.
    if n_left_groups:
        _keep_first(labels, values, kept[: left[-1]], kept[left[-1] - 1])
    if right.shape[0] > 1:
        _keep_first(labels, values, kept[right[0] :], kept[right[0]])
    return labels


def _keep_first(labels, values, taken, value):
    """Keep the labels of the first entries equal to ``value``, as many as ``taken`` has of it."""
    equal = np.flatnonzero(values == value)
    labels[equal[np.count_nonzero(taken == value) :]] = -1
