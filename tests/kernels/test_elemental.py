"""Elemental starts and moves of single samples, against every assignment and every move."""

import itertools

import numpy as np
import pytest

from clustruct.kernels.fits import elemental

N_EXPERTS = 2


def problem_of(seed, n, d, n_outputs=1, alpha=0.0):
    rng = np.random.default_rng(seed)
    features = np.hstack([rng.standard_normal((n, d)), np.ones((n, 1))])
    targets = 3.0 * rng.standard_normal((n, n_outputs))
    shares = rng.uniform(0.5, 2.0, n)
    ridges = np.append(np.full(d, alpha), 0.0)
    return features, targets, shares / shares.sum(), ridges


def value_of(problem, labels):
    """The objective of an assignment, each expert fitted by least squares with rows for ridges."""
    features, targets, shares, ridges = problem
    total = 0.0
    for q in np.unique(labels):
        mine = labels == q
        roots = np.sqrt(shares[mine])[:, None]
        A = np.vstack([roots * features[mine], np.diag(np.sqrt(shares[mine].sum() * ridges))])
        b = np.vstack([roots * targets[mine], np.zeros((ridges.size, targets.shape[1]))])
        total += 0.5 * np.square(b - A @ np.linalg.lstsq(A, b, rcond=None)[0]).sum()
    return total


def moved(labels, i, q):
    labels = labels.copy()
    labels[i] = q
    return labels


CASES = [(1, 1, 0.0), (2, 1, 0.1), (1, 2, 0.05), (2, 2, 0.0)]


@pytest.mark.parametrize(("d", "n_outputs", "alpha"), CASES)
def test_the_best_of_all_assignments_is_found(d, n_outputs, alpha):
    problem = problem_of(0, 9, d, n_outputs, alpha)
    everything = (np.array((0, *rest)) for rest in itertools.product(range(2), repeat=8))
    best = min(value_of(problem, labels) for labels in everything)
    uniforms = np.random.default_rng(1).random((100, N_EXPERTS, d + 1))
    values, labels = elemental.search(*problem, N_EXPERTS, uniforms, 50)
    assert values.min() == pytest.approx(best, rel=1e-9, abs=1e-12)
    for row, value in zip(labels, values, strict=True):
        assert value_of(problem, row) == pytest.approx(value, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(("d", "n_outputs", "alpha"), CASES)
def test_no_move_of_a_sample_is_left_that_gains(d, n_outputs, alpha):
    problem = problem_of(2, 25, d, n_outputs, alpha)
    uniforms = np.random.default_rng(3).random((2, 3, d + 1))
    for value, labels in zip(*elemental.search(*problem, 3, uniforms, 50), strict=True):
        moves = itertools.product(range(25), range(3))
        least = min(value_of(problem, moved(labels, i, q)) for i, q in moves)
        assert least >= value * (1.0 - 1e-9)


def test_moves_find_what_assignments_by_the_least_cost_do_not():
    targets = np.array([[0.0], [1.0], [2.5]])
    problem = np.ones((3, 1)), targets, np.full(3, 1 / 3), np.zeros(1)
    stuck = np.array([0, 1, 1])  # where the experts of the first two samples lead to
    assert (np.abs(targets - [0.0, 1.75]).argmin(axis=1) == stuck).all()
    values, labels = elemental.search(*problem, 2, np.array([[[0.0], [0.4]]]), 50)
    assert values == pytest.approx(0.25 / 3)
    assert labels.tolist() == [[0, 0, 1]]


def test_fewer_samples_than_weights_are_fitted_exactly():
    problem = problem_of(4, 3, 4)
    values, _ = elemental.search(*problem, 2, np.random.default_rng(0).random((5, 2, 5)), 50)
    assert values.max() < 1e-12


def test_a_column_of_zeros_changes_nothing():
    features, targets, shares, _ = problem_of(5, 12, 1)
    wider = np.hstack([features[:, :1], np.zeros((12, 1)), features[:, 1:]])
    uniforms = np.random.default_rng(1).random((100, 2, 3))
    plain = elemental.search(
        features, targets, shares, np.zeros(2), 2, np.ascontiguousarray(uniforms[:, :, :2]), 50
    )
    padded = elemental.search(wider, targets, shares, np.zeros(3), 2, uniforms, 50)
    assert padded[0].min() == pytest.approx(plain[0].min(), rel=1e-12)
