"""Folds of samples that stay where they are: a fold counts how often it has each row.

Fits give no weight to rows that are held out, and those are scored for many solutions in one pass.
Where sums over rows are enough, that is left to `fold_sums`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from clustruct._typing import Floats, Indices
from clustruct.arrays import beside, to_host
from clustruct.design import Design, LocalDesign, Rows
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
from clustruct.estimators.features.fold_sums import (
    Counts,
    FoldSums,
    SummedFold,
    objective_of_sums,
    sums_of_folds,
)
from clustruct.estimators.features.grid import choose_objective, gram_pays
from clustruct.estimators.intake import weigh
from clustruct.estimators.search.scoring import is_of_predictions
from clustruct.objectives.features.objective import FeatureObjective
from clustruct.objectives.linear import Point, Response
from clustruct.objectives.quadratic import Moments, QuadraticObjective
from clustruct.solvers.driver import Solution

__all__ = ["PlacedFolds", "PlacedSamples"]


# Bytes of weights that are scored in one pass, and of scores that are at hand meanwhile.
MOST_WEIGHTS, MOST_SCORES = 1 << 27, 1 << 27


@dataclass(frozen=True, eq=False)
class RowFold:
    """How often each row is fitted on and scored on."""

    number: int
    train: Counts
    test: Counts


class PlacedSamples:
    """Samples that stay where they are; targets, which folds are made of, come to the host.

    Parameters
    ----------
    design : Design
    targets : rows
    sample_weight : array-like, collection or None
    """

    def __init__(self, design: Design, targets: Rows, sample_weight: Any) -> None:
        self._samples = weigh(design, targets, sample_weight)
        self.design = design
        self.n_rows = design.shape[0]
        self.y = design.gather(targets)
        self.kept = np.arange(self.n_rows)
        self.weights: Floats | None = None
        if sample_weight is not None:
            shares = design.gather(self._samples.shares)
            self.kept = np.flatnonzero(shares)
            self.y, self.weights = self.y[self.kept], self._samples.total * shares[self.kept]

    @property
    def weight(self) -> float:
        """Of all samples together."""
        return float(self.n_rows if self.weights is None else self.weights.sum())

    def fold(self, number: int, train: Indices, test: Indices) -> RowFold:
        """A fold, in a byte or two a row."""
        return RowFold(number, self._counts(train), self._counts(test))

    def _counts(self, index: Indices) -> Counts:
        """How often each row is in an index into those kept."""
        counts = np.bincount(self.kept[index], minlength=self.n_rows)
        return counts.astype(np.min_scalar_type(counts.max(initial=0)))

    def divide(self, folds: Sequence[RowFold], model: Any) -> "PlacedFolds":
        """The samples with their folds, for a model."""
        response = model._respond(self._samples)
        balanced = getattr(model, "class_weight", None) == "balanced"  # weights differ by fold
        smallest = min((int(np.count_nonzero(fold.train)) for fold in folds), default=0)
        if (
            not folds
            or balanced
            or not response.loss.quadratic
            or not gram_pays(smallest, self.design.shape[1])
        ):
            objective = choose_objective(self.design, response, 0.0)
            return PlacedFolds(self, folds, response.target, objective, None)
        train, test = ([getattr(fold, part) for fold in folds] for part in ("train", "test"))
        sums = sums_of_folds(self.design, response, train, test)
        return PlacedFolds(self, folds, response.target, objective_of_sums(sums.whole), sums)

    def weigh(self, counts: Counts) -> tuple[Rows, float]:
        """The shares of some rows, and their sum."""
        design = self.design
        weighed = design.map(lambda s, c: s * c, self._samples.shares, design.attach(counts))
        return weighed, float(design.fold(np.sum, weighed))

    def respond(self, model: Any, counts: Counts) -> Response:
        """Target, loss and weights of some rows."""
        weighed, total = self.weigh(counts)
        shares = self.design.map(lambda s: s / total, weighed)
        response: Response = model._respond(self._samples._replace(shares=shares))
        return response

    def held_out(self, counts: Counts) -> tuple[NDArray[Any], Floats | None]:
        """Targets of some rows on the host, and their weights."""
        mine = counts[self.kept]
        weights = None if self.weights is None else np.repeat(self.weights, mine)
        return np.repeat(self.y, mine, axis=0), weights


@dataclass(frozen=True, eq=False)
class PlacedFolds:
    """Samples that stay where they are, in folds; with sums where these are all that fits need."""

    samples: PlacedSamples
    folds: Sequence[RowFold]
    target: Rows
    objective: QuadraticObjective | FeatureObjective
    sums: FoldSums | None

    def works(self, plan: Plan) -> list[FoldWork]:
        """The folds."""
        _check_scoring(plan)
        self._check_classes(plan.classes)
        sums = self.sums
        if sums is not None and plan.classes is None and fast_measure(plan) is not None:
            # The mean squared error follows from sums, too.
            return [
                SummedFold(fold.number, sums.train[f], sums.test[f])
                for f, fold in enumerate(self.folds)
            ]
        return [
            PlacedFold(
                fold.number,
                self.samples,
                fold,
                self.target,
                self.objective.shape,
                None if sums is None else sums.train[f],
            )
            for f, fold in enumerate(self.folds)
        ]

    def _check_classes(self, classes: NDArray[Any] | None) -> None:
        for fold in self.folds if classes is not None else ():
            fitted = self.samples.y[fold.train[self.samples.kept] > 0]
            check_classes(classes, fitted, fold.number)


@dataclass(frozen=True, eq=False)
class PlacedFold:
    """A fold that is fitted and scored by passes over the samples.

    `shape` is that of the weights; `train` are sums over the rows to fit on, where these suffice.
    """

    travels: ClassVar[bool] = False

    number: int
    samples: PlacedSamples
    fold: RowFold
    target: Rows
    shape: tuple[int, int]
    train: Moments | None

    def objective(self, plan: Plan) -> QuadraticObjective | FeatureObjective:
        """The problem to solve on the fold, with some alpha."""
        response = self.samples.respond(plan.model, self.fold.train)
        if self.train is not None:
            return objective_of_sums(self.train)
        return choose_objective(self.samples.design, response, 0.0)

    def ledger(self, plan: Plan) -> Ledger:
        """What scores the solutions, many of them in a pass."""
        measure = fast_measure(plan)
        if measure is not None:
            most = MOST_WEIGHTS // (8 * self.shape[0] * self.shape[1])
            return Ledger(plan.shape, self._mean_of(measure), max(1, most))
        most = MOST_SCORES // (8 * int(self.fold.test.sum()) * self.shape[1])
        return Ledger(plan.shape, self._score_of_models(plan), max(1, most))

    def _mean_of(self, measure: Measure) -> Score:
        """The weighted mean of a measure over held-out rows."""
        design, n_outputs = self.samples.design, self.shape[1]
        weighed, total = self.samples.weigh(self.fold.test)
        rows = (self.target, design.place(weighed))

        def score(solutions: Sequence[Solution]) -> list[float]:
            W, intercepts = stacked(solutions)

            def measured(X: Design, y: Rows, w: Rows) -> Floats:
                if X.on_host:
                    mine = np.flatnonzero(w)
                    X, y, w = cast(LocalDesign, X).rows(mine), y[mine], w[mine]
                each = _scores_of_each(X, W, intercepts, n_outputs)
                return np.array([float(w @ measure(y, z)) for z in each])

            means: list[float] = (design.sweep(measured, *rows) / total).tolist()
            return means

        return score

    def _score_of_models(self, plan: Plan) -> Score:
        """By scorers of scikit-learn, which get scores for samples.

        To a model with a feature for each output, and weights one, they are.
        """
        design, n_outputs, counts = self.samples.design, self.shape[1], self.fold.test
        held_out = design.place(counts)
        y, weights = self.samples.held_out(counts)
        score_model = solution_scorer(plan, weights)
        as_it_is = Solution(
            Point(np.eye(n_outputs), 0.0, np.zeros(n_outputs), np.empty(0)), np.arange(n_outputs)
        )

        def score(solutions: Sequence[Solution]) -> list[float]:
            W, intercepts = stacked(solutions)

            def gathered(X: Design, c: Rows) -> Floats:
                mine = to_host(c) > 0
                if X.on_host:
                    X, mine = cast(LocalDesign, X).rows(np.flatnonzero(mine)), mine[mine]
                each = _scores_of_each(X, W, intercepts, n_outputs)
                return np.concatenate([to_host(z)[mine] for z in each], axis=1)

            scores = design.sweep(gathered, held_out, combine=_above)
            scores = np.repeat(scores, counts[counts > 0], axis=0)
            return [score_model(as_it_is, z, y) for z in np.split(scores, len(solutions), axis=1)]

        return score


def _scores_of_each(X: Design, W: Floats, intercepts: Floats, n_outputs: int) -> Iterator[Rows]:
    """Scores of several solutions, one after the other, made some at a time."""
    step = n_outputs * max(1, MOST_SCORES // (8 * n_outputs * max(1, X.shape[0])))
    for first in range(0, W.shape[1], step):
        some = slice(first, first + step)
        scores = X.scores(W[:, some])
        scores = scores + beside(intercepts[some], scores)
        for column in range(0, scores.shape[1], n_outputs):
            yield scores[:, column : column + n_outputs]


def _above(a: Floats, b: Floats) -> Floats:
    """Rows, and those that follow them."""
    return np.concatenate([a, b])


def _check_scoring(plan: Plan) -> None:
    """Refuse functions that want to see the samples."""
    if fast_measure(plan) is None and not is_of_predictions(plan.scoring):
        raise ValueError(
            f"scoring={plan.scoring!r:.80} is a function of model, samples and targets, but these "
            "samples are not in memory. Give the name of a score, or what "
            "sklearn.metrics.make_scorer makes of a function of targets and predictions."
        )
