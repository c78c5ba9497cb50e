# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The best partition of one short vector through a price for every group, with a proof.

The same search as in ``cuts.penalised``, for a vector that fits into a processor's cache and for
callers that hold no lock: all arrays are given, sums are plain doubles, and the result is either
proven to be the only best partition (`proof`) or is "undecided", whereupon callers use the slower
searches, which resolve everything. Few groups of many values are proven on meshes (`mesh_proof`),
all others by a sweep over all positions.
"""

import cython

if not cython.compiled:
    from clustruct.kernels.numbers.intervals import error_of_costs, place_of_origin
    from clustruct.kernels.prices.mesh import knot_room
    from clustruct.kernels.prices.mesh_proof import (
        gather,
        mesh_size,
        proof_margin,
        prove_on_meshes,
        trace,
    )
    from clustruct.kernels.prices.price_search import (
        OVERSHOOT,
        SAMPLE_OVERSHOOT,
        dense_price,
        sample_positions,
        search_price,
    )
    from clustruct.kernels.prices.proof import MOST_NODES, OPEN, PROVEN, prove

# The price is first found on a part of the positions: one in so many or so many for each group, if
# there are so many times more of them. Where meshes follow it is so many for each group, and more
# for many groups, whose meshes are long, so that a wrong price costs more.
SAMPLE_STRIDE = cython.declare(cython.Py_ssize_t, 8)
SAMPLE_SHARE = cython.declare(cython.Py_ssize_t, 12)
MESH_SHARE = cython.declare(cython.Py_ssize_t, 8)
SAMPLED = cython.declare(cython.Py_ssize_t, 3)
# Meshes are worth their while for so many positions, if they have less than this share of them.
LEAST_MESHED = cython.declare(cython.Py_ssize_t, 500)
MESHED = cython.declare(cython.double, 0.5)
# A boundary that moves by a share of its group costs about the square of that share, times the
# price. If errors are as large where it has moved by so many positions, a proof hardly ever ends.
HOPELESS = cython.declare(cython.double, 10.0)


def float_room(n, n_groups):
    """Doubles that `priced_partition` needs as work space."""
    return 8 * (n + 16) + 2 * (MOST_NODES + 1) * (n_groups + 1) + knot_room(n_groups)


def integer_room(n, n_groups):
    """Integers of 32 bits that `priced_partition` needs as work space."""
    return 6 * (n + 16) + 2 * (MOST_NODES + 1) * (n_groups + 1) + 2 * knot_room(n_groups)


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
    meshed: cython.bint = n >= LEAST_MESHED and mesh_size(n, n_groups) < MESHED * n
    n_sampled: cython.Py_ssize_t = max(MESH_SHARE, 4 + n_groups // 2) * n_groups
    outcome: cython.double[::1] = floats[:8]
    best: cython.double[::1] = floats[8 : n + 16]
    leads: cython.double[::1] = floats[n + 16 : 2 * n + 32]
    costs: cython.double[::1] = floats[2 * n + 32 : 3 * n + 48]
    spare: cython.double[::1] = floats[3 * n + 48 :]
    previous: cython.int[::1] = integers[: n + 16]
    places: cython.int[::1] = integers[n + 16 : 2 * n + 32]
    cells: cython.int[::1] = integers[2 * n + 32 : 6 * n + 96]
    nodes: cython.int[::1] = integers[6 * n + 96 :]
    price: cython.double = hint
    overshoot: cython.double = SAMPLE_OVERSHOOT
    noise: cython.double = plain_error(values, weights, origin, mass, first, second)
    found: cython.bint = False
    verdict: cython.int = OPEN
    if not meshed:
        n_sampled = max(SAMPLE_SHARE * n_groups, n // SAMPLE_STRIDE)
    if meshed or (price <= 0.0 and n >= SAMPLED * n_sampled):
        n_sampled = sample_positions(values, n_sampled, places)
        gather(mass, first, second, places, n_sampled, spare)
        if price <= 0.0:
            price = dense_price(values, mass, places, n_sampled, n_groups)
            overshoot = OVERSHOOT
        found = search_price(
            spare, spare[n_sampled + 8 :], spare[2 * (n_sampled + 8) :], n_sampled,
            n_groups, price, overshoot, 0.0, best, previous, leads, costs, outcome,
        )  # fmt: skip
        price = outcome[0]
        overshoot = outcome[1]
    elif price <= 0.0:
        n_sampled = min(n, 16 * n_groups)
        for i in range(n_sampled + 1):
            places[i] = i * n // n_sampled
        price = dense_price(values, mass, places, n_sampled, n_groups)
        overshoot = OVERSHOOT
    if meshed and found:
        trace(previous, places, n_sampled, n_groups, path)
        verdict = prove_on_meshes(
            values, weights, origin, table, block, mass, first, second, n_groups, price, noise,
            best, spare, previous, leads, costs, places, cells, nodes, rows, path, outcome,
        )  # fmt: skip
        price = outcome[2]
    margin: cython.double = proof_margin(n_groups, price, noise, 1.5 * price * n_groups)
    shift: cython.double = HOPELESS * n_groups / n
    hopeless: cython.bint = n > MOST_NODES and margin > shift * shift * price
    if verdict == OPEN and not hopeless:
        if search_price(
            mass, first, second, n, n_groups, price, overshoot, noise, best, previous, leads,
            costs, outcome,
        ):  # fmt: skip
            for i in range(n + 1):
                places[i] = i
            verdict = prove(
                values, weights, origin, table, block, mass, first, second, n, n_groups,
                outcome[2], proof_margin(n_groups, outcome[2], noise, best[n]), best, previous,
                places, spare[:0], rows, spare, nodes, path,
            )  # fmt: skip
    return verdict == PROVEN


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
