"""Mixtures over tasks: the evidence, its increase, and the number of groups."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.metrics import adjusted_rand_score

from clustruct.datasets import make_clustered_tasks
from clustruct.design import as_design
from clustruct.losses import HuberLoss, LogisticLoss, SquaredLoss
from clustruct.objectives.tasks.data import OwnRows, Part, task_data
from clustruct.objectives.tasks.evidence import Form, TaskLikelihood, of_inputs
from clustruct.solvers.driver import Budget, drive
from clustruct.solvers.tasks.counting import Counting
from clustruct.solvers.tasks.mixture import TaskMixture, hard
from clustruct.solvers.tasks.recipes import TaskProblem, solve
from tests.losses.targets import NEWER, name_of
from tests.objectives.task_problems import make

QUIET = Budget(500, 1e-7, lambda iteration: None)


def likelihood_of(X, y, tasks, loss=None, fit_intercept=True):
    """Tasks by their rows, which are sorted by task."""
    loss, sizes = loss or SquaredLoss(), np.bincount(tasks)
    rows = OwnRows.of([as_design(piece) for piece in np.split(X, np.cumsum(sizes)[:-1])])
    shares, means = np.full(len(y), 1 / len(y)), X.mean(axis=0) * fit_intercept
    data = task_data(Part(rows, y, shares, loss, means, fit_intercept), loss)
    begin = np.zeros((sizes.size, data.width))
    mean_loss = float(data.losses(begin).sum())
    return TaskLikelihood(data, loss.noise(1, mean_loss), float(len(y)), begin)


def counting_of(likelihood, most=4, inputs=()):
    return Counting(likelihood, inputs, most, QUIET, 0)


@pytest.fixture(scope="module")
def planted():
    problem = make_clustered_tasks(12, 4, 24, 3, within=0.2, shared=False, random_state=0)
    X, y, tasks = problem.rows()
    return likelihood_of(X, y - y.mean(), tasks), problem


def test_bound_of_one_group_is_the_evidence():
    # y = Z c + X u + noise, all of them normal: with one group the bound is exact.
    rng = np.random.default_rng(0)
    tasks, X = np.repeat(np.arange(5), 4), rng.standard_normal((20, 2))
    y = rng.standard_normal(20)
    likelihood = likelihood_of(X, y, tasks, fit_intercept=False)
    state = drive(TaskMixture(likelihood, np.ones((1, 5))), QUIET).state
    block, units = state.blocks[0], likelihood.units
    spread, prior = block.spread[0] / units**2, block.mean / units**2
    same = (tasks[:, None] == tasks).astype(float)
    covariance = state.scale * np.eye(20) + (X * spread) @ X.T * same + (X * prior) @ X.T
    expected = multivariate_normal.logpdf(y, np.zeros(20), covariance)
    # The posterior of the centroid is one step behind its prior, which moves slowly.
    bound = state.bound + block.unlikeness
    assert bound == pytest.approx(expected, abs=0.01)
    assert bound <= expected + 1e-9


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("form", list(Form))
def test_no_step_lowers_the_evidence(planted, count, form):
    likelihood, _ = planted
    rng = np.random.default_rng(count)
    inputs = (of_inputs(rng.standard_normal((24, 2)), np.full(24, 12.0)),)
    shares = hard(rng.integers(0, count, 24), count)
    solver = TaskMixture(likelihood, shares, inputs=inputs, form=form)
    steps = [i.objective for i in drive(solver, Budget(60, 0.0, lambda i: None, quiet=True)).trace]
    assert len(steps) > 5
    assert (np.diff(steps) <= 1e-8).all()


def test_balanced_random_intercepts_have_a_closed_form():
    # Analysis of variance: T is the mean square within, s the excess of that between, over n.
    rng = np.random.default_rng(1)
    n, count = 6, 40
    y = np.repeat(1.5 * rng.standard_normal(count), n) + rng.standard_normal(n * count)
    y -= y.mean()
    tasks, X = np.repeat(np.arange(count), n), np.zeros((n * count, 1))
    likelihood = likelihood_of(X, y, tasks)
    state = drive(TaskMixture(likelihood, np.ones((1, count))), Budget(500, 0.0, lambda i: None))
    pieces = y.reshape(count, n)
    within = pieces.var(axis=1, ddof=1).mean()
    between = n * pieces.mean(axis=1).var(ddof=1)
    assert state.state.scale == pytest.approx(within, rel=1e-3)
    spread = state.state.blocks[0].spread[0, -1] / likelihood.units[-1] ** 2
    # The mean has a wide prior, where analysis of variance has none.
    assert spread == pytest.approx((between - within) / n, rel=2e-3)


def test_planted_groups_are_found_by_evidence(planted):
    likelihood, problem = planted
    run = counting_of(likelihood).best()
    assert run.state.n_groups == 3
    assert adjusted_rand_score(run.solution.labels, problem.labels) == 1.0
    point = run.solution.point
    np.testing.assert_allclose(point.memberships.sum(axis=1), 1.0)
    known = drive(TaskMixture(likelihood, hard(problem.labels, 3), known=True), QUIET)
    errors = [
        np.square(found.solution.point.W[:, :-1] - problem.coef).sum() for found in (run, known)
    ]
    assert errors[0] == pytest.approx(errors[1], rel=0.05)
    again = counting_of(likelihood).best()
    assert (again.solution.point.W == point.W).all()


def test_one_group_where_there_are_none():
    problem = make_clustered_tasks(12, 4, 24, 1, within=0.5, shared=False, random_state=0)
    X, y, tasks = problem.rows()
    assert counting_of(likelihood_of(X, y - y.mean(), tasks)).best().state.n_groups == 1


def test_groups_have_their_own_spread_where_that_pays():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 40)
    W = np.array([[2.0, 0.0], [-2.0, 0.0]])[labels]
    W = W + np.array([0.05, 0.8])[labels][:, None] * rng.standard_normal((80, 2))
    tasks, X = np.repeat(np.arange(80), 10), rng.standard_normal((800, 2))
    y = (X * W[tasks]).sum(axis=1) + 0.5 * rng.standard_normal(800)
    point = counting_of(likelihood_of(X, y - y.mean(), tasks), most=2).best().solution.point
    wide = point.spread[:, :2].mean(axis=1)
    assert wide.max() > 20 * wide.min()
    assert np.sqrt(wide.max()) == pytest.approx(0.8, rel=0.3)


def test_inputs_tell_groups_apart():
    rng = np.random.default_rng(0)
    labels, counts = np.arange(20) % 2, np.full(20, 30.0)
    X, y = rng.standard_normal((60, 2)), rng.standard_normal(60)
    likelihood = likelihood_of(X, y, np.repeat(np.arange(20), 3))
    assert counting_of(likelihood).best().state.n_groups == 1
    inputs = of_inputs(3.0 * labels[:, None] + 0.3 * rng.standard_normal((20, 2)), counts)
    run = counting_of(likelihood, inputs=(inputs,)).best()
    assert adjusted_rand_score(run.solution.labels, labels) == 1.0


@pytest.mark.parametrize("loss", [HuberLoss(0.5), LogisticLoss(), *NEWER], ids=name_of)
def test_other_losses_settle_at_the_likeliest_weights(loss):
    objective = make(loss, n_tasks=8, d=2, sizes=(6, 12))
    data = objective.data
    begin = objective.refit(np.zeros(8, dtype=int), 1, 1e-6).W
    mean_loss = float(data.losses(np.zeros(objective.shape)).sum())
    likelihood = TaskLikelihood(data, loss.noise(1, mean_loss), 80.0, begin)
    run = drive(TaskMixture(likelihood, np.ones((1, 8))), Budget(500, 1e-11, lambda i: None, True))
    state, block = run.state, run.state.blocks[0]
    # No task has likelier weights: the slope of the loss is that of the prior.
    W = state.integrated[0].weights(block.centers)[0]
    slopes = data.models(W / likelihood.units).slopes(W / likelihood.units) / likelihood.units
    prior = (W - block.centers[0]) / block.spread[0]
    np.testing.assert_allclose(80.0 / state.scale * slopes + prior, 0.0, atol=1e-2)


def test_a_mixture_needs_its_noise():
    problem = TaskProblem(make(), 2, QUIET, None, 0)
    with pytest.raises(TypeError, match="give `sources`"):
        solve(problem, "em")


def test_outlying_tasks_get_a_wide_group():
    # Three groups, and four tasks of sixty that are like no others.
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    W = 1.5 * rng.standard_normal((3, 4))[labels] + 0.1 * rng.standard_normal((60, 4))
    W[:4] += 3.0 * rng.standard_normal((4, 4))
    tasks, X = np.repeat(np.arange(60), 12), rng.standard_normal((720, 4))
    y = (X * W[tasks]).sum(axis=1) + 0.5 * rng.standard_normal(720)
    run = counting_of(likelihood_of(X, y - y.mean(), tasks)).best()
    assert run.state.n_groups == 4
    wide = run.solution.point.spread[:, :4].mean(axis=1)
    outlying = int(wide.argmax())
    assert wide[outlying] > 20 * np.delete(wide, outlying).max()
    assert set(np.flatnonzero(run.solution.labels == outlying)) == set(range(4))
    assert adjusted_rand_score(run.solution.labels[4:], labels[4:]) == 1.0
