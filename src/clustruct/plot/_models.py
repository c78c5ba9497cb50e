"""Experts along a feature, the map of tasks, and the weights of both."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

from numpy.typing import ArrayLike

from clustruct._arguments import as_choice
from clustruct.explanation.contrasts import Contrasts, contrasts_of
from clustruct.explanation.effects import weight_axis
from clustruct.figures.maps import experts_figure, tasks_figure
from clustruct.figures.marks import Figure
from clustruct.figures.weights import contrasts_figure
from clustruct.inspection import (
    ExpertLines,
    TaskMap,
    expert_lines,
    outputs_of,
    require_kind,
    task_map,
)
from clustruct.plot._display import Display, function_of

__all__ = ["ExpertsDisplay", "TasksDisplay", "experts", "tasks"]


@dataclass(eq=False, repr=False)
class ExpertsDisplay(Display, function="experts"):
    """Experts along a feature with the samples that they predict, or their weights.

    Parameters
    ----------
    result : ExpertLines or Contrasts
        What to draw.
    axis : str, default="weight"
        What weights are, for the axis.
    """

    result: ExpertLines | Contrasts
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

        Where there are several features, a sample is drawn at its target less what its expert
        makes of the other features, so that samples lie about the line of their expert.

        Parameters
        ----------
        model : estimator or Pipeline
            A fitted `SampleClusterRegressor`, `SampleClusterClassifier` or a pipeline that ends in
            one.
        X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
            Samples, for lines; weights are those for a standard deviation of each feature then.
        y : array-like of shape (n_samples,), default=None
            Their targets.
        kind : {"auto", "lines", "weights"}, default="auto"
            Lines along one feature, which take samples and a regression with one output, or
            weights in which the experts differ most, for every class where there are several.
        feature : int or str, default=None
            The feature to draw lines along; the one in which experts differ most if None.
        feature_names : sequence of str, default=None
            Names of the features; those that the model knows if None.
        max_samples : int, default=2000
            Draw no more than so many samples; the plot says so.

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
        estimator = require_kind(model, "samples")
        if kind == "auto":
            drawable = estimator.experts_.ndim == 2 and X is not None and y is not None
            kind = "lines" if drawable else "weights"
        if kind == "weights":
            weights = contrasts_of(model, X, feature_names)
            return cls(weights, axis=_contrast_axis(model, X)).plot(ax)
        if X is None or y is None:
            raise ValueError('kind="lines" needs samples. Give X and y, or kind="weights".')
        lines = expert_lines(model, X, y, feature=feature, names=feature_names, most=max_samples)
        return cls(lines).plot(ax)

    def _figure(self) -> Figure:
        if isinstance(self.result, ExpertLines):
            return experts_figure(self.result)
        return contrasts_figure(self.result, self.axis)


@dataclass(eq=False, repr=False)
class TasksDisplay(Display, function="tasks"):
    """Tasks in the plane in which their predictors differ most, or the weights of their groups.

    Parameters
    ----------
    result : TaskMap or Contrasts
        Places of the tasks, as `clustruct.inspection.task_map` gives them, or the centroids.
    max_names : int, default=40
        Write no names where there are more tasks than this; nor names that would touch.
    axis : str, default="weight"
        What weights are, for the axis.
    """

    result: TaskMap | Contrasts
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
        model : estimator or Pipeline
            A fitted model of tasks.
        X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
            Samples: weights are those for a standard deviation of each feature then.
        kind : {"map", "weights"}, default="map"
            What to draw.
        feature_names : sequence of str, default=None
            Names of the features; those that the model knows if None.
        max_names : int, default=40
            Write no names where there are more tasks than this; the plot says so.

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
            return cls(task_map(model), max_names=max_names).plot(ax)
        weights = contrasts_of(model, X, feature_names)
        return cls(weights, axis=_contrast_axis(model, X)).plot(ax)

    def _figure(self) -> Figure:
        if isinstance(self.result, TaskMap):
            return tasks_figure(self.result, self.max_names)
        return contrasts_figure(self.result, self.axis)


def _contrast_axis(model: Any, X: Any) -> str:
    """What the weights are: for a standard deviation where there are samples to tell it."""
    if X is None:
        return weight_axis(model)
    return f"weight: {outputs_of(model).quantity} per standard deviation"


experts = function_of("experts", ExpertsDisplay.from_estimator)
tasks = function_of("tasks", TasksDisplay.from_estimator)
