"""Losses with negative values: the same weights, and bounds that are not clipped at zero."""

import numpy as np
import pytest

import clustruct as cs
from clustruct.design import as_design
from clustruct.grouping.constraints import Clustered, SparseClustered
from clustruct.losses import HuberLoss, LogisticLoss, SquaredLoss, least_mean
from clustruct.objectives.features.objective import FeatureObjective
from clustruct.objectives.linear import Response
from clustruct.solvers.driver import Budget
from clustruct.solvers.features import FeatureProblem, solve

N, D = 80, 8
SHARES = np.full(N, 1 / N)


class Lowered:
    """Another loss less a number: it says nothing of its sign, as losses may that are not ours."""

    quadratic = False  # closed forms know the squared loss only

    def __init__(self, loss, shift):
        self._loss, self._shift = loss, shift
        self.curvature, self.relative = loss.curvature, loss.relative
        self.gradient, self.hessian_product = loss.gradient, loss.hessian_product

    def value(self, target, scores):
        return self._loss.value(target, scores) - self._shift

    def conjugate(self, target, slope):
        return self._loss.conjugate(target, slope) + self._shift


class LoweredHuber(HuberLoss):
    """The Huber loss less 3."""

    nonnegative = False

    def value(self, target, scores):
        return super().value(target, scores) - 3.0

    def conjugate(self, target, slope):
        return super().conjugate(target, slope) + 3.0


def samples(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D))
    weights = np.array([-1.0, 2.0, 0.5])[np.arange(D) % 3]
    return X, X @ weights + rng.standard_normal(N)


def solved(loss, solver, constraint, y, alpha=1e-2):
    X, _ = samples()
    response = Response(y[:, None], loss, 1, SHARES, fit_intercept=True)
    problem = FeatureProblem(
        objective=FeatureObjective(as_design(X), response, alpha),
        constraint=constraint,
        budget=Budget(500, 1e-10, lambda iteration: None),
        start=None,
        n_starts=None,
        rng=np.random.default_rng(0),
    )
    return solve(problem, solver)


@pytest.mark.parametrize("solver", ["greedy", "pg", "soft", "auto"])
@pytest.mark.parametrize("constraint", [Clustered(2), SparseClustered(2, 4)], ids=["all", "few"])
@pytest.mark.parametrize("loss", [SquaredLoss(), HuberLoss(1.0), LogisticLoss()])
def test_a_constant_changes_nothing_but_the_objective(loss, constraint, solver):
    y = samples()[1]
    y = np.sign(y) if isinstance(loss, LogisticLoss) else y
    plain = solved(Lowered(loss, 0.0), solver, constraint, y)
    for shift in (0.5, 100.0, -20.0):
        found = solved(Lowered(loss, shift), solver, constraint, y)
        np.testing.assert_array_equal(found.solution.labels, plain.solution.labels)
        np.testing.assert_allclose(found.solution.point.W, plain.solution.point.W, atol=1e-5)
        mine, its = found.certificate, plain.certificate
        assert mine.objective + shift == pytest.approx(its.objective, abs=1e-9)
        assert mine.lower_bound + shift == pytest.approx(its.lower_bound, abs=1e-6)
        assert its.lower_bound > 0.0
        assert mine.in_words != its.in_words or shift < 0.0


def test_without_ridge_the_least_loss_is_the_bound():
    found = solved(Lowered(SquaredLoss(), 2.0), "pg", Clustered(2), samples()[1], alpha=0.0)
    assert found.certificate.lower_bound == pytest.approx(-2.0)
    assert found.certificate.objective > -2.0


def test_a_loss_without_a_least_value_has_no_bound_to_lift():
    class Unbounded(Lowered):
        def conjugate(self, target, slope):
            return np.full(target.shape[0], np.inf)

    assert least_mean(Unbounded(SquaredLoss(), 0.0), np.zeros((N, 1)), 1, SHARES) == -np.inf


def test_estimators_with_a_negative_loss():
    X, y = samples()
    plain = cs.FeatureClusterRegressor(2, loss="huber", random_state=0).fit(X, y)
    chosen = cs.FeatureClusterRegressorCV((2, 3), loss="huber", random_state=0).fit(X, y)
    lowered = LoweredHuber(1.35)
    model = cs.FeatureClusterRegressor(2, loss=lowered, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-6)
    certificate = model.certificate_
    assert certificate.objective == pytest.approx(plain.objective_ - 3.0)
    assert certificate.lower_bound == pytest.approx(plain.certificate_.lower_bound - 3.0, abs=1e-6)
    assert certificate.gap == pytest.approx(plain.certificate_.gap, abs=1e-6)
    assert "(it is -" in certificate.in_words
    again = cs.FeatureClusterRegressorCV((2, 3), loss=lowered, random_state=0).fit(X, y)
    np.testing.assert_allclose(again.coef_, chosen.coef_, atol=1e-6)
