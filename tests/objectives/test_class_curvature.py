"""The model of the second derivative of classes, and what it tells of groups."""

import numpy as np
import pytest

from clustruct.grouping.rows import spread
from clustruct.objectives.class_curvature import ClassWeights, chances_of
from clustruct.objectives.features.class_models import GramModel, SumsModel

from .test_many_rows import problem


def full_hessian(X, shares, chances):
    """``sum_i s_i (diag p_i - p_i p_i') (x) x_i x_i'``, by rows, without intercept."""
    return sum(
        s * np.kron(np.outer(x, x), np.diag(p) - np.outer(p, p))
        for x, s, p in zip(X, shares, chances.T, strict=True)
    )


def test_the_model_is_exact_for_two_classes():
    objective = problem(60, 4, 2, fit_intercept=False, weighted=True)
    point = objective.minimum(1e-9)
    X, shares = objective.design.matrix(), objective.response.shares
    chances = chances_of((X @ point.W).T)
    found = ClassWeights.of(shares, chances, centred=False).curvature(X)
    h = shares * chances[0] * (1.0 - chances[0])
    np.testing.assert_allclose(found.gram, X.T @ (h[:, None] * X), rtol=1e-12)
    assert found.classes == 1.0


def test_the_model_has_the_trace_of_the_second_derivative():
    objective = problem(50, 3, 4, fit_intercept=False, weighted=True)
    X, shares = objective.design.matrix(), objective.response.shares
    chances = chances_of((X @ np.ones((3, 4)) * np.arange(4)).T)
    model = ClassWeights.of(shares, chances, centred=False).curvature(X)
    wanted = full_hessian(X, shares, chances)
    assert np.trace(np.kron(model.gram, model.classes)) == pytest.approx(np.trace(wanted))
    np.testing.assert_allclose(  # by a shift of all scores it is exact
        model.total * model.classes,
        np.diag(chances @ shares) - (chances * shares) @ chances.T,
        atol=1e-14,
    )


def test_systems_are_solved():
    rng = np.random.default_rng(0)
    objective = problem(50, 5, 3)
    model = class_curvature(objective)
    ridge, R = rng.random(5) + 0.1, rng.standard_normal((5, 3))
    for factor, V in zip((1.0, 0.2), model.scaled(ridge).solve(R, (1.0, 0.2)), strict=True):
        bent = model.gram @ V @ model.classes + factor * ridge[:, None] * V
        np.testing.assert_allclose(bent, R, atol=1e-10)


def class_curvature(objective):
    return objective.class_curvature(objective.minimum(1e-9))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_both_models_of_groups_agree(n_classes, fit_intercept):
    objective = problem(80, 6, n_classes, fit_intercept=fit_intercept, weighted=True)
    minimum = objective.minimum(1e-9)
    labels = np.array([0, 1, 0, 2, -1, 1])
    by_gram = GramModel(objective.class_curvature(minimum), minimum, objective.alpha)
    by_sums = SumsModel(
        minimum,
        objective.alpha,
        objective.design.scores(minimum.W),
        objective.response.shares,
        fit_intercept,
        objective.data.group_sums,
    )
    factors = (1.0, 0.25)
    for one, other in zip(
        by_gram.values(labels, 3, factors), by_sums.values(labels, 3, factors), strict=True
    ):
        np.testing.assert_allclose(one[0], other[0], rtol=1e-9)
        np.testing.assert_allclose(one[1], other[1], rtol=1e-9, atol=1e-12)


def test_values_are_a_newton_step_towards_the_groups():
    # With groups that hold nearly equal weights the model is nearly right, whatever the fraction.
    objective = problem(300, 4, 2, seed=3)
    minimum = objective.minimum(1e-9)
    labels = np.array([0, 1, 2, 3])
    model = GramModel(objective.class_curvature(minimum), minimum, objective.alpha)
    (same, intercept), (other, _) = model.values(labels, 4, (1.0, 0.9))
    np.testing.assert_allclose(same, minimum.W, atol=1e-7)
    np.testing.assert_allclose(intercept, minimum.intercept, atol=1e-7)
    exact = objective.refits(labels, 4, 1e-10, (0.9,))[0].W
    far = np.abs(minimum.W - exact).max()
    assert np.abs(other - exact).max() < 0.02 * far


def test_the_squared_loss_of_several_classes_is_the_model():
    objective = problem(70, 5, 4)
    rng = np.random.default_rng(1)
    point = objective.at(rng.standard_normal(objective.shape))
    curvature, squared = objective.class_curvature(point), objective.quadratic_model(point)
    a, U = curvature.by_class
    U, a = U[:, a > 0.0], a[a > 0.0]
    labels = np.array([0, 1, 1, 0, 2])
    W = spread(rng.standard_normal((3, 4)), labels)
    W -= W.mean(axis=1, keepdims=True)  # a common shift of the classes is no part of either
    away = W - point.W
    loss = point.value - objective.ridge(point.W)
    wanted = (
        loss
        + np.vdot(objective.loss_gradient(point), away)
        + 0.5 * np.vdot(away, curvature.gram @ away @ curvature.classes)
    )
    turned = W @ U * np.sqrt(a)
    found = (
        squared.constant
        - np.vdot(squared.moment, turned)
        + 0.5 * np.vdot(turned, squared.gram @ turned)
    )
    assert found == pytest.approx(wanted, rel=1e-10)
