"""The solvers for clustered features by name, and what each of them does.

A recipe drives one or several solvers on one problem. What they share (the weights without
constraint, the lower bounds) is computed once, when it is first asked for.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clustruct.constraints import Constraint, Free
from clustruct.objectives.features import FeatureObjective
from clustruct.objectives.point import Point
from clustruct.objectives.quadratic import QuadraticObjective
from clustruct.relaxations.features import factor_of
from clustruct.results import Certificate, Iteration, Status
from clustruct.solvers.conditional_gradient import ConditionalGradient
from clustruct.solvers.driver import Answer, Budget, Solution, drive
from clustruct.solvers.greedy import Greedy
from clustruct.solvers.projected_gradient import ProjectedGradient

__all__ = [
    "FeatureProblem",
    "OPTIONS",
    "Outcome",
    "RECIPES",
    "free_minimum",
    "relaxed",
    "relaxed_answers",
    "solve",
]

Floats = NDArray[np.float64]


class Stride(NamedTuple):
    """Steps that projected gradient tries: the longest in units of the inverse mean curvature."""

    longest: float
    shortest: float
    shrink: float


# By the Gram matrix a trial is cheap; otherwise it takes a pass over X, and only steps are tried
# among which the best one nearly always is.
THOROUGH_STRIDE = Stride(4.0, 1e-5, 0.8)
QUICK_STRIDE = Stride(0.5, 0.1, 0.7)

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
    known_minimum : Point or None
        The best point without constraint, where a neighbouring problem has found it already.
    """

    objective: QuadraticObjective | FeatureObjective
    constraint: Constraint
    budget: Budget
    start: Floats | None
    n_starts: int | None
    rng: np.random.Generator
    options: Mapping[str, Any] = field(default_factory=dict)
    known_minimum: Point | None = None

    @cached_property
    def minimum(self) -> Point:
        """The best point without constraint."""
        known = self.known_minimum
        if isinstance(self.constraint, Free):
            return self.objective.minimum(SHARP, None if known is None else known.W)
        return free_minimum(self.objective) if known is None else known

    @property
    def begin(self) -> Floats:
        """Where projected gradient begins."""
        return self.minimum.W if self.start is None else self.start


@dataclass(frozen=True, eq=False)
class Outcome:
    """The best answer, and how it was found.

    Attributes
    ----------
    answer : Answer
    trace : tuple of Iteration
        Of the solver whose answer was kept.
    status : Status
    problem : FeatureProblem
        What was solved.
    bound : float
        A lower bound of the objective that a solver came across.
    """

    answer: Answer
    trace: tuple[Iteration, ...]
    status: Status
    problem: FeatureProblem
    bound: float

    @cached_property
    def certificate(self) -> Certificate:
        """The best lower bound: computed when asked for, as a search has no use for it."""
        return _certificate(self.problem, self.answer, self.bound)


@dataclass(frozen=True, eq=False)
class Attempt:
    """What one recipe did: its solutions, the last of which counts, and its lower bound."""

    name: str
    solutions: tuple[Solution[Any], ...]
    bound: float = -np.inf

    @property
    def answer(self) -> Answer:
        """Of the last solver."""
        return self.solutions[-1].answer


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
    trace = tuple(iteration for solution in best.solutions for iteration in solution.trace)
    status = Status(
        solver=best.name,
        converged=best.solutions[-1].converged,
        n_iter=max(1, sum(solution.trace[-1].number for solution in best.solutions)),
        objectives=tuple((a.name, a.answer.point.value) for a in attempts),
        message=_message(attempts, best),
    )
    bound = max(attempt.bound for attempt in attempts)
    return Outcome(best.answer, trace, status, problem, bound)


def free_minimum(
    objective: QuadraticObjective | FeatureObjective, near: Point | None = None
) -> Point:
    """The best point without constraint, as precise as a start has to be.

    Parameters
    ----------
    objective : QuadraticObjective or FeatureObjective
    near : Point, default=None
        Where to begin, such as the minimum for another alpha.

    Returns
    -------
    Point
    """
    return objective.minimum(ROUGH, None if near is None else near.W)


def relaxed(outcome: Outcome, factor: float) -> Outcome:
    """The groups of an outcome with values fitted by a fraction of the ridge.

    Parameters
    ----------
    outcome : Outcome
    factor : float
        What alpha is multiplied by; 1 changes nothing.

    Returns
    -------
    Outcome
        Objective and certificate are those of the smaller ridge.
    """
    if factor == 1.0:
        return outcome
    objective = outcome.problem.objective
    (answer,) = relaxed_answers(objective, outcome.answer, (factor,))
    problem = replace(
        outcome.problem,
        objective=objective.with_alpha(factor * float(objective.penalties[0])),
        known_minimum=None,
    )
    return replace(outcome, answer=answer, problem=problem, bound=-np.inf)


def relaxed_answers(
    objective: QuadraticObjective | FeatureObjective, answer: Answer, factors: Sequence[float]
) -> list[Answer]:
    """The same groups with values fitted by each of some fractions of the ridge."""
    smaller = [factor for factor in factors if factor != 1.0]
    n_groups = int(answer.labels.max(initial=-1)) + 1
    points = iter(objective.refits(answer.labels, n_groups, SHARP, smaller) if smaller else ())
    return [answer if f == 1.0 else Answer(next(points), answer.labels) for f in factors]


def _message(attempts: list[Attempt], best: Attempt) -> str:
    """What was tried and kept, in words."""
    told = "; ".join(
        f"{', then '.join(solution.message for solution in attempt.solutions)} "
        f"(objective {attempt.answer.point.value:.6g})"
        for attempt in attempts
    )
    return told if len(attempts) == 1 else f"{told}. Kept {best.name}."


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
    "pg": ("refit", "shrink", "shortest"),
    "cg": ("step",),
    "cgpg": ("step", "refit", "shrink", "shortest"),
}


def _descend(problem: FeatureProblem, start: Floats, options: Mapping[str, Any]) -> Solution[Any]:
    """Projected gradient from a start."""
    curvature = float(problem.objective.curvatures().mean())
    thorough = isinstance(problem.objective, QuadraticObjective)
    stride = THOROUGH_STRIDE if thorough else QUICK_STRIDE
    solver = ProjectedGradient(
        problem.objective,
        problem.constraint,
        start,
        **{
            "longest": stride.longest / curvature if curvature > 0.0 else 1.0,
            "shortest": stride.shortest,
            "shrink": stride.shrink,
            **options,
        },
    )
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
