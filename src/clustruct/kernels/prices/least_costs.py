# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The least priced cost of the values before every position, block by block.

With the price ``p`` of a group and its cost ``C``, the least priced cost is

    F(t) = min_(i < t) F(i) + p + C(i, t).

``C`` satisfies the Monge inequality, so the best predecessor ``i`` does not decrease with ``t``.
Positions are taken in blocks so short that no predecessor lies inside of its own block: ``F`` does
not decrease and costs are not negative, so that none does if the last position of the block is
reached from before it for less than ``F`` at its start plus the price. The last position is then
compared with all predecessors that come into question, the middle one only with those between the
ones of its neighbours, and so on by halves, until four neighbouring positions are left. These are
compared with their predecessors side by side, without branches.

Costs are off by at most ``noise``. A predecessor is left out for other positions only if it is
worse by more than two such errors, that is, beyond doubt. So ``F`` is what exact comparisons would
make of these costs: off by at most the noise for each group.
"""

import cython

if not cython.compiled:
    from clustruct.kernels.numbers.intervals import INFINITY

# Positions that are compared side by side, the largest block of them in units of these, and how
# many predecessors are looked at before asking whether later ones come into question.
LANES = cython.declare(cython.Py_ssize_t, 4)
MOST_UNITS = cython.declare(cython.Py_ssize_t, 32)
CHUNK = cython.declare(cython.Py_ssize_t, 16)
# Added to weights: changes none, and a position may be compared with itself, at an infinite cost.
VANISHING = cython.declare(cython.double, 2.0**-1000)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def least_costs(
    mass: cython.double[::1],
    first: cython.double[::1],
    second: cython.double[::1],
    n: cython.Py_ssize_t,
    price: cython.double,
    noise: cython.double,
    discount: cython.double[::1],
    best: cython.double[::1],
    previous: cython.int[::1],
    leads: cython.double[::1],
    costs: cython.double[::1],
) -> cython.void:
    """Write the least priced cost of every position up to ``n``, and its predecessor.

    ``mass``, ``first`` and ``second`` are running moments; they go on for three entries, which are
    written here. A ``discount`` is taken off the cost of its position; it may be empty. ``leads``
    and ``costs`` are work space. All arrays but ``discount`` have room for ``n + 8`` entries.
    """
    done: cython.Py_ssize_t = 0
    oldest: cython.Py_ssize_t = 0
    size: cython.Py_ssize_t = 1
    n_units: cython.Py_ssize_t
    stride: cython.Py_ssize_t
    unit: cython.Py_ssize_t
    right: cython.Py_ssize_t
    last: cython.Py_ssize_t
    count: cython.Py_ssize_t
    # For the last position of each unit: the first and the last predecessor that may be best.
    lows = cython.declare(cython.Py_ssize_t[33])
    highs = cython.declare(cython.Py_ssize_t[33])
    found = cython.declare(cython.Py_ssize_t[2])
    doubt: cython.double = 2.0 * noise
    saved: cython.double = 0.0
    for i in range(discount.shape[0]):
        saved = max(saved, discount[i])
    for i in range(n + 1, n + LANES):
        mass[i] = mass[n]
        first[i] = first[n]
        second[i] = second[n]
    found[0] = 0
    found[1] = 0
    best[0] = 0.0
    previous[0] = 0
    leads[0] = price - second[0]
    while done < n:
        for i in range(done + 1, done + LANES + 1):
            leads[i] = INFINITY
        while True:
            size = min(size, n - done)
            last = done + size
            count = 0
            least = INFINITY
            while oldest + count <= done:
                stop = min(oldest + count + CHUNK, done + 1)
                least = _compare(
                    mass, first, leads, oldest + count, stop, mass[last], first[last], doubt,
                    least, costs, count, found,
                )  # fmt: skip
                count = stop - oldest
                if best[stop - 1] + price - saved > least + second[last] + 2.0 * doubt:
                    break
            rise = least + second[last] - best[done]
            if size == 1 or rise + 2.0 * doubt <= price - saved:
                break
            size = size // 2
        n_units = (size + LANES - 1) // LANES
        lows[0] = oldest
        lows[n_units] = oldest + _first_below(costs, found[0], least + doubt)
        highs[n_units] = oldest + min(_last_below(costs, found[1], least + doubt), count - 1)
        stride = 1
        while 2 * stride < n_units:
            stride *= 2
        while stride > 0 and n_units > 1:
            unit = stride
            while unit < n_units:
                right = min(unit + stride, n_units)
                i = done + unit * LANES
                count = highs[right] + 1 - lows[unit - stride]
                least = _compare(
                    mass, first, leads, lows[unit - stride], highs[right] + 1, mass[i], first[i],
                    doubt, INFINITY, costs, 0, found,
                )  # fmt: skip
                lows[unit] = lows[unit - stride] + _first_below(costs, found[0], least + doubt)
                highs[unit] = lows[unit - stride] + min(
                    _last_below(costs, found[1], least + doubt), count - 1
                )
                unit += 2 * stride
            stride //= 2
        for unit in range(n_units):
            _reach_four(
                mass, first, second, leads, done + unit * LANES + 1, lows[unit],
                highs[unit + 1] + 1, best, previous, costs,
            )  # fmt: skip
        for i in range(done + 1, last + 1):
            if saved > 0.0:
                best[i] -= discount[i]
            leads[i] = best[i] + price - second[i]
        oldest = lows[n_units]
        done = last
        # Twice as many positions will cost about twice as much.
        if 2.0 * rise <= price:
            size = min(2 * size, MOST_UNITS * LANES)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _compare(
    mass: cython.double[::1],
    first: cython.double[::1],
    leads: cython.double[::1],
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    at_mass: cython.double,
    at_first: cython.double,
    doubt: cython.double,
    least: cython.double,
    costs: cython.double[::1],
    offset: cython.Py_ssize_t,
    found: cython.Py_ssize_t[2],
) -> cython.double:
    """Write the costs of one position from several predecessors, less its second moment.

    They are written from ``offset`` on, four at a time. Returns the least one, ``least`` included.
    ``found`` gets where the first four begin that may hold a cost within ``doubt`` of the least
    one, and the last four that do. Up to three more predecessors are looked at, whose leads are
    infinite or which may come into question as well; those with infinite leads need not come
    before it.
    """
    i: cython.Py_ssize_t = start
    lane: cython.Py_ssize_t
    four = cython.declare(cython.double[4])
    while i < stop:
        for lane in range(4):
            s = at_first - first[i + lane]
            w = (at_mass - mass[i + lane]) + VANISHING
            four[lane] = leads[i + lane] - s * s / w
        for lane in range(4):
            costs[offset + lane] = four[lane]
        here = four[0] if four[0] < four[1] else four[1]
        there = four[2] if four[2] < four[3] else four[3]
        here = here if here < there else there
        found[0] = offset if here < least - doubt else found[0]
        found[1] = offset if here <= least + doubt else found[1]
        least = here if here < least else least
        offset += 4
        i += 4
    return least


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _first_below(
    costs: cython.double[::1], offset: cython.Py_ssize_t, limit: cython.double
) -> cython.Py_ssize_t:
    """Index of the first of four costs that is not above a limit, of the last if all are."""
    above: cython.Py_ssize_t = costs[offset] > limit
    count: cython.Py_ssize_t = above
    above &= costs[offset + 1] > limit
    count += above
    above &= costs[offset + 2] > limit
    return offset + count + above


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _last_below(
    costs: cython.double[::1], offset: cython.Py_ssize_t, limit: cython.double
) -> cython.Py_ssize_t:
    """Index of the last of four costs that is not above a limit, of the first if all are."""
    above: cython.Py_ssize_t = costs[offset + 3] > limit
    count: cython.Py_ssize_t = above
    above &= costs[offset + 2] > limit
    count += above
    above &= costs[offset + 1] > limit
    return offset + 3 - count - above


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _reach_four(
    mass: cython.double[::1],
    first: cython.double[::1],
    second: cython.double[::1],
    leads: cython.double[::1],
    position: cython.Py_ssize_t,
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    best: cython.double[::1],
    previous: cython.int[::1],
    costs: cython.double[::1],
) -> cython.void:
    """Write the least cost and the predecessor of four positions, compared with the same ones."""
    lane: cython.Py_ssize_t
    i: cython.Py_ssize_t
    at_mass = cython.declare(cython.double[4])
    at_first = cython.declare(cython.double[4])
    least = cython.declare(cython.double[4])
    # Indices as doubles, so that they are chosen by the same instructions as costs.
    choice = cython.declare(cython.double[4])
    for lane in range(4):
        at_mass[lane] = mass[position + lane]
        at_first[lane] = first[position + lane]
        least[lane] = INFINITY
        choice[lane] = start
    for i in range(start, stop):
        from_mass = mass[i]
        from_first = first[i]
        lead = leads[i]
        index = cython.cast(cython.double, i)
        for lane in range(4):
            s = at_first[lane] - from_first
            costs[lane] = lead - s * s / (at_mass[lane] - from_mass)
        for lane in range(4):
            choice[lane] = index if costs[lane] < least[lane] else choice[lane]
            least[lane] = costs[lane] if costs[lane] < least[lane] else least[lane]
    for lane in range(4):
        best[position + lane] = least[lane] + second[position + lane]
        previous[position + lane] = cython.cast(cython.int, choice[lane])
