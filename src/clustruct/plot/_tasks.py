"""The map of tasks, or the weights of their groups."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from clustruct._arguments import as_choice
from clustruct.explanation.contrasts import Contrasts, contrasts_of
from clustruct.inspection import TaskMap, apart, task_map
from clustruct.plot._axes import colour_of, dress, marker_of, note, shorten
from clustruct.plot._contrasts import contrast_axis, draw_contrasts
from clustruct.plot._display import Display
from clustruct.results.tables import plural

__all__ = ["TasksDisplay", "tasks"]

KINDS = ("map", "weights")


class TasksDisplay(Display):
    """Tasks in the plane in which their predictors differ most, or the weights of their groups.

    Parameters
    ----------
    result : TaskMap or Contrasts
        Places of the tasks, as `clustruct.inspection.task_map` gives them, or the centroids.
    max_names : int, default=40
        Write no names where there are more tasks than this; nor names that would touch.
    axis : str, default="weight"
        What weights are, for the axis.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the plot.
    figure_ : matplotlib Figure
        Figure of the axes.

    See Also
    --------
    tasks : Makes one of a fitted model and draws it.

    Examples
    --------
    >>> import numpy as np
    >>> import clustruct as cs
    >>> from clustruct.inspection import TaskMap
    >>> places = np.array([[0.0, 1.0], [0.1, 1.0], [5.0, 0.0]])
    >>> names = np.array(["a", "b", "c"], dtype=object)
    >>> found = TaskMap(names, places, np.array([0, 0, 1]), places[[0, 2]], (0.9, 0.1))
    >>> cs.plot.TasksDisplay(found).plot().ax_.get_title("left")
    '3 tasks in 2 groups'
    """

    def __init__(
        self, result: TaskMap | Contrasts, *, max_names: int = 40, axis: str = "weight"
    ) -> None:
        self.result = result
        self.max_names = max_names
        self.axis = axis

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
        """Draw the tasks of a fitted model, or the weights of their groups.

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
            Write no names where there are more tasks than this.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        TasksDisplay
            With `ax_` and `figure_`.
        """
        if as_choice(kind, "kind", KINDS) == "map":
            return cls(task_map(model), max_names=max_names).plot(ax)
        weights = contrasts_of(model, X, feature_names)
        return cls(weights, axis=contrast_axis(model, X)).plot(ax)

    def _draw(self, ax: Any) -> None:
        found = self.result
        if isinstance(found, Contrasts):
            draw_contrasts(ax, found, "Weights of the groups of tasks", self.axis)
            return
        groups = np.unique(found.labels)
        for label in groups.tolist():
            mine = found.labels == label
            colour = colour_of(label)
            middle = found.centroids[label] if label < len(found.centroids) else None
            if middle is not None:
                for place in found.points[mine]:
                    ax.plot(*zip(middle, place, strict=True), color=colour, alpha=0.25, linewidth=1)
                ax.scatter(*middle, s=120, color=colour, marker="P", edgecolor="white", zorder=4)
            ax.scatter(*found.points[mine].T, s=24, color=colour, marker=marker_of(label), zorder=3)
        if found.names.size <= self.max_names:
            for i in apart(found.points):
                ax.annotate(
                    shorten(found.names[i]),
                    found.points[i],
                    xytext=(4, 3),
                    textcoords="offset points",
                    fontsize="x-small",
                )
        else:
            note(ax, "too many tasks to name")
        first, second = found.shares
        dress(
            ax,
            title=f"{plural(found.names.size, 'task')} in {plural(groups.size, 'group')}",
            x=f"first component of the predictors ({first:.0%})",
            y=f"second component ({second:.0%})",
        )


def tasks(
    model: Any,
    X: Any = None,
    *,
    kind: str = "map",
    feature_names: Sequence[str] | None = None,
    max_names: int = 40,
    ax: Any = None,
) -> TasksDisplay:
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
    ax : matplotlib Axes, default=None
        Where to draw; a new figure if None.

    Returns
    -------
    TasksDisplay
        With `ax_` and `figure_`.

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
    return TasksDisplay.from_estimator(
        model, X, kind=kind, feature_names=feature_names, max_names=max_names, ax=ax
    )
