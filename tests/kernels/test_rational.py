"""A few numbers cut in integers of any length: the least cost, however far the weights differ."""

from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest

from clustruct.kernels.kmeans.kmeans1d import cluster_values
from clustruct.kernels.numbers.rational import best_cut
from tests.exact import exact_cost, exact_cost_of_labels

WEIGHTS = {
    "alike": lambda rng, n: rng.uniform(0.5, 2.0, n),
    "far apart": lambda rng, n: 10.0 ** rng.uniform(-30, 30, n),
    "one vanishes": lambda rng, n: np.append(np.ones(n - 1), 5e-324),
}


def least_cost(values, weights, n_groups):
    """By trying all cuts of sorted values."""
    n = len(values)
    costs = []
    for starts in combinations(range(1, n), min(n_groups, n) - 1):
        edges = [0, *starts, n]
        parts = [slice(a, b) for a, b in pairwise(edges)]
        costs.append(sum(exact_cost(values[part], weights[part]) for part in parts))
    return min(costs)


@pytest.mark.parametrize("n_groups", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("kind", WEIGHTS)
def test_the_least_cost_of_all_cuts(kind, n_groups):
    rng = np.random.default_rng(n_groups)
    values, weights = np.sort(rng.standard_normal(7)), WEIGHTS[kind](rng, 7)
    starts, centers, mantissa, exponent = best_cut(values, weights, n_groups)
    labels = np.searchsorted(starts, np.arange(7), side="right")
    least = least_cost(values, weights, n_groups)
    assert exact_cost_of_labels(values, weights, labels) == least
    assert Fraction(mantissa) * Fraction(2) ** exponent == pytest.approx(least, rel=1e-15)
    for q, center in enumerate(centers):
        mine = [(Fraction(w), Fraction(x)) for w, x in zip(weights, values, strict=True)]
        mine = [pair for pair, label in zip(mine, labels, strict=True) if label == q]
        mean = sum(w * x for w, x in mine) / sum(w for w, _ in mine)
        assert center == float(mean)


@pytest.mark.parametrize("kind", ["far apart", "one vanishes"])
def test_weights_that_pairs_of_doubles_do_not_resolve(kind):
    """k-means comes to the fractions by itself, also where values are tied."""
    rng = np.random.default_rng(3)
    values = np.sort(rng.integers(0, 9, 12) + 1e-9 * rng.integers(0, 3, 12))
    weights = WEIGHTS[kind](rng, 12)
    order = rng.permutation(12)
    labels, *_ = cluster_values(values[order], weights[order], 3)
    cost = exact_cost_of_labels(values[order], weights[order], labels)
    # Up to the rounding of costs that pairs of doubles do resolve.
    assert cost <= least_cost(values, weights, 3) * (1 + Fraction(1, 10**12))
