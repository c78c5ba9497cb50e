"""The two drawings of the paper: its graphical models, and the clustering penalty of tasks."""

from typing import Any

import numpy as np

from clustruct.experiments.output.pictures import Picture
from clustruct.figures.mpl import COLOURS, INK

OBSERVED, HIDDEN = "#c9d1d9", "#ffffff"
RADIUS = 0.33


def _draw_models(figure: Any) -> None:
    """Figure 1: who depends on whom, with and without a gate."""
    left, right = figure.subplots(1, 2)
    places = {"x": (0.0, 1.5), "y": (2.0, 1.5), "Z": (2.0, 0.0), "V": (2.0, 3.0)}
    _graph(left, places, [("x", "y"), ("Z", "y"), ("V", "y")])
    left.set_title("several experts: y alone tells\nwhich expert it is from", fontsize=9)
    places = {"x": (0.0, 1.5), "y": (2.0, 1.5), "Z": (1.0, 0.0), "V": (2.0, 3.0)}
    _graph(right, places, [("x", "y"), ("x", "Z"), ("Z", "y"), ("V", "y")])
    right.set_title("mixture of experts: x tells, too", fontsize=9)


def _graph(panel: Any, places: dict[str, tuple[float, float]], edges: Any) -> None:
    """Circles and arrows; grey ones are observed."""
    from matplotlib.patches import Circle, FancyArrowPatch

    for name, place in places.items():
        color = OBSERVED if name in ("x", "y") else HIDDEN
        panel.add_patch(Circle(place, RADIUS, facecolor=color, edgecolor=INK, linewidth=1.2))
        panel.text(*place, f"${name}$", ha="center", va="center", fontsize=13)
    for begin, end in edges:
        a, b = np.array(places[begin]), np.array(places[end])
        step = RADIUS * 1.08 * (b - a) / np.linalg.norm(b - a)
        style: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 13, "color": INK}
        panel.add_patch(FancyArrowPatch(a + step, b - step, **style))
    panel.set(xlim=(-0.6, 2.6), ylim=(-0.6, 3.6), aspect="equal")
    panel.axis("off")


def _draw_penalty(figure: Any) -> None:
    """Figure 2: the mean of all tasks, the centres around it, the tasks around their centres."""
    panel = figure.subplots()
    rng = np.random.default_rng(4)
    centers = np.array([[-2.6, 1.3], [2.7, 1.9], [0.7, -2.3]])
    tasks = [center + 0.55 * rng.standard_normal((5, 2)) for center in centers]
    middles = np.array([group.mean(axis=0) for group in tasks])
    barycenter = middles.mean(axis=0)
    arrow = {"arrowstyle": "-|>", "color": INK, "linewidth": 1.2}
    panel.annotate("", barycenter, (-3.6, -2.6), arrowprops=arrow)
    panel.plot(-3.6, -2.6, "k+", markersize=9)
    panel.text(-3.5, -2.95, "0")
    for group, middle, color in zip(tasks, middles, COLOURS, strict=False):
        panel.plot(*np.transpose([barycenter, middle]), color=color, linewidth=1.8)
        for task in group:
            panel.plot(*np.transpose([middle, task]), color=color, linewidth=0.8, linestyle=":")
        panel.plot(*group.T, "o", color=color, markersize=5)
        panel.plot(*middle, "s", color=color, markersize=8)
    panel.plot(*barycenter, "D", color=INK, markersize=8)
    _beside(panel, barycenter, (0.2, 0.15), r"$\bar v$", fontsize=12)
    for q, middle in enumerate(middles, start=1):
        _beside(panel, middle, (0.12, 0.2), f"$v_{q}$", fontsize=12)
    farthest = max(tasks[2], key=lambda task: float(np.linalg.norm(task - middles[2])))
    _beside(panel, farthest, (0.15, -0.1), "$w_i$", fontsize=11)
    panel.text(-2.6, -1.35, r"mean: $\|\bar v\|$", rotation=37, fontsize=9)
    between = (barycenter + middles[2]) / 2
    _beside(panel, between, (0.2, 0.0), r"between: $\|v_q - \bar v\|$", fontsize=9)
    _beside(panel, middles[2], (0.9, -0.15), r"within: $\|w_i - v_q\|$", fontsize=9)
    panel.set_aspect("equal")
    panel.axis("off")


def _beside(panel: Any, place: Any, shift: tuple[float, float], text: str, **style: Any) -> None:
    """Text beside a point."""
    panel.text(place[0] + shift[0], place[1] + shift[1], text, **style)


DRAWINGS = (
    Picture(
        "graphical-models",
        "Several experts (left) and a mixture of experts (right). Grey variables are observed, "
        "arrows say what depends on what; Z assigns samples to experts V.",
        (5.6, 3.2),
        _draw_models,
    ),
    Picture(
        "clustering-penalty",
        "The penalty on tasks: how far the mean of all tasks is from zero, the centres from that "
        "mean, and the tasks from their centres.",
        (5.2, 4.2),
        _draw_penalty,
    ),
)
