"""scikit-learn's scores for models of tasks, which have to know the task of each sample."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer
from sklearn.utils.metadata_routing import MetadataRequest
from sklearn.utils.metaestimators import available_if

from clustruct._typing import Floats, Indices
from clustruct.estimators.search.scoring import Scoring, model_scorer, predicting_with
from clustruct.estimators.tasks.layouts import Ids
from clustruct.losses import Loss

# From targets, scores, numbers of tasks and weights to a score; larger is better.
PooledScore = Callable[[Floats, Floats, Indices, Floats], float]


def task_scorer(scoring: str | Callable[..., float]) -> "TaskScorer":
    """A score of scikit-learn in which each sample is predicted by its own task.

    scikit-learn's scorers call ``predict(X)``, and a model of tasks then predicts for all tasks.
    This one takes the metadata ``tasks`` and calls ``predict(X, tasks=tasks)``.

    Parameters
    ----------
    scoring : str or callable
        A name such as ``"roc_auc"``, or what ``sklearn.metrics.make_scorer`` returns.

    Returns
    -------
    callable
        For the argument `scoring` of ``cross_val_score``, ``cross_validate`` and ``GridSearchCV``,
        with metadata routing enabled and ``tasks`` among the parameters.

    See Also
    --------
    TaskClusterClassifier : Its own ``score`` takes tasks without this.

    Examples
    --------
    >>> import clustruct as cs
    >>> from sklearn import config_context
    >>> from sklearn.model_selection import KFold, cross_val_score
    >>> problem = cs.datasets.make_clustered_tasks(50, classification=True, random_state=0)
    >>> X, y, tasks = problem.rows()
    >>> with config_context(enable_metadata_routing=True):
    ...     scores = cross_val_score(
    ...         cs.TaskClusterClassifier(3).set_fit_request(tasks=True),
    ...         X,
    ...         y,
    ...         scoring=cs.task_scorer("roc_auc"),
    ...         cv=KFold(3, shuffle=True, random_state=0),
    ...         params={"tasks": tasks},
    ...     )
    >>> bool((scores > 0.7).all())
    True
    """
    return TaskScorer(get_scorer(scoring))


@dataclass(repr=False, eq=False)
class TaskScorer:
    """A scorer that requests ``tasks`` and has the model predict for them."""

    _scorer: Any

    def __call__(
        self, estimator: Any, X: Any, y: Any, tasks: Ids | None = None, offset: Any = None
    ) -> float:
        """The score of the predictions for each sample's task, with an offset if one is given."""
        if tasks is None:
            raise ValueError(
                "task_scorer was given no tasks. Enable metadata routing "
                "(sklearn.set_config(enable_metadata_routing=True)) and pass "
                "params={'tasks': tasks}, or fit(X, y, tasks=tasks) for a search."
            )
        model = predicting_with(estimator, tasks=tasks, offset=offset)
        return float(self._scorer(model, X, y))

    def get_metadata_routing(self) -> MetadataRequest:
        """What scikit-learn passes on: ``tasks``, and ``offset`` where there is one."""
        request = MetadataRequest(owner=self)
        for name in ("tasks", "offset"):
            request.score.add_request(param=name, alias=True)
        return request

    def __repr__(self) -> str:
        return f"task_scorer({self._scorer!r})"


# ---- Scores of a search: all targets of a fold together.


def pooled(scoring: Scoring, class_loss: Loss | None) -> PooledScore:
    """A score of all held-out targets, each predicted by its own task.

    `scoring` is a name that scikit-learn knows, what ``make_scorer`` or `task_scorer` returns, or a
    function of targets, scores and numbers of tasks. Classifiers, whose targets are -1 and 1, give
    their loss.
    """
    if isinstance(scoring, TaskScorer):
        scoring = scoring._scorer
    if not isinstance(scoring, str) and not hasattr(scoring, "_score_func"):
        return lambda y, scores, tasks, weights: float(scoring(y, scores, tasks))
    known: Scoring = get_scorer(scoring)
    model = _ScoredNumbers() if class_loss is None else _ScoredClasses(class_loss)
    return lambda y, scores, tasks, w: model_scorer(known, w)(model, scores[:, None], y)


class _ScoredNumbers(RegressorMixin, BaseEstimator):
    """A fitted model to whom samples are their predictions."""

    def predict(self, X: Floats) -> Floats:
        return X[:, 0]


class _ScoredClasses(ClassifierMixin, BaseEstimator):
    """A fitted classifier to whom samples are their scores."""

    classes_ = np.array([-1.0, 1.0])

    def __init__(self, loss: Loss) -> None:
        self.loss = loss

    def decision_function(self, X: Floats) -> Floats:
        return X[:, 0]

    def predict(self, X: Floats) -> Floats:
        return np.where(X[:, 0] > 0.0, 1.0, -1.0)

    @available_if(lambda self: self.loss.gives_probabilities)
    def predict_proba(self, X: Floats) -> Floats:
        return np.asarray(self.loss.probabilities(X))
