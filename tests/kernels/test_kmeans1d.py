"""Exact k-means of numbers: the optimum through every search, and the groups in canonical form."""

import math
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from clustruct.kernels import COMPILED
from clustruct.kernels.cuts import penalised
from clustruct.kernels.kmeans import kmeans1d
from clustruct.kernels.kmeans.kmeans1d import cluster_values
from tests.kernels import reference
from tests.kernels.reference import SHAPES, WEIGHTINGS, cases, problem

ALWAYS, NEVER = 0, sys.maxsize
# Costs are resolved to about this share of the second moment of all values about their median.
RESOLUTION = 2.0**-96


def without_vectors(monkeypatch):
    """Leave no vector to ``vectors``, which takes the short ones."""
    for limit in ("SHORT", "KEPT_LENGTH"):
        monkeypatch.setattr(kmeans1d, limit, 0)


@pytest.fixture(params=["vectors", "chain", "penalised", "secants"])
def search(request, monkeypatch):
    """One of the ways to find the boundaries."""
    if request.param == "vectors":
        return
    without_vectors(monkeypatch)
    share = ALWAYS if request.param == "chain" else NEVER
    monkeypatch.setattr(kmeans1d, "CHAIN_SHARE", share)
    if request.param == "secants":
        monkeypatch.setattr(penalised, "N_GUESSES", 0)


@pytest.fixture(params=SHAPES)
def shape(request):
    return request.param


@pytest.fixture(params=WEIGHTINGS)
def weighting(request):
    return request.param


def assert_canonical(values, weights, n_clusters, found):
    """Groups are in order, none is empty, and equal values share a label."""
    labels, centers, sizes, _ = found
    counted = values if weights is None else values[weights > 0]
    assert centers.shape == sizes.shape == (min(n_clusters, len(np.unique(counted))),)
    assert (np.diff(centers) >= 0).all()
    assert (sizes > 0).all()
    np.testing.assert_array_equal(sizes, np.bincount(labels, minlength=len(centers)))
    assert (np.diff(labels[np.argsort(values, kind="stable")]) >= 0).all()
    distinct, place = np.unique(values, return_inverse=True)
    shared = np.zeros(len(distinct), dtype=np.intp)
    shared[place] = labels
    np.testing.assert_array_equal(labels, shared[place])


def assert_optimal(given, n_clusters, found, floor=0.0):
    """Labels cost no more than the optimum, and the inertia is what they cost, to 12 digits."""
    labels, centers, _, inertia = found
    least = given.least[n_clusters - 1]
    cost = reference.exact_cost_of_labels(given.scaled, given.weights, labels)
    assert cost <= least * (1 + 1e-12) + floor
    assert cost >= least * (1 - 1e-13)
    try:
        expected = math.ldexp(float(cost), 2 * given.exponent)
    except OverflowError:
        expected = math.inf
    margin = max(math.ldexp(floor, 2 * given.exponent) if floor else 0.0, 5e-324)
    assert inertia == pytest.approx(expected, rel=1e-12, abs=margin)
    counted = slice(None) if given.weights is None else given.weights > 0
    values, weights = (
        given.scaled[counted],
        None if given.weights is None else given.weights[counted],
    )
    median = abs(np.median(values))
    for label, mean in reference.exact_means(values, weights, labels[counted]).items():
        center = math.ldexp(centers[label], -given.exponent)
        margin = 1e-15 * median + 4e-15 * np.ptp(values[labels[counted] == label])
        assert center == pytest.approx(mean, rel=1e-15, abs=margin)


def compare(shape, weighting, n, seed, most, solve):
    """Compare the clusterings of one random data set with the reference; return how many."""
    given = problem(shape, weighting, n, seed, most, solve)
    floor = 0.0
    if shape == "tighter" and weighting in ("decades", "a few heavy"):
        # Nine digits in the values and twelve in the weights: more than pairs of doubles resolve.
        masses = reference.ones_for(given.scaled, given.weights)
        spread = given.scaled - np.median(given.scaled)
        floor = RESOLUTION * float((masses * spread**2).sum())
    numbers = {1, 2, 3, 5, 8, 13, most // 2, most - 1, most} & set(range(1, most + 1))
    for n_clusters in sorted(numbers):
        found = cluster_values(given.values, given.weights, n_clusters)
        assert_canonical(given.values, given.weights, n_clusters, found)
        assert_optimal(given, n_clusters, found, floor)
    return len(numbers)


@pytest.mark.usefixtures("search")
def test_equals_brute_force_over_all_contiguous_partitions(shape, weighting):
    for seed in cases(30):
        n = seed % 12 + 1 if COMPILED else 10
        compare(shape, weighting, n, seed, n + 1, reference.fast_brute_force)


@pytest.mark.usefixtures("search")
def test_equals_an_independent_dynamic_program(shape, weighting):
    for seed in cases(6):
        n = (20, 30, 50, 80, 130, 300)[seed] if COMPILED else 30
        compare(shape, weighting, n, seed, 16, reference.dynamic_program)


@pytest.mark.usefixtures("search")
def test_many_groups(shape):
    n = 120 if COMPILED else 30
    for seed in cases(3):
        given = problem(shape, "unweighted", n, seed, n, reference.dynamic_program)
        for n_clusters in (n // 8, n // 2, n - 1):
            found = cluster_values(given.values, None, n_clusters)
            assert_canonical(given.values, None, n_clusters, found)
            assert_optimal(given, n_clusters, found)


@pytest.mark.parametrize("block", [1, 2, 4])
def test_any_table_of_moments_gives_the_same_groups(block, monkeypatch):
    without_vectors(monkeypatch)
    monkeypatch.setattr(kmeans1d, "BLOCK", block)
    monkeypatch.setattr(kmeans1d, "CHAIN_SHARE", ALWAYS)
    for seed in cases(10):
        given = problem("normal", "decades", 97, seed, 9, reference.dynamic_program)
        for n_clusters in (2, 9):
            found = cluster_values(given.values, given.weights, n_clusters)
            assert_optimal(given, n_clusters, found)


def test_price_takes_over_where_the_chain_search_gives_up(monkeypatch):
    without_vectors(monkeypatch)
    monkeypatch.setattr(kmeans1d, "CHAIN_SHARE", ALWAYS)
    monkeypatch.setattr(kmeans1d, "LEAST_STATES", 1)
    monkeypatch.setattr(kmeans1d, "STATES_SHARE", sys.maxsize)
    calls = []
    best_partition = kmeans1d.best_partition
    monkeypatch.setattr(
        kmeans1d, "best_partition", lambda *args: calls.append(1) or best_partition(*args)
    )
    given = problem("uniform", "unweighted", 100, 0, 6, reference.dynamic_program)
    found = cluster_values(given.values, None, 6)
    assert calls == [1]
    assert_optimal(given, 6, found)


@pytest.mark.parametrize("n_clusters", [3, 40])
def test_the_faster_search_is_chosen(n_clusters, monkeypatch):
    without_vectors(monkeypatch)
    calls = []
    for name in ("cheapest_chain", "best_partition"):
        function = getattr(kmeans1d, name)
        monkeypatch.setattr(
            kmeans1d, name, lambda *args, f=function, n=name: calls.append(n) or f(*args)
        )
    cluster_values(np.random.default_rng(0).standard_normal(500), None, n_clusters)
    assert calls == ["cheapest_chain" if n_clusters == 3 else "best_partition"]


@pytest.mark.usefixtures("search")
@pytest.mark.parametrize("n_clusters", [1, 2, 3, 4, 7])
def test_fewer_distinct_values_give_fewer_groups(n_clusters):
    values = np.array([2.0, 5.0, 2.0, 2.0, -1.0, 5.0])
    labels, centers, sizes, inertia = cluster_values(values, None, n_clusters)
    assert centers.shape == sizes.shape == (min(3, n_clusters),)
    if n_clusters >= 3:
        assert labels.tolist() == [1, 2, 1, 1, 0, 2]
        assert centers.tolist() == [-1.0, 2.0, 5.0]
        assert sizes.tolist() == [1, 3, 2]
        assert inertia == 0.0


@pytest.mark.usefixtures("search")
@pytest.mark.parametrize("value", [0.0, -0.0, 3.5, 1e300, 5e-324, -1.7e308])
def test_equal_values_are_one_group(value):
    for weights in (None, np.array([0.1, 0.2, 0.7])):
        labels, centers, sizes, inertia = cluster_values(np.full(3, value), weights, 2)
        assert labels.tolist() == [0, 0, 0]
        assert centers.tolist() == [value]
        assert sizes.tolist() == [3]
        assert inertia == 0.0


def test_a_group_for_every_value_costs_nothing(shape, weighting):
    for seed in cases(10):
        rng = np.random.default_rng(seed)
        values, weights = SHAPES[shape](rng, 15), WEIGHTINGS[weighting](rng, 15)
        _, centers, _, inertia = cluster_values(values, weights, 15)
        counted = values if weights is None else values[weights > 0]
        np.testing.assert_array_equal(centers, np.unique(counted))
        assert inertia == 0.0


@pytest.mark.parametrize(
    "values",
    [
        [-1e300, -1e-300, 1e300],
        [-1e300, 3.3e-20, 1e300],
        [1.234e-15, 1e300, 1.5e300],
        [-1.7e308, -1e-308, 1e-308, 1.7e308],
    ],
)
def test_no_group_is_lost_in_a_range_wider_than_that_of_doubles(values):
    values = np.array(values)
    labels, centers, sizes, _ = cluster_values(values, None, len(values))
    assert (sizes > 0).all()
    assert centers.shape == sizes.shape
    np.testing.assert_array_equal(sizes, np.bincount(labels, minlength=len(centers)))


@pytest.mark.usefixtures("search")
def test_integer_weights_are_repetitions(shape):
    for seed in cases(8):
        rng = np.random.default_rng(seed)
        values, repeats = SHAPES[shape](rng, 40), rng.integers(1, 5, 40)
        for n_clusters in (1, 3, 6):
            weighted = cluster_values(values, repeats.astype(float), n_clusters)
            repeated = cluster_values(np.repeat(values, repeats), None, n_clusters)
            np.testing.assert_array_equal(np.repeat(weighted[0], repeats), repeated[0])
            np.testing.assert_allclose(weighted[1], repeated[1], rtol=1e-14)
            assert repeated[2].sum() == repeats.sum()
            assert weighted[3] == pytest.approx(repeated[3], rel=1e-12)


@pytest.mark.usefixtures("search")
def test_zero_weights_are_as_good_as_absence(shape):
    for seed in cases(8):
        rng = np.random.default_rng(seed)
        values, weights = SHAPES[shape](rng, 60), WEIGHTINGS["zeros"](rng, 60)
        counted = weights > 0
        for n_clusters in (1, 3, 6):
            found = cluster_values(values, weights, n_clusters)
            alone = cluster_values(values[counted], weights[counted], n_clusters)
            np.testing.assert_array_equal(found[0][counted], alone[0])
            np.testing.assert_array_equal(found[1], alone[1])
            assert found[3] == alone[3]
            np.testing.assert_array_equal(found[2], np.bincount(found[0]))
            # The others go where the nearest centre is.
            distances = np.abs(values[~counted, None] / 2 - found[1] / 2)
            chosen = np.take_along_axis(distances, found[0][~counted, None], axis=1)[:, 0]
            np.testing.assert_array_equal(chosen, distances.min(axis=1))


def test_zero_weights_far_apart():
    values = np.array([-1.7e308, 1.7e308, 1.5e308, -1.0])
    labels, _, sizes, _ = cluster_values(values, np.array([1.0, 1.0, 0.0, 0.0]), 2)
    assert labels.tolist() == [0, 1, 1, 0]
    assert sizes.tolist() == [2, 2]


def test_a_value_of_weight_zero_goes_with_its_equals():
    # Neighbouring doubles: the centres between them are rounded.
    step = np.finfo(float).eps
    values = 1 + step * np.array([0, 1, 2, 3, 0, 1, 2, 3])
    weights = np.repeat([1.0, 0.0], 4)
    labels, _, _, _ = cluster_values(values, weights, 2)
    np.testing.assert_array_equal(labels[:4], labels[4:])


@pytest.mark.parametrize("factor", [2.0**-900, 0.125, 4.0, 2.0**900])
@pytest.mark.parametrize("weight_factor", [2.0**-900, 1.0, 2.0**900])
def test_powers_of_two_change_no_digit(factor, weight_factor):
    rng = np.random.default_rng(0)
    values, weights = rng.standard_normal(200), rng.random(200)
    plain = cluster_values(values, weights, 5)
    scaled = cluster_values(values * factor, weights * weight_factor, 5)
    np.testing.assert_array_equal(plain[0], scaled[0])
    np.testing.assert_array_equal(plain[1] * factor, scaled[1])
    with np.errstate(over="ignore", under="ignore"):
        assert np.float64(plain[3]) * factor * weight_factor * factor == scaled[3]


def test_input_is_left_alone():
    rng = np.random.default_rng(0)
    for n in (50, 5000):
        values, weights = rng.standard_normal(n), rng.random(n)
        for array in (values, weights):
            array.flags.writeable = False
        cluster_values(values, weights, 3)
        cluster_values(values, None, 3)


def test_threads_give_the_same_bits():
    rng = np.random.default_rng(0)
    tasks = []
    for seed in cases(48):
        n = int(rng.choice([30, 500, 20_000 if COMPILED else 600]))
        weights = rng.random(n) if seed % 2 else None
        tasks.append((rng.standard_normal(n), weights, int(rng.integers(2, 9))))
    alone = [cluster_values(*task) for task in tasks]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            together = list(pool.map(lambda task: cluster_values(*task), tasks))
            for one, other in zip(alone, together, strict=True):
                for left, right in zip(one, other, strict=True):
                    np.testing.assert_array_equal(left, right)


# ---- Long arrays, where no reference is fast enough: one search against the other.

LONG_SHAPES = {
    **{name: SHAPES[name] for name in ("normal", "t2", "cauchy", "lognormal", "offset", "tighter")},
    "rounded": lambda rng, n: rng.standard_normal(n).round(3),
}


def both_searches(values, weights, n_clusters, monkeypatch):
    found = []
    for share in (ALWAYS, NEVER):
        with monkeypatch.context() as patch:
            patch.setattr(kmeans1d, "CHAIN_SHARE", share)
            found.append(cluster_values(values, weights, n_clusters))
    return found


def assert_searches_agree(shape, n, n_clusters, weighted, monkeypatch):
    rng = np.random.default_rng(n)
    values = LONG_SHAPES[shape](rng, n)
    weights = rng.random(n) if weighted else None
    chain, price = both_searches(values, weights, n_clusters, monkeypatch)
    assert chain[3] == pytest.approx(price[3], rel=1e-12, abs=0)
    for found in (chain, price):
        assert_canonical(values, weights, n_clusters, found)
    np.testing.assert_allclose(chain[1], price[1], rtol=1e-6)
    return values, weights, chain


@pytest.mark.skipif(not COMPILED, reason="takes minutes uncompiled")
@pytest.mark.parametrize("shape", LONG_SHAPES)
@pytest.mark.parametrize(
    ("n_clusters", "weighted"), [(2, False), (5, True), (15, False), (64, True)]
)
def test_searches_agree_on_a_hundred_thousand_values(shape, n_clusters, weighted, monkeypatch):
    values, weights, (labels, _, _, inertia) = assert_searches_agree(
        shape, 100_000, n_clusters, weighted, monkeypatch
    )
    cost = reference.exact_cost_of_labels(values, weights, labels)
    assert inertia == pytest.approx(float(cost), rel=1e-12, abs=0)


@pytest.mark.skipif(not COMPILED, reason="takes an hour uncompiled")
@pytest.mark.parametrize("shape", LONG_SHAPES)
@pytest.mark.parametrize(
    ("n_clusters", "weighted"),
    [
        (15, False),
        pytest.param(5, True, marks=pytest.mark.slow),
        pytest.param(64, False, marks=pytest.mark.slow),
    ],
)
def test_searches_agree_on_a_million_values(shape, n_clusters, weighted, monkeypatch):
    assert_searches_agree(shape, 1_000_000, n_clusters, weighted, monkeypatch)
