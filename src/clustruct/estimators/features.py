"""Linear models whose features share weights in groups."""

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    RegressorMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.extmath import softmax
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from clustruct.design import as_design
from clustruct.estimators.blocks import choose_constraint
from clustruct.estimators.grid import Method, choose_objective
from clustruct.estimators.inputs import (
    MATRIX_CHECKS,
    check_matrix,
    check_options,
    check_start,
    class_targets,
    class_weights,
    printer,
    weigh_rows,
    with_features_of,
)
from clustruct.losses import HuberLoss, Loss, SquaredLoss
from clustruct.objectives.linear import Response
from clustruct.results import FeatureGroup
from clustruct.solvers.driver import Answer, Budget
from clustruct.solvers.features import OPTIONS, RECIPES, FeatureOutcome

__all__ = ["FeatureClusterClassifier", "FeatureClusterRegressor"]

Floats = NDArray[np.float64]


class _FeatureCluster(TransformerMixin, BaseEstimator):
    """What regression and classification share."""

    n_clusters: Any  # one value here, a sequence of them for a search
    n_nonzero: Any

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left"), Mapping, None],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "n_nonzero": [Interval(Integral, 1, None, closed="left"), None],
        "blocks": ["array-like", None],
        "fit_intercept": ["boolean"],
        "solver": [StrOptions(set(RECIPES))],
        "init": [StrOptions({"auto", "greedy", "zeros"}), "array-like"],
        "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "solver_options": [Mapping, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def _fit_design(self, X: Any, response: Response) -> None:
        """Solve for a validated matrix and set the attributes."""
        design = as_design(X)
        constraint = choose_constraint(
            design.shape[1], self.n_clusters, self.n_nonzero, self.blocks
        )
        method = self._method((design.shape[1], response.n_outputs))
        self._set_outcome(method.fit(choose_objective(design, response, self.alpha), constraint))

    def _method(self, shape: tuple[int, int]) -> Method:
        """How to fit weights of that shape."""
        return Method(
            solver=self.solver,
            budget=Budget(self.max_iter, self.tol, printer(self.verbose)),
            start=check_start(self.init, shape),
            n_starts=None if self.n_init == "auto" else self.n_init,
            seed=int(check_random_state(self.random_state).randint(2**31)),
            options=check_options(self.solver, self.solver_options, OPTIONS),
        )

    def _set_outcome(self, outcome: FeatureOutcome) -> None:
        """All attributes of a fitted model."""
        self._set_answer(outcome.answer)
        self.objective_ = outcome.answer.point.value
        self.certificate_ = outcome.certificate
        self.n_iter_ = outcome.status.n_iter
        self.status_ = outcome.status
        self.trace_ = outcome.trace

    def _set_answer(self, answer: Answer) -> None:
        """Weights and groups."""
        self.labels_, values = ordered_groups(answer)
        self._weights = answer.point.W
        self.cluster_values_ = values if self._many_outputs() else values[:, 0]
        self.cluster_sizes_ = np.bincount(
            self.labels_[self.labels_ >= 0], minlength=values.shape[0]
        ).astype(np.intp)
        self.n_clusters_ = values.shape[0]
        self._set_linear(answer.point.W, answer.point.intercept)

    def transform(self, X: ArrayLike) -> Floats:
        """Add up the columns of each group.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_groups)
            One column a group, in the order of `cluster_values_`.
        """
        check_is_fitted(self)
        matrix = check_matrix(self, X)
        sums = as_design(matrix).group_sums(self.labels_, self.n_clusters_)
        return sums.astype(matrix.dtype, copy=False)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Names of the columns that `transform` returns.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Ignored, as the columns are groups of features.

        Returns
        -------
        ndarray of str
            ``group0``, ``group1``, ...
        """
        check_is_fitted(self)
        return np.array([f"group{q}" for q in range(self.n_clusters_)], dtype=object)

    def clusters(self) -> list[FeatureGroup]:
        """The groups as a table: value, size and feature names of each.

        Returns
        -------
        list of FeatureGroup
            In the order of their values; the features without weight, if any, come last with
            label -1. ``pandas.DataFrame(model.clusters())`` makes a data frame of it.
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            names = np.array([f"x{j}" for j in range(self.n_features_in_)], dtype=object)
        order = np.argsort(self.labels_, kind="stable")
        bounds = np.flatnonzero(np.diff(self.labels_[order])) + 1
        groups = [self._group(members, names) for members in np.split(order, bounds)]
        return groups if groups[0].label >= 0 else [*groups[1:], groups[0]]

    def _group(self, members: NDArray[np.intp], names: NDArray[Any]) -> FeatureGroup:
        """The group of some features, which share a label."""
        weight = self._weights[members[0]]
        return FeatureGroup(
            label=int(self.labels_[members[0]]),
            weight=weight.copy() if self._many_outputs() else float(weight[0]),
            size=members.size,
            features=tuple(str(name) for name in names[members]),
        )

    def __sklearn_is_fitted__(self) -> bool:
        """Whether a fit went through: one that fails leaves the number of features behind."""
        return hasattr(self, "coef_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class FeatureClusterRegressor(RegressorMixin, _FeatureCluster):
    """Linear regression whose features fall into groups with shared weights.

    Minimises the mean loss plus ridge over weights with few distinct values,

    ``(1/S) sum_i s_i loss(y_i, x_i' w + b) + alpha/2 ||w||^2``,

    and finds the groups while it fits. With several outputs, features are grouped alike for
    all of them, and each group has one weight for each output.

    Parameters
    ----------
    n_clusters : int, mapping or None, default=8
        Largest number of distinct weights. With `blocks`, the number in all blocks together, or a
        mapping from block to number. None, which needs `n_nonzero`, sets no limit.
    alpha : float, default=1e-3
        Strength of the ridge, on the scale of the mean loss.
    n_nonzero : int, default=None
        Largest number of features with a weight that is not zero; None for no limit. Weight zero
        does not count as a group.
    loss : {"squared", "huber"}, default="squared"
        Half the squared residual, or linear beyond `huber_delta`.
    huber_delta : float, default=1.35
        Residual at which the Huber loss turns linear, in the units of ``y``.
    blocks : array-like of shape (n_features,), default=None
        A block for each feature: weights are shared only inside a block. -1 leaves a feature alone.
    fit_intercept : bool, default=True
        Whether to add an intercept, which is neither penalised nor clustered.
    solver : {"auto", "greedy", "pg", "cg", "cgpg", "soft"}, default="auto"
        How the groups are found, see Notes.
    init : {"auto", "greedy", "zeros"} or array-like, default="auto"
        Where ``"pg"`` begins: at the weights without constraint ("auto" or "greedy"), at zero, or
        at given weights, shaped as `coef_`.
    n_init : "auto" or int, default="auto"
        Number of starts of ``"pg"`` and ``"soft"``.
    max_iter : int, default=500
        Largest number of steps of a solver.
    tol : float, default=1e-6
        A solver stops when a step gains less than this fraction of the objective.
    solver_options : dict, default=None
        Options of the solver, see Notes.
    random_state : int, RandomState instance or None, default=None
        Seed of the random starts.
    verbose : int or bool, default=0
        Whether to print each step.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_outputs, n_features)
        Weights.
    intercept_ : float or ndarray of shape (n_outputs,)
        Intercept.
    labels_ : ndarray of shape (n_features,)
        Group of each feature, -1 for weight zero by `n_nonzero`.
    cluster_values_ : ndarray of shape (n_groups,) or (n_groups, n_outputs)
        Weight of each group, ascending.
    cluster_sizes_ : ndarray of shape (n_groups,)
        Number of features in each group.
    n_clusters_ : int
        Groups in use. Features left alone by `blocks` are groups of one.
    objective_ : float
        Objective at the weights.
    certificate_ : Certificate
        A proven lower bound of the best possible objective, and the gap to it.
    n_iter_ : int
        Steps of the solver.
    status_ : Status
        What was done and how it ended.
    trace_ : tuple of Iteration
        Objective, step and time of each step.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if they are strings.

    See Also
    --------
    FeatureClusterClassifier : The same for classes.
    FeatureClusterRegressorCV : Chooses the number of groups and the ridge.

    Notes
    -----
    ``"greedy"`` groups the weights of a fit without constraint and refits the groups (option
    ``refit=False`` keeps the means). ``"pg"`` is projected gradient (options ``refit``,
    ``longest``, ``shortest``, ``shrink``). ``"cg"`` is conditional gradient on a convex relaxation,
    for squared loss (option ``step="classic"`` or ``"line_search"``), and ``"cgpg"`` continues it
    with ``"pg"``. ``"soft"`` searches from many starts, for up to two thousand
    features. ``"auto"`` tries what suits the problem and keeps the best.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_clustered_features(200, 20, 3, random_state=0)
    >>> model = cs.FeatureClusterRegressor(3, alpha=1e-4).fit(problem.X, problem.y)
    >>> bool((model.labels_ == problem.labels).all())
    True
    >>> model.transform(problem.X).shape
    (200, 3)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_FeatureCluster._parameter_constraints,
        "loss": [StrOptions({"squared", "huber"})],
        "huber_delta": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        n_clusters: int | Mapping[Any, int] | None = 8,
        *,
        alpha: float = 1e-3,
        n_nonzero: int | None = None,
        loss: str = "squared",
        huber_delta: float = 1.35,
        blocks: ArrayLike | None = None,
        fit_intercept: bool = True,
        solver: str = "auto",
        init: str | ArrayLike = "auto",
        n_init: str | int = "auto",
        max_iter: int = 500,
        tol: float = 1e-6,
        solver_options: Mapping[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int | bool = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.alpha = alpha
        self.n_nonzero = n_nonzero
        self.loss = loss
        self.huber_delta = huber_delta
        self.blocks = blocks
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.solver_options = solver_options
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> "FeatureClusterRegressor":
        """Fit the model.

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
        FeatureClusterRegressor
            Itself.
        """
        matrix, answers = self._check_data(X, y)
        matrix, answers, shares = weigh_rows(matrix, answers, sample_weight)
        self._fit_design(matrix, self._respond(answers, shares))
        return self

    def _check_data(self, X: ArrayLike, y: ArrayLike) -> tuple[Any, NDArray[Any]]:
        """Validated samples and answers."""
        matrix, answers = validate_data(
            self, X, y, multi_output=True, y_numeric=True, **MATRIX_CHECKS
        )
        return matrix, answers

    def _respond(self, answers: NDArray[Any], shares: Floats) -> Response:
        """What the scores are held against."""
        target = np.asarray(answers, dtype=np.float64)
        self._single = target.ndim == 1
        target = target.reshape(target.shape[0], -1)
        loss: Loss = SquaredLoss() if self.loss == "squared" else HuberLoss(self.huber_delta)
        return Response(target, loss, target.shape[1], shares, self.fit_intercept)

    def predict(self, X: ArrayLike) -> Floats:
        """Predict answers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Answers.
        """
        check_is_fitted(self)
        scores = as_design(check_matrix(self, X)).scores(self._weights)
        answers: Floats = scores[:, 0] if self._single else scores
        return answers + self.intercept_

    def to_sklearn(self) -> LinearRegression:
        """The same model as a plain one of scikit-learn, for tools that know nothing of groups.

        Returns
        -------
        LinearRegression
            Fitted, with the same predictions.
        """
        check_is_fitted(self)
        model = LinearRegression(fit_intercept=self.fit_intercept)
        model.coef_, model.intercept_ = self.coef_, self.intercept_
        return with_features_of(self, model)

    def _many_outputs(self) -> bool:
        return not self._single

    def _set_linear(self, W: Floats, intercept: Floats) -> None:
        self.coef_ = W[:, 0].copy() if self._single else W.T.copy()
        self.intercept_ = float(intercept[0]) if self._single else intercept

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class FeatureClusterClassifier(ClassifierMixin, _FeatureCluster):
    """Linear classification whose features fall into groups with shared weights.

    With two classes a feature has one weight; with more, one for each class, and features are
    grouped alike for all classes.

    Parameters
    ----------
    n_clusters : int, mapping or None, default=8
        Largest number of distinct weights, as in `FeatureClusterRegressor`.
    alpha : float, default=1e-3
        Strength of the ridge, on the scale of the mean loss.
    n_nonzero : int, default=None
        Largest number of features with a weight that is not zero; None for no limit.
    loss : {"logistic", "squared"}, default="logistic"
        Logistic (multinomial for more than two classes), or squared on targets -1 and 1.
    class_weight : dict or "balanced", default=None
        Weights of the classes, which multiply those of the samples.
    blocks : array-like of shape (n_features,), default=None
        A block for each feature: weights are shared only inside a block. -1 leaves a feature alone.
    fit_intercept : bool, default=True
        Whether to add an intercept, which is neither penalised nor clustered.
    solver : {"auto", "greedy", "pg", "cg", "cgpg", "soft"}, default="auto"
        How the groups are found, as in `FeatureClusterRegressor`.
    init : {"auto", "greedy", "zeros"} or array-like, default="auto"
        Where ``"pg"`` begins.
    n_init : "auto" or int, default="auto"
        Number of starts of ``"pg"`` and ``"soft"``.
    max_iter : int, default=500
        Largest number of steps of a solver.
    tol : float, default=1e-6
        A solver stops when a step gains less than this fraction of the objective.
    solver_options : dict, default=None
        Options of the solver.
    random_state : int, RandomState instance or None, default=None
        Seed of the random starts.
    verbose : int or bool, default=0
        Whether to print each step.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
    labels_ : ndarray of shape (n_features,)
        Group of each feature, -1 for weight zero by `n_nonzero`.
    cluster_values_ : ndarray of shape (n_groups,) or (n_groups, n_classes)
        Weight of each group, ascending.
    cluster_sizes_ : ndarray of shape (n_groups,)
        Number of features in each group.
    n_clusters_ : int
        Groups in use.
    objective_ : float
        Objective at the weights.
    certificate_ : Certificate
        A proven lower bound of the best possible objective, and the gap to it.
    n_iter_ : int
        Steps of the solver.
    status_ : Status
        What was done and how it ended.
    trace_ : tuple of Iteration
        Objective, step and time of each step.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if they are strings.

    See Also
    --------
    FeatureClusterRegressor : The same for numbers; its notes describe the solvers.
    FeatureClusterClassifierCV : Chooses the number of groups and the ridge.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_clustered_features(
    ...     500, 12, 2, low=-2, high=2, classification=True, random_state=1
    ... )
    >>> model = cs.FeatureClusterClassifier(2).fit(problem.X, problem.y)
    >>> bool((model.labels_ == problem.labels).all())
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_FeatureCluster._parameter_constraints,
        "loss": [StrOptions({"logistic", "squared"})],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        n_clusters: int | Mapping[Any, int] | None = 8,
        *,
        alpha: float = 1e-3,
        n_nonzero: int | None = None,
        loss: str = "logistic",
        class_weight: Mapping[Any, float] | str | None = None,
        blocks: ArrayLike | None = None,
        fit_intercept: bool = True,
        solver: str = "auto",
        init: str | ArrayLike = "auto",
        n_init: str | int = "auto",
        max_iter: int = 500,
        tol: float = 1e-6,
        solver_options: Mapping[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int | bool = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.alpha = alpha
        self.n_nonzero = n_nonzero
        self.loss = loss
        self.class_weight = class_weight
        self.blocks = blocks
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.solver_options = solver_options
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> "FeatureClusterClassifier":
        """Fit the model.

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
        FeatureClusterClassifier
            Itself.
        """
        matrix, classes = self._check_data(X, y)
        matrix, classes, shares = weigh_rows(matrix, classes, sample_weight)
        self._fit_design(matrix, self._respond(classes, shares))
        return self

    def _check_data(self, X: ArrayLike, y: ArrayLike) -> tuple[Any, NDArray[Any]]:
        """Validated samples and classes."""
        matrix, classes = validate_data(self, X, y, **MATRIX_CHECKS)
        check_classification_targets(classes)
        return matrix, classes

    def _respond(self, classes: NDArray[Any], shares: Floats) -> Response:
        """What the scores are held against."""
        self.classes_, codes = np.unique(classes, return_inverse=True)
        if self.classes_.size < 2:
            raise ValueError(
                f"y holds one class only, {self.classes_.tolist()[0]!r}; a classifier needs "
                "samples (of positive weight) of at least two classes."
            )
        if self.class_weight is not None:
            # 'balanced' goes by the weight of each class, so that repeated samples count as
            # weights.
            shares = shares * class_weights(self.class_weight, classes, shares)
            shares = shares / shares.sum()
        target, loss, n_outputs = class_targets(codes, self.classes_.size, self.loss)
        return Response(target, loss, n_outputs, shares, self.fit_intercept)

    def decision_function(self, X: ArrayLike) -> Floats:
        """Scores of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes, positive for the second.
        """
        check_is_fitted(self)
        scores = as_design(check_matrix(self, X)).scores(self._weights) + self.intercept_
        return scores if self._many_outputs() else scores[:, 0]

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Classes.
        """
        scores = self.decision_function(X)
        best = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(np.intp)
        return self.classes_[best]

    @available_if(lambda self: self.loss == "logistic")
    def predict_proba(self, X: ArrayLike) -> Floats:
        """Predict probabilities; with the logistic loss only.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.
        """
        return softmax(self._class_scores(X))

    @available_if(lambda self: self.loss == "logistic")
    def predict_log_proba(self, X: ArrayLike) -> Floats:
        """Predict logarithms of probabilities; with the logistic loss only.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Logarithms of `predict_proba`.
        """
        return log_softmax(self._class_scores(X), axis=1)

    def _class_scores(self, X: ArrayLike) -> Floats:
        """One score a class, also where there are two."""
        scores = self.decision_function(X)
        return scores if scores.ndim == 2 else np.stack([np.zeros_like(scores), scores], axis=1)

    def to_sklearn(self) -> LogisticRegression | RidgeClassifier:
        """The same model as a plain one of scikit-learn, for tools that know nothing of groups.

        Returns
        -------
        LogisticRegression or RidgeClassifier
            Fitted, with the same predictions.
        """
        check_is_fitted(self)
        if self.loss == "logistic":
            model = LogisticRegression(fit_intercept=self.fit_intercept)
            model.classes_ = self.classes_
        else:
            model = RidgeClassifier(fit_intercept=self.fit_intercept)
            model._label_binarizer = LabelBinarizer(neg_label=-1).fit(self.classes_)
            if not hasattr(model, "classes_"):  # newer releases take it from there no more
                model.classes_ = self.classes_
        model.coef_, model.intercept_ = self.coef_, self.intercept_
        return with_features_of(self, model)

    def _many_outputs(self) -> bool:
        return bool(self.classes_.size > 2)

    def _set_linear(self, W: Floats, intercept: Floats) -> None:
        self.coef_ = W.T.copy()
        self.intercept_ = intercept


def ordered_groups(answer: Answer) -> tuple[NDArray[np.intp], Floats]:
    """Labels and values of the groups in use, in the order of their values."""
    used, first, labels = np.unique(answer.labels, return_index=True, return_inverse=True)
    values = answer.point.W[first]
    order = np.lexsort((*values.T[::-1], used < 0))
    order = order[: np.count_nonzero(used >= 0)]
    ranks = np.full(used.size, -1, dtype=np.intp)
    ranks[order] = np.arange(order.size)
    return ranks[labels.reshape(-1)], values[order]
