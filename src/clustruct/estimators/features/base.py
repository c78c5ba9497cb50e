"""What regression and classification with grouped features share."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context, is_classifier
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from clustruct._docs import documented
from clustruct._finite import without_warnings
from clustruct._typing import Floats
from clustruct.arrays import beside, cast
from clustruct.design import Design, PickingDesign, Rows
from clustruct.estimators.descriptions import ARGUMENTS
from clustruct.estimators.features.grid import Method, choose_constraint, choose_objective
from clustruct.estimators.intake import (
    Samples,
    apply_model,
    names_of_features,
    take_samples,
    with_features_of,
)
from clustruct.estimators.options import check_options, check_start, conclude, watcher
from clustruct.losses import loss_of
from clustruct.objectives.linear import Response
from clustruct.results import FeatureGroup, FeatureGroups
from clustruct.solvers.driver import Budget, Solution
from clustruct.solvers.features import OPTIONS, RECIPES, FeatureOutcome


class FeatureCluster(TransformerMixin, BaseEstimator, ABC):
    """What regression and classification share."""

    coef_: Any
    intercept_: Any
    cluster_values_: Any

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left"), Mapping, None],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "n_nonzero": [Interval(Integral, 1, None, closed="left"), None],
        "blocks": ["array-like", None],
        "constraint": [HasMethods(["project", "explained"]), None],
        "fit_intercept": ["boolean"],
        "solver": [StrOptions(set(RECIPES))],
        "init": [StrOptions({"auto", "greedy", "zeros"}), "array-like"],
        "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "solver_options": [Mapping, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "callback": [callable, None],
    }

    @abstractmethod
    def _respond(self, samples: Samples) -> Response:
        """Target, loss and weights of samples."""

    @documented((ARGUMENTS,))
    @_fit_context(prefer_skip_nested_validation=True)
    @without_warnings
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Returns
        -------
        estimator
            Itself.
        """
        samples = take_samples(self, X, y, sample_weight)
        design, response = samples.design, self._respond(samples)
        constraint = self.constraint or choose_constraint(
            design.shape[1], self.n_clusters, self.n_nonzero, self.blocks, design.cluster
        )
        method = self._method((design.shape[1], response.n_outputs))
        self._set_outcome(method.fit(choose_objective(design, response, self.alpha), constraint))
        self._follow(design)
        conclude(self.verbose, self.status_, self.certificate_)
        return self

    def _follow(self, design: Design) -> None:
        """Weights go where the samples are."""
        self.coef_, self.cluster_values_ = map(design.weights, (self.coef_, self.cluster_values_))
        if np.ndim(self.intercept_):
            self.intercept_ = design.weights(self.intercept_)

    def _method(self, shape: tuple[int, int]) -> Method:
        """How to fit weights of that shape."""
        return Method(
            solver=self.solver,
            budget=Budget(self.max_iter, self.tol, watcher(self.verbose, self.callback)),
            start=check_start(self.init, shape),
            n_starts=None if self.n_init == "auto" else self.n_init,
            seed=int(check_random_state(self.random_state).randint(2**31)),
            options=check_options(self.solver, self.solver_options, OPTIONS),
        )

    def _set_outcome(self, outcome: FeatureOutcome) -> None:
        """All attributes of a fitted model."""
        self._set_solution(outcome.solution)
        self.objective_ = outcome.solution.point.value
        self.certificate_ = outcome.certificate
        self.n_iter_ = outcome.status.n_iter
        self.status_ = outcome.status
        self.trace_ = outcome.trace

    def _set_solution(self, solution: Solution) -> None:
        """Weights and groups."""
        self.labels_, values = ordered_groups(solution)
        self._weights, self._offset = solution.point.W, solution.point.intercept
        self.cluster_values_ = values if self._many_outputs() else values[:, 0]
        self.cluster_sizes_ = np.bincount(
            self.labels_[self.labels_ >= 0], minlength=values.shape[0]
        ).astype(np.intp)
        self.n_clusters_ = values.shape[0]
        self._set_linear(solution.point.W, solution.point.intercept)

    @documented((ARGUMENTS,))
    def transform(self, X: ArrayLike) -> Floats:
        """Add up the columns of each group.

        Returns
        -------
        ndarray of shape (n_samples, n_groups)
            One column a group, in the order of `cluster_values_`.
        """
        check_is_fitted(self)
        return apply_model(self, self._sums, X, self.n_clusters_, None)

    def _sums(self, design: PickingDesign) -> Rows:
        """Group sums, in the precision of ``X``."""
        return cast(design.group_sums(self.labels_, self.n_clusters_), design.dtype)

    def _scores(self, design: Design) -> Rows:
        """Scores with the intercept."""
        scores = design.scores(self._weights)
        return scores + beside(self._offset, scores)

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

    def clusters(self) -> FeatureGroups:
        """The groups as a table: value, size and feature names of each.

        Returns
        -------
        FeatureGroups
            A list of `FeatureGroup`.
            In the order of their values; the features without weight, if any, come last with
            label -1. ``pandas.DataFrame(model.clusters())`` makes a data frame of it.
        """
        check_is_fitted(self)
        names, weights, many = names_of_features(self), self._weights, self._many_outputs()
        order = np.argsort(self.labels_, kind="stable")
        bounds = np.flatnonzero(np.diff(self.labels_[order])) + 1
        groups = [
            FeatureGroup(
                label=int(self.labels_[members[0]]),
                weight=weights[members[0]].copy() if many else float(weights[members[0], 0]),
                size=members.size,
                features=tuple(str(name) for name in names[members]),
            )
            for members in np.split(order, bounds)
        ]
        if groups[0].label < 0:
            groups = [*groups[1:], groups[0]]
        return FeatureGroups(groups, map(str, getattr(self, "classes_", ())))

    def to_sklearn(self) -> Any:
        """The same model as a plain one of scikit-learn, for tools that know nothing of groups.

        Returns
        -------
        LinearRegression, LogisticRegression or RidgeClassifier
            Fitted, with the same predictions; a model of another class if the loss says so.
        """
        check_is_fitted(self)
        loss, linear = loss_of(self), (self.coef_, self.intercept_, self.fit_intercept)
        if is_classifier(self):
            return with_features_of(self, loss.to_classifier(*linear, self.classes_))
        return with_features_of(self, loss.to_regressor(*linear))

    def __sklearn_is_fitted__(self) -> bool:
        """Whether a fit went through: one that fails leaves the number of features behind."""
        return hasattr(self, "coef_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def ordered_groups(solution: Solution) -> tuple[NDArray[np.intp], Floats]:
    """Labels and values of the groups in use, in the order of their values."""
    used, first, labels = np.unique(solution.labels, return_index=True, return_inverse=True)
    values = solution.point.W[first]
    order = np.lexsort((*values.T[::-1], used < 0))
    order = order[: np.count_nonzero(used >= 0)]
    ranks = np.full(used.size, -1, dtype=np.intp)
    ranks[order] = np.arange(order.size)
    return ranks[labels.reshape(-1)], values[order]
