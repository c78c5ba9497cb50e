"""project_clustered of vectors: the nearest point, and what always holds of it."""

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError
from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import clustruct as cs
from clustruct.kernels.kmeans import sparse1d
from tests.kernels import reference

numbers = st.one_of(
    st.integers(-8, 8).map(lambda i: i / 2),
    st.floats(-1e3, 1e3).map(lambda x: x if abs(x) > 1e-60 else 0.0),
)
vectors = st.lists(numbers, min_size=1, max_size=24).map(np.array)
counts = st.integers(1, 6)
kept = st.one_of(st.none(), st.integers(0, 26))


def assert_feasible(w, n_clusters, n_nonzero, nearest):
    """Check that the point has its groups, and that everything else is told of this point."""
    point, labels, centers = nearest.point, nearest.labels, nearest.centers
    assert point.shape == w.shape
    assert labels.shape == (len(w),)
    nonzero = labels >= 0
    np.testing.assert_array_equal(point[nonzero], centers[labels[nonzero]])
    assert not point[~nonzero].any()
    assert np.unique(labels[nonzero]).tolist() == list(range(len(centers)))
    if n_nonzero is None:
        assert nonzero.all()
    else:
        # Only the limit on nonzero entries sets any to zero, and it leaves no zero behind.
        assert point[nonzero].all()
        assert np.count_nonzero(nonzero) <= n_nonzero
    if n_clusters is not None:
        assert len(centers) <= n_clusters
    assert (np.diff(centers) >= 0).all()
    assert np.isfinite(point).all()


def sq_distance(w, point, weights=None):
    apart = np.square(w - point)
    return float(apart.sum() if weights is None else apart @ weights)


# ---- The nearest point.


def test_examples():
    w = np.array([3.0, 1.0, 2.5, 1.5, 0.25])
    plain = cs.project_clustered(w, 2)
    assert plain.point.tolist() == [2.75, 11 / 12, 2.75, 11 / 12, 11 / 12]
    sparse = cs.project_clustered(w, 2, n_nonzero=4)
    assert sparse.point.tolist() == [2.75, 1.25, 2.75, 1.25, 0.0]
    assert sparse.labels.tolist() == [1, 0, 1, 0, -1]
    assert sparse.centers.tolist() == [1.25, 2.75]
    assert sparse.sq_distance == 0.3125
    assert sparse.exact


def test_a_smaller_entry_may_be_kept_for_the_sake_of_its_group():
    # The three largest take two values; two of them and a smaller one take nearly one.
    w = np.array([-1.05, 1.0, 1.0, 0.99])
    nearest = cs.project_clustered(w, 1, n_nonzero=3)
    assert nearest.labels.tolist() == [-1, 0, 0, 0]


@pytest.mark.parametrize("share", [0, sys.maxsize])
def test_nearest_of_all_assignments(share, monkeypatch):
    monkeypatch.setattr(sparse1d, "CHAIN_SHARE", share)
    for seed in range(30):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(1, 7))
        w = rng.integers(-3, 4, d) + 0.0 if seed % 2 else rng.standard_normal(d)
        least = reference.sparse_brute_force(w)
        for n_nonzero, n_clusters in product(range(d + 1), range(1, d + 1)):
            nearest = cs.project_clustered(w, n_clusters, n_nonzero=n_nonzero)
            assert_feasible(w, n_clusters, n_nonzero, nearest)
            assert nearest.exact
            expected = float(least[n_nonzero, n_clusters])
            assert nearest.sq_distance == pytest.approx(expected, rel=1e-12, abs=1e-30)
            assert sq_distance(w, nearest.point) == pytest.approx(expected, rel=1e-12, abs=1e-30)


def test_without_a_limit_on_nonzero_entries_it_is_kmeans_1d():
    rng = np.random.default_rng(0)
    w, weights = rng.standard_normal(100), rng.random(100)
    for weight in (None, weights):
        groups = cs.kmeans_1d(w, 5, sample_weight=weight)
        nearest = cs.project_clustered(w, 5, sample_weight=weight)
        np.testing.assert_array_equal(nearest.labels, groups.labels)
        np.testing.assert_array_equal(nearest.centers, groups.centers)
        assert nearest.sq_distance == pytest.approx(groups.inertia, rel=1e-12)
        assert nearest.exact


def test_hard_thresholding():
    w = np.array([0.5, -3.0, 2.0, 0.0, -2.0, 3.0])
    for n_nonzero in range(9):
        nearest = cs.project_clustered(w, None, n_nonzero=n_nonzero)
        assert_feasible(w, None, n_nonzero, nearest)
        assert nearest.exact
        # The first ones among those of equal size stay; zeros are zero anyway.
        order = [1, 5, 2, 4, 0][:n_nonzero]
        expected = np.zeros(6)
        expected[order] = w[order]
        np.testing.assert_array_equal(nearest.point, expected)
        np.testing.assert_array_equal(nearest.centers, np.unique(w[order]))
        assert nearest.sq_distance == np.square(w - expected).sum()


@pytest.mark.parametrize("scale", [2.0**-700, 2.0**-530, 1.0, 2.0**530, 2.0**700])
@pytest.mark.parametrize("n_clusters", [None, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_thresholding_at_any_scale(scale, n_clusters, weighted):
    w = np.array([0.5, -3.0, 2.0, 0.25, -2.5])
    weights = np.array([1.0, 2.0, 1.0, 3.0, 1.0]) if weighted else None
    plain, scaled = (
        cs.project_clustered(v, n_clusters, n_nonzero=3, sample_weight=weights)
        for v in (w, w * scale)
    )
    np.testing.assert_array_equal(scaled.labels, plain.labels)
    np.testing.assert_allclose(scaled.point / scale, plain.point, rtol=1e-15)


def test_hard_thresholding_weighs_the_entries():
    nearest = cs.project_clustered(
        [3.0, -2.0, 1.0, 5.0], None, n_nonzero=2, sample_weight=[1.0, 4.0, 10.0, 0.0]
    )
    assert nearest.point.tolist() == [0.0, -2.0, 1.0, 0.0]
    assert nearest.sq_distance == 9.0
    assert nearest.exact


@pytest.mark.parametrize("w", [[0.0, 0.0, 0.0], [0.0, -0.0, 0.0]])
def test_zeros_are_their_own_projection(w):
    for n_nonzero in (0, 1, 3):
        nearest = cs.project_clustered(w, 2, n_nonzero=n_nonzero)
        assert nearest.point.tolist() == [0.0, 0.0, 0.0]
        assert nearest.labels.tolist() == [-1, -1, -1]
        assert nearest.centers.shape == (0,)
        assert nearest.sq_distance == 0.0
    assert cs.project_clustered(w, 2).labels.tolist() == [0, 0, 0]


def test_tight_groups_among_many_entries():
    # What more groups gain is far below a last digit of what the entries left out cost.
    rng = np.random.default_rng(1)
    w = rng.choice([-1.0, -0.5, 0.5, 1.0], 2000) + 1e-9 * rng.standard_normal(2000)
    for n_clusters in (5, 6, 7):
        nearest = cs.project_clustered(w, n_clusters, n_nonzero=1500)
        assert_feasible(w, n_clusters, 1500, nearest)


# ---- Weights and sparsity together: a search that improves on its start.


def start(w, weights, n_clusters, n_nonzero):
    """Squared distance after keeping the entries that matter most and clustering them."""
    importance = weights * w**2
    order = np.argsort(-importance, kind="stable")
    largest = order[:n_nonzero][importance[order[:n_nonzero]] > 0]
    groups = cs.kmeans_1d(w[largest], n_clusters, sample_weight=weights[largest])
    return groups.inertia + importance.sum() - importance[largest].sum()


def test_weighted_search_is_never_worse_than_its_start():
    better = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(5, 60))
        w, weights = rng.standard_normal(d), rng.lognormal(0.0, 1.0, d)
        n_clusters, n_nonzero = int(rng.integers(1, 6)), int(rng.integers(1, d + 1))
        nearest = cs.project_clustered(w, n_clusters, n_nonzero=n_nonzero, sample_weight=weights)
        assert_feasible(w, n_clusters, n_nonzero, nearest)
        assert not nearest.exact
        expected = sq_distance(w, nearest.point, weights)
        assert nearest.sq_distance == pytest.approx(expected, rel=1e-12)
        limit = start(w, weights, n_clusters, n_nonzero)
        assert nearest.sq_distance <= limit * (1 + 1e-12)
        better += nearest.sq_distance < limit * (1 - 1e-6)
    assert better > 20


@pytest.mark.parametrize("weight", [1.0, 0.3, 7.0])
def test_equal_weights_are_exact(weight):
    w = np.random.default_rng(0).standard_normal(30)
    plain = cs.project_clustered(w, 3, n_nonzero=12)
    weighted = cs.project_clustered(w, 3, n_nonzero=12, sample_weight=np.full(30, weight))
    assert weighted.exact
    np.testing.assert_array_equal(weighted.point, plain.point)
    assert weighted.sq_distance == pytest.approx(weight * plain.sq_distance, rel=1e-12)


def test_entries_of_weight_zero():
    w = np.array([1.0, 5.0, 1.1, 100.0, -40.0, 4.9])
    weights = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 1.0])
    plain = cs.project_clustered(w, 2, sample_weight=weights)
    assert plain.labels.tolist() == [0, 1, 0, 1, 0, 1]
    sparse = cs.project_clustered(w, 2, n_nonzero=3, sample_weight=weights)
    assert sparse.labels.tolist()[3:5] == [-1, -1]
    assert sparse.exact
    counted = weights > 0
    alone = cs.project_clustered(w[counted], 2, n_nonzero=3)
    np.testing.assert_array_equal(sparse.point[counted], alone.point)
    for nearest in (plain, sparse):
        assert nearest.sq_distance == pytest.approx(sq_distance(w, nearest.point, weights))


# ---- Kinds of input.


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("n_nonzero", [None, 20])
def test_point_has_the_precision_of_what_is_projected(dtype, n_nonzero):
    w = np.random.default_rng(0).standard_normal(50).astype(dtype)
    nearest = cs.project_clustered(w, 3, n_nonzero=n_nonzero)
    assert nearest.point.dtype == nearest.centers.dtype == dtype
    assert_feasible(w, 3, n_nonzero, nearest)
    exact = cs.project_clustered(w.astype(np.float64), 3, n_nonzero=n_nonzero)
    np.testing.assert_array_equal(nearest.labels, exact.labels)
    np.testing.assert_array_equal(nearest.centers, exact.centers.astype(dtype))
    expected = sq_distance(w.astype(np.float64), nearest.point.astype(np.float64))
    assert nearest.sq_distance == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n_nonzero", [None, 20])
def test_kinds_of_arrays(n_nonzero):
    w = np.random.default_rng(0).integers(-30, 30, 60)
    plain = cs.project_clustered(w, 3, n_nonzero=n_nonzero)
    assert plain.point.dtype == np.float64
    strided = np.repeat(w + 0.0, 3)[::3]
    for other in (w.tolist(), w.astype(float), strided, pd.Series(w), w.astype(np.float32)):
        nearest = cs.project_clustered(other, 3, n_nonzero=n_nonzero)
        np.testing.assert_array_equal(nearest.labels, plain.labels)
        np.testing.assert_allclose(nearest.point, plain.point, rtol=1e-6)


@pytest.mark.parametrize("shape", [(60,), (60, 1), (30, 2)])
@pytest.mark.parametrize("n_nonzero", [None, 12])
def test_nothing_is_modified(shape, n_nonzero):
    rng = np.random.default_rng(0)
    w, weights = rng.standard_normal(shape), rng.random(shape[0])
    before = w.copy(), weights.copy()
    for array in (w, weights):
        array.flags.writeable = False
    for weight in (None, weights):
        nearest = cs.project_clustered(w, 3, n_nonzero=n_nonzero, sample_weight=weight)
        assert not np.shares_memory(nearest.point, w)
    np.testing.assert_array_equal(w, before[0])
    np.testing.assert_array_equal(weights, before[1])


def test_result_is_typed_and_frozen():
    nearest = cs.project_clustered([1.0, 2.0, 4.0], 2)
    assert isinstance(nearest, cs.Projection)
    assert nearest.labels.dtype == np.intp
    assert type(nearest.sq_distance) is float
    assert nearest.exact is True
    with pytest.raises(FrozenInstanceError):
        nearest.exact = False


def test_deterministic_from_many_threads():
    w = np.random.default_rng(0).standard_normal(20_000)
    tasks = [(w, 5, 4000), (w, 5, None), (w[:300], 12, 100), (w, None, 50)]

    def call(task):
        return cs.project_clustered(task[0], task[1], n_nonzero=task[2])

    alone = [call(task) for task in tasks]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(call, tasks * 8))
    for one, other in zip(alone * 8, together, strict=True):
        assert one.point.tobytes() == other.point.tobytes()
        assert one.labels.tobytes() == other.labels.tobytes()
        assert one.sq_distance == other.sq_distance


# ---- What always holds.


@given(vectors, counts, kept)
def test_feasible_and_consistent(w, n_clusters, n_nonzero):
    nearest = cs.project_clustered(w, n_clusters, n_nonzero=n_nonzero)
    assert_feasible(w, n_clusters, n_nonzero, nearest)
    assert nearest.exact
    assert nearest.sq_distance == pytest.approx(sq_distance(w, nearest.point), rel=1e-12)


@given(vectors, counts, kept)
def test_idempotent(w, n_clusters, n_nonzero):
    nearest = cs.project_clustered(w, n_clusters, n_nonzero=n_nonzero)
    again = cs.project_clustered(nearest.point, n_clusters, n_nonzero=n_nonzero)
    np.testing.assert_array_equal(again.point, nearest.point)
    np.testing.assert_array_equal(again.labels, nearest.labels)
    assert again.sq_distance == 0.0


@given(vectors, counts, kept, st.integers(0, 2**32))
def test_no_feasible_point_is_nearer(w, n_clusters, n_nonzero, seed):
    nearest = cs.project_clustered(w, n_clusters, n_nonzero=n_nonzero)
    rng = np.random.default_rng(seed)
    limit = nearest.sq_distance - 1e-13 * float(w @ w)
    for trial in range(40):
        centers = rng.choice(w, n_clusters) if trial % 2 else 3 * rng.standard_normal(n_clusters)
        labels = np.abs(w[:, None] - centers).argmin(axis=1)
        if trial % 4 < 2:
            labels = np.where(rng.random(len(w)) < 0.3, rng.integers(0, n_clusters, len(w)), labels)
        nonzero = np.ones(len(w), dtype=bool)
        if n_nonzero is not None:
            gains = w**2 - (w - centers[labels]) ** 2 + rng.random(len(w)) * (trial % 3)
            nonzero[np.argsort(-gains)[n_nonzero:]] = False
        # The means of random groups are nearer than random values.
        for group in np.unique(labels[nonzero]):
            members = nonzero & (labels == group)
            centers[group] = w[members].mean()
        point = np.where(nonzero, centers[labels], 0.0)
        assert sq_distance(w, point) >= limit


@given(vectors, counts, kept, st.randoms(use_true_random=False))
def test_permutation(w, n_clusters, n_nonzero, random):
    order = list(range(len(w)))
    random.shuffle(order)
    plain = cs.project_clustered(w, n_clusters, n_nonzero=n_nonzero)
    moved = cs.project_clustered(w[order], n_clusters, n_nonzero=n_nonzero)
    np.testing.assert_array_equal(moved.centers, plain.centers)
    if n_nonzero is None or len(np.unique(w)) == len(w):
        np.testing.assert_array_equal(moved.point, plain.point[order])
    else:
        # Among equal entries the first ones stay, whichever these are.
        np.testing.assert_array_equal(np.sort(moved.point), np.sort(plain.point))
    assert moved.sq_distance == pytest.approx(plain.sq_distance, rel=1e-12)


@given(vectors, counts, kept, st.integers(-200, 200))
def test_power_of_two_changes_no_digit(w, n_clusters, n_nonzero, exponent):
    plain = cs.project_clustered(w, n_clusters, n_nonzero=n_nonzero)
    scaled = cs.project_clustered(np.ldexp(w, exponent), n_clusters, n_nonzero=n_nonzero)
    np.testing.assert_array_equal(scaled.labels, plain.labels)
    np.testing.assert_array_equal(scaled.point, np.ldexp(plain.point, exponent))


@given(vectors, counts, kept, st.floats(0.01, 100), st.booleans())
def test_any_factor(w, n_clusters, n_nonzero, factor, negative):
    scaled = w * (-factor if negative else factor)
    plain = cs.project_clustered(w, n_clusters, n_nonzero=n_nonzero).sq_distance
    found = cs.project_clustered(scaled, n_clusters, n_nonzero=n_nonzero).sq_distance
    slack = 1e-13 * float(scaled @ scaled)
    assert found == pytest.approx(factor**2 * plain, rel=1e-9, abs=slack)


@given(
    st.lists(st.integers(-99, 99), min_size=1, max_size=24), counts, st.integers(-(2**30), 2**30)
)
def test_shift_without_sparsity(w, n_clusters, shift):
    w = np.array(w) / 4
    plain = cs.project_clustered(w, n_clusters)
    moved = cs.project_clustered(w + shift, n_clusters)
    slack = len(w) * np.spacing(abs(shift) + 25.0) * 50
    assert moved.sq_distance == pytest.approx(plain.sq_distance, rel=1e-12, abs=slack)
    cost = reference.exact_cost_of_labels(w, None, moved.labels)
    assert float(cost) == pytest.approx(plain.sq_distance, rel=1e-12, abs=1e-25)


@given(vectors, counts, kept)
def test_distance_falls_with_the_number_of_values(w, n_clusters, n_nonzero):
    distances = [
        cs.project_clustered(w, n, n_nonzero=n_nonzero).sq_distance
        for n in range(1, n_clusters + 2)
    ]
    if n_nonzero is not None:
        distances.append(cs.project_clustered(w, None, n_nonzero=n_nonzero).sq_distance)
    slack = 1e-13 * float(w @ w)
    assert all(after <= before + slack for before, after in pairwise(distances))


@given(vectors, counts, st.integers(0, 24))
def test_distance_falls_with_the_number_of_nonzero_entries(w, n_clusters, n_nonzero):
    for limit in (n_clusters, None):
        distances = [
            cs.project_clustered(w, limit, n_nonzero=n).sq_distance
            for n in (0, n_nonzero, n_nonzero + 1, n_nonzero + 3)
        ]
        slack = 1e-13 * float(w @ w)
        assert all(after <= before + slack for before, after in pairwise(distances))


@given(st.lists(st.tuples(numbers, st.integers(1, 4)), min_size=1, max_size=16), counts)
def test_weights_are_repetitions(pairs, n_clusters):
    w, repeats = np.array([x for x, _ in pairs]), np.array([n for _, n in pairs])
    weighted = cs.project_clustered(w, n_clusters, sample_weight=repeats)
    repeated = cs.project_clustered(np.repeat(w, repeats), n_clusters)
    slack = 1e-13 * float(w @ w)
    assert weighted.sq_distance == pytest.approx(repeated.sq_distance, rel=1e-12, abs=slack)
    assert sq_distance(w, weighted.point, repeats) == pytest.approx(
        repeated.sq_distance, rel=1e-12, abs=slack
    )


@given(
    st.lists(st.tuples(numbers, st.floats(0, 100)), min_size=1, max_size=24),
    st.one_of(st.none(), counts),
    kept,
)
def test_weighted_points_are_feasible(pairs, n_clusters, n_nonzero):
    w, weights = np.array([x for x, _ in pairs]), np.array([n for _, n in pairs])
    assume(weights.any() and not (n_clusters is None and n_nonzero is None))
    nearest = cs.project_clustered(w, n_clusters, n_nonzero=n_nonzero, sample_weight=weights)
    assert_feasible(w, n_clusters, n_nonzero, nearest)
    if n_nonzero is not None:
        assert not nearest.point[weights == 0].any()


def test_hard_thresholding_compares_entries_out_of_the_range_of_squares():
    w = np.array([1e308, 1e-200, 3e-200, 1.0])
    assert cs.project_clustered(w, None, n_nonzero=3).labels.tolist() == [2, -1, 0, 1]
    weights = np.array([0.0, 1.0, 1e-3, 1e-300])
    kept = cs.project_clustered(w, None, n_nonzero=1, sample_weight=weights)
    assert kept.labels.tolist() == [-1, -1, -1, 0]
    rows = np.array([[1e-200, 1e-200], [1.2e-200, 0.0], [0.0, 1e300]])
    kept = cs.project_clustered(rows, None, n_nonzero=2)
    assert (kept.labels >= 0).tolist() == [True, False, True]
