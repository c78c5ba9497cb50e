"""The references agree with each other and with fractions, far beyond what is asked of kernels."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from tests import exact
from tests.kernels import reference
from tests.kernels.reference import SHAPES, WEIGHTINGS


@pytest.fixture(params=[name for name in SHAPES if name not in ("tiny", "huge")])
def shape(request):
    return SHAPES[request.param]


@pytest.fixture(params=list(WEIGHTINGS))
def weighting(request):
    return WEIGHTINGS[request.param]


def test_integers_are_the_numbers(shape):
    rng = np.random.default_rng(0)
    values = np.append(shape(rng, 30), [0.0, 5e-324, -1e-310, 1e300])
    integers, exponent = reference.as_integers(values)
    for value, integer in zip(values, integers, strict=True):
        assert Fraction(float(value)) == integer * Fraction(2) ** exponent


def test_zeros_are_integers():
    assert reference.as_integers(np.zeros(2))[0] == [0, 0]


def test_interval_costs_are_right_to_the_last_digit(shape, weighting):
    rng = np.random.default_rng(1)
    values, weights = np.sort(shape(rng, 9)), weighting(rng, 9)
    costs = reference.interval_costs(values, weights)
    weights = reference.ones_for(values, weights)
    for i in range(10):
        for j in range(10):
            exact = reference.exact_cost(values[i:j], weights[i:j]) if i <= j else np.inf
            assert costs[i, j] == float(exact)


def test_cost_of_labels_is_exact(shape, weighting):
    rng = np.random.default_rng(2)
    values, weights, labels = shape(rng, 12), weighting(rng, 12), rng.integers(0, 3, 12)
    cost = reference.exact_cost_of_labels(values, weights, labels)
    weights = reference.ones_for(values, weights)
    groups = [(values[labels == label], weights[labels == label]) for label in range(3)]
    assert cost == sum(reference.exact_cost(*group) for group in groups)
    about_zero = reference.exact_cost_of_labels(values, weights, labels, zero=1)
    members, masses = ([Fraction(float(x)) for x in array] for array in groups[1])
    squares = sum(w * x**2 for x, w in zip(members, masses, strict=True))
    assert about_zero == cost - reference.exact_cost(*groups[1]) + squares


def test_means_are_right_to_the_last_digit(shape, weighting):
    rng = np.random.default_rng(2)
    values, weights, labels = shape(rng, 12), weighting(rng, 12), rng.integers(0, 3, 12)
    means = reference.exact_means(values, weights, labels)
    weights = [Fraction(float(w)) for w in reference.ones_for(values, weights)]
    for label, mean in means.items():
        pairs = [
            (w * Fraction(float(x)), w)
            for x, w, other in zip(values, weights, labels, strict=True)
            if other == label
        ]
        first, total = (sum(column) for column in zip(*pairs, strict=True))
        assert np.isnan(mean) if total == 0 else mean == float(first / total)


def test_dynamic_program_and_both_brute_forces_agree(shape, weighting):
    rng = np.random.default_rng(3)
    for n in (1, 2, 5, 8):
        values, weights = np.sort(shape(rng, n)), weighting(rng, n)
        least = [
            float(reference.brute_force(values, reference.ones_for(values, weights), n_groups))
            for n_groups in range(1, n + 3)
        ]
        for solve in (reference.fast_brute_force, reference.dynamic_program):
            np.testing.assert_allclose(solve(values, weights, n + 2), least, rtol=4e-15, atol=0)


@pytest.mark.parametrize(
    "values", [[2, -1, 0, 2, -3], [0.1, 0.2, -0.7, 1e-9, 0.1], [0, 0, 0, 0, 1]]
)
def test_sparse_brute_force_is_over_all_assignments(values):
    exact = [Fraction(float(value)) for value in values]
    least = reference.sparse_brute_force(np.array(values, dtype=float))
    for n_groups, n_nonzero in product(range(1, 4), range(6)):
        distances = []
        for labels in product(range(n_groups + 1), repeat=5):
            if 5 - labels.count(0) > n_nonzero:
                continue
            distance = sum(x**2 for x, label in zip(exact, labels, strict=True) if label == 0)
            for group in range(1, n_groups + 1):
                members = [x for x, label in zip(exact, labels, strict=True) if label == group]
                distance += reference.exact_cost(members, [1] * len(members)) if members else 0
            distances.append(distance)
        assert least[n_nonzero, n_groups] == min(distances)


def test_program_of_the_paper_agrees_with_brute_force():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(1, 7))
        values = rng.integers(-4, 5, d) / 2.0 if seed % 2 else rng.standard_normal(d)
        least = reference.sparse_brute_force(values)
        for n_groups in range(1, d + 1):
            assert reference.paper_program(values, n_groups, d) == least[:, n_groups].tolist()


# ---- Rational arithmetic.


@pytest.mark.parametrize("seed", range(20))
def test_least_costs_equal_those_of_all_cuts(seed):
    rng = np.random.default_rng(seed)
    values = 1.0 + np.spacing(1.0) * rng.integers(0, 9, 7)
    weights = None if seed % 2 else 10.0 ** rng.uniform(-30.0, 30.0, 7)
    least = exact.least_costs(values, weights, 8)
    order = np.argsort(values)
    masses = reference.ones_for(values, weights)
    for n_groups in range(1, 9):
        assert least[n_groups - 1] == reference.brute_force(
            values[order], masses[order], min(n_groups, 7)
        )
    assert least[0] == exact.total_cost(values, weights)
    labels = rng.integers(0, 3, 7)
    about = exact.cost_about(values, weights, labels, [1.0, 2.0, 1.5])
    means = [exact.exact_means(values, weights, labels).get(label, 0.0) for label in range(3)]
    least_about = reference.exact_cost_of_labels(values, weights, labels)
    assert least_about <= exact.cost_about(values, weights, labels, means) <= about


@pytest.mark.parametrize("seed", range(5))
def test_least_sparse_costs_equal_those_of_all_assignments(seed):
    rng = np.random.default_rng(seed)
    values = rng.choice([-1.0, 0.0, 1.0], 6) + np.spacing(1.0) * rng.integers(0, 5, 6)
    everything = reference.sparse_brute_force(values)
    for n_groups in (1, 2, 3):
        least = exact.least_sparse_costs(values, n_groups, 6)
        assert least == [everything[k, n_groups] for k in range(7)]
    assert least[0] == exact.sum_of_squares(values)
