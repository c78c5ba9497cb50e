"""Logistic regression with few weights, against scikit-learn and finite differences."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from clustruct.kernels.fits.class_newton import ClassNewton
from clustruct.losses import LogisticLoss, MultinomialLoss


def problem(n, q, n_classes, seed=0):
    """Rows, codes, shares and differences."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, q)) + rng.uniform(-1, 1, q)
    codes = rng.integers(n_classes, size=n)
    codes[:n_classes] = np.arange(n_classes)
    rows[np.arange(n), codes % q] += 1.0
    shares = rng.uniform(0.5, 1.5, n)
    shares[3] = 0.0
    loss = LogisticLoss() if n_classes == 2 else MultinomialLoss()
    differences = loss.contrasts(1 if n_classes == 2 else n_classes).differences
    return rows, codes.astype(np.intp), shares / shares.sum(), differences


def fit(rows, codes, shares, differences, ridges, has_intercept=True, tol=1e-10, start=0.0):
    """Weights, objectives and slopes."""
    n_free = len(differences)
    weights = np.full((len(ridges), n_free, rows.shape[1] + 1), start)
    if not has_intercept:
        weights[:, :, -1] = 0.0
    slopes = np.empty((len(ridges), rows.shape[0], n_free))
    newton = ClassNewton(rows, codes, shares, differences, has_intercept)
    values = newton.minimise(np.array(ridges, dtype=float), weights, slopes, tol, 100)
    return weights, values, slopes


def objective(weights, rows, codes, shares, differences, ridge):
    """By its definition."""
    scores = (rows @ weights[:, :-1].T + weights[:, -1]) @ differences.T
    scores = np.hstack([np.zeros((len(rows), 1)), scores])
    own = scores[np.arange(codes.size), codes]
    ridges = 0.5 * np.sum(ridge * np.square(weights[:, :-1]))
    return shares @ (logsumexp(scores, axis=1) - own) + ridges


@pytest.mark.parametrize("has_intercept", [True, False])
@pytest.mark.parametrize(("n", "q", "n_classes"), [(17, 1, 2), (18, 4, 2), (19, 3, 3), (21, 2, 5)])
def test_no_point_is_better(n, q, n_classes, has_intercept):
    data = problem(n, q, n_classes)
    ridges = [[0.1 + 0.05 * j for j in range(q)], [0.01] * q, [0.2] * q]
    weights, values, slopes = fit(*data, ridges, has_intercept)
    for W, value, slope, ridge in zip(weights, values, slopes, ridges, strict=True):
        assert value == pytest.approx(objective(W, *data, ridge), rel=1e-13)

        def of_flat(flat, shape=W.shape, ridge=ridge):
            full = flat.reshape(shape).copy()
            if not has_intercept:
                full[:, -1] = 0.0
            return objective(full, *data, ridge)

        found = minimize(of_flat, np.zeros(W.size), method="BFGS", options={"gtol": 1e-8})
        assert value <= found.fun + 1e-12
        np.testing.assert_allclose(of_flat(W.ravel()), found.fun, rtol=1e-9)
        # Slopes are those of the loss: with the ridge they cancel.
        by_weights = data[0].T @ slope @ data[3]
        np.testing.assert_allclose(by_weights, -(W[:, :-1] * ridge).T, atol=1e-8)
        if has_intercept:
            np.testing.assert_allclose(slope.sum(axis=0), 0.0, atol=1e-9)
        else:
            assert not W[:, -1].any()


def test_a_far_start_and_tiny_ridges():
    data = problem(40, 3, 3, seed=1)
    near, values, _ = fit(*data, [[1e-6] * 3])
    far, again, _ = fit(*data, [[1e-6] * 3], start=30.0)
    np.testing.assert_allclose(values, again, rtol=1e-9)
    np.testing.assert_allclose(near, far, rtol=1e-4, atol=1e-6)


def test_classes_that_are_told_apart_exactly():
    """The loss goes to zero with the ridge, and keeps its digits."""
    rows = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    codes, shares = np.array([0, 0, 1, 1], dtype=np.intp), np.full(4, 0.25)
    differences = LogisticLoss().contrasts(1).differences
    weights, values, _ = fit(rows, codes, shares, differences, [[1e-10]])
    w = weights[0, 0, 0]
    # By symmetry there is no intercept; the mean slope of the two margins is that of the ridge.
    mean = 0.5 * (1.0 / (1.0 + np.exp(w)) + 2.0 / (1.0 + np.exp(2 * w)))
    assert abs(weights[0, 0, 1]) < 1e-6
    assert mean == pytest.approx(1e-10 * w, rel=1e-6)
    assert np.isfinite(values).all()


def test_fits_that_do_not_converge_say_so():
    data = problem(30, 2, 2)
    weights = np.zeros((2, 1, 3))
    newton = ClassNewton(*data, True)
    values = newton.minimise(np.full((2, 2), 1e-3), weights, np.empty((2, 30, 1)), 1e-10, 1)
    assert np.isnan(values).all()


def test_derivatives_of_an_earlier_fit_do_no_harm():
    data = problem(25, 3, 3)
    alone, _, _ = fit(*data, [[0.02] * 3])
    newton, weights = ClassNewton(*data, True), np.full((1, 2, 4), 2.0)
    slopes = np.empty((1, 25, 2))
    newton.minimise(np.full((1, 3), 5.0), weights, slopes, 1e-10, 100)
    newton.minimise(np.full((1, 3), 0.02), weights, slopes, 1e-10, 100)
    np.testing.assert_allclose(weights, alone, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("has_intercept", [True, False])
def test_other_shares_lead_to_their_own_minimum(has_intercept):
    rows, codes, shares, differences = problem(40, 3, 3)
    newton = ClassNewton(rows, codes, shares, differences, has_intercept)
    ridge, rng, losses = np.full(3, 0.05), np.random.default_rng(1), np.empty(40)
    weights = np.zeros((2, 4))
    for wanted in (losses, np.empty(0), losses):
        other = rng.uniform(0, 1, 40) * (rng.uniform(0, 1, 40) > 0.2)
        other /= other.sum()
        # Where losses are wanted, steps end early.
        assert any(newton.improve(other, ridge, weights, 1e-8, 100, wanted) for _ in range(99))
        # Rows without a share have no part in it.
        some = other > 0.0
        best, *_ = fit(
            rows[some].copy(), codes[some], other[some], differences, [ridge], has_intercept
        )
        np.testing.assert_allclose(weights, best[0], atol=1e-6)
        one_by_one = [
            objective(weights, rows[[i]], codes[[i]], np.ones(1), differences, 0.0 * ridge)
            for i in range(40)
        ]
        if wanted is losses:
            np.testing.assert_allclose(losses, one_by_one, atol=1e-13)


def test_single_steps_never_raise_the_objective():
    rows, codes, shares, differences = problem(60, 2, 4, seed=2)
    newton = ClassNewton(rows, codes, shares, differences, True)
    ridge, rng, losses = np.full(2, 0.01), np.random.default_rng(3), np.empty(60)
    weights, base = np.zeros((3, 3)), rng.uniform(0, 1, 60)
    for step in range(30):
        # Shares that change slowly, and at once.
        base = rng.uniform(0, 1, 60) if step == 15 else 0.9 * base + 0.1 * rng.uniform(0, 1, 60)
        other = base / base.sum()
        before = objective(weights, rows, codes, other, differences, ridge)
        newton.improve(other, ridge, weights, 1e-12, 1, losses)
        after = objective(weights, rows, codes, other, differences, ridge)
        assert after <= before + 1e-15
        assert after == pytest.approx(other @ losses + 0.005 * np.sum(weights[:, :-1] ** 2))
    assert newton.improve(other, ridge, weights, 1e-12, 100, np.empty(0))
    final = objective(weights, rows, codes, other, differences, ridge)
    assert fit(rows, codes, other, differences, [ridge])[1][0] == pytest.approx(final, rel=1e-12)
