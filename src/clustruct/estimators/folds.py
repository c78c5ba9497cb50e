"""Cross-validation of a grid of fits: the folds, what is fitted on each, and how it is scored.

Nothing here depends on which process does the work: the seed of every fit is the same, and linear
algebra runs in one thread, so that the scores are the same bits whatever ``n_jobs`` is.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.metrics import get_scorer
from sklearn.model_selection import KFold, PredefinedSplit, StratifiedKFold, check_cv
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

from clustruct.design import as_design
from clustruct.estimators.grid import Grid, Method, choose_objective, fit_grid, gram_pays
from clustruct.estimators.inputs import class_loss, class_targets, counter, weigh_rows
from clustruct.estimators.intake import Intake
from clustruct.objectives.features import FeatureObjective
from clustruct.objectives.linear import Response
from clustruct.objectives.moments import Moments
from clustruct.objectives.quadratic import QuadraticObjective, remaining_objective
from clustruct.solvers.driver import Answer
from clustruct.solvers.features import relaxed_answers

__all__ = ["Data", "Fold", "Plan", "cross_validate", "make_folds", "search_method"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Score = Callable[[Sequence[Answer]], list[float]]

DEFAULT_FOLDS = 5
# Projected gradient for fits that are only scored: fewer trials, and an end to small gains.
QUICK_STEPS = {"shrink": 0.5, "shortest": 0.05}
QUICK_TOL = 1e-3


@dataclass(frozen=True, eq=False)
class Data:
    """Validated samples of positive weight.

    Attributes
    ----------
    X : ndarray or CSR matrix
    y : ndarray
    weights : ndarray of shape (n,) or None
    """

    X: Any
    y: NDArray[Any]
    weights: Floats | None

    @classmethod
    def of(cls, X: Any, y: NDArray[Any], weights: Floats | None) -> "Data":
        """Sparse matrices become CSR, of which rows are cheap to take."""
        return cls(X.tocsr() if sparse.issparse(X) else X, y, weights)

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
    scoring: str | Callable[..., float]


def make_folds(
    cv: int | Iterable[Any] | Any,
    data: Data,
    groups: ArrayLike | None,
    kept: Indices,
    *,
    classifier: bool,
    random_state: int | np.random.RandomState | None,
) -> list[Fold]:
    """The folds, of samples of positive weight.

    Parameters
    ----------
    cv : int, splitter or iterable
        An integer is a number of folds, shuffled where there is a `random_state`. Index pairs, and
        `PredefinedSplit`, count all samples.
    data : Data
        Samples of positive weight.
    groups : array-like of shape (n_samples,) or None
        Handed to the splitter.
    kept : ndarray of int
        Which of all samples these are.
    classifier : bool
        Whether folds are to be stratified.
    random_state : int, RandomState or None

    Returns
    -------
    list of Fold
    """
    cv = DEFAULT_FOLDS if cv is None else cv
    if isinstance(cv, Integral) and not 2 <= int(cv) <= data.n:
        raise ValueError(
            f"cv={cv} folds cannot be made of n_samples={data.n} (of positive weight). "
            "Give cv an integer from 2 to the number of samples, or more samples."
        )
    if isinstance(cv, Integral) and random_state is not None:
        kind = StratifiedKFold if classifier and data.y.ndim == 1 else KFold
        cv = kind(int(cv), shuffle=True, random_state=random_state)
    given = isinstance(cv, PredefinedSplit) or not (
        isinstance(cv, Integral) or hasattr(cv, "split")
    )
    splitter = check_cv(cv, data.y, classifier=classifier)
    mine = None if groups is None else np.asarray(groups)[kept]
    pairs = splitter.split(np.zeros((data.n, 1)), data.y, mine)
    if given:
        pairs = _renumbered(pairs, kept)
    folds = [Fold(f, np.asarray(a), np.asarray(b)) for f, (a, b) in enumerate(pairs)]
    empty = [fold.number for fold in folds if not fold.train.size or not fold.test.size]
    if empty or not folds:
        raise ValueError(
            f"cv={cv!r:.80} gives {len(folds)} folds, of which {len(empty)} lack samples (of "
            "positive weight) to fit or to score on. Give other folds."
        )
    return folds


def _renumbered(
    pairs: Iterable[tuple[Indices, Indices]], kept: Indices
) -> list[tuple[Indices, Indices]]:
    """Indices into all samples, turned into indices into those kept."""
    pairs = [(np.asarray(a, dtype=np.intp), np.asarray(b, dtype=np.intp)) for a, b in pairs]
    top = max((int(part.max(initial=-1)) for pair in pairs for part in pair), default=-1)
    places = np.full(max(top + 1, int(kept.max(initial=-1)) + 1), -1, dtype=np.intp)
    places[kept] = np.arange(kept.size)

    def renumber(part: Indices) -> Indices:
        found = places[part]
        return found[found >= 0]

    return [(renumber(a), renumber(b)) for a, b in pairs]


def cross_validate(
    data: Data, folds: Sequence[Fold], plan: Plan, n_jobs: int | None, verbose: int | bool
) -> tuple[Floats, int]:
    """Scores of every point of the grid on every fold.

    Parameters
    ----------
    data : Data
    folds : sequence of Fold
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
    scores = np.empty((*plan.grid.shape, len(plan.relax), len(folds)))
    unconverged = 0
    tell = counter(verbose, "fold", len(folds))
    with threadpool_limits(1):
        whole = _whole(data, plan, folds)
        jobs = (delayed(_score_fold)(data, fold, plan, whole) for fold in folds)
        results = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs)
        for number, fold_scores, count in results:
            scores[..., number] = fold_scores
            unconverged += count
            tell()
    return scores, unconverged


def _score_fold(
    data: Data, fold: Fold, plan: Plan, whole: Moments | None
) -> tuple[int, Floats, int]:
    """Number of the fold, its scores, and how many fits did not converge."""
    plan = replace(plan, model=copy(plan.model))  # folds in threads must not share it
    _check_classes(data.y[fold.train], plan, fold)
    with threadpool_limits(1):
        test = data.rows(fold.test)
        objective = _fold_objective(data, fold, test, plan, whole)
        score = _scorer(plan, test)
        method = search_method(plan.solver, plan.method, objective)
        scores = np.empty((*plan.grid.shape, len(plan.relax)))
        unconverged = 0
        for place, outcome in fit_grid(objective, plan.grid, plan.model.blocks, method):
            answers = relaxed_answers(outcome.problem.objective, outcome.answer, plan.relax)
            scores[place] = score(answers)
            unconverged += not outcome.status.converged
    return fold.number, scores, unconverged


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


# ---- What is fitted on a fold.


def _whole(data: Data, plan: Plan, folds: Sequence[Fold]) -> Moments | None:
    """Sums over all samples, where those of the folds can be had from them by subtraction."""
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
    """What the scores of these samples are held against."""
    _, _, shares = weigh_rows(data.X, data.y, data.weights)
    response: Response = plan.model._respond(Intake(as_design(data.X), data.y, shares))
    return response


def _fold_objective(
    data: Data, fold: Fold, test: Data, plan: Plan, whole: Moments | None
) -> QuadraticObjective | FeatureObjective:
    """The problem to solve on a fold, with some alpha."""
    if whole is not None:
        response = _response(data, plan)
        part = Moments.of(
            as_design(test.X),
            response.target[fold.test],
            response.shares[fold.test],
            whole.x_center,
            whole.y_center,
        )
        penalties = np.zeros(whole.x_center.size)
        objective = remaining_objective(whole, part, response.fit_intercept, penalties)
        if objective is not None:
            return objective
    train = data.rows(fold.train)
    return choose_objective(as_design(train.X), _response(train, plan), 0.0)


def _check_classes(classes: NDArray[Any], plan: Plan, fold: Fold) -> None:
    """Complain of a fold that lacks a class."""
    if plan.classes is None:
        return
    missing = np.setdiff1d(plan.classes, classes)
    if missing.size:
        raise ValueError(
            f"Fold {fold.number} of cv has no sample of class {missing[0]!r} to fit on. "
            "Give a smaller cv, stratified folds, or more samples of that class."
        )


# ---- How it is scored.


def _scorer(plan: Plan, test: Data) -> Score:
    """From answers to scores on held-out samples."""
    kind = plan.model.loss if plan.classes is not None else "regression"
    measure = FAST_SCORES.get((kind, str(plan.scoring)))
    if measure is not None:
        return _fast_scorer(measure, plan, test)
    return _model_scorer(get_scorer(plan.scoring), plan, test)


def _fast_scorer(measure: Callable[[Any, Data, Floats], Floats], plan: Plan, test: Data) -> Score:
    """All answers by one product with the held-out samples."""
    design = as_design(test.X)

    def score(answers: Sequence[Answer]) -> list[float]:
        points = [answer.point for answer in answers]
        scores = design.scores(np.concatenate([point.W for point in points], axis=1))
        widths = np.cumsum([point.W.shape[1] for point in points])[:-1]
        return [
            float(
                np.average(measure(plan.model, test, part + point.intercept), weights=test.weights)
            )
            for part, point in zip(np.split(scores, widths, axis=1), points, strict=True)
        ]

    return score


def _model_scorer(scorer: Callable[..., float], plan: Plan, test: Data) -> Score:
    """One answer after the other, as a fitted model; weights go to scorers that take them."""
    taken = inspect.signature(getattr(scorer, "_score_func", scorer)).parameters
    weights = {"sample_weight": test.weights} if "sample_weight" in taken else {}
    if test.weights is None:
        weights = {}
    model = plan.model
    model.n_features_in_ = test.X.shape[1]

    def score(answers: Sequence[Answer]) -> list[float]:
        found = []
        for answer in answers:
            model._set_answer(answer)
            found.append(float(scorer(model, test.X, test.y, **weights)))
        return found

    return score


def _negative_squares(model: Any, test: Data, scores: Floats) -> Floats:
    """Negative squared error of each sample, the mean over outputs."""
    target = test.y.reshape(test.n, -1)
    return -np.square(scores - target).mean(axis=1)


def _log_likelihoods(model: Any, test: Data, scores: Floats) -> Floats:
    """Logarithm of the probability of each sample's class."""
    codes = np.searchsorted(model.classes_, test.y)
    target = class_targets(codes, model.classes_.size, "logistic")
    loss, _ = class_loss(model.classes_.size, "logistic")
    return -loss.value(target, scores)


def _hits(model: Any, test: Data, scores: Floats) -> Floats:
    """One where the class is right."""
    codes = np.searchsorted(model.classes_, test.y)
    best = scores.argmax(axis=1) if scores.shape[1] > 1 else scores[:, 0] > 0.0
    return (best == codes).astype(np.float64)


# Scores that need no model, by what is predicted and the name of the score.
FAST_SCORES: Mapping[tuple[str, str], Callable[[Any, Data, Floats], Floats]] = {
    ("regression", "neg_mean_squared_error"): _negative_squares,
    ("logistic", "neg_log_loss"): _log_likelihoods,
    ("logistic", "accuracy"): _hits,
    ("squared", "accuracy"): _hits,
}
