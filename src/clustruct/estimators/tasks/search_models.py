"""Choosing the number of groups of tasks, and the strengths of the penalty."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from clustruct.estimators.search.engine import set_parameters
from clustruct.estimators.tasks.layouts import read_classes, read_numbers
from clustruct.estimators.tasks.models import TaskClusterClassifier, TaskClusterRegressor
from clustruct.estimators.tasks.search import TaskSearch
from clustruct.losses import Loss
from clustruct.solvers.driver import Callback

__all__ = ["TaskClusterClassifierCV", "TaskClusterRegressorCV"]


class TaskClusterRegressorCV(TaskSearch, TaskClusterRegressor):
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
    scoring : str or callable, default=None
        Score to maximise: a name that scikit-learn knows, for all held-out targets together with
        each predicted by its own task; or a function from targets, scores and numbers of tasks to a
        number, larger is better. Targets of classes are -1 and 1. None for the negative mean loss.
    rule : {"fewest", "best", "one_se"}, default="fewest"
        The fewest groups that are not clearly worse than the best number, see Notes; the best
        point; or the simplest one within a standard error of it: with the fewest groups, then the
        largest strengths.
    criterion : {"cv"}, default="cv"
        Cross-validation. Information criteria are not defined for tasks, see Notes.
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
        Folds, and starts of the final fit, that run at the same time. It does not change the
        result.
    random_state : int, RandomState instance or None, default=None
        Seed of the random starts and folds.
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

    The weights of a task are drawn towards a centroid, so that it has no whole number of free
    parameters, which an information criterion would count.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_clustered_tasks(random_state=0)
    >>> X, Y = problem.columns()
    >>> cs.TaskClusterRegressorCV((1, 2, 3, 4), random_state=0).fit(X, Y).n_clusters_
    3
    """

    _read = staticmethod(read_numbers)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TaskClusterRegressor._parameter_constraints,
        **TaskSearch._search_constraints,
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
        scoring: str | Callable[..., float] | None = None,
        rule: str = "fewest",
        criterion: str = "cv",
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
        set_parameters(self, locals())


class TaskClusterClassifierCV(TaskSearch, TaskClusterClassifier):
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
    scoring : str or callable, default=None
        Score to maximise: a name that scikit-learn knows, for all held-out targets together with
        each predicted by its own task; or a function from targets, scores and numbers of tasks to a
        number, larger is better. Targets of classes are -1 and 1. None for the negative mean loss.
    rule : {"fewest", "best", "one_se"}, default="fewest"
        The fewest groups that are not clearly worse than the best number, see Notes; the best
        point; or the simplest one within a standard error of it: with the fewest groups, then the
        largest strengths.
    criterion : {"cv"}, default="cv"
        Cross-validation. Information criteria are not defined for tasks, see Notes.
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
        Folds, and starts of the final fit, that run at the same time. It does not change the
        result.
    random_state : int, RandomState instance or None, default=None
        Seed of the random starts and folds.
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

    The weights of a task are drawn towards a centroid, so that it has no whole number of free
    parameters, which an information criterion would count.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_clustered_tasks(
    ...     60, 4, 10, 2, classification=True, random_state=0
    ... )
    >>> X, y, tasks = problem.rows()
    >>> model = cs.TaskClusterClassifierCV((1, 2), cv=3, random_state=0)
    >>> model.fit(X, y, tasks=tasks).n_clusters_
    2
    """

    _read = staticmethod(read_classes)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TaskClusterClassifier._parameter_constraints,
        **TaskSearch._search_constraints,
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
        scoring: str | Callable[..., float] | None = None,
        rule: str = "fewest",
        criterion: str = "cv",
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
        set_parameters(self, locals())
