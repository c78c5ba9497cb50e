"""The solvers for clustered features by name, and what each of them does.

A recipe drives one or several solvers on one problem. What they share (the weights without
constraint, the lower bounds) is computed once, when it is first asked for.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

import numpy as np

from clustruct._typing import Floats
from clustruct.grouping.constraints import FeatureConstraint, Free, Places
from clustruct.objectives.features.objective import FeatureObjective
from clustruct.objectives.point import Point
from clustruct.objectives.quadratic import QuadraticObjective
from clustruct.relaxations.features import factor_of
from clustruct.results import Certificate, Iteration, Status
from clustruct.solvers.conditional_gradient import ConditionalGradient
from clustruct.solvers.driver import Budget, Run, Solution, drive
from clustruct.solvers.greedy import Greedy
from clustruct.solvers.outcome import Attempt, certify, status_of
from clustruct.solvers.projected_gradient import ProjectedGradient
from clustruct.solvers.protocols import may_refit, require_refits
from clustruct.solvers.search.soft import Soft
from clustruct.solvers.search.soft_search import Effort

__all__ = [
    "FeatureOutcome",
    "FeatureProblem",
    "OPTIONS",
    "RECIPES",
    "free_minimum",
    "relaxed",
    "relaxed_solutions",
    "solve",
]

T = TypeVar("T")

# Steps that projected gradient tries. By the Gram matrix a trial is cheap; otherwise it takes a
# pass over X, and only those steps are tried among which the best one nearly always is.
THOROUGH_STRIDE = {"longest": 10.0, "shortest": 1e-5, "shrink": 0.8}
QUICK_STRIDE = {"longest": 1.1, "shortest": 0.45, "shrink": 0.7}
# A search is not worth its time where the objective is this near to a lower bound, relatively, or
# where there are more features than that. It may take its full time where a feature, a group and
# an output can be combined in no more than so many ways.
CLOSE = 1e-3
MOST_SEARCHED, MOST_MODELLED = 2000, 300
EASY_MOVES = 500
# Precision of weights without constraint: as a start, and as an solution.
ROUGH, SHARP = 1e-3, 1e-10


class once(Generic[T]):
    """A property that is computed once, without a lock.

    Fits that share passes over ``X`` wait inside of it for each other. `functools.cached_property`
    holds a lock meanwhile, before Python 3.12 one for all instances, and they would wait for ever.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __get__(self, instance: Any, owner: type) -> T:
        """The value, which is found beside other attributes from then on."""
        value: T = self._compute(instance)
        instance.__dict__[self._compute.__name__] = value
        return value


@dataclass(frozen=True, eq=False)
class FeatureProblem:
    """What to solve, and how much may be spent on it.

    Attributes
    ----------
    objective : QuadraticObjective or FeatureObjective
    constraint : FeatureConstraint
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
    constraint: FeatureConstraint
    budget: Budget
    start: Floats | None
    n_starts: int | None
    rng: np.random.Generator
    options: Mapping[str, Any] = field(default_factory=dict)
    known_minimum: Point | None = None

    @once
    def minimum(self) -> Point:
        """The best point without constraint."""
        known = self.known_minimum
        if isinstance(self.constraint, Free):
            return self.objective.minimum(SHARP, near=known)
        return free_minimum(self.objective) if known is None else known

    @once
    def free_bound(self) -> float:
        """The lower bound that the best point without constraint gives."""
        return self.bound_at(self.minimum)

    def bound_at(self, point: Point) -> float:
        """The lower bound that a point gives."""
        explained = self.constraint.explained(self.objective.loss_gradient(point))
        return self.objective.dual_bound(point, explained)

    @property
    def begin(self) -> Floats:
        """Where projected gradient begins."""
        return self.minimum.W if self.start is None else self.start


@dataclass(frozen=True, eq=False)
class FeatureOutcome:
    """The best solution, and how it was found.

    Attributes
    ----------
    solution : Solution
    trace : tuple of Iteration
        Of the solver whose solution was kept.
    status : Status
    problem : FeatureProblem
        What was solved.
    bound : float
        A lower bound of the objective that a solver came across.
    """

    solution: Solution
    trace: tuple[Iteration, ...]
    status: Status
    problem: FeatureProblem
    bound: float

    @once
    def certificate(self) -> Certificate:
        """The best lower bound: computed when asked for, as a search has no use for it."""
        return _certificate(self.problem, self.solution, self.bound)


def solve(problem: FeatureProblem, solver: str) -> FeatureOutcome:
    """Solve a problem by the recipe of that name.

    Parameters
    ----------
    problem : FeatureProblem
    solver : str
        A key of `RECIPES`.

    Returns
    -------
    FeatureOutcome
    """
    if isinstance(problem.constraint, Free):
        attempts = [_free(problem, solver)]
    else:
        attempts = RECIPES[solver](problem)
    best = min(attempts, key=lambda attempt: attempt.solution.point.value)
    bound = max(attempt.bound for attempt in attempts)
    return FeatureOutcome(best.solution, best.trace, status_of(attempts, best), problem, bound)


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
    return objective.minimum(ROUGH, near=near)


def relaxed(outcome: FeatureOutcome, factor: float) -> FeatureOutcome:
    """The groups of an outcome with values fitted by a fraction of the ridge.

    Parameters
    ----------
    outcome : FeatureOutcome
    factor : float
        What alpha is multiplied by. 1 changes nothing, nor does any factor where there are no
        groups: weights of their own with a smaller ridge are another point of the grid.

    Returns
    -------
    FeatureOutcome
        Objective and certificate are those of the smaller ridge.
    """
    if factor == 1.0 or isinstance(outcome.problem.constraint, Free):
        return outcome
    require_refits(f"relax={factor:g}", outcome.problem.constraint)
    objective = outcome.problem.objective
    (solution,) = relaxed_solutions(outcome, (factor,))
    problem = replace(
        outcome.problem,
        objective=objective.with_alpha(factor * float(objective.penalties[0])),
        known_minimum=None,
    )
    return replace(outcome, solution=solution, problem=problem, bound=-np.inf)


def relaxed_solutions(outcome: FeatureOutcome, factors: Sequence[float]) -> list[Solution]:
    """The same groups with values fitted by each of some fractions of the ridge."""
    solution, objective = outcome.solution, outcome.problem.objective
    if isinstance(outcome.problem.constraint, Free):
        return [solution] * len(factors)
    smaller = [factor for factor in factors if factor != 1.0]
    n_groups = int(solution.labels.max(initial=-1)) + 1
    points = iter(objective.refits(solution.labels, n_groups, SHARP, smaller) if smaller else ())
    return [solution if f == 1.0 else Solution(next(points), solution.labels) for f in factors]


def _certificate(problem: FeatureProblem, solution: Solution, relaxed_bound: float) -> Certificate:
    """The best lower bound: without constraint, at the solution, or by the relaxation."""
    bounds = {
        "unconstrained": problem.free_bound,
        "residual": problem.bound_at(solution.point),
        "conditional gradient": relaxed_bound,
    }
    return certify(solution.point.value, bounds, lambda: problem.objective.scale)


# ---- Recipes: what is done under each name.


def _free(problem: FeatureProblem, name: str) -> Attempt:
    """Without constraint there is nothing to search."""
    solver = Greedy(problem.objective, problem.constraint, problem.minimum, refit=False)
    run = drive(solver, problem.budget)
    return Attempt(name, (run,))


def _greedy(problem: FeatureProblem) -> list[Attempt]:
    solver = Greedy(problem.objective, problem.constraint, problem.minimum, **problem.options)
    return [Attempt("greedy", (drive(solver, problem.budget),))]


def _pg(problem: FeatureProblem) -> list[Attempt]:
    return [
        Attempt("pg", (_descend(problem, start, problem.options),))
        for start in _starts(problem, problem.n_starts or 1)
    ]


def _cg(problem: FeatureProblem) -> list[Attempt]:
    run = _relax(problem, problem.options)
    return [Attempt("cg", (run,), run.state.bound)]


def _cgpg(problem: FeatureProblem) -> list[Attempt]:
    mine = {name: value for name, value in problem.options.items() if name in OPTIONS["cg"]}
    relaxed = _relax(problem, mine)
    rest = {name: value for name, value in problem.options.items() if name not in mine}
    descended = _descend(problem, relaxed.solution.point.W, rest)
    return [Attempt("cgpg", (relaxed, descended), relaxed.state.bound)]


def _soft(problem: FeatureProblem) -> list[Attempt]:
    n_features = problem.objective.shape[0]
    if n_features > MOST_SEARCHED:
        raise ValueError(
            f"solver='soft' needs matrices of {n_features} x {n_features}, and works with at most "
            f"{MOST_SEARCHED} features. Choose solver='pg', or select features first."
        )
    require_refits("solver='soft'", problem.constraint)
    return [_search(problem, problem.constraint.project(problem.begin).point)]


def _auto(problem: FeatureProblem) -> list[Attempt]:
    """Projected gradient; then a search, where one is possible and the bound leaves room for it."""
    attempts = _pg(problem)
    best = min(attempts, key=lambda attempt: attempt.solution.point.value).solution.point
    least = problem.objective.least
    size = best.value - least if np.isfinite(least) else abs(best.value)
    room = best.value - problem.free_bound > CLOSE * size
    n_features = problem.objective.shape[0]
    small = n_features <= (MOST_SEARCHED if problem.objective.quadratic else MOST_MODELLED)
    searchable = room and small and may_refit(problem.constraint)
    if searchable and _places(problem, best.W) is not None:
        attempts.append(_search(problem, best.W))
    return attempts


RECIPES: Mapping[str, Callable[[FeatureProblem], list[Attempt]]] = {
    "auto": _auto,
    "greedy": _greedy,
    "pg": _pg,
    "cg": _cg,
    "cgpg": _cgpg,
    "soft": _soft,
}

# Options that `solver_options` may hold for each solver.
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "auto": (),
    "greedy": ("refit",),
    "pg": ("refit", "longest", "shortest", "shrink"),
    "cg": ("step",),
    "cgpg": ("step", "refit", "longest", "shortest", "shrink"),
    "soft": ("n_turns", "n_annealed", "n_sweeps", "n_repeats"),
}


def _descend(problem: FeatureProblem, start: Floats, options: Mapping[str, Any]) -> Run[Any]:
    """Projected gradient from a start."""
    # Without refits steps have to be as short as the curvature wants them.
    plain = not may_refit(problem.constraint)
    thorough = plain or isinstance(problem.objective, QuadraticObjective)
    stride = THOROUGH_STRIDE if thorough else QUICK_STRIDE
    settings = {**stride, **options}
    solver = ProjectedGradient(problem.objective, problem.constraint, start, **settings)
    return drive(solver, problem.budget)


def _relax(problem: FeatureProblem, options: Mapping[str, Any]) -> Run[Any]:
    """Conditional gradient on the convex relaxation."""
    objective = problem.objective
    if not objective.quadratic:
        raise ValueError(
            "The solvers 'cg' and 'cgpg' work with squared loss only. "
            "Choose solver='auto', 'pg' or 'greedy', or loss='squared'."
        )
    if not objective.penalties.all():
        raise ValueError(
            "The solvers 'cg' and 'cgpg' need a ridge, and alpha=0 gives none: their relaxation "
            "divides by alpha. Give a positive alpha, or choose solver='auto', 'pg' or 'greedy'."
        )
    if isinstance(objective, FeatureObjective) and not objective.data.on_host:
        raise ValueError(
            "The solvers 'cg' and 'cgpg' need rows in memory as NumPy arrays, unless there are few "
            f"enough features for a Gram matrix, and here are {objective.shape[0]}. Choose "
            "solver='auto', 'pg' or 'greedy'."
        )
    solver = ConditionalGradient(
        objective, problem.constraint, factor_of(objective), problem.begin, **options
    )
    return drive(solver, problem.budget)


def _search(problem: FeatureProblem, start: Floats) -> Attempt:
    """A search over partitions that has to better a feasible start, and a descent from its end."""
    places = _places(problem, start)
    if places is None:
        raise ValueError(
            "solver='soft' moves features between groups, and n_clusters=None gives each its own "
            "(or the constraint has no method places). Give n_clusters an integer, or choose "
            "solver='pg'."
        )
    effort = _effort(problem, places.n_groups)
    soft = Soft(problem.objective, places, effort=effort, rng=problem.rng)
    searched = drive(soft, problem.budget)
    return Attempt("soft", (searched, _descend(problem, searched.solution.point.W, {})))


def _places(problem: FeatureProblem, start: Floats) -> Places | None:
    """Where features may be moved; None if they cannot be, or the constraint does not say."""
    places: Callable[[Floats], Places | None] | None = getattr(problem.constraint, "places", None)
    return None if places is None else places(start)


def _effort(problem: FeatureProblem, n_groups: int) -> Effort:
    """How long to search: less where moves cost more, so that it takes about a second."""
    n_features, n_outputs = problem.objective.shape
    ease = min(1.0, EASY_MOVES / (n_features * n_groups * n_outputs))
    settings = {
        "n_turns": Effort.n_turns if ease == 1.0 and problem.objective.quadratic else 1,
        "n_starts": problem.n_starts or max(16, int(Effort.n_starts * ease**2)),
        "n_annealed": max(2, int(Effort.n_annealed * ease)),
        "n_sweeps": max(50, int(Effort.n_sweeps * ease)),
    }
    return Effort(**{**settings, **problem.options})


def _starts(problem: FeatureProblem, count: int) -> list[Floats]:
    """The given start, and others around it."""
    spread = 0.5 * problem.minimum.W.std()  # a start at zero has no spread of its own
    around = [
        problem.begin + spread * problem.rng.standard_normal(problem.begin.shape)
        for _ in range(count - 1)
    ]
    return [problem.begin, *around]
