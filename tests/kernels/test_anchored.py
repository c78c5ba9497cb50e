"""Groups of weighted numbers some of which are known to be apart, against all groupings."""

import numpy as np
import pytest

from clustruct.kernels.fits.anchored import MOST_APART, best_groups, explained_if
from tests.brute_force import groupings


def explained_by(linear, weights, labels):
    labels = np.asarray(labels)
    groups = [labels == q for q in range(labels.max() + 1)]
    return sum(0.5 * linear[g].sum() ** 2 / weights[g].sum() for g in groups if g.any())


def most_explained(linear, weights, n_anchors, most):
    """The same by trying all groupings in which the first rows are apart."""
    return max(
        (
            explained_by(linear, weights, labels)
            for labels in groupings(linear.size, most)
            if len(set(labels[:n_anchors])) == n_anchors
        ),
        default=-np.inf,
    )


def case(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 7))
    weights = 10.0 ** rng.uniform(-2.0, 1.0, m)
    linear = weights * rng.standard_normal(m)
    if seed % 3 == 0:  # ties
        linear, weights = np.round(linear), np.ones(m)
    n_anchors = int(rng.integers(0, min(m, MOST_APART - 1) + 1))
    return linear, weights, n_anchors, max(1, n_anchors, int(rng.integers(1, m + 1)))


@pytest.mark.parametrize("seed", range(150))
def test_best_groups_explain_as_much_as_any(seed):
    linear, weights, n_anchors, most = case(seed)
    explained, labels = best_groups(linear, weights, n_anchors, most)
    assert explained[0] == -np.inf
    for k in range(1, most + 1):
        assert explained[k] == pytest.approx(most_explained(linear, weights, n_anchors, k))
        if k >= n_anchors:
            assert explained_by(linear, weights, labels[k]) == pytest.approx(explained[k])
            assert len(set(labels[k, :n_anchors])) == n_anchors
            assert labels[k].max() < k


@pytest.mark.parametrize("seed", range(80))
def test_a_decision_is_that_of_the_problem_it_leaves(seed):
    linear, weights, n_anchors, most = case(seed)
    free = np.arange(n_anchors, linear.size)
    found = explained_if(linear, weights, n_anchors, most, free)
    assert found.shape == (free.size, n_anchors + 1, most + 1)
    for row, mine in zip(free, found, strict=True):
        for anchor in range(n_anchors):
            joined, heavier = linear.copy(), weights.copy()
            joined[anchor] += linear[row]
            heavier[anchor] += weights[row]
            joined, heavier = np.delete(joined, row), np.delete(heavier, row)
            expected = best_groups(joined, heavier, n_anchors, most)[0]
            np.testing.assert_allclose(mine[anchor], expected, rtol=1e-12)
        order = np.array([*range(n_anchors), row, *free[free != row]])
        if most > n_anchors:
            expected = best_groups(linear[order], weights[order], n_anchors + 1, most)[0]
            np.testing.assert_allclose(mine[n_anchors], expected, rtol=1e-12)
        else:
            assert (mine[n_anchors] == -np.inf).all()


def test_more_anchors_give_an_upper_bound():
    rng = np.random.default_rng(0)
    for _ in range(5):
        weights = 10.0 ** rng.uniform(-2.0, 1.0, 7)
        linear = weights * rng.standard_normal(7)
        explained = best_groups(linear, weights, 6, 7)[0]
        for k in (6, 7):
            assert explained[k] >= most_explained(linear, weights, 6, k) - 1e-12
