"""Figures on the axes of matplotlib; nothing of its global state is changed."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from clustruct.figures import marks as m

__all__ = ["COLOURS", "INK", "draw", "draw_panels"]

# Okabe and Ito's colours, told apart by the colour-blind too; the pale yellow is left out.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000")
INK = "#1d2733"
ROLES = {
    "main": COLOURS[0],
    "chosen": COLOURS[3],
    "soft": "0.5",
    "ghost": "0.8",
    "ink": INK,
    "paper": "white",
}
# Groups beyond the seventh repeat a colour with another marker.
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINE_UP = {"start": "left", "middle": "center", "end": "right"}
MOST_IN_LEGEND = 20
LETTERS = 90.0  # that fit below an axis; more of them are turned


def colour(tone: m.Tone) -> str:
    """The colour of a tone; grey for the zero group."""
    if isinstance(tone, str):
        return ROLES[tone]
    return "0.6" if tone < 0 else COLOURS[tone % m.N_COLOURS]


def plain(text: str) -> str:
    """A text from the data, in which a dollar sign is no mathematics."""
    return text.replace("$", r"\$")


def draw(ax: Any, figure: m.Figure) -> None:
    """Draw a figure on axes, in the look that all plots share."""
    _draw_marks(ax, figure)
    ax.set(xlabel=plain(figure.x.name), ylabel=plain(figure.y.name))
    ax.set_title(figure.title, loc="left", fontsize="medium")
    labels = [mark for mark in figure.marks if mark.label]
    if 0 < len(labels) <= MOST_IN_LEGEND:
        ax.legend(title=figure.legend or None, fontsize="small", frameon=False)
    ax.grid(axis="x" if figure.y.rows else "both", color="0.5", alpha=0.18, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    if figure.note:
        corner = {"xycoords": "axes fraction", "ha": "right", "va": "bottom"}
        ax.annotate(figure.note, (1.0, 1.0), fontsize="x-small", **corner)


def draw_panels(canvas: Any, figures: Sequence[m.Figure], x: str, y: str, *, rows: int = 1) -> None:
    """Draw figures side by side on a canvas, with axes that they share and that are named once."""
    columns = -(-len(figures) // rows)
    panels = canvas.subplots(rows, columns, sharex=rows > 1, sharey=True, squeeze=False).ravel()
    maps = [mark.name for mark in figures[0].marks if isinstance(mark, m.Cells)]
    for panel, figure in zip(panels, figures, strict=False):
        _draw_marks(panel, figure, LETTERS / columns)
        panel.set_title(figure.title, fontsize=9)
        if any(mark.label for mark in figure.marks):
            panel.legend(fontsize=7, labelcolor="white" if maps else None)
    for panel in panels[len(figures) :]:
        panel.set_visible(False)
    canvas.supxlabel(x, fontsize=9)
    canvas.supylabel(y, fontsize=9)
    if maps:
        canvas.colorbar(panels[0].collections[0], ax=panels.tolist(), label=maps[0])


def _draw_marks(ax: Any, figure: m.Figure, letters: float = LETTERS) -> None:
    pen = MplPen(ax)
    for mark in figure.marks:
        mark.draw(pen)
    _set_axis(ax, "x", figure.x, letters)
    _set_axis(ax, "y", figure.y, np.inf)


def _set_axis(ax: Any, which: str, axis: m.Axis, letters: float) -> None:
    if axis.log:
        ax.set(**{f"{which}scale": "log"})
    if axis.limits is not None:
        ax.set(**{f"{which}lim": axis.limits})
    lines = getattr(ax, f"{which}axis")
    if axis.ticks is not None:
        places, texts = [place for place, _ in axis.ticks], [plain(text) for _, text in axis.ticks]
        long = max(map(len, texts), default=0) * len(texts) > letters
        turned = {"rotation": 60, "ha": "right"} if long else {}
        lines.set_ticks(places, texts, fontsize="small" if which == "y" else None, **turned)
    elif axis.whole:
        lines.get_major_locator().set_params(integer=True)


class MplPen:
    """Draws marks on axes, each above those before it."""

    def __init__(self, ax: Any) -> None:
        self._ax = ax
        self._depth = 2.0

    def _style(self, mark: Any, **more: Any) -> dict[str, Any]:
        self._depth += 0.01
        return {"zorder": self._depth, "label": plain(mark.label) or None, **more}

    def line(self, mark: m.Line) -> None:
        style = self._style(mark, color=colour(mark.tone), linewidth=mark.width)
        self._ax.plot(mark.x, mark.y, linestyle=mark.dash or "-", **style)

    def dots(self, mark: m.Dots) -> None:
        inner, edge = {"facecolor": colour(mark.tone), "edgecolor": "none"}, 0
        if mark.hollow:
            inner, edge = {"facecolor": "none", "edgecolor": colour(mark.tone)}, 2
        style = self._style(mark, alpha=mark.opacity, linewidth=edge, **inner)
        style |= {"marker": MARKERS[mark.shape % len(MARKERS)]}
        self._ax.scatter(mark.x, mark.y, s=np.square(2.0 * np.asarray(mark.radius)), **style)

    def area(self, mark: m.Area) -> None:
        """Draw an area; not where one of its lines is not known."""
        style = self._style(mark, color=colour(mark.tone), alpha=mark.opacity, linewidth=0)
        where = np.isfinite(mark.low) & np.isfinite(mark.high)
        self._ax.fill_between(mark.x, mark.low, mark.high, where=where, **style)

    def bars(self, mark: m.Bars) -> None:
        tones = mark.tones or [mark.tone] * len(mark.lengths)
        style = self._style(mark, color=[colour(tone) for tone in tones], height=mark.thickness)
        self._ax.barh(mark.y, mark.lengths, **style)

    def segments(self, mark: m.Segments) -> None:
        from matplotlib.collections import LineCollection

        style = self._style(mark, color=colour(mark.tone), alpha=mark.opacity)
        style |= {"linewidth": mark.width, "linestyle": mark.dash or "-"}
        self._ax.add_collection(LineCollection(list(mark.ends.reshape(-1, 2, 2)), **style))
        self._ax.autoscale_view()

    def across(self, mark: m.Across) -> None:
        style = self._style(mark, color=colour(mark.tone), linewidth=mark.width, zorder=1.5)
        across = self._ax.axvline if mark.vertical else self._ax.axhline
        across(mark.value, linestyle=mark.dash or "-", **style)

    def text(self, mark: m.Text) -> None:
        self._ax.annotate(
            plain(mark.text),
            (mark.x, mark.y),
            xytext=mark.shift,
            textcoords="offset points",
            ha=LINE_UP[mark.anchor],
            fontsize="small" if mark.bold else "x-small",
            fontweight="bold" if mark.bold else "normal",
            color=None if mark.tone == "ink" else colour(mark.tone),
            zorder=5,
        )

    def cells(self, mark: m.Cells) -> None:
        self._ax.pcolormesh(mark.x_edges, mark.y_edges, mark.values, cmap="viridis", vmin=0, vmax=1)
