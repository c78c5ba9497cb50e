"""Independent references, and the data they are compared on.

Nothing here is shared with the package: costs come from integers of any length, so they are right
to the last digit whatever the offset, the weights and the spread of the values are.
"""

import math
from fractions import Fraction
from functools import cache
from itertools import accumulate, combinations, pairwise
from typing import NamedTuple

import numpy as np

from clustruct.kernels import COMPILED

# Uncompiled kernels take about 100 times as long: there the same tests run on fewer cases.
SHARE = 1.0 if COMPILED else 0.02


def cases(number):
    """Seeds of so many random cases, or of a small share of them where kernels are uncompiled."""
    return range(max(1, round(SHARE * number)))


# ---- Data.

SHAPES = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "uniform": lambda rng, n: rng.random(n),
    "t2": lambda rng, n: rng.standard_t(2, n),
    "cauchy": lambda rng, n: rng.standard_cauchy(n),
    "lognormal": lambda rng, n: rng.lognormal(0.0, 2.0, n),
    "clustered": lambda rng, n: _clusters(rng, n, 1e-2),
    "tight": lambda rng, n: _clusters(rng, n, 1e-6),
    "tighter": lambda rng, n: _clusters(rng, n, 1e-9),
    "ties": lambda rng, n: rng.integers(-6, 7, n) / 4.0,
    "grid": lambda rng, n: rng.permutation(n) - n // 3 + 0.0,
    "nearly a grid": lambda rng, n: (
        rng.permutation(n) + 10.0 ** rng.uniform(-12, -3) * rng.standard_normal(n)
    ),
    "offset": lambda rng, n: 1e8 + rng.standard_normal(n),
    "offset clusters": lambda rng, n: 1e8 + _clusters(rng, n, 1e-5),
    "tiny": lambda rng, n: 1e-300 * rng.standard_normal(n),
    "huge": lambda rng, n: 1e300 * rng.standard_normal(n),
}

WEIGHTINGS = {
    "unweighted": lambda rng, n: None,
    "decades": lambda rng, n: 10.0 ** rng.uniform(-6.0, 6.0, n),
    "a few heavy": lambda rng, n: _few_heavy(rng, n),
    "integers": lambda rng, n: rng.integers(1, 5, n).astype(float),
    "zeros": lambda rng, n: _some_zeros(rng, n),
}


def _clusters(rng, n, width):
    spots = rng.uniform(-1.0, 1.0, rng.integers(1, 9))
    return rng.choice(spots, n) + width * rng.standard_normal(n)


def _few_heavy(rng, n):
    """Light values that hardly matter against the price of a group: rounding could hide them."""
    weights = 10.0 ** rng.uniform(-12.0, -10.0, n)
    heavy = rng.choice(n, max(1, n // 4), replace=False)
    weights[heavy] = rng.uniform(0.1, 1.0, len(heavy))
    return weights


def _some_zeros(rng, n):
    weights = rng.random(n) * (rng.random(n) < 0.7)
    weights[rng.integers(n)] = 0.5
    return weights


class Problem(NamedTuple):
    """Values and weights as the kernels get them, and what a reference makes of them.

    ``scaled`` are the values over ``2**exponent``, exactly, none larger than 1 in size: their costs
    are in the range of a double where those of the values are not. ``least[q - 1]`` is the least
    cost of them in at most q groups.
    """

    values: np.ndarray
    weights: np.ndarray | None
    scaled: np.ndarray
    exponent: int
    least: np.ndarray


@cache
def problem(shape, weighting, n, seed, most, solve):
    """A random problem of the given kind, solved by one of the references below."""
    rng = np.random.default_rng([seed, n])
    values, weights = SHAPES[shape](rng, n), WEIGHTINGS[weighting](rng, n)
    exponent = math.frexp(np.abs(values).max())[1]
    scaled = np.ldexp(values, -exponent)
    order = np.argsort(scaled, kind="stable")
    ordered = None if weights is None else weights[order]
    return Problem(values, weights, scaled, exponent, solve(scaled[order], ordered, most))


# ---- Exact costs.


def as_integers(numbers):
    """Integers ``m`` and an exponent ``e`` with ``numbers == m * 2**e``, exactly."""
    mantissas, exponents = np.frexp(numbers)
    mantissas = (mantissas * 2.0**53).astype(np.int64)
    least = int(exponents[mantissas != 0].min(initial=5000))
    pairs = zip(mantissas.tolist(), exponents.tolist(), strict=True)
    return [m << (e - least) if m else 0 for m, e in pairs], least - 53


def ones_for(values, weights):
    """The weights, or weights of one where there are none."""
    return np.ones(len(values)) if weights is None else np.asarray(weights, dtype=float)


def exact_cost(values, weights):
    """Weighted sum of squares about the mean, as a fraction."""
    pairs = [(Fraction(float(x)), Fraction(float(w))) for x, w in zip(values, weights, strict=True)]
    total = sum(w for _, w in pairs)
    if total == 0:
        return Fraction(0)
    mean = sum(w * x for x, w in pairs) / total
    return sum(w * (x - mean) ** 2 for x, w in pairs)


def _sums_of_groups(values, weights, labels):
    """Sums of w, w x and w x^2 of every group, as integers, and the exponents of x and w."""
    numbers, exponent = as_integers(values)
    masses, mass_exponent = as_integers(ones_for(values, weights))
    sums = {}
    for x, w, label in zip(numbers, masses, labels.tolist(), strict=True):
        s = sums.setdefault(label, [0, 0, 0])
        s[0] += w
        s[1] += w * x
        s[2] += w * x * x
    return sums, exponent, mass_exponent


def exact_cost_of_labels(values, weights, labels, zero=None):
    """Sum of the costs of all groups, that of the group ``zero`` about zero, as a fraction."""
    sums, exponent, mass_exponent = _sums_of_groups(values, weights, labels)
    cost = sum(
        Fraction(t) if label == zero else Fraction(t * w - s * s, w)
        for label, (w, s, t) in sums.items()
        if w
    )
    return cost * Fraction(2) ** (2 * exponent + mass_exponent)


def exact_means(values, weights, labels):
    """Means of the groups by label, each correctly rounded; NaN for a group of no weight."""
    sums, exponent, _ = _sums_of_groups(values, weights, labels)
    return {
        label: float(Fraction(s, w) * Fraction(2) ** exponent) if w else math.nan
        for label, (w, s, _) in sums.items()
    }


def interval_costs(values, weights):
    """Costs of all intervals ``[i, j)`` of sorted values, correctly rounded; infinite if j < i.

    Python divides integers of any length to the nearest double, and everything before that
    division is an integer.
    """
    numbers, exponent = as_integers(values)
    masses, mass_exponent = as_integers(ones_for(values, weights))
    w, x = np.array(masses, dtype=object), np.array(numbers, dtype=object)
    first, second, third = (
        np.concatenate([[0], np.cumsum(moment)]) for moment in (w, w * x, w * x * x)
    )
    n = len(values)
    costs = np.full((n + 1, n + 1), np.inf)
    costs[n, n] = 0.0
    for i in range(n):
        mass, s, t = (moment[i + 1 :] - moment[i] for moment in (first, second, third))
        costs[i, i] = 0.0
        costs[i, i + 1 :] = (t * mass - s * s) / np.where(mass == 0, 1, mass)
    return np.ldexp(costs, 2 * exponent + mass_exponent)


# ---- Optimal partitions.


def brute_force(values, weights, n_groups):
    """Least cost of a cut of sorted values into at most so many intervals, over all cuts."""
    n = len(values)
    costs = {
        (i, j): exact_cost(values[i:j], weights[i:j]) for i, j in combinations(range(n + 1), 2)
    }
    return min(
        sum(costs[interval] for interval in pairwise((0, *inner, n)))
        for number in range(1, min(n_groups, n) + 1)
        for inner in combinations(range(1, n), number - 1)
    )


@cache
def _all_cuts(n, n_groups):
    """Edges of all cuts of n values into exactly so many intervals, one cut a row."""
    inner = list(combinations(range(1, n), n_groups - 1))
    return np.array([(0, *cut, n) for cut in inner])


def fast_brute_force(values, weights, most):
    """Least cost over all cuts into at most 1, ..., ``most`` intervals, to a few last digits."""
    costs, n = interval_costs(values, weights), len(values)
    least = []
    for number in range(1, most + 1):
        if number <= n:
            cuts = _all_cuts(n, number)
            cost = costs[cuts[:, :-1], cuts[:, 1:]].sum(axis=1).min()
        least.append(min([cost, *least[-1:]]))
    return np.array(least)


def dynamic_program(values, weights, most):
    """Least cost of a cut into at most 1, ..., ``most`` intervals, in O(n^2 Q) steps."""
    costs = interval_costs(values, weights)
    best = costs[0]
    least = [best[-1]]
    for _ in range(1, most):
        best = (best[:, None] + costs).min(axis=0)
        least.append(best[-1])
    return np.array(least)


def penalised_program(values, weights, penalty):
    """Least cost of a cut with a penalty for every interval, in O(n^2) steps."""
    costs = interval_costs(values, weights)
    best = [0.0]
    for j in range(1, len(values) + 1):
        best.append((np.array(best) + costs[:j, j]).min() + penalty)
    return best[-1]


def chain_program(values, weights, n_groups, zero_group, middle, gap):
    """Least cost of a chain of groups, one of them about zero, see ``kernels.cuts.chain``.

    The zero group holds the value ``middle`` and has at least the weight ``gap``; the first and the
    last group are not empty.
    """
    n = len(values)
    costs = interval_costs(values, weights)
    weights = ones_for(values, weights)
    about_zero = np.full_like(costs, np.inf)
    for i in range(middle + 1):
        squares = np.cumsum(weights[i:] * values[i:] ** 2)
        about_zero[i, i + 1 :] = np.where(np.cumsum(weights[i:]) >= gap, squares, np.inf)
    about_zero[:, : middle + 1] = np.inf
    groups = [about_zero if group == zero_group else costs for group in range(n_groups)]
    best = groups[0][0, 1:n]
    for group in groups[1:-1]:
        best = (best[:, None] + group[1:n, 1:n]).min(axis=0)
    return (best + groups[-1][1:n, n]).min()


def two_sided_program(values, weights, n_groups, gap):
    """Least cost of a zero group and at most so many groups on either side of it, in all.

    The zero group holds the value 0 and has at least the weight ``gap``.
    """
    n, middle = len(values), int(np.searchsorted(values, 0.0))
    costs = interval_costs(values, weights)
    weights = ones_for(values, weights)
    before, after = np.full(n + 1, np.inf), np.full(n + 1, np.inf)
    before[0] = 0.0
    for q in range(n_groups + 1):
        if q:
            before = np.minimum(before, (before[:, None] + costs).min(axis=0))
            after = np.minimum(after, (after[:, None] + costs).min(axis=0))
        for begin in range(middle + 1):
            squares = np.cumsum(weights[begin:] * values[begin:] ** 2)
            squares[np.cumsum(weights[begin:]) < gap] = np.inf
            squares[: middle - begin] = np.inf
            after[begin + 1 :] = np.minimum(after[begin + 1 :], before[begin] + squares)
    return after[n]


# ---- Optimal sparse groups.


@cache
def all_assignments(d):
    """All ways to put d entries into the zero group, -1, and groups without order, 0, 1, ...

    Returns them one a row, with the number of entries outside the zero group and of groups of each.
    """
    rows = [()]
    for _ in range(d):
        rows = [(*row, label) for row in rows for label in range(-1, max(row, default=-1) + 2)]
    rows = np.array(rows)
    return rows, (rows >= 0).sum(axis=1), rows.max(axis=1) + 1


def sparse_brute_force(values):
    """Least squared distances to vectors with at most k nonzero entries of at most Q values.

    Over all assignments of the entries to groups, contiguous or not. Returns an array of fractions
    (integers over one denominator) with a row for each k = 0, ..., d and a column for each Q = 0,
    ..., d.
    """
    d = len(values)
    rows, n_nonzero, n_groups = all_assignments(d)
    numbers, exponent = as_integers(values)
    x = np.array(numbers, dtype=object if max(map(abs, numbers)) >= 2**24 else np.int64)
    # Common multiple of 1, ..., 8: with it all means are integers.
    multiple = 840
    kept = np.zeros(len(rows), dtype=x.dtype)
    for label in range(d):
        members = rows == label
        size = members.sum(axis=1)
        total = members.astype(x.dtype) @ x
        kept += (multiple // np.maximum(size, 1)).astype(x.dtype) * total * total
    left = multiple * int(sum(v * v for v in numbers)) - kept
    order = np.argsort(left, kind="stable")[::-1]
    least = np.full((d + 1, d + 1), None)
    least[n_nonzero[order], n_groups[order]] = left[order]
    for k in range(d + 1):
        for q in range(d + 1):
            rivals = (least[k, q], least[k - 1, q] if k else None, least[k, q - 1] if q else None)
            least[k, q] = min(rival for rival in rivals if rival is not None)
    return least * (Fraction(2) ** (2 * exponent) / multiple)


def paper_program(values, n_groups, most_nonzero):
    """Least squared distance with at most k nonzero entries, for each k = 0, ..., ``most_nonzero``.

    The paper's dynamic program as it is written there (section 5.1): values ``f(j, q)`` of the best
    ``q`` groups of negative means of the ``j`` smallest entries, the same with all signs changed,
    and a grid search over ``j``, ``q`` and the number of nonzero entries. In exact arithmetic.
    """
    numbers, exponent = as_integers(np.sort(values))
    most = min(most_nonzero, len(numbers))
    # With a common multiple of all sizes of groups, all gains are integers.
    multiple = math.lcm(*range(1, most + 1))
    below = _gains(numbers, n_groups, most, multiple)
    above = _gains([-x for x in reversed(numbers)], n_groups, most, multiple)
    unit = Fraction(2) ** (2 * exponent) / multiple
    everything = multiple * sum(x * x for x in numbers)
    least, best = [], 0
    for k in range(most_nonzero + 1):
        if k <= most:
            groups = min(k, n_groups)
            rivals = (
                below[j][q] + above[k - j][groups - q]
                for j in range(k + 1)
                for q in range(groups + 1)
            )
            best = max(best, *rivals)
        least.append((everything - best) * unit)
    return least


def _gains(numbers, n_groups, most, multiple):
    """The paper's ``f_-``: rows for j = 0, ..., ``most``, columns for q = 0, ..., ``n_groups``."""
    never = -(multiple**3) * (1 + sum(map(abs, numbers))) ** 3
    f = [[0] * (n_groups + 1)]
    sums = [0, *accumulate(numbers)]
    for j in range(1, most + 1):
        row = [0]
        gains = [
            (i, (sums[j] - sums[i]) ** 2 * (multiple // (j - i)))
            for i in range(j)
            if sums[j] < sums[i]
        ]
        for q in range(1, n_groups + 1):
            row.append(max((f[i][q - 1] + gain for i, gain in gains if i >= q - 1), default=never))
        f.append(row)
    return f
