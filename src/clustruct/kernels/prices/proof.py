# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Whether the partition that a priced sweep found is the only best one.

Let ``F(t)`` be the least priced cost of the values before position ``t``. `least_costs` computes it
with an error: every cost is off by at most ``noise``, and so is ``F`` for every group before the
position. In a best partition each boundary ``t`` is reached from a position ``i`` with
``F(i) + C(i, t) + price = F(t)``. What the left side exceeds the right one by is an **excess**; the
sum of those from the end ``n`` of ``Q`` groups back to ``i`` is

    F(i) + sum of the costs and prices of the groups from i to n - F(n),

which is zero for a best partition, and ``2 Q`` times the noise at most as it is computed. So from
the end back, all positions are listed that are reached with no larger excess in all. If there is
one for each boundary, they are the best partition, and the only one. Where there are several the
costs of the few partitions left are compared in pairs of doubles.
"""

import cython

if not cython.compiled:
    from clustruct.kernels.numbers.intervals import INFINITY, interval_cost, moments_at

# Positions that a boundary may still take before the proof is given up.
MOST_NODES = 64
# Totals that differ by less than this, for each group and relative to the total, are ties: the
# costs that are added have an error of one rounding.
TIE = cython.declare(cython.double, 2.0**-51)
# What a proof may come to: several best partitions, too many that may be best, or the best one.
TIED = -1
OPEN = 0
PROVEN = 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def prove(
    values: cython.double[::1],
    weights: cython.double[::1],
    origin: cython.double,
    table: cython.double[:, ::1],
    block: cython.Py_ssize_t,
    mass: cython.double[::1],
    first: cython.double[::1],
    second: cython.double[::1],
    n: cython.Py_ssize_t,
    n_groups: cython.Py_ssize_t,
    price: cython.double,
    margin: cython.double,
    best: cython.double[::1],
    previous: cython.int[::1],
    places: cython.int[::1],
    discount: cython.double[::1],
    rows: cython.double[:, ::1],
    spare: cython.double[::1],
    nodes: cython.int[::1],
    path: cython.longlong[::1],
) -> cython.int:
    """Write the boundaries of the only best partition to ``path``, if that is what a sweep found.

    The moments are those at ``places``, of which there are ``n`` after the first; ``path`` is left
    as it is unless the partition is PROVEN. Layer ``q`` of ``nodes`` lists the places that
    boundary ``q`` may have: their number, then their indices. The same places of ``spare`` hold
    their least excess.
    """
    width: cython.Py_ssize_t = MOST_NODES + 1
    node: cython.Py_ssize_t
    layer: cython.Py_ssize_t
    alone: cython.bint = True
    discounted: cython.bint = discount.shape[0] > 0
    most_saved: cython.double = 0.0
    found: cython.longlong[::1] = path[n_groups + 1 : 2 * n_groups + 2]
    if discounted:
        for node in range(n):
            most_saved = max(most_saved, discount[node])
    found[n_groups] = n
    for layer in range(n_groups, 0, -1):
        found[layer - 1] = previous[found[layer]]
        nodes[width * layer] = 0
    nodes[0] = 1
    nodes[1] = 0
    nodes[width * n_groups] = 1
    nodes[width * n_groups + 1] = n
    spare[width * n_groups + 1] = 0.0
    for layer in range(n_groups, 1, -1):
        for node in range(width * layer + 1, width * layer + 1 + nodes[width * layer]):
            if not _list_predecessors(
                mass, first, second, best, found, layer, nodes[node], price, spare[node], margin,
                most_saved, nodes[width * (layer - 1) :], spare[width * (layer - 1) :],
            ):  # fmt: skip
                return OPEN
        if nodes[width * (layer - 1)] == 0:
            return OPEN
        if nodes[width * (layer - 1)] > 1:
            alone = False
        if discounted:
            for node in range(nodes[width * (layer - 1)]):
                if discount[nodes[width * (layer - 1) + 1 + node]] > 0.0:
                    return OPEN
    if not alone:
        return _compare_exactly(
            values, weights, origin, table, block, n_groups, places, rows, spare, nodes, path
        )
    for layer in range(n_groups + 1):
        path[layer] = places[found[layer]]
    return PROVEN


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _list_predecessors(
    mass: cython.double[::1],
    first: cython.double[::1],
    second: cython.double[::1],
    best: cython.double[::1],
    path: cython.longlong[::1],
    layer: cython.Py_ssize_t,
    position: cython.Py_ssize_t,
    price: cython.double,
    excess: cython.double,
    margin: cython.double,
    most_saved: cython.double,
    nodes: cython.int[::1],
    excesses: cython.double[::1],
) -> cython.bint:
    """List the positions from which ``position`` is reached, with an excess up to the margin.

    ``excess`` is that from the end to the position. The groups of ``path`` divide the positions
    into segments. ``F`` does not decrease, but for a discount of up to ``most_saved``, and
    ``C(i, t)`` does not increase with ``i``, so ``F`` at the start of a segment and ``C`` from its
    end bound all of it. Returns False if there are too many.
    """
    least: cython.double = best[position] - price
    limit: cython.double = least + (margin - excess)
    i: cython.Py_ssize_t
    start: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    segment: cython.Py_ssize_t = layer
    # The last segment may begin after the position, or end before it.
    while path[segment - 1] >= position:
        segment -= 1
    at_mass: cython.double = mass[position]
    at_first: cython.double = first[position]
    at_second: cython.double = second[position]
    stop = position
    while segment > 0:
        start = path[segment - 1]
        if stop < position:
            s = at_first - first[stop]
            w = at_mass - mass[stop]
            cost = at_second - second[stop] - (s * (s / w) if w > 0.0 else 0.0)
            if cost - most_saved > limit:
                return True
            if best[start] + cost - most_saved > limit:
                stop = start
                segment -= 1
                continue
        # A boundary of an inner layer is at least 1.
        i = start if start > 0 else 1
        while i < stop:
            s = at_first - first[i]
            w = at_mass - mass[i]
            if (best[i] + (at_second - second[i]) - limit) * w <= s * s:
                cost = (at_second - second[i]) - (s * (s / w) if w > 0.0 else 0.0)
                if not _insert(nodes, excesses, i, excess + (best[i] + cost - least)):
                    return False
            i += 1
        stop = start
        segment -= 1
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _insert(
    nodes: cython.int[::1],
    excesses: cython.double[::1],
    position: cython.Py_ssize_t,
    excess: cython.double,
) -> cython.bint:
    """Add a position to a list, or lower its excess if it is there; False if the list is full."""
    for node in range(1, nodes[0] + 1):
        if nodes[node] == position:
            excesses[node] = min(excesses[node], excess)
            return True
    if nodes[0] == MOST_NODES:
        return False
    nodes[0] += 1
    nodes[nodes[0]] = position
    excesses[nodes[0]] = excess
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _compare_exactly(
    values: cython.double[::1],
    weights: cython.double[::1],
    origin: cython.double,
    table: cython.double[:, ::1],
    block: cython.Py_ssize_t,
    n_groups: cython.Py_ssize_t,
    places: cython.int[::1],
    rows: cython.double[:, ::1],
    spare: cython.double[::1],
    nodes: cython.int[::1],
    path: cython.longlong[::1],
) -> cython.int:
    """Write the cheapest partition through the nodes by costs in pairs, if it is PROVEN.

    ``spare`` holds, for every node, the least total up to it and the least one through another
    predecessor; ``path`` has room for the positions of two layers after the boundaries.
    """
    width: cython.Py_ssize_t = MOST_NODES + 1
    node: cython.Py_ssize_t
    other: cython.Py_ssize_t
    layer: cython.Py_ssize_t
    choice: cython.Py_ssize_t
    n_here: cython.Py_ssize_t
    n_before: cython.Py_ssize_t = 1
    here: cython.longlong[::1] = path[n_groups + 1 : n_groups + 1 + MOST_NODES]
    before: cython.longlong[::1] = path[n_groups + 1 + MOST_NODES :]
    back: cython.int[::1] = nodes[width * (n_groups + 1) :]
    spare[0] = 0.0
    before[0] = 0
    rows[0, :] = 0.0
    for layer in range(1, n_groups + 1):
        n_here = nodes[width * layer]
        for node in range(n_here):
            here[node] = places[nodes[width * layer + 1 + node]]
        moments_at(values, weights, origin, table, block, here[:n_here], rows[MOST_NODES:])
        for node in range(n_here):
            least = INFINITY
            second = INFINITY
            choice = 0
            for other in range(n_before):
                if before[other] < here[node]:
                    total = spare[2 * (width * (layer - 1) + other)]
                    total += interval_cost(rows, other, MOST_NODES + node)
                    if total < least:
                        second = least
                        least = total
                        choice = other
                    elif total < second:
                        second = total
            spare[2 * (width * layer + node)] = least
            spare[2 * (width * layer + node) + 1] = second
            back[width * layer + node] = choice
        for node in range(n_here):
            before[node] = here[node]
            for column in range(6):
                rows[node, column] = rows[MOST_NODES + node, column]
        n_before = n_here
    node = 0
    tie: cython.double = TIE * n_groups * spare[2 * width * n_groups]
    for layer in range(n_groups, 0, -1):
        if spare[2 * (width * layer + node) + 1] <= spare[2 * (width * layer + node)] + tie:
            return TIED
        path[layer] = places[nodes[width * layer + 1 + node]]
        node = back[width * layer + node]
    path[0] = 0
    return PROVEN
