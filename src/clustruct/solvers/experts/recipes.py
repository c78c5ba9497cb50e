"""Recipes for clustered samples: what each value of ``solver`` does.

All of them end with alternating minimisation, except for the relevance prior, whose experts stay as
they are: refitting them with the plain ridge would undo the prior.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from clustruct._typing import Floats
from clustruct.design import Rows
from clustruct.grouping.constraints import ScaledClustered, leading_sum
from clustruct.objectives.linear import LinearObjective
from clustruct.objectives.samples.objective import Panel
from clustruct.objectives.streamed import linear_objective
from clustruct.relaxations.samples import SampleFactor, slope_gram
from clustruct.solvers.conditional_gradient import ConditionalGradient
from clustruct.solvers.driver import (
    Attempt,
    Budget,
    Outcome,
    Run,
    Solution,
    best_of,
    drive,
)
from clustruct.solvers.experts.alternating import AlternatingMinimisation
from clustruct.solvers.experts.counting import OwnNoise, OwnNoiseEM
from clustruct.solvers.experts.elemental import SETTINGS as ELEMENTS
from clustruct.solvers.experts.elemental import ElementalSettings, from_elements, has_few_weights
from clustruct.solvers.experts.mixture import MixtureEM, bic, n_weights
from clustruct.solvers.experts.problem import SampleProblem
from clustruct.solvers.experts.regression_clustering import RegressionClustering
from clustruct.solvers.experts.relevance import RelevanceEM
from clustruct.solvers.experts.starts import SETTINGS as STARTS
from clustruct.solvers.given import GivenGroups
from clustruct.solvers.projected_gradient import ProjectedGradient

# Steps that projected gradient tries, in units of the best one along the gradient.
STRIDE = {"longest": 1.5, "shortest": 0.1, "shrink": 0.7}
# Starts of a search from experts of nearly the same problem: these and one more at least.
SHORT_SEARCH: Mapping[str, Any] = {
    "cooled_starts": (2, 4),
    "robust_starts": (2, 3),
    "relevant_starts": (2, 3),
    "plain_starts": (3, 6),
}
FEW_ELEMENTS = replace(ELEMENTS, batch=16, again=8)


def solve(problem: SampleProblem, solver: str) -> Outcome:
    """Solve a problem by the recipe of that name.

    solver: a key of `RECIPES`.
    """
    return _certified(problem, *_attempted(problem, solver, RECIPES[solver]))


def solve_again(problem: SampleProblem, solver: str, kept: str) -> Panel:
    """The experts of a problem like one that was solved, from its hints and by a short search.

    A mixture with noise of its own for each expert, or with a relevance prior, stays one.

    kept: the attempt that was kept then.
    """
    recipe = RECIPES[solver]
    if solver == "auto":
        recipe = {OwnNoiseEM.name: _own_again, RelevanceEM.name: _relevant_again}.get(kept, _again)
    short = replace(problem.with_more_starts, settings=replace(problem.settings, **SHORT_SEARCH))
    return panel_of(_attempted(short, solver, recipe)[1].solution)


def solve_given(problem: SampleProblem, labels: Rows) -> Outcome:
    """The best experts for an assignment, which stays as it is."""
    run = drive(GivenGroups(problem.objective, labels, problem.n_clusters), problem.quiet)
    kept = Attempt(GivenGroups.name, (run,))
    return _certified(problem, [kept], kept)


def _attempted(
    problem: SampleProblem, solver: str, recipe: "Recipe"
) -> tuple[list[Attempt], Attempt]:
    """All attempts of a recipe, and the one that is kept."""
    if problem.n_clusters == 1:
        attempts = [Attempt(solver, (_refined(problem, problem.pooled),))]
        return attempts, attempts[0]
    if not problem.objective.design.on_host:
        return _from_afar(problem, solver, recipe)
    attempts = recipe(problem)
    return attempts, _most_evident(problem, attempts)


def _certified(problem: SampleProblem, attempts: list[Attempt], best: Attempt) -> Outcome:
    """The outcome of attempts, with its lower bounds."""
    bound = max(attempt.bound for attempt in attempts)
    objective = problem.objective
    penalties = np.full(objective.shape[0], objective.alpha)
    single = linear_objective(objective.design, objective.response, penalties)
    bounds = _bounds(problem, single, best.solution, bound)
    return Outcome.of(attempts, best, bounds, lambda: single.scale)


def panel_of(solution: Solution) -> Panel:
    """The experts of a solution."""
    assert isinstance(solution.point, Panel)
    return solution.point


def _most_evident(problem: SampleProblem, attempts: list[Attempt]) -> Attempt:
    """The least objective, unless there is strong evidence for another model.

    A mixture with noise of its own for each expert is among the attempts only if there is.
    """
    by_name = {attempt.name: attempt for attempt in attempts}
    if OwnNoiseEM.name in by_name:
        return by_name[OwnNoiseEM.name]
    plain = [attempt for attempt in attempts if attempt.name != RelevanceEM.name]
    if not plain:
        return attempts[0]
    best = min(plain, key=lambda attempt: attempt.solution.point.value)
    if RelevanceEM.name not in by_name:
        return best
    relevant = by_name[RelevanceEM.name]
    evidence = _criterion(problem, best) - _criterion(problem, relevant)
    return relevant if evidence > problem.settings.strong_evidence else best


def _criterion(problem: SampleProblem, attempt: Attempt) -> float:
    """Information criterion of the experts that were found; smaller is better."""
    return bic(problem.objective, problem.noise, panel_of(attempt.solution), problem.total)


def _bounds(
    problem: SampleProblem, single: LinearObjective, solution: Solution, relaxed_bound: float
) -> dict[str, float]:
    """Lower bounds: at the solution, by the relaxation, and the least loss of any scores.

    With an intercept for each expert only the last one exists, see `relaxations.samples`.
    """
    bounds = {"least loss": single.least}
    if not problem.objective.response.fit_intercept:
        bounds["conditional gradient"] = relaxed_bound
        explained = _explained(problem, panel_of(solution))
        if explained is not None:
            bounds["residual"] = single.dual_bound(solution.point, explained)
    return bounds


def _explained(problem: SampleProblem, panel: Panel) -> float | None:
    """The most that ``Q`` groups hold of ``||P||^2``; None if that takes too long to compute."""
    objective, settings = problem.objective, problem.settings
    n, (d, n_outputs) = objective.design.shape[0], objective.shape
    if not objective.design.on_host:
        if d * n_outputs > settings.certified_columns or n_outputs > settings.certified_outputs:
            return None
        return leading_sum(slope_gram(objective, panel), problem.n_clusters)
    too_large = n * d * n_outputs > settings.certified_entries
    if too_large or min(n, d * n_outputs) > settings.certified_columns:
        return None
    P = objective.design.row_products(panel.slope / objective.roots[:, None])
    return ScaledClustered(problem.n_clusters, objective.roots).explained(P)


def _from_afar(
    problem: SampleProblem, solver: str, recipe: "Recipe"
) -> tuple[list[Attempt], Attempt]:
    """Find experts on samples brought to the host, then refine them on all samples.

    If there are few samples, all of them are brought to the host and nothing is left to refine.
    """
    if solver in ("pg", "cg"):
        raise ValueError(
            f"solver={solver!r} forms a matrix with a row for each sample, which only NumPy arrays "
            "and sparse matrices in memory have room for. Choose solver='auto', 'am', 'rc' or "
            "'em', or load X into memory."
        )
    few = problem.at_hand()
    is_part = problem.objective.design.shape[0] > problem.settings.subset
    if is_part:
        few = few.with_common_noise()
    attempts = recipe(few)
    best = _most_evident(few, attempts)
    found = panel_of(best.solution)
    if is_part:
        refined = Attempt("am", (_refined(problem, found),), remark=_sought_on_part(problem, best))
        return [refined], refined
    panel = problem.objective.panel(found.W, found.intercept)
    *earlier, last = best.solutions
    assigned = replace(last, solution=Solution(panel, panel.labels))
    kept = replace(best, solutions=(*earlier, assigned))
    return [kept if attempt is best else attempt for attempt in attempts], kept


def _sought_on_part(problem: SampleProblem, found: Attempt) -> str:
    """Remark on experts that were found on a part of the samples."""
    return f"from experts found by {found.name} on {problem.settings.subset} samples"


# ---- Recipes.


def _am(problem: SampleProblem) -> list[Attempt]:
    return [_am_from(problem, problem)]


def _am_from(few: SampleProblem, problem: SampleProblem) -> Attempt:
    """Alternating minimisation on all samples, from the best start on few."""
    begin, remark = _alternated(few)
    return Attempt("am", (_refined(problem, begin),), remark=remark)


def _alternated(problem: SampleProblem) -> tuple[Panel, str]:
    """The best experts of several starts by alternating minimisation, and a remark."""

    def solve_from(number: int) -> Run[Any]:
        W, intercept = problem.start(number, problem.sought_experts)
        solver = AlternatingMinimisation(problem.objective, W, intercept, problem.n_clusters)
        return drive(solver, problem.quiet)

    best, remark = _best_of(problem, solve_from, problem.settings.plain_starts)
    return panel_of(best.solution), remark


def _pg(problem: SampleProblem) -> list[Attempt]:
    objective = problem.objective
    _check_size(problem, "pg")
    constraint = ScaledClustered(problem.n_clusters, objective.roots)

    def solve_from(number: int) -> Run[Any]:
        # The paper starts at zero, which is a single group; its best expert is the pooled fit.
        begin = objective.rows(problem.pooled)
        if number > 0:
            found = problem.start(number - 1, problem.sought_experts)
            begin = objective.rows(objective.panel(*found))
        settings = {**STRIDE, **problem.options}
        solver = ProjectedGradient(objective, constraint, begin, **settings)
        descended = drive(solver, problem.quiet)
        # Compared after refinement: projected gradient reaches poor points twice, too.
        panel = panel_of(descended.solution)
        refined = _refined(replace(problem, budget=problem.quiet), panel)
        return replace(refined, trace=descended.trace + refined.trace)

    best, remark = _best_of(problem, solve_from, problem.settings.plain_starts)
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
    budget = replace(problem.budget, tol=max(problem.budget.tol, problem.settings.relaxed_tol))
    relaxed = drive(solver, budget)
    # The first grouping is a rounding of the relaxation like any other.
    refined = [_refined(problem, panel) for panel in (panel_of(relaxed.solution), begin)]
    best = min(refined, key=lambda run: run.state.objective)
    return [Attempt("cg", (relaxed, best), relaxed.state.bound, f"from the {remark}")]


def _rc(problem: SampleProblem) -> list[Attempt]:
    def solve_from(number: int) -> Run[Any]:
        W, intercept = problem.start(number, problem.sought_experts)
        return drive(RegressionClustering(problem.objective, W, intercept), problem.short)

    best, remark = _best_of(problem, solve_from, problem.settings.plain_starts)
    return [Attempt("rc", (best, _refined(problem, panel_of(best.solution))), remark=remark)]


def _em(problem: SampleProblem) -> list[Attempt]:
    if problem.options.get("noise", "common") == "own":
        return [_with_own_noise(problem, problem.longer)]
    wish = problem.options.get("relevance", "auto")
    if not (wish is True or (wish == "auto" and _may_have_relevance(problem))):
        return [_plain_em(problem, *_mixed(problem))]
    one_start = _predicts_all(problem)
    if problem.has_plenty or one_start:
        # The ridge finds the experts then, and the prior only drops features.
        begin, remark = _mixed(problem, (1, 1) if one_start else None)
        relevant = _with_prior(problem, begin, remark)
    else:
        relevant = _with_relevance(problem)
        begin, remark = panel_of(relevant.solution), "from the experts of the relevance prior"
        if wish is not True and not relevant.remark.endswith(REACHED_TWICE):
            begin, remark = _mixed(problem)
    return [relevant] if wish is True else [relevant, _plain_em(problem, begin, remark)]


def _is_large(problem: SampleProblem) -> bool:
    """Whether experts are found on a part of the samples."""
    n, d = problem.objective.design.shape
    return bool(n * d > problem.settings.large and n > 2 * problem.settings.subset)


def _on_part(problem: SampleProblem, recipe: "Recipe") -> list[Attempt]:
    """Experts found on a part of the samples, then refined on all of them."""
    few = problem.subset().with_common_noise()
    best = _most_evident(few, recipe(few))
    refined = _refined(problem, panel_of(best.solution))
    return [Attempt("am", (refined,), remark=_sought_on_part(problem, best))]


def _auto(problem: SampleProblem) -> list[Attempt]:
    if _is_large(problem):
        return _on_part(problem, _auto)
    n, d = problem.objective.design.shape
    few_weights = has_few_weights(problem)
    if few_weights:
        fewer = replace(problem.settings, cooled_starts=problem.settings.starts_beside_elements)
        problem = replace(problem, settings=fewer)
    attempts = _em(problem)
    own, told = _own_noise(problem, attempts)
    if own is not None:
        return [*attempts, own]
    cheap = problem.objective.quadratic and n * d * problem.n_clusters <= problem.settings.cheap
    if few_weights:
        attempts.append(_elemental(problem, attempts[-1]))
    elif cheap and problem.has_plenty:
        attempts.append(_am_from(problem.thinned(problem.settings.thinned), problem))
    if told:
        attempts[-1] = replace(attempts[-1], remark=f"{attempts[-1].remark}; {told}")
    return attempts


Recipe = Callable[[SampleProblem], list[Attempt]]
RECIPES: Mapping[str, Recipe] = {
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
    "em": ("relevance", "refine", "noise"),
}


def _again(problem: SampleProblem) -> list[Attempt]:
    """Mixtures from hints and a few other starts, beside short searches that know no likelihood."""
    if _is_large(problem):
        return _on_part(problem, _again)
    attempts = [_plain_em(problem, *_mixed(problem))]
    if has_few_weights(problem):
        attempts.append(_from_few(problem, FEW_ELEMENTS))
    elif problem.objective.quadratic:
        attempts += _am(problem)
    return attempts


def _own_again(problem: SampleProblem) -> list[Attempt]:
    """The same where every expert has noise of its own."""
    return [_with_own_noise(problem, replace(problem.longer, quiet=True))]


def _relevant_again(problem: SampleProblem) -> list[Attempt]:
    """The same with the relevance prior."""
    return [_with_relevance(problem)]


def _from_few(problem: SampleProblem, settings: ElementalSettings) -> Attempt:
    """Elemental starts, then alternating minimisation."""
    begin, remark = from_elements(problem, settings)
    return Attempt("am", (_refined(problem, begin),), remark=remark)


def _elemental(problem: SampleProblem, mixed: Attempt) -> Attempt:
    """Elemental starts; a remark says if the mixture likelihood prefers the other attempt."""
    found = _from_few(problem, ELEMENTS)
    remark = found.remark
    evidence = _criterion(problem, found) - _criterion(problem, mixed)
    if evidence <= problem.settings.strong_evidence:
        return found
    told = f"the mixture likelihood prefers the experts of {mixed.name}, by {evidence:.3g} in BIC"
    return replace(found, remark=f"{remark}; {told}")


def _with_relevance(problem: SampleProblem) -> Attempt:
    """Expectation and maximisation with the relevance prior."""

    def drawn(number: int) -> tuple[Floats, Floats]:
        # By turns: the prior finds columns by itself, and a screened start may have missed some.
        turn, sought = divmod(number, 2)
        return (problem.sought_experts if sought else problem.experts)(turn)

    def solve_from(number: int) -> Run[Any]:
        W, intercept = problem.start(number, drawn)
        solver = RelevanceEM(problem.objective, problem.noise, problem.total, W, intercept)
        return drive(solver, problem.short)

    best, remark = _best_of(problem, solve_from, problem.settings.relevant_starts, nats=True)
    if not best.converged:  # short runs are for comparison; the best one is brought to its end
        begin = panel_of(best.solution)
        solver = RelevanceEM(
            problem.objective, problem.noise, problem.total, begin.W, begin.intercept
        )
        best = drive(solver, problem.longer)
    return Attempt(RelevanceEM.name, (best,), remark=remark)


def _with_own_noise(problem: SampleProblem, budget: Budget) -> Attempt:
    """A mixture in which every expert has noise of its own, and samples may follow none.

    budget: of the best one, from the experts of several short ones.
    """
    few = problem.thinned(problem.settings.robust_samples)
    likelihood = OwnNoise(few.objective, few.noise, few.total)

    def solve_from(number: int) -> Run[Any]:
        begin = few.start(number, few.robust_experts)
        return drive(OwnNoiseEM(few.objective, likelihood, *begin), few.short)

    best, remark = _best_of(few, solve_from, problem.settings.robust_starts, nats=True)
    if few is not problem or not best.converged:
        begin = best.state.W, best.state.intercept
        likelihood = OwnNoise(problem.objective, problem.noise, problem.total)
        best = drive(OwnNoiseEM(problem.objective, likelihood, *begin), budget)
    return Attempt("em", (best,), remark=remark)


def _own_noise(problem: SampleProblem, attempts: list[Attempt]) -> tuple[Attempt | None, str]:
    """A mixture with noise of its own for each expert if the evidence is for it, or a remark."""
    n, d = problem.objective.design.shape
    small = n * d <= problem.settings.large and d <= problem.settings.screened_features
    enough = problem.total >= STARTS.samples_in_turn * problem.n_clusters * (d + 1)
    wanted = np.isfinite(problem.settings.evidence_of_noise)
    noisy = not _is_next_to_nothing(problem, panel_of(attempts[-1].solution))
    if not (problem.objective.quadratic and small and enough and wanted and noisy):
        return None, ""
    own = _with_own_noise(problem, replace(problem.longer, quiet=True))
    evidence = _evidence_of_own_noise(problem, attempts, own)
    if evidence <= problem.settings.strong_evidence:
        return None, ""
    told = f"experts have unequal noise, or samples follow none, by {evidence:.3g} in BIC"
    if evidence > problem.settings.evidence_of_noise:
        return replace(own, name=OwnNoiseEM.name, remark=f"{own.remark}; {told}"), ""
    return None, f"maybe {told}: try solver='em', solver_options={{'noise': 'own'}}"


def _evidence_of_own_noise(problem: SampleProblem, attempts: list[Attempt], own: Attempt) -> float:
    """How much lower BIC is with a scale for each expert, and samples that may follow none.

    Mixtures are compared at their optimum, which experts of a hard assignment are not; that with
    noise in common is sought from the experts of the other one, too.
    """
    objective, panel, log_total = problem.objective, panel_of(own.solution), np.log(problem.total)
    n_parameters = n_weights(panel.W, panel.intercept, objective.response.fit_intercept)

    def criterion(run: Run[Any], n_more: int) -> float:
        return 2.0 * problem.total * run.state.objective + (n_parameters + n_more) * log_total

    mine = criterion(own.solutions[-1], panel.W.shape[0] + 1)
    mixed = [attempt for attempt in attempts if attempt.name == MixtureEM.name]
    others = [criterion(attempt.solutions[0], 1) for attempt in mixed]
    others += [_criterion(problem, a) for a in attempts if a.name == RelevanceEM.name]
    if min(others) - mine > problem.settings.strong_evidence:
        solver = MixtureEM(objective, problem.noise, panel.W, panel.intercept, heat=1.0)
        others.append(criterion(drive(solver, replace(problem.longer, quiet=True)), 1))
    return min(others) - mine


def _with_prior(problem: SampleProblem, begin: Panel, remark: str) -> Attempt:
    """The same from given experts."""
    solver = RelevanceEM(problem.objective, problem.noise, problem.total, begin.W, begin.intercept)
    return Attempt(RelevanceEM.name, (drive(solver, problem.short),), remark=remark)


def _mixed(problem: SampleProblem, limits: tuple[int, int] | None = None) -> tuple[Panel, str]:
    """The best experts of several short mixtures with the ridge, and a remark."""

    def solve_from(number: int) -> Run[Any]:
        begin, heat = problem.mixture_start(number)
        solver = MixtureEM(problem.objective, problem.noise, *begin, heat=heat)
        return drive(solver, problem.short)

    limits = limits or problem.settings.cooled_starts
    best, remark = _best_of(problem, solve_from, limits, nats=True)
    return panel_of(best.solution), remark


def _predicts_all(problem: SampleProblem) -> bool:
    """Whether experts that are found in turn leave next to nothing of what one expert leaves.

    With several samples for each weight, no wrong experts do.
    """
    if (problem.view(0) or ("", 0))[0] != "in turn":
        return False
    return _is_next_to_nothing(problem, problem.objective.panel(*problem.sought_experts(0)))


def _is_next_to_nothing(problem: SampleProblem, panel: Panel) -> bool:
    """Whether the loss of some experts is, beside that of one expert for all samples."""
    return panel.value <= problem.settings.next_to_nothing * problem.pooled.value


def _plain_em(problem: SampleProblem, begin: Panel, remark: str) -> Attempt:
    """Expectation and maximisation with the ridge, then alternating minimisation."""
    objective, noise = problem.objective, problem.noise
    longer = MixtureEM(objective, noise, begin.W, begin.intercept, heat=1.0)
    mixed = drive(longer, problem.longer)
    if not problem.options.get("refine", True):
        return Attempt("em", (mixed,), remark=remark)
    return Attempt("em", (mixed, _refined(problem, panel_of(mixed.solution))), remark=remark)


def _refined(problem: SampleProblem, panel: Panel) -> Run[Any]:
    """Alternating minimisation from given experts."""
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
    """The best of several starts, and a remark that says whether it was reached twice."""

    def slack(value: float) -> float:
        return problem.settings.same * (1.0 if nats else abs(value))

    found = problem.search(solve_from, limits, slack)
    best, remark = best_of(found)
    again = [
        s for s in found if s.state.objective - best.state.objective <= slack(s.state.objective)
    ]
    ending = f", {REACHED_TWICE}" if len(again) > 1 else ""
    return best, remark + ending


def _may_have_relevance(problem: SampleProblem) -> bool:
    """Whether the relevance prior can be tried, and has features to choose from."""
    n, d = problem.objective.design.shape
    settings = problem.settings
    least, most = settings.relevance_features
    suitable = least <= d <= most and n * d <= settings.relevance_entries
    suitable = suitable and problem.total >= settings.relevance_samples * d
    if not (problem.objective.quadratic and suitable):
        return False
    if not np.any(problem.objective.response.target):  # zeros have no scale to compare weights with
        return False
    # The prior replaces the ridge; a ridge that shrinks all weights was asked for.
    _, variances = problem.objective.design.moments(problem.objective.response.shares)
    return problem.objective.alpha <= problem.settings.weak_ridge * float(variances.mean())


def _check_size(problem: SampleProblem, solver: str) -> None:
    n, d = problem.objective.design.shape
    entries = n * (d + 1) * problem.objective.shape[1]
    if entries > problem.settings.most_entries:
        raise ValueError(
            f"solver={solver!r} forms a dense matrix with a row for each sample, here of "
            f"{entries:.2g} entries. Choose solver='auto', 'am', 'rc' or 'em'."
        )
