"""project_clustered of matrices: whole rows share values and are set to zero."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

import clustruct as cs


def assert_feasible(w, n_clusters, n_nonzero, nearest):
    point, labels, centers = nearest.point, nearest.labels, nearest.centers
    assert point.shape == w.shape
    assert centers.shape[1:] == w.shape[1:]
    nonzero = labels >= 0
    np.testing.assert_array_equal(point[nonzero], centers[labels[nonzero]])
    assert not point[~nonzero].any()
    assert np.unique(labels[nonzero]).tolist() == list(range(len(centers)))
    if n_nonzero is None:
        assert nonzero.all()
    else:
        assert np.count_nonzero(nonzero) <= n_nonzero
    if n_clusters is not None:
        assert len(centers) <= n_clusters


def sq_distance(w, point, weights=None):
    apart = np.square(w - point).sum(axis=1)
    return float(apart.sum() if weights is None else apart @ weights)


def k_means(rows, n_clusters, weights=None):
    """Inertia by scikit-learn with the settings that the documentation names."""
    if len(np.unique(rows, axis=0)) <= n_clusters:
        return 0.0
    with threadpool_limits(1):
        found = KMeans(n_clusters, n_init=10, random_state=0).fit(rows, sample_weight=weights)
    return found.inertia_


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_nonzero", [None, 12])
def test_one_column_is_a_vector(weighted, n_nonzero):
    rng = np.random.default_rng(0)
    w = rng.standard_normal(40)
    weights = rng.random(40) if weighted else None
    vector = cs.project_clustered(w, 4, n_nonzero=n_nonzero, sample_weight=weights)
    matrix = cs.project_clustered(w[:, None], 4, n_nonzero=n_nonzero, sample_weight=weights)
    assert matrix.point.shape == (40, 1)
    assert matrix.centers.shape == (len(vector.centers), 1)
    np.testing.assert_array_equal(matrix.point[:, 0], vector.point)
    np.testing.assert_array_equal(matrix.labels, vector.labels)
    assert matrix.sq_distance == vector.sq_distance
    assert matrix.exact == vector.exact == (not weighted or n_nonzero is None)


def test_few_distinct_rows_stay():
    rng = np.random.default_rng(0)
    w = rng.standard_normal((4, 3))[rng.integers(0, 4, 30)]
    for n_clusters in (4, 9):
        nearest = cs.project_clustered(w, n_clusters)
        assert_feasible(w, n_clusters, None, nearest)
        assert nearest.sq_distance == 0.0
        np.testing.assert_array_equal(nearest.point, w)
        assert not nearest.exact


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_are_clustered_by_k_means(weighted):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        w = rng.standard_normal((60, 3))
        weights = rng.lognormal(0.0, 1.0, 60) if weighted else None
        nearest = cs.project_clustered(w, 5, sample_weight=weights)
        assert_feasible(w, 5, None, nearest)
        assert not nearest.exact
        expected = sq_distance(w, nearest.point, weights)
        assert nearest.sq_distance == pytest.approx(expected, rel=1e-12)
        assert nearest.sq_distance <= k_means(w, 5, weights) * (1 + 1e-9)
        # Centres are the means of their groups, in lexicographic order.
        masses = np.ones(60) if weights is None else weights
        for label, center in enumerate(nearest.centers):
            members = nearest.labels == label
            mean = np.average(w[members], axis=0, weights=masses[members])
            np.testing.assert_allclose(center, mean, rtol=1e-12)
        assert nearest.centers.tolist() == sorted(nearest.centers.tolist())


def test_planted_rows_are_found():
    rng = np.random.default_rng(0)
    centers, labels = 10 * rng.standard_normal((6, 4)), rng.integers(0, 6, 200)
    nearest = cs.project_clustered(centers[labels] + 0.01 * rng.standard_normal((200, 4)), 6)
    np.testing.assert_allclose(nearest.point, centers[labels], atol=0.05)


def test_planted_sparse_rows_are_found():
    rng = np.random.default_rng(0)
    centers, labels = 10 + rng.standard_normal((3, 4)), rng.integers(0, 3, 100)
    truth = centers[labels] * (rng.random(100) < 0.3)[:, None]
    n_nonzero = int(truth.any(axis=1).sum())
    noisy = truth + 0.01 * rng.standard_normal((100, 4))
    nearest = cs.project_clustered(noisy, 3, n_nonzero=n_nonzero)
    np.testing.assert_array_equal(nearest.labels >= 0, truth.any(axis=1))
    np.testing.assert_allclose(nearest.point, truth, atol=0.05)


@pytest.mark.parametrize("weighted", [False, True])
def test_never_worse_than_to_keep_the_largest_rows_and_cluster_them(weighted):
    better = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        d, p = int(rng.integers(10, 50)), int(rng.integers(2, 5))
        w = rng.standard_normal((d, p)) + rng.integers(0, 2)
        weights = rng.lognormal(0.0, 1.0, d) if weighted else None
        n_clusters, n_nonzero = int(rng.integers(1, 6)), int(rng.integers(1, d + 1))
        nearest = cs.project_clustered(w, n_clusters, n_nonzero=n_nonzero, sample_weight=weights)
        assert_feasible(w, n_clusters, n_nonzero, nearest)
        assert not nearest.exact
        norms = np.square(w).sum(axis=1) * (1.0 if weights is None else weights)
        largest = np.sort(np.argsort(-norms, kind="stable")[:n_nonzero])
        inner = None if weights is None else weights[largest]
        start = k_means(w[largest], n_clusters, inner) + norms.sum() - norms[largest].sum()
        assert nearest.sq_distance <= start * (1 + 1e-9)
        expected = sq_distance(w, nearest.point, weights)
        assert nearest.sq_distance == pytest.approx(expected, rel=1e-12)
        better += nearest.sq_distance < start * (1 - 1e-6)
    assert better > 8


@pytest.mark.parametrize("n_columns", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_no_exchange_is_left_that_helps(n_columns, weighted):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        w = rng.standard_normal((60, n_columns))
        weights = rng.lognormal(0.0, 1.0, 60) if weighted else np.ones(60)
        nearest = cs.project_clustered(w, 3, n_nonzero=20, sample_weight=weights)
        # Keep what gains most by its nearest centre, and let the centres follow.
        apart = weights[:, None] * np.square(w[:, None] - nearest.centers).sum(axis=2)
        gains = weights * np.square(w).sum(axis=1) - apart.min(axis=1)
        kept = np.argsort(-gains)[:20]
        labels, point = apart.argmin(axis=1), np.zeros_like(w)
        for label in range(len(nearest.centers)):
            members = kept[labels[kept] == label]
            if len(members):
                point[members] = np.average(w[members], axis=0, weights=weights[members])
        assert sq_distance(w, point, weights) >= nearest.sq_distance * (1 - 1e-12)


@pytest.mark.parametrize("n_nonzero", [0, 1, 3, 9])
def test_hard_thresholding_of_rows(n_nonzero):
    w = np.array([[1.0, 1.0], [0.0, 3.0], [0.0, 0.0], [-2.0, 0.0], [0.1, 0.1]])
    nearest = cs.project_clustered(w, None, n_nonzero=n_nonzero)
    order = [1, 3, 0, 4][:n_nonzero]
    expected = np.zeros_like(w)
    expected[order] = w[order]
    np.testing.assert_array_equal(nearest.point, expected)
    np.testing.assert_array_equal(nearest.labels >= 0, expected.any(axis=1))
    assert nearest.exact


def test_rows_of_weight_zero():
    rng = np.random.default_rng(0)
    w, weights = rng.standard_normal((40, 2)), rng.random(40)
    weights[::4] = 0.0
    plain = cs.project_clustered(w, 3, sample_weight=weights)
    counted = weights > 0
    alone = cs.project_clustered(w[counted], 3, sample_weight=weights[counted])
    np.testing.assert_array_equal(plain.centers, alone.centers)
    distances = np.square(w[:, None] - plain.centers).sum(axis=2)
    np.testing.assert_array_equal(plain.labels[~counted], distances[~counted].argmin(axis=1))
    sparse = cs.project_clustered(w, 3, n_nonzero=20, sample_weight=weights)
    assert (sparse.labels[~counted] == -1).all()
    assert_feasible(w, 3, 20, sparse)


def test_no_row_is_kept():
    w = np.random.default_rng(0).standard_normal((5, 2))
    for matrix, n_nonzero in ((w, 0), (np.zeros((5, 2)), 3)):
        nearest = cs.project_clustered(matrix, 2, n_nonzero=n_nonzero)
        assert not nearest.point.any()
        assert (nearest.labels == -1).all()
        assert nearest.centers.shape == (0, 2)
        assert nearest.sq_distance == pytest.approx(np.square(matrix).sum())


@pytest.mark.parametrize("n_nonzero", [None, 15])
def test_layout_and_precision(n_nonzero):
    w = np.random.default_rng(0).standard_normal((40, 3)).astype(np.float32)
    plain = cs.project_clustered(w, 4, n_nonzero=n_nonzero)
    assert plain.point.dtype == np.float32
    for other in (np.asfortranarray(w), np.repeat(w, 2, axis=1)[:, ::2], w.tolist()):
        nearest = cs.project_clustered(other, 4, n_nonzero=n_nonzero)
        np.testing.assert_array_equal(nearest.labels, plain.labels)
        np.testing.assert_allclose(nearest.point, plain.point, rtol=1e-6)


@pytest.mark.parametrize("n_nonzero", [None, 15])
def test_deterministic_and_idempotent(n_nonzero):
    w = np.random.default_rng(0).standard_normal((40, 3))
    nearest = cs.project_clustered(w, 4, n_nonzero=n_nonzero)
    again = cs.project_clustered(w, 4, n_nonzero=n_nonzero)
    assert nearest.point.tobytes() == again.point.tobytes()
    twice = cs.project_clustered(nearest.point, 4, n_nonzero=n_nonzero)
    np.testing.assert_allclose(twice.point, nearest.point, rtol=1e-14)
    np.testing.assert_array_equal(twice.labels, nearest.labels)


def test_random_state_of_numpy_is_left_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    cs.project_clustered(np.random.default_rng(0).standard_normal((40, 3)), 4)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_rows_that_differ_by_rounding_need_no_groups_of_their_own():
    rng = np.random.default_rng(0)
    rows = np.repeat(rng.normal(size=(2, 3)), 6, axis=0)
    rows *= 1.0 + np.finfo(np.float64).eps * rng.integers(-2, 3, size=rows.shape)
    nearest = cs.project_clustered(rows, 5)  # without a word: warnings are errors here
    assert nearest.sq_distance < 1e-28
