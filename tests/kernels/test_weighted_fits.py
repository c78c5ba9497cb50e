"""Weighted least squares of several experts, against NumPy."""

import numpy as np
import pytest

from clustruct.kernels.fits import weighted_fits


def problem_of(seed, n, p, n_outputs):
    rng = np.random.default_rng(seed)
    features, targets = rng.standard_normal((n, p)), rng.standard_normal((n, n_outputs))
    for array in (features, targets):
        array.flags.writeable = False
    return features, targets, rng


@pytest.mark.parametrize(("n", "p", "n_outputs"), [(30, 1, 1), (29, 3, 1), (51, 3, 3), (3, 2, 1)])
def test_experts_minimise_their_weighted_costs(n, p, n_outputs):
    features, targets, rng = problem_of(0, n, p, n_outputs)
    weights, ridges = rng.random((3, n)), rng.random(p)
    ridges[-1] = 0.0
    weights[0, : n - 2] = 0.0  # one of four has a weight, or none
    weights[0, 0] = 1.0
    experts, least = weighted_fits.fit_experts(features, targets, ridges, weights)
    costs = weighted_fits.costs_of(features, targets, ridges, experts)
    assert 0.0 < least <= 1.0
    for q, mine in enumerate(weights):
        roots = np.sqrt(mine)[:, None]
        A = np.vstack([roots * features, np.diag(np.sqrt(mine.sum() * ridges))])
        b = np.vstack([roots * targets, np.zeros((p, n_outputs))])
        right = np.linalg.lstsq(A, b, rcond=None)[0]
        np.testing.assert_allclose(experts[q], right, rtol=1e-9, atol=1e-12)
        losses = 0.5 * np.square(targets - features @ experts[q]).sum(axis=1)
        penalty = 0.5 * float(ridges @ np.square(experts[q]).sum(axis=1))
        np.testing.assert_allclose(costs[q], losses + penalty, rtol=1e-12)


@pytest.mark.parametrize("column", [np.zeros(20), np.arange(20.0)])
def test_columns_that_depend_on_others_are_told(column):
    features, targets, rng = problem_of(1, 20, 3, 1)
    wider = np.column_stack([np.arange(20.0), features, column])
    _, least = weighted_fits.fit_experts(wider, targets, np.zeros(5), rng.random((2, 20)))
    assert least < 1e-12


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_a_step_follows_the_samples_that_agree(n_outputs):
    features, targets, rng = problem_of(2, 41, 3, n_outputs)
    shares, factors = rng.random(41), rng.uniform(1.0, 2.0, 41)
    expert, scale = 0.3 * rng.standard_normal((3, n_outputs)), 0.4
    squares = np.square(factors) * np.square(targets - features @ expert).sum(axis=1)
    weights = shares * np.exp(-0.5 * squares / scale**2)
    weights[squares > 18.42 * scale**2] = 0.0
    assert (weights == 0.0).any()
    assert (weights > 0.0).sum() > 3
    gram = features.T @ (weights[:, None] * features)
    gram += 0.01 * np.trace(gram) / 3 * np.eye(3)
    best = np.linalg.solve(gram, features.T @ (weights[:, None] * targets))
    follower = weighted_fits.Follower(features, targets, factors, 0.01)
    mass, seen, settled = follower.follow(shares, expert, scale, 1e-3)
    np.testing.assert_allclose(expert, best, rtol=1e-9)
    assert mass == pytest.approx(weights.sum())
    assert seen == pytest.approx(weights @ squares)
    assert not settled
    for _ in range(200):
        *_, settled = follower.follow(shares, expert, scale, 1e-3)
        if settled:
            break
    assert settled
