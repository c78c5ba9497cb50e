"""Recipes for clustered features: what each value of ``solver`` does.

A recipe runs one or several solvers on one problem. What they share (the unconstrained weights, the
lower bounds) is computed once, on first use.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar, cast

import numpy as np

from clustruct._progress import counting
from clustruct._typing import Floats, Labels
from clustruct.grouping.constraints import (
    FactorClustered,
    FeatureConstraint,
    Free,
    Limits,
    Places,
)
from clustruct.objectives.features.factors import FactorObjective
from clustruct.objectives.features.objective import FeatureObjective
from clustruct.objectives.linear import Point
from clustruct.objectives.quadratic import QuadraticObjective, quadratic_objective
from clustruct.relaxations.features import factor_of
from clustruct.results import Certificate, Iteration, Status
from clustruct.solvers.conditional_gradient import ConditionalGradient
from clustruct.solvers.driver import (
    Attempt,
    Budget,
    Run,
    Solution,
    certify,
    drive,
    may_refit,
    require_refits,
    status_of,
)
from clustruct.solvers.factors import FactorModel, fit_factors
from clustruct.solvers.greedy import Greedy
from clustruct.solvers.projected_gradient import ProjectedGradient
from clustruct.solvers.proof import prove
from clustruct.solvers.search.soft import Effort, Soft

T = TypeVar("T")

# Steps that projected gradient tries. By the Gram matrix a trial is cheap; otherwise it takes a
# pass over X, and only those steps are tried among which the best one nearly always is.
THOROUGH_STRIDE = {"longest": 10.0, "shortest": 1e-5, "shrink": 0.8}
QUICK_STRIDE = {"longest": 1.1, "shortest": 0.45, "shrink": 0.7}
# Precision of the unconstrained weights: as a start, and as a solution.
ROUGH, SHARP = 1e-3, 1e-10


@dataclass(frozen=True)
class FeatureSettings:
    """When a search over partitions is worth its time."""

    # Relative distance of the objective from a lower bound below which no search is started.
    close: float = 1e-3
    # Logarithm of the likelihood ratio of all samples that is not worth a search from other starts.
    little: float = 1.0
    # Samples for each feature from which on weights without groups tell these well: on planted
    # problems of 12 to 60 features with more samples, message passing found nothing better.
    well_told: float = 4.0
    # Largest number of features for squared loss, and for losses that a quadratic has to model.
    most_searched: int = 2000
    most_modelled: int = 300
    # Up to this many combinations of features, groups and outputs the search has its full effort.
    easy_moves: int = 500
    # Largest number of features for which a certificate looks for the best tangent. Nodes are
    # limited by the square of this second number over that of the features: a single factor
    # seldom takes more than a few.
    most_certified: int = 80
    one_node: int = 100
    most_nodes: int = 8


SETTINGS = FeatureSettings()


class once(Generic[T]):
    """A property that is computed once, without a lock.

    Concurrent fits that share passes over ``X`` wait for each other inside of it. Before Python
    3.12 `functools.cached_property` holds one lock for all instances meanwhile: a deadlock.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __get__(self, instance: Any, owner: type) -> T:
        """Compute the value and store it as an attribute."""
        value: T = self._compute(instance)
        instance.__dict__[self._compute.__name__] = value
        return value


@dataclass(frozen=True, eq=False)
class FeatureProblem:
    """A problem of clustered features, with budget and options.

    start (d, K): weights to begin with; None for those without constraint.
    n_starts: number of starts; None leaves it to the recipe.
    options: options of the solver, see `OPTIONS`.
    known_minimum: the unconstrained minimum, if a neighbouring problem has found it already.
    model: of factors, as the fit at a larger price has left it.
    proof: the options of a proof that is wanted, see `PROOF_OPTIONS`; None for no proof.
    """

    objective: QuadraticObjective | FeatureObjective
    constraint: FeatureConstraint
    budget: Budget
    start: Floats | None
    n_starts: int | None
    rng: np.random.Generator
    options: Mapping[str, Any] = field(default_factory=dict)
    known_minimum: Point | None = None
    model: FactorModel | None = None
    proof: Mapping[str, Any] | None = None

    @once
    def minimum(self) -> Point:
        """The unconstrained minimum."""
        known = self.known_minimum
        if isinstance(self.constraint, Free):
            return self.objective.minimum(SHARP, near=known)
        return free_minimum(self.objective) if known is None else known

    @once
    def free_bound(self) -> float:
        """The lower bound at the unconstrained minimum."""
        return self.bound_at(self.minimum)

    def bound_at(self, point: Point) -> float:
        """The lower bound by Fenchel duality at a point."""
        explained = self.constraint.explained(self.objective.loss_gradient(point))
        return self.objective.dual_bound(point, explained)

    @property
    def begin(self) -> Floats:
        """Weights from which projected gradient starts."""
        return self.minimum.W if self.start is None else self.start


@dataclass(frozen=True, eq=False)
class FeatureOutcome:
    """The best solution, with the trace of the solver that found it.

    bound: the best lower bound that a solver found on its way.
    proved: the lower bound of a proof.
    """

    solution: Solution
    trace: tuple[Iteration, ...]
    status: Status
    problem: FeatureProblem
    bound: float
    proved: float = -np.inf

    @once
    def by_duality(self) -> Certificate:
        """The best lower bound by duality, on first use: a grid search does not need it."""
        problem, point = self.problem, self.solution.point
        priced: Callable[[Labels], float] | None = getattr(problem.constraint, "surcharge", None)
        value = point.value + (0.0 if priced is None else priced(self.solution.labels))
        bounds = {
            "unconstrained": problem.free_bound,
            "residual": problem.bound_at(point),
            "conditional gradient": self.bound,
            "proof": self.proved,
        }
        return certify(value, bounds, lambda: problem.objective.scale)

    @once
    def certificate(self) -> Certificate:
        """The best lower bound, with the best tangent where it is cheap and leaves something."""
        plain, problem, point = self.by_duality, self.problem, self.solution.point
        limits, size = limits_of(problem), problem.objective.shape[0]
        if (
            limits is None
            or plain.relative_gap == 0.0
            or np.isfinite(self.proved)
            or size > SETTINGS.most_certified
        ):
            return plain
        objective = with_gram(problem.objective)
        if objective is None:
            return plain
        n_nodes = min(SETTINGS.most_nodes, max(1, (SETTINGS.one_node // size) ** 2))
        bound = prove(objective, limits, self.solution, max_nodes=n_nodes).state.bound
        bounds = {plain.source: plain.lower_bound, "tangent": bound}
        return certify(point.value, bounds, lambda: objective.scale)


def solve(problem: FeatureProblem, solver: str) -> FeatureOutcome:
    """Solve a problem by the recipe of that name.

    solver: a key of `RECIPES`.
    """
    wanted = provable(problem)
    free = isinstance(problem.constraint, Free)
    attempts = [_free(problem, solver)] if free else RECIPES[solver](problem)
    bound, proved = max(attempt.bound for attempt in attempts), -np.inf
    if wanted is not None:
        attempts.append(_prove(problem, *wanted, best_attempt(attempts).solution))
        proved = attempts[-1].bound
    best = best_attempt(attempts)
    status, solution = status_of(attempts, best), best.solution
    if wanted is not None and wanted[0] is not problem.objective:
        # The proof went by the Gram matrix, and slopes are those of the rows.
        solution = replace(solution, point=problem.objective.at(solution.point.W))
    return FeatureOutcome(solution, best.trace, status, problem, bound, proved)


def best_attempt(attempts: list[Attempt]) -> Attempt:
    """The attempt with the least objective, the first among equals."""
    return min(attempts, key=lambda attempt: attempt.solution.point.value)


def limits_of(problem: FeatureProblem) -> Limits | None:
    """How many groups there may be; None where branch and bound does not know the constraint."""
    limits: Callable[[int], Limits | None] | None = getattr(problem.constraint, "limits", None)
    n_features, n_outputs = problem.objective.shape
    return None if limits is None or n_outputs > 1 else limits(n_features)


def provable(problem: FeatureProblem) -> tuple[QuadraticObjective, Limits] | None:
    """What a proof goes by; None if none is wanted or needed, an error if it cannot be had."""
    if problem.proof is None or isinstance(problem.constraint, Free):
        return None
    limits = limits_of(problem)
    if not problem.objective.quadratic:
        raise ValueError("prove=True works with loss='squared' only. Leave prove False.")
    if limits is None:
        raise ValueError(
            "prove=True works for one output, and for a number of groups of all features, inside "
            f"of blocks or of nominal factors, not for {problem.objective.shape[1]} outputs with "
            f"the constraint {type(problem.constraint).__name__}. Fit outputs one by one, leave "
            "n_nonzero, price, min_weight and constraint out, or leave prove False."
        )
    objective = with_gram(problem.objective)
    if objective is None:
        raise ValueError(
            f"prove=True needs a Gram matrix, and {problem.objective.shape[0]} features are too "
            "many for one with so few samples. Select features first, or leave prove False."
        )
    return objective, limits


def with_gram(objective: QuadraticObjective | FeatureObjective) -> QuadraticObjective | None:
    """The objective by its Gram matrix; None if it has none, or one that is too large."""
    if isinstance(objective, QuadraticObjective):
        return objective
    if not (isinstance(objective, FactorObjective) and objective.quadratic):
        return None
    if objective.shape[0] > SETTINGS.most_searched:
        return None
    return quadratic_objective(objective.data, objective.response, objective.penalties)


def free_minimum(
    objective: QuadraticObjective | FeatureObjective, near: Point | None = None
) -> Point:
    """The unconstrained minimum, as precise as a start has to be.

    near: a start, such as the minimum for another alpha.
    """
    return objective.minimum(ROUGH, near=near)


def relaxed(outcome: FeatureOutcome, factor: float) -> FeatureOutcome:
    """The groups of an outcome, refitted with alpha times a factor.

    Objective and certificate are those of the smaller ridge. A factor of 1 changes nothing, nor
    does any factor without groups: then a smaller ridge is another point of the grid.
    """
    if factor == 1.0 or isinstance(outcome.problem.constraint, Free):
        return outcome
    require_refits(f"relax={factor:g}", outcome.problem.constraint)
    objective = outcome.problem.objective
    (solution,) = relaxed_solutions(outcome, (factor,))
    problem = replace(
        outcome.problem,
        objective=objective.with_alpha(factor * objective.alpha),
        known_minimum=None,
    )
    return replace(outcome, solution=solution, problem=problem, bound=-np.inf, proved=-np.inf)


def relaxed_solutions(
    outcome: FeatureOutcome, factors: Sequence[float], tol: float = SHARP
) -> list[Solution]:
    """The same groups refitted with each of several fractions of the ridge."""
    solution, objective = outcome.solution, outcome.problem.objective
    if isinstance(outcome.problem.constraint, Free):
        return [solution] * len(factors)
    smaller = [factor for factor in factors if factor != 1.0]
    n_groups = int(solution.labels.max(initial=-1)) + 1
    labels = solution.labels
    first = np.zeros(n_groups, dtype=np.intp)  # a member of each group
    first[labels[labels >= 0]] = np.flatnonzero(labels >= 0)
    begin = solution.point.W[first], solution.point.intercept
    points = iter(objective.refits(labels, n_groups, tol, smaller, *begin) if smaller else ())
    return [solution if f == 1.0 else Solution(next(points), solution.labels) for f in factors]


# ---- Recipes.


def _free(problem: FeatureProblem, name: str) -> Attempt:
    """Ridge regression or its like: no groups to search."""
    solver = Greedy(problem.objective, problem.constraint, problem.minimum, refit=False)
    run = drive(solver, problem.budget)
    return Attempt(name, (run,))


def _greedy(problem: FeatureProblem) -> list[Attempt]:
    solver = Greedy(problem.objective, problem.constraint, problem.minimum, **problem.options)
    return [Attempt("greedy", (drive(solver, problem.budget),))]


def _pg(problem: FeatureProblem) -> list[Attempt]:
    starts, attempts = _starts(problem, problem.n_starts or 1), list[Attempt]()
    things = "starts" if len(starts) > 1 else ""
    with counting(things, len(starts), at_most=True, measure="objective") as count:
        for start in starts:
            attempts.append(Attempt("pg", (_descend(problem, start, problem.options),)))
            count.tick(best_attempt(attempts).solution.point.value)
    return attempts


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
    if n_features > SETTINGS.most_searched:
        raise ValueError(
            f"solver='soft' needs matrices of {n_features} x {n_features}, and works with at most "
            f"{SETTINGS.most_searched} features. Choose solver='pg', or select features first."
        )
    require_refits("solver='soft'", problem.constraint)
    start = problem.constraint.project(problem.begin).point
    places = _places(problem, start)
    effort = Effort() if places is None else _effort(problem, places.n_groups)
    return [_search(problem, start, None, effort)]


def _bcd(problem: FeatureProblem) -> list[Attempt]:
    objective, constraint = problem.objective, problem.constraint
    if not (_is_swept(problem) and isinstance(constraint, FactorClustered)):
        raise ValueError(
            "solver='bcd' is for data frames with columns of categories and one output "
            "(regression, or two classes). Choose solver='auto'."
        )
    run = fit_factors(cast(FactorObjective, objective), constraint, problem.budget, problem.model)
    return [Attempt("bcd", (run,))]


def _is_swept(problem: FeatureProblem) -> bool:
    """Whether block coordinate descent can solve a problem."""
    return isinstance(problem.objective, FactorObjective) and problem.objective.shape[1] == 1


def _auto(problem: FeatureProblem) -> list[Attempt]:
    """Projected gradient, then a search over partitions if the lower bound leaves room for it.

    Block coordinate descent for factors.
    """
    if _is_swept(problem):
        return _bcd(problem)
    # All options are those of the search.
    plain = replace(problem, options={})
    quadratic = problem.objective.quadratic
    most = SETTINGS.most_searched if quadratic else SETTINGS.most_modelled
    if problem.objective.shape[0] > most or not may_refit(problem.constraint):
        return _pg(plain)
    n_classified = _n_of_classes(problem)
    if n_classified >= SETTINGS.well_told * problem.objective.shape[0]:
        return _classes(problem, n_classified)
    attempts = _pg(plain)
    best = best_attempt(attempts).solution.point
    places = _places(problem, best.W)
    if places is not None and _has_room(problem, best):
        effort = _effort(problem, places.n_groups)
        attempts.append(_search(problem, best.W, best, effort))
    return attempts


def _classes(problem: FeatureProblem, n_samples: float) -> list[Attempt]:
    """A search for classes that the weights without groups tell well.

    Groups of these weights are improved under the model of the loss there, then under that at the
    groups found, and so on, by moves of single features. Partitions are annealed where that is
    cheap and the bound leaves something to gain: the loss of all samples is minus the logarithm of
    a likelihood, so that it tells what is little.
    """
    starts = [problem.constraint.project(W).point for W in _starts(problem, problem.n_starts or 1)]
    begun = [places for start in starts if (places := _places(problem, start)) is not None]
    if not begun:
        return _pg(replace(problem, options={}))
    n_groups = begun[0].n_groups
    full = _effort(problem, n_groups)
    attempts = []
    for places in begun:
        moves = Soft(
            problem.objective,
            places,
            effort=replace(full, n_turns=0),
            rng=problem.rng,
            anchor=problem.minimum,
        )
        attempts.append(Attempt("soft", (drive(moves, problem.budget),)))
    best = best_attempt(attempts).solution.point
    n_features, n_outputs = problem.objective.shape
    cheap = n_features * n_groups * n_outputs <= SETTINGS.easy_moves
    left = n_samples * (best.value - problem.free_bound)
    if cheap and left > SETTINGS.little and _has_room(problem, best):
        more = replace(full, n_turns=1, n_starts=0, n_annealed=4, n_sweeps=50)
        attempts.append(_search(problem, best.W, best, more))
    return attempts


def _n_of_classes(problem: FeatureProblem) -> float:
    """Number of samples, of equal weight, that tell as much; zero for a loss of numbers."""
    objective = problem.objective
    if not isinstance(objective, FeatureObjective):
        return 0.0
    response = objective.response
    if not getattr(response.loss, "gives_probabilities", False):  # users' losses may lack it
        return 0.0
    return 1.0 / float(objective.design.fold(lambda s: s @ s, response.shares))


def _has_room(problem: FeatureProblem, best: Point) -> bool:
    """Whether the lower bound leaves room for a better point."""
    least = problem.objective.least
    size = best.value - least if np.isfinite(least) else abs(best.value)
    return bool(best.value - problem.free_bound > SETTINGS.close * size)


RECIPES: Mapping[str, Callable[[FeatureProblem], list[Attempt]]] = {
    "auto": _auto,
    "bcd": _bcd,
    "greedy": _greedy,
    "pg": _pg,
    "cg": _cg,
    "cgpg": _cgpg,
    "soft": _soft,
}

# Options that `solver_options` may hold for each solver.
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "auto": ("time_limit",),
    "bcd": (),
    "greedy": ("refit",),
    "pg": ("refit", "longest", "shortest", "shrink"),
    "cg": ("step",),
    "cgpg": ("step", "refit", "longest", "shortest", "shrink"),
    "soft": ("n_turns", "n_annealed", "n_sweeps", "n_repeats", "time_limit"),
}


# Those of a proof, whatever the solver, and how many nodes it takes if they do not say it.
PROOF_OPTIONS = ("max_nodes", "time_limit")
MAX_NODES = 1000


def _prove(
    problem: FeatureProblem, objective: QuadraticObjective, limits: Limits, solution: Solution
) -> Attempt:
    """Branch and bound from a solution."""
    options = {"max_nodes": MAX_NODES, **(problem.proof or {})}
    run = prove(objective, limits, solution, callback=problem.budget.monitor, **options)
    left = "no grouping is left" if run.converged else f"gap of {100 * run.state.gain:.2g} % left"
    return Attempt("proof", (run,), run.state.bound, left)


def _descend(problem: FeatureProblem, start: Floats, options: Mapping[str, Any]) -> Run[Any]:
    """Projected gradient from a start."""
    # Without refits steps have to be as short as the curvature requires.
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


def _search(problem: FeatureProblem, start: Floats, known: Point | None, effort: Effort) -> Attempt:
    """Search over partitions from a feasible start, then projected gradient.

    known: the point of the start, where projected gradient has ended there.
    """
    places = _places(problem, start)
    if places is None:
        raise ValueError(
            "solver='soft' moves features between groups, and n_clusters=None gives each its own "
            "(or the constraint has no method places). Give n_clusters an integer, or choose "
            "solver='pg'."
        )
    soft = Soft(problem.objective, places, effort=effort, rng=problem.rng, known=known)
    searched = drive(soft, problem.budget)
    remark = "" if soft.found is None else soft.found.in_words
    if known is not None and not searched.state.objective < known.value:
        return Attempt("soft", (searched,), remark=remark)
    runs = (searched, _descend(problem, searched.solution.point.W, {}))
    return Attempt("soft", runs, remark=remark)


def _places(problem: FeatureProblem, start: Floats) -> Places | None:
    """Where features may be moved; None if they cannot be, or the constraint does not say."""
    places: Callable[[Floats], Places | None] | None = getattr(problem.constraint, "places", None)
    return None if places is None else places(start)


def _effort(problem: FeatureProblem, n_groups: int) -> Effort:
    """Effort of the search: less where moves cost more, so that it takes about a second."""
    n_features, n_outputs = problem.objective.shape
    ease = min(1.0, SETTINGS.easy_moves / (n_features * n_groups * n_outputs))
    quadratic = problem.objective.quadratic
    settings = {
        "n_turns": Effort.n_turns if ease == 1.0 and quadratic else 1,
        "n_starts": problem.n_starts or max(16, int(Effort.n_starts * ease**2)),
        "n_annealed": max(2, int(Effort.n_annealed * ease)),
        "n_sweeps": max(50, int(Effort.n_sweeps * ease)),
        "n_crossed": max(16, int(Effort.n_crossed * ease**2)) if quadratic else 0,
        "in_pairs": quadratic,
    }
    return Effort(**{**settings, **problem.options})


def _starts(problem: FeatureProblem, count: int) -> list[Floats]:
    """The given start, and random ones around it."""
    spread = 0.5 * problem.minimum.W.std()  # a start at zero has no spread of its own
    around = [
        problem.begin + spread * problem.rng.standard_normal(problem.begin.shape)
        for _ in range(count - 1)
    ]
    return [problem.begin, *around]
