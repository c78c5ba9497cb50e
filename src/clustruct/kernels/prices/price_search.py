# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The price at which a number of groups is best, by sweeps over some positions.

The same search as in ``cuts.penalised``: the price is interpolated between those that gave fewer
and more groups, and found by secants on the lower hull of numbers and costs once they are close.
"""

import cython

if not cython.compiled:
    from math import cbrt, log, sqrt

    from clustruct.kernels.numbers.intervals import INFINITY
    from clustruct.kernels.prices.least_costs import least_costs

# Sweeps before the search gives up, and how many of them interpolate before the secants.
N_SWEEPS = cython.declare(cython.int, 30)
N_GUESSES = cython.declare(cython.int, 12)
# As in ``penalised``: how close numbers of groups allow secants, and how far to go for a bracket.
CLOSE = cython.declare(cython.Py_ssize_t, 8)
OVERSHOOT = 3.5
SAMPLE_OVERSHOOT = 1.5
NEAR = cython.declare(cython.Py_ssize_t, 2)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def sample_positions(
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
def dense_price(
    values: cython.double[::1],
    mass: cython.double[::1],
    places: cython.int[::1],
    n_places: cython.Py_ssize_t,
    n_groups: cython.Py_ssize_t,
) -> cython.double:
    """The price for dense values (Panter and Dite), see ``penalised.dense_price``."""
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
def search_price(
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
        count = count_groups(previous, n)
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
def count_groups(previous: cython.int[::1], n: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Number of groups on the best way to ``n``."""
    count: cython.Py_ssize_t = 0
    position: cython.Py_ssize_t = n
    while position > 0:
        position = previous[position]
        count += 1
    return count
