# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Positions that stand for all others: dense about the boundaries of a partition, sparse elsewhere.

To prove a partition best at a price, `mesh_proof` need not visit all positions of the sorted
values. Here they are divided into **cells** ``[low, high)``, each with one position that stands for
it and a discount. The least discounted cost over the positions that stand for cells is no more than
the least cost over all positions, so a partition that reaches it is best.

The discount. Let ``t`` be a boundary of a best partition between groups of centres ``c < c'``,
``D = c' - c``. Values left of ``t`` are nearer to ``c``, those right of it to ``c'``, so the
midpoint of the centres lies in ``[x_(t-1), x_t]``. Moving ``t`` to another position ``r`` of its
cell, the centres held, costs ``2 w D |x - midpoint|`` for each value ``x`` that it passes, so at
most

    2 D max( sum_[low, r) w (x - x_(low-1)),  sum_[r, high-1) w (x_(high-1) - x) ).

A group that ends up empty is left out, which saves its price; no discount exceeds that.

The distance ``D``. No group of a best partition can be split at a gain above the price, and the
gain from splitting an interval grows with the interval. So a group that begins at ``t`` ends before
the first ``e`` for which some split of ``[t, e)`` gains more, and ``c'`` is at most the mean up to
there; ``c`` is bounded in the same way. Positions between two **knots** share a bound, which holds
at all lower prices, too.

Cells are ``grade`` times as wide as they are far from the next boundary of the partition. The cost
of a partition whose boundaries are off by ``d`` rises like ``d^2``, and so does the discount: with
a grade below some constant over the number of groups the rise is larger, and the mesh proves that
the partition is best. It has about ``Q^2 (1 + log(n / Q^2))`` cells for ``Q`` groups of ``n``
values. Where the mesh does not prove it, cells are refined.
"""

import cython

# Knots for each group.
KNOTS = cython.declare(cython.Py_ssize_t, 8)
# No discount is more than this share of the price over the number of groups.
MOST_DISCOUNT = cython.declare(cython.double, 0.25)
# Sums over intervals are off by at most this share of the total weight: the values are at most 1 in
# size, and so 2 from their origin.
ROUNDING = cython.declare(cython.double, 16 * 2.0**-53)
# Sums over intervals of less than this share of it are not used.
LIGHT = cython.declare(cython.double, 1e-8)
# Into so many parts a cell is divided.
PARTS = cython.declare(cython.Py_ssize_t, 3)
# More than the relative error of a gain or a discount.
SAFETY = cython.declare(cython.double, 1.000001)


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def knot_room(n_groups: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Numbers that `lay_knots` needs for the knots, their ends and their spreads, each."""
    return KNOTS * n_groups + 2


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def lay_knots(
    values: cython.double[::1],
    origin: cython.double,
    mass: cython.double[::1],
    first: cython.double[::1],
    path: cython.longlong[::1],
    n_groups: cython.Py_ssize_t,
    price: cython.double,
    knots: cython.int[::1],
    ends: cython.int[::1],
    spreads: cython.double[::1],
) -> cython.void:
    """Write ascending positions from the first to the last one, some in each group of a partition.

    ``spreads`` bounds the distance of the centres on both sides of a boundary between a knot and
    the next one, if the price is no higher than this. ``ends`` is work space.
    """
    count: cython.Py_ssize_t = 0
    knots[0] = 0
    for group in range(n_groups):
        length = path[group + 1] - path[group]
        for part in range(1, KNOTS + 1):
            knot = path[group] + part * length // KNOTS
            if knot > knots[count]:
                count += 1
                knots[count] = knot
    _bound_spreads(values, origin, mass, first, price, knots, count, ends, spreads)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def lay_mesh(
    values: cython.double[::1],
    origin: cython.double,
    mass: cython.double[::1],
    first: cython.double[::1],
    path: cython.longlong[::1],
    n_groups: cython.Py_ssize_t,
    price: cython.double,
    grade: cython.double,
    most: cython.Py_ssize_t,
    knots: cython.int[::1],
    spreads: cython.double[::1],
    places: cython.int[::1],
    discount: cython.double[::1],
    cells: cython.int[::1],
) -> cython.Py_ssize_t:
    """Write the positions that stand for cells, with both ends, and their discounts.

    ``path`` has the boundaries of the partition, both ends included; ``mass`` and ``first`` are
    running moments about the origin; ``knots`` and ``spreads`` are those of `lay_knots`. The cell
    of position ``i`` is written to ``cells[2 * i]`` and after it. Returns the index of the last
    position, or 0 if there would be more than ``most``.
    """
    n: cython.Py_ssize_t = values.shape[0]
    count: cython.Py_ssize_t = 0
    knot: cython.Py_ssize_t = 0
    group: cython.Py_ssize_t
    low: cython.Py_ssize_t
    size: cython.Py_ssize_t
    saved: cython.double
    most_saved: cython.double = MOST_DISCOUNT * price / n_groups
    # The width over the distance of the near end and of the far one; up to which distances cells
    # are single positions; and a distance at which the grade limits nothing.
    far_grade: cython.double = grade / (1.0 + grade)
    near: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, 2.0 / grade)
    near_far: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, 2.0 / far_grade)
    away: cython.Py_ssize_t = n * (near_far + 1)
    places[0] = 0
    discount[0] = 0.0
    for group in range(n_groups):
        low = max(path[group], 1)
        # The ends of all values are no boundaries.
        left = path[group] if group > 0 else -away
        right = path[group + 1] if group < n_groups - 1 else n + away
        size = min(left + near, path[group + 1]) - low
        if size > 0:
            if count + size > most:
                return 0
            count = _write_singles(low, size, count, places, discount, cells)
            low += size
        while low < min(right - near_far, path[group + 1]):
            while knots[knot + 1] <= low:
                knot += 1
            size = min(
                cython.cast(cython.Py_ssize_t, grade * (low - left)),
                cython.cast(cython.Py_ssize_t, far_grade * (right - low)),
            )
            size = max(min(size, knots[knot + 1] - low), 1)
            saved = _discount(values, origin, mass, first, low, size, spreads[knot])
            while saved > most_saved:
                size //= 2
                saved = _discount(values, origin, mass, first, low, size, spreads[knot])
            count += 1
            if count > most:
                return 0
            _write_cell(low, size, saved, count, places, discount, cells)
            low += size
        size = path[group + 1] - low
        if count + size > most:
            return 0
        count = _write_singles(low, size, count, places, discount, cells)
    _write_cell(n, 1, 0.0, count + 1, places, discount, cells)
    return count + 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def refine_mesh(
    values: cython.double[::1],
    origin: cython.double,
    mass: cython.double[::1],
    first: cython.double[::1],
    most: cython.Py_ssize_t,
    knots: cython.int[::1],
    spreads: cython.double[::1],
    kept: cython.int[::1],
    n_kept: cython.Py_ssize_t,
    places: cython.int[::1],
    discount: cython.double[::1],
    cells: cython.int[::1],
) -> cython.Py_ssize_t:
    """Divide some of a mesh's cells, given by their ends, into three; results as of `lay_mesh`."""
    n: cython.Py_ssize_t = values.shape[0]
    count: cython.Py_ssize_t = 0
    knot: cython.Py_ssize_t = 0
    low: cython.Py_ssize_t
    high: cython.Py_ssize_t
    size: cython.Py_ssize_t
    part: cython.Py_ssize_t
    n_parts: cython.Py_ssize_t
    for cell in range(n_kept):
        low = kept[2 * cell]
        high = kept[2 * cell + 1]
        while knots[knot + 1] <= low:
            knot += 1
        n_parts = min(high - low, PARTS)
        for part in range(n_parts):
            size = (high - low) // (n_parts - part)
            count += 1
            if count > most:
                return 0
            saved = _discount(values, origin, mass, first, low, size, spreads[knot])
            _write_cell(low, size, saved, count, places, discount, cells)
            low += size
    _write_cell(n, 1, 0.0, count + 1, places, discount, cells)
    return count + 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _write_cell(
    low: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
    saved: cython.double,
    index: cython.Py_ssize_t,
    places: cython.int[::1],
    discount: cython.double[::1],
    cells: cython.int[::1],
) -> cython.void:
    """Write a cell, the position in its middle that stands for it, and its discount."""
    places[index] = low + size // 2
    discount[index] = saved
    cells[2 * index] = low
    cells[2 * index + 1] = low + size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _write_singles(
    low: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    places: cython.int[::1],
    discount: cython.double[::1],
    cells: cython.int[::1],
) -> cython.Py_ssize_t:
    """Write cells of single positions after so many others; return how many there are now."""
    k: cython.Py_ssize_t
    for k in range(size):
        places[count + 1 + k] = low + k
    for k in range(size):
        discount[count + 1 + k] = 0.0
    for k in range(size):
        cells[2 * (count + 1 + k)] = low + k
        cells[2 * (count + 1 + k) + 1] = low + k + 1
    return count + size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _discount(
    values: cython.double[::1],
    origin: cython.double,
    mass: cython.double[::1],
    first: cython.double[::1],
    low: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
    spread: cython.double,
) -> cython.double:
    """The discount of the middle position of a cell; none for a single one."""
    here: cython.Py_ssize_t = low + size // 2
    last: cython.Py_ssize_t = low + size - 1
    if size == 1:
        return 0.0
    left = first[here] - first[low]
    left -= (values[low - 1] - origin) * (mass[here] - mass[low])
    right = (values[last] - origin) * (mass[last] - mass[here])
    right -= first[last] - first[here]
    lost = ROUNDING * mass[values.shape[0]]
    return SAFETY * 2.0 * spread * (max(left, right) + lost)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _bound_spreads(
    values: cython.double[::1],
    origin: cython.double,
    mass: cython.double[::1],
    first: cython.double[::1],
    price: cython.double,
    knots: cython.int[::1],
    n_knots: cython.Py_ssize_t,
    ends: cython.int[::1],
    spreads: cython.double[::1],
) -> cython.void:
    """Bound the distance of the centres on both sides of a boundary, for each pair of knots."""
    knot: cython.Py_ssize_t
    end: cython.Py_ssize_t = 1
    middle: cython.Py_ssize_t = 1
    since: cython.Py_ssize_t = 0
    total: cython.double = mass[values.shape[0]]
    for knot in range(n_knots):
        end = max(end, knot + 1)
        while end < n_knots:
            middle = max(middle, knot + 1)
            halfway = 0.5 * (values[knots[knot]] + values[knots[end] - 1])
            while middle + 1 < end and values[knots[middle]] < halfway:
                middle += 1
            if middle < end:
                if _gains(mass, first, total, price, knots[knot], knots[middle], knots[end]):
                    break
            end += 1
        ends[knot] = end
    ends[n_knots] = n_knots
    for knot in range(n_knots):
        # A group that ends after this knot begins after the last one from which it could be split.
        while ends[since + 1] <= knot:
            since += 1
        least = values[knots[since]] - origin
        below = least
        if knots[since] < knots[knot]:
            below = _mean(mass, first, total, knots[since], knots[knot], -1.0, least)
        largest = values[knots[ends[knot + 1]] - 1] - origin
        above = largest
        if knots[knot + 1] < knots[ends[knot + 1]]:
            above = _mean(mass, first, total, knots[knot + 1], knots[ends[knot + 1]], 1.0, largest)
        floor = values[max(knots[knot] - 1, 0)] - origin
        ceiling = values[knots[knot + 1] - 1] - origin
        spreads[knot] = min(above - below, 2.0 * min(above - floor, ceiling - below))


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _gains(
    mass: cython.double[::1],
    first: cython.double[::1],
    total: cython.double,
    price: cython.double,
    start: cython.Py_ssize_t,
    middle: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
) -> cython.bint:
    """Whether splitting ``[start, end)`` at ``middle`` gains more than the price, beyond doubt.

    With the weights ``v`` and ``w`` of the parts and their sums ``a`` and ``b`` it gains
    ``(b v - a w)^2 / (v w (v + w))``.
    """
    v: cython.double = mass[middle] - mass[start]
    w: cython.double = mass[end] - mass[middle]
    apart: cython.double = (first[end] - first[middle]) * v - (first[middle] - first[start]) * w
    apart -= ROUNDING * total * (v + w)
    if min(v, w) <= LIGHT * total or apart <= 0.0:
        return False
    return apart * apart > SAFETY * price * (v * w * (v + w))


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _mean(
    mass: cython.double[::1],
    first: cython.double[::1],
    total: cython.double,
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    side: cython.double,
    otherwise: cython.double,
) -> cython.double:
    """A bound, from the side given, on the mean of an interval about the origin."""
    w: cython.double = mass[end] - mass[start]
    if w > LIGHT * total:
        return (first[end] - first[start]) / w + side * ROUNDING * total / w
    return otherwise
