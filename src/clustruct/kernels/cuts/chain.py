# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The cheapest chain of groups over sorted values, by bounding and refining.

A chain cuts ``n`` sorted values into ``L + 1`` groups at boundaries ``t_1 <= ... <= t_L``; a group
costs its sum of squares about its mean, or, for one group that may be named the zero group, about
zero. The textbook dynamic program visits ``L n`` states. Here every boundary has a short list
of **cells**, ranges ``[lo, hi)`` of positions that it may take. One round

1. solves the chain on one representative of every cell, each representative with a discount that
   covers the error of standing for its whole cell: that bounds the best chain from below;
2. takes the cost of the chain found, without discounts: that bounds it from above;
3. drops every cell through which even the discounted chain costs more than the best one known;
4. splits the cells that are left.

When all cells are single positions the discounts are zero and the chain is the optimum. A cell is
only dropped when no best chain can use it, so the result is exact, and the number of cells in use
stays near ``L^2`` whatever ``n`` is.

The discounts. Let ``t`` be a boundary of the best chain between groups of centres ``c < c'``,
``D = c' - c``. Values left of ``t`` are nearer to ``c``, those right of it to ``c'``, so the
midpoint of the centres lies in ``[x_(t-1), x_t]``. Moving ``t`` to another position ``r`` of its
cell, the centres held, costs ``2 w D |x - midpoint|`` for each value ``x`` that it passes, so at
most

    2 D max( sum_[lo, r) w (x - x_(lo-1)),  sum_[r, hi-1) w (x_(hi-1) - x) ),

quadratic in the width of the cell. ``D`` is bounded through the lists of the neighbours (a mean
grows with both ends of its interval) and by twice the distance of either centre to the midpoint.

The boundaries of the zero group do not lie at midpoints when its size is bounded. They are moved
outwards, so that the zero group grows, which costs at most the sum of squares of the values passed;
the other boundaries of such a chain move the same way, so that all stay in order.
"""

import cython
import numpy as np

if not cython.compiled:
    from clustruct.kernels.cuts.cells import (
        FIRST_CELLS,
        KNOTS,
        LEAST_CELLS,
        choose_cells,
        first_cells,
        place_slots,
        split_cells,
    )
    from clustruct.kernels.numbers.intervals import (
        ABOUT_ZERO,
        EXACT,
        FAST,
        INFINITY,
        interval_cost,
        layer_minima,
        moments_at,
    )

# This search is faster than those that visit every value while there are at least this many values
# for the square of the number of groups.
CHAIN_SHARE = 20
# Room for rounding: in a comparison of two costs, relative to the larger one; and in means and
# first moments of values that are at most 1 in size.
TOLERANCE = cython.declare(cython.double, 1e-12)
ROUNDING = cython.declare(cython.double, 4e-15)
# What the search in one layer makes of an error in the costs: one unit from the cost, two for each
# halving of the stride.
SEARCH_NOISE = cython.declare(cython.double, 64.0)
# What is returned in place of a cost.
NONE = -1.0
TOO_MANY = -2.0


def cheapest_chain(
    values: cython.double[::1],
    weights: cython.double[::1],
    origin: cython.double,
    table: cython.double[:, ::1],
    block: cython.Py_ssize_t,
    n_groups: cython.Py_ssize_t,
    zero_group: cython.Py_ssize_t,
    middle: cython.longlong,
    gap: cython.double,
    bound: cython.double,
    cost_error: cython.double,
    max_states: cython.Py_ssize_t,
):
    """Boundaries and cost of the cheapest chain, or None if none costs at most ``bound``.

    The sorted values come with their running moments (``intervals.running_moments``) and the error
    of a cost in plain double precision (``intervals.fast_cost_error``). ``n_groups``, at least 2,
    counts the zero group, which has index ``zero_group`` (-1 for none), holds the value ``middle``
    and has at least the weight ``gap``. ``bound`` is the cost of a chain already known, or
    infinity. Raises ``MemoryError`` rather than hold more than ``max_states`` states.
    """
    n_layers: cython.Py_ssize_t = n_groups - 1
    n_states: cython.Py_ssize_t = first_states(values.shape[0], n_groups)
    best = np.empty(n_layers, dtype=np.int64)
    cost: cython.double = bound
    # On short arrays, allocations take longer than the search: begin with little room.
    while True:
        layout, spare, moments, floats, integers = make_room(n_groups, n_states)
        cost = _find_chain(
            values, weights, origin, table, block, n_groups, zero_group, middle, gap, bound,
            cost_error, min(n_states, max_states), layout, spare, moments, floats, integers,
            np.empty(n_layers, dtype=np.int64), best,
        )  # fmt: skip
        if cost != TOO_MANY:
            return None if cost == NONE else (best, cost)
        if n_states >= max_states:
            raise MemoryError
        n_states *= 8


def first_states(n, n_groups):
    """Room for states that a search of ``n`` values hardly ever exceeds."""
    n_cells = min(n - 1, max(FIRST_CELLS * n_groups, LEAST_CELLS))
    return 2 * (n_cells + 2) * (n_groups + 4)


def make_room(n_groups, n_states):
    """Work space for `_find_chain`: integers for two layouts, moments, floats and integers."""
    n_cells = max(FIRST_CELLS * n_groups, LEAST_CELLS)
    layouts = np.empty((2, 3 * n_states + n_groups + 2 * n_cells + 8), dtype=np.int64)
    # Twice the knots that are wanted, and some towards the ends, are the most that there may be.
    floats = np.empty(max(4 * n_states, 2 * KNOTS * n_cells + 130))
    integers = np.empty(max(7 * n_states + 8, floats.shape[0]), dtype=np.int64)
    return *layouts, np.empty((3 * n_states + 2, 6)), floats, integers


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _find_chain(
    values: cython.double[::1],
    weights: cython.double[::1],
    origin: cython.double,
    table: cython.double[:, ::1],
    block: cython.Py_ssize_t,
    n_groups: cython.Py_ssize_t,
    zero_group: cython.Py_ssize_t,
    middle: cython.longlong,
    gap: cython.double,
    bound: cython.double,
    cost_error: cython.double,
    max_states: cython.Py_ssize_t,
    layout: cython.longlong[::1],
    spare: cython.longlong[::1],
    moments: cython.double[:, ::1],
    floats: cython.double[::1],
    integers: cython.longlong[::1],
    path: cython.longlong[::1],
    best: cython.longlong[::1],
) -> cython.double:
    """``cheapest_chain`` in given work space: writes ``best``; returns the cost, NONE or TOO_MANY.

    ``path`` is as long as ``best``, see ``make_room`` for the rest.
    """
    noise: cython.double = SEARCH_NOISE * n_groups * cost_error
    n_cells: cython.Py_ssize_t
    n_states: cython.Py_ssize_t
    found: cython.bint = False
    n_cells = min(values.shape[0] - 1, max(FIRST_CELLS * n_groups, LEAST_CELLS))
    n_cells = first_cells(
        values, n_groups, zero_group, middle, n_cells, floats, integers, spare, layout
    )
    n_states = layout[2 * n_cells + n_groups + 1]
    while True:
        if n_states > max_states:
            return TOO_MANY
        low: cython.longlong[::1] = layout[:n_cells]
        high: cython.longlong[::1] = layout[n_cells : 2 * n_cells]
        starts: cython.longlong[::1] = layout[2 * n_cells : 2 * n_cells + n_groups + 2]
        owner: cython.longlong[::1] = layout[2 * n_cells + n_groups + 2 :][:n_states]
        discount: cython.double[::1] = floats[:n_states]
        ahead: cython.double[::1] = floats[n_states : 2 * n_states]
        behind: cython.double[::1] = floats[2 * n_states : 3 * n_states]
        worst: cython.double[::1] = floats[3 * n_states :][:n_cells]
        slots: cython.longlong[::1] = integers[:n_states]
        previous: cython.longlong[::1] = integers[n_states : 2 * n_states]
        first_child: cython.longlong[::1] = integers[2 * n_states :][: n_cells + 1]
        first_slot: cython.longlong[::1] = integers[2 * n_states + n_cells + 1 :][: n_cells + 1]
        positions: cython.longlong[::1] = integers[2 * (n_states + n_cells + 1) :]
        place_slots(low, high, values.shape[0], first_slot, positions)
        positions = positions[: first_slot[n_cells] + 2]
        moments_at(values, weights, origin, table, block, positions, moments)
        exact = _discounts(
            values, origin, zero_group, low, high, owner, starts, first_slot, moments,
            positions, slots, discount,
        )  # fmt: skip
        # Plain double precision will do while its error is far below the costs compared.
        measure = EXACT if exact or noise > 1e-4 * bound else FAST
        _sweep(
            moments, positions, slots, discount, starts, zero_group, gap, measure, cost_error,
            True, ahead, previous,
        )  # fmt: skip
        cost = _trace(moments, positions, slots, previous, zero_group, path)
        if ahead[n_states - 1] == INFINITY:
            return NONE  # the zero group cannot have its size
        if cost <= bound:
            bound, found = cost, True
            best[:] = path
        if exact:
            break
        _sweep(
            moments, positions, slots, discount, starts, zero_group, gap, measure, cost_error,
            False, behind, previous,
        )  # fmt: skip
        limit = bound + TOLERANCE * bound + (noise if measure == FAST else 0.0)
        n_states = choose_cells(
            low, high, owner, starts, discount, ahead, behind, limit, worst, first_child
        )
        if n_states == 0:
            break
        n_cells = first_child[low.shape[0]]
        if n_states > max_states or n_cells > n_states:
            return TOO_MANY
        split_cells(low, high, owner, starts, first_child, spare)
        layout, spare = spare, layout
    return bound if found else NONE


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _sweep(
    moments: cython.double[:, ::1],
    positions: cython.longlong[::1],
    slots: cython.longlong[::1],
    discount: cython.double[::1],
    starts: cython.longlong[::1],
    zero_group: cython.Py_ssize_t,
    gap: cython.double,
    mean_measure: cython.int,
    cost_error: cython.double,
    forward: cython.bint,
    least: cython.double[::1],
    neighbour: cython.longlong[::1],
) -> cython.void:
    """Solve the discounted chain from the start to every state, or from every state to the end.

    Afterwards ``least[s]`` is the cost of the best chain between that end and ``s``, the discount
    of ``s`` included, and ``neighbour[s]`` the state next to ``s`` on it.
    """
    last: cython.Py_ssize_t = starts.shape[0] - 2
    state: cython.Py_ssize_t
    zero: cython.bint
    least[0 if forward else slots.shape[0] - 1] = 0.0
    for step in range(1, last + 1):
        layer = step if forward else last - step
        before = layer - 1 if forward else layer + 1
        group = layer - 1 if forward else layer
        zero = group == zero_group
        layer_minima(
            moments, positions, slots, least, starts[layer], starts[layer + 1], starts[before],
            starts[before + 1], forward, ABOUT_ZERO if zero else mean_measure, cost_error,
            gap if zero else 0.0, least, neighbour,
        )  # fmt: skip
        for state in range(starts[layer], starts[layer + 1]):
            least[state] -= discount[state]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _discounts(
    values: cython.double[::1],
    origin: cython.double,
    zero_group: cython.Py_ssize_t,
    low: cython.longlong[::1],
    high: cython.longlong[::1],
    owner: cython.longlong[::1],
    starts: cython.longlong[::1],
    first_slot: cython.longlong[::1],
    moments: cython.double[:, ::1],
    positions: cython.longlong[::1],
    slots: cython.longlong[::1],
    discount: cython.double[::1],
) -> cython.bint:
    """Representative (a row of ``moments``) and discount of every state; True if all are zero."""
    exact: cython.bint = True
    n_layers: cython.Py_ssize_t = starts.shape[0] - 3
    last: cython.Py_ssize_t = owner.shape[0] - 1
    end: cython.Py_ssize_t = first_slot[low.shape[0]]
    state: cython.Py_ssize_t
    first: cython.Py_ssize_t
    left: cython.Py_ssize_t
    right: cython.Py_ssize_t
    cell: cython.Py_ssize_t
    final: cython.Py_ssize_t
    slots[0] = end
    slots[last] = end + 1
    discount[0] = 0.0
    discount[last] = 0.0
    for layer in range(1, n_layers + 1):
        # Extreme positions of the neighbouring boundaries.
        left = end if layer == 1 else first_slot[owner[starts[layer - 1]]]
        right = end + 1 if layer == n_layers else first_slot[owner[starts[layer + 2] - 1] + 1] - 1
        least = values[positions[left]] - origin
        largest = values[positions[right] - 1] - origin
        for state in range(starts[layer], starts[layer + 1]):
            cell = owner[state]
            first = first_slot[cell]
            final = first_slot[cell + 1] - 1
            # The representative: the middle, or the end from which the zero group grows.
            if zero_group < 0:
                here = (first + final) // 2
            else:
                here = first if layer <= zero_group else final
            slots[state] = here
            discount[state] = 0.0
            if zero_group >= 0 and (layer == zero_group or layer == zero_group + 1):
                discount[state] = _gain(moments, first, final, 4)
            elif high[cell] - low[cell] > 1:
                # A mean grows with both ends of its interval.
                above = _mean(moments, positions, final, right, largest)
                below = _mean(moments, positions, left, first, least)
                floor = values[low[cell] - 1] - origin
                ceiling = values[high[cell] - 1] - origin
                spread = min(above - below, 2.0 * (above - floor), 2.0 * (ceiling - below))
                passed = max(
                    _first_moment(moments, first, here, floor),
                    -_first_moment(moments, here, final, ceiling),
                )
                # The values are at most 1 in size: room for the rounding of both factors.
                passed += ROUNDING * _gain(moments, first, final, 0)
                discount[state] = 2.0 * (spread + ROUNDING) * passed
            if discount[state] > 0.0:
                exact = False
    return exact


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _gain(
    moments: cython.double[:, ::1],
    i: cython.Py_ssize_t,
    j: cython.Py_ssize_t,
    column: cython.Py_ssize_t,
) -> cython.double:
    """One moment of the interval between two rows."""
    return (moments[j, column] - moments[i, column]) + (
        moments[j, column + 1] - moments[i, column + 1]
    )


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _first_moment(
    moments: cython.double[:, ::1], i: cython.Py_ssize_t, j: cython.Py_ssize_t, about: cython.double
) -> cython.double:
    """``sum w (x - origin - about)`` over the interval between two rows."""
    return _gain(moments, i, j, 2) - about * _gain(moments, i, j, 0)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _mean(
    moments: cython.double[:, ::1],
    positions: cython.longlong[::1],
    i: cython.Py_ssize_t,
    j: cython.Py_ssize_t,
    otherwise: cython.double,
) -> cython.double:
    """Mean, about the origin, of the interval between two rows; ``otherwise`` if it is empty."""
    if positions[i] < positions[j]:
        return _gain(moments, i, j, 2) / _gain(moments, i, j, 0)
    return otherwise


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _trace(
    moments: cython.double[:, ::1],
    positions: cython.longlong[::1],
    slots: cython.longlong[::1],
    previous: cython.longlong[::1],
    zero_group: cython.Py_ssize_t,
    path: cython.longlong[::1],
) -> cython.double:
    """Write the boundaries of the cheapest discounted chain; return its cost without discounts."""
    state: cython.Py_ssize_t = slots.shape[0] - 1
    before: cython.Py_ssize_t
    cost: cython.double = 0.0
    for group in range(path.shape[0], -1, -1):
        before = previous[state]
        if group == zero_group:
            cost += _gain(moments, slots[before], slots[state], 4)
        else:
            cost += interval_cost(moments, slots[before], slots[state])
        if group > 0:
            path[group - 1] = positions[slots[before]]
        state = before
    return cost
