"""Cross-validation of clustered tasks: fits on a grid, and their scores.

On each fold the tasks are eliminated once for each ``alpha_within``; what is left for every number
of groups and every ``alpha_between`` is small. Groups found at one point are a start at the next.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

from clustruct._typing import Floats, Indices
from clustruct.estimators.options import counter
from clustruct.estimators.tasks.base import Prices, TaskCluster
from clustruct.estimators.tasks.entries import Entries, Summed
from clustruct.estimators.tasks.folds import Score, Split, score_fits
from clustruct.losses import loss_of
from clustruct.objectives.tasks.objective import TaskObjective, TaskPoint
from clustruct.results import TaskSelection
from clustruct.results.paired import fewest
from clustruct.solvers.tasks.alternation import point_of
from clustruct.solvers.tasks.recipes import TaskProblem, attempt

__all__ = ["Plan", "cross_validate", "select"]


# Fits that are only scored: starts at the first point of the grid, starts besides the groups found
# before where ``alpha_within`` has changed, and what is precise enough.
FIRST_STARTS, MORE_STARTS = 3, 1
QUICK_TOL = 1e-4
QUICK_PRECISION = (1e-5, 1e-5)
# Standard errors by which more groups must be ahead of fewer.
SIGNIFICANT = 2.0


@dataclass(frozen=True, eq=False)
class Plan:
    """What is done on every fold.

    Attributes
    ----------
    model : TaskCluster
        Knows loss, intercept and budget.
    counts : tuple of int
        Numbers of groups.
    grid : tuple of Prices
    score : callable
        From targets, scores and tasks to a number, larger is better; None for the loss.
    """

    model: TaskCluster
    counts: tuple[int, ...]
    grid: tuple[Prices, ...]
    score: Score | None


def cross_validate(
    splits: Sequence[Split], plan: Plan, n_jobs: int | None, verbose: int | bool
) -> Floats:
    """Scores of every number of groups and all strengths on every fold.

    Parameters
    ----------
    splits : sequence of Split
    plan : Plan
    n_jobs : int or None
    verbose : int or bool
        Whether to write a line to standard error when a fold is done.

    Returns
    -------
    ndarray of shape (n_Q, n_strengths, n_folds)
    """
    scores = []
    tell = counter(verbose, "fold", len(splits))
    jobs = (delayed(_score_split)(split, plan) for split in splits)
    with threadpool_limits(1):
        for mine in Parallel(n_jobs=n_jobs, return_as="generator")(jobs):
            scores.append(mine)
            tell()
    return np.stack(scores, axis=-1)


def _score_split(split: Split, plan: Plan) -> Floats:
    """Scores on one fold."""
    present = split.rest.present()
    if not present.size or not split.held.present().size:
        raise ValueError("cv gives folds without answers to fit or to score on. Give other folds.")
    with threadpool_limits(1):
        coefs, intercepts = _fit_split(split.rest, present, plan)
        shape = coefs.shape[:2]
        coefs = coefs.reshape(-1, *coefs.shape[2:])
        intercepts = intercepts.reshape(coefs.shape[0], -1)
        loss = loss_of(plan.model)
        return score_fits(split.held, coefs, intercepts, loss, plan.score).reshape(shape)


def _fit_split(entries: Entries | Summed, present: Indices, plan: Plan) -> tuple[Floats, Floats]:
    """Weights and intercepts of all tasks for every point; those without rows get the mean."""
    prepared = plan.model._prepare(entries.only(present))
    shape = (len(plan.counts), len(plan.grid), entries.n_tasks)
    coefs = np.empty((*shape, prepared.frame.means.size))
    intercepts = np.empty(shape)
    objective: TaskObjective | None = None
    found: dict[int, TaskPoint] = {}
    place = np.full(entries.n_tasks, present.size)  # the mean comes after all tasks
    place[present] = np.arange(present.size)
    for s, prices in enumerate(plan.grid):
        strengths = prices.strengths(prepared.data.width, prepared.data.fit_intercept)
        changed = s > 0 and prices.within != plan.grid[s - 1].within
        objective = (
            TaskObjective(prepared.data, strengths)
            if objective is None
            else objective.with_strengths(strengths)
        )
        problem = _quick(plan.model._problem(objective, 1))
        for c, count in enumerate(plan.counts):
            mine = replace(problem, n_clusters=min(count, present.size))
            if count in found:
                before = found[count]
                starts = 1 + MORE_STARTS * changed
                mine = replace(mine, hints=(before.labels,), near=before.W, n_starts=starts)
            found[count] = point_of(attempt(mine, "am")[0].solution.point)
            rows = np.vstack([found[count].W, found[count].rows.mean(axis=0)])
            coef, intercept = prepared.columns(rows)
            coefs[c, s], intercepts[c, s] = coef[place], intercept[place]
    return coefs, intercepts


def _quick(problem: TaskProblem) -> TaskProblem:
    """The same for a fit that is only scored."""
    budget = replace(
        problem.budget,
        tol=max(problem.budget.tol, QUICK_TOL),
        monitor=lambda iteration: False,
        quiet=True,
    )
    return replace(
        problem,
        budget=budget,
        n_starts=FIRST_STARTS,
        n_jobs=None,
        options={},
        precision=QUICK_PRECISION,
    )


def select(
    counts: Sequence[int],
    grid: Sequence[Prices],
    scores: Floats,
    rule: str,
    scoring: str,
    ratio: float | None = None,
) -> TaskSelection:
    """The point that is chosen: the best, or the fewest groups that are not clearly worse.

    Parameters
    ----------
    counts : sequence of int
        Ascending.
    grid : sequence of Prices
    scores : ndarray of shape (n_Q, n_strengths, n_folds)
    rule : {"best", "fewest"}
    scoring : str
    ratio : float, default=None
        Held-out samples of a fold for each that is fitted.

    Returns
    -------
    TaskSelection
    """
    if np.isnan(scores).any():
        raise ValueError(
            f"scoring={scoring!r} gave NaN on a fold. Give another scoring, or folds on which it "
            "is defined."
        )
    points = scores.reshape(-1, scores.shape[-1])
    chosen = int(points.mean(axis=1).argmax())
    if rule == "fewest":
        chosen = fewest(points, np.repeat(counts, len(grid)), SIGNIFICANT, ratio)
    strengths = tuple((p.alpha, p.mean, p.between, p.within) for p in grid)
    index = divmod(chosen, len(grid))
    return TaskSelection(tuple(counts), strengths, scores, scoring, rule, index)
