"""Linear models whose features share weights in groups."""

from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import Any, ClassVar

from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from clustruct._docs import documented
from clustruct._typing import Floats
from clustruct.arrays import namespace
from clustruct.design import Design, Rows
from clustruct.estimators import descriptions as tables
from clustruct.estimators.common import Constraints, NumberLosses, fields_are_parameters
from clustruct.estimators.features.base import FeatureCluster
from clustruct.estimators.intake import (
    Samples,
    apply_model,
    class_response,
    named,
    number_response,
)
from clustruct.estimators.offsets import beside_offset
from clustruct.losses import CLASS_LOSSES, Loss, loss_of
from clustruct.objectives.linear import Response


@documented(
    (tables.ALL, tables.FEATURES),
    (tables.OF_NUMBERS, tables.FITTED, tables.OF_FEATURES),
    (tables.ARGUMENTS,),
)
@fields_are_parameters
class FeatureClusterRegressor(RegressorMixin, NumberLosses, FeatureCluster):
    """Linear regression whose features fall into groups with shared weights.

    Minimises the mean loss plus ridge over weights with few distinct values,

    ``(1/S) sum_i s_i loss(y_i, x_i' w + b) + alpha/2 ||w||^2``,

    and finds the groups while it fits. With several outputs, features are grouped alike for
    all of them, and each group has one weight for each output.

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
    features (options ``n_turns``, ``n_annealed``, ``n_sweeps``, ``n_repeats``, ``time_limit``).
    ``"bcd"`` is block coordinate descent over factors. ``"auto"`` tries what suits the problem and
    keeps the best.

    The option ``time_limit`` of ``"soft"`` and ``"auto"`` is in seconds: the search for groups goes
    on until the best ones have been found often enough, or that time is over. ``status_.message``
    says how often they were found, and by which routes.

    With `prove` the groups found are where branch and bound begins. It stops when no grouping can
    be better, when `callback` returns True, or after ``max_nodes`` nodes (1000) or ``time_limit``
    seconds (no limit), which are options of every solver then and limit the proof only. Nodes are
    iterations of the solver "proof" for `verbose` and `callback`; their step is the relative gap.

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

    _: KW_ONLY
    prove: bool = False

    score = FeatureCluster.score  # takes an offset
    _constraints: ClassVar[Constraints] = {"prove": ["boolean"]}

    def _respond(self, samples: Samples) -> Response:
        """Target, loss and weights of samples."""
        self._single = len(samples.targets.shape) == 1
        return number_response(samples, loss_of(self), fit_intercept=self.fit_intercept)

    def predict(self, X: ArrayLike, offset: ArrayLike | None = None) -> Floats:
        """Predict targets.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predictions.
        """
        check_is_fitted(self)
        width = None if self._single else self._weights.shape[1]
        return apply_model(self, self._predictions, X, width, beside=beside_offset(offset))

    def _predictions(self, design: Design, *offset: Floats) -> Rows:
        """Predictions for placed samples."""
        predicted = loss_of(self).predictions(self._scores(design, *offset))
        return predicted[:, 0] if self._single else predicted

    def _many_outputs(self) -> bool:
        return not self._single

    def _set_linear(self, W: Floats, intercept: Floats) -> None:
        self.coef_ = W[:, 0].copy() if self._single else W.T.copy()
        self.intercept_ = float(intercept[0]) if self._single else intercept

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


@documented(
    (tables.ALL, tables.FEATURES, tables.CLASSES),
    (tables.OF_CLASS_WEIGHTS, tables.FITTED, tables.OF_FEATURES),
    (tables.ARGUMENTS, tables.CLASS_ARGUMENTS),
)
@fields_are_parameters
class FeatureClusterClassifier(ClassifierMixin, FeatureCluster):
    """Linear classification whose features fall into groups with shared weights.

    With two classes a feature has one weight; with more, one for each class, and features are
    grouped alike for all classes.

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

    _: KW_ONLY
    loss: str | Loss = "logistic"
    class_weight: Mapping[Any, float] | str | None = None

    score = FeatureCluster.score
    _constraints: ClassVar[Constraints] = {
        "loss": [StrOptions(set(CLASS_LOSSES)), Loss],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def _respond(self, samples: Samples) -> Response:
        """Target, loss and weights of samples."""
        self.classes_, response = class_response(
            samples, loss_of(self), self.class_weight, fit_intercept=self.fit_intercept
        )
        return response

    def decision_function(self, X: ArrayLike, offset: ArrayLike | None = None) -> Floats:
        """Scores of the classes.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes, positive for the second.
        """
        check_is_fitted(self)
        width = self.classes_.size if self._many_outputs() else None
        return apply_model(self, self._decide, X, width, beside=beside_offset(offset))

    def _decide(self, design: Design, *offset: Floats) -> Rows:
        """Scores for placed samples."""
        scores = self._scores(design, *offset)
        return scores if self._many_outputs() else scores[:, 0]

    def predict(self, X: ArrayLike, offset: ArrayLike | None = None) -> NDArray[Any]:
        """Predict classes.

        Returns
        -------
        ndarray of shape (n_samples,)
            Classes.
        """
        check_is_fitted(self)
        dtype = self.classes_.dtype
        return apply_model(self, self._choose, X, None, dtype, beside_offset(offset))

    def _choose(self, design: Design, *offset: Floats) -> NDArray[Any]:
        """Classes for placed samples; numbers are beside them, strings on the host."""
        scores = self._decide(design, *offset)
        best = namespace(scores).argmax(scores, axis=1) if scores.ndim == 2 else scores > 0
        return named(self.classes_, best)

    @available_if(lambda self: loss_of(self).gives_probabilities)
    def predict_proba(self, X: ArrayLike, offset: ArrayLike | None = None) -> Floats:
        """Predict probabilities; with the logistic loss only.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.
        """
        return self._of_scores(X, offset, "probabilities")

    @available_if(lambda self: loss_of(self).gives_probabilities)
    def predict_log_proba(self, X: ArrayLike, offset: ArrayLike | None = None) -> Floats:
        """Predict logarithms of probabilities; with the logistic loss only.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Logarithms of `predict_proba`.
        """
        return self._of_scores(X, offset, "log_probabilities")

    def _of_scores(self, X: ArrayLike, offset: ArrayLike | None, name: str) -> Floats:
        """A function of the loss for as many classes as there are, of their scores."""
        check_is_fitted(self)
        width = self.classes_.size
        function = getattr(loss_of(self).with_classes(width), name)
        return apply_model(
            self,
            lambda design, *rows: function(self._scores(design, *rows)),
            X,
            width,
            beside=beside_offset(offset),
        )

    def _many_outputs(self) -> bool:
        return bool(self.classes_.size > 2)

    def _set_linear(self, W: Floats, intercept: Floats) -> None:
        self.coef_ = W.T.copy()
        self.intercept_ = intercept
