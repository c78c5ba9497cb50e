"""Searches of classes: all points are scored by a model, those that may be chosen by exact fits.

At the weights ``W`` without constraint the second derivative of the mean loss has the model
``A (x) B`` of `clustruct.objectives.many_rows`. With ``G`` the gradient of the loss there, groups
``Z`` of the weights have under it the values

    Z'B Z V A + t alpha Z'Z V = Z'(B W A - G)

for every fraction ``t`` of the ridge: no pass over the rows. Points are scored with these values
on the held-out samples. Then values are fitted exactly, on all folds, at the points with the best
scores, until no other could be chosen: scores of the model are off by about as much as those of
the points that have been fitted, and a generous multiple of what they differ by is allowed for.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clustruct._typing import Floats, Labels
from clustruct.estimators.features.folds import FoldWork, LocalFold, Plan
from clustruct.estimators.features.grid import Objective, Place
from clustruct.estimators.search.engine import Scored, run_jobs
from clustruct.grouping.constraints import Free
from clustruct.grouping.rows import spread
from clustruct.objectives.features.objective import FeatureObjective
from clustruct.objectives.linear import Point
from clustruct.results.paired import standard_errors
from clustruct.solvers.driver import Solution
from clustruct.solvers.features import ROUGH


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
    # Starts of k-means for several classes.
    n_starts: int = 4


SETTINGS = ScreeningSettings()


class Groups(NamedTuple):
    """Groups at a point of the grid, with the values of the model: where an exact fit begins."""

    alpha: float
    labels: Labels | None  # none without constraint, with all weights as values
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
    """Whether the model serves: losses of classes, few features, rows in memory, "auto"."""
    return (
        plan.solver == "auto"
        and plan.method.solver in ("auto", "soft")
        and isinstance(objective, FeatureObjective)
        and objective.models_classes
        and all(isinstance(work, LocalFold) for work in works)
        and plan.refits
        and bool((plan.grid.alphas > 0.0).all())
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
    scores = np.stack([mine.scores for mine in found], axis=-1)
    modelled, exact[...] = _at_best(scores), False
    n_more = SETTINGS.first
    while True:
        places = _decisive(scores, modelled, exact, choose)[:n_more]
        if not places:
            break
        jobs = [
            partial(fit, work, plan, mine, places) for work, mine in zip(works, found, strict=True)
        ]
        for number, fitted in run_jobs(jobs, n_jobs):
            for place, these in zip(places, fitted, strict=True):
                scores[(*place, slice(None), number)] = these
        for place in places:
            exact[place] = True
        n_more = SETTINGS.more
    for mine in found:
        yield Scored((..., mine.number), scores[..., mine.number], 0)


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
    constraints = {
        at: constraint.quickly(SETTINGS.n_starts) if hasattr(constraint, "quickly") else constraint
        for at, constraint in grid.constraints(
            objective.shape[0], plan.model._blocks(), objective.cluster
        ).items()
    }
    scores, groups = np.empty(plan.shape), {}
    minimum: Point | None = None
    for a in np.argsort(-grid.alphas, kind="stable"):
        alpha = float(grid.alphas[a])
        minimum = objective.with_alpha(alpha).rough_minimum(ROUGH, near=minimum)
        solutions: list[Solution] = []
        places = []
        model = _Model(objective, minimum, alpha)
        for (q, k), constraint in constraints.items():
            place = (q, int(a), k)
            mine, found = model.at(constraint, plan.relax)
            groups[place] = mine
            places.append(place)
            solutions += found
        each = np.array(score(solutions)).reshape(len(places), -1)
        for place, mine_scores in zip(places, each, strict=True):
            scores[place] = mine_scores
    return Screened(work.fold.number, scores, groups, objective)


class _Model:
    """The quadratic model of the loss at the weights without constraint."""

    def __init__(self, objective: Any, minimum: Point, alpha: float) -> None:
        self._minimum, self._alpha = minimum, alpha
        self._curvature = objective.class_curvature(minimum)
        # The gradient of the loss is minus that of the ridge.
        bent = self._curvature.gram @ minimum.W @ self._curvature.classes
        self._right = bent + alpha * minimum.W

    def at(self, constraint: Any, factors: Sequence[float]) -> tuple[Groups, list[Solution]]:
        """Groups of the weights, and their values for each fraction of the ridge."""
        minimum, alpha = self._minimum, self._alpha
        if isinstance(constraint, Free):
            groups = Groups(alpha, None, minimum.W, minimum.intercept)
            return groups, [Solution(minimum, np.empty(0, dtype=np.intp))] * len(factors)
        labels = constraint.project(minimum.W).labels
        n_groups = int(labels.max(initial=-1)) + 1
        Z = spread(np.eye(n_groups), labels)
        systems = self._curvature.grouped(Z).scaled(alpha * Z.sum(axis=0))
        values = systems.solve(Z.T @ self._right, factors)
        moved = [self._curvature.means @ (Z @ V - minimum.W) for V in values]
        solutions = [
            Solution(Point(Z @ V, np.nan, minimum.intercept - move, minimum.slope[:0]), labels)
            for V, move in zip(values, moved, strict=True)
        ]
        return Groups(alpha, labels, values[0], solutions[0].point.intercept), solutions


def fit(
    work: Any, plan: Plan, found: Screened, places: Iterable[Place]
) -> tuple[int, list[Floats]]:
    """Scores of exact fits at some points of a fold, and its number."""
    objective = found.objective
    if objective is None:
        objective = work.objective(plan)
    score, _ = work.scorer(plan)
    scores = []
    for place in places:
        alpha, labels, values, intercept = found.groups[place]
        there = objective.with_alpha(alpha)
        if labels is None:
            near = Point(values, np.nan, intercept, np.empty(0))
            points = [there.minimum(SETTINGS.precision, near=near)] * len(plan.relax)
        else:
            points = there.refits(
                labels, values.shape[0], SETTINGS.precision, plan.relax, values, intercept
            )
        empty = np.empty(0, dtype=np.intp)
        scores.append(np.array(score([Solution(point, empty) for point in points])))
    return found.number, scores
