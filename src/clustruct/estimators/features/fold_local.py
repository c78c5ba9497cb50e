"""Folds of samples in memory: each fold copies its rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from clustruct._typing import Floats, Indices
from clustruct.design import as_design
from clustruct.estimators.features.fold_scores import (
    FoldWork,
    Ledger,
    Measure,
    Plan,
    Score,
    check_classes,
    fast_measure,
    solution_scorer,
    stacked,
)
from clustruct.estimators.features.grid import choose_objective, gram_pays
from clustruct.estimators.intake import check_weights, weigh
from clustruct.losses import loss_of
from clustruct.objectives.features.objective import FeatureObjective
from clustruct.objectives.linear import Response
from clustruct.objectives.quadratic import Moments, QuadraticObjective, remaining_objective
from clustruct.solvers.driver import Solution

__all__ = ["LocalFolds", "LocalSamples"]


@dataclass(frozen=True, eq=False)
class Data:
    """Validated samples of positive weight, with ``X`` dense or in CSR."""

    X: Any
    y: NDArray[Any]
    weights: Floats | None

    def rows(self, index: Indices) -> "Data":
        """Some of the samples."""
        weights = None if self.weights is None else self.weights[index]
        return Data(self.X[index], self.y[index], weights)

    @property
    def n(self) -> int:
        """Number of samples."""
        return int(self.X.shape[0])


@dataclass(frozen=True, eq=False)
class Fold:
    """Samples to fit on and samples to score on."""

    number: int
    train: Indices
    test: Indices


class LocalSamples:
    """Samples in memory, of which those of positive weight are kept.

    Parameters
    ----------
    design : LocalDesign
    targets : ndarray
    sample_weight : array-like or None
    """

    def __init__(self, design: Any, targets: NDArray[Any], sample_weight: Any) -> None:
        weights = None if sample_weight is None else check_weights(design, sample_weight)[0]
        self.n_rows = int(design.shape[0])
        self.kept = np.arange(self.n_rows) if weights is None else np.flatnonzero(weights)
        data = Data(design.by_rows().matrix(), targets, weights)
        self._data = data if self.kept.size == data.n else data.rows(self.kept)
        self.y = self._data.y
        self.weight = float(data.n if weights is None else weights.sum())

    @cached_property
    def design(self) -> Any:
        """All samples."""
        return as_design(self._data.X)

    def fold(self, number: int, train: Indices, test: Indices) -> Fold:
        """The fold with these samples to fit on and to score on."""
        return Fold(number, train, test)

    def divide(self, folds: Sequence[Fold], model: Any) -> "LocalFolds":
        """The samples with their folds, for a model."""
        response = model._respond(weigh(self.design, self.y, self._data.weights))
        return LocalFolds(self._data, folds, choose_objective(self.design, response, 0.0))


@dataclass(frozen=True, eq=False)
class LocalFolds:
    """Samples in memory in folds, and the objective of all of them."""

    data: Data
    folds: Sequence[Fold]
    objective: QuadraticObjective | FeatureObjective

    def works(self, plan: Plan) -> list[FoldWork]:
        """The folds."""
        whole = _whole(self.data, plan, self.folds)
        return [LocalFold(fold.number, self.data, fold, whole) for fold in self.folds]


@dataclass(frozen=True, eq=False)
class LocalFold:
    """A fold of samples in memory.

    `whole` are sums over all samples, where those of the fold follow from them by subtraction.
    """

    travels: ClassVar[bool] = True

    number: int
    data: Data
    fold: Fold
    whole: Moments | None

    def objective(self, plan: Plan) -> QuadraticObjective | FeatureObjective:
        """The problem to solve on the fold, with some alpha."""
        check_classes(plan.classes, self.data.y[self.fold.train], self.number)
        if self.whole is not None:
            objective = self._remaining(plan, self.whole)
            if objective is not None:
                return objective
        train = self.data.rows(self.fold.train)
        return choose_objective(as_design(train.X), _response(train, plan), 0.0)

    def _remaining(self, plan: Plan, whole: Moments) -> QuadraticObjective | None:
        """The same from sums over all samples, less those held out."""
        response = _response(self.data, plan)
        part = Moments.of(
            as_design(self._test.X),
            response.target[self.fold.test],
            response.shares[self.fold.test],
            whole.x_center,
            whole.y_center,
        )
        penalties = np.zeros(whole.x_center.size)
        return remaining_objective(whole, part, response.fit_intercept, penalties)

    def ledger(self, plan: Plan) -> Ledger:
        """What scores the solutions."""
        test, measure = self._test, fast_measure(plan)
        if measure is not None:
            return Ledger(plan.shape, _fast_score(measure, plan, test))
        score = solution_scorer(plan, test.weights)
        return Ledger(
            plan.shape,
            lambda solutions: [score(solution, test.X, test.y) for solution in solutions],
        )

    @cached_property
    def _test(self) -> Data:
        return self.data.rows(self.fold.test)


def _whole(data: Data, plan: Plan, folds: Sequence[Fold]) -> Moments | None:
    """Sums over all samples, where those of the folds follow from them by subtraction."""
    balanced = getattr(plan.model, "class_weight", None) == "balanced"  # weights differ by fold
    complete = all(
        np.array_equal(np.sort(np.concatenate([fold.train, fold.test])), np.arange(data.n))
        for fold in folds
    )
    smallest = min(fold.train.size for fold in folds)
    response = _response(data, plan)
    if (
        balanced
        or not complete
        or not response.loss.quadratic
        or not gram_pays(smallest, data.X.shape[1])
    ):
        return None
    design = as_design(data.X)
    x_means, y_means = np.zeros(design.shape[1]), np.zeros(response.n_outputs)
    if response.fit_intercept:
        x_means = design.moments(response.shares)[0]
        y_means = response.shares @ response.target
    return Moments.of(design, response.target, response.shares, x_means, y_means)


def _response(data: Data, plan: Plan) -> Response:
    """Target, loss and weights of these samples."""
    samples = weigh(as_design(data.X), data.y, data.weights)
    response: Response = plan.model._respond(samples)
    return response


def _fast_score(measure: Measure, plan: Plan, test: Data) -> Score:
    """All solutions by one product with the held-out samples."""
    design, target = as_design(test.X), _targets(plan, test.y)

    def score(solutions: Sequence[Solution]) -> list[float]:
        W, intercepts = stacked(solutions)
        scores = np.split(design.scores(W) + intercepts, len(solutions), axis=1)
        return [float(np.average(measure(target, z), weights=test.weights)) for z in scores]

    return score


def _targets(plan: Plan, y: NDArray[Any]) -> NDArray[Any]:
    """Targets of held-out samples as the loss takes them."""
    if plan.classes is None:
        return y.reshape(y.shape[0], -1)
    codes = np.searchsorted(plan.classes, y)
    loss = loss_of(plan.model).with_classes(plan.classes.size)
    return loss.class_targets(codes, plan.classes.size)
