"""Short vectors in one work space: the groups of the slower searches to the last bit, or none."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from clustruct.kernels import COMPILED
from clustruct.kernels.kmeans.kmeans1d import ldexp, resolve_groups
from clustruct.kernels.kmeans.vectors import Vectors, cluster_vector
from tests.kernels.reference import SHAPES, WEIGHTINGS, cases

SIZES = (1, 2, 3, 7, 30, 200, 700, 3100) if COMPILED else (1, 2, 9, 40)
NUMBERS = (1, 2, 3, 8, 16, 60)


def cluster_alone(values, weights, n_clusters):
    """Groups and inertia of one vector, None if undecided."""
    found = cluster_vector(values, weights, n_clusters)
    return None if found is None else (*found[:3], ldexp(*found[3:]))


def assert_same(found, expected):
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_groups_of_the_slower_searches_to_the_last_bit(shape, weighting):
    for seed in cases(2):
        for n in SIZES:
            rng = np.random.default_rng([seed, n])
            values, weights = SHAPES[shape](rng, n), WEIGHTINGS[weighting](rng, n)
            for n_clusters in NUMBERS:
                found = cluster_alone(values, weights, n_clusters)
                if found is None:
                    continue
                if shape == "tighter" and weighting in ("decades", "a few heavy"):
                    # More digits than pairs of doubles resolve: equally good up to rounding.
                    least = resolve_groups(values, weights, n_clusters)[3]
                    assert found[3] == pytest.approx(least, rel=1e-14, abs=0.0)
                else:
                    assert_same(found, resolve_groups(values, weights, n_clusters))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_clusters", [2, 4, 16, 64])
def test_ordinary_vectors_are_decided(n_clusters, weighted):
    for seed in cases(10):
        rng = np.random.default_rng(seed)
        n = 1500 if COMPILED else 80
        weights = rng.random(n) if weighted else None
        assert cluster_vector(rng.standard_normal(n), weights, n_clusters) is not None


@pytest.mark.parametrize("n_clusters", [2, 3, 5])
def test_equally_good_partitions_are_left_to_the_slower_searches(n_clusters):
    # An even lattice of seven: the odd one may go to any group.
    lattice = np.arange(7.0)
    found = cluster_alone(lattice, None, n_clusters)
    if found is not None:
        assert_same(found, resolve_groups(lattice, None, n_clusters))


@pytest.mark.parametrize("value", [0.0, 5e-324, 1e-290])
def test_numbers_near_the_least_double_are_left_to_the_slower_searches(value):
    assert cluster_vector(np.array([value, -value, value]), None, 2) is None


def test_weights_that_drown_each_other_are_left_to_the_slower_searches():
    assert cluster_vector(np.arange(4.0), np.array([1e300, 1e-300, 1.0, 1.0]), 2) is None


@pytest.fixture(scope="module")
def matrix():
    rng = np.random.default_rng(0)
    values = rng.standard_normal((9, 600 if COMPILED else 40))
    values[3] = values[3].round(1)
    values[5] = 2.0
    weights = rng.random(values.shape)
    weights[:, ::5] = 0.0
    return values, weights


def cluster(vectors, values, weights, numbers, dtype=np.uint8):
    """Labels, centres, sizes, numbers of groups, inertias and doubts of all rows."""
    n_rows, n = values.shape
    numbers = np.array(numbers)
    labels = {
        kind: np.zeros((len(numbers), n_rows, n) if kind == dtype else (0, 0, 0), dtype=kind)
        for kind in (np.uint8, np.uint16, np.intp)
    }
    centers, sizes = np.zeros((n_rows, numbers.sum())), np.zeros((n_rows, numbers.sum()), np.int64)
    found, inertia = np.zeros((n_rows, len(numbers)), np.int64), np.zeros((n_rows, len(numbers)))
    exponents, undecided = np.zeros(n_rows, np.int64), np.zeros(n_rows, np.uint8)
    vectors.cluster(
        values, values.view(np.int64), np.empty((0, 0)) if weights is None else weights, numbers,
        *labels.values(), centers, sizes, found, inertia, exponents, undecided,
    )  # fmt: skip
    inertia = np.ldexp(inertia, exponents[:, None])
    return labels[dtype], centers, sizes, found, inertia, undecided


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.intp])
@pytest.mark.parametrize("weighting", ["none", "shared", "own"])
def test_rows_one_by_one(matrix, dtype, weighting):
    values, weights = matrix
    weights = {"none": None, "shared": weights[:1], "own": weights}[weighting]
    numbers = (2, 5, 12)
    vectors = Vectors(values.shape[1], 12)
    labels, centers, sizes, found, inertia, undecided = cluster(
        vectors, values, weights, numbers, dtype
    )
    ends = np.cumsum(numbers)
    assert not undecided[[0, 1, 2, 4, 6, 7, 8]].any()
    for row in np.flatnonzero(undecided == 0):
        alone = None if weights is None else weights[min(row, len(weights) - 1)]
        for k, number in enumerate(numbers):
            expected = resolve_groups(values[row], alone, number)
            n_found = found[row, k]
            part = slice(ends[k] - number, ends[k] - number + n_found)
            beyond = slice(ends[k] - number + n_found, ends[k])
            assert_same(
                (labels[k, row], centers[row, part], sizes[row, part], inertia[row, k]), expected
            )
            assert np.isnan(centers[row, beyond]).all()
            assert (sizes[row, beyond] == 0).all()


def test_threads_and_used_work_space_give_the_same_bits(matrix):
    values, weights = matrix
    vectors = Vectors(2 * values.shape[1], 20)
    alone = cluster(vectors, values, weights, (2, 5))
    with ThreadPoolExecutor(4) as pool:
        spaces = [Vectors(values.shape[1], 5) for _ in range(8)]
        together = list(pool.map(lambda v: cluster(v, values, weights, (2, 5)), spaces))
    for other in [*together, cluster(vectors, values, weights, (2, 5))]:
        assert_same(other, alone)


@pytest.mark.skipif(not COMPILED, reason="many values: too slow uncompiled")
@pytest.mark.parametrize("weighted", [False, True])
def test_errors_that_do_not_add_up_leave_no_doubt(weighted):
    """Each boundary alone may be wrong by rounding in too many ways; all together may not."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        n, n_clusters = 60_000, 512
        values, weights = rng.random(n), rng.random(n) if weighted else None
        found = cluster_alone(values, weights, n_clusters)
        assert_same(found, resolve_groups(values, weights, n_clusters))
