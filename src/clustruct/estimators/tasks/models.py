"""Many linear models, one a task, whose weights lie near the centroids of a few groups."""

from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if

from clustruct._docs import documented
from clustruct._typing import Floats
from clustruct.arrays import namespace
from clustruct.design import Rows
from clustruct.estimators import descriptions as tables
from clustruct.estimators.common import Constraints, NumberLosses, fields_are_parameters
from clustruct.estimators.intake import named
from clustruct.estimators.tasks.base import TaskCluster
from clustruct.estimators.tasks.layouts import Ids
from clustruct.losses import LOSSES, Loss, loss_of


@documented(
    (tables.ALL, tables.TASKS),
    (tables.OF_TASKS, tables.FITTED),
    (tables.ARGUMENTS, tables.TASK_ARGUMENTS),
)
@fields_are_parameters
class TaskClusterRegressor(RegressorMixin, NumberLosses, TaskCluster):
    """Linear regressions of many tasks, whose weights lie near the centroids of a few groups.

    Minimises, over the weights ``w_t`` and intercepts of the tasks, the centroids ``v_q`` and the
    groups ``q(t)``, the mean loss of all samples plus the mean over the tasks of

    ``alpha/2 ||w_t||^2 + alpha_within/2 ||w_t - v_q(t)||^2 + alpha_between/2 ||v_q(t) - v||^2``

    plus ``alpha_mean/2 ||v||^2``, where ``v`` is the mean of the centroids over the tasks.

    See Also
    --------
    TaskClusterClassifier : The same for classes.
    TaskClusterRegressorCV : Chooses the number of groups and the strengths.

    Notes
    -----
    The unit of the strengths that are "auto" is the median variance of the columns of ``X`` times
    the curvature of the loss. They do not depend on the numbers of samples and tasks: a task of
    average size weighs as much as its mean loss.

    ``"am"`` alternates between groups and weights, with moves of single tasks at the end; it starts
    from k-means of mean-regularised, independent and pooled fits and from random groups, and comes
    after the others. ``"pg"`` is projected gradient (options ``refit``, ``longest``, ``shortest``,
    ``shrink``). ``"cg"`` is conditional gradient on a convex relaxation, for squared loss (option
    ``step``). ``"auto"`` is ``"am"``.

    ``"em"`` is another model: the tasks are draws from a mixture of populations, ``w_t ~ N(v_q,
    diag(s_q))``. Variances of noise, weights and centroids are learnt by their evidence, and the
    weights of a task are the mean of their posterior over all groups. It takes any loss (by
    Laplace's approximation where it is not squared), up to 200 features and no more than rows. Rows
    that are not in memory need the squared loss. ``objective_`` is the negative evidence of a row,
    of which nothing is proved.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_clustered_tasks(n_tasks=12, n_clusters=2, random_state=0)
    >>> X, Y = problem.columns()
    >>> model = cs.TaskClusterRegressor(2, random_state=0).fit(X, Y)
    >>> model.predict(X).shape
    (20, 12)
    >>> X, y, tasks = problem.rows()
    >>> model = cs.TaskClusterRegressor(2, random_state=0).fit(X, y, tasks=tasks)
    >>> model.predict(X, tasks=tasks).shape
    (240,)
    """

    score = TaskCluster.score  # knows of tasks

    def predict(
        self, X: ArrayLike, tasks: Ids | None = None, offset: ArrayLike | None = None
    ) -> Floats:
        """Targets of each sample's task, or of all tasks.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_tasks)
            Predictions.
        """
        return self._apply_to_scores(
            X, tasks, offset, loss_of(self).predictions, self._width(tasks)
        )

    def _targets(self, targets: NDArray[Any]) -> Floats:
        """Targets of new tasks."""
        return np.asarray(targets, dtype=np.float64).reshape(-1)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False  # a vector needs tasks, which no tag can say
        return tags


@documented(
    (tables.ALL, tables.TASKS, tables.TASK_CLASSES),
    (tables.OF_CLASSES, tables.OF_TASKS, tables.FITTED),
    (tables.ARGUMENTS, tables.TASK_ARGUMENTS),
)
@fields_are_parameters
class TaskClusterClassifier(ClassifierMixin, TaskCluster):
    """Linear classifiers of many tasks, whose weights lie near the centroids of a few groups.

    Each task tells two classes apart. Fitted to a vector of more than two classes without tasks, it
    is one classifier a class against all others, and the classes are the tasks.

    See Also
    --------
    TaskClusterRegressor : The same for numbers; its notes describe strengths and solvers.
    TaskClusterClassifierCV : Chooses the number of groups and the strengths.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_clustered_tasks(50, classification=True, random_state=0)
    >>> X, y, tasks = problem.rows()
    >>> model = cs.TaskClusterClassifier(3, random_state=0).fit(X, y, tasks=tasks)
    >>> model.predict_proba(X, tasks=tasks).shape
    (1500, 2)
    """

    _: KW_ONLY
    loss: str | Loss = "logistic"
    class_weight: Mapping[Any, float] | str | None = None

    score = TaskCluster.score
    _constraints: ClassVar[Constraints] = {
        "loss": [StrOptions({name for name, kind in LOSSES.items() if kind.takes_classes}), Loss],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def decision_function(
        self, X: ArrayLike, tasks: Ids | None = None, offset: ArrayLike | None = None
    ) -> Floats:
        """Scores: positive for the second of two classes.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_tasks)
            Scores of each sample's task, of all tasks, or of all classes.
        """
        return self._apply_to_scores(X, tasks, offset, lambda scores: scores, self._width(tasks))

    def predict(
        self, X: ArrayLike, tasks: Ids | None = None, offset: ArrayLike | None = None
    ) -> NDArray[Any]:
        """The class of each sample, for its task or for all tasks.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_tasks)
            Classes.
        """
        width = self._width(tasks)
        width = None if self._layout == "classes" else width
        return self._apply_to_scores(X, tasks, offset, self._choose, width, self.classes_.dtype)

    def _choose(self, scores: Rows) -> NDArray[Any]:
        """Classes for scores; numbers are beside them, strings on the host."""
        best = scores > 0.0
        if self._layout == "classes":
            best = namespace(scores).argmax(scores, axis=1)
        return named(self.classes_, best)

    @available_if(lambda self: loss_of(self).gives_probabilities)
    def predict_proba(
        self, X: ArrayLike, tasks: Ids | None = None, offset: ArrayLike | None = None
    ) -> Floats:
        """Probabilities, with the logistic loss only.

        Returns
        -------
        ndarray of shape (n_samples, n_classes) or (n_samples, n_tasks)
            Probabilities of all classes; of the second class for each task where no task is named.
            One classifier a class: each against the others, made to sum to one.
        """
        return self._apply_to_scores(X, tasks, offset, self._shares, self._width(tasks) or 2)

    def _shares(self, scores: Rows) -> Rows:
        """Probabilities for scores."""
        xp = namespace(scores)
        both = loss_of(self).probabilities(xp.reshape(scores, (-1, 1)))
        if scores.ndim == 1:
            return both
        shares = xp.reshape(both[:, 1], scores.shape)
        if self._layout == "classes":
            totals = xp.sum(shares, axis=1, keepdims=True)
            some = totals > 0.0
            return xp.where(some, shares / xp.where(some, totals, 1.0), 1.0 / shares.shape[1])
        return shares

    def _targets(self, targets: NDArray[Any]) -> Floats:
        """Signs of the classes of new tasks."""
        if self._layout == "classes":
            raise ValueError("adapt needs tasks, but `fit` had one classifier a class. Fit again.")
        unknown = np.setdiff1d(targets, self.classes_)
        if unknown.size:
            raise ValueError(
                f"y holds the class {unknown.tolist()[0]!r}, which was not in `fit`. Leave such "
                "samples out."
            )
        return np.where(np.asarray(targets).reshape(-1) == self.classes_[1], 1.0, -1.0)
