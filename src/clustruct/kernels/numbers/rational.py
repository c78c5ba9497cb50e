"""Exact k-means of a few weighted numbers in integers of any length.

Pairs of doubles resolve costs down to about ``2^-100 W R^2``, with the sum ``W`` of the weights and
the largest distance ``R`` from their median. Where a heavy value lies far from light ones that is
more than all there is to divide: the whole cost may be ``1e-40 W R^2``. Few values are then cut by
the plain dynamic program, ``O(n^2 Q)``, on fractions.
"""

from fractions import Fraction
from itertools import accumulate, pairwise

import numpy as np


def best_cut(values, weights, n_groups):
    """The best partition of distinct ascending values with positive weights.

    Returns where the second and later groups start, the centres, each rounded once, and the cost as
    a mantissa and an exponent of two.
    """
    n = values.shape[0]
    numbers, unit = _integers(values)
    masses, mass_unit = _integers(weights)
    pairs = list(zip(masses, numbers, strict=True))
    mass = [0, *accumulate(w for w, _ in pairs)]
    first = [0, *accumulate(w * x for w, x in pairs)]
    second = [0, *accumulate(w * x * x for w, x in pairs)]

    def cost(i, j):
        w, s, t = mass[j] - mass[i], first[j] - first[i], second[j] - second[i]
        return Fraction(t * w - s * s, w)

    costs = [[cost(i, j) for i in range(j)] for j in range(n + 1)]
    best = [(Fraction(0), ()), *((costs[j][0], ()) for j in range(1, n + 1))]
    for number in range(1, min(n_groups, n)):
        # Of the first j values, in number + 1 groups: their cost and where the later ones start.
        best = [
            min((best[i][0] + costs[j][i], (*best[i][1], i)) for i in range(number, j))
            if j > number
            else best[j]
            for j in range(n + 1)
        ]
    least, starts = best[n]
    edges = (0, *starts, n)
    centers = [
        float(Fraction(first[j] - first[i], mass[j] - mass[i]) * unit) for i, j in pairwise(edges)
    ]
    return np.array(starts, dtype=np.int64), np.array(centers), *_as_power(least, unit, mass_unit)


def _integers(numbers):
    """Integers and a power of two whose products are the numbers, exactly."""
    ratios = [number.as_integer_ratio() for number in numbers.tolist()]
    divisor = max(below for _, below in ratios)
    return [above * (divisor // below) for above, below in ratios], Fraction(1, divisor)


def _as_power(cost, unit, mass_unit):
    """``cost * unit^2 * mass_unit`` as a mantissa and an exponent of two."""
    product = cost * unit**2 * mass_unit
    exponent = product.numerator.bit_length() - product.denominator.bit_length()
    return float(product / Fraction(2) ** exponent), exponent
