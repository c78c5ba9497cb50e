"""Exact weighted k-means of numbers (eq:kmeans in one dimension).

An optimal group is an interval of the sorted values, so the problem is to cut the sorted values
into ``Q`` intervals of least total cost. Short vectors are cut by ``vectors`` in one call, as far
as that is sure of the result. For all others two exact searches share the work: ``chain`` for few
groups of many values, whose effort after the sort hardly depends on ``n``, and ``penalised`` for
the rest, whose effort does not depend on ``Q``.
"""

import math
from collections import namedtuple

import numpy as np

from clustruct.kernels.cuts.chain import CHAIN_SHARE, cheapest_chain
from clustruct.kernels.cuts.penalised import best_partition
from clustruct.kernels.kmeans.vectors import KEPT_GROUPS, KEPT_LENGTH, cluster_vector
from clustruct.kernels.numbers.groups import group_summaries
from clustruct.kernels.numbers.intervals import (
    BLOCK,
    NO_WEIGHTS,
    fast_cost_error,
    running_moments,
)
from clustruct.kernels.numbers.partition import label_by_threshold, with_ends
from clustruct.kernels.numbers.rational import best_cut
from clustruct.kernels.numbers.sorting import (
    scale_and_merge,
    scale_down,
    scale_factors,
    sort_values,
)

# So few groups are worth a chain search if there are so many values for each of them.
FEW = 15
FEW_SHARE = 32
# Vectors of up to so many values are cut by ``vectors``; longer ones too, as far as it keeps work
# space for them, if they have more than so many groups: measured.
SHORT = 1 << 16
MANY = 16
# The chain search gives up when it would hold more states than one for this many values.
STATES_SHARE = 16
LEAST_STATES = 16384
# Running moments resolve about 2^-100 of the sum of weights times the squared distance of the
# farthest value. Beyond this ratio of that product to the cost of one group the moments are taken
# about the weighted median, and few values are cut in fractions: 2^-60 is left of the precision.
LOST = 2.0**40
# Weights down to this share of the largest are no reason to look for that.
LIGHT = 2.0**-20
# Costs of values with weights below this share of the largest may underflow.
VANISHING = 2.0**-500
FEW_FRACTIONS = 32

# Sorted values, ready to be cut: the distinct ones scaled by a power of two, their weights (empty
# for weights of one), where each occurs first (None if all are distinct), the origin and table of
# their running moments, and the exponent that was taken off.
Sorted = namedtuple("Sorted", "values weights firsts origin table exponent")


def cluster_values(values, weights, n_clusters):
    """Exact weighted k-means of numbers in any order.

    The values are finite and contiguous, and left as they are. Weights (or None) are not negative
    and not all zero; values of zero weight get the label of the nearest centre. Returns labels in
    the order of the centres, the centres, the number of values in each group, and the inertia,
    which is infinite if it exceeds the largest double.
    """
    found = None
    if _is_short(values.shape[0], n_clusters):
        found = cluster_vector(values, weights, n_clusters)
    if found is None:
        return resolve_groups(values, weights, n_clusters)
    labels, centers, sizes, mantissa, exponent = found
    return labels, centers, sizes, ldexp(mantissa, exponent)


def _is_short(n, n_clusters):
    """Whether ``vectors`` is quicker than the searches here."""
    return n <= SHORT or (n <= KEPT_LENGTH and MANY < n_clusters <= KEPT_GROUPS)


def resolve_groups(values, weights, n_clusters):
    """The same for vectors of any length, whose costs may be as close as pairs of doubles tell."""
    counted = None if weights is None or weights.all() else weights > 0
    if counted is None:
        ordered, ordered_weights = sort_values(values, weights)
    else:
        ordered, ordered_weights = sort_values(values[counted], weights[counted])
    if weights is None:
        starts, centers, cost, exponent = cut(prepare(ordered, NO_WEIGHTS), n_clusters)
    else:
        starts, centers, cost, exponent = _cut_weighted(ordered, ordered_weights, n_clusters)
    inertia = ldexp(cost, exponent)
    labels = label_by_threshold(values, ordered[starts])
    edges = with_ends(starts, ordered.shape[0])
    sizes = edges[1:] - edges[:-1]
    # Scaled, the digits of values that are too small beside the largest may have been lost.
    centers = np.minimum(np.maximum(centers, ordered[edges[:-1]]), ordered[edges[1:] - 1])
    if counted is not None:
        halfway = 0.5 * centers[:-1] + 0.5 * centers[1:]
        halfway = np.clip(halfway, np.nextafter(ordered[starts - 1], np.inf), ordered[starts])
        labels[~counted] = label_by_threshold(values[~counted], halfway)
        sizes = np.bincount(labels, minlength=centers.shape[0])
    return labels, centers, sizes, inertia


def prepare(ordered, weights):
    """Sorted values with their moments; empty weights stand for weights of one."""
    factor, factor_too, exponent = scale_factors(max(-ordered[0], ordered[-1]))
    values, sums, firsts = scale_and_merge(ordered, weights, factor, factor_too)
    weights = weights if sums is None else sums
    origin = choose_origin(values[0], values[values.shape[0] // 2], values[-1])
    table = running_moments(values, weights, origin, BLOCK)
    return Sorted(values, weights, firsts, origin, table, exponent)


def _cut_weighted(ordered, weights, n_clusters):
    """The best partition of sorted values with positive weights, see `cut`."""
    scaled, weight_exponent = scale_down(weights, weights.max())
    prepared, lightest = prepare(ordered, scaled), scaled.min()
    if lightest < LIGHT and _precision_lost(prepared):
        # The sum of w (x - o)^2 is at most twice the cost about the mean if o is the median.
        running = np.cumsum(prepared.weights)
        median = prepared.values[np.searchsorted(running, 0.5 * running[-1])]
        table = running_moments(prepared.values, prepared.weights, median, BLOCK)
        prepared = prepared._replace(origin=float(median), table=table)
    lost = lightest < VANISHING or (lightest < LIGHT and _precision_lost(prepared))
    if lost and prepared.values.shape[0] <= FEW_FRACTIONS:
        firsts = np.flatnonzero(np.diff(ordered, prepend=-np.inf))
        starts, *rest = best_cut(ordered[firsts], np.add.reduceat(weights, firsts), n_clusters)
        return firsts[starts], *rest
    starts, centers, cost, exponent = cut(prepared, n_clusters)
    return starts, centers, cost, exponent + weight_exponent


def _precision_lost(prepared):
    """Whether running moments may not resolve the cost of one group of all values."""
    values, weights, _, origin, table, _ = prepared
    edges = with_ends(np.empty(0, dtype=np.int64), values.shape[0])
    _, (cost,) = group_summaries(values, weights, origin, table, BLOCK, edges)
    reach = max(origin - values[0], values[-1] - origin)
    return weights.sum() * reach * reach > LOST * cost


def choose_origin(least, middle, largest):
    """Moments are taken about zero unless the values lie far from it for their spread."""
    return 0.0 if abs(middle) <= largest - least else float(middle)


def cut(ordered, n_clusters):
    """The best partition of sorted values.

    Returns where the second and later groups start, among all values, the centres, and the cost as
    a mantissa and an exponent of two.
    """
    values, weights, firsts, origin, table, exponent = ordered
    n = values.shape[0]
    inner = _boundaries(values, weights, origin, table, min(n_clusters, n))
    edges = with_ends(inner, n)
    centers, costs = group_summaries(values, weights, origin, table, BLOCK, edges)
    starts = inner if firsts is None else firsts[inner]
    return starts, np.ldexp(centers, exponent), math.fsum(costs), 2 * exponent


def _boundaries(values, weights, origin, table, n_groups):
    """Inner boundaries of the best partition of distinct sorted values."""
    n = values.shape[0]
    share = FEW_SHARE * n_groups if n_groups <= FEW else CHAIN_SHARE * n_groups**2
    if n_groups > 1 and n >= share:
        error = fast_cost_error(values, weights, origin, table, BLOCK)
        states = max(LEAST_STATES, n // STATES_SHARE)
        try:
            return cheapest_chain(
                values, weights, origin, table, BLOCK, n_groups, -1, 0, 0.0, np.inf, error, states
            )[0]
        except MemoryError:
            # Too many partitions are nearly as good as the best one.
            pass
    return best_partition(values, weights, origin, n_groups)[0]


def ldexp(mantissa, exponent):
    """Multiply by a power of two; infinity where the product is out of range."""
    try:
        return math.ldexp(mantissa, exponent)
    except OverflowError:
        return math.inf
