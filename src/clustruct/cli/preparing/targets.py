"""What is to be predicted: numbers or classes, told from the values; and the column of offsets."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustruct._typing import Floats
from clustruct.cli.messages import listed
from clustruct.cli.preparing.columns import (
    FEW,
    MOSTLY,
    as_kind,
    as_texts,
    check_missing,
    infinite_number,
    text_in_a_number,
)
from clustruct.cli.preparing.styles import Written, first_of
from clustruct.cli.reading.tables import pandas
from clustruct.estimators.columns.written import read_numbers

REGRESSION, CLASSIFICATION = "regression", "classification"


@dataclass(frozen=True, eq=False)
class Target:
    """What is to be predicted."""

    name: str
    kind: str  # "regression" or "classification"
    values: NDArray[Any]  # numbers, or classes
    reason: str  # why it was taken for that
    # What only the user can decide, with the option that decides it; mostly empty
    question: str = ""
    # The decimal mark of numbers that are written with other signs, as `Column` has it
    style: str = ""
    kept: NDArray[np.bool_] | None = None  # rows that the values are of; None for all
    rare: tuple[str, ...] = ()  # classes whose only row is left out

    @property
    def is_classes(self) -> bool:
        """Whether classes are to be predicted."""
        return self.kind == CLASSIFICATION

    @property
    def left_out(self) -> dict[str, int]:
        """Number of rows that are the only ones of their class, by the reason."""
        if not self.rare:
            return {}
        one = "it is the only one of its class"
        several = "their class has no other"
        return {f"{one if len(self.rare) == 1 else several} ({listed(self.rare)})": len(self.rare)}


def with_target(frame: Any, name: str, source: str, remedy: str) -> tuple[Any, int]:
    """The rows of a table that have a target, and the number of those that have none."""
    absent = frame[name].isna()
    if absent.all():
        raise ValueError(f"{source}, column {name!r}: the target has no values. {remedy}")
    return (frame[~absent] if absent.any() else frame), int(absent.sum())


def recognise_target(series: Any, name: str, wanted: str | None, source: str) -> Target:
    """Whether a column, without missing values, holds numbers or classes."""
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
    found = _Numbers(series)
    if found.values is None and (
        wanted == REGRESSION or (wanted is None and found.share >= MOSTLY and distinct > FEW)
    ):
        raise ValueError(_no_number(source, name, series, found.style))
    if wanted is not None:
        kind, reason, question = wanted, "as asked for", ""
    elif found.are_codes:
        kind, reason, question = CLASSIFICATION, "codes with zeros before them", ""
    else:
        kind, reason, question = _kind(found.values, distinct)
    if kind == REGRESSION:
        return Target(name, kind, np.asarray(found.values), reason, question, found.style)
    values = None if found.style or found.are_codes else found.values
    if values is None:
        values = as_texts(series)
    elif np.array_equal(values, np.round(values)):
        values = values.astype(np.int64)
    return _without_rare(Target(name, kind, values, reason), source)


class _Numbers:
    """The numbers of a column, with their style; `values` is None unless all are finite."""

    def __init__(self, series: Any) -> None:
        types = pandas().api.types
        self.values: NDArray[Any] | None = None
        self.style, self.share, self.are_codes = "", 0.0, False
        if types.is_bool_dtype(series.dtype):
            return
        if not types.is_numeric_dtype(series.dtype):
            series = series.astype(str).astype(object)
            written = Written()
            written.add(series)
            self.style = written.numbers.best or ""
            self.are_codes = written.has_leading_zeros and not self.style
        numbers = read_numbers(series, self.style)
        self.share = float(numbers.notna().mean())
        if np.isfinite(numbers).all():
            self.values = numbers.to_numpy()


def _kind(numbers: NDArray[np.float64] | None, distinct: int) -> tuple[str, str, str]:
    """What a target is, why, and what to ask about it."""
    if numbers is None:
        return CLASSIFICATION, f"{distinct} distinct non-numeric values", ""
    if distinct == 2:
        return CLASSIFICATION, "2 distinct numbers; --regression predicts them as numbers", ""
    if distinct > FEW or not np.array_equal(numbers, np.round(numbers)):
        return REGRESSION, f"{distinct} distinct numbers", ""
    shown = listed((f"{value:g}" for value in np.unique(numbers)), most=FEW)
    question = (
        f"a count or a rating, or classes? Its values ({shown}) are predicted as numbers; "
        "--classification takes them for classes, --regression says that this is meant."
    )
    return REGRESSION, f"{distinct} distinct whole numbers ({shown})", question


def _without_rare(target: Target, source: str) -> Target:
    """The same without rows that are the only ones of their class."""
    where = f"{source}, column {target.name!r}"
    classes, place, counts = np.unique(target.values, return_inverse=True, return_counts=True)
    if classes.size > 0.5 * target.values.size:
        raise ValueError(
            f"{where}: the target has {classes.size} classes in {target.values.size} rows. Name "
            "another column with --target, or give --regression if it holds numbers."
        )
    if counts.min() > 1:
        return target
    if np.sum(counts > 1) < 2:
        raise ValueError(
            f"{where}: all rows but {int((counts < 2).sum())} are of one "
            "class, and classes need two rows each. Add rows, or name another column with --target."
        )
    kept = counts[place] > 1
    rare = tuple(str(value) for value in classes[counts < 2])
    return replace(target, values=target.values[kept], kept=kept, rare=rare)


def _no_number(source: str, name: str, series: Any, style: str) -> str:
    """The complaint about a target that holds something other than finite numbers."""
    is_bool = pandas().api.types.is_bool_dtype(series.dtype)
    numbers = read_numbers(series.astype(str).astype(object) if is_bool else series, style)
    infinite = numbers.index[np.isinf(numbers)]
    if len(infinite):
        return infinite_number(source, name, infinite[0])
    text = series.astype(str)
    wrong = text[numbers.isna()] if numbers.isna().any() else text
    otherwise = ", or give --classification if it names classes"
    return text_in_a_number(source, name, first_of(wrong), len(wrong), otherwise)


@dataclass(frozen=True)
class OffsetColumn:
    """A column with an offset for each row, or with an exposure."""

    name: str
    is_exposure: bool
    style: str = ""  # how its numbers are written, as `Column.style`

    @property
    def option(self) -> str:
        """The option that names it."""
        return "--exposure" if self.is_exposure else "--offset"

    @property
    def in_words(self) -> str:
        """What is added to the scores."""
        return f"the logarithm of {self.name}" if self.is_exposure else self.name

    def values(self, frame: Any, source: str) -> Floats:
        """What is added to the score of each row."""
        check_missing(frame, [self.name], source, self.option)
        numbers = as_kind(frame[self.name], "number", source, self.style)
        values: Floats = numbers.to_numpy(dtype=np.float64)
        if not self.is_exposure:
            return values
        bad = numbers.index[values <= 0.0]
        if len(bad):
            where = listed((index + 1 for index in bad), most=3)
            raise ValueError(
                f"{source}, column {self.name!r}: exposures must be above 0, and those of "
                f"{len(bad)} rows ({where}) are not. Mend them, or leave these rows out."
            )
        return np.log(values)
