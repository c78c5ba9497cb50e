"""Axes to draw on, and the look that all plots share; nothing global is changed."""

from typing import Any

__all__ = [
    "COLOURS",
    "GREY",
    "MARKERS",
    "colour_of",
    "dress",
    "get_axes",
    "marker_of",
    "note",
    "shorten",
]

# Okabe and Ito's colours, told apart by the colour-blind too; the pale yellow is left out.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000")
GREY = "0.6"
# Groups beyond the seventh repeat a colour with another marker.
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def get_axes(ax: Any, size: tuple[float, float]) -> Any:
    """The axes given, or those of a new figure."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "Plots need matplotlib, which is not installed. "
            "`pip install 'clustruct[plot]'` installs it."
        ) from error
    return pyplot.subplots(figsize=size, layout="constrained")[1]


def colour_of(label: int) -> str:
    """The colour of a group; grey for the zero group."""
    return GREY if label < 0 else COLOURS[int(label) % len(COLOURS)]


def marker_of(label: int) -> str:
    """The marker of a group."""
    return MARKERS[int(label) // len(COLOURS) % len(MARKERS)]


def dress(ax: Any, *, title: str, x: str, y: str, grid: str = "both") -> None:
    """Title, names of the axes, and a quiet frame."""
    ax.set(xlabel=x, ylabel=y)
    ax.set_title(title, loc="left", fontsize="medium")
    ax.grid(axis=grid, color="0.5", alpha=0.18, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def note(ax: Any, text: str) -> None:
    """A remark in the corner, such as that not all is shown."""
    if text:
        ax.annotate(
            text, (1.0, 1.0), xycoords="axes fraction", ha="right", va="bottom", fontsize="x-small"
        )


def shorten(text: str, most: int = 28) -> str:
    """A name that fits beside an axis; a dollar sign is no mathematics."""
    text = text if len(text) <= most else text[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"
    return text.replace("$", r"\$")
