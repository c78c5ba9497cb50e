"""The work behind ``clustruct demo``: exact projections of the weights of a real model.

A ridge regression is fitted to scikit-learn's breast cancer data, 30 named features of 569 tumours.
Its 30 weights are then replaced by a few shared ones, and what that costs is measured.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from clustruct.projections import kmeans_1d, project_clustered
from clustruct.results import Projection

ZERO = -1  # the label of the group of zero weights
COLOURS = ("#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00")  # safe for the colour-blind


@dataclass(frozen=True)
class Group:
    """Features that share a weight; ``label`` is -1 where that weight is zero."""

    label: int
    weight: float
    features: list[str]


@dataclass(frozen=True)
class Model:
    """A weight vector of the demonstration, and how it does on samples it has not seen.

    ``lost`` is the squared distance to the weights of the full model, relative to their squared
    norm.
    """

    call: str
    weights: list[float]
    groups: list[Group]
    lost: float
    r2: float
    accuracy: float


@dataclass(frozen=True)
class Demo:
    """All that the demonstration found: the full model, its projections, the loss for each Q."""

    data: str
    features: list[str]
    full: Model
    projected: list[Model]
    lost_by_n_clusters: list[float]

    def to_dict(self) -> dict[str, Any]:
        """As plain values, ready for JSON."""
        return asdict(self)


def run_demo() -> Demo:
    """Fit the model, project its weights, measure what is lost."""
    bunch = load_breast_cancer()
    features = [str(name) for name in bunch.feature_names]
    train_x, test_x, train_y, test_y = train_test_split(
        bunch.data, bunch.target, test_size=0.3, random_state=0, stratify=bunch.target
    )
    scaler = StandardScaler().fit(train_x)
    ridge = Ridge(alpha=10.0).fit(scaler.transform(train_x), train_y)
    held_out = scaler.transform(test_x)
    w = ridge.coef_
    norm = float(w @ w)

    def judge(call: str, weights: NDArray[np.floating], groups: list[Group]) -> Model:
        scores = held_out @ weights + ridge.intercept_
        return Model(
            call=call,
            weights=weights.tolist(),
            groups=groups,
            lost=float(np.sum((w - weights) ** 2)) / norm,
            r2=float(r2_score(test_y, scores)),
            accuracy=float(accuracy_score(test_y, scores > 0.5)),
        )

    projected = []
    for call, projection in (
        ("project_clustered(w, 5)", project_clustered(w, 5)),
        ("project_clustered(w, 4, n_nonzero=12)", project_clustered(w, 4, n_nonzero=12)),
    ):
        projected.append(judge(call, projection.point, _groups(projection, features)))
    return Demo(
        data=f"breast cancer, {len(train_y)} tumours to fit and {len(test_y)} held out",
        features=features,
        full=judge("w", w, []),
        projected=projected,
        lost_by_n_clusters=[float(kmeans_1d(w, q).inertia) / norm for q in range(1, 11)],
    )


def _groups(projection: Projection, features: list[str]) -> list[Group]:
    """The groups of a projection in the order of their weights."""
    groups = []
    for label in np.unique(projection.labels).tolist():
        members = np.flatnonzero(projection.labels == label)
        weight = 0.0 if label == ZERO else float(projection.centers[label])
        groups.append(Group(label, weight, [features[i] for i in members]))
    return sorted(groups, key=lambda group: group.weight)


def draw(demo: Demo, folder: Path) -> Path:
    """Write the picture of the demonstration; ImportError where matplotlib is missing."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 7.5), layout="constrained", facecolor="white")
    grid = figure.add_gridspec(1, 3, width_ratios=(1, 1, 0.75))
    left = figure.add_subplot(grid[0])
    _draw_weights(left, demo, demo.projected[0], "Every feature in one of 5 groups")
    middle = figure.add_subplot(grid[1], sharey=left)
    _draw_weights(middle, demo, demo.projected[1], "12 features in 4 groups, the others zero")
    middle.tick_params(labelleft=False)
    _draw_losses(figure.add_subplot(grid[2]), demo)
    figure.suptitle(
        "Thirty ridge weights (dots) and the nearest clustered ones (bars): breast cancer data",
        fontsize=14,
        fontweight="bold",
    )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "clustruct-demo.png"
    figure.savefig(path, dpi=120)
    return path


def _draw_weights(axes: Any, demo: Demo, model: Model, title: str) -> None:
    """Each feature a row: its weight as a dot, joined to the level of its group."""
    order = np.argsort(demo.full.weights, kind="stable")
    row = {demo.features[i]: position for position, i in enumerate(order)}
    weight = dict(zip(demo.features, demo.full.weights, strict=True))
    axes.axvline(0, color="0.8", linewidth=1, zorder=0)
    for group in model.groups:
        colour = "0.6" if group.label == ZERO else COLOURS[group.label % len(COLOURS)]
        rows = [row[name] for name in group.features]
        values = [weight[name] for name in group.features]
        axes.hlines(rows, values, group.weight, color=colour, linewidth=1.2, alpha=0.7)
        axes.vlines(group.weight, min(rows) - 0.4, max(rows) + 0.4, color=colour, linewidth=3)
        axes.scatter(values, rows, color=[colour], s=34, edgecolor="white", linewidth=0.6, zorder=3)
        # On its lowest row the group's dot lies left of the level, so there is room to the right.
        axes.annotate(
            "0" if group.label == ZERO else f"{group.weight:+.3f}",
            (group.weight, min(rows)),
            xytext=(7, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            color=colour,
            fontweight="bold",
        )
    axes.set_yticks(range(len(order)), [demo.features[i] for i in order], fontsize=8)
    axes.set_ylim(-1, len(order))
    axes.margins(x=0.12)
    axes.set_xlabel("weight")
    axes.set_title(f"{title}\n{model.call}: {model.lost:.1%} lost", fontsize=11)
    axes.grid(axis="x", color="0.93")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_losses(axes: Any, demo: Demo) -> None:
    """What is lost for each number of groups."""
    percent = 100 * np.array(demo.lost_by_n_clusters)
    n_clusters = np.arange(1, len(percent) + 1)
    axes.plot(n_clusters, percent, color="0.25", marker="o", markersize=6)
    for q, value in zip(n_clusters, percent, strict=True):
        axes.annotate(
            f"{value:.1f}", (q, value), xytext=(4, 5), textcoords="offset points", fontsize=8
        )
    axes.set_xticks(n_clusters)
    axes.set_xlim(0.5, len(percent) + 0.9)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("number of groups")
    axes.set_ylabel("lost, % of the squared norm of the weights")
    axes.set_title("The least that Q groups can lose\nkmeans_1d(w, Q).inertia", fontsize=11)
    axes.grid(color="0.93")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
