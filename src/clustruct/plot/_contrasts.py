"""Weights of several linear models side by side, a row of dots for each feature."""

from typing import Any

import numpy as np

from clustruct.explanation.contrasts import Contrasts
from clustruct.explanation.effects import weight_axis
from clustruct.inspection import answers_of
from clustruct.plot._axes import colour_of, dress, marker_of, note, shorten

__all__ = ["contrast_axis", "draw_contrasts"]

MOST_ROWS = 30


def contrast_axis(model: Any, X: Any) -> str:
    """What the weights are: for a standard deviation where there are samples to tell it."""
    if X is None:
        return weight_axis(model)
    return f"weight: {answers_of(model).quantity} per standard deviation"


def draw_contrasts(ax: Any, found: Contrasts, title: str, axis: str) -> None:
    """Dots for the features, and classes, in which models differ most; the widest on top."""
    several = len(found.answers.names) > 1
    pairs = found.widest(MOST_ROWS) or [(0, 0)]
    rows = np.arange(len(pairs))[::-1]
    ax.axvline(0.0, color="0.5", linewidth=0.8, zorder=0)
    for place, label in enumerate(found.labels):
        ax.plot(
            [found.weights[place, k, j] for k, j in pairs],
            rows,
            color=colour_of(label),
            marker=marker_of(label),
            linestyle="none",
            markersize=6,
            alpha=0.85,
            label=str(label),
        )
    names = [
        shorten(str(found.names[j]))
        + (f", {shorten(found.answers.names[k], 16)}" if several else "")
        for k, j in pairs
    ]
    ax.set_yticks(rows, names, fontsize="small")
    ax.legend(title=found.thing, fontsize="small", frameon=False)
    total = found.weights[0].size
    note(ax, f"{len(pairs)} of {total:,} weights" if len(pairs) < total else "")
    dress(ax, title=title, x=axis, y="")
