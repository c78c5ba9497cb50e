"""The pictures of the experiments, drawn by matplotlib as SVG: the same data, the same bytes."""

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from clustruct.experiments.comparison import Comparison

__all__ = [
    "PhaseMap",
    "Picture",
    "WordGroup",
    "errors_picture",
    "paired_picture",
    "paths_picture",
    "phase_picture",
    "words_picture",
]

INK, PALE = "#1d2733", "#c9d1d9"
COLORS = ("#0b6e99", "#d1495b", "#66a182", "#8d6a9f", "#edae49", "#5c677d", "#00798c", "#b56576")
OURS = "#d1495b"
NEGATIVE, POSITIVE = "#b5382a", "#1b6ca8"
STYLE: Any = {
    "font.size": 9,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "svg.hashsalt": "clustruct",  # ids that do not change from run to run
}


@dataclass(frozen=True)
class Picture:
    """Something to draw.

    Attributes
    ----------
    name : str
        Name of the file, without its ending.
    caption : str
    size : tuple of float
        Width and height, in inches.
    draw : callable
        Draws on a matplotlib figure.
    """

    name: str
    caption: str
    size: tuple[float, float]
    draw: Callable[[Any], None]

    def svg(self) -> str:
        """The picture as SVG.

        Raises
        ------
        ImportError
            Where matplotlib is not installed, with the remedy.
        """
        try:
            import matplotlib
            from matplotlib.figure import Figure
        except ImportError:
            raise ImportError(
                "Pictures need matplotlib: `pip install clustruct[experiments]` installs it."
            ) from None
        with matplotlib.rc_context(STYLE):
            figure = Figure(figsize=self.size, layout="constrained")
            self.draw(figure)
            buffer = io.StringIO()
            figure.savefig(buffer, format="svg", metadata={"Date": None})
        return buffer.getvalue()


def errors_picture(comparison: Comparison, axis: str) -> Picture:
    """The paper's means and ours, a panel for each method, on a logarithmic scale."""
    names = list(comparison.methods)

    def draw(figure: Any) -> None:
        panels = figure.subplots(2, -(-len(names) // 2), sharex=True, sharey=True).ravel()
        places = np.arange(len(comparison.columns))
        for panel, name in zip(panels, names, strict=False):
            entries = [comparison.entry(name, column) for column in comparison.columns]
            for shift, key, color in ((-0.1, "paper", COLORS[5]), (0.1, "ours", COLORS[0])):
                figures = [getattr(entry, key) for entry in entries]
                known = [i for i, figure in enumerate(figures) if figure is not None]
                if not known:
                    continue
                means = np.array([figures[i].mean for i in known])
                errors = np.array([2 * figures[i].variance ** 0.5 for i in known])
                lower = np.minimum(errors, 0.95 * means)
                label = key if not entries[0].rival or key == "ours" else "paper's best"
                panel.errorbar(
                    places[known] + shift,
                    means,
                    yerr=[lower, errors],
                    fmt="o-" if key == "ours" else "s--",
                    color=OURS if name == "auto" and key == "ours" else color,
                    markersize=4,
                    linewidth=1,
                    label=label,
                )
            panel.set_title(comparison.methods[name], fontsize=9)
            panel.set_yscale("log")
            panel.legend(fontsize=7)
            labels = [column.split("=")[-1].strip() for column in comparison.columns]
            panel.set_xticks(places, labels)
        for panel in panels[len(names) :]:
            panel.set_visible(False)
        figure.supxlabel(axis, fontsize=9)
        figure.supylabel(comparison.quantity, fontsize=9)

    caption = f"{comparison.title}. Bars are two standard errors of the mean."
    return Picture("errors", caption, (9.5, 4.6), draw)


def paired_picture(
    comparison: Comparison,
    found: Mapping[str, Mapping[str, Sequence[float]]],
    base: str,
    base_name: str,
) -> Picture:
    """Errors on each split relative to those of a base method on the same split."""

    def draw(figure: Any) -> None:
        panels = figure.subplots(1, len(found), sharey=True, squeeze=False)[0]
        names = [name for name in comparison.methods if name != base]
        for panel, (column, values) in zip(panels, found.items(), strict=True):
            reference = np.array(values[base])
            for place, name in enumerate(names):
                if not values[name]:
                    continue
                ratios = np.array(values[name]) / reference
                spread = np.linspace(-0.22, 0.22, ratios.size)
                color = OURS if name == "auto" else COLORS[0]
                panel.plot(place + spread, ratios, ".", color=color, alpha=0.55, markersize=5)
                panel.plot([place - 0.3, place + 0.3], [ratios.mean()] * 2, color=color)
            panel.axhline(1.0, color=PALE, zorder=0)
            panel.set_xticks(
                range(len(names)), [comparison.methods[n] for n in names], rotation=60, ha="right"
            )
            panel.set_title(column, fontsize=9)
        panels[0].set_ylabel(f"error / error of {base_name}, same split")

    caption = f"{comparison.title}: every split, relative to {base_name}; lines are means."
    return Picture("splits", caption, (9.5, 3.8), draw)


def paths_picture(
    name: str, paths: Mapping[str, tuple[Sequence[float], Sequence[float]]]
) -> Picture:
    """Relative errors along the steps and the bounds of the proof, one color for each case."""

    def draw(figure: Any) -> None:
        panel = figure.subplots()
        for (case, (errors, bounds)), color in zip(paths.items(), COLORS, strict=False):
            panel.plot(np.clip(errors, None, 1e3), color=color, label=case, marker=".")
            panel.plot(np.clip(bounds, None, 1e3), color=color, linestyle=":", linewidth=1)
        panel.set_yscale("log")
        panel.set_ylim(None, 30.0)
        panel.set_xlabel("step t")
        panel.set_ylabel("‖w* - w_t‖ / ‖w*‖, median")
        panel.legend(fontsize=8, loc="upper right", bbox_to_anchor=(1.22, 1.0))

    caption = (
        "Projected gradient with step 1 from zero. Lines: the error; dotted: the bound of the "
        "proof of proposition 4.1 with the partitions that the path meets."
    )
    return Picture(name, caption, (8.0, 4.2), draw)


@dataclass(frozen=True)
class PhaseMap:
    """Share of the problems recovered by (samples, vertical) of a method."""

    title: str
    shares: Mapping[tuple[int, int], float]


def phase_picture(
    name: str,
    maps: Sequence[PhaseMap],
    vertical: str,
    title: str,
    law: str,
    line: Callable[[Any], Any],
) -> Picture:
    """Maps side by side, with the line that theory predicts."""

    def draw(figure: Any) -> None:
        panels = figure.subplots(1, len(maps), sharey=True, squeeze=False)[0]
        for panel, one in zip(panels, maps, strict=True):
            columns = sorted({n for n, _ in one.shares})
            levels = sorted({v for _, v in one.shares})
            grid = [[one.shares.get((n, v), np.nan) for n in columns] for v in levels]
            mesh = panel.pcolormesh(
                _edges(columns), _edges(levels), grid, cmap="viridis", vmin=0, vmax=1
            )
            heights = np.linspace(_edges(levels)[0], _edges(levels)[-1], 100)
            inside = line(heights) <= _edges(columns)[-1]
            panel.plot(
                line(heights)[inside], heights[inside], color="white", linestyle="--", label=law
            )
            panel.set_title(one.title, fontsize=9)
            panel.set_xlabel("samples n")
            panel.legend(labelcolor="white", loc="lower right")
        panels[0].set_ylabel(vertical)
        figure.colorbar(mesh, ax=panels, label="share recovered")

    caption = f"Share of the problems recovered, {title}; dashed: {law}."
    return Picture(name, caption, (9.0, 3.6), draw)


def _edges(places: Sequence[int]) -> Any:
    """Borders of cells around places."""
    middles = (np.array(places[1:]) + np.array(places[:-1])) / 2
    if not middles.size:
        return np.array([places[0] - 0.5, places[0] + 0.5])
    return np.concatenate(
        [[places[0] - (middles[0] - places[0])], middles, [2 * places[-1] - middles[-1]]]
    )


@dataclass(frozen=True)
class WordGroup:
    """Words that share a weight; the most frequent ones, with the reviews they are in."""

    weight: float
    size: int
    words: Sequence[str]
    reviews: Sequence[int]


def words_picture(name: str, groups: Sequence[WordGroup], title: str, shown: int = 3) -> Picture:
    """Words in lines of running text, as large as they are frequent, colored by their weight."""
    outer = [*groups[:shown], *groups[-shown:]]
    strongest = max(abs(group.weight) for group in outer)

    def draw(figure: Any) -> None:
        figure.set_layout_engine("none")
        canvas = figure.canvas.get_renderer() if hasattr(figure.canvas, "get_renderer") else None
        renderer = canvas or figure._get_renderer()
        width, height = figure.bbox.width, figure.bbox.height
        room = height * 0.90 / len(outer)
        figure.text(0.02, 0.965, title, fontsize=12, weight="bold")
        for place, group in enumerate(outer):
            top = height * 0.93 - place * room
            _draw_group(figure, renderer, group, top, room, width, strongest)

    caption = (
        f"{title}. The {shown} most negative and the {shown} most positive of {len(groups)} "
        "groups, with the weight and the number of words; the larger a word, the more reviews "
        "it is in."
    )
    return Picture(name, caption, (9.5, 7.2), draw)


def _draw_group(
    figure: Any,
    renderer: Any,
    group: WordGroup,
    top: float,
    room: float,
    width: float,
    strongest: float,
) -> None:
    """One group: its weight at the left, its words in lines until the room is full."""
    color = NEGATIVE if group.weight < 0 else POSITIVE
    height = figure.bbox.height
    figure.text(0.02, (top - 16) / height, f"{group.weight:+.3g}", color=color, weight="bold")
    note = f"{group.size} word{'s' * (group.size != 1)}"
    figure.text(0.02, (top - 28) / height, note, color=color, fontsize=7)
    bar = 0.075 * abs(group.weight) / strongest
    figure.add_artist(_rectangle(figure, 0.02, (top - 36) / height, bar, 4 / height, color))
    left, x, baseline = 0.12 * width, 0.12 * width, top - 22
    most = max(group.reviews, default=1)
    for word, count in zip(group.words, group.reviews, strict=True):
        size = 7 + 10 * (count / most) ** 0.5
        text = figure.text(x / width, baseline / height, word, fontsize=size, color=color)
        extent = text.get_window_extent(renderer).width
        if x + extent > 0.98 * width:
            x, baseline = left, baseline - 21
            text.set_position((x / width, baseline / height))
        if baseline < top - room + 4:
            text.remove()
            return
        x += extent + 9


def _rectangle(figure: Any, x: float, y: float, width: float, height: float, color: str) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x, y), width, height, transform=figure.transFigure, color=color)
