"""What every solver promises, on every objective; and what each of them is."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge

import clustruct as cs
from clustruct.grouping.constraints import BlockClustered, Clustered, Free, SparseClustered
from clustruct.relaxations import hull as relaxations
from clustruct.relaxations.features import factor_of
from clustruct.relaxations.hull import RelaxationSettings
from clustruct.solvers.conditional_gradient import ConditionalGradient
from clustruct.solvers.driver import Budget, drive
from clustruct.solvers.features import OPTIONS, RECIPES, FeatureProblem, solve
from clustruct.solvers.greedy import Greedy
from clustruct.solvers.projected_gradient import ProjectedGradient, same_groups
from tests import brute_force as bf
from tests.objectives.problems import KINDS, QUADRATIC, problem

D = 8
# Solver, its options, and whether it takes any loss.
SOLVERS = {
    "greedy": ("greedy", {}, True),
    "greedy without refit": ("greedy", {"refit": False}, True),
    "pg": ("pg", {}, True),
    "pg of the paper": ("pg", {"refit": False}, True),
    "pg with long strides": ("pg", {"shrink": 0.3, "shortest": 1e-3}, True),
    "soft": ("soft", {"n_turns": 1, "n_annealed": 2, "n_sweeps": 20}, True),
    "cg": ("cg", {}, False),
    "cg of the paper": ("cg", {"step": "classic"}, False),
    "cgpg": ("cgpg", {}, False),
    "cgpg of the paper": ("cgpg", {"step": "classic", "refit": False}, False),
    "auto": ("auto", {}, True),
}
BLOCKS = np.array([0, 0, 0, 1, 1, 1, -1, -1])
CONSTRAINTS = {
    "clustered": (lambda: Clustered(3), lambda: bf.groupings(D, 3)),
    "sparse": (lambda: SparseClustered(2, 4), lambda: bf.sparse_groupings(D, 2, 4)),
    "thresholded": (lambda: SparseClustered(None, 4), lambda: bf.sparse_groupings(D, None, 4)),
    "blocks": (lambda: BlockClustered(BLOCKS, 3), lambda: list(bf.block_groupings(BLOCKS, 3))),
    "free": (Free, lambda: [tuple(range(D))]),
}
# With several outputs a projection takes ten runs of k-means: fewer combinations of these.
CASES = [
    (solver, kind, form, limits)
    for solver, (_, _, any_loss) in SOLVERS.items()
    for kind in KINDS
    if any_loss or kind in QUADRATIC
    for form in (("by_gram", "by_rows") if kind in QUADRATIC else ("by_sparse_rows",))
    for limits in CONSTRAINTS
    if KINDS[kind][1] == 1 or (limits in ("clustered", "thresholded") and form != "by_rows")
    if not (solver == "soft" and limits == "thresholded")  # a weight each: nothing to move
]


def feature_problem(objective, constraint, *, max_iter=500, tol=1e-4, start=None, **options):
    return FeatureProblem(
        objective=objective,
        constraint=constraint,
        budget=Budget(max_iter, tol, lambda iteration: None),
        start=start,
        n_starts=options.pop("n_starts", None),
        rng=np.random.default_rng(options.pop("seed", 0)),
        options=options,
    )


def is_feasible(W, choices):
    """Whether some grouping holds the point."""
    return any(np.allclose(bf.project(W, labels), W, rtol=1e-9, atol=1e-12) for labels in choices)


@pytest.mark.parametrize(("solver", "kind", "form", "limits"), CASES)
def test_contract(solver, kind, form, limits):
    name, options, _ = SOLVERS[solver]
    made = problem(kind, seed=3, d=D, n=40)
    constraint, choices = (make() for make in CONSTRAINTS[limits])
    outcome = solve(feature_problem(getattr(made, form), constraint, **options), name)
    point, labels = outcome.solution.point, outcome.solution.labels

    # The solution obeys the constraint, and its labels say how.
    assert is_feasible(point.W, choices)
    assert labels.shape == (D,)
    assert not point.W[labels < 0].any()
    for label in np.unique(labels[labels >= 0]):
        assert np.unique(point.W[labels == label], axis=0).shape[0] == 1

    # The objective is that of the solution, computed anew.
    assert point.value == pytest.approx(made.value(point.W, point.intercept), rel=1e-9)
    assert dict(outcome.status.objectives)[outcome.status.solver] == point.value

    # Accepted steps never raise the objective.
    for stage in {i.solver for i in outcome.trace}:
        steps = [i for i in outcome.trace if i.solver == stage]
        assert [i.number for i in steps] == list(range(len(steps)))
        assert (np.diff([i.objective for i in steps]) <= 0).all()
    assert outcome.status.converged

    # The certificate is about this solution.
    certificate = outcome.certificate
    assert certificate.objective == point.value
    assert 0.0 <= certificate.lower_bound <= point.value
    assert certificate.gap >= 0.0
    sources = ("unconstrained", "residual", "conditional gradient", "tangent")
    assert certificate.source in sources
    assert certificate.lower_bound >= outcome.by_duality.lower_bound

    # The same again, to the last bit.
    again = solve(feature_problem(getattr(made, form), constraint, **options), name)
    np.testing.assert_array_equal(again.solution.point.W, point.W)
    assert again.certificate == certificate


@pytest.mark.parametrize("limits", CONSTRAINTS)
@pytest.mark.parametrize("seed", range(6))
def test_certificates_are_never_above_the_best_of_all_groupings(limits, seed):
    alpha = 10.0 ** -(1 + seed % 4)
    made = problem("squared", seed, d=D, alpha=alpha, intercept=seed % 3 > 0, weighted=seed > 0)
    constraint, choices = (make() for make in CONSTRAINTS[limits])
    least = made.best(choices)
    for solver in ("greedy", "pg", "cg", "cgpg"):
        for form in (made.by_gram, made.by_rows):
            outcome = solve(feature_problem(form, constraint), solver)
            assert outcome.certificate.lower_bound <= least * (1 + 1e-9)
            assert outcome.solution.point.value >= least * (1 - 1e-9)


@pytest.mark.parametrize("kind", ["huber", "logistic", "poisson", "gamma", "tweedie", "quantile"])
def test_certificates_of_other_losses(kind):
    for seed in range(2):
        made = problem(kind, seed, d=5)
        least = made.best(bf.groupings(5, 2))
        for solver in ("greedy", "pg"):
            outcome = solve(feature_problem(made.by_rows, Clustered(2)), solver)
            assert 0.0 < outcome.certificate.lower_bound <= least * (1 + 1e-8)
            assert outcome.solution.point.value >= least * (1 - 1e-8)


@pytest.mark.parametrize("form", ["by_gram", "by_rows"])
def test_certificate_is_within_one_per_cent(form):
    gaps = []
    for seed in range(5 if form == "by_gram" else 1):
        planted = cs.datasets.make_clustered_features(500, 50, 5, noise=0.5, random_state=seed)
        made = problem("squared", d=50, n=500, weighted=False)
        made.X[:], made.target[:, 0] = planted.X, planted.y
        outcome = solve(feature_problem(getattr(made, form), Clustered(5), tol=1e-5), "cgpg")
        gaps.append(outcome.certificate.relative_gap)
    assert max(gaps) <= 0.01


# ---- Budgets.


@pytest.mark.parametrize("solver", ["pg", "cg"])
def test_budget(solver):
    made = problem("squared", seed=1, d=30, n=60, alpha=1e-3)
    options = {"refit": False} if solver == "pg" else {"step": "classic"}
    with pytest.warns(ConvergenceWarning, match=f"{solver!r} stopped after max_iter=2") as caught:
        outcome = solve(
            feature_problem(made.by_gram, Clustered(4), max_iter=2, tol=0.0, **options), solver
        )
    assert "Raise max_iter, raise tol" in str(caught[0].message)
    assert not outcome.status.converged
    assert outcome.status.n_iter == 2
    assert "stopped by max_iter after 2 steps" in outcome.status.message


def test_status_tells_what_was_tried():
    made = problem("squared", seed=1, d=12, n=30)
    outcome = solve(feature_problem(made.by_gram, Clustered(3), n_starts=4), "pg")
    values = [value for _, value in outcome.status.objectives]
    assert len(values) == 4
    assert outcome.solution.point.value == min(values)
    assert outcome.status.message.endswith("Kept pg.")
    both = solve(feature_problem(made.by_gram, Clustered(3)), "cgpg")
    assert {i.solver for i in both.trace} == {"cg", "pg"}
    assert ", then " in both.status.message


def test_more_starts_are_never_worse():
    for seed in range(5):
        made = problem("squared", seed, d=20, n=25, alpha=1e-3)
        one = solve(feature_problem(made.by_gram, Clustered(3)), "pg").solution.point.value
        many = solve(feature_problem(made.by_gram, Clustered(3), n_starts=6), "pg")
        assert many.solution.point.value <= one


def test_every_recipe_has_its_options():
    assert set(OPTIONS) == set(RECIPES)


# ---- Each solver by itself.


def test_greedy_without_refit_is_least_squares_then_k_means():
    made = problem("squared", seed=2, d=D, n=50, weighted=False)
    outcome = solve(feature_problem(made.by_gram, Clustered(3), refit=False), "greedy")
    ridge = Ridge(50 * made.alpha).fit(made.X, made.target[:, 0]).coef_.reshape(-1, 1)
    nearest = min(
        bf.groupings(D, 3), key=lambda labels: np.square(ridge - bf.project(ridge, labels)).sum()
    )
    np.testing.assert_allclose(outcome.solution.point.W, bf.project(ridge, nearest), atol=1e-9)
    refitted = solve(feature_problem(made.by_gram, Clustered(3)), "greedy")
    assert refitted.solution.point.value == pytest.approx(made.least(nearest)[0], rel=1e-10)
    assert refitted.solution.point.value < outcome.solution.point.value


def test_greedy_groups_rows_of_several_outputs():
    made = problem("squared, two outputs", seed=2, d=D, n=50, weighted=False)
    outcome = solve(feature_problem(made.by_gram, Clustered(3), refit=False), "greedy")
    ridge = Ridge(50 * made.alpha).fit(made.X, made.target).coef_.T
    found = KMeans(3, n_init=20, random_state=1).fit(ridge)
    np.testing.assert_allclose(
        outcome.solution.point.W, found.cluster_centers_[found.labels_], atol=1e-9
    )


@pytest.mark.parametrize("kind", ["squared", "huber", "logistic", "poisson", "quantile"])
@pytest.mark.parametrize("limits", ["clustered", "sparse", "blocks"])
def test_no_projected_step_is_left_that_helps(kind, limits):
    made = problem(kind, seed=5, d=D, n=30)
    constraint = CONSTRAINTS[limits][0]()
    objective = made.by_rows
    longest, shrink, shortest = 4.0 / objective.curvatures().mean(), 0.8, 1e-4
    solver = ProjectedGradient(
        objective, constraint, np.zeros((D, 1)), longest=longest, shrink=shrink, shortest=shortest
    )
    solution = drive(solver, Budget(500, 0.0, lambda i: None)).solution
    gradient = objective.gradient(solution.point)
    step = longest
    while step >= shortest * longest:
        nearest = constraint.project(solution.point.W - step * gradient)
        value = made.least(tuple(nearest.labels.tolist()))[0]
        assert value >= solution.point.value * (1 - 1e-9)
        step *= shrink
    # Its groups have their best values.
    assert solution.point.value <= made.least(tuple(solution.labels.tolist()))[0] * (1 + 1e-9)


def test_projected_gradient_of_the_paper_ends_where_no_step_helps():
    made = problem("squared", seed=5, d=D, n=30)
    objective, constraint = made.by_gram, Clustered(3)
    solver = ProjectedGradient(
        objective, constraint, np.zeros((D, 1)), longest=1.0, refit=False, shortest=1e-10
    )
    solution = drive(solver, Budget(5000, 0.0, lambda i: None)).solution
    gradient = objective.gradient(solution.point)
    for step in np.geomspace(1e-9, 1.0, 40):
        point = constraint.project(solution.point.W - step * gradient).point
        assert objective.at(point).value >= solution.point.value * (1 - 1e-10)


def test_projected_gradient_without_groups_is_iterative_hard_thresholding():
    made = problem("squared", seed=6, d=D, n=60)
    outcome = solve(feature_problem(made.by_gram, SparseClustered(None, 3)), "pg")
    W = outcome.solution.point.W
    assert np.count_nonzero(W) == 3
    # The fixed point: thresholding a gradient step keeps the support, which is fitted best.
    support = tuple(np.flatnonzero(W).tolist())
    labels = [-1] * D
    for q, j in enumerate(support):
        labels[j] = q
    assert outcome.solution.point.value == pytest.approx(made.least(tuple(labels))[0], rel=1e-9)
    gradient = made.by_gram.gradient(outcome.solution.point)
    step = 0.1 / np.linalg.eigvalsh(made.by_gram.gram).max()
    kept = np.argsort(-np.abs(W - step * gradient)[:, 0])[:3]
    assert sorted(kept.tolist()) == list(support)


@pytest.mark.parametrize("start", ["zeros", "given", "planted"])
def test_starts(start):
    planted = cs.datasets.make_clustered_features(150, 20, 3, noise=0.1, random_state=0)
    made = problem("squared", d=20, n=150, weighted=False, alpha=1e-4)
    made.X[:], made.target[:, 0] = planted.X, planted.y
    begin = {
        "zeros": np.zeros((20, 1)),
        "given": np.random.default_rng(0).standard_normal((20, 1)),
        "planted": planted.coef.reshape(20, 1),
    }[start]
    outcome = solve(feature_problem(made.by_gram, Clustered(3), start=begin), "pg")
    oracle = made.least(tuple(planted.labels.tolist()))[0]
    if start == "planted":
        assert outcome.solution.point.value <= oracle * (1 + 1e-9)
        assert outcome.trace[0].objective == pytest.approx(oracle, rel=1e-9)
    else:
        first = made.least(tuple(Clustered(3).project(begin).labels.tolist()))[0]
        assert outcome.trace[0].objective == pytest.approx(first, rel=1e-9)


@pytest.mark.parametrize("step", ["line_search", "classic"])
@pytest.mark.parametrize("rows", ["dense", "iterative"])
def test_conditional_gradient_nears_the_minimum_of_the_relaxation(step, rows, monkeypatch):
    most = 10**9 if rows == "dense" else -1
    monkeypatch.setattr(relaxations, "SETTINGS", RelaxationSettings(dense_rows=most))
    made = problem("squared", seed=7, d=D, n=40)
    objective = made.by_gram
    factor = factor_of(objective)
    solver = ConditionalGradient(
        objective, Clustered(3), factor, objective.minimum(0.0).W, step=step
    )
    run = drive(solver, Budget(300, 1e-6 if rows == "dense" else 1e-4, lambda i: None))
    values = [i.objective for i in run.trace]
    assert (np.diff(values) <= 0).all()
    # psi less the gap bounds the optimum; at the end psi and the bound are close to each other.
    assert run.state.bound <= values[-1] * (1 + 1e-9)
    assert run.state.bound >= 0.97 * values[-1]
    assert values[-1] <= made.best(bf.groupings(D, 3)) * (1 + 1e-9)
    if step == "classic":
        # As in the paper, but where that would raise psi.
        steps = {i.number: i.step for i in run.trace[1:]}
        classic = [t for t, step in steps.items() if step == pytest.approx(2 / (t + 2))]
        assert len(classic) >= 0.2 * len(steps)


@pytest.mark.parametrize("step", ["line_search", "classic"])
def test_every_bound_on_the_way_is_below_the_minimum_of_the_relaxation(step):
    for seed in range(3):
        made = problem("squared", seed, d=10, n=20, alpha=1e-3)
        objective = made.by_gram
        solver = ConditionalGradient(
            objective, Clustered(2), factor_of(objective), np.arange(10.0)[:, None], step=step
        )
        states = [solver.start()]
        while len(states) < 80 and not states[-1].done:
            states.append(solver.advance(states[-1]))
        values, bounds = ([getattr(s, name) for s in states] for name in ("objective", "bound"))
        assert max(bounds) <= min(values) * (1 + 1e-9)
        assert (np.diff(bounds) >= 0).all()
        assert bounds[0] < values[-1] < values[0]


def test_both_hulls_lead_to_the_same_answer(monkeypatch):
    made = problem("squared", seed=8, d=12, n=40)
    found = []
    for rows in (10**9, -1):
        monkeypatch.setattr(relaxations, "SETTINGS", RelaxationSettings(dense_rows=rows))
        for form in (made.by_gram, made.by_rows):
            found.append(solve(feature_problem(form, Clustered(3), tol=1e-4), "cg"))
    values = [outcome.solution.point.value for outcome in found]
    bounds = [outcome.by_duality.lower_bound for outcome in found]
    np.testing.assert_allclose(values, values[0], rtol=1e-9)
    np.testing.assert_allclose(bounds, bounds[0], rtol=1e-2)


def test_rounding_is_the_last_oracle_or_better():
    for seed in range(4):
        made = problem("squared", seed, d=10, n=20)
        objective = made.by_gram
        solver = ConditionalGradient(
            objective, Clustered(3), factor_of(objective), objective.minimum(0.0).W
        )
        run = drive(solver, Budget(500, 1e-3, lambda i: None))
        oracle = made.least(tuple(run.state.oracle.labels.tolist()))[0]
        assert run.solution.point.value <= oracle * (1 + 1e-9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda o, c: Greedy(o, c, None), "solver 'greedy' needs .*refit"),
        (
            lambda o, c: ProjectedGradient(o, c, None, longest=1.0),
            "solver 'pg' needs keep, rows, gradient, bend, refit",
        ),
        (lambda o, c: ConditionalGradient(o, c, None, None), "solver 'cg' needs refit"),
    ],
)
def test_missing_capabilities_are_named(make, message):
    bare = SimpleNamespace(at=None)
    with pytest.raises(TypeError, match=message):
        make(bare, Clustered(2))
    whole = problem("squared").by_gram
    with pytest.raises(TypeError, match="needs project"):
        make(whole, bare)


def test_same_groups():
    a = np.array([0, 0, 1, 1, 2, -1, 2, 0, 1, 2])
    assert same_groups(a, a.copy())
    assert same_groups(a, np.array([2, 2, 0, 0, 1, -1, 1, 2, 0, 1]))
    assert not same_groups(a, np.array([0, 0, 1, 1, 2, -1, 2, 0, 1, 1]))
    assert not same_groups(a, np.array([0, 0, 1, 1, 2, 3, 2, 0, 1, 2]))  # -1 is zero, not a group
    assert not same_groups(np.array([0, 0, 0, 0]), np.array([0, 0, 1, 1]))
    assert not same_groups(np.array([0, 0, 1, 1]), np.array([0, 0, 0, 0]))
    assert same_groups(np.full(4, -1), np.full(4, -1))
