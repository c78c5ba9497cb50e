"""What is to be predicted: numbers or classes, told from the values."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustruct.cli.columns import FEW, MOSTLY, infinite_number, text_in_a_number
from clustruct.cli.tables import pandas

__all__ = ["Target", "recognise_target"]

REGRESSION, CLASSIFICATION = "regression", "classification"


@dataclass(frozen=True, eq=False)
class Target:
    """What is to be predicted.

    Attributes
    ----------
    name : str
    kind : str
        "regression" or "classification".
    values : ndarray
        Numbers, or classes.
    reason : str
        Why it was taken for that.
    """

    name: str
    kind: str
    values: NDArray[Any]
    reason: str

    @property
    def is_classes(self) -> bool:
        """Whether classes are to be predicted."""
        return self.kind == CLASSIFICATION


def recognise_target(series: Any, name: str, wanted: str | None, source: str) -> Target:
    """Whether a column, without missing values, holds numbers or classes.

    Parameters
    ----------
    series : Series
    name : str
    wanted : str or None
        What was asked for.
    source : str
        Name of the file, for messages.

    Returns
    -------
    Target
    """
    if len(series) < 2:
        raise ValueError(
            f"{source}, column {name!r}: there is one row with a target, and nothing to learn from "
            "one. Give a table with more rows."
        )
    distinct = series.nunique()
    if distinct < 2:
        raise ValueError(
            f"{source}, column {name!r}: the target is {str(series.iloc[0])!r:.40} in every row, "
            "so that there is nothing to learn. Name another column with --target."
        )
    numbers = _numbers(series)
    if wanted == REGRESSION and numbers is None:
        raise ValueError(_no_number(source, name, series))
    if numbers is None and _share(series) >= MOSTLY and distinct > FEW and wanted is None:
        raise ValueError(_no_number(source, name, series))
    kind, reason = (wanted, "as asked for") if wanted else _kind(numbers, distinct)
    if kind == REGRESSION:
        return Target(name, kind, np.asarray(numbers), reason)
    classes = _classes(series, numbers)
    _check_classes(classes, name, source)
    return Target(name, kind, classes, reason)


def _numbers(series: Any) -> NDArray[np.float64] | None:
    if pandas().api.types.is_bool_dtype(series.dtype):
        return None
    numbers = pandas().to_numeric(series.astype(object), errors="coerce").astype(np.float64)
    return None if not np.isfinite(numbers).all() else numbers.to_numpy()


def _share(series: Any) -> float:
    if pandas().api.types.is_bool_dtype(series.dtype):
        return 0.0
    numbers = pandas().to_numeric(series.astype(object), errors="coerce")
    return float(numbers.notna().mean())


def _kind(numbers: NDArray[np.float64] | None, distinct: int) -> tuple[str, str]:
    if numbers is None:
        return CLASSIFICATION, f"{distinct} different values that are no numbers"
    if distinct == 2 or (distinct <= FEW and np.array_equal(numbers, np.round(numbers))):
        return (
            CLASSIFICATION,
            f"{distinct} different whole numbers; --regression takes them as such",
        )
    return REGRESSION, f"{distinct} different numbers"


def _classes(series: Any, numbers: NDArray[np.float64] | None) -> NDArray[Any]:
    """Classes as text or whole numbers."""
    if numbers is not None and np.array_equal(numbers, np.round(numbers)):
        return numbers.astype(np.int64)
    if numbers is not None:
        return numbers
    return np.array([str(value) for value in series], dtype=object).astype(str)


def _check_classes(values: NDArray[Any], name: str, source: str) -> None:
    classes, counts = np.unique(values, return_counts=True)
    if classes.size > 0.5 * values.size:
        raise ValueError(
            f"{source}, column {name!r}: the target has {classes.size} classes in {values.size} "
            "rows. Name another column with --target, or give --regression if it holds numbers."
        )
    if counts.min() < 2:
        rare = classes[counts.argmin()]
        raise ValueError(
            f"{source}, column {name!r}: the class {str(rare)!r:.40} has one row only, and each "
            "needs two at least. Add rows of it, or take this one out."
        )


def _no_number(source: str, name: str, series: Any) -> str:
    """The complaint about a target that holds something other than finite numbers."""
    numbers = pandas().to_numeric(series.astype(object), errors="coerce").astype(np.float64)
    infinite = numbers.index[np.isinf(numbers)]
    if len(infinite):
        return infinite_number(source, name, infinite[0])
    text = series.astype(str)
    wrong = text[numbers.isna()] if numbers.isna().any() else text
    otherwise = ", or give --classification if it names classes"
    first = wrong.iloc[0], wrong.index[0]
    return text_in_a_number(source, name, *first, len(wrong), otherwise)
