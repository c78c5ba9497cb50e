"""Solvers for clustered samples: contracts, and brute force over all assignments."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from clustruct.datasets import make_experts
from clustruct.design import as_design
from clustruct.losses import HuberLoss, MultinomialLoss, SquaredLoss
from clustruct.objectives.linear import Response
from clustruct.objectives.samples.objective import SampleObjective
from clustruct.solvers.driver import Budget, drive
from clustruct.solvers.experts.alternating import AlternatingMinimisation, reseed
from clustruct.solvers.experts.elemental import from_elements
from clustruct.solvers.experts.mixture import HEAT
from clustruct.solvers.experts.problem import SETTINGS, SampleProblem
from clustruct.solvers.experts.recipes import RECIPES, panel_of, solve
from tests.losses.targets import NEWER, name_of, suited

SOLVERS = sorted(RECIPES)


def problem_of(X, target, loss, n_clusters, *, alpha=1e-2, fit_intercept=True, **settings):
    n_outputs = 3 if isinstance(loss, MultinomialLoss) else target.shape[1]
    n = X.shape[0]
    response = Response(target, loss, n_outputs, np.full(n, 1 / n), fit_intercept)
    defaults = {"n_starts": None, "seed": 0, "total": float(n)}
    return SampleProblem(
        SampleObjective(as_design(X), response, alpha),
        n_clusters,
        Budget(500, 1e-6, lambda iteration: None),
        **{**defaults, **settings},
    )


@pytest.fixture
def small():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((8, 1))
    y = np.where(np.arange(8) < 4, 2.0, -2.0) * X[:, 0] + 0.1 * rng.standard_normal(8)
    return X, y[:, None]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_brute_force_on_eight_samples(small, solver, fit_intercept):
    problem = problem_of(*small, SquaredLoss(), 2, fit_intercept=fit_intercept)
    best = min(
        problem.objective.fit_groups(np.array(labels), 1e-12).value
        for labels in itertools.product(range(2), repeat=8)
    )
    outcome = solve(problem, solver)
    value = outcome.solution.point.value
    assert value >= best - 1e-12
    assert outcome.certificate.lower_bound <= best + 1e-12
    if solver in ("auto", "am", "em"):
        assert value == pytest.approx(best)


@pytest.mark.parametrize("loss", [HuberLoss(0.5), *NEWER], ids=name_of)
def test_no_assignment_is_below_the_bound(small, loss):
    X, y = small
    problem = problem_of(X, suited(loss, y), loss, 2, alpha=0.1, fit_intercept=False)
    best = min(
        problem.objective.fit_groups(np.array([0, *labels]), 1e-12).value
        for labels in itertools.product(range(2), repeat=7)
    )
    outcome = solve(problem, "auto")
    assert 0.0 <= outcome.certificate.lower_bound <= best + 1e-12
    assert outcome.solution.point.value >= best - 1e-12


@pytest.mark.parametrize("solver", SOLVERS)
def test_planted_experts_are_found(solver):
    data = make_experts(200, 4, 3, intercepts=[0.0, 1.0, -1.0], random_state=5)
    problem = problem_of(data.X, data.y[:, None], SquaredLoss(), 3, alpha=1e-4)
    panel = panel_of(solve(problem, solver).solution)
    own = panel.W[:, :, 0][:, None] - data.experts
    assert np.linalg.norm(own, axis=2).min(axis=0).max() < 0.1


@pytest.mark.parametrize("solver", [s for s in SOLVERS if s != "cg"])
@pytest.mark.parametrize("loss", [HuberLoss(0.5), MultinomialLoss(), *NEWER], ids=name_of)
def test_no_step_raises_the_objective(solver, loss):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((30, 2))
    target = suited(loss, rng.standard_normal((30, 1)))
    if isinstance(loss, MultinomialLoss):
        target = rng.integers(0, 3, 30)
    outcome = solve(problem_of(X, target, loss, 2), solver)
    assert_falls(outcome.trace)
    panel = panel_of(outcome.solution)
    assert np.unique(panel.labels).size == panel.W.shape[0] <= 2


@pytest.mark.parametrize("solver", SOLVERS)
def test_trace_falls_for_squared_loss(solver):
    data = make_experts(150, 6, 3, noise_share=0.5, noise=0.5, random_state=1)
    outcome = solve(problem_of(data.X, data.y[:, None], SquaredLoss(), 3), solver)
    assert_falls(outcome.trace)


def assert_falls(trace):
    for before, after in itertools.pairwise(trace):
        if before.solver == after.solver:
            assert after.objective <= before.objective + 1e-9 * abs(before.objective)


def test_relevance_lowers_its_free_energy_and_drops_features():
    data = make_experts(300, 5, 2, noise_share=0.8, random_state=0)
    problem = problem_of(data.X, data.y[:, None], SquaredLoss(), 2, options={"relevance": True})
    outcome = solve(problem, "em")
    assert_falls(outcome.trace)
    used = panel_of(outcome.solution).W.any(axis=(0, 2))
    assert used[data.informative].all()
    assert used[~data.informative].mean() < 0.2


@pytest.mark.parametrize("solver", ["am", "rc", "em"])
def test_same_bits_whatever_n_jobs(solver):
    data = make_experts(200, 4, 3, noise=1.0, random_state=3)
    solutions = [
        solve(problem_of(data.X, data.y[:, None], SquaredLoss(), 3, n_jobs=jobs), solver)
        for jobs in (None, 2, 3)
    ]
    first = panel_of(solutions[0].solution)
    for other in solutions[1:]:
        assert (panel_of(other.solution).W == first.W).all()
        assert other.status == solutions[0].status


def test_idle_experts_get_the_samples_answered_worst():
    least = np.array([0.1, 5.0, 0.2, 4.0])
    labels = reseed(np.zeros(4, dtype=np.intp), least, np.full(4, 0.25), 2)
    assert labels.tolist() == [0, 1, 0, 0]


def test_experts_that_cannot_help_are_dropped():
    X = np.arange(6.0)[:, None]
    problem = problem_of(X, 2 * X + 1, SquaredLoss(), 3, alpha=0.0)
    panel = panel_of(solve(problem, "auto").solution)
    assert panel.value == pytest.approx(0.0, abs=1e-20)
    assert np.unique(panel.labels).size == panel.W.shape[0]


def test_alternating_minimisation_ends_where_nobody_wants_to_change():
    data = make_experts(100, 3, 2, random_state=0)
    problem = problem_of(data.X, data.y[:, None], SquaredLoss(), 2)
    solver = AlternatingMinimisation(problem.objective, *problem.experts(0), 2)
    run = drive(solver, problem.budget)
    found = panel_of(run.solution)
    assert (found.choices == found.labels).all()
    assert found.value == pytest.approx(problem.objective.fit_groups(found.labels, 1e-12).value)


def test_large_problems_are_searched_on_a_subset():
    data, settings = (
        make_experts(1000, 4, 2, random_state=0),
        replace(SETTINGS, large=1000, subset=200),
    )
    problem = problem_of(data.X, data.y[:, None], SquaredLoss(), 2, settings=settings)
    outcome = solve(problem, "auto")
    assert "on 200 samples" in outcome.status.message
    assert outcome.solution.point.value < 0.1


def test_starts_of_mixtures_differ_where_samples_are_plenty():
    data = make_experts(2000, 20, 3, random_state=0)
    problem = problem_of(data.X, data.y[:, None], SquaredLoss(), 3)
    assert problem.has_plenty
    starts = [problem.mixture_start(number) for number in range(4)]
    assert [heat for _, heat in starts] == [1.0, 1.0, HEAT, 1.0]  # the third one is random
    weights = [W for (W, _), _ in starts]
    assert all(not np.array_equal(a, b) for a, b in itertools.combinations(weights, 2))


def test_relevance_prior_begins_with_the_mixture_where_samples_are_plenty():
    data = make_experts(2000, 20, 3, random_state=0)
    problem = problem_of(data.X, data.y[:, None], SquaredLoss(), 3, alpha=1e-4)
    outcome = solve(problem, "em")
    assert outcome.status.message.count("best of 2 starts, reached twice") == 2
    assert outcome.solution.point.value < 0.02


def test_alternating_minimisation_is_tried_on_a_part_of_many_samples():
    settings = replace(SETTINGS, thinned=(60, 400))
    data = make_experts(1500, 2, 2, random_state=0)
    problem = problem_of(data.X, data.y[:, None], SquaredLoss(), 2, settings=settings)
    assert problem.thinned(settings.thinned).objective.response.shares.size <= 400
    assert solve(problem, "auto").solution.point.value < 0.1
    few = problem_of(data.X[:700], data.y[:700, None], SquaredLoss(), 2, settings=settings)
    assert few.thinned(settings.thinned) is few


def rare_expert(n=400):
    """Noise around one line, and a few of the samples around another."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (n, 1))
    rare = rng.random(n) < 0.04
    y = np.where(rare, -2.5, 1.0) * X[:, 0] + rng.standard_normal(n)
    return X, y[:, None]


def test_status_says_if_the_likelihood_prefers_other_experts():
    X, y = rare_expert()
    outcome = solve(problem_of(X, y, SquaredLoss(), 2, alpha=0.0), "auto")
    # The objective rather halves the noise, which the likelihood takes for what it is.
    assert 0.3 < np.mean(panel_of(outcome.solution).labels) < 0.7
    assert "the mixture likelihood prefers the experts of em" in outcome.status.message
    clear = make_experts(200, 2, 2, random_state=0)
    outcome = solve(problem_of(clear.X, clear.y[:, None], SquaredLoss(), 2), "auto")
    assert "elemental starts, found" in outcome.status.message
    assert "likelihood" not in outcome.status.message


def test_elemental_starts_do_not_depend_on_order_or_repetition():
    X, y = rare_expert(60)
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 4, 60)
    few = problem_of(X, y, SquaredLoss(), 3, alpha=1e-3)
    response = replace(few.objective.response, shares=counts / counts.sum())
    weighted = replace(few, objective=SampleObjective(as_design(X), response, 1e-3))
    rows = rng.permutation(np.repeat(np.arange(60), counts))
    repeated = problem_of(X[rows], y[rows], SquaredLoss(), 3, alpha=1e-3)
    first, second = from_elements(weighted)[0], from_elements(repeated)[0]
    assert first.value == pytest.approx(second.value, rel=1e-12)
    weights = [np.sort(panel.W, axis=None) for panel in (first, second)]
    np.testing.assert_allclose(*weights, rtol=1e-8)


TRUTH = np.array([[2.0, 0.0], [-1.0, 1.0]])


def with_noise(levels, outliers, n=400):
    """Two experts with these levels of noise, and targets that follow neither."""
    rng = np.random.default_rng(0)
    X, mine = rng.standard_normal((n, 2)), rng.integers(0, 2, n)
    noise = np.array(levels)[mine] * rng.standard_normal(n)
    y = (X * TRUTH[mine]).sum(axis=1) + noise
    y[rng.random(n) < outliers] = 30.0
    return problem_of(X, y[:, None], SquaredLoss(), 2, alpha=0.0)


def farthest(outcome):
    """How far the true experts are from those found."""
    found = panel_of(outcome.solution).W[:, None, :, 0]
    return np.linalg.norm(found - TRUTH, axis=2).min(axis=0).max()


def test_outliers_and_unequal_noise_have_a_place_in_the_mixture():
    problem = with_noise((0.1, 0.8), 0.05)
    own = solve(replace(problem, options={"noise": "own"}), "em")
    assert_falls(own.trace)
    assert farthest(own) < 0.15
    assert farthest(solve(problem, "em")) > 0.3


@pytest.mark.parametrize(("levels", "outliers"), [((0.1, 0.8), 0.0), ((0.4, 0.4), 0.05)])
def test_auto_finds_out_that_noise_is_unequal(levels, outliers):
    outcome = solve(with_noise(levels, outliers), "auto")
    assert outcome.status.solver == "em, own noise"
    assert "experts have unequal noise, or samples follow none, by" in outcome.status.message
    assert farthest(outcome) < 0.2


def test_noise_in_common_is_left_in_common():
    outcome = solve(with_noise((0.5, 0.5), 0.0), "auto")
    assert outcome.status.solver in ("am", "em")
    assert "unequal noise" not in outcome.status.message


def test_status_tells_the_remedy_where_the_evidence_is_not_enough():
    problem = with_noise((0.1, 0.8), 0.05)
    settings = replace(problem.settings, evidence_of_noise=1e9)
    outcome = solve(replace(problem, settings=settings), "auto")
    assert outcome.status.solver in ("am", "em")
    assert "try solver='em', solver_options={'noise': 'own'}" in outcome.status.message
    # What is found on a part of the samples is refined with noise in common.
    outcome = solve(problem.with_common_noise(), "auto")
    assert "unequal noise" not in outcome.status.message


def test_experts_in_turn_that_leave_nothing_need_no_other_start():
    data = make_experts(500, 12, 2, noise=1e-3, random_state=0)
    problem = problem_of(data.X, data.y[:, None], SquaredLoss(), 2, alpha=1e-6)
    assert problem.view(0) == ("in turn", 0)
    outcome = solve(problem, "auto")
    assert outcome.status.message.count("best of 1 start)") == 2
    assert outcome.solution.point.value < 1e-3


@pytest.mark.parametrize("loss", [HuberLoss(0.5), MultinomialLoss(), *NEWER], ids=name_of)
def test_own_noise_goes_with_every_loss(loss):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((30, 2))
    target = suited(loss, rng.standard_normal((30, 1)))
    if isinstance(loss, MultinomialLoss):
        target = rng.integers(0, 3, 30)
    outcome = solve(problem_of(X, target, loss, 2, options={"noise": "own"}), "em")
    assert np.isfinite(outcome.solution.point.value)
