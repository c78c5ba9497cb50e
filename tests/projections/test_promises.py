"""The promises of `kmeans_1d` and `project_clustered`, see docs/kernels.md, in fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import clustruct as cs
from tests import exact
from tests.kernels.reference import cases, ones_for

# Shares of costs that are promised, see docs/kernels.md.
OF_ONE_GROUP = Fraction(1, 10**16)
OF_LEAST = Fraction(1, 10**13)
OF_REACH = Fraction(1, 10**30)
# Costs below this share of the weights times the largest square may underflow.
LOST = Fraction(1, 10**270)

BASES = (1.0, -1.0, 3.0, 1e15, 1e-300, 1e300, 0.0)


def units_apart(rng, n):
    """Numbers a few units in the last place apart, perhaps some of them far more."""
    base = rng.choice(BASES)
    steps = rng.integers(0, 12, n) * rng.choice([1, 1, 1, 2**20, 2**40], n)
    return base + np.spacing(base) * steps


def on_both_sides(rng, n):
    return rng.choice([1.0, -1.0, 2.0], n) + np.spacing(1.0) * rng.integers(-5, 6, n)


def offsets_mixed(rng, n):
    return rng.choice([1.0, 1e15, -1e15, 0.0, 1e8], n) + np.spacing(1e15) * rng.integers(0, 5, n)


def decades(rng, n):
    return rng.standard_normal(n) * 10.0 ** rng.uniform(-8.0, 8.0, n)


def cancelling(rng, n):
    """Numbers whose mean is as small as what one of them rounds off, or smaller."""
    large = rng.choice([1.0, 3.0, 1e8], n // 2) * rng.uniform(0.5, 1.0)
    few_units = np.spacing(large) * rng.integers(-1, 2, n // 2)
    tiny = rng.choice([0.0, 2.2e-308, 1e-40], n - 2 * (n // 2))
    return rng.permutation(np.concatenate([large + few_units, -large, tiny]))


VALUES = (units_apart, on_both_sides, offsets_mixed, decades, cancelling)
WEIGHTS = {
    "none": lambda rng, n: None,
    "30 decades": lambda rng, n: 10.0 ** rng.uniform(-15.0, 15.0, n),
    "powers of ten": lambda rng, n: 10.0 ** rng.integers(-30, 1, n),
    "600 decades": lambda rng, n: 10.0 ** rng.uniform(-300.0, 300.0, n),
}


def _largest_square(values, weights):
    """The sum of the weights times the largest square."""
    largest = Fraction(float(np.abs(values).max())) ** 2
    return largest * sum(map(Fraction, ones_for(values, weights).tolist()))


def check_kmeans(values, weights, n_clusters):
    """Compare the result with the promise; return it."""
    groups = cs.kmeans_1d(values, n_clusters, sample_weight=weights)
    cost = exact.exact_cost_of_labels(values, weights, groups.labels)
    least = exact.least_costs(values, weights, n_clusters)[-1]
    assert 0 <= cost - least <= OF_LEAST * least + OF_ONE_GROUP * exact.total_cost(values, weights)
    # Weights of equal numbers are added first, which may round.
    if weights is None or len(np.unique(values)) == len(values):
        vanishing = np.abs(values).max() * 2.0**-1000
        for label, mean in exact.exact_means(values, weights, groups.labels).items():
            assert abs(groups.centers[label] - mean) <= math.ulp(mean) + vanishing
    if cost == 0:
        assert groups.inertia == 0.0
    elif max(LOST * _largest_square(values, weights), LOST) < cost < 1 / LOST:
        assert abs(Fraction(groups.inertia) / cost - 1) <= OF_LEAST
    return groups


@pytest.mark.parametrize("weighting", WEIGHTS)
@pytest.mark.parametrize("make", VALUES)
def test_groups_of_numbers_cost_the_least_whatever_their_weights(make, weighting):
    for seed in cases(25):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 11))
        check_kmeans(make(rng, n), WEIGHTS[weighting](rng, n), int(rng.integers(1, 6)))


@given(
    st.lists(
        st.tuples(st.floats(-1e300, 1e300), st.one_of(st.floats(1e-300, 1e300), st.integers(1, 3))),
        min_size=1,
        max_size=8,
    ),
    st.integers(1, 4),
)
def test_groups_of_any_numbers_and_weights(pairs, n_clusters):
    values, weights = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    check_kmeans(values, weights, n_clusters)


@pytest.mark.parametrize("seed", cases(4))
def test_groups_of_more_numbers_cost_the_least_to_the_digits_of_their_moments(seed):
    rng = np.random.default_rng(seed)
    n = 40
    if seed % 2:
        # Heavy and light numbers: the cost of light groups is lost beside the sum of all weights.
        values = rng.choice([0.0, 1e-9, 1.0], n) + 1e-12 * rng.standard_normal(n)
        weights = 10.0 ** rng.uniform(-20.0, 20.0, n)
    else:
        # Nearly a grid: many partitions into this number of groups cost nearly the same.
        values = rng.permutation(n) + 1e-10 * rng.standard_normal(n)
        weights = None
    groups = cs.kmeans_1d(values, 19, sample_weight=weights)
    least = exact.least_costs(values, weights, 19)[-1]
    excess = exact.exact_cost_of_labels(values, weights, groups.labels) - least
    assert 0 <= excess <= OF_LEAST * least + OF_REACH * n * _largest_square(values, weights)


@pytest.mark.parametrize("make", VALUES)
def test_sparse_projections_are_nearest_to_thirteen_digits(make):
    for seed in cases(50):
        rng = np.random.default_rng(seed)
        values = make(rng, int(rng.integers(2, 10)))
        n_groups, n_nonzero = int(rng.integers(1, 5)), int(rng.integers(0, len(values) + 1))
        nearest = cs.project_clustered(values, n_groups, n_nonzero=n_nonzero)
        assert nearest.exact
        assert np.count_nonzero(nearest.point) <= n_nonzero
        least = exact.least_sparse_costs(values, n_groups, n_nonzero)[-1]
        cost = exact.exact_cost_of_labels(values, None, nearest.labels, zero=-1)
        assert 0 <= cost - least <= OF_LEAST * least + exact.total_cost(values) * OF_LEAST
        means = exact.exact_means(values, None, nearest.labels)
        assert all(
            abs(center - means[label]) <= math.ulp(means[label])
            for label, center in enumerate(nearest.centers)
        )


def test_a_light_number_alone_does_not_cost_anything():
    # This inertia was 8.7e+54.
    values = [-0.9999999999999993, -1.0, 0.9999999999999998, 2.000000000000001, 2.0]
    weights = [4.571064118632043e-198, 8.701629882977887e54, 3.2467190646397954e240, 1e-9, 1.8e28]
    assert cs.kmeans_1d(values, 5, sample_weight=weights).inertia == 0.0


def test_tight_entries_keep_their_groups_far_from_zero():
    # One group was all that sums about zero could tell.
    values = 1e15 + np.array([0.75, 1.125, 1.0, 0.875])
    assert cs.project_clustered(values, 2, n_nonzero=4).labels.tolist() == [0, 1, 1, 0]
