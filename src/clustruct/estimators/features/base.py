"""What regression and classification with grouped features share."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, field
from numbers import Integral, Real
from typing import Any, ClassVar, Self
from typing import cast as cast_to

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import TransformerMixin, _fit_context, is_classifier
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from clustruct._docs import documented
from clustruct._typing import Floats
from clustruct.arrays import beside, cast
from clustruct.design import Design, PickingDesign, Rows
from clustruct.estimators.columns.factors import FROM_DTYPE, Factor, FactorColumns
from clustruct.estimators.common import (
    ClusterModel,
    Constraints,
    ScoredPredictions,
    fields_are_parameters,
    long_work,
)
from clustruct.estimators.descriptions import ARGUMENTS
from clustruct.estimators.features.factors import as_pipeline, centred, validate_samples
from clustruct.estimators.features.formulas import python_formula, sql_formula
from clustruct.estimators.features.grid import (
    Blocks,
    Count,
    Method,
    choose_constraint,
    choose_objective,
    require_one_output,
)
from clustruct.estimators.features.relativities import relativities_of, with_training
from clustruct.estimators.intake import (
    Samples,
    apply_model,
    names_of_features,
    take_samples,
    with_features_of,
)
from clustruct.estimators.offsets import shifted
from clustruct.losses import loss_of
from clustruct.objectives.features.streamed import feature_objective
from clustruct.objectives.linear import Response
from clustruct.results import FeatureGroup, FeatureGroups, Relativities
from clustruct.results.scores import Price
from clustruct.solvers.driver import Solution
from clustruct.solvers.factors import with_strengths
from clustruct.solvers.features import OPTIONS, PROOF_OPTIONS, RECIPES, FeatureOutcome


@fields_are_parameters
class FeatureCluster(TransformerMixin, ScoredPredictions, ClusterModel, ABC):
    """What regression and classification share."""

    n_clusters: Count = 8  # type: ignore[assignment]
    _: KW_ONLY
    alpha: float | str = 1e-3
    price: float | None = None
    n_nonzero: int | None = None
    blocks: ArrayLike | None = None
    constraint: Any = None  # a `Constraint`; one without `places` is not searched
    categorical_features: str | ArrayLike | None = FROM_DTYPE
    factors: Mapping[str, str | Factor] | None = None
    init: str | ArrayLike = "auto"
    n_jobs: int | None = field(default=None, init=False)  # of searches only
    prove = False  # a parameter of regressors
    _relaxed = 1.0  # fraction of the ridge with which the values of the groups are fitted

    factors_: ClassVar[FactorColumns | None] = None  # of models fitted to numbers, also old ones
    _constraints: ClassVar[Constraints] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left"), Mapping, None],
        "alpha": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "price": [Interval(Real, 0, None, closed="neither"), None],
        "n_nonzero": [Interval(Integral, 1, None, closed="left"), None],
        "blocks": ["array-like", None],
        "constraint": [HasMethods(["project", "explained"]), None],
        "categorical_features": [StrOptions({FROM_DTYPE}), "array-like", None],
        "factors": [Mapping, None],
        "solver": [StrOptions(set(RECIPES))],
        "init": [StrOptions({"auto", "greedy", "zeros"}), "array-like"],
    }

    @abstractmethod
    def _respond(self, samples: Samples) -> Response:
        """Target, loss and weights of samples."""

    @documented((ARGUMENTS,))
    @_fit_context(prefer_skip_nested_validation=True)
    @long_work
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> Self:
        """Fit the model.

        Returns
        -------
        estimator
            Itself.
        """
        samples = self._settled(take_samples(self, X, y, sample_weight, offset))
        design, response = samples.design, self._respond(samples)
        constraint = self._constrained(design)
        method = self._method((design.shape[1], response.n_outputs))
        objective = self._with_ridge(choose_objective(design, response, 0.0), constraint)
        if self.price is not None:
            require_one_output(objective)
        outcome = method.fit(objective, constraint)
        if not objective.resolves(outcome.solution.point):
            objective = self._with_ridge(feature_objective(design, response, 0.0), constraint)
            outcome = method.fit(objective, constraint)
        self._set_outcome(outcome)
        self._tally(samples)
        self._follow(design)
        self.has_offset_ = offset is not None
        return self

    _validate_matrix = validate_samples

    def _count(self) -> Count:
        """The number of groups asked for, or the price of each."""
        return self.n_clusters if self.price is None else Price(float(self.price))

    def _constrained(self, design: Design) -> Any:
        """The set that the weights are kept in."""
        return self.constraint or choose_constraint(
            design.shape[1], self._count(), self.n_nonzero, self._blocks(), design.cluster
        )

    def _with_ridge(self, objective: Any, constraint: Any) -> Any:
        """The objective with alpha, or with the ridge of each factor by empirical Bayes."""
        if self.alpha != "auto":
            return objective.with_alpha(float(self.alpha))
        if self.factors_ is None or objective.shape[1] > 1:
            raise ValueError(
                "alpha='auto' is for data frames with columns of categories and one output. Give "
                "alpha a number, or use the search, which chooses it."
            )
        return with_strengths(objective, constraint)

    def _settled(self, samples: Samples) -> Samples:
        """The samples of a fit, with the levels of factors learnt."""
        design = self._settle(samples.design, samples.shares, samples.total)
        return samples._replace(design=design)

    def _settle(self, design: Any, weights: Any, total: float) -> Design:
        """The design without levels that no weighted sample has; the levels are learnt then."""
        if self.factors_ is None:
            return cast_to(Design, design)
        learnt, design = self.factors_.settled(design, weights, total, self.factors)
        self.factors_ = learnt  # type: ignore[misc]
        return design

    def _tally(self, samples: Samples) -> None:
        """The factors keep exposure and targets of their levels in training."""
        if self.factors_ is not None and self._weights.shape[1] == 1:
            self.factors_ = with_training(self, samples)  # type: ignore[misc]

    def _blocks(self) -> Blocks:
        """Where weights may be shared."""
        return self.blocks if self.factors_ is None else self.factors_

    def _follow(self, design: Design) -> None:
        """Weights go where the samples are."""
        for name in ("coef_", "cluster_values_", "intercept_"):
            value = getattr(self, name)
            setattr(self, name, design.weights(value) if np.ndim(value) else value)

    def _method(self, shape: tuple[int, int]) -> Method:
        """How to fit weights of that shape."""
        start = check_start(self.init, shape)
        if not self.prove:
            return Method(solver=self.solver, start=start, **self._solving(OPTIONS))
        known = {solver: (*names, *PROOF_OPTIONS) for solver, names in OPTIONS.items()}
        solving = self._solving(known)
        given = solving.pop("options")
        options = {name: value for name, value in given.items() if name not in PROOF_OPTIONS}
        proof = {name: value for name, value in given.items() if name in PROOF_OPTIONS}
        return Method(solver=self.solver, start=start, options=options, proof=proof, **solving)

    def _set_outcome(self, outcome: FeatureOutcome) -> None:
        """All attributes of a fitted model."""
        self._set_solution(outcome.solution)
        self.objective_ = outcome.solution.point.value
        super()._set_outcome(outcome)

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

    def _scores(self, design: Design, offset: Floats | None = None) -> Rows:
        """Scores with the intercept, and with the offset of each sample if there is one."""
        scores = design.scores(self._weights)
        return shifted(scores + beside(self._offset, scores), offset)

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
            In the order of their values, for factors one factor after the other; the features
            without weight, if any, come last with label -1. ``pandas.DataFrame(model.clusters())``
            makes a data frame of it.
        """
        check_is_fitted(self)
        names, weights, many = self._weight_names(), self._weights, self._many_outputs()
        order = np.argsort(self.labels_, kind="stable")
        bounds = np.flatnonzero(np.diff(self.labels_[order])) + 1
        groups = [
            FeatureGroup(
                label=int(self.labels_[members[0]]),
                weight=weights[members[0]].copy() if many else float(weights[members[0], 0]),
                size=members.size,
                features=tuple(str(name) for name in names[members]),
                firmness=self._firmness(int(self.labels_[members[0]])),
                interval=self._interval(int(self.labels_[members[0]])),
            )
            for members in np.split(order, bounds)
        ]
        if groups[0].label < 0:
            groups = [*groups[1:], groups[0]]
        if self.factors_ is not None:
            factor = dict(zip(self.labels_.tolist(), self.factors_.blocks.tolist(), strict=True))
            groups.sort(key=lambda group: (factor[group.label] < 0, factor[group.label]))
        return FeatureGroups(groups, map(str, getattr(self, "classes_", ())))

    def _interval(self, label: int) -> tuple[float, float] | None:
        """Where the weight of a group is, if that is known; of models with one output."""
        known = self.stability_ is not None and self._weights.shape[1] == 1
        return cast_to(Any, self.stability_).interval_of(label) if known else None

    def _weight_names(self) -> NDArray[Any]:
        """Names of the features, or of the levels and columns that have weights."""
        if self.factors_ is None:
            return names_of_features(self)
        return np.array(self.factors_.weight_names, dtype=object)

    @documented((ARGUMENTS,))
    def relativities(
        self,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        reference: str | Mapping[str, Any] | None = None,
    ) -> Relativities:
        """The levels of factors as a tariff: exposure, effect and relativity of each.

        Parameters
        ----------
        X : data frame of shape (n_samples, n_features), default=None
            Rows, such as held-out ones, whose exposure, targets and predictions are added up for
            each level. None stands for exposure and targets of the training rows.
        y : array-like of shape (n_samples,), default=None
            Targets of these rows; without, only exposure and predictions are added up.
        reference : mapping from factors to levels, "mean" or None, default=None
            Levels whose relativity is 1, or 0 where relativities are added; factors that are not
            named, and None, take the level with the most exposure in training. A number stands for
            its bin. "mean" takes the mean effect, weighted by the exposure in training.

        Returns
        -------
        Relativities
            A list of `Relativity`, one for each level and numeric column, with the base value.

        Raises
        ------
        ValueError
            If the model has no factors, or several outputs.
        """
        check_is_fitted(self)
        return relativities_of(self, X, y, offset, sample_weight, reference)

    def to_python(self) -> str:
        """The model as source text of Python, which needs no other package.

        Returns
        -------
        str
            A module with a function ``predict`` of a mapping from columns to values. It returns the
            prediction, for two classes the probability of the second one, or with another loss than
            the logistic its score; for several outputs or classes a list or dictionary of these.
            Unknown and missing levels are treated as in `predict`. If the model was fitted with an
            offset, ``predict`` takes one. Columns without names are "x0", "x1" and so on.

        Raises
        ------
        ValueError
            If levels are neither text, numbers nor booleans, or the loss has a link of its own.
        """
        check_is_fitted(self)
        return python_formula(self)

    def to_sql(
        self,
        table: str,
        *,
        name: str = "prediction",
        offset: str | None = None,
        exposure: str | None = None,
    ) -> str:
        """The model as a statement of standard SQL.

        Parameters
        ----------
        table : str
            Name of the table, which has the columns of the model.
        name : str, default="prediction"
            Name of the column of predictions: as in `to_python`, for several outputs one column
            each, with the number of the output or the class after the name.
        offset : str, default=None
            Name of the column of offsets. None stands for 0.
        exposure : str, default=None
            Name of the column of exposures, whose logarithms are the offsets; for losses whose
            predictions are exponentials.

        Returns
        -------
        str
            A query of all columns of the table and the predictions. Missing values are NULL.

        Raises
        ------
        ValueError
            If the model has probabilities of more than two classes, or as in `to_python`.
        """
        check_is_fitted(self)
        return sql_formula(self, table, name, offset, exposure)

    def to_sklearn(self) -> Any:
        """The same model as a plain one of scikit-learn, for tools that know nothing of groups.

        Returns
        -------
        LinearRegression, LogisticRegression or RidgeClassifier
            Fitted, with the same predictions; a model of another class if the loss says so. A model
            with factors becomes a `Pipeline` of one-hot encoders and one of these.

        Raises
        ------
        ValueError
            If the model was fitted with an offset, which no such model takes.
        """
        check_is_fitted(self)
        if self.has_offset_:
            raise ValueError(
                "This model was fitted with an offset, and models of scikit-learn take none: their "
                "predictions would be those for an offset of 0. Keep this model and give "
                "`predict` the offset."
            )
        if self.factors_ is None:
            return with_features_of(self, self._plainly(self.coef_, self.intercept_))
        W, gained = centred(self.factors_, self._weights)
        coef = W.T if self.coef_.ndim == 2 else W[:, 0]
        intercept = self._offset + gained
        linear = self._plainly(coef, intercept if np.ndim(self.intercept_) else intercept[0])
        return as_pipeline(self.factors_, linear, hasattr(self, "feature_names_in_"))

    def _plainly(self, coef: Floats, intercept: Any) -> Any:
        """A linear model of scikit-learn with these weights."""
        # Mean effects of factors go into the intercept.
        linear = coef, intercept, self.fit_intercept or self.factors_ is not None
        if is_classifier(self):
            return loss_of(self).to_classifier(*linear, self.classes_)
        return loss_of(self).to_regressor(*linear)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether a fit went through: one that fails leaves the number of features behind."""
        return hasattr(self, "coef_")


def ordered_groups(solution: Solution) -> tuple[NDArray[np.intp], Floats]:
    """Labels and values of the groups in use, in the order of their values."""
    used, first, labels = np.unique(solution.labels, return_index=True, return_inverse=True)
    values = solution.point.W[first]
    order = np.lexsort((*values.T[::-1], used < 0))
    order = order[: np.count_nonzero(used >= 0)]
    ranks = np.full(used.size, -1, dtype=np.intp)
    ranks[order] = np.arange(order.size)
    return ranks[labels.reshape(-1)], values[order]


def check_start(init: str | ArrayLike, shape: tuple[int, int]) -> Floats | None:
    """Weights to begin with, ``d x K``, or None for those without constraint."""
    if isinstance(init, str):
        return np.zeros(shape) if init == "zeros" else None
    weights = np.asarray(init, dtype=np.float64)
    weights = weights[:, None] if weights.ndim == 1 else weights.T
    if weights.shape != shape:
        raise ValueError(
            f"init has shape {np.shape(init)}, but the weights have {shape[0]} features and "
            f"{shape[1]} outputs. Give it the shape of coef_."
        )
    if not np.isfinite(weights).all():
        raise ValueError("init holds weights that are not finite. Give finite numbers.")
    return weights
