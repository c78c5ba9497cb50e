"""The quadratic form: weights, residuals and random partitions."""

import numpy as np
import pytest

from tests.solvers.problems import permitted, quadratic, value_of, weights_of


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return rng.standard_normal((30, 6)), rng.standard_normal((30, 2))


def test_centers_solve_the_regression_on_group_sums(data):
    x, y = data
    labels = np.array([0, 1, 2, 1, 0, 2])
    problem = quadratic(x, y, 3, alpha=0.0)
    sums = np.stack([x[:, labels == q].sum(axis=1) for q in range(3)], axis=1)
    assert problem.centers(labels) == pytest.approx(np.linalg.lstsq(sums, y, rcond=None)[0])


def test_value_is_the_loss_of_the_regression(data):
    x, y = data
    labels = np.array([0, 1, -1, 1, 0, -1])
    problem = quadratic(x, y, 2, alpha=0.3, n_nonzero=4)
    w = weights_of(problem, labels)
    loss = 0.5 * np.sum((y - x @ w) ** 2) / 30 + 0.15 * np.sum(w**2)
    assert value_of(problem, labels) == pytest.approx(loss)
    explained = problem.descend(labels[None].copy())
    assert 0.5 * problem.constant - explained[0] <= loss


def test_residuals_add_up_to_zero_in_every_group(data):
    labels = np.array([0, 1, -1, 1, 0, 1])
    problem = quadratic(*data, 2, n_nonzero=5)
    residuals = problem.residuals(labels)
    for group in range(2):
        assert residuals[labels == group].sum(axis=0) == pytest.approx(0.0, abs=1e-12)


def test_random_labels_are_permitted(data):
    rng = np.random.default_rng(0)
    first, last = np.array([0, 0, 0, 2, 2, 3]), np.array([2, 2, 2, 3, 3, 6])
    for n_nonzero in (None, 4):
        problem = quadratic(*data, 6, first=first, last=last, n_nonzero=n_nonzero)
        labels = problem.random_labels(50, rng)
        assert all(permitted(problem, row) for row in labels)
        assert len(np.unique(labels, axis=0)) > 5
