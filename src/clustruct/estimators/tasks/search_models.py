"""Choosing the number of groups of tasks, and the strengths of the penalty."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import product
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from clustruct._finite import without_warnings
from clustruct._typing import Floats
from clustruct.estimators.options import watcher
from clustruct.estimators.tasks.base import (
    Prices,
    TaskCluster,
    check_answered,
    intercept_price,
    price_scale,
)
from clustruct.estimators.tasks.entries import Summed
from clustruct.estimators.tasks.folds import make_folds, split
from clustruct.estimators.tasks.grid import Plan, cross_validate, select
from clustruct.estimators.tasks.layouts import Reading, read_classes, read_numbers
from clustruct.estimators.tasks.models import TaskClusterClassifier, TaskClusterRegressor
from clustruct.losses import Loss, loss_of
from clustruct.objectives.tasks.objective import TaskObjective
from clustruct.solvers.driver import Callback
from clustruct.solvers.tasks.recipes import TaskProblem

__all__ = ["TaskClusterClassifierCV", "TaskClusterRegressorCV"]

Ids = ArrayLike | Sequence[Hashable]

# Strengths to try, in units of the curvature of the loss times the median variance of the columns.
WITHIN = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3)
BETWEEN = (1.0, 0.1, 0.01)

_SEVERAL = [Interval(Real, 0, None, closed="left"), "array-like"]
_SEARCH_CONSTRAINTS: Mapping[str, list[Any]] = {
    "n_clusters": ["array-like", Interval(Integral, 1, None, closed="left")],
    "alpha": _SEVERAL,
    "alpha_mean": [StrOptions({"auto"}), *_SEVERAL],
    "alpha_between": [StrOptions({"auto"}), *_SEVERAL],
    "alpha_within": [StrOptions({"auto"}), Interval(Real, 0, None, closed="both"), "array-like"],
    "cv": ["cv_object"],
    "scoring": [callable, None],
    "rule": [StrOptions({"best", "fewest"})],
}


class _TaskSearch(TaskCluster):
    """The search, for a model that could be fitted without it."""

    n_clusters: Any  # several values here, one for the plain model
    alpha: Any
    alpha_mean: Any
    alpha_between: Any
    alpha_within: Any

    def _fit_search(self, reading: Reading) -> None:
        """Choose a point of the grid, and fit there."""
        check_answered(reading.entries, reading.names)
        folds = make_folds(self.cv, reading, self.random_state)
        loss = loss_of(self)
        whole, splits = split(reading.entries, folds, loss, self.scoring)
        prepared = self._prepare(whole)
        intercept = self.alpha_intercept
        intercept = intercept_price(prepared) if intercept == "auto" else float(intercept)
        grid = self._grid(price_scale(prepared), intercept)
        counts = _counts(self.n_clusters, whole.n_tasks)
        unwatched = copy(self)
        unwatched.callback = None
        plan = Plan(unwatched, counts, grid, self.scoring)
        summed = all(isinstance(mine.held, Summed) for mine in splits)
        at_hand = summed or reading.entries.design.on_host  # what may go to other processes
        scores = cross_validate(splits, plan, self.n_jobs if at_hand else 1, self.verbose)
        name = loss.loss_scoring
        if self.scoring is not None:
            name = getattr(self.scoring, "__name__", repr(self.scoring))
        ratio = float(np.mean([held.size / rest.size for rest, held in folds]))
        found = select(counts, grid, scores, self.rule, name, ratio)
        q, s = found.best_index
        self._fit_prepared(prepared, grid[s], counts[q], reading)
        self.cv_results_ = found
        self.alpha_ = grid[s].alpha
        self.best_score_ = float(found.mean_scores[q, s])
        self.best_params_ = found.points()[found.flat_index]

    @property
    def best_index_(self) -> int:
        """Index of the point chosen into the columns of `cv_results_`."""
        return self.cv_results_.flat_index

    def _problem(self, objective: TaskObjective, n_clusters: int) -> TaskProblem:
        """The problem of a fit; its steps are printed only where more than folds are wanted."""
        problem = super()._problem(objective, n_clusters)
        watch = watcher(int(self.verbose) > 1, self.callback)
        return replace(problem, budget=replace(problem.budget, monitor=watch))

    def _grid(self, scale: float, intercept: float) -> tuple[Prices, ...]:
        """All strengths to try, neighbours next to each other."""
        within = _several(self.alpha_within, "alpha_within", scale * np.array(WITHIN))
        between = _several(self.alpha_between, "alpha_between", scale * np.array(BETWEEN))
        ridges = _several(self.alpha, "alpha", np.zeros(1))
        points = []
        for ridge, tight, apart in product(ridges, within, between):
            for mean in _several(self.alpha_mean, "alpha_mean", np.array([apart])):
                if mean <= apart:
                    points.append(Prices(ridge, mean, apart, tight, intercept))
        if not points:
            raise ValueError(
                f"alpha_mean={self.alpha_mean!r} is more than alpha_between={self.alpha_between!r} "
                "throughout. Give alpha_mean at most alpha_between."
            )
        return tuple(points)


def _several(value: Any, name: str, auto: Floats) -> list[float]:
    """One or more strengths, from large to small."""
    if isinstance(value, str):
        return [float(number) for number in auto]
    values = np.atleast_1d(np.asarray(value, dtype=np.float64))
    infinite = np.isinf(values) & (name != "alpha_within")
    if values.ndim != 1 or not values.size or not (values >= 0.0).all() or infinite.any():
        raise ValueError(
            f"{name}={value!r:.80} must hold at least one number, none of them negative. Give a "
            "number, a list of numbers, or 'auto'."
        )
    return sorted((float(number) for number in values), reverse=True)


def _counts(n_clusters: Any, n_tasks: int) -> tuple[int, ...]:
    """Numbers of groups to try; those beyond the number of tasks are left out."""
    counts = list(np.atleast_1d(n_clusters))
    if not counts or not all(isinstance(q, Integral) and int(q) >= 1 for q in counts):
        raise ValueError(f"n_clusters={n_clusters!r} must hold whole numbers of groups, 1 or more.")
    possible = sorted({int(q) for q in counts if q <= n_tasks})
    return tuple(possible) if possible else (min(n_tasks, min(int(q) for q in counts)),)


class TaskClusterRegressorCV(_TaskSearch, TaskClusterRegressor):
    """Linear regressions of many tasks, in as many groups as the data call for.

    Parameters
    ----------
    n_clusters : int or sequence of int, default=(1, 2, 3, 4, 5)
        Numbers of groups to try; those beyond the number of tasks are left out.
    alpha : float or sequence of float, default=0
        Strengths of the ridge on the weights of every task.
    alpha_mean : float, sequence of float or "auto", default="auto"
        Strengths on the mean of the centroids; "auto" is that of `alpha_between`.
    alpha_between : float, sequence of float or "auto", default="auto"
        Strengths on the distance of the centroids from their mean; "auto" is three numbers on the
        scale of the data.
    alpha_within : float, sequence of float or "auto", default="auto"
        Strengths on the distance of tasks from their group's centroid; "auto" is six numbers on
        the scale of the data.
    alpha_intercept : float or "auto", default="auto"
        Strength on the distance of intercepts, as in the plain model.
    cv : int, cross-validation generator or iterable, default=5
        Folds of the samples; an integer asks for folds alike in tasks and classes, shuffled.
    scoring : callable, default=None
        From targets, scores and numbers of tasks to a number, larger is better. Targets of classes
        are -1 and 1. None for the negative mean loss.
    rule : {"fewest", "best"}, default="fewest"
        The fewest groups that are not clearly worse than the best number, or the best, see Notes.
    loss : {"squared", "huber"} or Loss, default="squared"
        Half the squared residual, or linear beyond `huber_delta`, or your own.
    huber_delta : float, default=1.35
        Residual at which the Huber loss turns linear, in the units of ``y``.
    fit_intercept : bool, default=True
        Whether each task has an intercept.
    solver : {"auto", "am", "pg", "cg"}, default="auto"
        How groups are found, see Notes.
    n_init : "auto" or int, default="auto"
        Number of starts; "auto" goes on until the best objective was reached twice.
    max_iter : int, default=500
        Largest number of steps of a solver.
    tol : float, default=1e-6
        A solver stops when a step gains less than this fraction of the objective.
    solver_options : dict, default=None
        Options of the solver, see Notes.
    n_jobs : int, default=None
        Starts that run at the same time. It does not change the answer.
    random_state : int, RandomState instance or None, default=None
        Seed of the random starts and folds; None is a seed of its own, the same at every call.
    verbose : int or bool, default=0
        1 writes a line to standard error for each fold that is done, with the time spent and left;
        2 also prints each step of the final fit.
    callback : callable, default=None
        Called with each `Iteration` of a fit to all samples; returning True ends that fit.

    Attributes
    ----------
    cv_results_ : TaskSelection
        Scores of all points of the grid on all folds, ``pandas.DataFrame(model.cv_results_)``.
    best_params_ : dict
        The number of groups and the strengths that were chosen.
    best_score_ : float
        Mean score at that point.
    best_index_ : int
        Its index into the columns of `cv_results_`.
    alpha_ : float
        The ridge that was chosen.
    coef_ : ndarray of shape (n_tasks, n_features)
        Weights of each task; this and all other attributes are those of `TaskClusterRegressor`.

    See Also
    --------
    TaskClusterRegressor : The model with given groups and strengths.

    Notes
    -----
    Groups are worth their price where they predict better on samples that were left out. With the
    rule ``"fewest"``, few groups are preferred to more unless these are better by more than two
    standard errors of the difference over the folds, corrected for what the folds have in common.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_clustered_tasks(random_state=0)
    >>> X, Y = problem.columns()
    >>> cs.TaskClusterRegressorCV((1, 2, 3, 4)).fit(X, Y).n_clusters_
    3
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TaskClusterRegressor._parameter_constraints,
        **_SEARCH_CONSTRAINTS,
    }

    def __init__(
        self,
        n_clusters: int | Sequence[int] = (1, 2, 3, 4, 5),
        *,
        alpha: float | Sequence[float] = 0.0,
        alpha_mean: float | str | Sequence[float] = "auto",
        alpha_between: float | str | Sequence[float] = "auto",
        alpha_within: float | str | Sequence[float] = "auto",
        alpha_intercept: float | str = "auto",
        cv: Any = 5,
        scoring: Callable[..., float] | None = None,
        rule: str = "fewest",
        loss: str | Loss = "squared",
        huber_delta: float = 1.35,
        fit_intercept: bool = True,
        solver: str = "auto",
        n_init: str | int = "auto",
        max_iter: int = 500,
        tol: float = 1e-6,
        solver_options: Mapping[str, Any] | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int | bool = 0,
        callback: Callback | None = None,
    ) -> None:
        super().__init__(
            n_clusters,  # type: ignore[arg-type]
            alpha=alpha,  # type: ignore[arg-type]
            alpha_mean=alpha_mean,  # type: ignore[arg-type]
            alpha_between=alpha_between,  # type: ignore[arg-type]
            alpha_within=alpha_within,  # type: ignore[arg-type]
            alpha_intercept=alpha_intercept,
            loss=loss,
            huber_delta=huber_delta,
            fit_intercept=fit_intercept,
            solver=solver,
            n_init=n_init,
            max_iter=max_iter,
            tol=tol,
            solver_options=solver_options,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
            callback=callback,
        )
        self.cv = cv
        self.scoring = scoring
        self.rule = rule

    @_fit_context(prefer_skip_nested_validation=False)
    @without_warnings
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        tasks: Ids | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> "TaskClusterRegressorCV":
        """Fit the tasks, with groups and strengths by cross-validation.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,) or (n_samples, n_tasks)
            TaskTargets: one a sample, or a column for each task with NaN where there is none.
        tasks : array-like of shape (n_samples,), default=None
            Id of each sample's task, any hashable; needed for `y` with one answer a sample.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples; an integer weight counts as that many repetitions.

        Returns
        -------
        TaskClusterRegressorCV
            Itself.
        """
        self._fit_search(read_numbers(self, X, y, tasks, sample_weight))
        return self


class TaskClusterClassifierCV(_TaskSearch, TaskClusterClassifier):
    """Linear classifiers of many tasks, in as many groups as the data call for.

    Parameters
    ----------
    n_clusters : int or sequence of int, default=(1, 2, 3, 4, 5)
        Numbers of groups to try; those beyond the number of tasks are left out.
    alpha : float or sequence of float, default=0
        Strengths of the ridge on the weights of every task.
    alpha_mean : float, sequence of float or "auto", default="auto"
        Strengths on the mean of the centroids; "auto" is that of `alpha_between`.
    alpha_between : float, sequence of float or "auto", default="auto"
        Strengths on the distance of the centroids from their mean; "auto" is three numbers on the
        scale of the data.
    alpha_within : float, sequence of float or "auto", default="auto"
        Strengths on the distance of tasks from their group's centroid; "auto" is six numbers on
        the scale of the data.
    alpha_intercept : float or "auto", default="auto"
        Strength on the distance of intercepts, as in the plain model.
    cv : int, cross-validation generator or iterable, default=5
        Folds of the samples; an integer asks for folds alike in tasks and classes, shuffled.
    scoring : callable, default=None
        From targets, scores and numbers of tasks to a number, larger is better. Targets of classes
        are -1 and 1. None for the negative mean loss.
    rule : {"fewest", "best"}, default="fewest"
        The fewest groups that are not clearly worse than the best number, or the best, see Notes.
    loss : {"logistic", "squared", "huber"} or Loss, default="logistic"
        Logistic, or squared or Huber's on targets -1 and 1, or your own.
    huber_delta : float, default=1.35
        Residual at which the Huber loss turns linear.
    class_weight : dict or "balanced", default=None
        Weights of the classes, which multiply those of the samples.
    fit_intercept : bool, default=True
        Whether each task has an intercept.
    solver : {"auto", "am", "pg", "cg"}, default="auto"
        How groups are found, see Notes.
    n_init : "auto" or int, default="auto"
        Number of starts; "auto" goes on until the best objective was reached twice.
    max_iter : int, default=500
        Largest number of steps of a solver.
    tol : float, default=1e-6
        A solver stops when a step gains less than this fraction of the objective.
    solver_options : dict, default=None
        Options of the solver, see Notes.
    n_jobs : int, default=None
        Starts that run at the same time. It does not change the answer.
    random_state : int, RandomState instance or None, default=None
        Seed of the random starts and folds; None is a seed of its own, the same at every call.
    verbose : int or bool, default=0
        1 writes a line to standard error for each fold that is done, with the time spent and left;
        2 also prints each step of the final fit.
    callback : callable, default=None
        Called with each `Iteration` of a fit to all samples; returning True ends that fit.

    Attributes
    ----------
    cv_results_ : TaskSelection
        Scores of all points of the grid on all folds, ``pandas.DataFrame(model.cv_results_)``.
    best_params_ : dict
        The number of groups and the strengths that were chosen.
    best_score_ : float
        Mean score at that point.
    best_index_ : int
        Its index into the columns of `cv_results_`.
    alpha_ : float
        The ridge that was chosen.
    coef_ : ndarray of shape (n_tasks, n_features)
        Weights of each task; this and all other attributes are those of `TaskClusterClassifier`.

    See Also
    --------
    TaskClusterClassifier : The model with given groups and strengths.

    Notes
    -----
    Groups are worth their price where they predict better on samples that were left out. With the
    rule ``"fewest"``, few groups are preferred to more unless these are better by more than two
    standard errors of the difference over the folds, corrected for what the folds have in common.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_clustered_tasks(
    ...     60, 4, 10, 2, classification=True, random_state=0
    ... )
    >>> X, y, tasks = problem.rows()
    >>> cs.TaskClusterClassifierCV((1, 2), cv=3).fit(X, y, tasks=tasks).n_clusters_
    2
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TaskClusterClassifier._parameter_constraints,
        **_SEARCH_CONSTRAINTS,
    }

    def __init__(
        self,
        n_clusters: int | Sequence[int] = (1, 2, 3, 4, 5),
        *,
        alpha: float | Sequence[float] = 0.0,
        alpha_mean: float | str | Sequence[float] = "auto",
        alpha_between: float | str | Sequence[float] = "auto",
        alpha_within: float | str | Sequence[float] = "auto",
        alpha_intercept: float | str = "auto",
        cv: Any = 5,
        scoring: Callable[..., float] | None = None,
        rule: str = "fewest",
        loss: str | Loss = "logistic",
        huber_delta: float = 1.35,
        class_weight: Mapping[Any, float] | str | None = None,
        fit_intercept: bool = True,
        solver: str = "auto",
        n_init: str | int = "auto",
        max_iter: int = 500,
        tol: float = 1e-6,
        solver_options: Mapping[str, Any] | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int | bool = 0,
        callback: Callback | None = None,
    ) -> None:
        super().__init__(
            n_clusters,  # type: ignore[arg-type]
            alpha=alpha,  # type: ignore[arg-type]
            alpha_mean=alpha_mean,  # type: ignore[arg-type]
            alpha_between=alpha_between,  # type: ignore[arg-type]
            alpha_within=alpha_within,  # type: ignore[arg-type]
            alpha_intercept=alpha_intercept,
            loss=loss,
            huber_delta=huber_delta,
            class_weight=class_weight,
            fit_intercept=fit_intercept,
            solver=solver,
            n_init=n_init,
            max_iter=max_iter,
            tol=tol,
            solver_options=solver_options,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
            callback=callback,
        )
        self.cv = cv
        self.scoring = scoring
        self.rule = rule

    @_fit_context(prefer_skip_nested_validation=False)
    @without_warnings
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        tasks: Ids | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> "TaskClusterClassifierCV":
        """Fit the tasks, with groups and strengths by cross-validation.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,) or (n_samples, n_tasks)
            Classes: one a sample, or a column for each task with NaN where there is none.
        tasks : array-like of shape (n_samples,), default=None
            Id of each sample's task, any hashable; for `y` with one answer a sample. None takes a
            vector for classes to tell apart: the classes are the tasks, two of them one task.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples; an integer weight counts as that many repetitions.

        Returns
        -------
        TaskClusterClassifierCV
            Itself.
        """
        self._fit_search(read_classes(self, X, y, tasks, sample_weight))
        return self
