"""Several linear experts, each sample answered by its best one."""

from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin, RegressorMixin, _fit_context
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from clustruct.estimators.inputs import (
    MATRIX_CHECKS,
    check_matrix,
    class_loss,
    class_targets,
    class_weights,
    total_weight,
    weigh_rows,
)
from clustruct.estimators.sample_base import SampleCluster
from clustruct.losses import HuberLoss, Loss, SquaredLoss
from clustruct.objectives.linear import Response
from clustruct.solvers.driver import Callback

__all__ = ["SampleClusterClassifier", "SampleClusterRegressor"]

Floats = NDArray[np.float64]


class SampleClusterRegressor(RegressorMixin, SampleCluster):
    """Several linear regressions, each sample answered by the one that fits it best.

    Minimises, over experts and the assignment of samples to them,

    ``(1/S) sum_i s_i (loss(y_i, v_q(i)' x_i + b_q(i)) + alpha/2 ||v_q(i)||^2)``.

    Which expert answers is known from ``y`` alone: for a new sample there are several answers, of
    which one is good, or their weighted mean. Where ``x`` tells which expert answers, a `gate` can
    learn it.

    Parameters
    ----------
    n_clusters : int, default=3
        Number of experts.
    alpha : float, default=1e-3
        Strength of the ridge, on the scale of the mean loss.
    gate : bool or classifier, default=None
        What learns from ``x`` which expert answers: any classifier with ``predict_proba``, or True
        for logistic regression. None or False for the same weights everywhere.
    loss : {"squared", "huber"}, default="squared"
        Half the squared residual, or linear beyond `huber_delta`.
    huber_delta : float, default=1.35
        Residual at which the Huber loss turns linear, in the units of ``y``.
    fit_intercept : bool, default=True
        Whether each expert has an intercept, which is not penalised.
    solver : {"auto", "am", "pg", "cg", "rc", "em"}, default="auto"
        How experts are found, see Notes.
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
        Seed of the starts, and of the folds of the gate.
    verbose : int or bool, default=0
        Whether to print each step.
    callback : callable, default=None
        Called with each `Iteration`; returning True ends the fit.

    Attributes
    ----------
    experts_ : ndarray of shape (n_experts, n_features) or (n_experts, n_outputs, n_features)
        Weights of the experts, those with the most samples first.
    intercepts_ : ndarray of shape (n_experts,) or (n_experts, n_outputs)
        Their intercepts.
    weights_ : ndarray of shape (n_experts,)
        Their shares of the samples' weight, descending.
    labels_ : ndarray of shape (n_samples,)
        Expert of each sample.
    n_clusters_ : int
        Experts in use; fewer than asked for where more could not improve the fit.
    objective_ : float
        Objective of the experts.
    certificate_ : Certificate
        A proven lower bound of the best possible objective, zero with intercepts.
    gate_ : classifier
        The fitted gate, if there is one.
    gate_score_ : GateScore
        What it is worth, on samples that it had not seen.
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
    SampleClusterClassifier : The same for classes.
    SampleClusterRegressorCV : Chooses the number of experts.

    Notes
    -----
    ``"am"`` alternates between experts and assignment, and comes after all others. ``"em"`` fits a
    mixture of regressions, cooled down from a high temperature; for squared loss also with a prior
    that takes weight from features that matter to no expert (option ``relevance``: "auto", True or
    False), if there is strong evidence for it; with ``refine=False`` the experts are those of the
    mixture, without ``"am"`` after it. ``"rc"`` is regression clustering with K-harmonic
    means. ``"pg"`` is projected gradient (options ``refit``, ``longest``, ``shortest``,
    ``shrink``). ``"cg"`` is conditional gradient on a convex relaxation, for squared loss (option
    ``step``). ``"auto"`` is ``"em"``, and ``"am"`` where there are many samples.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_experts(500, 4, 2, random_state=0)
    >>> model = cs.SampleClusterRegressor(2, random_state=0).fit(problem.X, problem.y)
    >>> model.predict_experts(problem.X).shape
    (500, 2)
    >>> bool(model.best_loss(problem.X, problem.y) < 0.01)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SampleCluster._parameter_constraints,
        "loss": [StrOptions({"squared", "huber"})],
        "huber_delta": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        n_clusters: int = 3,
        *,
        alpha: float = 1e-3,
        gate: Any = None,
        loss: str = "squared",
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
        self.n_clusters = n_clusters
        self.alpha = alpha
        self.gate = gate
        self.loss = loss
        self.huber_delta = huber_delta
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.solver_options = solver_options
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> "SampleClusterRegressor":
        """Fit the experts.

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
        SampleClusterRegressor
            Itself.
        """
        matrix, answers = validate_data(self, X, y, **self._checks())
        self._single = answers.ndim == 1
        kept, mine, shares = weigh_rows(matrix, answers, sample_weight)
        target, loss, n_outputs = self._target(mine)
        response = Response(target, loss, n_outputs, shares, self.fit_intercept)
        self._fit_response(kept, response, total_weight(matrix, sample_weight))
        self.labels_ = self._best_experts(matrix, answers)
        return self

    def predict(self, X: ArrayLike) -> Floats:
        """The experts' answers, weighted by their shares of the samples, or by the gate.

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
        matrix = check_matrix(self, X)
        answers = np.einsum("iq,iqk->ik", self._expert_weights(matrix), self._scores(matrix))
        return answers[:, 0] if self._single else answers

    def predict_experts(self, X: ArrayLike) -> Floats:
        """Every expert's answer.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_experts) or (n_samples, n_experts, n_outputs)
            Answers, in the order of `experts_`.
        """
        check_is_fitted(self)
        scores = self._scores(check_matrix(self, X))
        return scores[:, :, 0] if self._single else scores

    def _checks(self) -> dict[str, Any]:
        return {"multi_output": True, "y_numeric": True, **MATRIX_CHECKS}

    def _target(self, answers: NDArray[Any]) -> tuple[Any, Loss, int]:
        target = np.asarray(answers, dtype=np.float64)
        target = target.reshape(target.shape[0], -1)
        loss: Loss = SquaredLoss() if self.loss == "squared" else HuberLoss(self.huber_delta)
        return target, loss, target.shape[1]

    def _set_experts(self) -> None:
        self.experts_ = self._W[:, :, 0] if self._single else self._W.transpose(0, 2, 1)
        self.intercepts_ = self._b[:, 0] if self._single else self._b

    def _answer_loss(self, response: Response, scores: Floats, weights: Floats) -> Floats:
        """Loss of the weighted answers."""
        return response.loss.value(response.target, np.einsum("iq,iqk->ik", weights, scores))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.regressor_tags.poor_score = True  # one answer for what has several
        return tags


class SampleClusterClassifier(ClassifierMixin, SampleCluster):
    """Several linear classifiers, each sample answered by the one that fits it best.

    Gives several different answers to a sample, of which one is good. There must be more classes
    than experts: otherwise all classes could be answered, and any fit is perfect.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of experts, less than that of the classes.
    alpha : float, default=1e-3
        Strength of the ridge, on the scale of the mean loss.
    gate : bool or classifier, default=None
        What learns from ``x`` which expert answers, as in `SampleClusterRegressor`.
    loss : {"logistic", "squared"}, default="logistic"
        Logistic (multinomial for more than two classes), or squared on targets -1 and 1.
    class_weight : dict or "balanced", default=None
        Weights of the classes, which multiply those of the samples.
    fit_intercept : bool, default=True
        Whether each expert has intercepts, which are not penalised.
    solver : {"auto", "am", "pg", "cg", "rc", "em"}, default="auto"
        How experts are found, as in `SampleClusterRegressor`.
    n_init : "auto" or int, default="auto"
        Number of starts; "auto" goes on until the best objective was reached twice.
    max_iter : int, default=500
        Largest number of steps of a solver.
    tol : float, default=1e-6
        A solver stops when a step gains less than this fraction of the objective.
    solver_options : dict, default=None
        Options of the solver.
    n_jobs : int, default=None
        Starts that run at the same time. It does not change the answer.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts, and of the folds of the gate.
    verbose : int or bool, default=0
        Whether to print each step.
    callback : callable, default=None
        Called with each `Iteration`; returning True ends the fit.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    experts_ : ndarray of shape (n_experts, n_outputs, n_features)
        Weights of the experts, those with the most samples first; one output for two classes,
        otherwise one a class.
    intercepts_ : ndarray of shape (n_experts, n_outputs)
        Their intercepts.
    weights_ : ndarray of shape (n_experts,)
        Their shares of the samples' weight, descending.
    labels_ : ndarray of shape (n_samples,)
        Expert of each sample.
    n_clusters_ : int
        Experts in use.
    objective_ : float
        Objective of the experts.
    certificate_ : Certificate
        A proven lower bound of the best possible objective, zero with intercepts.
    gate_ : classifier
        The fitted gate, if there is one.
    gate_score_ : GateScore
        What it is worth, on samples that it had not seen.
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
    SampleClusterRegressor : The same for numbers; its notes describe the solvers.
    SampleClusterClassifierCV : Chooses the number of experts.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_experts(
    ...     200, 3, 2, n_outputs=4, noise=0.1, classification=True, random_state=0
    ... )
    >>> model = cs.SampleClusterClassifier(2, n_init=1, random_state=0)
    >>> model.fit(problem.X, problem.y).predict_experts(problem.X).shape
    (200, 2)
    >>> bool(model.best_error(problem.X, problem.y) < 0.2)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SampleCluster._parameter_constraints,
        "loss": [StrOptions({"logistic", "squared"})],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        alpha: float = 1e-3,
        gate: Any = None,
        loss: str = "logistic",
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
        self.n_clusters = n_clusters
        self.alpha = alpha
        self.gate = gate
        self.loss = loss
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.solver_options = solver_options
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> "SampleClusterClassifier":
        """Fit the experts.

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
        SampleClusterClassifier
            Itself.
        """
        matrix, classes = validate_data(self, X, y, **self._checks())
        check_classification_targets(classes)
        kept, mine, shares = weigh_rows(matrix, classes, sample_weight)
        self.classes_ = np.unique(mine)
        self._check_classes()
        if self.class_weight is not None:
            codes = np.searchsorted(self.classes_, mine)
            totals = np.bincount(codes, shares)
            shares = shares * class_weights(self.class_weight, self.classes_, totals)[codes]
            shares = shares / shares.sum()
        target, loss, n_outputs = self._target(mine)
        response = Response(target, loss, n_outputs, shares, self.fit_intercept)
        self._fit_response(kept, response, total_weight(matrix, sample_weight))
        known = np.isin(classes, self.classes_)
        self.labels_ = np.zeros(classes.size, dtype=np.intp)
        self.labels_[known] = self._best_experts(matrix[known], classes[known])
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class with the most probability (score) over all experts, or by the gate.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Classes.
        """
        best = self._weighted(X).argmax(axis=1)
        return self.classes_[best]

    @available_if(lambda self: self.loss == "logistic")
    def predict_proba(self, X: ArrayLike) -> Floats:
        """The experts' probabilities, weighted; with the logistic loss only.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.
        """
        return self._weighted(X)

    def predict_experts(self, X: ArrayLike) -> NDArray[Any]:
        """One answer of each expert, without repetition.

        The expert with the most samples gives its first choice, the next one its first choice
        among the classes that are left, and so on.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_experts)
            Classes, in the order of `experts_`.
        """
        check_is_fitted(self)
        shares = self._class_shares(self._scores(check_matrix(self, X)))
        everyone = np.arange(shares.shape[0])
        answers = np.empty(shares.shape[:2], dtype=np.intp)
        taken = np.zeros((shares.shape[0], shares.shape[2]), dtype=bool)
        for q in range(shares.shape[1]):
            answers[:, q] = np.where(taken, -np.inf, shares[:, q]).argmax(axis=1)
            taken[everyone, answers[:, q]] = True
        return self.classes_[answers]

    def best_error(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Share of the samples whose class is among no expert's answers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Their classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.

        Returns
        -------
        float
            To be compared with the error of a single classifier's first answers.
        """
        answers = self.predict_experts(X)
        classes = np.asarray(y).reshape(-1, 1)
        weights = _check_sample_weight(sample_weight, answers, dtype=np.float64)
        return float(np.average((answers != classes).all(axis=1), weights=weights))

    def _check_classes(self) -> None:
        if self.classes_.size < 2:
            raise ValueError(
                f"y holds one class only, {self.classes_[0]!r}; a classifier needs samples (of "
                "positive weight) of at least two classes."
            )
        if self.n_clusters >= self.classes_.size:
            raise ValueError(
                f"n_clusters={self.n_clusters} must be less than the number of classes, "
                f"{self.classes_.size}: as many experts could answer every class. "
                "Give fewer experts."
            )

    def _weighted(self, X: ArrayLike) -> Floats:
        """Probabilities or scores of the classes, weighted over the experts."""
        check_is_fitted(self)
        matrix = check_matrix(self, X)
        shares = self._class_shares(self._scores(matrix))
        return np.einsum("iq,iqk->ik", self._expert_weights(matrix), shares)

    def _class_shares(self, scores: Floats) -> Floats:
        """Probabilities (scores, for the squared loss) of all classes, ``n x Q x classes``."""
        if scores.shape[2] == 1:
            second = expit(scores) if self.loss == "logistic" else scores
            first = 1.0 - second if self.loss == "logistic" else -scores
            return np.concatenate([first, second], axis=2)
        if self.loss == "squared":
            return scores
        probabilities: Floats = softmax(scores, axis=2)
        return probabilities

    def _checks(self) -> dict[str, Any]:
        return dict(MATRIX_CHECKS)

    def _target(self, answers: NDArray[Any]) -> tuple[Any, Loss, int]:
        if not np.isin(answers, self.classes_).all():
            unknown = np.setdiff1d(answers, self.classes_)[0]
            raise ValueError(
                f"y holds the class {unknown!r}, which was not in `fit`. Leave such samples out."
            )
        codes = np.searchsorted(self.classes_, answers)
        n_classes = self.classes_.size
        return class_targets(codes, n_classes, self.loss), *class_loss(n_classes, self.loss)

    def _set_experts(self) -> None:
        self.experts_ = self._W.transpose(0, 2, 1)
        self.intercepts_ = self._b

    def _answer_loss(self, response: Response, scores: Floats, weights: Floats) -> Floats:
        """Negative log-probability, or loss of the weighted scores."""
        if self.loss == "squared":
            return response.loss.value(response.target, np.einsum("iq,iqk->ik", weights, scores))
        losses = [response.loss.value(response.target, mine) for mine in scores.transpose(1, 0, 2)]
        return -np.log((weights * np.exp(-np.stack(losses, axis=1))).sum(axis=1))
