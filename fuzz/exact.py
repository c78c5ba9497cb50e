"""Exact costs and optimal groups of a few numbers, in integers of any length.

Nothing here is shared with the package. Values and weights are integers times a power of two, so
that sums of ``w``, ``w x`` and ``w x^2`` are exact; the one division of the cost of a group,
``S2 - S1^2 / W``, is carried out to more than twice as many binary digits as ``W`` has, so that
costs are off by less than any that is not zero.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import accumulate, pairwise

import numpy as np

GUARD = 64


def as_integers(numbers: Sequence[float]) -> tuple[list[int], int]:
    """Integers ``m`` and an exponent ``e`` with ``numbers == m * 2**e``."""
    ratios = [float(number).as_integer_ratio() for number in numbers]
    shift = max(denominator.bit_length() for _, denominator in ratios)
    scaled = [m << (shift - denominator.bit_length()) for m, denominator in ratios]
    return scaled, 1 - shift


@cache
def two_to(exponent: int) -> Fraction:
    """A power of two."""
    return Fraction(2) ** exponent


class Sequenced:
    """A sequence of values with weights, and the costs of its segments as integers.

    A cost of ``c`` stands for ``c * 2**unit``.
    """

    def __init__(self, values: Sequence[float], weights: Sequence[float] | None) -> None:
        n = len(values)
        x, exponent = as_integers(values)
        w, w_exponent = ([1] * n, 0) if weights is None else as_integers(weights)
        self.n, self.x, self.w, self.exponent, self.w_exponent = n, x, w, exponent, w_exponent
        moments = ([*w], [a * b for a, b in zip(w, x, strict=True)])
        squares = [a * b for a, b in zip(moments[1], x, strict=True)]
        self.moments = [[0, *accumulate(m)] for m in (*moments, squares)]
        self.shift = 2 * self.moments[0][-1].bit_length() + GUARD
        self.unit = 2 * exponent + w_exponent - self.shift

    def cost(self, i: int, j: int) -> int:
        """Weighted sum of squares about the mean of the values from `i` to `j - 1`."""
        mass, first, second = (m[j] - m[i] for m in self.moments)
        return ((second * mass - first * first) << self.shift) // mass if mass else 0

    def about_zero(self, i: int, j: int) -> int:
        """Weighted sum of squares of the values from `i` to `j - 1`."""
        return (self.moments[2][j] - self.moments[2][i]) << self.shift

    def mean(self, i: int, j: int) -> Fraction:
        """The weighted mean of the values from `i` to `j - 1`, in units of the values."""
        mass, first = (m[j] - m[i] for m in self.moments[:2])
        return Fraction(first, mass) * two_to(self.exponent)

    def fraction(self, cost: int) -> Fraction:
        """A cost as a number."""
        return cost * two_to(self.unit)

    def integer(self, number: Fraction) -> int:
        """A number as a cost, rounded upwards."""
        scaled = number / two_to(self.unit)
        return -(-scaled.numerator // scaled.denominator)

    def doubled(self) -> "Sequenced":
        """The sequence twice, one after the other: segments of it are segments of a circle."""
        twice = object.__new__(Sequenced)
        twice.__dict__.update(self.__dict__)
        totals = [m[-1] for m in self.moments]
        twice.moments = [
            [*m, *(total + s for s in m[1:])] for m, total in zip(self.moments, totals, strict=True)
        ]
        return twice


def least_costs(sequence: Sequenced, most: int) -> list[int]:
    """Least cost of at most 1, ..., `most` segments."""
    n = sequence.n
    costs = [[sequence.cost(i, j) for i in range(j)] for j in range(1, n + 1)]
    best = [0, *(costs[j - 1][0] for j in range(1, n + 1))]
    least = [best[n]]
    for _ in range(1, most):
        best = [0, *(min(map(int.__add__, best, costs[j - 1])) for j in range(1, n + 1))]
        least.append(best[n])
    return least


def least_sparse_cost(sequence: Sequenced, n_groups: int, n_nonzero: int) -> int:
    """Least cost of ascending values with a zero group of at least ``n - n_nonzero`` entries.

    The zero group is an interval, because what an entry gains by leaving it is a convex function of
    its value, and the other groups are intervals as in k-means.
    """
    n, never = sequence.n, 1 << (sequence.about_zero(0, sequence.n).bit_length() + 1)
    costs = [[sequence.cost(i, j) for i in range(j)] for j in range(1, n + 1)]
    before = [0] + [never] * n
    after: list[int] = [never] * (n + 1)
    held = max(0, n - n_nonzero)
    for q in range(n_groups + 1):
        if q:
            before, after = (
                [
                    side[0],
                    *(min(side[j], *map(int.__add__, side, costs[j - 1])) for j in range(1, n + 1)),
                ]
                for side in (before, after)
            )
        for i in range(n - held + 1):
            for j in range(i + held, n + 1):
                after[j] = min(after[j], before[i] + sequence.about_zero(i, j))
    return after[n]


Cut = tuple[tuple[int, int], ...]


@cache
def cuts_of_a_line(n: int) -> list[Cut]:
    """All ways to cut a sequence into segments."""
    found = []
    for chosen in range(1 << (n - 1)):
        edges = [0, *(i + 1 for i in range(n - 1) if chosen >> i & 1), n]
        found.append(tuple(pairwise(edges)))
    return found


@cache
def cuts_of_a_circle(n: int) -> list[Cut]:
    """All ways to cut a circle into segments; those beyond `n` go on at the beginning."""
    found: list[Cut] = [((0, n),)]
    for chosen in range(1, 1 << n):
        edges = [i for i in range(n) if chosen >> i & 1]
        if len(edges) > 1:
            edges.append(edges[0] + n)
            found.append(tuple(pairwise(edges)))
    return found


def best_cut(
    sequence: Sequenced,
    cuts: Sequence[Cut],
    n_segments: int,
    price: int,
    min_weight: Fraction,
    sign: int,
) -> int:
    """Least cost, with `price` for each segment after the first, over cuts that are allowed.

    With a `sign` of 1 the means of the segments ascend, with -1 they descend.
    """
    intervals = {interval for cut in cuts for interval in cut}
    costs = {interval: sequence.cost(*interval) for interval in intervals}
    masses = {(i, j): sequence.moments[0][j] - sequence.moments[0][i] for i, j in intervals}
    needed = min_weight / two_to(sequence.w_exponent)
    best = -1
    for cut in cuts:
        if len(cut) > n_segments:
            continue
        if len(cut) > 1 and needed > 0 and any(masses[interval] < needed for interval in cut):
            continue
        cost = sum(costs[interval] for interval in cut) + price * (len(cut) - 1)
        if (best < 0 or cost < best) and (not sign or _in_order(sequence, cut, masses, sign)):
            best = cost
    return best


def _in_order(sequence: Sequenced, cut: Cut, masses: dict[tuple[int, int], int], sign: int) -> bool:
    """Whether the means of segments that weigh anything ascend, or descend."""
    firsts = sequence.moments[1]
    means = [Fraction(firsts[j] - firsts[i], masses[i, j]) for i, j in cut if masses[i, j]]
    return all(sign * (b - a) >= 0 for a, b in pairwise(means))


def cost_of_labels(
    values: Sequence[float],
    weights: Sequence[float] | None,
    labels: Sequence[int],
    zero: int | None = None,
) -> Fraction:
    """Sum of the costs of all groups, that of the group `zero` about zero."""
    order = np.argsort(labels, kind="stable")
    chosen = None if weights is None else [weights[i] for i in order]
    sequence = Sequenced([values[i] for i in order], chosen)
    sorted_labels = [labels[i] for i in order]
    edges = [0, *(i for i in range(1, len(order)) if sorted_labels[i] != sorted_labels[i - 1])]
    total = 0
    for i, j in zip(edges, [*edges[1:], len(order)], strict=True):
        cost = sequence.about_zero if sorted_labels[i] == zero else sequence.cost
        total += cost(i, j)
    return sequence.fraction(total)
