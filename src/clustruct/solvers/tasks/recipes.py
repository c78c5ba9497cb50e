"""Recipes for clustered tasks: what each value of ``solver`` does.

All of them end with alternating minimisation, which computes the objective of a move exactly.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from clustruct._typing import Floats, Labels
from clustruct.grouping.constraints import Clustered
from clustruct.losses import Noise
from clustruct.objectives.tasks.blocks import Strengths
from clustruct.objectives.tasks.evidence import Form, Quadratics, TaskLikelihood
from clustruct.objectives.tasks.objective import TaskObjective, TaskPoint
from clustruct.relaxations.tasks import Spreads, TaskFactor, residual_bound
from clustruct.solvers.conditional_gradient import ConditionalGradient
from clustruct.solvers.driver import (
    Attempt,
    Budget,
    Outcome,
    Run,
    StartedProblem,
    best_of,
    drive,
)
from clustruct.solvers.given import GivenGroups
from clustruct.solvers.projected_gradient import ProjectedGradient
from clustruct.solvers.tasks.alternation import TaskAlternation, point_of
from clustruct.solvers.tasks.counting import SETTINGS as COUNTING
from clustruct.solvers.tasks.counting import Counting, CountingSettings, Fitted
from clustruct.solvers.tasks.mixture import Guess, hard

# Steps that projected gradient tries, in units of the best one along the gradient.
STRIDE = {"longest": 1.5, "shortest": 0.1, "shrink": 0.7}


@dataclass(frozen=True)
class TaskSettings:
    """Numbers of starts and precisions in the search for groups of tasks."""

    # Least and largest number of starts: they stop once the best objective was reached twice.
    starts: tuple[int, int] = (3, 5)
    # Relative difference up to which two objectives count as equal.
    same: float = 1e-6
    # Precision of fits whose weights are only grouped.
    rough: float = 1e-5
    # Precision of the relaxation: its groups are rounded anyway.
    relaxed_tol: float = 1e-3


SETTINGS = TaskSettings()
# Starts of a search from groups of nearly the same problem: these and one more at least.
SHORT_SEARCH = (2, 4)
SHORT_COUNT, SHORT_TOL = replace(COUNTING, random=0, splits=1, ahead=1), 1e-5


@dataclass(frozen=True, eq=False)
class Sources:
    """What makes losses likelihoods.

    noise: of a target.
    total: weight of all rows.
    inputs: evidence of the inputs of each task, none or one block.
    """

    noise: Noise
    total: float
    inputs: tuple[Quadratics, ...] = ()


@dataclass(frozen=True, eq=False)
class TaskProblem(StartedProblem[TaskObjective]):
    """A problem of clustered tasks (sec:multitask).

    hints: groups to start from before all others, such as those found at other strengths.
    near (K, width): weights to start from, for losses other than squared.
    precision: of the fits on the way, and of the solution's.
    sources: for mixtures.
    guess: variances from which mixtures start.
    starts: least and largest number of starts, if `n_starts` does not say it.
    counts: starts of mixtures.
    """

    hints: tuple[Labels, ...] = ()
    near: Floats | None = None
    precision: tuple[float, float] = (1e-7, 1e-12)
    sources: Sources | None = None
    guess: Guess | None = None
    starts: tuple[int, int] = SETTINGS.starts
    counts: CountingSettings = COUNTING

    @cached_property
    def together(self) -> TaskPoint:
        """All tasks in one group: mean-regularised."""
        labels = np.zeros(self.objective.shape[0], dtype=np.intp)
        return self.objective.refit(labels, 1, SETTINGS.rough, self.near)

    @property
    def begin(self) -> Floats:
        """Weights to start from."""
        return self.together.W if self.near is None else self.near

    def labels(self, number: int) -> Labels:
        """The start of that number, the same for every solver."""
        if number < len(self.hints):
            return self.hints[number]
        number -= len(self.hints)
        if number < len(STARTING_ROWS):
            rows = self.in_scores(STARTING_ROWS[number](self))
            return Clustered(self.n_clusters).project(rows).labels
        return self.rng(number).permutation(np.arange(self.objective.shape[0]) % self.n_clusters)

    def in_scores(self, rows: Floats) -> Floats:
        """Rows of weights in units of the scores, which do not depend on the columns' units."""
        return rows * self._scales

    @property
    def counting(self) -> Counting:
        """The mixtures with up to `n_clusters` groups."""
        if self.sources is None:
            raise TypeError("A mixture needs the noise of the targets: give `sources`.")
        data = self.objective.data
        begin = np.zeros(self.objective.shape) if data.quadratic else self.together.W
        likelihood = TaskLikelihood(data, self.sources.noise, self.sources.total, begin)
        return Counting(
            likelihood,
            self.sources.inputs,
            self.n_clusters,
            self.budget,
            self.seed,
            self.n_starts,
            self.guess,
            hints=self.hints,
            settings=self.counts,
            **self.options,
        )

    @cached_property
    def _scales(self) -> Floats:
        models = self.objective.data.models(self.together.W)
        return np.sqrt(np.maximum(np.einsum("tii->i", models.G), 0.0))


def _mean_regularised(problem: TaskProblem) -> Floats:
    return problem.together.W


def _independent(problem: TaskProblem) -> Floats:
    """Weights of tasks that are fitted independently."""
    everyone = np.arange(problem.objective.shape[0])
    return problem.objective.refit(everyone, everyone.size, SETTINGS.rough, problem.together.W).W


def _pooled(problem: TaskProblem) -> Floats:
    """A scaled gradient step of each task from one model for all tasks."""
    objective = problem.objective
    strengths = objective.strengths.scaled(objective.shape[0])
    shared = Strengths(
        strengths.ridge, strengths.mean, strengths.between, np.full(objective.shape[1], np.inf)
    )
    pooled = objective.with_strengths(shared).refit(problem.together.labels, 1, SETTINGS.rough)
    scales = np.square(problem.in_scores(np.ones((1, objective.shape[1]))))
    return -np.divide(pooled.slope, scales, where=scales > 0.0, out=np.zeros_like(pooled.slope))


# The solver that learns strengths by evidence; its objective is not that of the others.
MIXTURE = "em"
STARTING_ROWS = (_mean_regularised, _independent, _pooled)


def solve(problem: TaskProblem, solver: str) -> Outcome:
    """Solve a problem by the recipe of that name.

    solver: a key of `OPTIONS`.
    """
    if solver == MIXTURE:
        return mixture_outcome(problem.counting.best())
    attempts = attempt(problem, solver)
    return _certified(problem, attempts)


def solve_again(problem: TaskProblem, solver: str) -> TaskPoint:
    """The solution of a problem like one that was solved, from its hints and by a short search."""
    if solver == MIXTURE:
        budget = replace(problem.quiet, tol=max(problem.budget.tol, SHORT_TOL))
        short = replace(problem, counts=SHORT_COUNT, budget=budget)
        return point_of(short.counting.best().solution.point)
    short = replace(problem.with_more_starts, starts=SHORT_SEARCH)
    attempts = attempt(short, solver)
    return point_of(min((a.solution.point for a in attempts), key=lambda point: point.value))


def solve_given(problem: TaskProblem, labels: Labels, solver: str) -> Outcome:
    """The best weights and centroids for given groups, by evidence for mixtures."""
    if solver != MIXTURE:
        run = drive(GivenGroups(problem.objective, labels, problem.n_clusters), problem.quiet)
        return _certified(problem, [Attempt(GivenGroups.name, (run,))])
    counting = problem.counting
    shares = hard(labels, problem.n_clusters)
    runs = [
        drive(counting.solver(shares, problem.guess, form=form, known=True), problem.quiet)
        for form in (Form.SAME, Form.OWN)
    ]
    return mixture_outcome(max(runs, key=lambda run: counting.evidence(run.state)))


def _certified(problem: TaskProblem, attempts: list[Attempt]) -> Outcome:
    """The best attempt, with its lower bounds."""
    best = min(attempts, key=lambda attempt: attempt.solution.point.value)
    point = point_of(best.solution.point)
    bounds = {
        "residual": residual_bound(problem.objective, point, problem.n_clusters),
        "conditional gradient": max(attempt.bound for attempt in attempts),
    }
    return Outcome.of(attempts, best, bounds, lambda: problem.objective.scale)


def mixture_outcome(run: Fitted) -> Outcome:
    """The outcome of a mixture, of which nothing is proved."""
    count = run.state.n_groups
    kept = Attempt(MIXTURE, (run,), remark=f"{count} group{'s' * (count > 1)} by evidence")
    return Outcome.of([kept], kept, {"residual": -np.inf}, lambda: 0.0)


def attempt(problem: TaskProblem, solver: str) -> list[Attempt]:
    """Solve a problem by the recipe of that name, a key of `RECIPES`, without a certificate."""
    n_tasks = problem.objective.shape[0]
    if problem.n_clusters == 1 or problem.n_clusters >= n_tasks:
        labels = np.arange(n_tasks) % problem.n_clusters
        return [Attempt(solver, (_refined(problem, labels, problem.near),))]
    return RECIPES[solver](problem)


# ---- Recipes.


def _am(problem: TaskProblem) -> list[Attempt]:
    def solve_from(number: int) -> Run[Any]:
        return _refined(problem, problem.labels(number), problem.begin, problem.quiet)

    best, remark = _best_of(problem, solve_from)
    return [Attempt("am", (best,), remark=remark)]


def _pg(problem: TaskProblem) -> list[Attempt]:
    objective = problem.objective
    settings = {**STRIDE, **problem.options}

    def solve_from(number: int) -> Run[Any]:
        begin = objective.refit(problem.labels(number), problem.n_clusters, SETTINGS.rough)
        constraint = Clustered(problem.n_clusters)
        solver = ProjectedGradient(objective, constraint, begin.rows, **settings)
        descended = drive(solver, problem.quiet)
        found = descended.solution
        refined = _refined(problem, found.labels, found.point.W, problem.quiet)
        return replace(refined, trace=descended.trace + refined.trace)

    best, remark = _best_of(problem, solve_from)
    return [Attempt("pg", (best,), remark=f"after projected gradient, {remark}")]


def _cg(problem: TaskProblem) -> list[Attempt]:
    objective = problem.objective
    if not objective.quadratic or not Spreads.of(objective.strengths).finite:
        raise ValueError(
            "solver='cg' works with squared loss and positive strengths only. Choose "
            "solver='auto', or loss='squared' and positive alpha_mean, alpha_between and "
            "alpha_within."
        )
    factor = TaskFactor(objective)
    start = problem.in_scores(problem.together.W)
    settings = {"step": "line_search", **problem.options}
    solver = ConditionalGradient(
        objective, Clustered(problem.n_clusters), factor, start, **settings
    )
    budget = replace(problem.budget, tol=max(problem.budget.tol, SETTINGS.relaxed_tol))
    relaxed = drive(solver, budget)
    refined = _refined(problem, relaxed.solution.labels, relaxed.solution.point.W)
    return [Attempt("cg", (relaxed, refined), relaxed.state.bound)]


# Recipes for the penalised objective; `MIXTURE` has another one.
RECIPES: Mapping[str, Callable[[TaskProblem], list[Attempt]]] = {
    "auto": _am,
    "am": _am,
    "pg": _pg,
    "cg": _cg,
}

# Options that `solver_options` may hold for each solver.
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "auto": (),
    "am": (),
    "pg": ("refit", "longest", "shortest", "shrink"),
    "cg": ("step",),
    MIXTURE: ("margin",),
}


def _refined(
    problem: TaskProblem, labels: Labels, begin: Floats | None, budget: Budget | None = None
) -> Run[Any]:
    """Alternating minimisation from given groups."""
    tol, sharp = problem.precision
    solver = TaskAlternation(
        problem.objective, labels, problem.n_clusters, begin, tol=tol, sharp=sharp
    )
    return drive(solver, budget or problem.budget)


def _best_of(problem: TaskProblem, solve_from: Callable[[int], Run[Any]]) -> tuple[Run[Any], str]:
    """The best of several starts, and a remark."""
    return best_of(
        problem.search(solve_from, problem.starts, lambda value: SETTINGS.same * abs(value))
    )
