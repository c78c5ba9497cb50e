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
right. Both searches below rest on that: ``layer_minima`` for a given number of groups, and
``priced_sweep`` for any number with a price for each. (They stand here, with what they measure by,
because calls between modules are several times slower.)
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
UNIT = cython.declare(cython.double, 2.0**-53)
# Error of a cost from differences of pairs, each rounded once, relative to the second moment of
# its interval about the origin; and what the pairs themselves are off by, relative to the error of
# plain double precision.
OWN_ERROR = cython.declare(cython.double, 16 * 2.0**-53)
PAIR_ERROR = cython.declare(cython.double, 1e-7)


def running_moments(
    values: cython.double[::1],
    weights: cython.double[::1],
    origin: cython.double,
    block: cython.Py_ssize_t,
):
    """Moments about ``origin`` of ``[0, i)`` for every ``i`` that is a multiple of ``block``.

    The values are sorted and scaled so that none exceeds 1 in size; empty weights stand for weights
    of one. The table has a row of six numbers for each position.
    """
    table_array = np.zeros((values.shape[0] // block + 1, N_MOMENTS))
    table: cython.double[:, ::1] = table_array
    plain: cython.bint = block > 1 and origin == 0.0 and weights.shape[0] == 0
    sums: cython.double[::1] = np.empty(4 * 64)
    with cython.nogil:
        if plain:
            row = 1
            while row < table.shape[0]:
                _add_blocks(values, block, table, row, min(64, table.shape[0] - row), sums)
                row += 64
        else:
            for row in range(1, table.shape[0]):
                _advance(
                    values, weights, origin, (row - 1) * block, row * block, table, row - 1, row
                )
    return table_array


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
    rows: cython.double[:, ::1] = np.empty((2, N_MOMENTS))
    places: cython.longlong[::1] = np.empty(2, dtype=np.int64)
    places[0] = place_of_origin(values, origin)
    places[1] = values.shape[0]
    moments_at(values, weights, origin, table, block, places, rows)
    first: cython.double = max(abs(rows[0, 2]), abs(rows[1, 2]))
    mass: cython.double = rows[1, 0] if weights.shape[0] else 0.0
    return error_of_costs(values, origin, mass, first, rows[1, 4])


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def place_of_origin(values: cython.double[::1], origin: cython.double) -> cython.Py_ssize_t:
    """Where ascending values pass the origin: there, or at the end, ``|S1|`` is largest."""
    low: cython.Py_ssize_t = 0
    high: cython.Py_ssize_t = values.shape[0]
    while low < high:
        middle = (low + high) // 2
        if values[middle] < origin:
            low = middle + 1
        else:
            high = middle
    return low


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def error_of_costs(
    values: cython.double[::1],
    origin: cython.double,
    mass: cython.double,
    first: cython.double,
    second: cython.double,
) -> cython.double:
    """The bound of ``fast_cost_error``, from the largest running moments; no mass for counts."""
    reach: cython.double = max(origin - values[0], values[values.shape[0] - 1] - origin)
    return 16.0 * UNIT * (second + reach * (2.0 * first + mass * reach))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def moments_at(
    values: cython.double[::1],
    weights: cython.double[::1],
    origin: cython.double,
    table: cython.double[:, ::1],
    block: cython.Py_ssize_t,
    positions: cython.longlong[::1],
    out: cython.double[:, ::1],
) -> cython.void:
    """Write the moments of ``[0, positions[i])`` to ``out[i]``."""
    column: cython.Py_ssize_t
    position: cython.Py_ssize_t
    before: cython.Py_ssize_t = -1
    for i in range(positions.shape[0]):
        position = positions[i]
        start = position // block
        if start * block <= before <= position:
            # On from the last one rather than from the table.
            for column in range(6):
                out[i, column] = out[i - 1, column]
            start = before
        else:
            for column in range(6):
                out[i, column] = table[start, column]
            start *= block
        if start < position:
            _advance(values, weights, origin, start, position, out, i, i)
        before = position


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
            m_rest = product_error(weights[i], x, m) + weights[i] * x_rest
            p = m * x
            p_rest = product_error(m, x, p) + m_rest * x + m * x_rest
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
@cython.nogil
@cython.exceptval(check=False)
def moments_everywhere(
    values: cython.double[::1],
    weights: cython.double[::1],
    origin: cython.double,
    block: cython.Py_ssize_t,
    table: cython.double[:, ::1],
    mass: cython.double[::1],
    first: cython.double[::1],
    second: cython.double[::1],
) -> cython.void:
    """Running moments in pairs at every block, and rounded to doubles at every position.

    The first row of the table is zero, the others are written; so are all of ``mass``, ``first``
    and ``second``. The products of a block come before its sums, so that processors make several at
    a time. ``block`` is at most 64.
    """
    n: cython.Py_ssize_t = values.shape[0]
    w: cython.double = 0.0
    w_rest: cython.double = 0.0
    weighted: cython.bint = weights.shape[0] > 0
    start: cython.Py_ssize_t = 0
    size: cython.Py_ssize_t
    row: cython.Py_ssize_t
    i: cython.Py_ssize_t
    lane: cython.Py_ssize_t
    # Of S1 and S2, in turn: what each value adds and its rounding error, the sums and theirs.
    terms = cython.declare(cython.double[128])
    errors = cython.declare(cython.double[128])
    total = cython.declare(cython.double[2])
    rest = cython.declare(cython.double[2])
    rounded = cython.declare(cython.double[2])
    for lane in range(2):
        total[lane] = 0.0
        rest[lane] = 0.0
        rounded[lane] = 0.0
    mass[0] = 0.0
    first[0] = 0.0
    second[0] = 0.0
    while start < n:
        size = min(block, n - start)
        if weighted:
            for i in range(size):
                weight = weights[start + i]
                x = values[start + i] - origin
                x_rest = _difference_error(values[start + i], origin, x)
                m = weight * x
                m_rest = product_error(weight, x, m) + weight * x_rest
                p = m * x
                terms[2 * i] = m
                terms[2 * i + 1] = p
                errors[2 * i] = m_rest
                errors[2 * i + 1] = product_error(m, x, p) + (m_rest * x + m * x_rest)
            for i in range(size):
                weight = weights[start + i]
                new = w + weight
                part = new - w
                w_rest += (w - (new - part)) + (weight - part)
                w = new
                mass[start + i + 1] = w + w_rest
        else:
            for i in range(size):
                x = values[start + i] - origin
                x_rest = _difference_error(values[start + i], origin, x)
                part = 134217729.0 * x
                high = part - (part - x)
                low = x - high
                p = x * x
                terms[2 * i] = x
                terms[2 * i + 1] = p
                errors[2 * i] = x_rest
                errors[2 * i + 1] = (
                    ((high * high - p) + 2.0 * high * low) + low * low + 2.0 * x * x_rest
                )
            for i in range(size):
                mass[start + i + 1] = start + i + 1
            w = start + size
        for i in range(size):
            for lane in range(2):
                new = total[lane] + terms[2 * i + lane]
                part = new - total[lane]
                rest[lane] += (
                    (total[lane] - (new - part)) + (terms[2 * i + lane] - part)
                ) + errors[2 * i + lane]
                total[lane] = new
                rounded[lane] = new + rest[lane]
            first[start + i + 1] = rounded[0]
            second[start + i + 1] = rounded[1]
        start += size
        if size == block:
            row = start // block
            table[row, 0] = mass[start]
            table[row, 1] = (w - mass[start]) + w_rest
            for lane in range(2):
                table[row, 2 * lane + 2] = rounded[lane]
                table[row, 2 * lane + 3] = (total[lane] - rounded[lane]) + rest[lane]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def own_moments(
    values: cython.double[::1],
    weights: cython.double[::1],
    about: cython.double,
    first: cython.Py_ssize_t,
    last: cython.Py_ssize_t,
    out: cython.double[:, ::1],
) -> cython.void:
    """Write the moments of the values ``[first, last)`` alone to ``out[1]``; ``out[0]`` is zero."""
    _advance(values, weights, about, first, last, out, 0, 1)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _add_blocks(
    values: cython.double[::1],
    block: cython.Py_ssize_t,
    table: cython.double[:, ::1],
    first_row: cython.Py_ssize_t,
    n_rows: cython.Py_ssize_t,
    sums: cython.double[::1],
) -> cython.void:
    """Up to 64 rows of the table for an origin of zero and no weights.

    The same sums as in ``_advance``, but those of each block are added up apart, several blocks at
    a time, which is half the work for processors with vectors of two.
    """
    start: cython.Py_ssize_t = (first_row - 1) * block
    new: cython.double
    rest: cython.double
    sums[:] = 0.0
    for k in range(block):
        for lane in range(n_rows):
            x = values[start + lane * block + k]
            part = 134217729.0 * x
            high = part - (part - x)
            low = x - high
            p = x * x
            rest = ((high * high - p) + 2.0 * high * low) + low * low
            old = sums[lane]
            new = old + x
            part = new - old
            sums[lane] = new
            sums[64 + lane] += (old - (new - part)) + (x - part)
            old = sums[128 + lane]
            new = old + p
            part = new - old
            sums[128 + lane] = new
            sums[192 + lane] += (old - (new - part)) + (p - part) + rest
    for lane in range(n_rows):
        table[first_row + lane, 0] = (first_row + lane) * block
    for k in range(2):
        old = table[first_row - 1, 2 * k + 2]
        rest = table[first_row - 1, 2 * k + 3]
        for lane in range(n_rows):
            row = first_row + lane
            x = sums[128 * k + lane]
            new = old + x
            part = new - old
            rest += (old - (new - part)) + (x - part) + sums[128 * k + 64 + lane]
            old = new
            high = new + rest
            table[row, 2 * k + 2] = high
            table[row, 2 * k + 3] = (new - high) + rest


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def product_error(a: cython.double, b: cython.double, product: cython.double) -> cython.double:
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
def sum_error(a: cython.double, b: cython.double, rounded: cython.double) -> cython.double:
    """``(a + b) - rounded``, exactly, where ``rounded`` is the rounded ``a + b``."""
    return _difference_error(a, -b, rounded)


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
    return _cost_of_sums(w, w_rest, s, s_rest, t, t_rest)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def interval_mean(
    table: cython.double[:, ::1], i: cython.Py_ssize_t, j: cython.Py_ssize_t, origin: cython.double
) -> cython.double:
    """``o + S1 / W`` of the interval between the positions of two rows; ``o`` without weight."""
    w: cython.double = table[j, 0] - table[i, 0]
    w_rest: cython.double = _difference_error(table[j, 0], table[i, 0], w)
    w_rest += table[j, 1] - table[i, 1]
    s: cython.double = table[j, 2] - table[i, 2]
    s_rest: cython.double = _difference_error(table[j, 2], table[i, 2], s)
    s_rest += table[j, 3] - table[i, 3]
    high: cython.double = w + w_rest
    w_rest = (w - high) + w_rest
    w = high
    if w <= 0.0:
        return origin
    high = s + s_rest
    s_rest = (s - high) + s_rest
    s = high
    quotient: cython.double = s / w
    product: cython.double = quotient * w
    rest: cython.double = (s - product) - product_error(quotient, w, product)
    rest += s_rest - quotient * w_rest
    mean: cython.double = origin + quotient
    return mean + (rest / w - _difference_error(-origin, quotient, -mean))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _cost_of_sums(
    w: cython.double,
    w_rest: cython.double,
    s: cython.double,
    s_rest: cython.double,
    t: cython.double,
    t_rest: cython.double,
) -> cython.double:
    """``S2 - S1^2 / W`` from pairs of doubles."""
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
    rest: cython.double = (square - product) - product_error(quotient, w, product)
    rest += product_error(s, s, square) + 2.0 * s * s_rest - quotient * w_rest
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
    left: cython.Py_ssize_t
    right: cython.Py_ssize_t
    value: cython.double
    sign: cython.double = 1.0 if forward else -1.0
    if column_first == column_last:
        best[row_first:row_last] = INFINITY
        return
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
            if measure == ABOUT_ZERO:
                for column in range(left, right + 1):
                    there = slots[column]
                    value = table[here, 4] - table[there, 4]
                    value += table[here, 5] - table[there, 5]
                    value = base[column] + sign * value
                    if value < least:
                        least = value
                        choice = column
            else:
                for column in range(left, right + 1):
                    value = base[column] + sign * _fast_cost(table, slots[column], here)
                    choice = column if value < least else choice
                    least = value if value < least else least
            if measure == EXACT:
                # The best one is among those that are as good up to noise.
                limit = least + 2.0 * noise
                least = INFINITY
                for column in range(left, right + 1):
                    there = slots[column]
                    if base[column] + sign * _fast_cost(table, there, here) <= limit:
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
def _fast_cost(
    table: cython.double[:, ::1], i: cython.Py_ssize_t, j: cython.Py_ssize_t
) -> cython.double:
    """``C`` of the interval between two rows in plain double precision; ``-C`` for ``j < i``."""
    weight: cython.double = table[j, 0] - table[i, 0]
    first: cython.double = table[j, 2] - table[i, 2]
    cost: cython.double = table[j, 4] - table[i, 4]
    if weight != 0.0:
        cost -= first * (first / weight)
    return cost


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


def priced_sweep(
    table: cython.double[:, ::1],
    price: cython.double,
    noise: cython.double,
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    best: cython.double[:, ::1],
    previous: cython.int[::1],
    queue: cython.int[::1],
    since: cython.int[::1],
):
    """Least priced cost of reaching every position from ``start`` to ``stop``, in either direction.

    Parameters
    ----------
    table : ndarray of float64, shape (n + 1, 6)
        Running moments, a row for every position, see ``intervals.running_moments``.
    price : float
        What every group costs besides its sum of squares.
    noise : float
        Error of a cost in plain double precision, see ``intervals.fast_cost_error``.
    start, stop : int
        Positions where the sweep begins and ends; it runs down if ``stop`` is less.
    best : ndarray of float64, shape (2, n + 1)
        On entry what it costs to begin at each position: finite at ``start``, infinite where
        one may not. On return the least cost of getting there with any number of groups. Pairs of
        doubles, since costs may be far below the price.
    previous : ndarray of int32, shape (n + 1,)
        On return the position that each is best reached from; itself if it is best to begin there.
    queue, since : ndarray of int32, shape (n + 1,)
        Work space: the predecessors that will be best for some position ahead, and where the reign
        of each begins, as distances from ``start``.
    """
    with cython.nogil:
        sweep(table, price, noise, start, stop, best, previous, queue, since)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def sweep(
    table: cython.double[:, ::1],
    price: cython.double,
    noise: cython.double,
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    best: cython.double[:, ::1],
    previous: cython.int[::1],
    queue: cython.int[::1],
    since: cython.int[::1],
) -> cython.void:
    """``priced_sweep`` for kernels that have released the GIL."""
    sign: cython.Py_ssize_t = 1 if start <= stop else -1
    n: cython.Py_ssize_t = sign * (stop - start)
    head: cython.Py_ssize_t = 0
    tail: cython.Py_ssize_t = 0
    previous[start] = start
    queue[0] = 0
    since[0] = 1
    for step in range(1, n + 1):
        while head < tail and since[head + 1] <= step:
            head += 1
        _reach(table, price, start + sign * queue[head], start + sign * step, best, previous)
        begin = step + 1
        while tail >= head and begin <= n:
            begin = max(since[tail], step + 1)
            if not _beats(table, best, start, sign, step, queue[tail], begin, noise):
                begin = _takeover(table, best, start, sign, step, queue[tail], begin, n, noise)
                break
            tail -= 1
            begin = step + 1
        if begin <= n:
            tail = max(tail, head - 1) + 1
            queue[tail] = step
            since[tail] = begin


def traced_path(previous: cython.int[::1], end: cython.Py_ssize_t):
    """Positions on the best way to ``end``, from there back to where it begins."""
    n_steps: cython.Py_ssize_t = 0
    position: cython.Py_ssize_t = end
    while previous[position] != position:
        n_steps += 1
        position = previous[position]
    path_array = np.empty(n_steps + 1, dtype=np.int64)
    path: cython.longlong[::1] = path_array
    path[0] = end
    for position in range(n_steps):
        path[position + 1] = previous[path[position]]
    return path_array


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _reach(
    table: cython.double[:, ::1],
    price: cython.double,
    i: cython.Py_ssize_t,
    j: cython.Py_ssize_t,
    best: cython.double[:, ::1],
    previous: cython.int[::1],
) -> cython.void:
    """``best[:, j]`` = the least of itself and ``best[:, i] + C(i, j) + price``, in pairs."""
    cost: cython.double = interval_cost(table, min(i, j), max(i, j))
    total: cython.double = best[0, i] + price
    rest: cython.double = best[1, i] + _difference_error(best[0, i], -price, total)
    sum_: cython.double = total + cost
    rest += _difference_error(total, -cost, sum_)
    total = sum_ + rest
    rest = (sum_ - total) + rest
    if best[0, j] < total or (best[0, j] == total and best[1, j] < rest):
        previous[j] = j
    else:
        best[0, j] = total
        best[1, j] = rest
        previous[j] = i


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _beats(
    table: cython.double[:, ::1],
    best: cython.double[:, ::1],
    start: cython.Py_ssize_t,
    sign: cython.Py_ssize_t,
    new_step: cython.Py_ssize_t,
    old_step: cython.Py_ssize_t,
    step: cython.Py_ssize_t,
    noise: cython.double,
) -> cython.bint:
    """Whether the predecessor at ``new_step`` beats the old one for the position at ``step``.

    Plain double precision decides, except where the difference is within its ``noise``.
    """
    new: cython.Py_ssize_t = start + sign * new_step
    old: cython.Py_ssize_t = start + sign * old_step
    here: cython.Py_ssize_t = start + sign * step
    lead: cython.double = (best[0, old] - best[0, new]) + (best[1, old] - best[1, new])
    # Differences against the direction of the sweep have the other sign, and so have the costs.
    s: cython.double = table[here, 2] - table[old, 2]
    r: cython.double = table[here, 2] - table[new, 2]
    v: cython.double = table[here, 0] - table[old, 0]
    w: cython.double = table[here, 0] - table[new, 0]
    # The second moments up to the position cancel.
    gain: cython.double = table[new, 4] - table[old, 4]
    if v * w != 0.0:  # weights may be lost beside those before them
        gain = lead + sign * (gain - s * (s / v) + r * (r / w))
        if gain > 2.0 * noise or gain < -2.0 * noise:
            return gain > 0.0
    return _beats_closely(table, lead, sign, new, old, here, noise)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _beats_closely(
    table: cython.double[:, ::1],
    lead: cython.double,
    sign: cython.Py_ssize_t,
    new: cython.Py_ssize_t,
    old: cython.Py_ssize_t,
    here: cython.Py_ssize_t,
    noise: cython.double,
) -> cython.bint:
    """The same for positions that plain double precision does not tell apart.

    Differences of pairs decide, whose error is that of the two intervals alone; if it is too large
    as well, pairs throughout.
    """
    s: cython.double = table[here, 2] - table[old, 2] + (table[here, 3] - table[old, 3])
    r: cython.double = table[here, 2] - table[new, 2] + (table[here, 3] - table[new, 3])
    v: cython.double = table[here, 0] - table[old, 0] + (table[here, 1] - table[old, 1])
    w: cython.double = table[here, 0] - table[new, 0] + (table[here, 1] - table[new, 1])
    gain: cython.double = (table[new, 4] - table[old, 4]) + (table[new, 5] - table[old, 5])
    error: cython.double = (table[here, 4] - table[old, 4]) + (table[here, 4] - table[new, 4])
    error = OWN_ERROR * abs(error) + PAIR_ERROR * noise
    if v != 0.0 and w != 0.0:
        gain = lead + sign * (gain - s * (s / v) + r * (r / w))
        if gain > error or gain < -error:
            return gain > 0.0
    gain = interval_cost(table, min(old, here), max(old, here))
    gain -= interval_cost(table, min(new, here), max(new, here))
    return lead + gain >= 0.0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _takeover(
    table: cython.double[:, ::1],
    best: cython.double[:, ::1],
    start: cython.Py_ssize_t,
    sign: cython.Py_ssize_t,
    new_step: cython.Py_ssize_t,
    old_step: cython.Py_ssize_t,
    begin: cython.Py_ssize_t,
    n: cython.Py_ssize_t,
    noise: cython.double,
) -> cython.Py_ssize_t:
    """First step after ``begin`` where the new predecessor beats the old, ``n + 1`` if none."""
    stride: cython.Py_ssize_t = 1
    low: cython.Py_ssize_t = begin
    high: cython.Py_ssize_t = n + 1
    while high - low > 1:
        # Double the strides until one goes too far, then halve what is in question.
        probe = low + stride if stride > 0 and low + stride < high else (low + high) // 2
        if _beats(table, best, start, sign, new_step, old_step, probe, noise):
            high = probe
            stride = 0
        else:
            low = probe
            stride *= 2
    return high
