"""Cross-validation of clustered tasks: folds, fits on a grid, and their scores.

On each fold the tasks are eliminated once for each ``alpha_within``; what is left for every number
of groups and every ``alpha_between`` is small. Groups found at one point are a start at the next.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

from clustruct.design import as_design
from clustruct.estimators.inputs import counter
from clustruct.estimators.task_base import Prices, TaskCluster
from clustruct.estimators.task_inputs import Entries, members_of
from clustruct.estimators.task_layouts import Reading
from clustruct.losses import Loss
from clustruct.objectives.tasks import TaskObjective, TaskPoint
from clustruct.results import TaskSelection
from clustruct.solvers.task_alternation import point_of
from clustruct.solvers.tasks import TaskProblem, attempt

__all__ = ["Folds", "cross_validate", "make_folds", "select"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Folds = list[tuple[Indices, Indices]]
Score = Callable[[Floats, Floats, Indices], float]

DEFAULT_FOLDS = 5
# Fits that are only scored: starts at the first point of the grid, starts besides the groups found
# before where ``alpha_within`` has changed, and what is precise enough.
FIRST_STARTS, MORE_STARTS = 3, 1
QUICK_TOL = 1e-4
# Standard errors by which more groups must be ahead of fewer.
SIGNIFICANT = 2.0
QUICK_PRECISION = (1e-5, 1e-5)


def make_folds(cv: Any, reading: Reading, random_state: Any) -> Folds:
    """Rows to fit and to score on; an integer asks for folds alike in tasks and classes.

    Parameters
    ----------
    cv : int, splitter or iterable
    reading : Reading
    random_state : int, RandomState or None
        Shuffles the rows; None is a seed of its own, as rows often come sorted.

    Returns
    -------
    list of tuple of ndarray
    """
    entries = reading.entries
    rows = np.unique(entries.rows)
    strata = _strata(reading, rows)
    cv = DEFAULT_FOLDS if cv is None else cv
    if not isinstance(cv, Integral):
        pairs = check_cv(cv).split(
            np.zeros((entries.X.shape[0], 1)), _spread(strata, rows, entries)
        )
        return [(np.asarray(rest), np.asarray(held)) for rest, held in pairs]
    if not 2 <= int(cv) <= rows.size:
        raise ValueError(
            f"cv={cv} folds cannot be made of n_samples={rows.size} (of positive weight). "
            "Give cv an integer from 2 to the number of samples, or more samples."
        )
    shuffled = check_random_state(0 if random_state is None else random_state).permutation(
        rows.size
    )
    order = shuffled[np.argsort(strata[shuffled], kind="stable")]
    fold = np.empty(rows.size, dtype=np.intp)
    fold[order] = np.arange(rows.size) % int(cv)
    return [(rows[fold != f], rows[fold == f]) for f in range(int(cv))]


def _strata(reading: Reading, rows: Indices) -> Indices:
    """A number for each row: rows of the same task and class have the same."""
    entries = reading.entries
    if reading.layout == "columns":
        return np.zeros(rows.size, dtype=np.intp)
    if reading.layout == "classes":
        positive = entries.y > 0.0
        own = np.zeros(entries.X.shape[0], dtype=np.intp)
        own[entries.rows[positive]] = entries.tasks[positive]
        return own[rows]
    signs = set(np.unique(entries.y).tolist()) <= {-1.0, 1.0}
    classes = (entries.y > 0.0).astype(np.intp) if signs else np.zeros_like(entries.tasks)
    return (2 * entries.tasks + classes)[np.argsort(entries.rows, kind="stable")]


def _spread(strata: Indices, rows: Indices, entries: Entries) -> Indices:
    """Strata of all rows, those without answer included."""
    spread = np.zeros(entries.X.shape[0], dtype=np.intp)
    spread[rows] = strata
    return spread


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
        From answers, scores and tasks to a number, larger is better; None for the loss.
    """

    model: TaskCluster
    counts: tuple[int, ...]
    grid: tuple[Prices, ...]
    score: Score | None


def cross_validate(
    entries: Entries, folds: Folds, plan: Plan, n_jobs: int | None, verbose: int | bool
) -> Floats:
    """Scores of every number of groups and all strengths on every fold.

    Parameters
    ----------
    entries : Entries
    folds : list of tuple of ndarray
    plan : Plan
    n_jobs : int or None
    verbose : int or bool
        Whether to write a line to standard error when a fold is done.

    Returns
    -------
    ndarray of shape (n_Q, n_strengths, n_folds)
    """
    scores = []
    tell = counter(verbose, "fold", len(folds))
    jobs = (delayed(_score_fold)(entries, fold, plan) for fold in folds)
    with threadpool_limits(1):
        for mine in Parallel(n_jobs=n_jobs, return_as="generator")(jobs):
            scores.append(mine)
            tell()
    return np.stack(scores, axis=-1)


def _score_fold(entries: Entries, fold: tuple[Indices, Indices], plan: Plan) -> Floats:
    """Scores on one fold."""
    rest, held = (entries.take(np.flatnonzero(np.isin(entries.rows, rows))) for rows in fold)
    if not rest.rows.size or not held.rows.size:
        raise ValueError("cv gives folds without answers to fit or to score on. Give other folds.")
    with threadpool_limits(1):
        coefs, intercepts = _fit_fold(rest, plan)
        return _scores(held, coefs, intercepts, plan)


def _fit_fold(entries: Entries, plan: Plan) -> tuple[Floats, Floats]:
    """Weights and intercepts of all tasks for every point; those without rows get the mean."""
    present, codes = np.unique(entries.tasks, return_inverse=True)
    known = replace(entries, tasks=codes.reshape(-1).astype(np.intp), n_tasks=present.size)
    prepared = plan.model._prepare(known)
    shape = (len(plan.counts), len(plan.grid), entries.n_tasks)
    coefs = np.empty((*shape, entries.X.shape[1]))
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
            found[count] = point_of(attempt(mine, "am")[0].answer.point)
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


def _scores(held: Entries, coefs: Floats, intercepts: Floats, plan: Plan) -> Floats:
    """Scores of all fits on held-out answers."""
    shape = coefs.shape[:2]
    coefs = coefs.reshape(-1, *coefs.shape[2:])
    intercepts = intercepts.reshape(coefs.shape[0], -1)
    design = as_design(held.X)
    predicted = np.empty((held.rows.size, coefs.shape[0]))
    for t, members in enumerate(members_of(held.tasks, held.n_tasks)):
        if members.size:
            mine = design.rows(held.rows[members])
            predicted[members] = mine.scores(coefs[:, t].T) + intercepts[:, t]
    loss = plan.model._loss()
    found = [_score(plan.score, loss, held, column) for column in predicted.T]
    return np.array(found).reshape(shape)


def _score(score: Score | None, loss: Loss, held: Entries, predicted: Floats) -> float:
    if score is not None:
        return float(score(held.y, predicted, held.tasks))
    losses = loss.value(held.y[:, None], predicted[:, None])
    return -float(np.average(losses, weights=held.weights))


def select(
    counts: Sequence[int], grid: Sequence[Prices], scores: Floats, rule: str, scoring: str
) -> TaskSelection:
    """The point that is chosen: the best, or the fewest groups that are about as good.

    Each number of groups is judged at its best strengths. The best number is held against smaller
    ones by the differences over the folds, whose standard error is corrected for what the samples
    of the folds have in common (Nadeau and Bengio, "Inference for the generalization error", 2003).

    Parameters
    ----------
    counts : sequence of int
        Ascending.
    grid : sequence of Prices
    scores : ndarray of shape (n_Q, n_strengths, n_folds)
    rule : {"best", "fewest"}
    scoring : str

    Returns
    -------
    TaskSelection
    """
    if np.isnan(scores).any():
        raise ValueError(
            f"scoring={scoring!r} gave NaN on a fold. Give another scoring, or folds on which it "
            "is defined."
        )
    means = scores.mean(axis=-1)
    own = means.argmax(axis=1)
    best = int(means.max(axis=1).argmax())
    chosen = best
    if rule == "fewest":
        ahead = scores[best, own[best]] - scores[np.arange(len(counts)), own]
        limits = SIGNIFICANT * corrected_errors(ahead)
        chosen = int(np.flatnonzero(ahead.mean(axis=1) <= limits)[0])
    strengths = tuple((p.alpha, p.mean, p.between, p.within) for p in grid)
    index = chosen, int(own[chosen])
    return TaskSelection(tuple(counts), strengths, scores, scoring, rule, index)


def corrected_errors(differences: Floats) -> Floats:
    """Standard errors of means over folds, which share most of the samples that they fit."""
    n_folds = differences.shape[1]
    if n_folds == 1:
        return np.zeros(differences.shape[0])
    shared = 1.0 / n_folds + 1.0 / (n_folds - 1)
    return differences.std(axis=1, ddof=1) * np.sqrt(shared)
