"""What is done on every fold of a search for groups of features, and scores of the solutions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from clustruct._typing import Floats
from clustruct.estimators.features.grid import Grid, Method, Place
from clustruct.estimators.search.scoring import Scoring, model_scorer
from clustruct.losses import Measure, loss_of
from clustruct.solvers.driver import Solution

__all__ = [
    "FoldWork",
    "Ledger",
    "Measure",
    "Plan",
    "Score",
    "check_classes",
    "fast_measure",
    "solution_scorer",
    "stacked",
]

Score = Callable[[Sequence[Solution]], Sequence[float]]


@dataclass(frozen=True, eq=False)
class Plan:
    """What is done on every fold.

    Attributes
    ----------
    model : FeatureClusterRegressor or FeatureClusterClassifier
        Unfitted; it knows losses and classes.
    classes : ndarray or None
        All classes, for a classifier.
    grid : Grid
    method : Method
    solver : str
        Solver asked for in the search, or "auto".
    relax : tuple of float
    scoring : str or callable
    """

    model: Any
    classes: NDArray[Any] | None
    grid: Grid
    method: Method
    solver: str
    relax: tuple[float, ...]
    scoring: Scoring

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Shape of the scores on a fold."""
        return (*self.grid.shape, len(self.relax))


class FoldWork(Protocol):
    """A fold, wherever its samples live; `travels` says whether another process may do it."""

    travels: ClassVar[bool]

    @property
    def number(self) -> int: ...  # noqa: D102

    def objective(self, plan: Plan) -> Any:
        """The problem to solve on the fold, with some alpha."""

    def ledger(self, plan: Plan) -> "Ledger":
        """What scores the solutions."""


def check_classes(classes: NDArray[Any] | None, found: NDArray[Any], number: int) -> None:
    """Refuse a fold that lacks a class to fit on."""
    missing = np.setdiff1d([] if classes is None else classes, found)
    if missing.size:
        raise ValueError(
            f"Fold {number} of cv has no sample of class {missing.tolist()[0]!r} to fit on. "
            "Give a smaller cv, stratified folds, or more samples of that class."
        )


class Ledger:
    """Scores of a grid, entered a batch of solutions at a time.

    Parameters
    ----------
    shape : tuple of int
        Of the grid, and the number of solutions at each place of it.
    score : callable
        From solutions to scores.
    batch : int, default=1
        How many solutions at least are scored together, where that takes a pass over ``X``.
    """

    def __init__(self, shape: tuple[int, ...], score: Score, batch: int = 1) -> None:
        self._scores = np.empty(shape)
        self._score = score
        self._batch = batch
        self._waiting: list[tuple[Place, Sequence[Solution]]] = []

    def enter(self, place: Place, solutions: Sequence[Solution]) -> None:
        """Take down the solutions of a place."""
        self._waiting.append((place, [_without_slope(solution) for solution in solutions]))
        if sum(len(mine) for _, mine in self._waiting) >= self._batch:
            self._settle()

    def scores(self) -> Floats:
        """Scores of all places."""
        if self._waiting:
            self._settle()
        return self._scores

    def _settle(self) -> None:
        found = iter(self._score([solution for _, mine in self._waiting for solution in mine]))
        for place, mine in self._waiting:
            self._scores[place] = [next(found) for _ in mine]
        self._waiting = []


def _without_slope(solution: Solution) -> Solution:
    """A solution without its slope, which is as long as ``X`` and would stay in memory."""
    return replace(solution, point=replace(solution.point, slope=np.empty(0)))


def stacked(solutions: Sequence[Solution]) -> tuple[Floats, Floats]:
    """Weights and intercepts of several solutions, side by side."""
    points = [solution.point for solution in solutions]
    return (
        np.concatenate([point.W for point in points], axis=1),
        np.concatenate([point.intercept for point in points]),
    )


# ---- Scores that need no model.


def fast_measure(plan: Plan) -> Measure | None:
    """What a score of that name is the mean of, or None if it takes a model to tell."""
    loss, scoring = loss_of(plan.model), str(plan.scoring)
    if plan.classes is None:
        return loss.measure(scoring)
    return loss.with_classes(plan.classes.size).class_measure(scoring)


def solution_scorer(plan: Plan, weights: Floats | None) -> Callable[[Solution, Any, Any], float]:
    """A function from a solution, samples and targets to its score as that of a fitted model."""
    scorer, model = model_scorer(plan.scoring, weights), plan.model

    def score(solution: Solution, X: Any, y: Any) -> float:
        model.n_features_in_ = X.shape[1]
        model._set_solution(solution)
        return scorer(model, X, y)

    return score
