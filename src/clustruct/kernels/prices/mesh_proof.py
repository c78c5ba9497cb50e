# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Proofs that a partition is the best one which do not visit every position.

A mesh about a good partition bounds all others from below. Where that is not enough, the costs of
what lies before and after each cell tell through which cells the best partition at this price may
go: these are divided, the others are left out, and so on until the bound is the cost of the
partition. (A partition that is not the best at this price may go through cells that are left out,
since discounts hold for the best one alone.)
"""

import cython

if not cython.compiled:
    from math import log

    from clustruct.kernels.numbers.intervals import INFINITY
    from clustruct.kernels.prices.least_costs import least_costs
    from clustruct.kernels.prices.mesh import knot_room, lay_knots, lay_mesh, refine_mesh
    from clustruct.kernels.prices.price_search import SAMPLE_OVERSHOOT, count_groups, search_price
    from clustruct.kernels.prices.proof import OPEN, TIED, prove

# A mesh has a grade of this over the number of groups, at most WIDEST; one that has to prove
# nothing is so many times COARSER. Meshes are given up after so many attempts, with too large a
# share of the positions, or when all of them together have twice as many as there are.
GRADE = cython.declare(cython.double, 1.2)
WIDEST = cython.declare(cython.double, 0.5)
COARSER = cython.declare(cython.double, 6.0)
# Bounds of distances are made for prices up to this times the present one, so as to last.
SPARE_PRICE = cython.declare(cython.double, 1.125)
MOST_MESHED = cython.declare(cython.double, 0.8)
N_MESHES = cython.declare(cython.int, 12)
UNIT = cython.declare(cython.double, 2.0**-53)
# Prices at which a number of groups is best differ by about twice this share over the number, where
# values are dense.
RANGE = cython.declare(cython.double, 1.5)
# Where costs are less certain than this share of the price, nothing is proven.
TOO_NOISY = cython.declare(cython.double, 0.0625)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def prove_on_meshes(
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
    cells: cython.int[::1],
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
    margin: cython.double
    moments: cython.double[::1] = spare[most + 8 :]
    found: cython.longlong[::1] = path[n_groups + 1 : 2 * n_groups + 2]
    cost: cython.double = _sum_of_squares(mass, first, second, path, n_groups)
    least: cython.double = INFINITY
    visited: cython.Py_ssize_t = 0
    kept: cython.int[::1] = cells[2 * (n + 16) :]
    n_kept: cython.Py_ssize_t = 0
    knot_price: cython.double = 0.0
    for _ in range(N_MESHES):
        outcome[2] = price
        if price > knot_price:
            knot_price = SPARE_PRICE * price
            lay_knots(
                values, origin, mass, first, path, n_groups, knot_price, nodes, nodes[room:],
                spreads,
            )  # fmt: skip
        if n_kept > 0:
            last = refine_mesh(
                values, origin, mass, first, most, nodes, spreads, kept, n_kept, places, discount,
                cells,
            )  # fmt: skip
        else:
            last = lay_mesh(
                values, origin, mass, first, path, n_groups, price,
                grade if proving else min(COARSER * grade, WIDEST), most, nodes, spreads, places,
                discount, cells,
            )  # fmt: skip
        visited += last
        if last == 0 or visited > 2 * n:
            return OPEN
        gather(mass, first, second, places, last, moments)
        if not proving:
            # The best one on this mesh, which need not be the best of all, is near enough.
            if not search_price(
                moments, moments[last + 8 :], moments[2 * (last + 8) :], last, n_groups, price,
                SAMPLE_OVERSHOOT, 0.0, best, previous, leads, costs, outcome,
            ):  # fmt: skip
                return OPEN
            trace(previous, places, last, n_groups, path)
            cost = _sum_of_squares(mass, first, second, path, n_groups)
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
        count = count_groups(previous, last)
        margin = proof_margin(n_groups, price, noise, best[last])
        if count == n_groups:
            verdict = prove(
                values, weights, origin, table, block, moments, moments[last + 8 :],
                moments[2 * (last + 8) :], last, n_groups, price, margin, best, previous, places,
                discount, rows, rest, nodes[2 * room :], path,
            )  # fmt: skip
            if verdict != OPEN:
                return verdict
            trace(previous, places, last, n_groups, found)
            new_cost = _sum_of_squares(mass, first, second, found, n_groups)
            if new_cost < cost:
                cost = new_cost
                path[: n_groups + 1] = found
            elif best[last] + margin >= cost + price * n_groups:
                # Rounding is what leaves it open, as it would with all positions.
                return TIED
            visited += last
            n_kept = _keep_cells(
                moments, last, price, noise, discount, best, previous, leads, costs, rest,
                cost + price * n_groups + margin, cells, kept,
            )  # fmt: skip
            continue
        if count < n_groups:
            # Fewer groups are better at this price, perhaps because of the discounts.
            outcome[3] = count
            outcome[4] = best[last] - price * count
        else:
            outcome[5] = count
            outcome[6] = best[last] - price * count
        # What was left out may be best at another price.
        n_kept = 0
        high = (outcome[4] - cost) / (n_groups - outcome[3])
        low = (cost - outcome[6]) / (outcome[5] - n_groups)
        proving = low < high
        if proving and not low < price < high:
            # One end may be far off, where nothing better is known.
            if price <= low:
                price = min(0.5 * (low + high), low * (1.0 + RANGE / n_groups))
            else:
                price = max(0.5 * (low + high), high / (1.0 + RANGE / n_groups))
            if not 0.0 < price < INFINITY:
                return OPEN
    return OPEN


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _sum_of_squares(
    mass: cython.double[::1],
    first: cython.double[::1],
    second: cython.double[::1],
    path: cython.longlong[::1],
    n_groups: cython.Py_ssize_t,
) -> cython.double:
    """Cost of a partition in plain double precision."""
    total: cython.double = 0.0
    for group in range(n_groups):
        i = path[group]
        j = path[group + 1]
        s = first[j] - first[i]
        total += second[j] - second[i] - s * (s / (mass[j] - mass[i]))
    return total


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _keep_cells(
    moments: cython.double[::1],
    last: cython.Py_ssize_t,
    price: cython.double,
    noise: cython.double,
    discount: cython.double[::1],
    best: cython.double[::1],
    previous: cython.int[::1],
    leads: cython.double[::1],
    costs: cython.double[::1],
    after: cython.double[::1],
    limit: cython.double,
    cells: cython.int[::1],
    kept: cython.int[::1],
) -> cython.Py_ssize_t:
    """Write the cells through which the best partition may go, if it costs no more than the limit.

    The costs of what lies after each position are those before it in the order reversed. Returns
    the number of cells. Reverses the moments and the discounts.
    """
    count: cython.Py_ssize_t = 0
    stride: cython.Py_ssize_t = last + 8
    i: cython.Py_ssize_t
    for i in range((last + 1) // 2):
        saved = discount[i]
        discount[i] = discount[last - i]
        discount[last - i] = saved
    for part in range(3):
        for i in range(last // 2 + 1):
            here = moments[part * stride + i]
            moments[part * stride + i] = -moments[part * stride + last - i]
            moments[part * stride + last - i] = -here
    least_costs(
        moments, moments[stride:], moments[2 * stride :], last, price, noise,
        discount[: last + 1], after, previous, leads, costs,
    )  # fmt: skip
    for i in range(1, last):
        if best[i] + after[last - i] + discount[last - i] <= limit:
            kept[2 * count] = cells[2 * i]
            kept[2 * count + 1] = cells[2 * i + 1]
            count += 1
    return count


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def mesh_size(n: cython.Py_ssize_t, n_groups: cython.Py_ssize_t) -> cython.double:
    """About how many cells a mesh has."""
    grade: cython.double = min(GRADE / n_groups, WIDEST)
    return 2.0 * n_groups / grade * (1.0 + log(max(0.5 * n / n_groups * grade, 1.0)))


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def proof_margin(
    n_groups: cython.Py_ssize_t, price: cython.double, noise: cython.double, least: cython.double
) -> cython.double:
    """Errors of both totals that a proof compares, and of what they are compared with."""
    if noise > TOO_NOISY * price:
        return INFINITY
    return 2.0 * (n_groups + 2) * (noise + 4.0 * UNIT * least)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def gather(
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
def trace(
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
