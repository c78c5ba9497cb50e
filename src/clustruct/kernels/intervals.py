# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Sums of squares over intervals of sorted values, and the two shortest paths built on them.

An interval ``[i, j)`` of the sorted values costs ``C(i, j) = sum_l w_l (x_l - mu)^2``, with ``mu``
its weighted mean. From running moments it takes a few operations whatever its length is,

    C(i, j) = S2 - S1^2 / W,   with   W, S1, S2 = sum w, sum w (x - o), sum w (x - o)^2 ,

but in double precision that difference has lost every digit of a tight group that lies a million
widths away from the origin ``o``. All moments are therefore pairs of doubles, a value and what
rounding took from it (error-free transformations after Dekker and Knuth), good for 32 digits.

``C`` satisfies the Monge inequality ``C(a, c) + C(b, d) <= C(a, d) + C(b, c)`` for
``a <= b <= c <= d``, so the best predecessor of a position never moves left as the position moves
right. Both searches below rest on that.
"""

import cython
import numpy as np

# Weights of one.
NO_WEIGHTS = np.empty(0)
# Distance between the positions whose moments are tabulated where not all are needed.
BLOCK = 8
# A row of a table of moments: the pairs (W, rest), (S1, rest), (S2, rest).
N_MOMENTS = 6
# How a group is measured: about its mean to the last digit, the same in plain double precision, or
# about zero.
EXACT = 0
FAST = 1
ABOUT_ZERO = 2

INFINITY = float("inf")
# A cost above this share of the running moments keeps 14 digits in pairs of doubles.
RESOLVED = cython.declare(cython.double, 2.0**-50)
UNIT = cython.declare(cython.double, 2.0**-53)


def running_moments(
    values: cython.double[::1],
    weights: cython.double[::1],
    origin: cython.double,
    block: cython.Py_ssize_t,
):
    """Moments of ``[0, i)`` for every ``i`` that is a multiple of ``block``.

    Parameters
    ----------
    values : ndarray of float64, shape (n,)
        Sorted values, scaled so that none exceeds 1 in size.
    weights : ndarray of float64, shape (n,) or (0,)
        Their weights; empty stands for weights of one.
    origin : float
        The point that the moments are taken about.
    block : int
        Distance between the positions that are tabulated.

    Returns
    -------
    table : ndarray of float64, shape (n // block + 1, 6)
    """
    table: cython.double[:, ::1] = np.zeros((values.shape[0] // block + 1, N_MOMENTS))
    row: cython.Py_ssize_t
    with cython.nogil:
        for row in range(1, table.shape[0]):
            _advance(values, weights, origin, (row - 1) * block, row * block, table, row - 1, row)
    return np.asarray(table)


def fast_cost_error(
    values: cython.double[::1],
    weights: cython.double[::1],
    origin: cython.double,
    table: cython.double[:, ::1],
    block: cython.Py_ssize_t,
):
    """Bound on the error of a cost that is computed in plain double precision.

    Each moment of an interval is a difference of running moments and has their rounding error:
    ``u S2`` in the second, ``u |S1|`` in the first (which enters multiplied by twice the mean of
    the interval, at most the reach ``R``), ``u W`` in the weight (times ``R^2``; none without
    weights).
    """
    n: cython.Py_ssize_t = values.shape[0]
    reach: cython.double = max(origin - values[0], values[n - 1] - origin)
    # The values ascend, so |S1| is largest where they pass the origin, or at the end.
    low: cython.Py_ssize_t = 0
    high: cython.Py_ssize_t = n
    middle: cython.Py_ssize_t
    while low < high:
        middle = (low + high) // 2
        if values[middle] < origin:
            low = middle + 1
        else:
            high = middle
    rows: cython.double[:, ::1] = np.empty((2, N_MOMENTS))
    moments_at(values, weights, origin, table, block, low, rows, 0)
    moments_at(values, weights, origin, table, block, n, rows, 1)
    first: cython.double = max(abs(rows[0, 2]), abs(rows[1, 2]))
    heavy: cython.double = rows[1, 0] * reach if weights.shape[0] else 0.0
    return 16.0 * UNIT * (rows[1, 4] + reach * (2.0 * first + heavy))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def moments_at(
    values: cython.double[::1],
    weights: cython.double[::1],
    origin: cython.double,
    table: cython.double[:, ::1],
    block: cython.Py_ssize_t,
    position: cython.Py_ssize_t,
    out: cython.double[:, ::1],
    row: cython.Py_ssize_t,
) -> cython.void:
    """Write the moments of ``[0, position)`` to ``out[row]``."""
    start: cython.Py_ssize_t = position // block
    column: cython.Py_ssize_t
    for column in range(6):
        out[row, column] = table[start, column]
    _advance(values, weights, origin, start * block, position, out, row, row)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _advance(
    values: cython.double[::1],
    weights: cython.double[::1],
    origin: cython.double,
    first: cython.Py_ssize_t,
    last: cython.Py_ssize_t,
    table: cython.double[:, ::1],
    source: cython.Py_ssize_t,
    target: cython.Py_ssize_t,
) -> cython.void:
    """``table[target]`` = ``table[source]`` plus the moments of the values ``[first, last)``."""
    w: cython.double = table[source, 0]
    w_rest: cython.double = table[source, 1]
    s: cython.double = table[source, 2]
    s_rest: cython.double = table[source, 3]
    t: cython.double = table[source, 4]
    t_rest: cython.double = table[source, 5]
    weighted: cython.bint = weights.shape[0] > 0
    shifted: cython.bint = origin != 0.0
    i: cython.Py_ssize_t
    x: cython.double
    x_rest: cython.double
    m: cython.double
    m_rest: cython.double
    p: cython.double
    p_rest: cython.double
    high: cython.double
    low: cython.double
    new: cython.double
    part: cython.double
    for i in range(first, last):
        x = values[i]
        x_rest = 0.0
        if shifted:
            # x + x_rest = values[i] - origin, exactly.
            x -= origin
            x_rest = _difference_error(values[i], origin, x)
        # x = high + low, each of 26 bits, so that their products are exact.
        part = 134217729.0 * x
        high = part - (part - x)
        low = x - high
        if weighted:
            m = weights[i] * x
            m_rest = _product_error(weights[i], x, m) + weights[i] * x_rest
            p = m * x
            p_rest = _product_error(m, x, p) + m_rest * x + m * x_rest
            new = w + weights[i]
            part = new - w
            w_rest += (w - (new - part)) + (weights[i] - part)
            w = new
        else:
            m = x
            m_rest = x_rest
            p = x * x
            p_rest = ((high * high - p) + 2.0 * high * low) + low * low + 2.0 * x * x_rest
            w += 1.0
        new = s + m
        part = new - s
        s_rest += (s - (new - part)) + (m - part) + m_rest
        s = new
        new = t + p
        part = new - t
        t_rest += (t - (new - part)) + (p - part) + p_rest
        t = new
    table[target, 0] = w + w_rest
    table[target, 1] = (w - table[target, 0]) + w_rest
    table[target, 2] = s + s_rest
    table[target, 3] = (s - table[target, 2]) + s_rest
    table[target, 4] = t + t_rest
    table[target, 5] = (t - table[target, 4]) + t_rest


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _product_error(a: cython.double, b: cython.double, product: cython.double) -> cython.double:
    """``a * b - product``, exactly, where ``product`` is the rounded ``a * b``."""
    part: cython.double = 134217729.0 * a
    a_high: cython.double = part - (part - a)
    a_low: cython.double = a - a_high
    part = 134217729.0 * b
    b_high: cython.double = part - (part - b)
    b_low: cython.double = b - b_high
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _difference_error(a: cython.double, b: cython.double, rounded: cython.double) -> cython.double:
    """``(a - b) - rounded``, exactly, where ``rounded`` is the rounded ``a - b``."""
    part: cython.double = rounded - a
    return (a - (rounded - part)) - (b + part)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def interval_cost(
    table: cython.double[:, ::1], i: cython.Py_ssize_t, j: cython.Py_ssize_t
) -> cython.double:
    """``C`` of the interval between the positions of two rows: ``S2 - S1^2 / W``."""
    w: cython.double = table[j, 0] - table[i, 0]
    w_rest: cython.double = _difference_error(table[j, 0], table[i, 0], w)
    w_rest += table[j, 1] - table[i, 1]
    s: cython.double = table[j, 2] - table[i, 2]
    s_rest: cython.double = _difference_error(table[j, 2], table[i, 2], s)
    s_rest += table[j, 3] - table[i, 3]
    t: cython.double = table[j, 4] - table[i, 4]
    t_rest: cython.double = _difference_error(table[j, 4], table[i, 4], t)
    t_rest += table[j, 5] - table[i, 5]
    # Normalise the divisor and the dividend, whose leading parts may have cancelled.
    high: cython.double = w + w_rest
    w_rest = (w - high) + w_rest
    w = high
    if w <= 0.0:
        return 0.0
    high = s + s_rest
    s_rest = (s - high) + s_rest
    s = high
    square: cython.double = s * s
    quotient: cython.double = square / w
    product: cython.double = quotient * w
    rest: cython.double = (square - product) - _product_error(quotient, w, product)
    rest += _product_error(s, s, square) + 2.0 * s * s_rest - quotient * w_rest
    cost: cython.double = (t - quotient) + (t_rest - rest / w)
    return cost if cost > 0.0 else 0.0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def layer_minima(
    table: cython.double[:, ::1],
    positions: cython.longlong[::1],
    slots: cython.longlong[::1],
    base: cython.double[::1],
    row_first: cython.Py_ssize_t,
    row_last: cython.Py_ssize_t,
    column_first: cython.Py_ssize_t,
    column_last: cython.Py_ssize_t,
    forward: cython.bint,
    measure: cython.int,
    noise: cython.double,
    gap: cython.double,
    best: cython.double[::1],
    best_column: cython.longlong[::1],
) -> cython.void:
    """``best[r] = min_c base[c] + cost(c, r)`` for the rows of one layer, with its column.

    Rows and columns are states; ``slots`` gives each its row of the table. A column must not lie
    after its row (before it, when not ``forward``), and the weight ``gap`` or more between them.
    ``measure`` says how an edge is measured, ``noise`` how far off the FAST way may be. Rows are
    visited by halving strides: a row's best column lies between those of its neighbours (Monge), so
    a layer takes ``O((rows + columns) log rows)`` costs.
    """
    n_rows: cython.Py_ssize_t = row_last - row_first
    stride: cython.Py_ssize_t = 1
    r: cython.Py_ssize_t
    row: cython.Py_ssize_t
    column: cython.Py_ssize_t
    left: cython.Py_ssize_t
    right: cython.Py_ssize_t
    choice: cython.Py_ssize_t
    here: cython.longlong
    there: cython.longlong
    weight: cython.double
    first: cython.double
    value: cython.double
    least: cython.double
    sign: cython.double = 1.0 if forward else -1.0
    while stride < n_rows:
        stride *= 2
    while stride > 0:
        r = stride - 1
        while r < n_rows:
            row = row_first + r
            here = slots[row]
            left = best_column[row - stride] if r >= stride else column_first
            right = best_column[row + stride] if r + stride < n_rows else column_last - 1
            least = INFINITY
            choice = left if forward else right
            if forward:
                while left <= right and not _joined(table, positions, slots[right], here, gap):
                    right -= 1
            else:
                while left <= right and not _joined(table, positions, here, slots[left], gap):
                    left += 1
            for column in range(left, right + 1):
                there = slots[column]
                if measure == ABOUT_ZERO:
                    value = base[column] + sign * (table[here, 4] - table[there, 4])
                else:
                    weight = table[here, 0] - table[there, 0]
                    first = table[here, 2] - table[there, 2]
                    value = table[here, 4] - table[there, 4]
                    if weight != 0.0:
                        value -= first * (first / weight)
                    value = base[column] + sign * value
                    if measure == EXACT and value - noise < least:
                        value = base[column]
                        if forward:
                            value += interval_cost(table, there, here)
                        else:
                            value += interval_cost(table, here, there)
                if value < least:
                    least = value
                    choice = column
            best[row] = least
            best_column[row] = choice
            r += 2 * stride
        stride //= 2


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _joined(
    table: cython.double[:, ::1],
    positions: cython.longlong[::1],
    i: cython.Py_ssize_t,
    j: cython.Py_ssize_t,
    gap: cython.double,
) -> cython.bint:
    """Whether a group may reach from one row to another: in order, with weight ``gap`` or more."""
    return positions[i] <= positions[j] and table[i, 0] <= table[j, 0] - gap


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _fast_cost(
    table: cython.double[:, ::1], i: cython.Py_ssize_t, j: cython.Py_ssize_t
) -> cython.double:
    """``C`` of the interval between two rows, in plain double precision."""
    s: cython.double = table[j, 2] - table[i, 2]
    return (table[j, 4] - table[i, 4]) - s * (s / (table[j, 0] - table[i, 0]))


def penalised_path(
    table: cython.double[:, ::1],
    penalty: cython.double,
    noise: cython.double,
    best: cython.double[:, ::1],
    previous: cython.int[::1],
    queue: cython.int[::1],
    since: cython.int[::1],
):
    """Boundaries of the partition that minimises ``cost + penalty * number of groups``.

    The table has a row for every position ``0 .. n``, and the other arrays are work space of that
    length; ``noise`` is the error of a cost in plain double precision. The least cost
    ``best[j] = min_i best[i] + C(i, j) + penalty``, again a pair of doubles, since costs may be far
    below the penalty, is found for all ``j`` in one sweep: ``queue``
    holds the predecessors that will be best for some position ahead, and ``since`` where the reign
    of each begins (Monge: reigns are intervals, in the order of the predecessors).

    Returns
    -------
    boundaries : ndarray of int64
        The inner boundaries, ascending; one less than there are groups.
    """
    n: cython.Py_ssize_t = table.shape[0] - 1
    j: cython.Py_ssize_t
    start: cython.longlong
    head: cython.Py_ssize_t = 0
    tail: cython.Py_ssize_t = 0
    n_inner: cython.Py_ssize_t = 0
    with cython.nogil:
        best[0, 0] = 0.0
        best[1, 0] = 0.0
        queue[0] = 0
        since[0] = 1
        for j in range(1, n + 1):
            while head < tail and since[head + 1] <= j:
                head += 1
            previous[j] = queue[head]
            _extend(table, penalty, queue[head], j, best)
            start = j + 1
            while tail >= head and start <= n:
                start = max(since[tail], j + 1)
                if not _beats(table, best, j, queue[tail], start, noise):
                    start = _takeover(table, best, j, queue[tail], start, n, noise)
                    break
                tail -= 1
                start = j + 1
            if start <= n:
                tail = max(tail, head - 1) + 1
                queue[tail] = j
                since[tail] = start
        j = previous[n]
        while j > 0:
            n_inner += 1
            j = previous[j]
    boundaries = np.empty(n_inner, dtype=np.int64)
    inner: cython.longlong[::1] = boundaries
    j = previous[n]
    while j > 0:
        n_inner -= 1
        inner[n_inner] = j
        j = previous[j]
    return boundaries


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _extend(
    table: cython.double[:, ::1],
    penalty: cython.double,
    i: cython.Py_ssize_t,
    j: cython.Py_ssize_t,
    best: cython.double[:, ::1],
) -> cython.void:
    """``best[:, j] = best[:, i] + C(i, j) + penalty``, as a pair of doubles."""
    cost: cython.double = interval_cost(table, i, j)
    total: cython.double = best[0, i] + penalty
    rest: cython.double = best[1, i] + _difference_error(best[0, i], -penalty, total)
    sum_: cython.double = total + cost
    rest += _difference_error(total, -cost, sum_)
    best[0, j] = sum_ + rest
    best[1, j] = (sum_ - best[0, j]) + rest


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _beats(
    table: cython.double[:, ::1],
    best: cython.double[:, ::1],
    new: cython.Py_ssize_t,
    old: cython.Py_ssize_t,
    position: cython.Py_ssize_t,
    noise: cython.double,
) -> cython.bint:
    """Whether ``new`` is a better predecessor of ``position`` than ``old``.

    Plain double precision decides, except where the difference is within its ``noise``.
    """
    ahead: cython.double = (best[0, old] - best[0, new]) + (best[1, old] - best[1, new])
    lead: cython.double = _fast_cost(table, old, position) - _fast_cost(table, new, position)
    if ahead + lead > 2.0 * noise or ahead + lead < -2.0 * noise:
        return ahead + lead > 0.0
    lead = interval_cost(table, old, position) - interval_cost(table, new, position)
    return ahead + lead >= 0.0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _takeover(
    table: cython.double[:, ::1],
    best: cython.double[:, ::1],
    new: cython.Py_ssize_t,
    old: cython.Py_ssize_t,
    start: cython.longlong,
    n: cython.longlong,
    noise: cython.double,
) -> cython.longlong:
    """First position after ``start`` where ``new`` beats ``old``, ``n + 1`` if there is none."""
    step: cython.longlong = 1
    low: cython.longlong = start
    high: cython.longlong
    middle: cython.longlong
    while low + step <= n and not _beats(table, best, new, old, low + step, noise):
        low += step
        step *= 2
    high = min(low + step, n + 1)
    while high - low > 1:
        middle = (low + high) // 2
        if _beats(table, best, new, old, middle, noise):
            high = middle
        else:
            low = middle
    return high


def partition_cost(table: cython.double[:, ::1], boundaries: cython.longlong[::1]):
    """Cost of a partition with the given inner boundaries; the table has a row a position."""
    cost: cython.double = 0.0
    start: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
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
    means: cython.double[::1] = np.empty(n_groups)
    costs: cython.double[::1] = np.empty(n_groups)
    group: cython.Py_ssize_t
    weight: cython.double
    first: cython.double
    mean: cython.double
    reach: cython.double = max(origin - values[0], values[values.shape[0] - 1] - origin)
    for group in range(n_groups + 1):
        moments_at(values, weights, origin, table, block, edges[group], rows, group)
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
    return np.asarray(means), np.asarray(costs)


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
    i: cython.Py_ssize_t
    term: cython.double
    total: cython.double = 0.0
    for i in range(first, last):
        term = weights[i] if weighted else 1.0
        if power > 0:
            term *= values[i] - about
        if power > 1:
            term *= values[i] - about
        total += term
    return total


def prefix_costs(table: cython.double[:, ::1], n_groups: cython.Py_ssize_t, noise: cython.double):
    """Least cost of cutting the first ``j`` values into at most ``q`` groups, for all ``q, j``.

    The table has a row for every position. Returns an array of shape ``(n_groups + 1, n + 1)``,
    infinite where no group is left for a value.
    """
    n_states: cython.Py_ssize_t = table.shape[0]
    costs_array = np.full((n_groups + 1, n_states), np.inf)
    costs: cython.double[:, ::1] = costs_array
    places: cython.longlong[::1] = np.arange(n_states)
    choice: cython.longlong[::1] = np.empty(n_states, dtype=np.int64)
    q: cython.Py_ssize_t
    with cython.nogil:
        costs[0, 0] = 0.0
        for q in range(1, n_groups + 1):
            layer_minima(
                table, places, places, costs[q - 1], 0, n_states, 0, n_states,
                True, EXACT, noise, 0.0, costs[q], choice,
            )  # fmt: skip
    return costs_array
