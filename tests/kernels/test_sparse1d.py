"""The nearest vector with few nonzero entries of few distinct values, through both searches."""

import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from clustruct.kernels import COMPILED
from clustruct.kernels.kmeans import sparse1d
from clustruct.kernels.kmeans.sparse1d import project_sparse
from tests.kernels import reference
from tests.kernels.reference import cases

ALWAYS, NEVER = 0, sys.maxsize
DIGITS = Fraction(1, 10**12)

SHAPES = {
    "normal": lambda rng, d: rng.standard_normal(d),
    "cauchy": lambda rng, d: rng.standard_cauchy(d),
    "ties": lambda rng, d: rng.integers(-3, 4, d) / 2.0,
    "two sizes": lambda rng, d: rng.choice([-2.0, -1.0, 0.0, 1.0, 2.0], d),
    "many zeros": lambda rng, d: rng.standard_normal(d) * (rng.random(d) < 0.5),
    "positive": lambda rng, d: rng.integers(1, 9, d) + 0.0,
    "negative": lambda rng, d: -rng.random(d),
    "not negative": lambda rng, d: rng.integers(0, 4, d) + 0.0,
    "all zero": lambda rng, d: np.zeros(d),
    "all magnitudes": lambda rng, d: rng.choice([-1, 1], d) * 10.0 ** rng.uniform(-9, 0, d),
    "tight": lambda rng, d: rng.choice([-1, -0.5, 0.5, 1], d) + 1e-9 * rng.standard_normal(d),
    "tiny": lambda rng, d: 1e-300 * rng.standard_normal(d),
    "huge": lambda rng, d: 1e300 * rng.standard_normal(d),
}


@pytest.fixture(params=["chain", "price"])
def search(request, monkeypatch):
    share = ALWAYS if request.param == "chain" else NEVER
    monkeypatch.setattr(sparse1d, "CHAIN_SHARE", share)


@pytest.fixture(params=SHAPES)
def shape(request):
    return request.param


def sq_distance(values, labels):
    """Squared distance between the values and the nearest vector with these groups, exactly."""
    return reference.exact_cost_of_labels(values, None, labels, zero=-1)


def assert_canonical(values, n_clusters, n_nonzero, labels, centers):
    """At most so many groups and entries, in order, no group empty, centres the means."""
    assert labels.shape == values.shape
    assert labels.dtype == np.intp
    assert np.count_nonzero(labels >= 0) <= n_nonzero
    assert len(centers) <= n_clusters
    assert np.unique(labels[labels >= 0]).tolist() == list(range(len(centers)))
    assert np.isfinite(centers).all()
    assert (centers != 0).all()
    assert (np.diff(centers) >= 0).all()
    means = reference.exact_means(values, None, labels)
    np.testing.assert_allclose(centers, [means[g] for g in range(len(centers))], rtol=4e-15, atol=0)


def assert_nearest(values, n_clusters, n_nonzero, least):
    labels, centers = project_sparse(values, n_clusters, n_nonzero)
    assert_canonical(values, n_clusters, n_nonzero, labels, centers)
    distance = sq_distance(values, labels)
    assert least <= distance <= least * (1 + DIGITS)


@cache
def solved_by_brute_force(shape, d, seed):
    values = SHAPES[shape](np.random.default_rng([seed, d]), d)
    return values, reference.sparse_brute_force(values)


@cache
def solved_by_the_paper(shape, d, seed, n_clusters):
    values = SHAPES[shape](np.random.default_rng([seed, d]), d)
    return values, reference.paper_program(values, n_clusters, d)


@pytest.mark.usefixtures("search")
@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 6, 7, 8] if COMPILED else [2, 4])
def test_nearest_of_all_assignments(shape, d):
    for seed in cases(8 if d < 8 else 4):
        values, least = solved_by_brute_force(shape, d, seed)
        for n_nonzero in range(d + 2):
            for n_clusters in range(1, d + 2):
                expected = least[min(n_nonzero, d), min(n_clusters, d)]
                assert_nearest(values, n_clusters, n_nonzero, expected)


@pytest.mark.usefixtures("search")
def test_equals_the_program_of_the_paper(shape):
    for seed in cases(12):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(9, 61 if COMPILED else 20))
        for n_clusters in rng.integers(1, 9, 2).tolist():
            values, least = solved_by_the_paper(shape, d, seed, n_clusters)
            for n_nonzero in rng.integers(1, d + 1, 5 if COMPILED else 2).tolist():
                assert_nearest(values, n_clusters, n_nonzero, least[n_nonzero])


def compare_searches(values, n_clusters, n_nonzero, monkeypatch):
    """Exact distances by the two searches, which must agree."""
    distances = []
    for share in (ALWAYS, NEVER):
        with monkeypatch.context() as patch:
            patch.setattr(sparse1d, "CHAIN_SHARE", share)
            labels, centers = project_sparse(values, n_clusters, n_nonzero)
        assert_canonical(values, n_clusters, n_nonzero, labels, centers)
        distances.append(sq_distance(values, labels))
    assert max(distances) <= min(distances) * (1 + DIGITS)


@pytest.mark.parametrize("n_clusters", [1, 2, 5, 9])
def test_searches_agree_on_thousands_of_entries(shape, n_clusters, monkeypatch):
    for seed in cases(2):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(2000, 5001)) if COMPILED else 150
        values = SHAPES[shape](rng, d)
        for share in (0.02, 0.2, 0.7, 1.0):
            compare_searches(values, n_clusters, max(1, int(share * d)), monkeypatch)


@pytest.mark.skipif(not COMPILED, reason="takes an hour uncompiled")
@pytest.mark.parametrize(
    ("d", "n_nonzero"),
    [(100_000, 2000), (100_000, 20_000), pytest.param(10**6, 200_000, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("draw", ["standard_normal", "standard_cauchy"])
def test_searches_agree_on_very_many_entries(d, n_nonzero, draw, monkeypatch):
    values = getattr(np.random.default_rng(0), draw)(d)
    for n_clusters in (3, 15, 31):
        compare_searches(values, n_clusters, n_nonzero, monkeypatch)


@pytest.mark.parametrize("n_clusters", [2, 30])
def test_the_faster_search_is_chosen(n_clusters, monkeypatch):
    calls = []
    for name in ("_best_chain", "best_two_sided"):
        function = getattr(sparse1d, name)
        monkeypatch.setattr(
            sparse1d, name, lambda *args, f=function, n=name: calls.append(n) or f(*args)
        )
    values = np.random.default_rng(0).standard_normal(1000 if COMPILED else 300)
    project_sparse(values, n_clusters, 200)
    assert calls == ["_best_chain" if n_clusters == 2 else "best_two_sided"]


@pytest.mark.usefixtures("search")
def test_no_group_is_empty_where_rounding_hides_its_gain():
    # What tight groups gain is far below a last digit of what the entries left out cost.
    for seed in cases(20):
        rng = np.random.default_rng(seed)
        d = 300 if COMPILED else 60
        width = 10.0 ** rng.integers(-14, -7)
        values = rng.choice([-1, -0.5, 0.5, 1], d) + width * rng.standard_normal(d)
        for n_clusters in (3, 5, 7):
            for n_nonzero in (d // 4, d // 2, d - 10):
                labels, centers = project_sparse(values, n_clusters, n_nonzero)
                assert_canonical(values, n_clusters, n_nonzero, labels, centers)


@pytest.mark.usefixtures("search")
def test_equal_values_at_the_edge_of_the_zero_group_are_one_group():
    for seed in cases(100):
        rng = np.random.default_rng(seed)
        values = np.concatenate(
            [
                -1 - 10.0 ** rng.integers(-17, -8) * rng.standard_normal(rng.integers(1, 6)),
                np.full(rng.integers(1, 6), rng.choice([0.9, 1.0, 1 + 1e-12])),
                np.full(rng.integers(0, 5), 0.999999),
                rng.choice([-0.5, 0.5, 0.8], rng.integers(0, 15)),
            ]
        )
        for n_clusters in range(1, 5):
            for n_nonzero in range(1, min(len(values), 12)):
                labels, centers = project_sparse(values, n_clusters, n_nonzero)
                assert_canonical(values, n_clusters, n_nonzero, labels, centers)
                for value in np.unique(values):
                    kept = labels[(values == value) & (labels >= 0)]
                    assert len(np.unique(kept)) <= 1


@pytest.mark.usefixtures("search")
@pytest.mark.parametrize("n_clusters", [1, 2, 3])
@pytest.mark.parametrize(
    ("n_nonzero", "expected"),
    [(0, [-1, -1, -1, -1]), (1, [0, -1, -1, -1]), (2, [0, -1, 0, -1]), (3, [0, -1, 0, 0])],
)
def test_first_ones_among_equals_are_kept(n_clusters, n_nonzero, expected):
    labels, centers = project_sparse(np.array([1.0, 0.5, 1.0, 1.0]), n_clusters, n_nonzero)
    assert labels.tolist() == expected
    assert centers.tolist() == ([1.0] if n_nonzero else [])


@pytest.mark.parametrize("values", [[1e300, 3.3e-20, -1e300], [1e300, -1e-300, 1e-300, 2e300]])
def test_no_group_is_lost_in_a_range_wider_than_that_of_doubles(values):
    values = np.array(values)
    for n_clusters in (2, 3, 4):
        for n_nonzero in (2, 3, 4):
            labels, centers = project_sparse(values, n_clusters, n_nonzero)
            assert np.unique(labels[labels >= 0]).tolist() == list(range(len(centers)))
            assert np.count_nonzero(labels >= 0) <= n_nonzero


def test_input_is_left_alone():
    values = np.random.default_rng(0).standard_normal(3000)
    values.flags.writeable = False
    project_sparse(values, 3, 100)


def test_threads_give_the_same_bits():
    rng = np.random.default_rng(0)
    tasks = []
    for _ in cases(32):
        d = int(rng.choice([30, 500, 5000 if COMPILED else 100]))
        tasks.append((rng.standard_normal(d), int(rng.integers(1, 8)), int(rng.integers(1, d))))
    alone = [project_sparse(*task) for task in tasks]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda task: project_sparse(*task), tasks))
    for one, other in zip(alone, together, strict=True):
        for left, right in zip(one, other, strict=True):
            np.testing.assert_array_equal(left, right)
