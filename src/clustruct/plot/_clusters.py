"""The groups of a model: how large they are and what is in them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from clustruct.explanation.effects import weight_axis
from clustruct.inspection import answers_of, final_estimator, kind_of, levels_of, thinned
from clustruct.inspection import feature_names as names_of
from clustruct.plot._axes import colour_of, dress, note, shorten
from clustruct.plot._display import Display
from clustruct.results.tables import plural

__all__ = ["ClustersDisplay", "clusters"]

MOST_MEMBERS = 4


@dataclass(frozen=True, eq=False)
class Bars:
    """Bars of each group, one or one for every class: lengths, what is written, its label."""

    lengths: NDArray[np.float64]
    texts: tuple[str, ...]
    labels: NDArray[np.intp]
    title: str
    length_name: str
    classes: tuple[str, ...] = ()


class ClustersDisplay(Display):
    """One bar for each group, with its size and some of its members.

    Bars show the weight for groups of features, one for every class or output where there are
    several, the share of the samples for experts, and the number of tasks for groups of tasks.

    Parameters
    ----------
    bars : Bars
        Lengths and texts.
    max_groups : int, default=30
        Draw no more than so many groups, evenly over their order.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the plot.
    figure_ : matplotlib Figure
        Figure of the axes.

    See Also
    --------
    clusters : Makes one of a fitted model and draws it.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_clustered_features(200, 20, 3, random_state=0)
    >>> model = cs.FeatureClusterRegressor(3).fit(problem.X, problem.y)
    >>> len(cs.plot.ClustersDisplay.from_estimator(model).bars.lengths)
    3
    """

    def __init__(self, bars: Bars, *, max_groups: int = 30) -> None:
        self.bars = bars
        self.max_groups = max_groups

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        *,
        feature_names: Sequence[str] | None = None,
        max_groups: int = 30,
        ax: Any = None,
    ) -> Self:
        """Draw the groups of a fitted model.

        Parameters
        ----------
        model : estimator or Pipeline
            A fitted model.
        feature_names : sequence of str, default=None
            Names of the features; those that the model knows if None.
        max_groups : int, default=30
            Draw no more than so many groups.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        ClustersDisplay
            With `ax_` and `figure_`.
        """
        make = {"features": _of_features, "samples": _of_samples, "tasks": _of_tasks}
        bars = make[kind_of(model)](model, feature_names)
        return cls(bars, max_groups=max_groups).plot(ax)

    def _draw(self, ax: Any) -> None:
        count = len(self.bars.lengths)
        shown = thinned(np.arange(count), self.max_groups)
        lengths = self.bars.lengths[shown]
        rows = np.arange(shown.size)[::-1]
        if self.bars.classes:
            height = 0.44 / len(self.bars.classes)
            for k, name in enumerate(self.bars.classes):
                places = rows - height * (k + 0.5)
                ax.barh(
                    places, lengths[:, k], color=colour_of(k), height=height, label=shorten(name)
                )
            ax.legend(fontsize="small", frameon=False)
        else:
            colours = [colour_of(label) for label in self.bars.labels[shown]]
            ax.barh(rows - 0.18, lengths, color=colours, height=0.36)
        ax.axvline(0.0, color="0.5", linewidth=0.8)
        for row, group in zip(rows, shown, strict=True):
            ax.annotate(
                self.bars.texts[group],
                (min(0.0, float(lengths.min())), row + 0.04),
                fontsize="x-small",
                va="bottom",
            )
        names = ["zero" if label < 0 else str(label) for label in self.bars.labels[shown]]
        ax.set_yticks(rows, names)
        ax.set_ylim(-0.6, shown.size - 0.2)
        note(ax, f"{shown.size} of {count} groups drawn" if shown.size < count else "")
        dress(ax, title=self.bars.title, x=self.bars.length_name, y="group", grid="x")


def _of_features(model: Any, names: Sequence[str] | None) -> Bars:
    levels = levels_of(model, names)
    several = levels.values.shape[1] > 1
    labels = np.arange(len(levels.sizes))
    lengths, texts = levels.values if several else levels.values[:, 0], []
    for label in labels.tolist():
        texts.append(_members("feature", levels.names[levels.members(label)]))
    if levels.n_zero:
        labels = np.append(labels, -1)
        lengths = np.concatenate([lengths, np.zeros_like(lengths[:1])])
        texts.append(_members("feature", levels.names[levels.members(-1)]))
    n_features, n_groups = levels.labels.size, len(levels.sizes)
    return Bars(
        lengths,
        tuple(texts),
        labels,
        f"{plural(n_features, 'feature')} in {plural(n_groups, 'group')}",
        weight_axis(model),
        answers_of(model).names if several else (),
    )


def _of_samples(model: Any, names: Sequence[str] | None) -> Bars:
    estimator = final_estimator(model)
    known = names_of(model, names)
    texts = []
    for q, share in enumerate(estimator.weights_):
        size = np.linalg.norm(np.atleast_2d(estimator.experts_[q]), axis=0)
        largest = known[np.argsort(-size, kind="stable")[:3]]
        texts.append(f"{share:.0%}, largest weights: {', '.join(map(shorten, largest))}")
    return Bars(
        np.asarray(estimator.weights_, dtype=np.float64),
        tuple(texts),
        np.arange(len(estimator.weights_)),
        f"{plural(len(estimator.labels_), 'sample')}, {plural(len(estimator.weights_), 'expert')}",
        "share of the samples",
    )


def _of_tasks(model: Any, names: Sequence[str] | None) -> Bars:
    estimator = final_estimator(model)
    labels = np.asarray(estimator.labels_)
    tasks = np.array([str(task) for task in estimator.tasks_], dtype=object)
    present = np.unique(labels)
    return Bars(
        np.bincount(labels)[present].astype(np.float64),
        tuple(_members("task", tasks[labels == label]) for label in present),
        present,
        f"{plural(tasks.size, 'task')} in {plural(present.size, 'group')}",
        "number of tasks",
    )


def _members(thing: str, names: NDArray[np.object_]) -> str:
    """How many members there are, and the first of them."""
    more = ", \N{HORIZONTAL ELLIPSIS}" if names.size > MOST_MEMBERS else ""
    first = ", ".join(shorten(name, 18) for name in names[:MOST_MEMBERS])
    return f"{plural(names.size, thing)}: {first}{more}"


def clusters(
    model: Any,
    *,
    feature_names: Sequence[str] | None = None,
    max_groups: int = 30,
    ax: Any = None,
) -> ClustersDisplay:
    """Draw the groups of a model: a bar for each, with its size and some of its members.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted model of features, samples or tasks.
    feature_names : sequence of str, default=None
        Names of the features; those that the model knows if None.
    max_groups : int, default=30
        Draw no more than so many groups; the plot says so.
    ax : matplotlib Axes, default=None
        Where to draw; a new figure if None.

    Returns
    -------
    ClustersDisplay
        With `ax_` and `figure_`.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_experts(200, 4, 2, random_state=0)
    >>> model = cs.SampleClusterRegressor(2, random_state=0).fit(problem.X, problem.y)
    >>> cs.plot.clusters(model).ax_.get_xlabel()
    'share of the samples'
    """
    return ClustersDisplay.from_estimator(
        model, feature_names=feature_names, max_groups=max_groups, ax=ax
    )
