"""Several linear models, as many as the data call for."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from clustruct._typing import Floats
from clustruct.estimators.intake import place_matrix
from clustruct.estimators.samples.models import SampleClusterClassifier, SampleClusterRegressor
from clustruct.estimators.samples.search import CountSearch, offset_loss
from clustruct.estimators.search.engine import set_parameters
from clustruct.losses import Loss
from clustruct.solvers.driver import Callback

__all__ = ["SampleClusterClassifierCV", "SampleClusterRegressorCV"]


class SampleClusterRegressorCV(CountSearch, SampleClusterRegressor):
    """Several linear regressions, as many as the data call for.

    Parameters
    ----------
    n_clusters : int or sequence of int, default=(1, 2, 3, 4, 5, 6, 7, 8)
        Numbers of experts to try; those beyond the number of samples are left out.
    criterion : {"bic", "icl", "cv"}, default="bic"
        Bayesian information criterion of a mixture of regressions, the same with a price on
        overlap (integrated completed likelihood), or the loss of the best answer by
        cross-validation, see Notes.
    cv : int, cross-validation generator or iterable, default=5
        Folds for ``criterion="cv"``; an integer makes folds in the order of the samples.
    scoring : str or callable, default=None
        Score to maximise with ``criterion="cv"``: a name that scikit-learn knows or a function of
        model, samples and targets, which score `predict`. None compares the loss of the best
        expert, see Notes.
    rule : {"fewest", "best", "one_se"}, default="fewest"
        The fewest experts that are as good as the best number: within one standard error by
        ``"cv"``, else by a difference that is not worth a mention; the best number; or the fewest
        within one standard error, by ``"cv"`` only.
    alpha : float, default=1e-3
        Strength of the ridge.
    gate : bool or classifier, default=None
        What learns from ``x`` which expert answers.
    loss : {"squared", "huber"} or Loss, default="squared"
        Half the squared residual, or linear beyond `huber_delta`, or your own.
    huber_delta : float, default=1.35
        Residual at which the Huber loss turns linear, in the units of ``y``.
    fit_intercept : bool, default=True
        Whether each expert has an intercept.
    solver : {"auto", "am", "pg", "cg", "rc", "em"}, default="auto"
        How experts are found.
    n_init : "auto" or int, default="auto"
        Number of starts.
    max_iter : int, default=500
        Largest number of steps of a solver.
    tol : float, default=1e-6
        A solver stops when a step gains less than this fraction of the objective.
    solver_options : dict, default=None
        Options of the solver.
    n_jobs : int, default=None
        Folds or fits of the search, and starts of the final fit, that run at the same time. It
        does not change the result.
    random_state : int, RandomState instance or None, default=None
        Seed.
    verbose : int or bool, default=0
        1 writes a line to standard error for each fold or fit that is done, with the time spent and
        left; 2 also prints the steps of these fits.
    callback : callable, default=None
        Called with each `Iteration` of a fit to all samples; returning True ends that fit.

    Attributes
    ----------
    selection_ : CountSelection
        The criterion for every number of experts.
    cv_results_ : dict
        The same with the columns of scikit-learn's searches, with a score that is larger for the
        better, such as the negative criterion:
        ``pandas.DataFrame(model.cv_results_)``.
    best_params_ : dict
        What was chosen: ``n_clusters``.
    best_score_ : float
        The score there.
    best_index_ : int
        Its index into the columns of `cv_results_`.
    experts_ : ndarray of shape (n_experts, n_features) or (n_experts, n_outputs, n_features)
        Weights of the experts; this and all other attributes are those of
        `SampleClusterRegressor`.

    See Also
    --------
    SampleClusterRegressor : The model with a given number of experts.

    Notes
    -----
    The mixture that ``"bic"`` and ``"icl"`` judge gives every expert noise of its own, and spreads
    a share of the samples evenly: else experts would be added to make up for samples that follow
    one rule more closely than another, or none.

    The loss of the best answer falls with every expert, even where there is none to find. With
    ``criterion="cv"`` its logarithm is compared with that of as many offsets, placed as well as
    can be, for normal noise around a single regression; the smallest number of experts within one
    standard error of the best is chosen.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_experts(400, 3, 3, random_state=0)
    >>> model = cs.SampleClusterRegressorCV((1, 2, 3, 4), random_state=0)
    >>> model.fit(problem.X, problem.y).n_clusters_
    3
    """

    _plain = SampleClusterRegressor
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SampleClusterRegressor._parameter_constraints,
        **CountSearch._search_constraints,
    }

    def __init__(
        self,
        n_clusters: int | Sequence[int] = (1, 2, 3, 4, 5, 6, 7, 8),
        *,
        criterion: str = "bic",
        cv: Any = 5,
        scoring: str | Callable[..., float] | None = None,
        rule: str = "fewest",
        alpha: float = 1e-3,
        gate: Any = None,
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

    def _most(self, y: NDArray[Any]) -> int:
        return int(y.shape[0])

    @staticmethod
    def _compared(model: Any, single: Callable[[], Any], X: Any, y: Any, weights: Floats) -> float:
        """Logarithm of the best-of-Q loss, less that of as many offsets for normal noise."""
        tiny = np.finfo(np.float64).tiny
        loss = max(model.best_loss(X, y, weights), tiny)
        return float(np.log(loss) - np.log(offset_loss(model.n_clusters_)))


class SampleClusterClassifierCV(CountSearch, SampleClusterClassifier):
    """Several linear classifiers, as many as the data call for.

    Parameters
    ----------
    n_clusters : int or sequence of int, default=(1, 2, 3, 4, 5, 6, 7, 8)
        Numbers of experts to try; those that are not less than the number of classes are left out.
    criterion : {"bic", "icl", "cv"}, default="bic"
        Bayesian information criterion of the mixture of classifiers, the same with a price on
        overlap, or errors by cross-validation, see Notes.
    cv : int, cross-validation generator or iterable, default=5
        Folds for ``criterion="cv"``; an integer makes folds in the order of the samples.
    scoring : str or callable, default=None
        Score to maximise with ``criterion="cv"``: a name that scikit-learn knows or a function of
        model, samples and targets, which score `predict`. None compares the loss of the best
        expert, see Notes.
    rule : {"fewest", "best", "one_se"}, default="fewest"
        The fewest experts that are as good as the best number: within one standard error by
        ``"cv"``, else by a difference that is not worth a mention; the best number; or the fewest
        within one standard error, by ``"cv"`` only.
    alpha : float, default=1e-3
        Strength of the ridge.
    gate : bool or classifier, default=None
        What learns from ``x`` which expert answers.
    loss : {"logistic", "squared"} or Loss, default="logistic"
        Logistic, or squared on targets -1 and 1, or your own.
    class_weight : dict or "balanced", default=None
        Weights of the classes, which multiply those of the samples.
    fit_intercept : bool, default=True
        Whether each expert has intercepts.
    solver : {"auto", "am", "pg", "cg", "rc", "em"}, default="auto"
        How experts are found.
    n_init : "auto" or int, default="auto"
        Number of starts.
    max_iter : int, default=500
        Largest number of steps of a solver.
    tol : float, default=1e-6
        A solver stops when a step gains less than this fraction of the objective.
    solver_options : dict, default=None
        Options of the solver.
    n_jobs : int, default=None
        Folds or fits of the search, and starts of the final fit, that run at the same time. It
        does not change the result.
    random_state : int, RandomState instance or None, default=None
        Seed.
    verbose : int or bool, default=0
        1 writes a line to standard error for each fold or fit that is done, with the time spent and
        left; 2 also prints the steps of these fits.
    callback : callable, default=None
        Called with each `Iteration` of a fit to all samples; returning True ends that fit.

    Attributes
    ----------
    selection_ : CountSelection
        The criterion for every number of experts.
    cv_results_ : dict
        The same with the columns of scikit-learn's searches, with a score that is larger for the
        better, such as the negative criterion:
        ``pandas.DataFrame(model.cv_results_)``.
    best_params_ : dict
        What was chosen: ``n_clusters``.
    best_score_ : float
        The score there.
    best_index_ : int
        Its index into the columns of `cv_results_`.
    classes_ : ndarray of shape (n_classes,)
        The classes; this and all other attributes are those of `SampleClusterClassifier`.

    See Also
    --------
    SampleClusterClassifier : The model with a given number of experts.

    Notes
    -----
    With ``criterion="cv"`` the share of samples whose class is among no expert's answers is
    compared with that of a single classifier which gives as many answers; the smallest number of
    experts within one standard error of the best is chosen.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_experts(
    ...     200, 3, 2, n_outputs=3, noise=0.1, classification=True, random_state=0
    ... )
    >>> model = cs.SampleClusterClassifierCV((1, 2), n_init=1, random_state=0)
    >>> model.fit(problem.X, problem.y).selection_.n_clusters.tolist()
    [1, 2]
    """

    _plain = SampleClusterClassifier
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SampleClusterClassifier._parameter_constraints,
        **CountSearch._search_constraints,
    }

    def __init__(
        self,
        n_clusters: int | Sequence[int] = (1, 2, 3, 4, 5, 6, 7, 8),
        *,
        criterion: str = "bic",
        cv: Any = 5,
        scoring: str | Callable[..., float] | None = None,
        rule: str = "fewest",
        alpha: float = 1e-3,
        gate: Any = None,
        loss: str | Loss = "logistic",
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

    def _most(self, y: NDArray[Any]) -> int:
        return max(1, int(np.unique(y).size) - 1)

    @staticmethod
    def _compared(model: Any, single: Callable[[], Any], X: Any, y: Any, weights: Floats) -> float:
        """Error of the experts' predictions, less that of a single classifier's first choices."""
        one = single()
        order = np.argsort(-one._weighted(place_matrix(one, X)), axis=1, kind="stable")
        choices = one.classes_[order[:, : model.n_clusters_]]
        missed = (choices != np.asarray(y)[:, None]).all(axis=1)
        return model.best_error(X, y, weights) - float(np.average(missed, weights=weights))
