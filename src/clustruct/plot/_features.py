"""Weights of features and their levels, and the groups of any model."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from clustruct._typing import Floats
from clustruct.explanation.effects import weight_axis
from clustruct.figures.groups import GroupBars, groups_figure, groups_of
from clustruct.figures.marks import Figure
from clustruct.figures.weights import weights_figure
from clustruct.inspection import Levels, levels_of, outputs_of
from clustruct.plot._display import Display, function_of

__all__ = ["ClustersDisplay", "WeightsDisplay", "clusters", "weights"]


@dataclass(eq=False, repr=False)
class WeightsDisplay(Display, function="weights"):
    """Weights of features, in order, and the levels that they share.

    With several outputs, the weights of each group for every output.

    Parameters
    ----------
    levels : Levels
        Weights, groups and names, as `clustruct.inspection.levels_of` gives them.
    reference : array-like of shape (n_features,), default=None
        Other weights of the same features, such as those of a ridge regression, drawn as dots that
        are joined to their level.
    max_features : int, default=2000
        Draw no more than so many features, evenly over their order.
    axis : str, default="weight"
        What the weights are, for the axis.
    outputs : sequence of str, default=None
        Names of several outputs, such as classes; numbers if None.
    """

    levels: Levels
    _: KW_ONLY
    reference: ArrayLike | None = None
    max_features: int = 2000
    axis: str = "weight"
    outputs: Sequence[str] | None = None

    def __post_init__(self) -> None:
        self._reference = _as_reference(self.reference, self.levels)

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

        Parameters
        ----------
        model : estimator or Pipeline
            A fitted `FeatureClusterRegressor`, `FeatureClusterClassifier` or a pipeline that ends
            in one.
        feature_names : sequence of str, default=None
            Names of the features; those that the model knows if None.
        reference : array-like of shape (n_features,), default=None
            Other weights of the same features, such as those of a ridge regression, drawn as dots
            that are joined to their level.
        max_features : int, default=2000
            Draw no more than so many features; the plot says so.

        Examples
        --------
        >>> import clustruct as cs
        >>> problem = cs.datasets.make_clustered_features(200, 20, 3, random_state=0)
        >>> model = cs.FeatureClusterRegressor(3).fit(problem.X, problem.y)
        >>> cs.plot.weights(model).ax_.get_title("left")
        '20 weights, 3 levels'
        """
        levels, outputs = levels_of(model, feature_names), outputs_of(model).names
        options: dict[str, Any] = {"reference": reference, "max_features": max_features}
        return cls(levels, axis=weight_axis(model), outputs=outputs, **options).plot(ax)

    def _figure(self) -> Figure:
        return weights_figure(
            self.levels,
            self.axis,
            outputs=self.outputs,
            reference=self._reference,
            most=self.max_features,
        )


def _as_reference(reference: ArrayLike | None, levels: Levels) -> Floats | None:
    if reference is None:
        return None
    values = np.asarray(reference, dtype=np.float64).reshape(-1)
    if values.shape != levels.labels.shape or levels.values.shape[1] > 1:
        raise ValueError(
            f"reference holds {values.size} weights, but the model has {levels.labels.size} "
            f"features and {levels.values.shape[1]} outputs. Give one weight for each feature of "
            "a model with one output."
        )
    return values


@dataclass(eq=False, repr=False)
class ClustersDisplay(Display, function="clusters"):
    """One bar for each group, with its size and some of its members.

    Bars show the weight for groups of features, one for every class or output where there are
    several, the share of the samples for experts, and the number of tasks for groups of tasks.

    Parameters
    ----------
    bars : GroupBars
        Lengths and texts.
    max_groups : int, default=30
        Draw no more than so many groups, evenly over their order.
    """

    bars: GroupBars
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

        Parameters
        ----------
        model : estimator or Pipeline
            A fitted model of features, samples or tasks.
        feature_names : sequence of str, default=None
            Names of the features; those that the model knows if None.
        max_groups : int, default=30
            Draw no more than so many groups; the plot says so.

        Examples
        --------
        >>> import clustruct as cs
        >>> problem = cs.datasets.make_experts(200, 4, 2, random_state=0)
        >>> model = cs.SampleClusterRegressor(2, random_state=0).fit(problem.X, problem.y)
        >>> cs.plot.clusters(model).ax_.get_xlabel()
        'share of the samples'
        """
        return cls(groups_of(model, feature_names), max_groups=max_groups).plot(ax)

    def _figure(self) -> Figure:
        return groups_figure(self.bars, self.max_groups)


weights = function_of("weights", WeightsDisplay.from_estimator)
clusters = function_of("clusters", ClustersDisplay.from_estimator)
