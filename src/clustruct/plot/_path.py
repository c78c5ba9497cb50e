"""How good models are along a search or a path."""

from typing import Any, Self

import numpy as np

from clustruct._arguments import as_choice
from clustruct.inspection import Curve, curve_of
from clustruct.plot._axes import COLOURS, dress, note
from clustruct.plot._display import Display
from clustruct.results import FeaturePath

__all__ = ["PathDisplay", "path"]

QUANTITIES = ("objective", "weights")
MOST_LINES = len(COLOURS)
LARGEST_MARK = 220.0


class PathDisplay(Display):
    """Scores of a search, or objectives and weights of a path, for every number of groups.

    Parameters
    ----------
    result : Curve or FeaturePath
        What to draw.
    quantity : {"objective", "weights"}, default="objective"
        For a path: the objectives, with the room down to their lower bounds, or the values of the
        groups, with marks as large as the groups. A search has scores, and nothing to choose.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the plot.
    figure_ : matplotlib Figure
        Figure of the axes.

    See Also
    --------
    path : Makes one and draws it.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_clustered_features(200, 20, 3, random_state=0)
    >>> found = cs.feature_cluster_path(
    ...     problem.X, problem.y, n_clusters=(1, 2, 3, 4), alphas=(1e-2, 1e-3)
    ... )
    >>> cs.plot.PathDisplay(found).plot().ax_.get_xlabel()
    'number of groups'
    """

    def __init__(self, result: Curve | FeaturePath, *, quantity: str = "objective") -> None:
        self.result = result
        self.quantity = as_choice(quantity, "quantity", QUANTITIES)

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Any = None) -> Self:
        """Draw the search of a fitted model.

        Parameters
        ----------
        model : estimator or Pipeline
            A fitted model that has searched, such as `FeatureClusterRegressorCV`.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        PathDisplay
            With `ax_` and `figure_`.
        """
        return cls(_as_result(model)).plot(ax)

    def _draw(self, ax: Any) -> None:
        if isinstance(self.result, Curve):
            _draw_curve(ax, self.result)
        elif self.quantity == "objective":
            _draw_objectives(ax, self.result)
        else:
            _draw_values(ax, self.result)


def _draw_curve(ax: Any, curve: Curve) -> None:
    """Scores with their standard errors; the number that was chosen is marked."""
    places = np.arange(len(curve.counts))
    ax.fill_between(
        places,
        curve.values - curve.deviations,
        curve.values + curve.deviations,
        color=COLOURS[0],
        alpha=0.18,
        linewidth=0,
    )
    ax.plot(places, curve.values, color=COLOURS[0], marker="o", markersize=4)
    ax.plot(
        places[curve.chosen],
        curve.values[curve.chosen],
        marker="o",
        markersize=11,
        markerfacecolor="none",
        markeredgecolor=COLOURS[3],
        markeredgewidth=2,
    )
    _ticks(ax, curve.counts)
    better = "larger" if curve.larger_is_better else "smaller"
    title = f"{curve.counts[curve.chosen]} chosen, with one standard error"
    dress(ax, title=title, x="number of groups", y=f"{curve.name} ({better} is better)")


def _draw_objectives(ax: Any, found: FeaturePath) -> None:
    """Objectives of each alpha, and the room down to what is proved."""
    lines = [(a, k) for a in range(found.alphas.size) for k in range(len(found.n_nonzero))]
    step = -(-len(lines) // MOST_LINES)
    places = np.arange(len(found.n_clusters))
    for colour, (a, k) in zip(COLOURS, lines[::step], strict=False):
        sparsity = "" if found.n_nonzero[k] is None else f", {found.n_nonzero[k]} nonzero"
        ax.plot(
            places,
            found.objectives[:, a, k],
            color=colour,
            marker="o",
            markersize=4,
            label=f"alpha {found.alphas[a]:.2g}{sparsity}",
        )
        ax.fill_between(
            places,
            found.lower_bounds[:, a, k],
            found.objectives[:, a, k],
            where=np.isfinite(found.lower_bounds[:, a, k]),
            color=colour,
            alpha=0.12,
            linewidth=0,
        )
    _ticks(ax, tuple(str(q) for q in found.n_clusters))
    if found.objectives.min() > 0.0 and found.objectives.max() > 20.0 * found.objectives.min():
        ax.set_yscale("log")
    ax.legend(fontsize="small", frameon=False)
    note(ax, f"{len(lines[::step])} of {len(lines)} lines drawn" if step > 1 else "")
    title = "Objectives, and the room down to their bounds"
    dress(ax, title=title, x="number of groups", y="objective")


def _draw_values(ax: Any, found: FeaturePath) -> None:
    """Values of the groups for every number of them, at the smallest alpha."""
    a = int(np.argmin(found.alphas))
    if found.coefs.ndim > 4:
        raise ValueError(
            "Values can be drawn for one output only, and this path has several. "
            'Choose quantity="objective".'
        )
    for place in range(len(found.n_clusters)):
        labels, coefs = found.labels[place, a, 0], found.coefs[place, a, 0]
        used, first, counts = np.unique(labels, return_index=True, return_counts=True)
        ax.scatter(
            np.full(used.size, place),
            coefs[first],
            s=12.0 + LARGEST_MARK * counts / labels.size,
            color=[COLOURS[0] if label >= 0 else "0.6" for label in used],
            alpha=0.7,
            linewidth=0,
        )
    ax.axhline(0.0, color="0.5", linewidth=0.8, zorder=0)
    _ticks(ax, tuple(str(q) for q in found.n_clusters))
    title = f"Values of the groups, alpha {found.alphas[a]:.2g}"
    dress(ax, title=title, x="number of groups", y="weight")


def _ticks(ax: Any, texts: tuple[str, ...]) -> None:
    step = -(-len(texts) // 15)
    ax.set_xticks(range(0, len(texts), step), texts[::step])


def _as_result(found: Any) -> Curve | FeaturePath:
    if isinstance(found, FeaturePath):
        return found
    curve = curve_of(found)
    if curve is None:
        raise ValueError(
            f"{type(found).__name__} holds no search and no path. Give the result of "
            "feature_cluster_path, a cv_results_ or selection_, or a fitted model whose name ends "
            "in CV."
        )
    return curve


def path(result: Any, *, quantity: str = "objective", ax: Any = None) -> PathDisplay:
    """Draw scores of a search, or objectives and weights of a path, over the number of groups.

    Parameters
    ----------
    result : FeaturePath, SearchResult, TaskSelection, CountSelection, estimator or Pipeline
        A path, the result of a search, or a fitted model that has searched.
    quantity : {"objective", "weights"}, default="objective"
        For a path: the objectives, with the room down to their lower bounds, or the values of the
        groups, with marks as large as the groups. A search has scores, and nothing to choose.
    ax : matplotlib Axes, default=None
        Where to draw; a new figure if None.

    Returns
    -------
    PathDisplay
        With `ax_` and `figure_`.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_clustered_features(100, 10, 3, random_state=0)
    >>> model = cs.FeatureClusterRegressorCV((2, 3, 4), alphas=(1e-1, 1e-3), random_state=0)
    >>> cs.plot.path(model.fit(problem.X, problem.y)).ax_.get_ylabel()
    'mean squared error (smaller is better)'
    """
    return PathDisplay(_as_result(result), quantity=quantity).plot(ax)
