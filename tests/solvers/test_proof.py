"""Branch and bound: the optimum of every small problem, and no bound above it on the way."""

import itertools

import numpy as np
import pytest

import clustruct as cs
from clustruct.grouping.constraints import BlockClustered, Clustered
from clustruct.solvers import proof
from clustruct.solvers.driver import Budget, Solution, drive
from clustruct.solvers.proof import Proof, prove
from tests.solvers.proofs import draw, factors, quadratic_of, start_of


def proof_of(objective, constraint, solution=None, **limits):
    solution = start_of(objective, constraint) if solution is None else solution
    limits = {"max_nodes": 10_000, **limits}
    return prove(objective, constraint.limits(objective.shape[0]), solution, **limits)


@pytest.mark.parametrize("seed", range(200))
def test_small_problems_are_solved(seed):
    made = draw(seed)
    slack = 1e-8 * max(made.optimum, 1e-4 * made.objective.constant)
    run = proof_of(made.objective, made.constraint)
    assert run.converged
    assert run.solution.point.value == pytest.approx(made.optimum, abs=slack)
    assert run.state.bound <= made.optimum + slack
    assert run.state.bound >= made.optimum - slack
    labels = run.solution.labels
    refitted = made.objective.refit(labels, int(labels.max()) + 1, 0.0)
    assert refitted.value == pytest.approx(run.solution.point.value, abs=slack)
    nearest = made.constraint.project(run.solution.point.W)  # it is in the set
    assert nearest.sq_distance <= 1e-12 * np.square(run.solution.point.W).sum()
    for max_nodes in (1, 2, 4):
        early = proof_of(made.objective, made.constraint, max_nodes=max_nodes)
        assert early.state.bound <= made.optimum + slack


class Stubborn(Proof):
    """A proof that keeps the worst grouping until a leaf is better: no wrong decision is hidden."""

    def _offer(self, split):
        if split.is_leaf:
            super()._offer(split)


@pytest.mark.parametrize("seed", [*range(200, 320), 1064, 1264, 1814])
def test_parts_are_never_dropped_by_mistake(seed, monkeypatch):
    made = draw(seed)
    monkeypatch.setattr(proof, "descend", lambda *arguments: None)
    worst = np.array(max(made.groupings, key=made.value))
    point = made.objective.refit(worst, int(worst.max()) + 1, 0.0)
    limits = made.constraint.limits(made.objective.shape[0])
    budget = Budget(10_000, 0.0, lambda iteration: False, quiet=True)
    run = drive(Stubborn(made.objective, limits, Solution(point, worst)), budget)
    slack = 1e-8 * max(made.optimum, 1e-4 * made.objective.constant)
    assert run.converged
    assert run.solution.point.value == pytest.approx(made.optimum, abs=slack)


def test_a_bad_start_is_left_for_the_optimum():
    X, y, blocks = factors(0, n=200, n_factors=3, n_levels=6, n_active=2)
    objective, constraint = quadratic_of(X, y, 1e-3), BlockClustered(blocks, 7)
    # The levels of each factor in the order in which they come.
    labels = np.concatenate([[0, 0, 0, 1, 1, 2], [3, 3, 3, 4, 4, 5], [6] * 6])
    bad = Solution(objective.refit(labels, 7, 0.0), labels)
    good = start_of(objective, constraint)
    from_bad, from_good = (proof_of(objective, constraint, each) for each in (bad, good))
    assert from_bad.converged
    assert from_good.converged
    assert from_bad.solution.point.value < bad.point.value
    assert from_bad.solution.point.value == pytest.approx(from_good.solution.point.value, rel=1e-8)


def hard():
    """A problem that takes more than a few nodes."""
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((40, 14)), rng.standard_normal(40)
    return quadratic_of(X, y, 1e-3), Clustered(3)


def test_bounds_rise_and_the_same_problem_takes_the_same_nodes():
    objective, constraint = hard()
    seen = [[], []]
    runs = [proof_of(objective, constraint, callback=each.append) for each in seen]
    gaps = [iteration.step for iteration in seen[0]]
    values = [iteration.objective for iteration in seen[0]]
    bounds = [value * (1.0 - gap) for value, gap in zip(values, gaps, strict=True)]
    assert len(gaps) > 5
    assert all(after >= before - 1e-12 for before, after in itertools.pairwise(bounds))
    assert [(i.objective, i.step) for i in seen[0]] == [(i.objective, i.step) for i in seen[1]]
    np.testing.assert_array_equal(runs[0].solution.labels, runs[1].solution.labels)


def test_limits_end_a_proof():
    objective, constraint = hard()
    by_nodes = proof_of(objective, constraint, max_nodes=3)
    assert not by_nodes.converged
    assert by_nodes.trace[-1].number == 3
    by_time = proof_of(objective, constraint, time_limit=1e-9)
    assert by_time.stopped
    assert by_time.trace[-1].number == 0
    by_callback = proof_of(objective, constraint, callback=lambda i: i.number == 2)
    assert by_callback.stopped
    assert by_callback.trace[-1].number == 2
    assert by_callback.state.bound <= by_nodes.state.bound


@pytest.mark.parametrize("alpha", [0.0, 1e-3, 0.1])
@pytest.mark.parametrize("seed", range(3))
def test_the_certificate_of_a_single_factor_is_zero(alpha, seed):
    rng = np.random.default_rng(seed)
    codes = np.minimum(rng.exponential(5.0, 300).astype(int), 24)
    X = np.eye(25)[codes]
    y = rng.choice([-1.0, 0.0, 2.0], 25)[codes] + rng.standard_normal(300)
    model = cs.FeatureClusterRegressor(3, alpha=alpha, random_state=0)
    model.fit(X, y, sample_weight=rng.uniform(0.1, 1.0, 300))
    assert model.certificate_.relative_gap == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("sigma", [1.5, 3.0])
def test_five_factors_of_fifteen_levels(seed, sigma):
    X, y, blocks = factors(seed, sigma=sigma)
    model = cs.FeatureClusterRegressor(11, blocks=blocks, prove=True).fit(X, y)
    assert model.certificate_.relative_gap == 0.0
    assert "no grouping is left" in model.status_.message


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("high", [15.0, 1.0])
def test_thirty_features_of_the_paper(seed, high):
    problem = cs.datasets.make_clustered_features(
        150, 30, 3, noise=0.5, low=-high, high=high, random_state=seed
    )
    model = cs.FeatureClusterRegressor(3, prove=True).fit(problem.X, problem.y)
    assert model.certificate_.relative_gap == 0.0
