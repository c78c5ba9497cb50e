"""Cross-validation of a grid of fits.

Nothing here depends on which process does the work: the seed of every fit is the same, and linear
algebra runs in one thread, so that the scores are the same bits whatever ``n_jobs`` is. Nor does it
depend on where the samples live, which is the business of those who divide them.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import partial

import numpy as np
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

from clustruct._typing import Floats
from clustruct.estimators.features.grid import Method, fit_grid
from clustruct.estimators.features.plan import Plan
from clustruct.estimators.options import counter
from clustruct.estimators.search.folds import Divided, FoldWork
from clustruct.objectives.features.objective import FeatureObjective
from clustruct.objectives.quadratic import QuadraticObjective
from clustruct.solvers.driver import Solution
from clustruct.solvers.features import FeatureOutcome, relaxed_solutions

__all__ = ["cross_validate", "search_method"]


# Projected gradient for fits that are only scored: fewer trials, and an end to small gains.
QUICK_STEPS = {"shrink": 0.5, "shortest": 0.05}
QUICK_TOL = 1e-3


def cross_validate(
    samples: Divided, plan: Plan, n_jobs: int | None, verbose: int | bool
) -> tuple[Floats, int]:
    """Scores of every point of the grid on every fold.

    Parameters
    ----------
    samples : Divided
    plan : Plan
    n_jobs : int or None
    verbose : int or bool
        Whether to write a line to standard error when a fold is done.

    Returns
    -------
    scores : ndarray of shape (n_Q, n_alphas, n_k, n_relax, n_folds)
    unconverged : int
        Number of fits that were stopped by their budget.
    """
    unconverged = 0
    with threadpool_limits(1):
        works = samples.works(plan)
        scores = np.empty((*plan.shape, len(works)))
        tell = counter(verbose, "fold", len(works))
        if all(work.travels for work in works):
            parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
            scored = parallel(delayed(_score_fold)(work, plan) for work in works)
        else:
            jobs = [partial(_score_fold, work, plan) for work in works]
            scored = samples.objective.side_by_side(jobs)
        for number, fold_scores, count in scored:
            scores[..., number] = fold_scores
            unconverged += count
            tell()
    return scores, unconverged


def _score_fold(work: FoldWork, plan: Plan) -> tuple[int, Floats, int]:
    """Number of the fold, its scores, and how many fits did not converge."""
    plan = replace(plan, model=copy(plan.model))  # folds in threads must not share it
    unconverged = 0
    with threadpool_limits(1):
        objective = work.objective(plan)
        ledger = work.ledger(plan)
        method = search_method(plan.solver, plan.method, objective)
        finish = partial(_fractions, plan.relax)
        fits = fit_grid(objective, plan.grid, plan.model.blocks, method, finish)
        for place, (solutions, converged) in fits:
            ledger.enter(place, solutions)
            unconverged += not converged
        scores = ledger.scores()
    return work.number, scores, unconverged


def _fractions(factors: Sequence[float], outcome: FeatureOutcome) -> tuple[list[Solution], bool]:
    """The solutions of a fit with fractions of its ridge, and whether it converged."""
    return relaxed_solutions(outcome, factors), outcome.status.converged


def search_method(
    asked: str, method: Method, objective: QuadraticObjective | FeatureObjective
) -> Method:
    """How fits are made that are only scored.

    "auto" is the solver of the final fit, unless that is one which spends much on the last bit of
    the objective: then projected gradient with few trials where they are cheap, and the greedy fit
    where they take a pass over ``X``.
    """
    if asked != "auto" or method.solver not in ("auto", "soft"):
        return method.quietly(method.solver if asked == "auto" else asked)
    if not isinstance(objective, QuadraticObjective):
        return method.quietly("greedy")
    quick = method.quietly("pg")
    budget = replace(quick.budget, tol=max(quick.budget.tol, QUICK_TOL))
    return replace(quick, budget=budget, options=QUICK_STEPS)
