"""Weights of features, and the levels that they share."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clustruct.explanation.effects import weight_axis
from clustruct.inspection import Levels, answers_of, levels_of, thinned
from clustruct.plot._axes import colour_of, dress, marker_of, note, shorten
from clustruct.plot._display import Display

__all__ = ["WeightsDisplay", "weights"]

MOST_NAMED = 40


class WeightsDisplay(Display):
    """Weights of features, in order, and the levels that they share.

    With several outputs, the weights of each group over the outputs.

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

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the plot.
    figure_ : matplotlib Figure
        Figure of the axes.

    See Also
    --------
    weights : Makes one of a fitted model and draws it.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_clustered_features(200, 20, 3, random_state=0)
    >>> model = cs.FeatureClusterRegressor(3).fit(problem.X, problem.y)
    >>> display = cs.plot.WeightsDisplay.from_estimator(model)
    >>> display.ax_.get_xlabel()
    'weight: prediction per unit'
    """

    def __init__(
        self,
        levels: Levels,
        *,
        reference: ArrayLike | None = None,
        max_features: int = 2000,
        axis: str = "weight",
        outputs: Sequence[str] | None = None,
    ) -> None:
        self.levels = levels
        self.reference = _as_reference(reference, levels)
        self.max_features = max_features
        self.axis = axis
        self.outputs = outputs

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
        """Draw the weights of a fitted model.

        Parameters
        ----------
        model : estimator or Pipeline
            A fitted model of features.
        feature_names : sequence of str, default=None
            Names of the features; those that the model knows if None.
        reference : array-like of shape (n_features,), default=None
            Other weights of the same features, drawn as dots.
        max_features : int, default=2000
            Draw no more than so many features.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        WeightsDisplay
            With `ax_` and `figure_`.
        """
        levels = levels_of(model, feature_names)
        return cls(
            levels,
            reference=reference,
            max_features=max_features,
            axis=weight_axis(model),
            outputs=answers_of(model).names,
        ).plot(ax)

    def _draw(self, ax: Any) -> None:
        if self.levels.values.shape[1] > 1:
            _draw_outputs(ax, self.levels, self.axis, self.outputs)
            return
        dots = self.levels.weights[:, 0] if self.reference is None else self.reference
        full_order = np.lexsort((dots, self.levels.weights[:, 0]))
        order = thinned(full_order, self.max_features)
        named = order.size <= MOST_NAMED
        place = np.empty(self.levels.labels.size)
        place[full_order] = np.arange(full_order.size)
        ax.axvline(0.0, color="0.5", linewidth=0.8, zorder=0)
        for label in np.unique(self.levels.labels).tolist():
            members = order[self.levels.labels[order] == label]
            whole = place[self.levels.members(label)]
            level = 0.0 if label < 0 else float(self.levels.values[label, 0])
            colour = colour_of(label)
            ax.vlines(level, whole.min() - 0.4, whole.max() + 0.4, color=colour, linewidth=2.5)
            if self.reference is not None:
                ax.hlines(
                    place[members], dots[members], level, color=colour, linewidth=0.8, alpha=0.5
                )
            ax.scatter(
                dots[members],
                place[members],
                s=26 if named else 8,
                color=colour,
                marker=marker_of(max(label, 0)),
                zorder=3,
            )
            # In its lowest row the group's dot lies left of the level: there is room to the right.
            ax.annotate(
                "0" if label < 0 else f"{level:+.3g}",
                (level, whole.min()),
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                fontsize="small",
                color=colour,
                fontweight="bold",
            )
        ax.margins(x=0.12)
        names = [shorten(name) for name in self.levels.names[order]]
        if named:
            ax.set_yticks(place[order], names, fontsize="small")
        dress(ax, title=_title(self.levels), x=self.axis, y="" if named else "features, in order")
        if order.size < full_order.size:
            note(ax, f"{order.size:,} of {full_order.size:,} features drawn")


def _draw_outputs(ax: Any, levels: Levels, axis: str, names: Sequence[str] | None) -> None:
    """The weights of each group over the outputs, thick where it is large."""
    outputs = np.arange(levels.values.shape[1])
    ax.axhline(0.0, color="0.5", linewidth=0.8, zorder=0)
    for label, (values, size) in enumerate(zip(levels.values, levels.sizes.tolist(), strict=True)):
        ax.plot(
            outputs,
            values,
            color=colour_of(label),
            marker=marker_of(label),
            linewidth=1.0 + 3.0 * size / levels.sizes.max(),
            label=f"{size} feature{'s' * (size != 1)}",
        )
    ax.set_xticks(outputs, None if names is None else [shorten(name, 16) for name in names])
    if len(levels.sizes) <= 10:
        ax.legend(fontsize="small", frameon=False)
    dress(ax, title=_title(levels), x="", y=axis)


def _title(levels: Levels) -> str:
    count = len(levels.sizes)
    zero = f", {levels.n_zero:,} zero" if levels.n_zero else ""
    return f"{levels.labels.size:,} weights, {count} level{'s' * (count != 1)}{zero}"


def _as_reference(reference: ArrayLike | None, levels: Levels) -> NDArray[np.float64] | None:
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


def weights(
    model: Any,
    *,
    feature_names: Sequence[str] | None = None,
    reference: ArrayLike | None = None,
    max_features: int = 2000,
    ax: Any = None,
) -> WeightsDisplay:
    """Draw the weights of features, in order, and the levels that they share.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted `FeatureClusterRegressor`, `FeatureClusterClassifier` or a pipeline that ends in
        one.
    feature_names : sequence of str, default=None
        Names of the features; those that the model knows if None.
    reference : array-like of shape (n_features,), default=None
        Other weights of the same features, such as those of a ridge regression, drawn as dots that
        are joined to their level.
    max_features : int, default=2000
        Draw no more than so many features; the plot says so.
    ax : matplotlib Axes, default=None
        Where to draw; a new figure if None.

    Returns
    -------
    WeightsDisplay
        With `ax_` and `figure_`.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_clustered_features(200, 20, 3, random_state=0)
    >>> model = cs.FeatureClusterRegressor(3).fit(problem.X, problem.y)
    >>> cs.plot.weights(model).ax_.get_title("left")
    '20 weights, 3 levels'
    """
    return WeightsDisplay.from_estimator(
        model,
        feature_names=feature_names,
        reference=reference,
        max_features=max_features,
        ax=ax,
    )
