"""Solvers of clustered tasks: against all groupings, on planted ones, and their contract."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from clustruct.datasets import make_clustered_tasks
from clustruct.design import as_design
from clustruct.losses import HuberLoss, LogisticLoss, SquaredLoss
from clustruct.objectives.tasks.blocks import Strengths
from clustruct.objectives.tasks.data import OwnRows, Part, task_data
from clustruct.objectives.tasks.objective import TaskObjective
from clustruct.solvers.driver import Budget, drive
from clustruct.solvers.tasks.alternation import TaskAlternation
from clustruct.solvers.tasks.recipes import RECIPES, TaskProblem, solve
from tests.losses.targets import NEWER, name_of
from tests.objectives.task_problems import best_value, make

QUIET = Budget(500, 1e-8, lambda iteration: None)


def problem_of(objective, n_clusters, **settings):
    return TaskProblem(objective, n_clusters, QUIET, settings.pop("n_starts", None), 0, **settings)


@pytest.mark.parametrize("within", [0.7, np.inf])
@pytest.mark.parametrize("seed", range(6))
def test_best_of_all_groupings(within, seed):
    objective = make(n_tasks=7, seed=seed, within=within, between=0.1, mean=0.05)
    outcome = solve(problem_of(objective, 2), "auto")
    assert outcome.solution.point.value == pytest.approx(best_value(objective, 2), rel=1e-9)
    assert outcome.certificate.lower_bound <= outcome.solution.point.value


@pytest.mark.parametrize("loss", [HuberLoss(0.5), LogisticLoss(), *NEWER], ids=name_of)
def test_best_of_all_groupings_by_newton(loss):
    objective = make(loss, n_tasks=6, sizes=(4, 9), within=2.0, between=0.05, mean=0.01)
    outcome = solve(problem_of(objective, 2), "am")
    assert outcome.solution.point.value == pytest.approx(best_value(objective, 2), rel=1e-7)


@pytest.mark.parametrize("solver", RECIPES)
def test_what_every_solver_promises(solver):
    objective = make(n_tasks=8, d=2, sizes=(3, 9), seed=3)
    outcome = solve(problem_of(objective, 3), solver)
    point, labels = outcome.solution.point, outcome.solution.labels
    assert labels.max() < 3
    refitted = objective.refit(labels, 3, 1e-12)
    assert point.value == pytest.approx(refitted.value, rel=1e-9)
    assert outcome.certificate.lower_bound <= best_value(objective, 3) + 1e-9
    assert outcome.status.converged
    again = solve(problem_of(objective, 3, n_jobs=2), solver)
    assert (again.solution.point.W == point.W).all()
    steps = [i.objective for i in outcome.trace if i.solver == "am"]
    assert (np.diff(steps) <= 1e-12).all()


def test_paper_steps_of_projected_gradient():
    objective = make(n_tasks=8, seed=3)
    outcome = solve(problem_of(objective, 2, options={"refit": False}), "pg")
    assert outcome.solution.point.value == pytest.approx(best_value(objective, 2), rel=1e-9)


def test_conditional_gradient_has_the_better_bound():
    objective = make(n_tasks=8, seed=1, sizes=(4, 9))
    relaxed, plain = (solve(problem_of(objective, 2), name).certificate for name in ("cg", "am"))
    assert relaxed.source == "conditional gradient"
    assert plain.lower_bound < relaxed.lower_bound <= best_value(objective, 2) + 1e-9


def test_conditional_gradient_says_what_it_needs():
    for objective in (make(LogisticLoss()), make(alpha=0.0, mean=0.0)):
        with pytest.raises(ValueError, match="squared loss and positive strengths"):
            solve(problem_of(objective, 2), "cg")


def test_moves_find_what_assignment_misses():
    # From the worst of starts, all tasks but one in one group.
    objective = make(n_tasks=7, seed=0, within=5.0, between=0.02, mean=0.01)
    labels = np.array([0, 0, 0, 0, 0, 0, 1])
    run = drive(TaskAlternation(objective, labels, 2), QUIET)
    stuck = objective.refit(labels, 2, 1e-12)
    assert run.solution.point.value < stuck.value


def test_empty_groups_are_opened():
    objective = make(n_tasks=7, seed=0, within=5.0, between=0.02, mean=0.01)
    run = drive(TaskAlternation(objective, np.zeros(7, dtype=np.intp), 3), QUIET)
    assert np.unique(run.solution.labels).size == 3


def test_few_tasks_are_groups_of_their_own():
    objective = make(n_tasks=3)
    outcome = solve(problem_of(objective, 3), "auto")
    assert np.unique(outcome.solution.labels).size == 3


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("solver", ["am", "pg", "cg"])
def test_planted_groups(seed, solver):
    planted = make_clustered_tasks(12, 6, 24, 3, noise=1.0, shared=False, random_state=seed)
    X, y, tasks = planted.rows()
    rows = OwnRows.of([as_design(X[tasks == t]) for t in range(24)])
    shares = np.full(y.size, 1 / y.size)
    part = Part(rows, y, shares, SquaredLoss(), np.zeros(6), False)
    data = task_data(part, SquaredLoss())
    prices = Strengths(*(np.full(6, price) for price in (0.0, 0.05, 0.05, 5.0)))
    outcome = solve(problem_of(TaskObjective(data, prices), 3), solver)
    assert adjusted_rand_score(outcome.solution.labels, planted.labels) == 1.0
