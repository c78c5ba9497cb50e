# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The best groups on both sides of a zero group, layer by layer.

The dynamic program of the paper (eq:dyn_prog) with one layer for each number ``q`` of groups:
the least cost of cutting the values before a position into ``q`` groups, on the left of the
zero group, or into ``q`` groups and the zero group, on the right of it. Two layers are kept, and
with every position on the right the zero group that its best chain has, so the memory does not
depend on the number of layers. Each position may be limited to a window of layers.
"""

import cython
import numpy as np

if not cython.compiled:
    from clustruct.kernels.numbers.intervals import ABOUT_ZERO, EXACT, INFINITY, layer_minima


def best_zero_group(
    table: cython.double[:, ::1],
    positions: cython.longlong[::1],
    low: cython.int[::1],
    high: cython.int[::1],
    n_left: cython.Py_ssize_t,
    gap: cython.double,
    n_groups: cython.Py_ssize_t,
    noise: cython.double,
):
    """Where the zero group of the best chain with ``n_groups`` other groups begins and ends.

    The moments in ``table`` are those at ``positions``, ascending, the first and the last one among
    them; ``low`` and ``high`` are the least and the largest number of groups before each.
    ``n_left`` positions lie to the left of the zero group, whose weight is at least ``gap``;
    ``noise`` is the error of a cost in plain double precision. Returns the cost, infinite if the
    windows leave no chain, both ends of the zero group as positions, and the number of groups to
    the left of it.
    """
    m: cython.Py_ssize_t = positions.shape[0]
    # Both layers share the arrays: one has the first half, the next the other, and so on in turn.
    slots: cython.longlong[::1] = np.empty(2 * m, dtype=np.int64)
    column: cython.longlong[::1] = np.empty(2 * m, dtype=np.int64)
    least: cython.double[::1] = np.empty(2 * m)
    joined: cython.double[::1] = np.empty(2 * m)
    zero: cython.int[:, ::1] = np.empty((2 * m, 3), dtype=np.int32)
    there: cython.Py_ssize_t = m
    middle: cython.Py_ssize_t = m
    stop: cython.Py_ssize_t = m
    old_middle: cython.Py_ssize_t = m
    old_stop: cython.Py_ssize_t = m
    with cython.nogil:
        for q in range(n_groups + 1):
            here = m - there
            middle = _fill_layer(low, high, q, 0, n_left, slots, here)
            stop = _fill_layer(low, high, q, n_left, m, slots, middle)
            layer_minima(
                table, positions, slots, least, here, middle, there, old_middle,
                True, EXACT, noise, 0.0, least, column,
            )  # fmt: skip
            layer_minima(
                table, positions, slots, least, middle, stop, old_middle, old_stop,
                True, EXACT, noise, 0.0, least, column,
            )  # fmt: skip
            if q == 0 and middle > here:
                least[here] = 0.0  # nothing lies before the first position
            for state in range(middle, stop):
                if least[state] < INFINITY:
                    zero[state, 0] = zero[column[state], 0]
                    zero[state, 1] = zero[column[state], 1]
                    zero[state, 2] = zero[column[state], 2]
            layer_minima(
                table, positions, slots, least, middle, stop, here, middle,
                True, ABOUT_ZERO, noise, gap, joined, column,
            )  # fmt: skip
            for state in range(middle, stop):
                if joined[state] < least[state]:
                    least[state] = joined[state]
                    zero[state, 0] = positions[slots[column[state]]]
                    zero[state, 1] = positions[slots[state]]
                    zero[state, 2] = q
            there, old_middle, old_stop = here, middle, stop
    # The last position is the last state of the last layer, unless its window excludes it.
    if stop == middle or slots[stop - 1] < m - 1 or least[stop - 1] == INFINITY:
        return np.inf, 0, 0, 0
    return least[stop - 1], zero[stop - 1, 0], zero[stop - 1, 1], zero[stop - 1, 2]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _fill_layer(
    low: cython.int[::1],
    high: cython.int[::1],
    q: cython.Py_ssize_t,
    first: cython.Py_ssize_t,
    last: cython.Py_ssize_t,
    slots: cython.longlong[::1],
    state: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Write which of the positions ``[first, last)`` are in layer ``q``; return the next state."""
    for place in range(first, last):
        if low[place] <= q <= high[place]:
            slots[state] = place
            state += 1
    return state
