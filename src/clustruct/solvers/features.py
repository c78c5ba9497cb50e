"""The solvers for clustered features by name, and what each of them does.

A recipe drives one or several solvers on one problem. What they share (the weights without
constraint, the lower bounds) is computed once, when it is first asked for.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustruct.constraints import Constraint, Free
from clustruct.objectives.features import FeatureObjective
from clustruct.objectives.point import Point
from clustruct.objectives.quadratic import QuadraticObjective
from clustruct.relaxations.features import factor_of
from clustruct.results import Certificate
from clustruct.solvers.conditional_gradient import ConditionalGradient
from clustruct.solvers.driver import Answer, Budget, Solution, drive
from clustruct.solvers.greedy import Greedy
from clustruct.solvers.outcome import Attempt, Outcome, status_of
from clustruct.solvers.projected_gradient import ProjectedGradient

__all__ = ["FeatureProblem", "OPTIONS", "Outcome", "RECIPES", "solve"]

Floats = NDArray[np.float64]

# Steps that projected gradient tries. By the Gram matrix a trial is cheap; otherwise it takes a
# pass over X, and only those steps are tried among which the best one nearly always is.
THOROUGH_STRIDE = {"longest": 10.0, "shortest": 1e-5, "shrink": 0.8}
QUICK_STRIDE = {"longest": 1.5, "shortest": 0.1, "shrink": 0.7}
# Precision of weights without constraint: as a start, and as an answer.
ROUGH, SHARP = 1e-3, 1e-10


@dataclass(frozen=True, eq=False)
class FeatureProblem:
    """What to solve, and how much may be spent on it.

    Attributes
    ----------
    objective : QuadraticObjective or FeatureObjective
    constraint : Constraint
    budget : Budget
    start : ndarray of shape (d, K) or None
        Weights to begin with; None for those without constraint.
    n_starts : int or None
        Number of starts; None leaves it to the recipe.
    rng : numpy.random.Generator
    options : mapping
        Options of the solver, see `OPTIONS`.
    """

    objective: QuadraticObjective | FeatureObjective
    constraint: Constraint
    budget: Budget
    start: Floats | None
    n_starts: int | None
    rng: np.random.Generator
    options: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def minimum(self) -> Point:
        """The best point without constraint."""
        tol = SHARP if isinstance(self.constraint, Free) else ROUGH
        return self.objective.minimum(tol)

    @property
    def begin(self) -> Floats:
        """Where projected gradient begins."""
        return self.minimum.W if self.start is None else self.start


def solve(problem: FeatureProblem, solver: str) -> Outcome:
    """Solve a problem by the recipe of that name.

    Parameters
    ----------
    problem : FeatureProblem
    solver : str
        A key of `RECIPES`.

    Returns
    -------
    Outcome
    """
    if isinstance(problem.constraint, Free):
        attempts = [_free(problem, solver)]
    else:
        attempts = RECIPES[solver](problem)
    best = min(attempts, key=lambda attempt: attempt.answer.point.value)
    bound = max(attempt.bound for attempt in attempts)
    certificate = _certificate(problem, best.answer, bound)
    return Outcome(best.answer, best.trace, status_of(attempts, best), certificate)


def _certificate(problem: FeatureProblem, answer: Answer, relaxed_bound: float) -> Certificate:
    """The best lower bound: without constraint, at the answer, or by the relaxation."""
    objective, constraint = problem.objective, problem.constraint

    def at(point: Point) -> float:
        explained = constraint.explained(objective.loss_gradient(point))
        return objective.dual_bound(point, explained)

    bounds = {
        "unconstrained": at(problem.minimum),
        "residual": at(answer.point),
        "conditional gradient": relaxed_bound,
    }
    source = max(bounds, key=lambda name: bounds[name])
    return Certificate.of(answer.point.value, bounds[source], source)


# ---- Recipes: what is done under each name.


def _free(problem: FeatureProblem, name: str) -> Attempt:
    """Without constraint there is nothing to search."""
    solver = Greedy(problem.objective, problem.constraint, problem.minimum, refit=False)
    solution = drive(solver, problem.budget)
    return Attempt(name, (solution,))


def _greedy(problem: FeatureProblem) -> list[Attempt]:
    solver = Greedy(problem.objective, problem.constraint, problem.minimum, **problem.options)
    return [Attempt("greedy", (drive(solver, problem.budget),))]


def _pg(problem: FeatureProblem) -> list[Attempt]:
    return [
        Attempt("pg", (_descend(problem, start, problem.options),))
        for start in _starts(problem, problem.n_starts or 1)
    ]


def _cg(problem: FeatureProblem) -> list[Attempt]:
    solution = _relax(problem, problem.options)
    return [Attempt("cg", (solution,), solution.state.bound)]


def _cgpg(problem: FeatureProblem) -> list[Attempt]:
    mine = {name: value for name, value in problem.options.items() if name in OPTIONS["cg"]}
    relaxed = _relax(problem, mine)
    rest = {name: value for name, value in problem.options.items() if name not in mine}
    descended = _descend(problem, relaxed.answer.point.W, rest)
    return [Attempt("cgpg", (relaxed, descended), relaxed.state.bound)]


def _auto(problem: FeatureProblem) -> list[Attempt]:
    return _pg(problem)


RECIPES: Mapping[str, Callable[[FeatureProblem], list[Attempt]]] = {
    "auto": _auto,
    "greedy": _greedy,
    "pg": _pg,
    "cg": _cg,
    "cgpg": _cgpg,
}

# Options that `solver_options` may hold for each solver.
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "auto": (),
    "greedy": ("refit",),
    "pg": ("refit", "longest", "shortest", "shrink"),
    "cg": ("step",),
    "cgpg": ("step", "refit", "longest", "shortest", "shrink"),
}


def _descend(problem: FeatureProblem, start: Floats, options: Mapping[str, Any]) -> Solution[Any]:
    """Projected gradient from a start."""
    thorough = isinstance(problem.objective, QuadraticObjective)
    stride = THOROUGH_STRIDE if thorough else QUICK_STRIDE
    settings = {**stride, **options}
    solver = ProjectedGradient(problem.objective, problem.constraint, start, **settings)
    return drive(solver, problem.budget)


def _relax(problem: FeatureProblem, options: Mapping[str, Any]) -> Solution[Any]:
    """Conditional gradient on the convex relaxation."""
    objective = problem.objective
    solver = ConditionalGradient(
        objective, problem.constraint, factor_of(objective), problem.begin, **options
    )
    return drive(solver, problem.budget)


def _starts(problem: FeatureProblem, count: int) -> list[Floats]:
    """The given start, and others around it."""
    spread = 0.5 * problem.begin.std()
    around = [
        problem.begin + spread * problem.rng.standard_normal(problem.begin.shape)
        for _ in range(count - 1)
    ]
    return [problem.begin, *around]
