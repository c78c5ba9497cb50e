"""Folds of a search for groups of features: their fits and the scores of these.

A fold of samples in memory copies its rows. Samples elsewhere stay where they are: a fold counts
how often it has each row, fits give no weight to rows that are held out, and those are scored for
many solutions in one pass. Where sums over rows are enough, one pass makes those of all folds.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from clustruct._typing import Counts, Floats, Indices
from clustruct.arrays import beside, to_host
from clustruct.design import Design, LocalDesign, Rows
from clustruct.estimators.features.grid import Grid, Method, Objective, choose_objective
from clustruct.estimators.intake import check_weights, weigh
from clustruct.estimators.search.folds import check_classes_of_fold
from clustruct.estimators.search.scoring import Scoring, is_of_predictions, model_scorer
from clustruct.losses import Loss, Measure
from clustruct.objectives.linear import Point, Response
from clustruct.objectives.quadratic import (
    Moments,
    QuadraticObjective,
    gram_pays,
    moments_of_parts,
    objective_of,
    remaining_objective,
    sums_tell,
)
from clustruct.solvers.driver import Solution

# Bytes of weights that are scored in one pass, and of scores that are at hand meanwhile.
MOST_WEIGHTS, MOST_SCORES = 1 << 27, 1 << 27
# Bytes of scores in memory at a time, for many solutions of few samples: they stay in the cache.
NEAR_SCORES = 1 << 18
# Bytes of Gram matrices that one pass adds up for each piece of X.
MOST_SUMS = 1 << 28

Score = Callable[[Sequence[Solution]], Sequence[float]]
# Design, targets, weights and offset of samples in memory.
LocalRows = tuple[LocalDesign, NDArray[Any], Floats | None, Floats | None]


class Fold(NamedTuple):
    """Rows to fit on and to score on: indices in memory, counts of all rows elsewhere."""

    number: int
    train: NDArray[Any]
    test: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Plan:
    """What is done on every fold.

    `model` is not fitted, but knows its outputs or classes; `loss` is for the targets of all
    samples; `solver` is that of the search; `refits` says whether groups may get other values.
    """

    model: Any
    classes: NDArray[Any] | None
    loss: Loss
    grid: Grid
    method: Method
    solver: str
    relax: tuple[float, ...]
    scoring: Scoring
    refits: bool

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Shape of the scores on a fold."""
        return (*self.grid.shape, len(self.relax))

    @property
    def measure(self) -> Measure | None:
        """What the score is the mean of, or None if it takes a model to tell."""
        scoring = str(self.scoring)
        if self.classes is None:
            return self.loss.measure(scoring)
        return self.loss.class_measure(scoring)

    def scorer(
        self, weights: Floats | None, offset: Floats | None
    ) -> Callable[[Solution, Any, Any], float]:
        """A function from a solution, samples and targets to the score of the fitted model."""
        scorer, model = model_scorer(self.scoring, weights, offset), self.model

        def score(solution: Solution, X: Any, y: Any) -> float:
            model.n_features_in_ = X.shape[1]
            model._set_solution(solution)
            return scorer(model, X, y)

        return score


def _stacked(solutions: Sequence[Solution]) -> tuple[Floats, Floats]:
    """Weights and intercepts of several solutions, side by side."""
    points = [solution.point for solution in solutions]
    return (
        np.concatenate([point.W for point in points], axis=1),
        np.concatenate([point.intercept for point in points]),
    )


def _sums_suffice(model: Any, response: Response, n_fitted: int, n_features: int) -> bool:
    """Whether the fits of all folds need no more than sums over rows, with the same weights."""
    balanced = getattr(model, "class_weight", None) == "balanced"  # weights differ by fold
    if balanced or model.factors_ is not None:  # sweeps over factors need the rows
        return False
    return response.loss.quadratic and gram_pays(n_fitted, n_features)


# ---- In memory


class LocalSamples:
    """Samples in memory, of which those of positive weight are kept."""

    def __init__(
        self, design: Any, targets: NDArray[Any], sample_weight: Any, offset: Floats | None
    ) -> None:
        self.n_rows = int(design.shape[0])
        self.kept = np.arange(self.n_rows)
        self.design: LocalDesign = design.by_rows()
        self.y, self.weights, self.weight = targets, None, float(self.n_rows)
        self.offset = offset
        if sample_weight is not None:
            self.weights = check_weights(design, sample_weight)[0]
            self.kept, self.weight = np.flatnonzero(self.weights), float(self.weights.sum())
            if self.kept.size < self.n_rows:
                self.design, self.y, self.weights, self.offset = self.rows(self.kept)

    def rows(self, index: Indices) -> LocalRows:
        """Design, targets, weights and offset of some samples."""
        weights = None if self.weights is None else self.weights[index]
        offset = None if self.offset is None else self.offset[index]
        return self.design.rows(index), self.y[index], weights, offset

    fold = staticmethod(Fold)

    def divide(self, folds: Sequence[Fold], model: Any) -> Objective:
        """The objective of all samples, for a model."""
        self.all = weigh(self.design, self.y, self.weights, self.offset)
        self.response = model._respond(self.all)
        return choose_objective(self.design, self.response, 0.0)

    def works(self, folds: Sequence[Fold], plan: Plan) -> "list[FoldWork]":
        """The folds; their sums follow from those of all samples where they hold all of them."""
        design, response, everyone = self.design, self.response, np.arange(self.y.shape[0])
        whole = None
        n_fitted = min(fold.train.size for fold in folds)
        suffice = _sums_suffice(plan.model, response, n_fitted, design.shape[1])
        if (
            suffice
            and sums_tell(design, response.fit_intercept)
            and all(
                np.array_equal(np.sort(np.concatenate([fold.train, fold.test])), everyone)
                for fold in folds
            )
        ):
            x_means, y_means = np.zeros(design.shape[1]), np.zeros(response.n_outputs)
            if response.fit_intercept:
                x_means = design.moments(response.shares)[0]
                y_means = response.shares @ response.target
            whole = Moments.of(design, response.target, response.shares, x_means, y_means)
        return [LocalFold(fold, self, whole) for fold in folds]


@dataclass(frozen=True, eq=False)
class LocalFold:
    """A fold of samples in memory, with sums over all samples where its own follow from them."""

    travels: ClassVar[bool] = True

    fold: Fold
    samples: LocalSamples
    whole: Moments | None

    def objective(self, plan: Plan) -> Objective:
        """The problem to solve on the fold, with some alpha."""
        number, train, test = self.fold
        check_classes_of_fold(plan.classes, self.samples.y[train], number)
        if self.whole is not None:
            whole, response = self.whole, self.samples.response
            target, shares = response.target[test], response.shares[test]
            part = Moments.of(self._test[0], target, shares, whole.x_center, whole.y_center)
            no_ridge = np.zeros(whole.x_center.size)
            objective = remaining_objective(whole, part, response.fit_intercept, no_ridge)
            if objective is not None:
                return objective
        samples = weigh(*self.samples.rows(train))
        return choose_objective(samples.design, plan.model._respond(samples), 0.0)

    def scorer(self, plan: Plan) -> tuple[Score, int]:
        """All solutions at once by one product with the held-out samples, or one by one."""
        (design, y, weights, offset), measure = self._test, plan.measure
        if measure is None:
            score_model, X = plan.scorer(weights, offset), design.matrix()
            return lambda solutions: [score_model(solution, X, y) for solution in solutions], 1
        target = self.samples.response.target[self.fold.test]
        n_rows, n_outputs = design.shape[0], self.samples.response.n_outputs
        shares = np.full(n_rows, 1.0 / n_rows) if weights is None else weights / weights.sum()

        def score(solutions: Sequence[Solution]) -> list[float]:
            # Solutions side by side, then one row below the other, as if each had its own samples.
            W, intercepts = _stacked(solutions)
            means, step = np.zeros(len(solutions)), max(1, NEAR_SCORES // (8 * W.shape[1]))
            for first in range(0, n_rows, step):
                some = slice(first, first + step)
                scores = design.rows(np.arange(n_rows)[some]).scores(W) + intercepts
                each = measure(
                    np.repeat(target[some], len(solutions), axis=0), scores.reshape(-1, n_outputs)
                )
                means += shares[some] @ each.reshape(-1, len(solutions))
            return means.tolist()

        return score, max(1, NEAR_SCORES // (8 * n_rows * n_outputs))

    @cached_property
    def _test(self) -> LocalRows:
        return self.samples.rows(self.fold.test)


# ---- Elsewhere


class PlacedSamples:
    """Samples that stay where they are; targets, which folds are made of, come to the host."""

    def __init__(
        self, design: Design, targets: Rows, sample_weight: Any, offset: Rows | None
    ) -> None:
        self.all = weigh(design, targets, sample_weight, offset)
        self.design = design
        self.n_rows = design.shape[0]
        self.y = design.gather(targets)
        self.kept = np.arange(self.n_rows)
        self.weights: Floats | None = None
        self.weight = float(self.n_rows)
        if sample_weight is not None:
            shares = design.gather(self.all.shares)
            self.kept = np.flatnonzero(shares)
            self.y, self.weights = self.y[self.kept], self.all.total * shares[self.kept]
            self.weight = float(self.weights.sum())

    @cached_property
    def offset(self) -> Floats | None:
        """That of the samples of positive weight, on the host."""
        offset = self.all.offset
        return None if offset is None else self.design.gather(offset)[self.kept]

    def fold(self, number: int, train: Indices, test: Indices) -> Fold:
        """A fold, in a byte or two a row."""
        return Fold(number, self._counts(train), self._counts(test))

    def _counts(self, index: Indices) -> Counts:
        """How often each row is in an index into those kept."""
        counts = np.bincount(self.kept[index], minlength=self.n_rows)
        return counts.astype(np.min_scalar_type(counts.max(initial=0)))

    def divide(self, folds: Sequence[Fold], model: Any) -> Objective:
        """The objective of all samples, for a model; sums over folds are kept if they suffice."""
        self.sums: FoldSums | None = None
        self.response = model._respond(self.all)
        n_fitted = min((int(np.count_nonzero(fold.train)) for fold in folds), default=0)
        if folds and _sums_suffice(model, self.response, n_fitted, self.design.shape[1]):
            self.sums = FoldSums.of(self.design, self.response, folds)
            return _objective_of_sums(self.sums.whole)
        return choose_objective(self.design, self.response, 0.0)

    def works(self, folds: Sequence[Fold], plan: Plan) -> "list[FoldWork]":
        """The folds, where they are known to have all classes and a score that is possible."""
        if plan.measure is None and not is_of_predictions(plan.scoring):
            raise ValueError(
                f"scoring={plan.scoring!r:.80} is a function of model, samples and targets, but "
                "these samples are not in memory. Give the name of a score, or what "
                "sklearn.metrics.make_scorer makes of a function of targets and predictions."
            )
        for fold in folds:
            check_classes_of_fold(plan.classes, self.y[fold.train[self.kept] > 0], fold.number)
        if self.sums is None:
            return [PlacedFold(fold, self, None) for fold in folds]
        each = list(zip(folds, self.sums.train, self.sums.test, strict=True))
        if plan.classes is None and plan.measure is not None:
            # The mean squared error follows from sums, too.
            return [SummedFold(fold, train, test) for fold, train, test in each]
        return [PlacedFold(fold, self, train) for fold, train, _ in each]

    def objectives(self, model: Any, parts: Sequence[Counts]) -> Iterator[Objective]:
        """The objectives of parts of the samples, for a model, one after the other."""
        self.response = model._respond(self.all)
        n_fitted = min(int(np.count_nonzero(counts)) for counts in parts)
        if _sums_suffice(model, self.response, n_fitted, self.design.shape[1]):
            yield from map(_objective_of_sums, _moments(self.design, self.response, parts))
            return
        for counts in parts:
            yield choose_objective(self.design, self.respond(model, counts), 0.0)

    def weigh(self, counts: Counts) -> tuple[Rows, float]:
        """The shares of some rows, and their sum."""
        design = self.design
        weighed = design.map(lambda s, c: s * c, self.all.shares, design.attach(counts))
        return weighed, float(design.fold(np.sum, weighed))

    def respond(self, model: Any, counts: Counts) -> Response:
        """Target, loss and weights of some rows."""
        weighed, total = self.weigh(counts)
        shares = self.design.map(lambda s: s / total, weighed)
        response: Response = model._respond(self.all._replace(shares=shares))
        return response


@dataclass(frozen=True, eq=False)
class PlacedFold:
    """A fold that is scored by passes over the samples; `train` are sums if they suffice to fit."""

    travels: ClassVar[bool] = False

    fold: Fold
    samples: PlacedSamples
    train: Moments | None

    def objective(self, plan: Plan) -> Objective:
        """The problem to solve on the fold, with some alpha."""
        if self.train is not None:
            return _objective_of_sums(self.train)
        response = self.samples.respond(plan.model, self.fold.train)
        return choose_objective(self.samples.design, response, 0.0)

    def scorer(self, plan: Plan) -> tuple[Score, int]:
        """Many solutions in a pass."""
        measure, n_outputs = plan.measure, self.samples.response.n_outputs
        if measure is not None:
            most = MOST_WEIGHTS // (8 * self.samples.design.shape[1] * n_outputs)
            return self._mean_of(measure), max(1, most)
        most = MOST_SCORES // (8 * int(self.fold.test.sum()) * n_outputs)
        return self._score_of_models(plan), max(1, most)

    def _mean_of(self, measure: Measure) -> Score:
        """The weighted mean of a measure over held-out rows."""
        design, response = self.samples.design, self.samples.response
        weighed, total = self.samples.weigh(self.fold.test)
        rows = (response.target, design.place(weighed))

        def score(solutions: Sequence[Solution]) -> list[float]:
            W, intercepts = _stacked(solutions)

            def measured(X: Design, y: Rows, w: Rows) -> Floats:
                if X.on_host:
                    mine = np.flatnonzero(w)
                    X, y, w = cast(LocalDesign, X).rows(mine), y[mine], w[mine]
                each = _scores_of_each(X, W, intercepts, response.n_outputs)
                return np.array([float(w @ measure(y, z)) for z in each])

            means: list[float] = (design.sweep(measured, *rows) / total).tolist()
            return means

        return score

    def _score_of_models(self, plan: Plan) -> Score:
        """By scorers of scikit-learn, which get scores for samples.

        To a model with a feature for each output, and weights one, they are.
        """
        samples, counts = self.samples, self.fold.test
        design, n_outputs, mine = samples.design, samples.response.n_outputs, counts[samples.kept]
        held_out, y = design.place(counts), np.repeat(samples.y, mine, axis=0)
        weights, offset = (
            None if rows is None else np.repeat(rows, mine, axis=0)
            for rows in (samples.weights, samples.offset)
        )
        score_model = plan.scorer(weights, offset)
        as_it_is = Solution(
            Point(np.eye(n_outputs), 0.0, np.zeros(n_outputs), np.empty(0)), np.arange(n_outputs)
        )

        def score(solutions: Sequence[Solution]) -> list[float]:
            W, intercepts = _stacked(solutions)

            def gathered(X: Design, c: Rows) -> Floats:
                mine = to_host(c) > 0
                if X.on_host:
                    X, mine = cast(LocalDesign, X).rows(np.flatnonzero(mine)), mine[mine]
                each = _scores_of_each(X, W, intercepts, n_outputs)
                return np.concatenate([to_host(z)[mine] for z in each], axis=1)

            scores = design.sweep(
                gathered, held_out, combine=lambda above, below: np.concatenate([above, below])
            )
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


# ---- By sums over rows


@dataclass(frozen=True, eq=False)
class SummedFold:
    """A fold whose fits and mean squared errors follow from sums over its rows."""

    travels: ClassVar[bool] = True

    fold: Fold
    train: Moments
    test: Moments

    def objective(self, plan: Plan) -> QuadraticObjective:
        """The problem to solve on the fold, with some alpha."""
        return _objective_of_sums(self.train)

    def scorer(self, plan: Plan) -> tuple[Score, int]:
        """One solution after the other."""
        test = self.test

        def score(solution: Solution) -> float:
            errors = test.squared_errors(solution.point.W, solution.point.intercept)
            return -float(errors.mean()) / test.weight

        return lambda solutions: [score(solution) for solution in solutions], 1


# A fold, wherever its samples live; `travels` says whether another process may do it. It gives the
# objective with some alpha, and scores solutions, so many together at least.
FoldWork = LocalFold | PlacedFold | SummedFold


def _objective_of_sums(sums: Moments) -> QuadraticObjective:
    """The squared loss of some rows."""
    return objective_of(sums.averaged(), np.zeros(sums.x_center.size))


class FoldSums(NamedTuple):
    """Sums over all rows, and over those that each fold fits and scores on."""

    whole: Moments
    train: list[Moments]
    test: list[Moments]

    @classmethod
    def of(cls, design: Design, response: Response, folds: Sequence[Fold]) -> "FoldSums":
        """One pass over ``X``; a few where there are many columns and folds."""
        test = [fold.test for fold in folds]
        if _is_partition(folds):
            # What is fitted on is in the other folds: sums are joined, and nothing is subtracted.
            found = list(_moments(design, response, test))
            others = [found[:f] + found[f + 1 :] for f in range(len(found))]
            joined = [reduce(Moments.joined, mine) for mine in others]
            return cls(reduce(Moments.joined, found), joined, found)
        all_rows = np.ones(design.shape[0], dtype=np.uint8)
        parts = [all_rows, *(fold.train for fold in folds), *test]
        whole, *found = _moments(design, response, parts)
        return cls(whole, found[: len(folds)], found[len(folds) :])


def _is_partition(folds: Sequence[Fold]) -> bool:
    """Whether all rows in use are scored on once, and fitted on in every other fold."""
    scored = np.zeros(folds[0].test.shape, dtype=np.intp)
    for fold in folds:
        scored += fold.test
    return bool(scored.max() == 1) and all(
        np.array_equal(fold.train + fold.test, scored) for fold in folds
    )


def _moments(design: Design, response: Response, parts: Sequence[Counts]) -> Iterator[Moments]:
    """Sums over the rows of each part, made some at a time."""
    together = max(1, MOST_SUMS // (8 * design.shape[1] ** 2))
    for first in range(0, len(parts), together):
        counts = np.stack(parts[first : first + together], axis=1)
        yield from moments_of_parts(
            design, response.target, response.shares, counts, centred=response.fit_intercept
        )
