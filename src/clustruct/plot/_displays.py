"""The displays: weights, groups, searches and paths, convergence, experts and tasks."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from clustruct import inspection
from clustruct._arguments import as_choice
from clustruct.explanation.contrasts import Contrasts, contrasts_of
from clustruct.explanation.effects import weight_axis
from clustruct.figures import fits, groups, maps, trust
from clustruct.figures.marks import Figure
from clustruct.figures.weights import contrasts_figure, weights_figure
from clustruct.plot._display import Display, described, function_of
from clustruct.results import FeaturePath, StabilityResult


@described("weights")
@dataclass(eq=False, repr=False)
class WeightsDisplay(Display):
    """Weights of features, in order, and the levels that they share.

    With several outputs, the weights of each group for every output.
    """

    levels: inspection.Levels
    _: KW_ONLY
    reference: ArrayLike | None = None
    max_features: int = 2000
    axis: str = "weight"
    outputs: Sequence[str] | None = None

    def __post_init__(self) -> None:
        self._reference = None
        if self.reference is None:
            return
        self._reference = np.asarray(self.reference, dtype=np.float64).reshape(-1)
        n_features, n_outputs = self.levels.labels.size, self.levels.values.shape[1]
        if self._reference.size != n_features or n_outputs > 1:
            raise ValueError(
                f"reference holds {self._reference.size} weights, but the model has {n_features} "
                f"features and {n_outputs} outputs. Give one weight for each feature of a model "
                "with one output."
            )

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        *,
        feature_names: Sequence[str] | None = None,
        reference: ArrayLike | None = None,
        max_features: int = 2000,
        ax: Any = None,
    ) -> Self:
        """Draw the weights of features, in order, and the levels that they share.

        The model groups features: a `FeatureClusterRegressor` or a `FeatureClusterClassifier`.

        Examples
        --------
        >>> import clustruct as cs
        >>> problem = cs.datasets.make_clustered_features(200, 20, 3, random_state=0)
        >>> model = cs.FeatureClusterRegressor(3).fit(problem.X, problem.y)
        >>> cs.plot.weights(model).ax_.get_title("left")
        '20 weights, 3 levels'
        """
        levels = inspection.levels_of(model, feature_names)
        about: dict[str, Any] = {"axis": weight_axis(model), "max_features": max_features}
        about["outputs"] = inspection.outputs_of(model).names
        return cls(levels, reference=reference, **about).plot(ax)

    def _figure(self) -> Figure:
        data = (self.levels, self.axis, self.outputs, self._reference)
        return weights_figure(*data, most=self.max_features)


@described("clusters")
@dataclass(eq=False, repr=False)
class ClustersDisplay(Display):
    """One bar for each group, with its size and some of its members.

    Bars show the weight for groups of features, one for every class or output where there are
    several, the share of the samples for experts, and the number of tasks for groups of tasks.
    """

    bars: groups.GroupBars
    _: KW_ONLY
    max_groups: int = 30

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        *,
        feature_names: Sequence[str] | None = None,
        max_groups: int = 30,
        ax: Any = None,
    ) -> Self:
        """Draw the groups of a model: a bar for each, with its size and some of its members.

        Examples
        --------
        >>> import clustruct as cs
        >>> problem = cs.datasets.make_experts(200, 4, 2, random_state=0)
        >>> model = cs.SampleClusterRegressor(2, random_state=0).fit(problem.X, problem.y)
        >>> cs.plot.clusters(model).ax_.get_xlabel()
        'share of the samples'
        """
        return cls(groups.groups_of(model, feature_names), max_groups=max_groups).plot(ax)

    def _figure(self) -> Figure:
        return groups.groups_figure(self.bars, self.max_groups)


@described("path", maker="from_result")
@dataclass(eq=False, repr=False)
class PathDisplay(Display):
    """Scores of a search, or objectives and weights of a path, for every number of groups.

    Parameters
    ----------
    result : Curve or FeaturePath
        What to draw.
    """

    result: inspection.Curve | FeaturePath
    _: KW_ONLY
    quantity: str = "objective"

    def __post_init__(self) -> None:
        as_choice(self.quantity, "quantity", ("objective", "weights"))

    @classmethod
    def from_result(cls, result: Any, *, quantity: str = "objective", ax: Any = None) -> Self:
        """Draw scores of a search, or objectives and weights of a path, over the number of groups.

        Parameters
        ----------
        result : FeaturePath, SearchResult, TaskSelection, CountSelection, estimator or Pipeline
            A path, the result of a search, or a fitted model that has searched.

        Examples
        --------
        >>> import clustruct as cs
        >>> problem = cs.datasets.make_clustered_features(100, 10, 3, random_state=0)
        >>> model = cs.FeatureClusterRegressorCV((2, 3, 4), alphas=(1e-1, 1e-3), random_state=0)
        >>> cs.plot.path(model.fit(problem.X, problem.y)).ax_.get_ylabel()
        'mean squared error (smaller is better)'
        """
        found = result if isinstance(result, FeaturePath) else inspection.curve_of(result)
        if found is None:
            raise ValueError(
                f"{type(result).__name__} holds no search and no path. Give the result of "
                "feature_cluster_path, a cv_results_ or selection_, or a fitted model whose name "
                "ends in CV."
            )
        return cls(found, quantity=quantity).plot(ax)

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Any = None) -> Self:
        """Draw the search of a fitted model; see `from_result`."""
        return cls.from_result(model, ax=ax)

    def _figure(self) -> Figure:
        if isinstance(self.result, inspection.Curve):
            return fits.curve_figure(self.result)
        draw = {"objective": fits.objectives_figure, "weights": fits.values_figure}
        return draw[self.quantity](self.result)


@described("convergence")
@dataclass(eq=False, repr=False)
class ConvergenceDisplay(Display):
    """The objective after every iteration, and what is proved of the end."""

    convergence: inspection.Convergence

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Any = None) -> Self:
        """Draw the objective after every iteration of a fit, with the proven bound.

        Examples
        --------
        >>> import clustruct as cs
        >>> problem = cs.datasets.make_clustered_features(200, 20, 3, random_state=0)
        >>> model = cs.FeatureClusterRegressor(3).fit(problem.X, problem.y)
        >>> cs.plot.convergence(model).ax_.get_title("left")
        'Convergence'
        """
        return cls(inspection.convergence_of(model)).plot(ax)

    def _figure(self) -> Figure:
        return fits.convergence_figure(self.convergence)


@described("experts")
@dataclass(eq=False, repr=False)
class ExpertsDisplay(Display):
    """Experts along a feature with the samples that they predict, or their weights.

    Parameters
    ----------
    result : ExpertLines or Contrasts
        What to draw.
    """

    result: inspection.ExpertLines | Contrasts
    _: KW_ONLY
    axis: str = "weight"

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        kind: str = "auto",
        feature: int | str | None = None,
        feature_names: Sequence[str] | None = None,
        max_samples: int = 2000,
        ax: Any = None,
    ) -> Self:
        """Draw experts along a feature with the samples that they predict, or their weights.

        The model groups samples: a `SampleClusterRegressor` or a `SampleClusterClassifier`. Where
        there are several features, a sample is drawn at its target less what its expert makes of
        the other features, so that samples lie about the line of their expert.

        Parameters
        ----------
        y : array-like of shape (n_samples,), default=None
            Targets of the samples.
        kind : {"auto", "lines", "weights"}, default="auto"
            Lines along one feature, which take samples and a regression with one output, or
            weights in which the experts differ most, for every class where there are several.
        feature : int or str, default=None
            The feature to draw lines along; the one in which experts differ most if None.

        Examples
        --------
        >>> import clustruct as cs
        >>> problem = cs.datasets.make_experts(300, 3, 2, random_state=0)
        >>> model = cs.SampleClusterRegressor(2, random_state=0).fit(problem.X, problem.y)
        >>> cs.plot.experts(model, problem.X, problem.y).ax_.get_title("left")
        'Samples and their experts'
        >>> cs.plot.experts(model).ax_.get_title("left")
        'Weights of the experts'
        """
        kind = as_choice(kind, "kind", ("auto", "lines", "weights"))
        estimator = inspection.require_kind(model, "samples")
        if kind == "auto":
            drawable = estimator.experts_.ndim == 2 and X is not None and y is not None
            kind = "lines" if drawable else "weights"
        if kind == "weights":
            contrasts, axis = _contrasts(model, X, feature_names)
            return cls(contrasts, axis=axis).plot(ax)
        if X is None or y is None:
            raise ValueError('kind="lines" needs samples. Give X and y, or kind="weights".')
        about: dict[str, Any] = {"feature": feature, "names": feature_names}
        return cls(inspection.expert_lines(model, X, y, most=max_samples, **about)).plot(ax)

    def _figure(self) -> Figure:
        if isinstance(self.result, inspection.ExpertLines):
            return maps.experts_figure(self.result)
        return contrasts_figure(self.result, self.axis)


@described("tasks")
@dataclass(eq=False, repr=False)
class TasksDisplay(Display):
    """Tasks in the plane in which their predictors differ most, or the weights of their groups.

    Parameters
    ----------
    result : TaskMap or Contrasts
        Places of the tasks, as `clustruct.inspection.task_map` gives them, or the centroids.
    """

    result: inspection.TaskMap | Contrasts
    _: KW_ONLY
    max_names: int = 40
    axis: str = "weight"

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any = None,
        *,
        kind: str = "map",
        feature_names: Sequence[str] | None = None,
        max_names: int = 40,
        ax: Any = None,
    ) -> Self:
        """Draw the map of tasks, or the weights in which their groups differ most.

        The map is the plane in which the predictors of tasks differ most.

        Parameters
        ----------
        kind : {"map", "weights"}, default="map"
            What to draw.

        Examples
        --------
        >>> import clustruct as cs
        >>> problem = cs.datasets.make_clustered_tasks(n_tasks=12, n_clusters=2, random_state=0)
        >>> model = cs.TaskClusterRegressor(2).fit(*problem.columns())
        >>> cs.plot.tasks(model).ax_.get_title("left")
        '12 tasks in 2 groups'
        >>> cs.plot.tasks(model, kind="weights").ax_.get_xlabel()
        'weight: prediction per unit'
        """
        if as_choice(kind, "kind", ("map", "weights")) == "map":
            return cls(inspection.task_map(model), max_names=max_names).plot(ax)
        contrasts, axis = _contrasts(model, X, feature_names)
        return cls(contrasts, axis=axis).plot(ax)

    def _figure(self) -> Figure:
        if isinstance(self.result, inspection.TaskMap):
            return maps.tasks_figure(self.result, self.max_names)
        return contrasts_figure(self.result, self.axis)


@described("stability", maker="from_result")
@dataclass(eq=False, repr=False)
class StabilityDisplay(Display):
    """How often groups come again: a map of co-membership, or the members that waver.

    Parameters
    ----------
    result : StabilityResult
        What `clustruct.stability` has found.
    quantity : {"map", "wavering"}, default="map"
        The co-membership of all pairs in the order of the groups, or the members that change
        groups most often.
    """

    result: StabilityResult
    _: KW_ONLY
    quantity: str = "map"

    def __post_init__(self) -> None:
        as_choice(self.quantity, "quantity", ("map", "wavering"))

    @classmethod
    def from_result(cls, result: StabilityResult, *, quantity: str = "map", ax: Any = None) -> Self:
        """Draw how often groups come again, as `clustruct.stability` has found.

        Parameters
        ----------
        result : StabilityResult
            What `clustruct.stability` has found.
        quantity : {"map", "wavering"}, default="map"
            The co-membership of all pairs in the order of the groups, or the members that change
            groups most often.

        Examples
        --------
        >>> import clustruct as cs
        >>> problem = cs.datasets.make_clustered_features(200, 12, 3, random_state=0)
        >>> model = cs.FeatureClusterRegressor(3).fit(problem.X, problem.y)
        >>> found = cs.stability(model, problem.X, problem.y, n_resamples=20, random_state=0)
        >>> cs.plot.stability(found).ax_.get_title("left")
        'Co-membership in 20 resamples'
        """
        return cls(result, quantity=quantity).plot(ax)

    def _figure(self) -> Figure:
        draw = {"map": trust.map_figure, "wavering": trust.wavering_figure}
        return draw[self.quantity](self.result)


def _contrasts(model: Any, X: Any, names: Sequence[str] | None) -> tuple[Contrasts, str]:
    """Weights, and the name of their axis: per standard deviation where there are samples."""
    axis = f"weight: {inspection.outputs_of(model).quantity} per standard deviation"
    return contrasts_of(model, X, names), weight_axis(model) if X is None else axis


weights = function_of("weights", WeightsDisplay.from_estimator)
clusters = function_of("clusters", ClustersDisplay.from_estimator)
path = function_of("path", PathDisplay.from_result)
convergence = function_of("convergence", ConvergenceDisplay.from_estimator)
experts = function_of("experts", ExpertsDisplay.from_estimator)
tasks = function_of("tasks", TasksDisplay.from_estimator)
stability = function_of("stability", StabilityDisplay.from_result)
