"""Choosing the number of experts.

``"bic"`` and ``"icl"`` take the likelihood view: a mixture of regressions, with a price on its
parameters; each expert has noise of its own, and some samples may follow none. ``"cv"`` takes the
paper's: the loss of the best answer to samples out of the fold. More answers are better even where
there is nothing to answer, so that this loss is compared with what as many answers achieve without
experts: for numbers, the best offsets for normal noise; for classes, the first choices of a single
classifier. Of numbers that are as good as the best (by ``"cv"`` within one standard error, else by
a difference that is not worth a mention) the smallest is chosen.
"""

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.stats import norm
from sklearn.base import BaseEstimator, _fit_context, clone
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight

from clustruct._finite import without_warnings
from clustruct._typing import Floats
from clustruct.estimators.intake import Samples, place_matrix, validate, weigh
from clustruct.estimators.options import conclude, counter
from clustruct.estimators.samples.models import SampleClusterClassifier, SampleClusterRegressor
from clustruct.kernels import kmeans1d
from clustruct.losses import Loss, loss_of
from clustruct.results import CountSelection
from clustruct.solvers.driver import Callback
from clustruct.solvers.experts.counting import COUNT_CRITERIA
from clustruct.solvers.experts.recipes import SUBSET, draw_rows

__all__ = ["SampleClusterClassifierCV", "SampleClusterRegressorCV"]


QUANTILES = 20_001
# A difference of criteria that is not worth more than a bare mention (Kass and Raftery, 1995).
BARE_MENTION = 2.0


class _CountSearch(BaseEstimator):
    """Fit for every number of experts, and keep the best."""

    _search_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": ["array-like", Interval(Integral, 1, None, closed="left")],
        "criterion": [StrOptions({"bic", "icl", "cv"})],
        "cv": ["cv_object"],
    }

    def _search(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        """Set the attributes of the best model as one's own."""
        if self.criterion != "cv" and not loss_of(self).has_likelihood:
            raise ValueError(
                f"criterion={self.criterion!r} needs a likelihood, which loss={self.loss!r} does "
                "not have. Choose criterion='cv', or another loss."
            )
        seed = int(check_random_state(self.random_state).randint(2**31))
        design, targets = validate(self, X, y)
        if not design.on_host:
            drawn = draw_samples(weigh(design, targets, sample_weight), seed)
            selection = self._search_on_part(drawn, seed)
            self._adopt(self._model(selection.best, seed, gate=True).fit(X, y, sample_weight))
            self.selection_ = selection
            return
        counts = self._counts(targets)
        if self.criterion == "cv":
            folds, losses = self._held_out(counts, X, y, sample_weight, seed)
            values, errors = folds.mean(axis=1), _errors(folds)
            best = _fewest(values, errors[values.argmin()])
            model = self._model(counts[best], seed, gate=True).fit(X, y, sample_weight)
        else:
            models, criteria = [], []
            tell = counter(self.verbose, "fit", len(counts))
            for count in counts:
                models.append(self._model(count, seed).fit(X, y, sample_weight))
                criteria.append(self._criterion(models[-1], X, y, sample_weight))
                tell()
            values = np.array(criteria)
            folds = values[:, None]
            losses = np.array([m.best_loss(X, y, sample_weight) for m in models])
            errors = np.zeros_like(values)
            best = _fewest(values, BARE_MENTION)
            model = models[best]
            if self.gate is not None and self.gate is not False:
                model = self._model(counts[best], seed, gate=True).fit(X, y, sample_weight)
        self._adopt(model)
        conclude(self.verbose, self.status_, self.certificate_)
        numbers = np.array(counts, dtype=np.intp)
        self.selection_ = CountSelection(
            self.criterion, numbers, values, errors, losses, counts[best], folds
        )

    # Derived from `selection_`, which model files hold.

    @property
    def cv_results_(self) -> dict[str, Any]:
        """The criterion for every number of experts, as scikit-learn's searches have it."""
        return self.selection_.as_cv_results()

    @property
    def best_index_(self) -> int:
        """Index of the number of experts that was chosen into the columns of `cv_results_`."""
        return self.selection_.best_index

    @property
    def best_params_(self) -> dict[str, int]:
        """The number of experts that was chosen."""
        return {"n_clusters": self.selection_.best}

    @property
    def best_score_(self) -> float:
        """The negative criterion of that number."""
        return 0.0 - float(self.selection_.values[self.best_index_])

    def _search_on_part(self, drawn: tuple[Any, NDArray[Any], Floats], seed: int) -> CountSelection:
        """Choose the number of experts on samples drawn by weight."""
        few = clone(self).set_params(gate=None, random_state=seed, verbose=0, callback=None)
        selection: CountSelection = few.fit(*drawn).selection_
        return selection

    def _adopt(self, model: Any) -> None:
        """What was fitted, as one's own."""
        for name, value in vars(model).items():
            if name.endswith("_") or name.startswith("_"):
                setattr(self, name, value)

    def _model(
        self, n_clusters: int, seed: int, *, gate: bool = False, watched: bool = True
    ) -> Any:
        """The plain model with that many experts, its steps told to the callback or not."""
        parameters = self.get_params(deep=False)
        names = self._plain._get_param_names()
        settings = {name: parameters[name] for name in names}
        settings |= {"n_clusters": n_clusters, "random_state": seed}
        settings["verbose"] = int(self.verbose) > 1
        if not watched:
            settings["callback"] = None
        if not gate:
            settings["gate"] = None
        elif hasattr(self.gate, "fit"):
            settings["gate"] = clone(self.gate)
        return self._plain(**settings)

    def _criterion(
        self, model: Any, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> float:
        """The information criterion of a fit."""
        objective = model._objective_on(X, y)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
        kept = np.flatnonzero(weights > 0)
        objective = objective.subset(kept, weights[kept])
        response = objective.response
        nothing = np.zeros((1, *objective.shape)), np.zeros((1, response.n_outputs))
        constant = float(response.shares @ objective.costs(*nothing)[:, 0])
        noise = response.loss.noise(response.n_outputs, constant)
        criterion = COUNT_CRITERIA[self.criterion]
        return criterion(objective, noise, model._W, model._b, float(weights.sum()))

    def _held_out(
        self,
        counts: list[int],
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        seed: int,
    ) -> tuple[Floats, Floats]:
        """Criterion of each number on each fold, and the mean best-of-Q loss."""
        matrix, answers = _indexable(X), np.asarray(y)
        weights = _check_sample_weight(sample_weight, matrix, dtype=np.float64)
        folds = check_cv(self.cv, answers, classifier=self._stratified).split(matrix, answers)
        folds = list(folds)
        values = np.empty((len(folds), len(counts)))
        losses = np.empty_like(values)
        tell = counter(self.verbose, "fit", values.size)
        for f, (rest, held) in enumerate(folds):
            others, sample = (
                (matrix[index], answers[index], weights[index]) for index in (rest, held)
            )
            single = self._model(1, seed, watched=False).fit(*others)
            for c, count in enumerate(counts):
                model = self._model(count, seed, watched=False).fit(*others)
                losses[f, c] = model.best_loss(*sample)
                values[f, c] = self._compared(model, single, *sample)
                tell()
        return values.T, losses.mean(axis=0)

    def _counts(self, y: NDArray[Any]) -> list[int]:
        """The numbers to try."""
        counts = list(np.atleast_1d(self.n_clusters))
        if not counts or not all(isinstance(q, Integral) and int(q) >= 1 for q in counts):
            raise ValueError(
                f"n_clusters={self.n_clusters!r} must hold whole numbers of experts, 1 or more."
            )
        possible = sorted({int(q) for q in counts if q <= self._most(y)})
        if not possible:
            raise ValueError(
                f"n_clusters={self.n_clusters!r} holds no number that is possible for these "
                f"samples: at most {self._most(y)} experts can be fitted. Give smaller numbers."
            )
        return possible


class SampleClusterRegressorCV(_CountSearch, SampleClusterRegressor):
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
        Folds for ``criterion="cv"``.
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
        Starts that run at the same time.
    random_state : int, RandomState instance or None, default=None
        Seed.
    verbose : int or bool, default=0
        1 writes a line to standard error for each fit that is done, with the time spent and left;
        2 also prints the steps of these fits.
    callback : callable, default=None
        Called with each `Iteration` of a fit to all samples; returning True ends that fit.

    Attributes
    ----------
    selection_ : CountSelection
        The criterion for every number of experts.
    cv_results_ : dict
        The same with the columns of scikit-learn's searches, the negative criterion as the score:
        ``pandas.DataFrame(model.cv_results_)``.
    best_params_ : dict
        What was chosen: ``n_clusters``.
    best_score_ : float
        The negative criterion there.
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
    _stratified = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SampleClusterRegressor._parameter_constraints,
        **_CountSearch._search_constraints,
    }

    def __init__(
        self,
        n_clusters: int | Sequence[int] = (1, 2, 3, 4, 5, 6, 7, 8),
        *,
        criterion: str = "bic",
        cv: Any = 5,
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
        super().__init__(
            n_clusters,  # type: ignore[arg-type]
            alpha=alpha,
            gate=gate,
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
        self.criterion = criterion
        self.cv = cv

    @_fit_context(prefer_skip_nested_validation=False)
    @without_warnings
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> "SampleClusterRegressorCV":
        """Fit experts, as many as the criterion chooses.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Answers.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples; an integer weight counts as that many repetitions.

        Returns
        -------
        SampleClusterRegressorCV
            Itself.
        """
        self._search(X, y, sample_weight)
        return self

    def _most(self, y: NDArray[Any]) -> int:
        return int(y.shape[0])

    def _compared(self, model: Any, single: Any, X: Any, y: Any, weights: Floats) -> float:
        """Logarithm of the best-of-Q loss, less that of as many offsets for normal noise."""
        tiny = np.finfo(np.float64).tiny
        loss = max(model.best_loss(X, y, weights), tiny)
        return float(np.log(loss) - np.log(offset_loss(model.n_clusters_)))


class SampleClusterClassifierCV(_CountSearch, SampleClusterClassifier):
    """Several linear classifiers, as many as the data call for.

    Parameters
    ----------
    n_clusters : int or sequence of int, default=(1, 2, 3, 4, 5, 6, 7, 8)
        Numbers of experts to try; those that are not less than the number of classes are left out.
    criterion : {"bic", "icl", "cv"}, default="bic"
        Bayesian information criterion of the mixture of classifiers, the same with a price on
        overlap, or errors by cross-validation, see Notes.
    cv : int, cross-validation generator or iterable, default=5
        Folds for ``criterion="cv"``.
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
        Starts that run at the same time.
    random_state : int, RandomState instance or None, default=None
        Seed.
    verbose : int or bool, default=0
        1 writes a line to standard error for each fit that is done, with the time spent and left;
        2 also prints the steps of these fits.
    callback : callable, default=None
        Called with each `Iteration` of a fit to all samples; returning True ends that fit.

    Attributes
    ----------
    selection_ : CountSelection
        The criterion for every number of experts.
    cv_results_ : dict
        The same with the columns of scikit-learn's searches, the negative criterion as the score:
        ``pandas.DataFrame(model.cv_results_)``.
    best_params_ : dict
        What was chosen: ``n_clusters``.
    best_score_ : float
        The negative criterion there.
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
    _stratified = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SampleClusterClassifier._parameter_constraints,
        **_CountSearch._search_constraints,
    }

    def __init__(
        self,
        n_clusters: int | Sequence[int] = (1, 2, 3, 4, 5, 6, 7, 8),
        *,
        criterion: str = "bic",
        cv: Any = 5,
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
        super().__init__(
            n_clusters,  # type: ignore[arg-type]
            alpha=alpha,
            gate=gate,
            loss=loss,
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
        self.criterion = criterion
        self.cv = cv

    @_fit_context(prefer_skip_nested_validation=False)
    @without_warnings
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> "SampleClusterClassifierCV":
        """Fit experts, as many as the criterion chooses.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples; an integer weight counts as that many repetitions.

        Returns
        -------
        SampleClusterClassifierCV
            Itself.
        """
        self._search(X, y, sample_weight)
        return self

    def _most(self, y: NDArray[Any]) -> int:
        return max(1, int(np.unique(y).size) - 1)

    def _compared(self, model: Any, single: Any, X: Any, y: Any, weights: Floats) -> float:
        """Error of the experts' answers, less that of a single classifier's first choices."""
        order = np.argsort(-single._weighted(place_matrix(single, X)), axis=1, kind="stable")
        answers = single.classes_[order[:, : model.n_clusters_]]
        missed = (answers != np.asarray(y)[:, None]).all(axis=1)
        return model.best_error(X, y, weights) - float(np.average(missed, weights=weights))


def _errors(folds: Floats) -> Floats:
    """Standard errors of means over folds, one row each; zero where there is one fold only."""
    n_folds = folds.shape[1]
    if n_folds == 1:
        return np.zeros(folds.shape[0])
    return np.asarray(folds.std(axis=1, ddof=1) / np.sqrt(n_folds))


def _indexable(X: Any) -> Any:
    """A matrix whose rows can be taken."""
    return X.tocsr() if sparse.issparse(X) else np.asarray(X)


def offset_loss(count: int) -> float:
    """Mean squared distance of a standard normal number to the nearest of its best offsets."""
    grid = norm.ppf((np.arange(QUANTILES) + 0.5) / QUANTILES)
    return float(kmeans1d.cluster_values(grid, None, count)[3]) / QUANTILES


def _fewest(values: Floats, margin: float) -> int:
    """The first of the values that are as good as the best, up to a margin."""
    return int(np.flatnonzero(values <= values.min() + margin)[0])


def draw_samples(samples: Samples, seed: int) -> tuple[Any, NDArray[Any], Floats]:
    """Some samples on the host, drawn by weight: matrix, targets and how often each was drawn.

    All of them, with their own weights, where they are few.
    """
    design, shares = samples.design, samples.design.place(samples.shares)
    if few := design.shape[0] <= SUBSET:
        index = np.arange(design.shape[0])
    else:
        index, counts = draw_rows(design, shares, seed)
    matrix, (own, targets) = design.fetch(index, shares, samples.targets)
    return matrix, targets, own * samples.total if few else counts
