"""The relaxation of clustered tasks: exact at groups, convex between them, below all of them."""

import numpy as np
import pytest

from clustruct.grouping.constraints import Clustered
from clustruct.losses import HuberLoss, LogisticLoss, SquaredLoss
from clustruct.relaxations.hull import dual_bound
from clustruct.relaxations.tasks import Spreads, TaskFactor, residual_bound
from tests.losses.targets import NEWER, name_of
from tests.objectives.task_problems import best_value, make

LABELS = np.array([0, 1, 0, 1, 1])
OTHERS = np.array([0, 0, 0, 1, 1])


def psi(factor, hull):
    return 0.5 * float(np.vdot(factor.target, hull.solve())) + factor.rest


@pytest.mark.parametrize("within", [0.7, np.inf])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_value_at_groups_is_the_objective(within, fit_intercept):
    objective = make(within=within, fit_intercept=fit_intercept)
    factor = TaskFactor(objective)
    for labels in (LABELS, OTHERS):
        best = objective.refit(labels, 2, 1e-12)
        assert psi(factor, factor.hull(labels, 2)) == pytest.approx(best.value, rel=1e-6)


def test_convex_and_falling_along_the_gradient():
    factor = TaskFactor(make())
    hull = factor.hull(LABELS, 2)
    toward = hull.toward(OTHERS, 2)
    values = [psi(factor, toward(share)) for share in np.linspace(0, 1, 5)]
    assert (np.diff(values, 2) >= -1e-9).all()
    P = factor.adjoint(hull.solve())

    def held(labels):
        means = np.stack([P[labels == q].mean(axis=0) for q in range(2)])[labels]
        return float(np.vdot(P, means))

    slope = (psi(factor, toward(1e-5)) - values[0]) / 1e-5
    assert slope == pytest.approx(-0.5 * (held(OTHERS) - held(LABELS)), rel=1e-3, abs=1e-7)


@pytest.mark.parametrize(
    "loss", [SquaredLoss(), HuberLoss(0.5), LogisticLoss(), *NEWER], ids=name_of
)
@pytest.mark.parametrize("within", [0.7, np.inf])
@pytest.mark.parametrize("seed", range(3))
def test_bounds_are_below_all_groups(loss, within, seed):
    objective = make(loss, within=within, seed=seed)
    least = best_value(objective, 2)
    for labels in (LABELS, OTHERS):
        point = objective.refit(labels, 2, 1e-12)
        assert 0.0 < residual_bound(objective, point, 2) <= least + 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_bound_of_the_relaxation(seed):
    objective = make(seed=seed)
    factor = TaskFactor(objective)
    least = best_value(objective, 2)
    rng = np.random.default_rng(seed)
    for B in (factor.hull(LABELS, 2).solve(), rng.standard_normal(factor.target.shape)):
        explained = Clustered(2).explained(factor.adjoint(B))
        assert dual_bound(factor, B, explained) <= least + 1e-9


def test_one_group_is_proved_to_be_best():
    objective = make()
    point = objective.refit(np.zeros(5, dtype=np.intp), 1, 1e-12)
    assert residual_bound(objective, point, 1) == pytest.approx(point.value, rel=1e-8)


def test_nothing_is_proved_without_prices():
    objective = make(alpha=0.0, mean=0.0)
    assert not Spreads.of(objective.strengths).finite
    assert residual_bound(objective, objective.refit(LABELS, 2, 1e-12), 2) == 0.0
