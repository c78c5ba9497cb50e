"""K-means of a few rows, against all partitions and against scikit-learn's."""

from itertools import product

import numpy as np
import pytest

from clustruct.kernels.kmeans.kmeans_rows import cluster_rows


def cluster(rows, n_groups, weights=None, n_starts=10, seed=0):
    """Labels by default numbers of starts and trials."""
    weights = np.ones(len(rows)) if weights is None else weights
    uniforms = np.random.default_rng(seed).random((n_starts, n_groups, 3))
    return cluster_rows(np.ascontiguousarray(rows), weights, n_groups, uniforms)


def inertia(rows, weights, labels):
    """Weighted squared distances to the means."""
    total = 0.0
    for q in np.unique(labels):
        mine, w = rows[labels == q], weights[labels == q]
        total += w @ np.square(mine - w @ mine / w.sum()).sum(axis=1)
    return total


@pytest.mark.parametrize("seed", range(6))
def test_the_best_of_all_partitions(seed):
    rng = np.random.default_rng(seed)
    rows, weights = rng.standard_normal((6, 2)), rng.uniform(0.1, 2.0, 6)
    for n_groups in (1, 2, 3):
        least = min(
            inertia(rows, weights, np.array(labels))
            for labels in product(range(n_groups), repeat=6)
        )
        found = cluster(rows, n_groups, weights)
        assert inertia(rows, weights, found) == pytest.approx(least, rel=1e-12)


def test_no_single_move_is_better():
    rng = np.random.default_rng(1)
    rows, weights = rng.standard_normal((20, 3)), rng.uniform(0.1, 2.0, 20)
    labels = cluster(rows, 4, weights, n_starts=1)
    here = inertia(rows, weights, labels)
    for i, q in product(range(20), range(4)):
        moved = labels.copy()
        moved[i] = q
        assert inertia(rows, weights, moved) >= here * (1 - 1e-9)


def test_equal_rows_share_a_group():
    rows = np.repeat(np.array([[0.1, 1.0], [2.0, 3.0], [-1.0, 0.3]]), 4, axis=0)
    labels = cluster(rows, 3)
    assert np.unique(labels).size == 3
    assert inertia(rows, np.ones(12), labels) == pytest.approx(0.0, abs=1e-28)
    # More groups than distinct rows leave some empty.
    assert inertia(rows, np.ones(12), cluster(rows, 7)) == pytest.approx(0.0, abs=1e-28)


def test_weights_count_as_copies():
    rng = np.random.default_rng(2)
    rows, counts = rng.standard_normal((12, 2)), rng.integers(1, 4, 12)
    copied = np.repeat(rows, counts, axis=0)
    weighted = inertia(rows, counts.astype(float), cluster(rows, 3, counts.astype(float)))
    plain = inertia(copied, np.ones(len(copied)), cluster(copied, 3))
    assert weighted == pytest.approx(plain, rel=1e-12)
