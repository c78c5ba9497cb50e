"""Least costs in rational arithmetic, for tests and fuzzing: right whatever the numbers are.

All costs are `fractions.Fraction`, so that two of them compare without any rounding. Nothing
here uses a kernel of the package; `tests.kernels.reference` has the sums by group.
"""

from fractions import Fraction
from itertools import accumulate

import numpy as np

from tests.kernels.reference import (
    as_integers,
    exact_cost,
    exact_cost_of_labels,
    exact_means,
    ones_for,
    paper_program,
)

__all__ = [
    "cost_about",
    "exact_cost",
    "exact_cost_of_labels",
    "exact_means",
    "interval_costs",
    "least_costs",
    "least_segment_costs",
    "least_sparse_costs",
    "sum_of_squares",
    "total_cost",
]


def total_cost(values, weights=None):
    """The cost of one group of all values: their number or weight times their variance."""
    return exact_cost(values, ones_for(values, weights))


def sum_of_squares(values, weights=None):
    """``sum w x^2``."""
    pairs = zip(values, ones_for(values, weights), strict=True)
    return sum(Fraction(float(w)) * Fraction(float(x)) ** 2 for x, w in pairs)


def cost_about(values, weights, labels, centers):
    """``sum w (x - c)^2`` about the given centres, as they were rounded; the label -1 is zero."""
    own = [Fraction(float(center)) for center in centers] + [Fraction(0)]
    rows = zip(values, ones_for(values, weights), labels, strict=True)
    return sum(Fraction(float(w)) * (Fraction(float(x)) - own[label]) ** 2 for x, w, label in rows)


def interval_costs(values, weights=None):
    """A function of ``i < j`` that returns the cost of the values ``[i, j)`` in their order."""
    numbers, exponent = as_integers(np.asarray(values, dtype=float))
    masses, mass_exponent = as_integers(ones_for(values, weights))
    pairs = list(zip(masses, numbers, strict=True))
    mass = [0, *accumulate(w for w, _ in pairs)]
    first = [0, *accumulate(w * x for w, x in pairs)]
    second = [0, *accumulate(w * x * x for w, x in pairs)]
    unit = Fraction(2) ** (2 * exponent + mass_exponent)

    def cost(i, j):
        w, s, t = mass[j] - mass[i], first[j] - first[i], second[j] - second[i]
        return Fraction(t * w - s * s, w) * unit if w else Fraction(0)

    return cost


def least_costs(values, weights, most):
    """Least cost of at most 1, ..., ``most`` groups of any values: k-means in one dimension.

    An optimal group is an interval of the sorted values. O(n^2 most) operations.
    """
    order = np.argsort(np.asarray(values, dtype=float), kind="stable")
    ordered = np.asarray(values, dtype=float)[order]
    return least_segment_costs(ordered, ones_for(values, weights)[order], most)


def least_segment_costs(values, weights, most):
    """Least cost of at most 1, ..., ``most`` segments of values in their order."""
    cost, n = interval_costs(values, weights), len(values)
    costs = {(i, j): cost(i, j) for j in range(1, n + 1) for i in range(j)}
    best = [None, *(costs[0, j] for j in range(1, n + 1))]
    least = [best[n]]
    for number in range(2, most + 1):
        if number > n:
            least.append(least[-1])
            continue
        best = [None] * number + [
            min(best[i] + costs[i, j] for i in range(number - 1, j)) for j in range(number, n + 1)
        ]
        least.append(min(least[-1], best[n]))
    return least


def least_sparse_costs(values, n_groups, most_nonzero):
    """Least squared distance of vectors with at most ``n_groups`` distinct nonzero values.

    One for each largest number of nonzero entries, 0, ..., ``most_nonzero``; equal weights.
    """
    costs = paper_program(np.asarray(values, dtype=float), n_groups, most_nonzero)
    return [Fraction(cost) for cost in costs]
