"""The solvers for clustered samples by name, and what each of them does.

All of them end with alternating minimisation. The exception is the relevance prior, whose experts
stay as they are: refitting them with the plain ridge would undo what the prior is for.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from clustruct._typing import Floats, Labels
from clustruct.design import Design, Rows
from clustruct.grouping.constraints import ScaledClustered, leading_sum
from clustruct.losses import Noise
from clustruct.objectives.readings import linear_objective
from clustruct.objectives.samples.objective import Panel, SampleObjective
from clustruct.relaxations.samples import SampleFactor, slope_gram
from clustruct.results import Certificate
from clustruct.solvers.conditional_gradient import ConditionalGradient
from clustruct.solvers.driver import Budget, Run, Solution, drive
from clustruct.solvers.experts.alternating import AlternatingMinimisation
from clustruct.solvers.experts.evidence import bic
from clustruct.solvers.experts.mixture import HEAT, MixtureEM
from clustruct.solvers.experts.regression_clustering import RegressionClustering
from clustruct.solvers.experts.relevance import RelevanceEM
from clustruct.solvers.experts.screening import Screening, views
from clustruct.solvers.outcome import Attempt, Outcome, certify, status_of
from clustruct.solvers.projected_gradient import ProjectedGradient
from clustruct.solvers.starts import best_of, draw_experts, search

__all__ = ["OPTIONS", "RECIPES", "SUBSET", "SampleProblem", "draw_rows", "panel_of", "solve"]


# Starts at least and at most, until the best objective was reached twice. Without cooling, poor
# solutions may be reached twice as well.
COOLED_STARTS, RELEVANT_STARTS, PLAIN_STARTS = (2, 16), (2, 3), (8, 20)
# A start of expectation and maximisation gets so many steps; the best one then as many as it needs.
SHORT_STEPS, SHORT_TOL = 50, 1e-5
# Two objectives are the same: relative for losses, in nats for likelihoods.
SAME = 1e-3
# Difference of information criteria that counts as strong evidence.
STRONG_EVIDENCE = 10.0
# Precision of the relaxation: its groups are rounded anyway.
RELAXED_TOL = 1e-2
STRIDE = {"longest": 1.5, "shortest": 0.1, "shrink": 0.7}
# The relevance prior needs features to choose from, a dense matrix, and samples for each feature.
RELEVANCE_FEATURES, RELEVANCE_ENTRIES, RELEVANCE_SAMPLES = (5, 1000), 5_000_000, 4.0
# Up to so many features, starts are sought on a few of them.
SCREENED_FEATURES = 1000
# A ridge up to this fraction of the features' mean variance hardly shrinks anything.
WEAK_RIDGE = 0.1
# Above this many entries of X, experts are sought on so many samples, then refined on all.
LARGE, SUBSET = 4_000_000, 20_000
# With so many samples for each weight, starts need not be sought on few columns, and alternating
# minimisation is worth a try where it is cheap: for the squared loss, and up to so many products of
# entries and experts. It takes more starts the more experts there are, and finds less.
PLENTY, CHEAP = 20, 4_000_000
# It is tried on so many samples for each weight, but on no less than so many.
THINNED, LEAST_THINNED = 3 * PLENTY, 4000
# Directions for each expert in which mixtures begin where there are samples enough.
DIRECTIONS = 2
# Rows of ``W`` or ``P`` are formed up to this many entries.
MOST_ENTRIES = 200_000_000
CERTIFIED_ENTRIES, CERTIFIED_COLUMNS = 20_000_000, 2000
# Elsewhere than in memory every pair of outputs takes a pass.
CERTIFIED_OUTPUTS = 4


@dataclass(frozen=True, eq=False)
class SampleProblem:
    """What to solve, and how much may be spent on it.

    Attributes
    ----------
    objective : SampleObjective
    n_clusters : int
    budget : Budget
    n_starts : int or None
        Number of starts; None for as many as it takes.
    seed : int
        Of the random starts.
    total : float
        Weight of all samples together.
    n_jobs : int or None
    options : mapping
        Options of the solver, see `OPTIONS`.
    """

    objective: SampleObjective
    n_clusters: int
    budget: Budget
    n_starts: int | None
    seed: int
    total: float
    n_jobs: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def pooled(self) -> Panel:
        """One expert for all samples."""
        shares = self.objective.response.shares
        W, intercept = self.objective.fit_experts([shares], 1e-8)
        return self.objective.panel(W, intercept)

    @cached_property
    def noise(self) -> Noise:
        """The likelihood that belongs to the loss."""
        response = self.objective.response
        none = np.zeros((1, *self.objective.shape)), np.zeros((1, response.n_outputs))
        constant = float(response.shares @ self.objective.costs(*none)[:, 0])
        return response.loss.noise(response.n_outputs, constant)

    @property
    def has_plenty(self) -> bool:
        """Whether there are so many samples for each weight that any start may succeed."""
        n, d = self.objective.design.shape
        return n >= PLENTY * self.n_clusters * (d + 1)

    @cached_property
    def screening(self) -> Screening | None:
        """What finds starts on a few columns; None for classes, or where it is not needed."""
        return None if self.has_plenty else self._screening_of_all

    @cached_property
    def _screening_of_all(self) -> Screening | None:
        """The same, whether it is needed or not."""
        n, d = self.objective.design.shape
        if n > SUBSET:
            return self.subset()._screening_of_all
        loss = self.objective.response.loss
        # It takes targets for scores, which those of other links, and codes, are not.
        if d > SCREENED_FEATURES or loss.coded or not loss.has_identity_link:
            return None
        return Screening(self.objective, self.total)

    def experts(self, number: int) -> tuple[Floats, Floats]:
        """The random start of that number, the same for every solver."""
        return draw_experts(
            self.objective, self.pooled, self.noise, self.n_clusters, self._rng(number)
        )

    def view(self, number: int) -> tuple[str, int] | None:
        """The columns or directions on which that start is sought; None for a random start.

        Where there are many features, alternating minimisation and its kin cannot leave the groups
        that they start from; mixtures can, after a while.
        """
        looks = views(self.objective.shape[0], self.n_clusters)
        turn = number % (len(looks) + 1)
        return None if turn == len(looks) or self.screening is None else looks[turn]

    def sought_experts(self, number: int) -> tuple[Floats, Floats]:
        """The start of that number, sought on a few columns, or now and then a random one."""
        view = self.view(number)
        if view is None or self.screening is None:
            return self.experts(number)
        return self.screening.experts(*view, self.n_clusters, self._rng(number))

    def mixture_start(self, number: int) -> tuple[tuple[Floats, Floats], float]:
        """The start of that number for a mixture, and the heat that it takes.

        Only a random start has to be cooled down. Where samples are plenty and features many, two
        of three starts are those of a mixture in few directions, which takes less time and
        succeeds more often.
        """
        n_directions = DIRECTIONS * self.n_clusters
        narrow = self.has_plenty and 3 * n_directions < self.objective.shape[0]
        if narrow and number % 3 < 2 and self._screening_of_all is not None:
            rng = self._rng(number)
            return self._screening_of_all.mixed_experts(n_directions, self.n_clusters, rng), 1.0
        return self.sought_experts(number), HEAT if self.view(number) is None else 1.0

    def _rng(self, number: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(number,)))

    def subset(self, size: int | None = None) -> "SampleProblem":
        """The same problem on some of the samples, drawn by weight and brought to the host.

        `SUBSET` of them by default.
        """
        size = SUBSET if size is None else size
        objective = self.objective
        drawn = draw_rows(objective.design, objective.response.shares, self.seed, size)
        smaller = objective.subset(*drawn)
        return replace(self, objective=smaller, total=float(size))

    def thinned(self) -> "SampleProblem":
        """The same problem on so many samples that any start may succeed, where there are more."""
        n, d = self.objective.design.shape
        size = max(LEAST_THINNED, THINNED * self.n_clusters * (d + 1))
        return self.subset(size) if n >= 2 * size else self

    def at_hand(self) -> "SampleProblem":
        """The same problem on the host: on all samples of some weight, or on a part of many."""
        n = self.objective.design.shape[0]
        if n > SUBSET:
            return self.subset()
        everyone = self.objective.subset(np.arange(n))
        weighed = np.flatnonzero(everyone.response.shares > 0.0)
        return replace(self, objective=everyone if weighed.size == n else everyone.subset(weighed))


def draw_rows(
    design: Design, shares: Rows, seed: int, size: int | None = None
) -> tuple[Labels, Floats]:
    """Rows drawn by weight, `SUBSET` of them by default, ascending, and how often each was."""
    n_drawn = SUBSET if size is None else size
    positions = np.random.default_rng(np.random.SeedSequence(seed)).random(n_drawn)
    index, counts = np.unique(design.locate(shares, positions), return_counts=True)
    return index, counts.astype(np.float64)


def solve(problem: SampleProblem, solver: str) -> Outcome:
    """Solve a problem by the recipe of that name.

    Parameters
    ----------
    problem : SampleProblem
    solver : str
        A key of `RECIPES`.

    Returns
    -------
    Outcome
    """
    if problem.n_clusters == 1:
        attempts = [Attempt(solver, (_refined(problem, problem.pooled),))]
        best = attempts[0]
    elif problem.objective.design.on_host:
        attempts = RECIPES[solver](problem)
        best = _most_evident(problem, attempts)
    else:
        attempts, best = _from_afar(problem, solver)
    bound = max(attempt.bound for attempt in attempts)
    certificate = _certificate(problem, best.solution, bound)
    return Outcome(best.solution, best.trace, status_of(attempts, best), certificate)


def panel_of(solution: Solution) -> Panel:
    """The experts of an solution."""
    assert isinstance(solution.point, Panel)
    return solution.point


def _most_evident(problem: SampleProblem, attempts: list[Attempt]) -> Attempt:
    """The least objective, unless there is strong evidence for a relevance prior."""
    plain = [attempt for attempt in attempts if attempt.name != RelevanceEM.name]
    relevant = [attempt for attempt in attempts if attempt.name == RelevanceEM.name]
    if not plain:
        return relevant[0]
    best = min(plain, key=lambda attempt: attempt.solution.point.value)

    def criterion(attempt: Attempt) -> float:
        panel = panel_of(attempt.solution)
        return bic(problem.objective, problem.noise, panel, problem.total)

    if relevant and criterion(relevant[0]) < criterion(best) - STRONG_EVIDENCE:
        return relevant[0]
    return best


def _certificate(problem: SampleProblem, solution: Solution, relaxed_bound: float) -> Certificate:
    """The best lower bound: at the solution, by the relaxation, or the least loss of any scores.

    An intercept for each expert leaves nothing to prove, see `relaxations.samples`.
    """
    objective = problem.objective
    penalties = np.full(objective.shape[0], objective.alpha)
    single = linear_objective(objective.design, objective.response, penalties)
    bounds = {"least loss": single.least}
    if not objective.response.fit_intercept:
        bounds["conditional gradient"] = relaxed_bound
        explained = _explained(problem, panel_of(solution))
        if explained is not None:
            bounds["residual"] = single.dual_bound(solution.point, explained)
    return certify(solution.point.value, bounds, lambda: single.scale)


def _explained(problem: SampleProblem, panel: Panel) -> float | None:
    """The most that ``Q`` groups hold of the slopes times samples; None if it takes too long."""
    objective = problem.objective
    n, (d, n_outputs) = objective.design.shape[0], objective.shape
    if not objective.design.on_host:
        if d * n_outputs > CERTIFIED_COLUMNS or n_outputs > CERTIFIED_OUTPUTS:
            return None
        return leading_sum(slope_gram(objective, panel), problem.n_clusters)
    if n * d * n_outputs > CERTIFIED_ENTRIES or min(n, d * n_outputs) > CERTIFIED_COLUMNS:
        return None
    P = objective.design.row_products(panel.slope / objective.roots[:, None])
    return ScaledClustered(problem.n_clusters, objective.roots).explained(P)


def _from_afar(problem: SampleProblem, solver: str) -> tuple[list[Attempt], Attempt]:
    """Experts found on samples that were brought to the host, then refined where all samples are.

    Where there are few samples, all of them were there and nothing is left to refine.
    """
    if solver in ("pg", "cg"):
        raise ValueError(
            f"solver={solver!r} forms a matrix with a row for each sample, which only NumPy arrays "
            "and sparse matrices in memory have room for. Choose solver='auto', 'am', 'rc' or "
            "'em', or load X into memory."
        )
    few = problem.at_hand()
    attempts = RECIPES[solver](few)
    best = _most_evident(few, attempts)
    found = panel_of(best.solution)
    if problem.objective.design.shape[0] > SUBSET:
        refined = Attempt("am", (_refined(problem, found),), remark=_sought_on_part(best))
        return [refined], refined
    panel = problem.objective.panel(found.W, found.intercept)
    *earlier, last = best.solutions
    answered = replace(last, solution=Solution(panel, panel.labels))
    kept = replace(best, solutions=(*earlier, answered))
    return [kept if attempt is best else attempt for attempt in attempts], kept


def _sought_on_part(found: Attempt) -> str:
    """What to tell of experts that were found on a part of the samples."""
    return f"from experts found by {found.name} on {SUBSET} samples"


# ---- Recipes: what is done under each name.


def _am(problem: SampleProblem) -> list[Attempt]:
    return [_am_from(problem, problem)]


def _am_from(few: SampleProblem, problem: SampleProblem) -> Attempt:
    """Alternating minimisation on all samples, from the best start on few."""
    begin, remark = _alternated(few)
    return Attempt("am", (_refined(problem, begin),), remark=remark)


def _alternated(problem: SampleProblem) -> tuple[Panel, str]:
    """The best experts of several starts by alternating minimisation, and what to tell of them."""

    def solve_from(number: int) -> Run[Any]:
        W, intercept = problem.sought_experts(number)
        solver = AlternatingMinimisation(problem.objective, W, intercept, problem.n_clusters)
        return drive(solver, _quiet(problem))

    best, remark = _best_of(problem, solve_from, PLAIN_STARTS)
    return panel_of(best.solution), remark


def _pg(problem: SampleProblem) -> list[Attempt]:
    objective = problem.objective
    _check_size(problem, "pg")
    constraint = ScaledClustered(problem.n_clusters, objective.roots)

    def solve_from(number: int) -> Run[Any]:
        # The paper begins at zero, which is a single group; its best expert is the pooled fit.
        begin = objective.rows(problem.pooled)
        if number > 0:
            begin = objective.rows(objective.panel(*problem.sought_experts(number - 1)))
        settings = {**STRIDE, **problem.options}
        solver = ProjectedGradient(objective, constraint, begin, **settings)
        descended = drive(solver, _quiet(problem))
        # Judged after refinement: poor points of projected gradient are reached twice, too.
        panel = panel_of(descended.solution)
        refined = _refined(replace(problem, budget=_quiet(problem)), panel)
        return replace(refined, trace=descended.trace + refined.trace)

    best, remark = _best_of(problem, solve_from, PLAIN_STARTS)
    return [Attempt("pg", (best,), remark=f"after projected gradient, {remark}")]


def _cg(problem: SampleProblem) -> list[Attempt]:
    _check_size(problem, "cg")
    objective = problem.objective
    begin, remark = _alternated(problem)
    constraint = ScaledClustered(problem.n_clusters, objective.roots)
    settings = {"step": "classic", **problem.options}
    solver = ConditionalGradient(
        objective, constraint, SampleFactor(objective), objective.rows(begin), **settings
    )
    budget = replace(problem.budget, tol=max(problem.budget.tol, RELAXED_TOL))
    relaxed = drive(solver, budget)
    # Every grouping that is mixed in could be the rounding: the first one, too.
    refined = [_refined(problem, panel) for panel in (panel_of(relaxed.solution), begin)]
    best = min(refined, key=lambda run: run.state.objective)
    return [Attempt("cg", (relaxed, best), relaxed.state.bound, f"from the {remark}")]


def _rc(problem: SampleProblem) -> list[Attempt]:
    def solve_from(number: int) -> Run[Any]:
        W, intercept = problem.sought_experts(number)
        return drive(RegressionClustering(problem.objective, W, intercept), _short(problem))

    best, remark = _best_of(problem, solve_from, PLAIN_STARTS)
    return [Attempt("rc", (best, _refined(problem, panel_of(best.solution))), remark=remark)]


def _em(problem: SampleProblem) -> list[Attempt]:
    wish = problem.options.get("relevance", "auto")
    if not (wish is True or (wish == "auto" and _may_have_relevance(problem))):
        return [_plain_em(problem, *_mixed(problem))]
    if problem.has_plenty:
        # The ridge finds the experts then, and the prior has but features to leave out.
        begin, remark = _mixed(problem)
        relevant = _with_prior(problem, begin, remark)
    else:
        relevant = _with_relevance(problem)
        begin, remark = panel_of(relevant.solution), "from the experts of the relevance prior"
        if wish is not True and not relevant.remark.endswith(REACHED_TWICE):
            begin, remark = _mixed(problem)
    return [relevant] if wish is True else [relevant, _plain_em(problem, begin, remark)]


def _auto(problem: SampleProblem) -> list[Attempt]:
    n, d = problem.objective.design.shape
    if n * d > LARGE and n > 2 * SUBSET:
        few = problem.subset()
        best = _most_evident(few, _auto(few))
        refined = _refined(problem, panel_of(best.solution))
        return [Attempt("am", (refined,), remark=_sought_on_part(best))]
    attempts = _em(replace(problem, options={}))
    cheap = problem.objective.quadratic and n * d * problem.n_clusters <= CHEAP
    if cheap and problem.has_plenty:
        attempts.append(_am_from(problem.thinned(), problem))
    return attempts


RECIPES: Mapping[str, Callable[[SampleProblem], list[Attempt]]] = {
    "auto": _auto,
    "am": _am,
    "pg": _pg,
    "cg": _cg,
    "rc": _rc,
    "em": _em,
}

# Options that `solver_options` may hold for each solver.
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "auto": (),
    "am": (),
    "pg": ("refit", "longest", "shortest", "shrink"),
    "cg": ("step",),
    "rc": (),
    "em": ("relevance", "refine"),
}


def _with_relevance(problem: SampleProblem) -> Attempt:
    """Expectation and maximisation with the relevance prior."""

    def solve_from(number: int) -> Run[Any]:
        # By turns: the prior finds columns by itself, and what was sought may have missed some.
        turn, sought = divmod(number, 2)
        W, intercept = (problem.sought_experts if sought else problem.experts)(turn)
        solver = RelevanceEM(problem.objective, problem.noise, problem.total, W, intercept)
        return drive(solver, _short(problem))

    best, remark = _best_of(problem, solve_from, RELEVANT_STARTS, nats=True)
    return Attempt(RelevanceEM.name, (best,), remark=remark)


def _with_prior(problem: SampleProblem, begin: Panel, remark: str) -> Attempt:
    """The same from experts at hand."""
    solver = RelevanceEM(problem.objective, problem.noise, problem.total, begin.W, begin.intercept)
    return Attempt(RelevanceEM.name, (drive(solver, _short(problem)),), remark=remark)


def _mixed(problem: SampleProblem) -> tuple[Panel, str]:
    """The best experts of several short mixtures with the ridge, and what to tell of them."""

    def solve_from(number: int) -> Run[Any]:
        begin, heat = problem.mixture_start(number)
        solver = MixtureEM(problem.objective, problem.noise, *begin, heat=heat)
        return drive(solver, _short(problem))

    best, remark = _best_of(problem, solve_from, COOLED_STARTS, nats=True)
    return panel_of(best.solution), remark


def _plain_em(problem: SampleProblem, begin: Panel, remark: str) -> Attempt:
    """Expectation and maximisation with the ridge from a start, then alternating minimisation."""
    objective, noise = problem.objective, problem.noise
    longer = MixtureEM(objective, noise, begin.W, begin.intercept, heat=1.0)
    mixed = drive(longer, replace(problem.budget, tol=max(problem.budget.tol, SHORT_TOL)))
    if not problem.options.get("refine", True):
        return Attempt("em", (mixed,), remark=remark)
    return Attempt("em", (mixed, _refined(problem, panel_of(mixed.solution))), remark=remark)


def _refined(problem: SampleProblem, panel: Panel) -> Run[Any]:
    """Alternating minimisation from experts at hand."""
    solver = AlternatingMinimisation(
        problem.objective, panel.W, panel.intercept, problem.n_clusters
    )
    return drive(solver, problem.budget)


REACHED_TWICE = "reached twice"


def _best_of(
    problem: SampleProblem,
    solve_from: Callable[[int], Run[Any]],
    limits: tuple[int, int],
    *,
    nats: bool = False,
) -> tuple[Run[Any], str]:
    """The best of as many starts as it takes, and whether it was reached twice."""

    def slack(value: float) -> float:
        return SAME * (1.0 if nats else abs(value))

    least, most = limits
    found = search(
        solve_from, problem.n_starts, least=least, most=most, slack=slack, n_jobs=problem.n_jobs
    )
    best, remark = best_of(found)
    again = [
        s for s in found if s.state.objective - best.state.objective <= slack(s.state.objective)
    ]
    ending = f", {REACHED_TWICE}" if len(again) > 1 else ""
    return best, remark + ending


def _quiet(problem: SampleProblem) -> Budget:
    """The budget of one start among others."""
    return replace(problem.budget, quiet=True)


def _short(problem: SampleProblem) -> Budget:
    """The budget of a start that is judged before it has converged."""
    budget = problem.budget
    return replace(
        budget,
        max_iter=min(budget.max_iter, SHORT_STEPS),
        tol=max(budget.tol, SHORT_TOL),
        quiet=True,
    )


def _may_have_relevance(problem: SampleProblem) -> bool:
    """Whether the relevance prior can be tried, and has features to choose from."""
    n, d = problem.objective.design.shape
    least, most = RELEVANCE_FEATURES
    suitable = least <= d <= most and n * d <= RELEVANCE_ENTRIES
    if not (problem.objective.quadratic and suitable and problem.total >= RELEVANCE_SAMPLES * d):
        return False
    # The prior takes the place of the ridge; one that shrinks all weights was asked for.
    _, variances = problem.objective.design.moments(problem.objective.response.shares)
    return problem.objective.alpha <= WEAK_RIDGE * float(variances.mean())


def _check_size(problem: SampleProblem, solver: str) -> None:
    n, d = problem.objective.design.shape
    entries = n * (d + 1) * problem.objective.shape[1]
    if entries > MOST_ENTRIES:
        raise ValueError(
            f"solver={solver!r} forms a dense matrix with a row for each sample, here of "
            f"{entries:.2g} entries. Choose solver='auto', 'am', 'rc' or 'em'."
        )
