"""Searches of classes: all points are scored by a model, those that may be chosen by exact fits.

The weights without constraint are grouped, and a quadratic model of the loss there tells values of
the groups (`clustruct.objectives.features.class_models`). Points are scored with these values on
the held-out samples. Then values are fitted exactly, on all folds, at the points with the best
scores, until no other could be chosen: scores of the model are off by about as much as those of
the points that have been fitted, and a generous multiple of what they differ by is allowed for.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clustruct._typing import Floats, Labels
from clustruct.estimators.features.folds import MOST_WEIGHTS, FoldWork, LocalFold, Plan
from clustruct.estimators.features.grid import Objective, Place
from clustruct.estimators.search.engine import Scored, run_jobs
from clustruct.grouping.constraints import Free
from clustruct.grouping.rows import spread
from clustruct.objectives.features.class_models import ClassModel
from clustruct.objectives.features.objective import FeatureObjective
from clustruct.objectives.linear import Point
from clustruct.results.paired import standard_errors
from clustruct.solvers.driver import Solution


@dataclass(frozen=True)
class ScreeningSettings:
    """How many points are fitted exactly; chosen on planted classes of 100 to 6000 samples."""

    # Points of the first round and of those that follow, the best scores of the model first.
    first: int = 4
    more: int = 8
    # How far scores of the model may be off, in units of the largest deviation from their mean
    # error that was seen.
    doubt: float = 2.0
    # Differences of scores up to this part of their standard error decide nothing.
    negligible: float = 0.01
    # Precision of the values of groups that are fitted exactly: scores have four digits or more.
    precision: float = 1e-4
    # Precision of the weights that are grouped.
    rough: float = 1e-2
    # Starts of k-means for several classes, and for so many features that each takes long.
    n_starts: int = 4
    many: int = 1000


SETTINGS = ScreeningSettings()
# Scores need none.
NO_LABELS: Labels = np.empty(0, dtype=np.intp)


class Groups(NamedTuple):
    """Groups at a point of the grid, with the values of the model: where an exact fit begins."""

    alpha: float
    labels: (
        NDArray[np.signedinteger[Any]] | None
    )  # none without constraint, with all weights as values
    values: Floats
    intercept: Floats


@dataclass(eq=False)
class Screened:
    """What the model has found on a fold; the objective stays in the process."""

    number: int
    scores: Floats
    groups: dict[Place, Groups]
    objective: Objective | None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "objective": None}


def can_screen(works: Sequence[FoldWork], plan: Plan, objective: Objective) -> bool:
    """Whether the model serves: losses of classes, rows in memory, "auto" solvers, a ridge."""
    return (
        plan.solver == "auto"
        and plan.method.solver in ("auto", "soft")
        and isinstance(objective, FeatureObjective)
        and objective.response.contrasts is not None
        and plan.model.factors_ is None
        and all(isinstance(work, LocalFold) for work in works)
        and plan.refits
        and bool((plan.grid.alphas > 0.0).all())
        # Weights of all points with one alpha are scored together.
        and 8 * prod(objective.shape) * prod(plan.shape) <= plan.grid.alphas.size * MOST_WEIGHTS
    )


def screened_scores(
    works: Sequence[FoldWork],
    plan: Plan,
    n_jobs: int | None,
    choose: Callable[[Floats], Place],
    exact: NDArray[np.bool_],
) -> Iterator[Scored]:
    """Score all points by the model, then fit those that may be chosen, which `exact` marks.

    choose: the rule of the search, from scores to the point that is chosen.
    """
    found: list[Any] = [None] * len(works)
    for mine in run_jobs([partial(screen, work, plan) for work in works], n_jobs):
        found[mine.number] = mine
        yield Scored(None, None, 0)
    scores = np.stack([mine.scores for mine in found], axis=-1)
    modelled, exact[...] = _at_best(scores), False
    n_more = SETTINGS.first
    while True:
        places = _decisive(scores, modelled, exact, choose)[:n_more]
        if not places:
            break
        jobs = [
            partial(fit_exactly, work, plan, mine, places)
            for work, mine in zip(works, found, strict=True)
        ]
        for number, fitted in run_jobs(jobs, n_jobs):
            for place, these in zip(places, fitted, strict=True):
                scores[(*place, slice(None), number)] = these
        for place in places:
            exact[place] = True
            yield Scored(place, scores[place], 0, n_done=0)
        n_more = SETTINGS.more
    for mine in found:
        yield Scored((..., mine.number), scores[..., mine.number], 0, n_done=0)


def _at_best(scores: Floats) -> Floats:
    """Mean scores of the points with the fraction of the ridge that is best for each."""
    best: Floats = scores.mean(axis=-1).max(axis=-1)
    return best


def _decisive(
    scores: Floats,
    modelled: Floats,
    exact: NDArray[np.bool_],
    choose: Callable[[Floats], Place],
) -> list[Place]:
    """Points without an exact fit that may be chosen, the best scores first."""
    means, doubt, enough = _at_best(scores), np.zeros(exact.shape), -np.inf
    if exact.any():
        errors = (means - modelled)[exact]
        away = float(np.abs(errors - errors.mean()).max())
        doubt[~exact] = float(errors.mean()) + SETTINGS.doubt * away
        best = np.unravel_index(np.where(exact, means, -np.inf).argmax(), means.shape)
        folds = scores[best][scores[best].mean(axis=-1).argmax()]
        enough = float(means[best] + SETTINGS.negligible * standard_errors(folds))
    hoped = means + doubt
    # The point that a rule takes may be behind the best one.
    chosen = choose(scores + doubt[..., None, None])
    places = [chosen, *_beside_ends(hoped, chosen)]
    for index in np.argsort(-hoped, axis=None, kind="stable"):
        q, a, k = np.unravel_index(index, hoped.shape)
        if hoped[q, a, k] > enough:
            places.append((int(q), int(a), int(k)))
    return [place for place in dict.fromkeys(places) if not exact[place]]


def _beside_ends(hoped: Floats, chosen: Place) -> Iterator[Place]:
    """Where a choice is at an end of the grid, the best points beside it, to tell by how much."""
    for axis, (at, size) in enumerate(zip(chosen, hoped.shape, strict=True)):
        if size > 2 and at in (0, size - 1):
            inner = np.full(hoped.shape, -np.inf)
            beside = tuple(slice(None) if k != axis else abs(at - 1) for k in range(3))
            inner[beside] = hoped[beside]
            q, a, k = np.unravel_index(inner.argmax(), inner.shape)
            yield int(q), int(a), int(k)


# ---- On a fold.


def screen(work: Any, plan: Plan) -> Screened:
    """Score all points of a fold by the model."""
    objective = work.objective(plan)
    score, _ = work.scorer(plan)
    grid = plan.grid
    constraints = grid.constraints(objective.shape[0], plan.model._blocks(), objective.cluster)
    scores, groups = np.empty(plan.shape), {}
    minimum: Point | None = None
    for a in np.argsort(-grid.alphas, kind="stable"):
        there = objective.with_alpha(float(grid.alphas[a]))
        minimum = there.rough_minimum(SETTINGS.rough, near=minimum)
        model = there.class_model(minimum)
        places = [(q, int(a), k) for q, k in constraints]
        solutions: list[Solution] = []
        for place, constraint in zip(places, constraints.values(), strict=True):
            quick: Any = getattr(constraint, "quickly", lambda _, same=constraint: same)
            constraint = quick(1 if objective.shape[0] > SETTINGS.many else SETTINGS.n_starts)
            groups[place], found = _modelled(model, constraint, there.alpha, minimum, plan.relax)
            solutions += found
        each = np.array(score(solutions)).reshape(len(places), -1)
        for place, mine in zip(places, each, strict=True):
            scores[place] = mine
    return Screened(work.fold.number, scores, groups, objective)


def _modelled(
    model: ClassModel, constraint: Any, alpha: float, minimum: Point, factors: Sequence[float]
) -> tuple[Groups, list[Solution]]:
    """Groups of the weights without constraint, and solutions for each fraction of the ridge."""
    if isinstance(constraint, Free):
        groups = Groups(alpha, None, minimum.W, minimum.intercept)
        return groups, [Solution(minimum, NO_LABELS)] * len(factors)
    labels = constraint.project(minimum.W).labels
    found = model.values(labels, int(labels.max(initial=-1)) + 1, factors)
    solutions = [
        Solution(Point(spread(V, labels), np.nan, intercept, np.empty(0)), labels)
        for V, intercept in found
    ]
    # Kept for all points: as small as may be.
    small = labels.astype(np.int16) if labels.max(initial=-1) < 1 << 15 else labels
    return Groups(alpha, small, *found[0]), solutions


def fit_exactly(
    work: Any, plan: Plan, found: Screened, places: Iterable[Place]
) -> tuple[int, list[Floats]]:
    """Scores of exact fits at some points of a fold, and its number."""
    objective = work.objective(plan) if found.objective is None else found.objective
    score, _ = work.scorer(plan)
    scores = []
    for place in places:
        alpha, labels, values, intercept = found.groups[place]
        there, precision = objective.with_alpha(alpha), SETTINGS.precision
        if labels is None:
            near = Point(values, np.nan, intercept, np.empty(0))
            points = [there.minimum(precision, near=near)] * len(plan.relax)
        else:
            points = there.refits(labels, values.shape[0], precision, plan.relax, values, intercept)
        scores.append(np.array(score([Solution(point, NO_LABELS) for point in points])))
    return found.number, scores
