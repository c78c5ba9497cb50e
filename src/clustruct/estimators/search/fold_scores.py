"""Scores of solutions on held-out samples."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.metrics import get_scorer

from clustruct._typing import Floats
from clustruct.estimators.features.plan import Plan
from clustruct.losses import Measure, loss_of
from clustruct.solvers.driver import Solution

__all__ = ["Ledger", "Measure", "Score", "fast_measure", "model_scorer", "stacked"]

Place = tuple[int, int, int]
Score = Callable[[Sequence[Solution]], Sequence[float]]


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
        """Those of all places."""
        if self._waiting:
            self._settle()
        return self._scores

    def _settle(self) -> None:
        found = iter(self._score([solution for _, mine in self._waiting for solution in mine]))
        for place, mine in self._waiting:
            self._scores[place] = [next(found) for _ in mine]
        self._waiting = []


def _without_slope(solution: Solution) -> Solution:
    """An solution without what is as long as ``X``, and would be kept from being freed."""
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


# ---- Scores of models.


def model_scorer(plan: Plan, weights: Floats | None) -> Callable[[Solution, Any, Any], float]:
    """From an solution, samples and what is true of them to the score of it as a fitted model.

    Parameters
    ----------
    plan : Plan
    weights : ndarray of shape (n,) or None
        Of the samples, for scorers that take them.

    Returns
    -------
    callable
    """
    scorer, model = get_scorer(plan.scoring), plan.model
    taken = inspect.signature(getattr(scorer, "_score_func", scorer)).parameters
    routed = {"sample_weight": weights} if "sample_weight" in taken else {}
    if weights is None:
        routed = {}

    def score(solution: Solution, X: Any, y: Any) -> float:
        model.n_features_in_ = X.shape[1]
        model._set_solution(solution)
        return float(scorer(model, X, y, **routed))

    return score
