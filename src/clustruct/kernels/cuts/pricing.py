# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The best partition of one short vector through a price for every group, with a proof.

The same search as in ``penalised``, for a vector that fits into a processor's cache and for callers
that hold no lock: all arrays are given, sums are plain doubles, and the result is either proven to
be the only best partition (``proof``) or is "undecided", whereupon callers use the slower searches,
which resolve everything.

Few groups of many values are proven on a ``mesh``, whose costs are bounds from below, so that not
every position is visited.
"""

import cython

if not cython.compiled:
    from math import cbrt, log, sqrt

    from clustruct.kernels.cuts.least_costs import least_costs
    from clustruct.kernels.cuts.mesh import knot_room, lay_mesh
    from clustruct.kernels.cuts.polish import partition_cost, polish
    from clustruct.kernels.cuts.proof import MOST_NODES, OPEN, PROVEN, TIED, prove
    from clustruct.kernels.numbers.intervals import (
        INFINITY,
        error_of_costs,
        place_of_origin,
    )

# Sweeps before the search gives up, and how many of them interpolate before the secants.
N_SWEEPS = cython.declare(cython.int, 30)
N_GUESSES = cython.declare(cython.int, 12)
# As in ``penalised``: how close numbers of groups allow secants, and how far to go for a bracket.
CLOSE = cython.declare(cython.Py_ssize_t, 8)
OVERSHOOT = cython.declare(cython.double, 3.5)
SAMPLE_OVERSHOOT = cython.declare(cython.double, 1.5)
NEAR = cython.declare(cython.Py_ssize_t, 2)
# The price is first found on a part of the positions: one in so many or so many for each group, if
# there are so many times more of them; so many for each group where meshes follow.
SAMPLE_STRIDE = cython.declare(cython.Py_ssize_t, 8)
SAMPLE_SHARE = cython.declare(cython.Py_ssize_t, 12)
MESH_SHARE = cython.declare(cython.Py_ssize_t, 20)
SAMPLED = cython.declare(cython.Py_ssize_t, 3)
# A mesh has a grade of this over the number of groups, at most WIDEST; one that has to prove
# nothing is so many times COARSER. Meshes are worth their while for so many positions, if they have
# less than this share of them, and given up after so many attempts, with too large a share, or when
# all of them together have twice as many positions as there are.
GRADE = cython.declare(cython.double, 1.2)
WIDEST = cython.declare(cython.double, 0.5)
COARSER = cython.declare(cython.double, 4.0)
LEAST_MESHED = cython.declare(cython.Py_ssize_t, 2048)
MESHED = cython.declare(cython.double, 0.5)
MOST_MESHED = cython.declare(cython.double, 0.8)
N_MESHES = cython.declare(cython.int, 12)
UNIT = cython.declare(cython.double, 2.0**-53)
# Where costs are less certain than this share of the price, nothing is proven.
TOO_NOISY = cython.declare(cython.double, 0.0625)


def float_room(n, n_groups):
    """Doubles that `priced_partition` needs as work space."""
    return 7 * (n + 16) + 2 * (MOST_NODES + 1) * (n_groups + 1) + knot_room(n_groups)


def integer_room(n, n_groups):
    """Integers of 32 bits that `priced_partition` needs as work space."""
    return 2 * (n + 16) + 2 * (MOST_NODES + 1) * (n_groups + 1) + 2 * knot_room(n_groups)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def priced_partition(
    values: cython.double[::1],
    weights: cython.double[::1],
    origin: cython.double,
    table: cython.double[:, ::1],
    block: cython.Py_ssize_t,
    mass: cython.double[::1],
    first: cython.double[::1],
    second: cython.double[::1],
    n_groups: cython.Py_ssize_t,
    hint: cython.double,
    floats: cython.double[::1],
    integers: cython.int[::1],
    rows: cython.double[:, ::1],
    path: cython.longlong[::1],
) -> cython.bint:
    """Write the boundaries of the best partition, both ends included; False if it is not proven.

    The sorted values come with their running moments, in pairs at every block (see
    ``intervals.running_moments``) and in doubles at every position: ``mass``, ``first`` and
    ``second``. A ``hint`` above zero is a price to begin with. ``floats`` and ``integers`` are work
    space. So are ``rows``, twice ``MOST_NODES`` in number, and what follows the boundaries in
    ``path``, the same number again. Leaves the price in ``floats[2]``.
    """
    n: cython.Py_ssize_t = values.shape[0]
    meshed: cython.bint = n >= LEAST_MESHED and _mesh_size(n, n_groups) < MESHED * n
    n_sampled: cython.Py_ssize_t = MESH_SHARE * n_groups
    outcome: cython.double[::1] = floats[:8]
    best: cython.double[::1] = floats[8 : n + 16]
    leads: cython.double[::1] = floats[n + 16 : 2 * n + 32]
    costs: cython.double[::1] = floats[2 * n + 32 : 3 * n + 48]
    spare: cython.double[::1] = floats[3 * n + 48 :]
    previous: cython.int[::1] = integers[: n + 16]
    places: cython.int[::1] = integers[n + 16 : 2 * n + 32]
    nodes: cython.int[::1] = integers[2 * n + 32 :]
    price: cython.double = hint
    overshoot: cython.double = SAMPLE_OVERSHOOT
    noise: cython.double = plain_error(values, weights, origin, mass, first, second)
    found: cython.bint = False
    verdict: cython.int = OPEN
    if not meshed:
        n_sampled = max(SAMPLE_SHARE * n_groups, n // SAMPLE_STRIDE)
    if meshed or (price <= 0.0 and n >= SAMPLED * n_sampled):
        n_sampled = _sample(values, n_sampled, places)
        _gather(mass, first, second, places, n_sampled, spare)
        if price <= 0.0:
            price = _dense_price(values, mass, places, n_sampled, n_groups)
            overshoot = OVERSHOOT
        found = _search_price(
            spare, spare[n_sampled + 8 :], spare[2 * (n_sampled + 8) :], n_sampled,
            n_groups, price, overshoot, 0.0, best, previous, leads, costs, outcome,
        )  # fmt: skip
        price = outcome[0]
        overshoot = outcome[1]
    elif price <= 0.0:
        n_sampled = min(n, 16 * n_groups)
        for i in range(n_sampled + 1):
            places[i] = i * n // n_sampled
        price = _dense_price(values, mass, places, n_sampled, n_groups)
        overshoot = OVERSHOOT
    if meshed and found:
        _trace(previous, places, n_sampled, n_groups, path)
        verdict = _prove_on_meshes(
            values, weights, origin, table, block, mass, first, second, n_groups, price, noise,
            best, spare, previous, leads, costs, places, nodes, rows, path, outcome,
        )  # fmt: skip
        price = outcome[2]
    if verdict == OPEN:
        if _search_price(
            mass, first, second, n, n_groups, price, overshoot, noise, best, previous, leads,
            costs, outcome,
        ):  # fmt: skip
            for i in range(n + 1):
                places[i] = i
            verdict = prove(
                values, weights, origin, table, block, mass, first, second, n, n_groups,
                outcome[2], _margin(n_groups, outcome[2], noise, best[n]), best, previous, places,
                spare[:0], rows, spare, nodes, path,
            )  # fmt: skip
    return verdict == PROVEN


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _margin(
    n_groups: cython.Py_ssize_t, price: cython.double, noise: cython.double, least: cython.double
) -> cython.double:
    """Errors of both totals that a proof compares, and of what they are compared with."""
    if noise > TOO_NOISY * price:
        return INFINITY
    return 2.0 * (n_groups + 2) * (noise + 4.0 * UNIT * least)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _mesh_size(n: cython.Py_ssize_t, n_groups: cython.Py_ssize_t) -> cython.double:
    """About how many cells a mesh has."""
    grade: cython.double = min(GRADE / n_groups, WIDEST)
    return 2.0 * n_groups / grade * (1.0 + log(max(0.5 * n / n_groups * grade, 1.0)))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _gather(
    mass: cython.double[::1],
    first: cython.double[::1],
    second: cython.double[::1],
    places: cython.int[::1],
    n_places: cython.Py_ssize_t,
    moments: cython.double[::1],
) -> cython.void:
    """Moments at some positions, one after the other, with room for more after each."""
    stride: cython.Py_ssize_t = n_places + 8
    for i in range(n_places + 1):
        moments[i] = mass[places[i]]
        moments[stride + i] = first[places[i]]
        moments[2 * stride + i] = second[places[i]]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _trace(
    previous: cython.int[::1],
    places: cython.int[::1],
    last: cython.Py_ssize_t,
    n_groups: cython.Py_ssize_t,
    path: cython.longlong[::1],
) -> cython.void:
    """Write the boundaries of the partition that a sweep over some places has found."""
    for group in range(n_groups, -1, -1):
        path[group] = places[last]
        last = previous[last]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _prove_on_meshes(
    values: cython.double[::1],
    weights: cython.double[::1],
    origin: cython.double,
    table: cython.double[:, ::1],
    block: cython.Py_ssize_t,
    mass: cython.double[::1],
    first: cython.double[::1],
    second: cython.double[::1],
    n_groups: cython.Py_ssize_t,
    price: cython.double,
    noise: cython.double,
    best: cython.double[::1],
    spare: cython.double[::1],
    previous: cython.int[::1],
    leads: cython.double[::1],
    costs: cython.double[::1],
    places: cython.int[::1],
    nodes: cython.int[::1],
    rows: cython.double[:, ::1],
    path: cython.longlong[::1],
    outcome: cython.double[::1],
) -> cython.int:
    """Improve a good partition on meshes about it until one proves that it is the only best one.

    Partitions with fewer and with more groups, of costs known since the search for a price, bound
    the price at which the one at hand may be best. Leaves the last price in ``outcome[2]``.
    """
    n: cython.Py_ssize_t = values.shape[0]
    most: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, MOST_MESHED * n)
    room: cython.Py_ssize_t = knot_room(n_groups)
    grade: cython.double = min(GRADE / n_groups, WIDEST)
    last: cython.Py_ssize_t
    count: cython.Py_ssize_t
    verdict: cython.int
    proving: cython.bint = False
    # Without discounts, these hold for every mesh.
    few: cython.double = outcome[3]
    few_cost: cython.double = outcome[4]
    many: cython.double = outcome[5]
    many_cost: cython.double = outcome[6]
    discount: cython.double[::1] = spare[: most + 8]
    spreads: cython.double[::1] = spare[4 * (most + 16) : 4 * (most + 16) + room]
    rest: cython.double[::1] = spare[4 * (most + 16) + room :]
    moments: cython.double[::1] = spare[most + 8 :]
    found: cython.longlong[::1] = path[n_groups + 1 : 2 * n_groups + 2]
    cost: cython.double = polish(values, origin, mass, first, second, path, found, n_groups, spare)
    least: cython.double = INFINITY
    visited: cython.Py_ssize_t = 0
    for _ in range(N_MESHES):
        outcome[2] = price
        last = lay_mesh(
            values, origin, mass, first, path, n_groups, price,
            grade if proving else min(COARSER * grade, WIDEST), most, nodes, nodes[room:],
            spreads, places, discount,
        )  # fmt: skip
        visited += last
        if last == 0 or visited > 2 * n:
            return OPEN
        _gather(mass, first, second, places, last, moments)
        if not proving:
            # The best one on this mesh, which need not be the best of all, is near enough.
            if not _search_price(
                moments, moments[last + 8 :], moments[2 * (last + 8) :], last, n_groups, price,
                SAMPLE_OVERSHOOT, 0.0, best, previous, leads, costs, outcome,
            ):  # fmt: skip
                return OPEN
            _trace(previous, places, last, n_groups, path)
            cost = polish(values, origin, mass, first, second, path, found, n_groups, spare)
            price = outcome[0]
            if outcome[3] > few:
                few = outcome[3]
                few_cost = outcome[4]
            if outcome[5] < many:
                many = outcome[5]
                many_cost = outcome[6]
            if cost >= least:
                # It was known: the discounts are what is in the way.
                grade *= 0.5
            least = cost
            outcome[3] = few
            outcome[4] = few_cost
            outcome[5] = many
            outcome[6] = many_cost
            proving = True
            continue
        least_costs(
            moments, moments[last + 8 :], moments[2 * (last + 8) :], last, price, noise,
            discount[: last + 1], best, previous, leads, costs,
        )  # fmt: skip
        count = _count_groups(previous, last)
        if count == n_groups:
            margin = _margin(n_groups, price, noise, best[last])
            verdict = prove(
                values, weights, origin, table, block, moments, moments[last + 8 :],
                moments[2 * (last + 8) :], last, n_groups, price, margin, best, previous, places,
                discount, rows, rest, nodes, path,
            )  # fmt: skip
            if verdict != OPEN:
                return verdict
            _trace(previous, places, last, n_groups, found)
            new_cost = partition_cost(mass, first, second, found, n_groups)
            if new_cost < cost:
                cost = new_cost
                path[: n_groups + 1] = found
            elif best[last] + margin >= cost + price * n_groups:
                # Rounding is what leaves it open, as it would with all positions.
                return TIED
            else:
                grade *= 0.5
        elif count < n_groups:
            # Fewer groups are better at this price, perhaps because of the discounts.
            outcome[3] = count
            outcome[4] = best[last] - price * count
        else:
            outcome[5] = count
            outcome[6] = best[last] - price * count
        high = (outcome[4] - cost) / (n_groups - outcome[3])
        low = (cost - outcome[6]) / (outcome[5] - n_groups)
        proving = low < high
        if proving and not low < price < high:
            price = 0.5 * (low + high)
            if not 0.0 < price < INFINITY:
                return OPEN
    return OPEN


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def plain_error(
    values: cython.double[::1],
    weights: cython.double[::1],
    origin: cython.double,
    mass: cython.double[::1],
    first: cython.double[::1],
    second: cython.double[::1],
) -> cython.double:
    """Bound on the error of a cost in plain double precision, see ``intervals.fast_cost_error``."""
    n: cython.Py_ssize_t = values.shape[0]
    largest: cython.double = max(abs(first[place_of_origin(values, origin)]), abs(first[n]))
    weight: cython.double = mass[n] if weights.shape[0] > 0 else 0.0
    return error_of_costs(values, origin, weight, largest, second[n])


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _sample(
    values: cython.double[::1], size: cython.Py_ssize_t, places: cython.int[::1]
) -> cython.Py_ssize_t:
    """Write about ``size`` ascending positions, both ends included; return the last one's index.

    Half of them go by rank, half by the square root of the density, which puts more of them into
    the tails.
    """
    n: cython.Py_ssize_t = values.shape[0]
    n_knots: cython.Py_ssize_t = 2 * size
    total: cython.double = 0.0
    so_far: cython.double = 0.0
    count: cython.Py_ssize_t = 0
    knot: cython.Py_ssize_t
    level: cython.Py_ssize_t
    before: cython.double = values[0]
    for knot in range(1, n_knots + 1):
        value = values[knot * (n - 1) // n_knots]
        total += sqrt(value - before)
        before = value
    scale = 0.5 * size / total if total > 0.0 else 0.0
    before = values[0]
    places[0] = 0
    for knot in range(1, n_knots):
        place = knot * (n - 1) // n_knots
        value = values[place]
        so_far += 0.25 + scale * sqrt(value - before)
        before = value
        level = cython.cast(cython.Py_ssize_t, so_far)
        if level > count and place > places[count]:
            count += 1
            places[count] = place
            so_far -= level - count
    places[count + 1] = n
    return count + 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _dense_price(
    values: cython.double[::1],
    mass: cython.double[::1],
    places: cython.int[::1],
    n_places: cython.Py_ssize_t,
    n_groups: cython.Py_ssize_t,
) -> cython.double:
    """The price for dense values (Panter and Dite), see ``penalised._dense_price``."""
    total: cython.double = 0.0
    ratio: cython.double = 1.0 / n_groups
    for i in range(n_places):
        width = values[min(places[i + 1], values.shape[0] - 1)] - values[places[i]]
        total += cbrt((mass[places[i + 1]] - mass[places[i]]) * width * width)
    total *= ratio
    return total * total * total / 6.0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _search_price(
    mass: cython.double[::1],
    first: cython.double[::1],
    second: cython.double[::1],
    n: cython.Py_ssize_t,
    n_groups: cython.Py_ssize_t,
    price: cython.double,
    overshoot: cython.double,
    noise: cython.double,
    best: cython.double[::1],
    previous: cython.int[::1],
    leads: cython.double[::1],
    costs: cython.double[::1],
    outcome: cython.double[::1],
) -> cython.bint:
    """Search for a price at which ``n_groups`` groups are best, see ``penalised.search_price``.

    Returns whether one was found. Writes to ``outcome``: the middle of the prices for this number
    of groups as far as they are known, how far it is to their ends (as an overshoot), the last
    price, and the numbers and costs of the next partitions known with fewer and with more groups.
    """
    few: cython.Py_ssize_t = 1
    many: cython.Py_ssize_t = n
    count: cython.Py_ssize_t
    few_cost: cython.double = second[n] - second[0]
    span: cython.double = first[n] - first[0]
    few_cost -= span * (span / (mass[n] - mass[0]))
    many_cost: cython.double = 0.0
    few_price: cython.double = -1.0
    many_price: cython.double = -1.0
    secant: cython.bint = False
    stalled: cython.bint
    outcome[0] = price
    outcome[1] = SAMPLE_OVERSHOOT
    outcome[2] = price
    for number in range(N_SWEEPS):
        least_costs(mass, first, second, n, price, noise, best[:0], best, previous, leads, costs)
        count = _count_groups(previous, n)
        cost = best[n] - price * count
        outcome[0] = price
        outcome[2] = price
        if count == n_groups:
            outcome[3] = few
            outcome[4] = few_cost
            outcome[5] = many
            outcome[6] = many_cost
            if few_price > 0.0 and many_price > 0.0:
                upper = (few_cost - cost) / (n_groups - few)
                lower = (cost - many_cost) / (many - n_groups)
                if 0.0 < lower < upper:
                    outcome[0] = sqrt(lower * upper)
                    outcome[1] = max(0.5 * n_groups * log(upper / lower), SAMPLE_OVERSHOOT)
            return True
        if secant and not few < count < many:
            return False
        stalled = count == few or count == many
        if count < n_groups:
            few = count
            few_cost = cost
            few_price = price
        else:
            many = count
            many_cost = cost
            many_price = price
        secant = (
            number >= N_GUESSES
            or many - few <= CLOSE
            or (few_price > 0.0 and many_price > 0.0 and stalled)
        )
        if secant:
            price = (few_cost - many_cost) / (many - few)
        elif few_price > 0.0 and many_price > 0.0:
            share = log(1.0 * n_groups / few) / log(1.0 * many / few)
            price = few_price * (many_price / few_price) ** share
        else:
            overshoot = 2.0 * overshoot if stalled else overshoot
            power = overshoot
            if max(count, n_groups) - min(count, n_groups) > NEAR and power < OVERSHOOT:
                power = OVERSHOOT
            price *= (1.0 * count / n_groups) ** power
        if not 0.0 < price < INFINITY:
            return False
    return False


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _count_groups(previous: cython.int[::1], n: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Number of groups on the best way to ``n``."""
    count: cython.Py_ssize_t = 0
    position: cython.Py_ssize_t = n
    while position > 0:
        position = previous[position]
        count += 1
    return count
