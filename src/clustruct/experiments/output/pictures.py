"""The pictures of the experiments, drawn by matplotlib as SVG: the same data, the same bytes."""

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from clustruct._extras import load_extra
from clustruct.experiments.comparison import Comparison
from clustruct.figures import marks as m
from clustruct.figures.marks import Axis, Dots, Figure, Line, Mark
from clustruct.figures.mpl import INK, draw_panels
from clustruct.results.tables import plural

NEGATIVE, POSITIVE = "#b5382a", "#1b6ca8"
LETTER = 0.6  # width of a letter on average, of the size of the font
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
    """Something to draw, on a figure of matplotlib."""

    name: str  # of the file, without its ending
    caption: str
    size: tuple[float, float]  # in inches
    draw: Callable[[Any], None]

    def svg(self) -> str:
        """The picture as SVG; an ImportError with the remedy where there is no matplotlib."""
        matplotlib = load_extra("matplotlib", "A picture", "experiments")
        from matplotlib.figure import Figure as Canvas

        with matplotlib.rc_context(STYLE):
            figure = Canvas(figsize=self.size, layout="constrained")
            self.draw(figure)
            buffer = io.StringIO()
            figure.savefig(buffer, format="svg", metadata={"Date": None})
        return buffer.getvalue()


def errors_picture(comparison: Comparison, axis: str) -> Picture:
    """The paper's means and ours, a panel for each method, on a logarithmic scale."""
    ticks = m.counted_ticks([column.split("=")[-1].strip() for column in comparison.columns])
    figures = []
    for name, title in comparison.methods.items():
        entries = [comparison.entry(name, column) for column in comparison.columns]
        best = entries[0].rival
        marks = [
            *_means([e.paper for e in entries], -0.1, "soft", "paper's best" if best else "paper"),
            *_means([e.ours for e in entries], 0.1, "chosen" if name == "auto" else "main", "ours"),
        ]
        figures.append(Figure(title, marks, Axis(ticks=ticks), Axis(log=True)))
    draw = partial(draw_panels, figures=figures, x=axis, y=comparison.quantity, rows=2)
    caption = f"{comparison.title}. Bars are two standard errors of the mean."
    return Picture("errors", caption, (9.5, 4.6), draw)


def _means(figures: Sequence[Any], shift: float, tone: str, label: str) -> list[Mark]:
    """Means joined by a line, each with two standard errors; some may not be known."""
    known = [place for place, figure in enumerate(figures) if figure is not None]
    if not known:
        return []
    places = np.array(known) + shift
    means = np.array([figures[place].mean for place in known])
    errors = np.array([2 * figures[place].variance ** 0.5 for place in known])
    lower = means - np.minimum(errors, 0.95 * means)  # a logarithmic axis has no zero
    return [
        m.Segments(np.stack([places, lower, places, means + errors], axis=1), tone=tone),
        Line(places, means, 1.0, "--" if tone == "soft" else "", tone=tone, label=label),
        Dots(places, means, 2.0, shape=int(tone == "soft"), tone=tone),
    ]


def paired_picture(
    comparison: Comparison,
    found: Mapping[str, Mapping[str, Sequence[float]]],
    base: str,
    base_name: str,
) -> Picture:
    """Errors on each split relative to those of a base method on the same split."""
    names = [name for name in comparison.methods if name != base]
    ticks = [(float(place), comparison.methods[name]) for place, name in enumerate(names)]
    figures = []
    for column, values in found.items():
        marks: list[Mark] = [m.Across(1.0, tone="ghost")]
        for place, name in enumerate(names):
            if not values[name]:
                continue
            ratios = np.array(values[name]) / np.array(values[base])
            places = place + np.linspace(-0.22, 0.22, ratios.size)
            tone, mean = "chosen" if name == "auto" else "main", float(ratios.mean())
            marks.append(Dots(places, ratios, 2.2, 0.55, tone=tone))
            marks.append(Line([place - 0.3, place + 0.3], [mean, mean], tone=tone))
        figures.append(Figure(column, marks, Axis(ticks=ticks)))
    draw = partial(
        draw_panels, figures=figures, x="", y=f"error / error of {base_name}, same split"
    )
    caption = f"{comparison.title}: every split, relative to {base_name}; lines are means."
    return Picture("splits", caption, (9.5, 3.8), draw)


def paths_picture(
    name: str, paths: Mapping[str, tuple[Sequence[float], Sequence[float]]]
) -> Picture:
    """Relative errors along the steps and the bounds of the proof, one colour for each case."""
    marks: list[Mark] = []
    for tone, (case, (errors, bounds)) in enumerate(paths.items()):
        steps, found = np.arange(len(errors)), np.clip(errors, None, 1e3)
        marks.append(Line(steps, found, tone=tone, label=case))
        marks.append(Dots(steps, found, 1.5, tone=tone))
        proved = np.clip(bounds, None, 1e3)
        marks.append(Line(np.arange(len(bounds)), proved, 1.0, ":", tone=tone))
    lowest = min(min(errors) for errors, _ in paths.values())
    figure = Figure("", marks, Axis(whole=True), Axis(limits=(lowest / 2, 30.0), log=True))
    draw = partial(draw_panels, figures=[figure], x="step t", y="‖w* - w_t‖ / ‖w*‖, median")
    caption = (
        "Projected gradient with step 1 from zero. Lines: the error; dotted: the bound of the "
        "proof of proposition 4.1 with the partitions that the path meets."
    )
    return Picture(name, caption, (8.0, 4.2), draw)


def phase_picture(
    name: str,
    maps: Mapping[str, Mapping[tuple[int, int], float]],
    vertical: str,
    title: str,
    law: str,
    line: Callable[[Any], Any],
) -> Picture:
    """Shares recovered by (samples, vertical), side by side, with the line of the theory."""
    figures = []
    for method, found in maps.items():
        columns, levels = (sorted({key[side] for key in found}) for side in (0, 1))
        shares = np.array([[found.get((n, v), np.nan) for n in columns] for v in levels])
        x, y = _edges(columns), _edges(levels)
        heights = np.linspace(y[0], y[-1], 100)
        heights = heights[line(heights) <= x[-1]]
        theory = Line(line(heights), heights, dash="--", tone="paper", label=law)
        figures.append(Figure(method, [m.Cells(x, y, shares, "share recovered"), theory]))
    draw = partial(draw_panels, figures=figures, x="samples n", y=vertical)
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

    def draw(canvas: Any) -> None:
        canvas.set_layout_engine("none")
        room = canvas.bbox.height * 0.90 / len(outer)
        canvas.text(0.02, 0.965, title, fontsize=12, weight="bold")
        for place, group in enumerate(outer):
            top = canvas.bbox.height * 0.93 - place * room
            _draw_group(canvas, group, top, room, strongest)

    caption = (
        f"{title}. The {shown} most negative and the {shown} most positive of {len(groups)} "
        "groups, with the weight and the number of words; the larger a word, the more reviews "
        "it is in."
    )
    return Picture(name, caption, (9.5, 7.2), draw)


def _draw_group(canvas: Any, group: WordGroup, top: float, room: float, strongest: float) -> None:
    """One group: its weight at the left, its words in lines until the room is full."""
    from matplotlib.patches import Rectangle

    color = NEGATIVE if group.weight < 0 else POSITIVE
    width, height = canvas.bbox.width, canvas.bbox.height
    canvas.text(0.02, (top - 16) / height, f"{group.weight:+.3g}", color=color, weight="bold")
    note = plural(group.size, "word")
    canvas.text(0.02, (top - 28) / height, note, color=color, fontsize=7)
    bar = (0.075 * abs(group.weight) / strongest, 4 / height)
    place = {"transform": canvas.transFigure, "color": color}
    canvas.add_artist(Rectangle((0.02, (top - 36) / height), *bar, **place))
    x, baseline = 0.12 * width, top - 22
    most = max(group.reviews, default=1)
    for word, count in zip(group.words, group.reviews, strict=True):
        size = 7 + 10 * (count / most) ** 0.5
        extent = LETTER * size * len(word) * canvas.dpi / 72
        if x + extent > 0.98 * width:
            x, baseline = 0.12 * width, baseline - 21
        if baseline < top - room + 4:
            return
        canvas.text(x / width, baseline / height, word, fontsize=size, color=color)
        x += extent + 9
