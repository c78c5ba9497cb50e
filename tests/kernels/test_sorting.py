"""Values and weights come back sorted, merged and scaled, to the last bit."""

from fractions import Fraction

import numpy as np
import pytest

from clustruct.kernels.numbers.sorting import SMALL, scale_and_merge, scale_down, sort_values
from tests.kernels.reference import SHAPES

N_LONG = 3 * SMALL

KINDS = {
    **SHAPES,
    "constant": lambda rng, n: np.full(n, -2.5),
    "one binade": lambda rng, n: 1.0 + rng.permutation(n) * 2.0**-52,
    "same leading digits": lambda rng, n: (
        np.where(rng.random(n) < 0.5, 1, -1) * (1.0 + rng.permutation(n) * 2.0**-52)
    ),
    "subnormal": lambda rng, n: rng.integers(-n, n, n) * 5e-324,
    "all magnitudes": lambda rng, n: rng.choice([-1, 1], n) * 10.0 ** rng.uniform(-320, 308, n),
    # Zeros of both signs, between the least sizes at hand.
    "next to zero": lambda rng, n: rng.choice([-0.01, -0.0, 0.0, 0.01, 5.0], n),
    "already sorted": lambda rng, n: np.sort(rng.standard_normal(n)),
    "reversed": lambda rng, n: np.sort(rng.standard_normal(n))[::-1].copy(),
}


@pytest.mark.parametrize("n", [1, 2, 17, SMALL - 1, SMALL, N_LONG])
@pytest.mark.parametrize("kind", KINDS)
def test_sorted_like_numpy(kind, n):
    values = KINDS[kind](np.random.default_rng(n), n)
    before = values.copy()
    ordered, weights = sort_values(values)
    np.testing.assert_array_equal(ordered, np.sort(values))
    assert weights is None
    assert not np.shares_memory(ordered, values)
    np.testing.assert_array_equal(values, before)


@pytest.mark.parametrize("n", [1, 2, 17, SMALL - 1, SMALL, N_LONG])
@pytest.mark.parametrize("kind", KINDS)
def test_weights_follow_their_values(kind, n):
    rng = np.random.default_rng(n)
    values, weights = KINDS[kind](rng, n), rng.random(n)
    before = weights.copy()
    ordered, moved = sort_values(values, weights)
    # The sort is stable, so even among equal values the weights have one order only.
    order = np.argsort(values, kind="stable")
    np.testing.assert_array_equal(ordered, values[order])
    np.testing.assert_array_equal(moved, weights[order])
    assert not np.shares_memory(moved, weights)
    np.testing.assert_array_equal(weights, before)


def test_read_only_values_are_welcome():
    values = np.random.default_rng(0).standard_normal(N_LONG)
    values.flags.writeable = False
    ordered, moved = sort_values(values, values)
    np.testing.assert_array_equal(ordered, np.sort(values))
    np.testing.assert_array_equal(moved, ordered)


@pytest.mark.parametrize("weighted", [False, True])
def test_ties_are_merged(weighted):
    rng = np.random.default_rng(0)
    values = np.sort(rng.integers(0, 30, 200).astype(float))
    weights = rng.integers(1, 9, 200).astype(float) if weighted else np.empty(0)
    distinct, sums, starts = scale_and_merge(values, weights, 0.5, 0.25)
    expected, first, place = np.unique(values, return_index=True, return_inverse=True)
    np.testing.assert_array_equal(distinct, expected / 8)
    np.testing.assert_array_equal(sums, np.bincount(place, weights if weighted else None))
    np.testing.assert_array_equal(starts, first)


def test_zeros_of_both_signs_are_ties():
    distinct, sums, starts = scale_and_merge(
        np.array([-1.0, -0.0, 0.0, 0.0]), np.empty(0), 1.0, 1.0
    )
    assert distinct.tolist() == [-1.0, 0.0]
    assert sums.tolist() == [1.0, 3.0]
    assert starts.tolist() == [0, 1]


def test_values_that_scaling_makes_equal_are_ties():
    distinct, sums, starts = scale_and_merge(np.array([0.0, 1e-200, 1.0]), np.empty(0), 1e-200, 1.0)
    assert distinct.tolist() == [0.0, 1e-200]
    assert sums.tolist() == [2.0, 1.0]
    assert starts.tolist() == [0, 2]


@pytest.mark.parametrize("weights", [[], [1.0, 2.0, 3.0]])
def test_distinct_values_keep_their_weights(weights):
    values, weights = np.array([-1.0, 0.0, 2.0]), np.array(weights)
    distinct, sums, starts = scale_and_merge(values, weights, 0.25, 0.5)
    np.testing.assert_array_equal(distinct, values / 8)
    assert sums is None
    assert starts is None


@pytest.mark.parametrize("largest", [1.0, 0.75, 3.0, 1e-300, 1e300, 5e-324, 1.7e308, 2.0**-1074])
def test_scaling_is_by_a_power_of_two_and_exact(largest):
    array = np.array([largest, -largest, 0.0, largest / 2])
    array.flags.writeable = False
    scaled, exponent = scale_down(array, largest)
    assert 0.5 <= scaled[0] < 1.0
    for value, original in zip(scaled[:3], array[:3], strict=True):
        assert Fraction(float(value)) * Fraction(2) ** exponent == Fraction(float(original))


def test_zeros_need_no_scaling():
    scaled, exponent = scale_down(np.zeros(3), 0.0)
    assert exponent == 0
    assert not scaled.any()
