"""Pictures on the page, and how predictions meet the truth: loss, confusion, calibration."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix

from clustruct._typing import Floats
from clustruct.figures.factors import lift_figure
from clustruct.figures.fits import calibration_figure
from clustruct.figures.groups import comparison_figure
from clustruct.figures.marks import Figure
from clustruct.figures.svg import render
from clustruct.reporting.comparing.comparison import Comparison

MOST_CLASSES = 12
MOST_BINS, LEAST_IN_BIN, FEWEST = 10, 10, 50
LEAST_SPREAD = 0.1  # of the bins: nearly equal probabilities are no curve


class Picture(NamedTuple):
    """A figure on the page: its title, the SVG and a remark."""

    title: str
    svg: str
    remark: str = ""

    @classmethod
    def of(cls, figure: Figure, remark: str = "", title: str = "") -> "Picture":
        """Draw a figure, under its own title if none is given; tell in the remark what it omits."""
        note = f"{figure.note[0].upper()}{figure.note[1:]}." if figure.note else ""
        return cls(title or figure.title, render(figure), f"{remark} {note}".strip())


def losses_removed(found: Comparison) -> Figure:
    """How much of the constant model's loss every model removes, as bars.

    For numbers that is R² up to the mean of the training rows; with probabilities it is the share
    of the log loss.
    """
    constant = found.constant.loss or 1.0
    same = [entry for entry in found.entries if len(entry.scores) >= len(found.mine.scores)]
    return comparison_figure(
        [(e.name, 1.0 - e.loss / constant, e.ours) for e in same if e.role != "constant"]
    )


def confusion_of(found: Comparison) -> list[list[int]] | None:
    """Which classes our model takes for which: a row for each true class; None for many classes."""
    if found.classes is None or len(found.classes) > MOST_CLASSES:
        return None
    counts = confusion_matrix(found.truth, found.mine.predicted, labels=found.classes)
    return [row.tolist() for row in counts]


def calibration_of(found: Comparison) -> Figure | None:
    """How often what was predicted with some probability came true.

    With two classes the probability is that of the second one, with more that of the predicted
    class. None where there are no probabilities, few targets, or probabilities that are nearly all
    the same.
    """
    chances = found.mine.chances
    if found.classes is None or chances is None or found.truth.size < FEWEST:
        return None
    if len(found.classes) == 2:
        chance, happened = chances[:, 1], found.truth == found.classes[1]
        what = f"{str(found.classes[1])!r}"
    else:
        chance, happened = chances.max(axis=1), found.mine.predicted == found.truth
        what = "the predicted class"
    means, shares, counts = _bins(chance, np.asarray(happened))
    if means[-1] - means[0] < LEAST_SPREAD:
        return None
    return calibration_figure(means, shares, counts, what)


def lift_of(found: Comparison, rates: bool) -> Figure | None:
    """Observed and predicted means by tenths of the exposure; None where rows are not ranked."""
    curve = found.mine.ranking
    if curve is None or found.truth.size < FEWEST or curve.exposure.size < 3:
        return None
    name = "target for each unit of exposure" if rates else "mean of the target"
    return lift_figure(*curve.lift(), name)


def _bins(chance: Floats, happened: NDArray[np.bool_]) -> tuple[Floats, Floats, list[int]]:
    """Mean probability, share that came true, and number of rows, of bins of equal size."""
    count = min(MOST_BINS, chance.size // LEAST_IN_BIN)
    parts = np.array_split(np.argsort(chance, kind="stable"), count)
    means = np.array([chance[part].mean() for part in parts])
    return means, np.array([happened[part].mean() for part in parts]), [p.size for p in parts]
