"""Choosing the number of groups of tasks, and the strengths of the penalty."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from clustruct._docs import documented
from clustruct.estimators.descriptions import (
    ALL,
    ARGUMENTS,
    FITTED,
    OF_CLASSES,
    OF_TASKS,
    SEARCH,
    SEARCHED,
    TASK_ARGUMENTS,
    TASK_CLASSES,
    TASK_SEARCH,
    TASKS,
)
from clustruct.estimators.search.engine import set_parameters
from clustruct.estimators.tasks.layouts import read_classes, read_numbers
from clustruct.estimators.tasks.models import TaskClusterClassifier, TaskClusterRegressor
from clustruct.estimators.tasks.search import TaskSearch
from clustruct.losses import Loss
from clustruct.solvers.driver import Callback

__all__ = ["TaskClusterClassifierCV", "TaskClusterRegressorCV"]


@documented(
    (ALL, TASKS, SEARCH, TASK_SEARCH),
    (
        SEARCHED,
        OF_TASKS,
        FITTED,
    ),
    (ARGUMENTS, TASK_ARGUMENTS),
)
class TaskClusterRegressorCV(TaskSearch, TaskClusterRegressor):
    """Linear regressions of many tasks, in as many groups as the data call for.

    Attributes
    ----------
    alpha_ : float
        The ridge that was chosen.

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


@documented(
    (ALL, TASKS, TASK_CLASSES, SEARCH, TASK_SEARCH),
    (
        SEARCHED,
        OF_CLASSES,
        OF_TASKS,
        FITTED,
    ),
    (ARGUMENTS, TASK_ARGUMENTS),
)
class TaskClusterClassifierCV(TaskSearch, TaskClusterClassifier):
    """Linear classifiers of many tasks, in as many groups as the data call for.

    Attributes
    ----------
    alpha_ : float
        The ridge that was chosen.

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
