"""How predicted classes and probabilities meet the truth: confusion and calibration."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix

from clustruct.reporting.comparing.comparison import Comparison
from clustruct.reporting.svg import Frame

__all__ = ["Confusion", "calibration_chart", "confusion_of"]

MOST_CLASSES = 12
MOST_BINS, LEAST_IN_BIN, FEWEST = 10, 10, 50
LEAST_SPREAD = 0.1  # of the bins: nearly equal probabilities are no curve


@dataclass(frozen=True)
class Confusion:
    """Which classes are taken for which.

    Attributes
    ----------
    classes : tuple of str
    counts : tuple of tuple of int
        A row for each true class, a column for each predicted one.
    """

    classes: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]


def confusion_of(found: Comparison) -> Confusion | None:
    """The confusion table of our model; None for numbers, and for many classes."""
    if found.classes is None or len(found.classes) > MOST_CLASSES:
        return None
    counts = confusion_matrix(found.truth, found.mine.predicted, labels=found.classes)
    return Confusion(tuple(str(c) for c in found.classes), tuple(map(tuple, counts.tolist())))


def calibration_chart(found: Comparison) -> tuple[str, str]:
    """A chart of how often what was predicted with some probability came true, and its caption.

    With two classes the probability is that of the second one, with more that of the predicted
    class. Both are empty where there are no probabilities, few targets, or probabilities that are
    nearly all the same.
    """
    chances = found.mine.chances
    if found.classes is None or chances is None or found.truth.size < FEWEST:
        return "", ""
    if len(found.classes) == 2:
        chance, happened = chances[:, 1], found.truth == found.classes[1]
        what = f"{str(found.classes[1])!r}"
    else:
        chance, happened = chances.max(axis=1), found.mine.predicted == found.truth
        what = "the predicted class"
    points = _bins(chance, np.asarray(happened))
    if points[-1][0] - points[0][0] < LEAST_SPREAD:
        return "", ""
    frame = Frame(
        (0.0, 1.0),
        (0.0, 1.0),
        label=f"How often {what} was true, by its predicted probability",
        x_name=f"predicted probability of {what[:40]}",
        y_name="share of rows where it was true",
    )
    frame.grid()
    frame.line([(0.0, 0.0), (1.0, 1.0)], "hair")
    frame.line([(x, y) for x, y, _ in points], "main")
    for x, y, count in points:
        title = f"{count:,} rows with a mean probability of {x:.2f}: true in {y:.0%}"
        frame.dot(x, y, "main", radius=4.5, title=title)
    caption = (
        "Calibration: every dot is a tenth of the rows, or ten rows at least. On the line, a "
        "probability of 0.3 comes true in 30 % of the rows."
    )
    return frame.svg(), caption


def _bins(
    chance: NDArray[np.float64], happened: NDArray[np.bool_]
) -> list[tuple[float, float, int]]:
    """Mean probability, share that came true, and number of rows, of bins of equal size."""
    count = min(MOST_BINS, chance.size // LEAST_IN_BIN)
    order = np.argsort(chance, kind="stable")
    parts = np.array_split(order, count)
    return [(float(chance[p].mean()), float(happened[p].mean()), int(p.size)) for p in parts]
