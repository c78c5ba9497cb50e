"""Experts: their lines, or their weights."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clustruct._arguments import as_choice
from clustruct.inspection import ExpertLines, expert_lines, require_kind
from clustruct.inspection import feature_names as names_of
from clustruct.plot._axes import colour_of, dress, marker_of, note, shorten
from clustruct.plot._display import Display

__all__ = ["ExpertWeights", "ExpertsDisplay", "experts"]

KINDS = ("auto", "lines", "weights")
MOST_FEATURES = 30


class ExpertWeights:
    """Weights of experts for the features in which they are largest.

    Parameters
    ----------
    names : ndarray of str, shape (d,)
        Names of the features.
    weights : ndarray of shape (Q, d)
        Weights; lengths over the outputs where there are several.
    n_features : int
        How many features there were.
    several : bool
        Whether there are several outputs.
    """

    def __init__(self, model: Any, names: Sequence[str] | None, most: int) -> None:
        estimator = require_kind(model, "samples")
        weights = np.asarray(estimator.experts_, dtype=np.float64)
        self.several = weights.ndim == 3 and weights.shape[1] > 1
        if weights.ndim == 3:
            weights = np.linalg.norm(weights, axis=1) if self.several else weights[:, 0]
        self.n_features = weights.shape[1]
        kept = np.argsort(-np.abs(weights).max(axis=0), kind="stable")[:most]
        self.names = names_of(model, names)[kept]
        self.weights: NDArray[np.float64] = weights[:, kept]


class ExpertsDisplay(Display):
    """Experts along a feature with the samples that they answer, or their weights.

    Parameters
    ----------
    result : ExpertLines or ExpertWeights
        What to draw.

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

    def __init__(self, result: ExpertLines | ExpertWeights) -> None:
        self.result = result

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
            Samples, for lines.
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
            return cls(ExpertWeights(model, feature_names, MOST_FEATURES)).plot(ax)
        if X is None or y is None:
            raise ValueError('kind="lines" needs samples. Give X and y, or kind="weights".')
        lines = expert_lines(model, X, y, feature=feature, names=feature_names, most=max_samples)
        return cls(lines).plot(ax)

    def _draw(self, ax: Any) -> None:
        if isinstance(self.result, ExpertLines):
            _draw_lines(ax, self.result)
        else:
            _draw_weights(ax, self.result)


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


def _draw_weights(ax: Any, found: ExpertWeights) -> None:
    rows = np.arange(found.names.size)[::-1]
    ax.axvline(0.0, color="0.5", linewidth=0.8, zorder=0)
    for q, weights in enumerate(found.weights):
        ax.plot(
            weights,
            rows,
            color=colour_of(q),
            marker=marker_of(q),
            linestyle="none",
            markersize=6,
            alpha=0.85,
            label=str(q),
        )
    ax.set_yticks(rows, [shorten(name) for name in found.names], fontsize="small")
    ax.legend(title="expert", fontsize="small", frameon=False)
    shown = found.names.size
    note(ax, f"{shown} of {found.n_features:,} features" if shown < found.n_features else "")
    name = "length of the weights" if found.several else "weight"
    dress(ax, title="Weights of the experts", x=name, y="")


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
        Samples, for lines.
    y : array-like of shape (n_samples,), default=None
        Their answers.
    kind : {"auto", "lines", "weights"}, default="auto"
        Lines along one feature, which take samples and a regression with one output, or weights.
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
