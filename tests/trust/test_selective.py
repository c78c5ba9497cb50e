"""Selective inference: the truncation by brute force, and p-values that are uniform."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import kstest, norm

import clustruct as cs
from clustruct.kernels.kmeans.kmeans1d import cluster_values
from clustruct.trust import selective
from clustruct.trust.selective import Contrast, _is_group, selective_p_value, tail, truncation


def exact_truncation(x, std_error, contrast, labels, n_clusters):
    """Where no other partition has a lower cost, by the roots of quadratics for all of them."""
    weights = (std_error.min() / std_error) ** 2

    def quadratic(partition):
        # cost(t) = sum of squares of x(t) about the means of the groups of the partition
        total = np.zeros(3)
        for q in set(partition):
            mine = np.array(partition) == q
            w = weights[mine]
            base = (x - contrast.difference * contrast.direction)[mine]
            base = base - np.average(base, weights=w)
            slope = contrast.direction[mine] - np.average(contrast.direction[mine], weights=w)
            total += [w @ slope**2, 2 * w @ (base * slope), w @ base**2]
        return total

    own = quadratic(labels)
    outside = set()
    for partition in product(range(n_clusters), repeat=x.size):
        a, b, c = quadratic(partition) - own
        root = b * b - 4 * a * c
        # One without a square is as large everywhere, and so not smaller anywhere.
        if a > 1e-12 and root > 0:
            ends = (-b - np.sqrt(root)) / (2 * a), (-b + np.sqrt(root)) / (2 * a)
            outside.add((round(ends[0], 12), round(ends[1], 12)))
    return np.array(sorted(outside)).reshape(-1, 2)


@pytest.mark.parametrize("seed", range(3))
def test_truncation_against_all_partitions(seed):
    rng = np.random.default_rng(seed)
    x, errors = 2.0 * rng.standard_normal(6), rng.uniform(0.3, 0.9, 6)
    weights = (errors.min() / errors) ** 2
    labels = cs.kmeans_1d(x, 3, sample_weight=weights).labels
    first, second = labels == 0, labels == 1
    contrast = Contrast.of(x, errors, first, second)

    def found(t):
        moved = cs.kmeans_1d(
            x + (t - contrast.difference) * contrast.direction, 3, sample_weight=weights
        ).labels
        return _is_group(moved, first) and _is_group(moved, second)

    bounds = truncation(found, contrast.difference, contrast.std_error)
    # The third group is what is left, so that these are the same partitions.
    outside = exact_truncation(x, errors, contrast, labels, 3)
    reach = np.hypot(contrast.difference, 8 * contrast.std_error)  # farther out is no mass
    t = np.linspace(-reach, reach, 997)[:, None]
    inside = ((bounds[:, 0] <= t) & (t <= bounds[:, 1])).any(axis=1)
    np.testing.assert_array_equal(inside, ~((outside[:, 0] < t) & (t < outside[:, 1])).any(axis=1))
    assert 0 < inside.sum() < t.size


def test_tail_against_quadrature():
    bounds = np.array([[-np.inf, -2.5], [-1.0, -0.2], [0.5, 4.0], [6.0, np.inf]])
    grid = np.linspace(-12, 12, 240_001)
    inside = np.zeros(grid.size, dtype=bool)
    for low, high in bounds:
        inside |= (grid >= low) & (grid <= high)
    density = norm.pdf(grid) * inside
    for seen in (-0.7, 1.3, 6.5):
        expected = density[np.abs(grid) >= abs(seen)].sum() / density.sum()
        assert tail(bounds, seen) == pytest.approx(expected, rel=1e-3)


def test_tail_far_out_keeps_its_digits():
    # P(Z > 41) / P(Z > 40), by the asymptotic series of Mills' ratio.
    expected = np.exp(-40.5) * (40 / 41) * (1 - 1 / 41**2) / (1 - 1 / 40**2)
    assert tail(np.array([[40.0, np.inf]]), 41.0) == pytest.approx(expected, rel=1e-5)


def p_values(n_problems, seed, spread=0.0):
    """p-values of a random pair of neighbours among groups of values."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n_problems):
        n = int(rng.integers(6, 16))
        errors = rng.uniform(0.5, 1.5, n)
        x = spread * rng.integers(3, size=n) + errors * rng.standard_normal(n)
        weights = (errors.min() / errors) ** 2

        def rule(z, weights=weights):
            return cluster_values(z, weights, 3)[0]

        labels, q = rule(x), int(rng.integers(2))
        found.append(selective_p_value(x, errors, labels == q, labels == q + 1, rule)[1])
    return np.array(found)


def test_p_values_are_uniform_where_nothing_differs(monkeypatch):
    monkeypatch.setattr(selective, "STEPS", 4)  # fast, and still fine enough
    found = p_values(80, 0)
    assert kstest(found, "uniform").pvalue > 0.01
    # A plain test calls nearly all of these groups different.
    assert (found < 0.05).mean() < 0.12


@pytest.mark.slow
def test_p_values_are_uniform_over_many_problems():
    assert kstest(p_values(2000, 1), "uniform").pvalue > 0.01


def test_power_where_groups_are_apart(monkeypatch):
    monkeypatch.setattr(selective, "STEPS", 4)
    assert (p_values(20, 2, spread=8.0) < 0.05).mean() > 0.8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1.0, 2.0]], 2, 1.0), "x has shape"),
        (([1.0, 2.0, 3.0], 2, 0.0), "std_error"),
        (([1.0, 2.0, 3.0], 2, [1.0, np.nan, 1.0]), "std_error"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        cs.compare_groups_1d(*arguments)


def test_bad_options_are_named():
    with pytest.raises(ValueError, match="pairs='some'"):
        cs.compare_groups_1d([1.0, 2.0, 5.0], 2, 1.0, pairs="some")
    with pytest.raises(ValueError, match="names holds 1"):
        cs.compare_groups_1d([1.0, 2.0, 5.0], 2, 1.0, names=["a"])


def test_all_pairs_and_holm():
    tests = cs.compare_groups_1d([0.0, 0.1, 1.0, 1.1, 5.0], 3, 0.3, pairs="all")
    assert [test.labels for test in tests] == [(0, 1), (0, 2), (1, 2)]
    plain = np.array([test.p_value for test in tests])
    order = np.argsort(plain)
    expected = np.minimum(1, np.maximum.accumulate(plain[order] * [3, 2, 1]))
    np.testing.assert_allclose([tests[k].adjusted for k in order], expected)
