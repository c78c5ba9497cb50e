# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Means and costs of given groups of sorted values."""

import cython
import numpy as np

if not cython.compiled:
    from clustruct.kernels.numbers.intervals import (
        N_MOMENTS,
        interval_cost,
        interval_mean,
        moments_at,
        own_moments,
        product_error,
        sum_error,
    )

# A cost above this share of the running moments keeps 14 digits in pairs of doubles.
RESOLVED = cython.declare(cython.double, 2.0**-50)
# A mean above this share of the running first moments is right to the last digit.
RESOLVED_MEAN = cython.declare(cython.double, 2.0**-44)


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
    rows: cython.double[:, ::1] = np.empty((n_groups + 3, N_MOMENTS))
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
    """``group_summaries`` into given arrays; ``rows`` is work space, three more than groups."""
    n_groups: cython.Py_ssize_t = edges.shape[0] - 1
    own: cython.double[:, ::1] = rows[n_groups + 1 :]
    mean: cython.double
    first: cython.Py_ssize_t
    last: cython.Py_ssize_t
    reach: cython.double = max(origin - values[0], values[values.shape[0] - 1] - origin)
    own[0, :] = 0.0
    moments_at(values, weights, origin, table, block, edges, rows)
    for group in range(n_groups):
        first, last = edges[group], edges[group + 1] - 1
        mean = interval_mean(rows, group, group + 1, origin)
        costs[group] = interval_cost(rows, group, group + 1)
        heavy = reach * rows[group + 1, 0]
        weight = (rows[group + 1, 0] - rows[group, 0]) + (rows[group + 1, 1] - rows[group, 1])
        if first == last:
            # One value costs nothing, not a rounding error.
            mean, costs[group] = values[first], 0.0
        elif (
            costs[group] < RESOLVED * (rows[group + 1, 4] + reach * heavy)
            or weight * abs(mean) < RESOLVED_MEAN * heavy
        ):
            # Where running sums lose digits the group's own sums about its mean have the last word;
            # the first time about a mean that may be off, the second time about theirs.
            for _ in range(2):
                mean = min(max(mean, values[first]), values[last])
                own_moments(values, weights, mean, first, last + 1, own)
                costs[group] = interval_cost(own, 0, 1)
                mean = interval_mean(own, 0, 1, mean)
            if abs(mean) < RESOLVED_MEAN * max(abs(values[first]), abs(values[last])):
                # Values that cancel leave less than what pairs of doubles round.
                _add_closely(values, weights, first, last + 1, own)
                mean = interval_mean(own, 0, 1, 0.0)
        # A mean lies between the least and the largest value, whatever rounding says.
        means[group] = min(max(mean, values[first]), values[last])


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _add_closely(
    values: cython.double[::1],
    weights: cython.double[::1],
    first: cython.Py_ssize_t,
    last: cython.Py_ssize_t,
    out: cython.double[:, ::1],
) -> cython.void:
    """Write weight and first moment of the values ``[first, last)`` about zero to ``out[1]``.

    What each sum rounds off is added up, and what that sum rounds off as well: three doubles.
    """
    w: cython.double = 0.0
    w_rest: cython.double = 0.0
    s: cython.double = 0.0
    s_rest: cython.double = 0.0
    s_dust: cython.double = 0.0
    m: cython.double
    m_rest: cython.double
    weighted: cython.bint = weights.shape[0] > 0
    for i in range(first, last):
        m = values[i]
        m_rest = 0.0
        weight = 1.0
        if weighted:
            weight = weights[i]
            m = weight * values[i]
            m_rest = product_error(weight, values[i], m)
        new = w + weight
        w_rest += sum_error(w, weight, new)
        w = new
        new = s + m
        lost = sum_error(s, m, new)
        s = new
        new = s_rest + lost
        s_dust += sum_error(s_rest, lost, new)
        s_rest = new
        new = s_rest + m_rest
        s_dust += sum_error(s_rest, m_rest, new)
        s_rest = new
    out[1, 0] = w
    out[1, 1] = w_rest
    out[1, 2] = s + s_rest
    out[1, 3] = sum_error(s, s_rest, out[1, 2]) + s_dust
