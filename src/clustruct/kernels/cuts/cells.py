# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Cells of positions for the boundaries of a chain: the first ones, and finer ones round by round.

A cell is a range ``[low, high)`` of positions, a state a cell that one boundary may take; see
``chain`` for what they are good for. A layout holds all of a round in one array, one after the
other: the first positions of all cells, the positions after their last ones, the starts (where the
states of each layer begin, and after all of them) and the owners (the cell of each state). State 0
stands for the position 0, the last state for ``n``.
"""

import cython

if not cython.compiled:
    from math import ceil, sqrt

# Cells in the first round: so many for each group, and at least. Their ends are chosen among knots,
# so many for each cell.
FIRST_CELLS = 3
LEAST_CELLS = 20
KNOTS = 16
# Cells are split until their discounts are about this share of the largest one. Measured: less
# takes more states, more takes more rounds.
SPLIT_ABOVE = cython.declare(cython.double, 0.1)
# When all positions left are fewer than this many times the states, go straight to the end.
FINISH = cython.declare(cython.longlong, 2)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def first_cells(
    values: cython.double[::1],
    n_groups: cython.Py_ssize_t,
    zero_group: cython.Py_ssize_t,
    middle: cython.longlong,
    most: cython.Py_ssize_t,
    need: cython.double[::1],
    knots: cython.longlong[::1],
    cuts: cython.longlong[::1],
    layout: cython.longlong[::1],
) -> cython.Py_ssize_t:
    """Cells over all positions, and for each boundary the list of those that it may take.

    The error of a cell goes like its weight times its width, so the first cells, ``most`` or fewer
    and one more at the middle, share the square root of the density of the values evenly. The
    arrays ``need``, ``knots`` and ``cuts`` are work space.

    Writes the layout and returns the number of cells.
    """
    n: cython.Py_ssize_t = values.shape[0]
    n_knots: cython.Py_ssize_t = _place_knots(n, KNOTS * most, knots)
    total: cython.double = 0.0
    so_far: cython.double = 0.0
    n_cuts: cython.Py_ssize_t = 1
    for knot in range(1, n_knots):
        need[knot] = sqrt(values[knots[knot]] - values[knots[knot - 1]])
        total += need[knot]
    cuts[0] = 1
    for knot in range(1, n_knots - 1):
        so_far += need[knot]
        if so_far * most >= total * n_cuts and n_cuts < most:
            n_cuts = _insert(cuts, n_cuts, knots[knot])
    n_cuts = _insert(cuts, n_cuts, n)
    if zero_group >= 0:
        # No cell reaches across the middle.
        n_cuts = _insert(cuts, n_cuts, middle + 1)
    n_cells: cython.Py_ssize_t = n_cuts - 1
    for cell in range(n_cells):
        layout[cell] = cuts[cell]
        layout[n_cells + cell] = cuts[cell + 1]
    starts: cython.longlong[::1] = layout[2 * n_cells : 2 * n_cells + n_groups + 2]
    owner: cython.longlong[::1] = layout[2 * n_cells + n_groups + 2 :]
    n_states: cython.Py_ssize_t = 1
    owner[0] = -1
    starts[0] = 0
    for layer in range(1, n_groups):
        starts[layer] = n_states
        for cell in range(n_cells):
            if (
                zero_group < 0
                or (layer <= zero_group and cuts[cell] <= middle)
                or (layer > zero_group and cuts[cell] > middle)
            ):
                owner[n_states] = cell
                n_states += 1
    owner[n_states] = -1
    starts[n_groups] = n_states
    starts[n_groups + 1] = n_states + 1
    return n_cells


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _place_knots(
    n: cython.Py_ssize_t, n_even: cython.Py_ssize_t, knots: cython.longlong[::1]
) -> cython.Py_ssize_t:
    """Write where the values are looked at to choose the first cells; return how many places.

    Evenly, and ever more closely towards both ends, where few values may be far apart.
    """
    n_knots: cython.Py_ssize_t = 0
    step: cython.Py_ssize_t = max(1, (n - 1) // n_even)
    place: cython.Py_ssize_t = 1
    knots[n_knots] = 0
    while place < step:
        n_knots += 1
        knots[n_knots] = place
        place *= 2
    place = step
    while place < n - step:
        n_knots += 1
        knots[n_knots] = place
        place += step
    # What is left is between one and two steps long.
    while place < n - 1:
        n_knots += 1
        knots[n_knots] = place
        place += max(1, (n - 1 - place) // 2)
    n_knots += 1
    knots[n_knots] = n - 1
    return n_knots + 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _insert(
    cuts: cython.longlong[::1], n_cuts: cython.Py_ssize_t, cut: cython.longlong
) -> cython.Py_ssize_t:
    """Insert a number into a sorted list without repetition; return the new length."""
    place: cython.Py_ssize_t = n_cuts
    while place > 0 and cuts[place - 1] > cut:
        place -= 1
    if place > 0 and cuts[place - 1] == cut:
        return n_cuts
    for i in range(n_cuts, place, -1):
        cuts[i] = cuts[i - 1]
    cuts[place] = cut
    return n_cuts + 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def place_slots(
    low: cython.longlong[::1],
    high: cython.longlong[::1],
    n: cython.Py_ssize_t,
    first_slot: cython.longlong[::1],
    positions: cython.longlong[::1],
) -> cython.void:
    """Write the first, middle and last position of every cell, each once, then both ends of all.

    Those of a cell begin at ``first_slot`` and end before that of the next cell.
    """
    slot: cython.Py_ssize_t = 0
    n_cells: cython.Py_ssize_t = low.shape[0]
    for cell in range(n_cells):
        first_slot[cell] = slot
        positions[slot] = low[cell]
        if high[cell] - low[cell] > 2:
            slot += 1
            positions[slot] = (low[cell] + high[cell] - 1) // 2
        if high[cell] - low[cell] > 1:
            slot += 1
            positions[slot] = high[cell] - 1
        slot += 1
    first_slot[n_cells] = slot
    positions[slot] = 0
    positions[slot + 1] = n


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def choose_cells(
    low: cython.longlong[::1],
    high: cython.longlong[::1],
    owner: cython.longlong[::1],
    starts: cython.longlong[::1],
    discount: cython.double[::1],
    ahead: cython.double[::1],
    behind: cython.double[::1],
    limit: cython.double,
    worst: cython.double[::1],
    first_child: cython.longlong[::1],
) -> cython.Py_ssize_t:
    """Drop the states whose best chain costs more than ``limit``; say how to split the others.

    A dropped state loses its owner; ``first_child`` numbers the cells that each cell becomes.
    Returns the number of states of the next round, 0 if a layer lost all of them.
    """
    n_cells: cython.Py_ssize_t = low.shape[0]
    last: cython.Py_ssize_t = owner.shape[0] - 1
    state: cython.Py_ssize_t
    cell: cython.Py_ssize_t
    total: cython.Py_ssize_t = 2
    parts: cython.longlong
    left: cython.longlong = 0
    widest: cython.double = 0.0
    worst[:] = -1.0
    for state in range(1, last):
        cell = owner[state]
        if ahead[state] + behind[state] + discount[state] > limit:
            owner[state] = -1
            continue
        worst[cell] = max(worst[cell], discount[state])
        widest = max(widest, discount[state])
        left += high[cell] - low[cell]
    # A discount goes like the square of the width. Those that are small already hardly loosen the
    # bound, and their cells stay whole.
    first_child[0] = 0
    for cell in range(n_cells):
        parts = high[cell] - low[cell]
        if worst[cell] < 0.0:
            parts = 0
        elif left > FINISH * last:
            wanted = ceil(sqrt(worst[cell] / widest / SPLIT_ABOVE)) if worst[cell] > 0.0 else 1.0
            parts = min(parts, cython.cast(cython.longlong, wanted))
        first_child[cell + 1] = first_child[cell] + parts
    for layer in range(1, starts.shape[0] - 2):
        before = total
        for state in range(starts[layer], starts[layer + 1]):
            if owner[state] >= 0:
                total += first_child[owner[state] + 1] - first_child[owner[state]]
        if total == before:
            return 0
    return total


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def split_cells(
    low: cython.longlong[::1],
    high: cython.longlong[::1],
    owner: cython.longlong[::1],
    starts: cython.longlong[::1],
    first_child: cython.longlong[::1],
    layout: cython.longlong[::1],
) -> cython.void:
    """Write the layout of the next round."""
    n_starts: cython.Py_ssize_t = starts.shape[0]
    n_cells: cython.Py_ssize_t = first_child[low.shape[0]]
    child: cython.Py_ssize_t
    state: cython.Py_ssize_t
    n_states: cython.Py_ssize_t = 1
    for cell in range(low.shape[0]):
        parts = first_child[cell + 1] - first_child[cell]
        size = high[cell] - low[cell]
        for child in range(parts):
            layout[first_child[cell] + child] = low[cell] + size * child // parts
            layout[n_cells + first_child[cell] + child] = low[cell] + size * (child + 1) // parts
    new_starts: cython.longlong[::1] = layout[2 * n_cells : 2 * n_cells + n_starts]
    new_owner: cython.longlong[::1] = layout[2 * n_cells + n_starts :]
    new_starts[0] = 0
    new_owner[0] = -1
    for layer in range(1, n_starts - 2):
        new_starts[layer] = n_states
        for state in range(starts[layer], starts[layer + 1]):
            if owner[state] >= 0:
                for child in range(first_child[owner[state]], first_child[owner[state] + 1]):
                    new_owner[n_states] = child
                    n_states += 1
    new_owner[n_states] = -1
    new_starts[n_starts - 2] = n_states
    new_starts[n_starts - 1] = n_states + 1
