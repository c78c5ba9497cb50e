# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Means and costs of given groups of sorted values."""

import cython
import numpy as np

if not cython.compiled:
    from clustruct.kernels.intervals import N_MOMENTS, interval_cost, moments_at

# A cost above this share of the running moments keeps 14 digits in pairs of doubles.
RESOLVED = cython.declare(cython.double, 2.0**-50)


def partition_cost(table: cython.double[:, ::1], boundaries: cython.longlong[::1]):
    """Cost of a partition with the given inner boundaries; the table has a row a position."""
    cost: cython.double = 0.0
    start: cython.Py_ssize_t = 0
    with cython.nogil:
        for i in range(boundaries.shape[0]):
            cost += interval_cost(table, start, boundaries[i])
            start = boundaries[i]
        cost += interval_cost(table, start, table.shape[0] - 1)
    return cost


def group_summaries(
    values: cython.double[::1],
    weights: cython.double[::1],
    origin: cython.double,
    table: cython.double[:, ::1],
    block: cython.Py_ssize_t,
    edges: cython.longlong[::1],
):
    """Mean and cost of each group ``[edges[q], edges[q + 1])``; none may be empty."""
    n_groups: cython.Py_ssize_t = edges.shape[0] - 1
    rows: cython.double[:, ::1] = np.empty((n_groups + 1, N_MOMENTS))
    means, costs = np.empty(n_groups), np.empty(n_groups)
    summarise(values, weights, origin, table, block, edges, rows, means, costs)
    return means, costs


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def summarise(
    values: cython.double[::1],
    weights: cython.double[::1],
    origin: cython.double,
    table: cython.double[:, ::1],
    block: cython.Py_ssize_t,
    edges: cython.longlong[::1],
    rows: cython.double[:, ::1],
    means: cython.double[::1],
    costs: cython.double[::1],
) -> cython.void:
    """``group_summaries`` into given arrays; ``rows`` is work space, one for each edge."""
    n_groups: cython.Py_ssize_t = edges.shape[0] - 1
    mean: cython.double
    reach: cython.double = max(origin - values[0], values[values.shape[0] - 1] - origin)
    moments_at(values, weights, origin, table, block, edges, rows)
    for group in range(n_groups):
        weight = (rows[group + 1, 0] - rows[group, 0]) + (rows[group + 1, 1] - rows[group, 1])
        first = (rows[group + 1, 2] - rows[group, 2]) + (rows[group + 1, 3] - rows[group, 3])
        mean = origin + first / weight if weight > 0.0 else origin
        costs[group] = interval_cost(rows, group, group + 1)
        # Where even pairs of doubles lose digits the values themselves have the last word.
        if costs[group] < RESOLVED * (rows[group + 1, 4] + reach * reach * rows[group + 1, 0]):
            mean = min(max(mean, values[edges[group]]), values[edges[group + 1] - 1])
            weight = _direct_sum(values, weights, edges[group], edges[group + 1], mean, 0)
            first = _direct_sum(values, weights, edges[group], edges[group + 1], mean, 1)
            mean += first / weight if weight > 0.0 else 0.0
            first = _direct_sum(values, weights, edges[group], edges[group + 1], mean, 1)
            costs[group] = _direct_sum(values, weights, edges[group], edges[group + 1], mean, 2)
            costs[group] -= first * (first / weight) if weight > 0.0 else 0.0
            # One value costs nothing, not a rounding error.
            if edges[group + 1] - edges[group] == 1:
                costs[group] = 0.0
        # A mean lies between the least and the largest value, whatever rounding says.
        means[group] = min(max(mean, values[edges[group]]), values[edges[group + 1] - 1])


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _direct_sum(
    values: cython.double[::1],
    weights: cython.double[::1],
    first: cython.Py_ssize_t,
    last: cython.Py_ssize_t,
    about: cython.double,
    power: cython.int,
) -> cython.double:
    """``sum w (x - about)^power`` over the values ``[first, last)``, for a power of 0, 1 or 2."""
    weighted: cython.bint = weights.shape[0] > 0
    total: cython.double = 0.0
    for i in range(first, last):
        term = weights[i] if weighted else 1.0
        if power > 0:
            term *= values[i] - about
        if power > 1:
            term *= values[i] - about
        total += term
    return total
