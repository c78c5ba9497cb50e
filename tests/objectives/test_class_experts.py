"""Compiled experts of classes, against scikit-learn and the objective of any loss."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from clustruct.design import as_design
from clustruct.losses import MultinomialLoss
from clustruct.objectives.linear import Response
from clustruct.objectives.samples.classes import ClassObjective
from clustruct.objectives.samples.objective import SampleObjective
from clustruct.objectives.samples.streamed import sample_objective
from clustruct.solvers.driver import Budget, drive
from clustruct.solvers.experts.mixture import MixtureEM

ALPHA = 0.05


def make(n=90, d=3, n_classes=4, fit_intercept=True, seed=0):
    """The compiled objective, that of any loss, and experts."""
    rng = np.random.default_rng(seed)
    X, which = rng.standard_normal((n, d)), rng.integers(2, size=n)
    truth = 2.0 * rng.standard_normal((2, d, n_classes))
    scores = np.einsum("id,idk->ik", X, truth[which]) + rng.gumbel(size=(n, n_classes))
    shares = rng.uniform(0.5, 1.5, n)
    response = Response(
        scores.argmax(axis=1), MultinomialLoss(), n_classes, shares / shares.sum(), fit_intercept
    )
    design = as_design(X)
    compiled = sample_objective(design, response, ALPHA)
    assert isinstance(compiled, ClassObjective)
    W = rng.standard_normal((2, d, n_classes))
    intercept = rng.standard_normal((2, n_classes)) * fit_intercept
    return compiled, SampleObjective(design, response, ALPHA), W, intercept, X


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kept", [True, False])
def test_experts_are_those_of_logistic_regression(fit_intercept, kept):
    objective, _, W, _, X = make(fit_intercept=fit_intercept)
    objective = objective.private() if kept else objective
    rng, y = np.random.default_rng(1), objective.response.target
    for _ in range(3):  # each from the experts before
        weights = rng.uniform(0, 1, (2, y.size)) ** 4
        W, intercept = objective.fit_experts(weights, 1e-9, W)
        for q in range(2):
            peer = LogisticRegression(
                C=1 / ALPHA, fit_intercept=fit_intercept, tol=1e-10, max_iter=10_000
            ).fit(X, y, weights[q] / weights[q].sum())
            np.testing.assert_allclose(W[q].T, peer.coef_, atol=1e-5)
            np.testing.assert_allclose(
                intercept[q] - intercept[q].mean(),
                peer.intercept_ - np.mean(peer.intercept_),
                atol=1e-5,
            )


def test_a_class_without_samples_is_left_out():
    objective, plain, W, _, _ = make()
    y = objective.response.target
    weights = np.stack([(y != 1).astype(float), np.ones(y.size)])
    found, expected = objective.fit_experts(weights, 1e-9, W), plain.fit_experts(weights, 1e-9)
    np.testing.assert_allclose(found[0], expected[0], atol=1e-6)
    np.testing.assert_allclose(found[1], expected[1], atol=1e-6)
    W, intercept, costs = objective.fit_and_cost(weights.T, 1e-9, W)
    np.testing.assert_allclose(costs, plain.costs(W, intercept), atol=1e-12)


def test_samples_of_one_class_alone():
    objective, plain, W, _, _ = make()
    weights = (objective.response.target == np.array([[1], [2]])).astype(float)
    found, expected = objective.fit_experts(weights, 1e-9, W), plain.fit_experts(weights, 1e-9)
    for mine, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_panels_are_those_of_any_loss(fit_intercept):
    objective, plain, W, intercept, _ = make(fit_intercept=fit_intercept)
    labels = np.random.default_rng(2).integers(2, size=90)
    for given in (None, labels):
        mine, other = (o.judged(W, intercept, given) for o in (objective, plain))
        for name in ("value", "slope", "labels", "choices", "least", "demand"):
            np.testing.assert_allclose(getattr(mine, name), getattr(other, name), atol=1e-13)


def test_a_step_makes_no_expert_worse():
    objective, plain, W, intercept, _ = make()
    run, rng = objective.private(), np.random.default_rng(3)
    costs = run.costs(W, intercept)
    for _ in range(12):
        weights = rng.uniform(0, 1, costs.shape)
        before = (weights * costs).sum(axis=0)
        W, intercept, costs = run.fit_and_cost(weights, 1e-4, W)
        assert ((weights * costs).sum(axis=0) <= before * (1 + 1e-12)).all()
        np.testing.assert_allclose(costs, plain.costs(W, intercept), atol=1e-12)


def test_expectation_and_maximisation_goes_down_to_where_exact_fits_stay():
    objective, plain, W, intercept, _ = make(seed=4)
    noise = MultinomialLoss().noise(4, 1.0)
    budget = Budget(2000, 1e-11, lambda iteration: None, quiet=True)
    found = drive(MixtureEM(objective, noise, W, intercept), budget)
    values = [iteration.objective for iteration in found.trace]
    assert len(values) > 5
    assert (np.diff(values) <= 0.0).all()
    weights = objective.response.shares[:, None] * found.state.weights
    exact = plain.costs(*plain.fit_experts(weights.T, 1e-9, found.state.W))
    left = np.vdot(weights, found.state.costs) - np.vdot(weights, exact)
    assert left == pytest.approx(0.0, abs=1e-7)


def test_runs_do_not_know_of_each_other():
    objective, _, W, intercept, _ = make()
    noise = MultinomialLoss().noise(4, 1.0)
    budget = Budget(20, 1e-9, lambda iteration: None, quiet=True)
    first = drive(MixtureEM(objective, noise, W, intercept), budget)
    drive(MixtureEM(objective, noise, -W, intercept), budget)
    again = drive(MixtureEM(objective, noise, W, intercept), budget)
    np.testing.assert_array_equal(first.state.W, again.state.W)
