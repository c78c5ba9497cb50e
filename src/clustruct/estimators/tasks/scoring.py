"""scikit-learn's scores for models of tasks, which have to know the task of each sample."""

from collections.abc import Callable, Hashable, Sequence
from functools import wraps
from typing import Any

from numpy.typing import ArrayLike
from sklearn.metrics import get_scorer
from sklearn.utils.metadata_routing import MetadataRequest

__all__ = ["task_scorer"]

ANSWERS = frozenset({"decision_function", "predict", "predict_proba"})


def task_scorer(scoring: str | Callable[..., float]) -> "TaskScorer":
    """A score of scikit-learn in which each sample is answered by its own task.

    scikit-learn's scorers call ``predict(X)``, and a model of tasks then targets for all tasks.
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


class TaskScorer:
    """A scorer that requests ``tasks`` and has the model answer for them."""

    def __init__(self, scorer: Any) -> None:
        self._scorer = scorer

    def __call__(
        self, estimator: Any, X: Any, y: Any, tasks: ArrayLike | Sequence[Hashable] | None = None
    ) -> float:
        """The score of the targets of each sample's task."""
        if tasks is None:
            raise ValueError(
                "task_scorer was given no tasks. Enable metadata routing "
                "(sklearn.set_config(enable_metadata_routing=True)) and pass "
                "params={'tasks': tasks}, or fit(X, y, tasks=tasks) for a search."
            )
        return float(self._scorer(_Answering(estimator, tasks), X, y))

    def get_metadata_routing(self) -> MetadataRequest:
        """What scikit-learn passes on: ``tasks``."""
        request = MetadataRequest(owner=self)
        request.score.add_request(param="tasks", alias=True)
        return request

    def __repr__(self) -> str:
        return f"task_scorer({self._scorer!r})"


class _Answering:
    """A fitted model that targets for the task of each sample."""

    def __init__(self, model: Any, tasks: Any) -> None:
        self._model = model
        self._tasks = tasks

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._model, name)
        if name not in ANSWERS:
            return value

        @wraps(value)  # scikit-learn asks for its name
        def answer(X: Any) -> Any:
            return value(X, tasks=self._tasks)

        return answer
