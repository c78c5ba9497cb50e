"""The objective of clustered samples, against finite differences and scikit-learn."""

import numpy as np
import pytest
from scipy import integrate, sparse
from sklearn.linear_model import Ridge

from clustruct.design import as_design
from clustruct.losses import GammaLoss, HuberLoss, MultinomialLoss, QuantileLoss, SquaredLoss
from clustruct.objectives.linear import Response
from clustruct.objectives.samples.objective import SampleObjective
from tests.losses.targets import NEWER, suited


def make(loss=None, n=12, d=3, fit_intercept=True, alpha=0.1, dense=True, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    loss = loss or SquaredLoss()
    target, n_outputs = suited(loss, rng.standard_normal((n, 2))), 2
    if isinstance(loss, MultinomialLoss):
        target, n_outputs = rng.integers(0, 3, n), 3
    shares = rng.random(n)
    response = Response(target, loss, n_outputs, shares / shares.sum(), fit_intercept)
    matrix = X if dense else sparse.csr_matrix(X)
    return SampleObjective(as_design(matrix), response, alpha), rng


def row_value(objective, rows):
    """The objective as a function of the rows of ``W``, each sample by itself."""
    response, (d, k) = objective.response, objective.shape
    X = objective.design.row_products(np.ones((rows.shape[0], 1)))
    W = (rows / objective.roots[:, None])[:, : d * k].reshape(-1, k, d)
    scores = np.einsum("ikd,id->ik", W, X)
    if response.fit_intercept:
        scores += (rows / objective.roots[:, None])[:, d * k :]
    ridge = 0.5 * objective.alpha * np.square(W).sum(axis=(1, 2))
    return float(response.shares @ (response.loss.value(response.target, scores) + ridge))


LOSSES = [SquaredLoss(), HuberLoss(0.5), MultinomialLoss(), *NEWER]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_gradient_by_the_rows(loss, fit_intercept):
    objective, rng = make(loss, fit_intercept=fit_intercept)
    panel = objective.fit_groups(rng.integers(0, 2, 12), 1e-3)
    rows, gradient = objective.rows(panel), objective.gradient(panel)
    assert row_value(objective, rows) == pytest.approx(panel.value)
    direction = rng.standard_normal(rows.shape)
    h = 1e-6
    slope = (
        row_value(objective, rows + h * direction) - row_value(objective, rows - h * direction)
    ) / (2 * h)
    assert slope == pytest.approx(float(np.vdot(gradient, direction)), rel=1e-5, abs=1e-8)


def test_curvature_gives_the_best_step_along_the_gradient():
    objective, rng = make()
    panel = objective.fit_groups(rng.integers(0, 2, 12), 1e-3)
    rows, gradient = objective.rows(panel), objective.gradient(panel)
    best = np.vdot(gradient, gradient) / objective.bend(panel, gradient)
    at = {f: row_value(objective, rows - f * best * gradient) for f in (0.9, 1.0, 1.1)}
    assert at[1.0] < min(at[0.9], at[1.1])


@pytest.mark.parametrize("dense", [True, False])
def test_experts_are_ridge_regressions_of_their_samples(dense):
    objective, _ = make(dense=dense)
    labels = np.array([0, 2] * 6)
    panel = objective.fit_groups(labels, 1e-10)
    assert panel.W.shape == (2, 3, 2)
    X = objective.design.row_products(np.ones((12, 1)))
    for q, rows in enumerate([labels == 0, labels == 2]):
        weights = objective.response.shares[rows]
        ridge = Ridge(alpha=0.1 * weights.sum(), tol=1e-12)
        ridge.fit(X[rows], objective.response.target[rows], sample_weight=weights)
        np.testing.assert_allclose(panel.W[q].T, ridge.coef_)
        assert panel.intercept[q] == pytest.approx(ridge.intercept_)


def test_value_is_the_cost_of_the_labels_and_idle_experts_are_left_out():
    objective, rng = make()
    W, b = rng.standard_normal((3, 3, 2)), rng.standard_normal((3, 2))
    W[1], b[1] = 100.0, 100.0
    panel = objective.panel(W, b)
    costs = objective.costs(W, b)
    assert panel.W.shape[0] == 2
    assert panel.value == pytest.approx(objective.response.shares @ costs.min(axis=1))
    assert (np.array([0, 2])[panel.labels] == costs.argmin(axis=1)).all()


def test_kept_projection_is_the_panel_of_its_centres():
    from clustruct.grouping.constraints import ScaledClustered

    objective, rng = make()
    panel = objective.fit_groups(rng.integers(0, 2, 12), 1e-8)
    nearest = ScaledClustered(2, objective.roots).project(objective.rows(panel))
    assert objective.keep(nearest).value == pytest.approx(panel.value)


@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("loss", [SquaredLoss(), HuberLoss(0.7), QuantileLoss(0.3)])
def test_densities_integrate_to_one(loss, scale):
    noise = loss.noise(1, 1.0)

    def density(r):
        return np.exp(-loss.value(np.zeros((1, 1)), np.array([[r]]))[0] / scale)

    limit = 60 * max(scale, 1.0) / 0.7
    total = integrate.quad(density, -limit, limit, points=[0.0], limit=500)[0]
    assert noise.log_partition(scale) == pytest.approx(np.log(total), abs=1e-4)


@pytest.mark.parametrize("loss", [SquaredLoss(), HuberLoss(0.7), QuantileLoss(0.3), GammaLoss()])
def test_scale_is_the_most_likely_one(loss):
    noise = loss.noise(2, 1.0)
    best = noise.scale(0.3)

    def cost(scale):
        return 0.3 / scale + noise.log_partition(scale)

    assert cost(best) < min(cost(0.99 * best), cost(1.01 * best))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_experts_fitted_together_are_those_fitted_one_by_one(fit_intercept):
    objective, rng = make(n=40, fit_intercept=fit_intercept)
    weights = rng.random((3, 40))
    weights[0, :30] = 0.0
    weights[1, :35] *= 1e-14  # too little to count
    together = objective.fit_experts(weights, 1e-10)
    one_by_one = [objective.fit_expert(mine, 1e-10) for mine in weights]
    costs = objective.fit_and_cost(weights.T, 1e-10)[2]
    np.testing.assert_allclose(costs, objective.costs(*together), rtol=1e-9)
    for q, (W, intercept) in enumerate(one_by_one):
        np.testing.assert_allclose(together[0][q], W, rtol=1e-8)
        np.testing.assert_allclose(together[1][q], intercept, rtol=1e-8, atol=1e-12)


def test_experts_whose_columns_depend_on_others_have_the_shortest_weights():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 1)), rng.standard_normal((30, 1))
    response = Response(y, SquaredLoss(), 1, np.full(30, 1 / 30), True)
    twice = SampleObjective(as_design(np.hstack([X, X])), response, 0.0)
    once = SampleObjective(as_design(X), response, 0.0)
    weights = rng.random((30, 2))
    W, intercept, costs = twice.fit_and_cost(weights, 1e-10)
    plain = once.fit_and_cost(weights, 1e-10)
    np.testing.assert_allclose(W, np.repeat(0.5 * plain[0], 2, axis=1), rtol=1e-8)
    np.testing.assert_allclose(intercept, plain[1], rtol=1e-8)
    np.testing.assert_allclose(costs, plain[2], rtol=1e-7)
