"""Experts: their lines, or their weights."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from clustruct._arguments import as_choice
from clustruct.explanation.contrasts import Contrasts, contrasts_of
from clustruct.inspection import ExpertLines, expert_lines, require_kind
from clustruct.plot._axes import colour_of, dress, marker_of, note, shorten
from clustruct.plot._contrasts import contrast_axis, draw_contrasts
from clustruct.plot._display import Display

__all__ = ["ExpertsDisplay", "experts"]

KINDS = ("auto", "lines", "weights")


class ExpertsDisplay(Display):
    """Experts along a feature with the samples that they answer, or their weights.

    Parameters
    ----------
    result : ExpertLines or Contrasts
        What to draw.
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
    experts : Makes one of a fitted model and draws it.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_experts(300, 1, 2, random_state=0)
    >>> model = cs.SampleClusterRegressor(2, random_state=0).fit(problem.X, problem.y)
    >>> display = cs.plot.ExpertsDisplay.from_estimator(model, problem.X, problem.y)
    >>> len(display.ax_.lines)
    2
    """

    def __init__(self, result: ExpertLines | Contrasts, *, axis: str = "weight") -> None:
        self.result = result
        self.axis = axis

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
        """Draw the experts of a fitted model.

        Parameters
        ----------
        model : estimator or Pipeline
            A fitted model of samples.
        X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
            Samples, for lines; weights are those for a standard deviation of each feature then.
        y : array-like of shape (n_samples,), default=None
            Their answers.
        kind : {"auto", "lines", "weights"}, default="auto"
            Lines along one feature, which take samples and a regression with one output, or
            weights.
        feature : int or str, default=None
            The feature to draw lines along; the one in which experts differ most if None.
        feature_names : sequence of str, default=None
            Names of the features; those that the model knows if None.
        max_samples : int, default=2000
            Draw no more than so many samples.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        ExpertsDisplay
            With `ax_` and `figure_`.
        """
        kind = as_choice(kind, "kind", KINDS)
        estimator = require_kind(model, "samples")
        if kind == "auto":
            drawable = estimator.experts_.ndim == 2 and X is not None and y is not None
            kind = "lines" if drawable else "weights"
        if kind == "weights":
            weights = contrasts_of(model, X, feature_names)
            return cls(weights, axis=contrast_axis(model, X)).plot(ax)
        if X is None or y is None:
            raise ValueError('kind="lines" needs samples. Give X and y, or kind="weights".')
        lines = expert_lines(model, X, y, feature=feature, names=feature_names, most=max_samples)
        return cls(lines).plot(ax)

    def _draw(self, ax: Any) -> None:
        if isinstance(self.result, ExpertLines):
            _draw_lines(ax, self.result)
        else:
            draw_contrasts(ax, self.result, "Weights of the experts", self.axis)


def _draw_lines(ax: Any, found: ExpertLines) -> None:
    ends = np.array([found.x.min(), found.x.max()])
    for q, (slope, intercept) in enumerate(zip(found.slopes, found.intercepts, strict=True)):
        mine = found.labels == q
        colour = colour_of(q)
        ax.scatter(
            found.x[mine], found.y[mine], s=10, color=colour, marker=marker_of(q), alpha=0.45
        )
        share = mine.mean() if mine.size else 0.0
        ax.plot(
            ends, slope * ends + intercept, color=colour, linewidth=2, label=f"{q}: {share:.0%}"
        )
    ax.legend(title="expert", fontsize="small", frameon=False)
    drawn = found.x.size
    note(ax, f"{drawn:,} of {found.n_samples:,} samples" if drawn < found.n_samples else "")
    answer = "answer, less what other features explain" if found.partial else "answer"
    dress(ax, title="Samples and their experts", x=shorten(found.feature), y=answer)


def experts(
    model: Any,
    X: Any = None,
    y: ArrayLike | None = None,
    *,
    kind: str = "auto",
    feature: int | str | None = None,
    feature_names: Sequence[str] | None = None,
    max_samples: int = 2000,
    ax: Any = None,
) -> ExpertsDisplay:
    """Draw experts along a feature with the samples that they answer, or their weights.

    Where there are several features, a sample is drawn at its answer less what its expert makes of
    the other features, so that samples lie about the line of their expert.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted `SampleClusterRegressor`, `SampleClusterClassifier` or a pipeline that ends in one.
    X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
        Samples, for lines; weights are those for a standard deviation of each feature then.
    y : array-like of shape (n_samples,), default=None
        Their answers.
    kind : {"auto", "lines", "weights"}, default="auto"
        Lines along one feature, which take samples and a regression with one output, or weights
        in which the experts differ most, for every class where there are several.
    feature : int or str, default=None
        The feature to draw lines along; the one in which experts differ most if None.
    feature_names : sequence of str, default=None
        Names of the features; those that the model knows if None.
    max_samples : int, default=2000
        Draw no more than so many samples; the plot says so.
    ax : matplotlib Axes, default=None
        Where to draw; a new figure if None.

    Returns
    -------
    ExpertsDisplay
        With `ax_` and `figure_`.

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
    return ExpertsDisplay.from_estimator(
        model,
        X,
        y,
        kind=kind,
        feature=feature,
        feature_names=feature_names,
        max_samples=max_samples,
        ax=ax,
    )
