"""Choosing the number of groups of tasks, and the strengths of the penalty."""

from clustruct._docs import documented
from clustruct.estimators import descriptions as tables
from clustruct.estimators.common import fields_are_parameters
from clustruct.estimators.tasks.models import TaskClusterClassifier, TaskClusterRegressor
from clustruct.estimators.tasks.search import TaskSearch


@documented(
    (tables.ALL, tables.TASKS, tables.SEARCH, tables.TASK_SEARCH),
    (tables.SEARCHED, tables.OF_TASKS, tables.FITTED),
)
@fields_are_parameters
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
    Candidates are penalties of several strengths, and mixtures (``solver="em"``), which learn
    theirs and choose their number of groups by evidence. With the rule ``"fewest"``, the best
    mixture is kept unless the best penalty is ahead by a standard error of the difference.
    Mixtures are left out if strengths are given, or where they would take long.

    Groups are worth their price where they predict better on samples that were left out. With the
    rule ``"fewest"``, few groups are preferred to more unless these are better by more than a
    standard error of the difference over the folds, corrected for what the folds have in common.

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


@documented(
    (tables.ALL, tables.TASKS, tables.TASK_CLASSES, tables.SEARCH, tables.TASK_SEARCH),
    (tables.SEARCHED, tables.OF_CLASSES, tables.OF_TASKS, tables.FITTED),
)
@fields_are_parameters
class TaskClusterClassifierCV(TaskSearch, TaskClusterClassifier):
    """Linear classifiers of many tasks, in as many groups as the data call for.

    Attributes
    ----------
    alpha_ : float
        The ridge that was chosen.

    See Also
    --------
    TaskClusterClassifier : The model with given groups and strengths.
    TaskClusterRegressorCV : The same for numbers; its notes describe the choice.

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
