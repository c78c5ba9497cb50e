"""What the columns of a table are: numbers, categories, text or dates; shown before it is used."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from clustruct.cli.messages import did_you_mean, listed
from clustruct.cli.tables import pandas

__all__ = [
    "FEW",
    "KINDS",
    "MOSTLY",
    "Column",
    "as_kind",
    "check_missing",
    "find",
    "recognise",
    "infinite_number",
    "text_in_a_number",
]

KINDS = ("number", "category", "text", "date")
LEFT_OUT = "left out"
# A column with so many numbers among its values is one of numbers with something wrong in it.
MOSTLY = 0.8
FEW = 10
WORDS = 4.0  # on average: from here on, values are text and no names of categories
IDENTIFIER = re.compile(r"(?i)^(id|index|row|row.?(id|number)|unnamed: ?\d+)$")
ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?")
SAMPLE = 2000  # values that are looked at to tell text from categories


@dataclass(frozen=True)
class Column:
    """A column of a table, as it was understood.

    Attributes
    ----------
    name : str
    kind : str
        One of `KINDS`, or "left out".
    n_missing : int
    n_distinct : int
    example : str
        Its first value.
    reason : str
        Why it is left out.
    """

    name: str
    kind: str
    n_missing: int
    n_distinct: int
    example: str
    reason: str = ""

    @property
    def used(self) -> bool:
        """Whether the model sees it."""
        return self.kind != LEFT_OUT


def find(frame: Any, name: str, source: str, option: str) -> str:
    """The name, if there is such a column."""
    if name not in frame.columns:
        raise ValueError(
            f"{source} has no column {name!r} ({option}). {did_you_mean(name, frame.columns)}"
        )
    return name


def recognise(
    frame: Any, names: Sequence[str], wishes: Mapping[str, str], source: str
) -> list[Column]:
    """The kinds of some columns.

    Parameters
    ----------
    frame : DataFrame
    names : sequence of str
        Its columns to look at.
    wishes : mapping
        Kinds that were asked for, by the name of the column.
    source : str
        Name of the file, for messages.

    Returns
    -------
    list of Column

    Raises
    ------
    ValueError
        If a column is neither one thing nor the other.
    """
    columns = []
    for name in names:
        series = frame[name]
        present = series.dropna()
        seen = Column(
            name,
            wishes.get(name, ""),
            n_missing=len(series) - len(present),
            n_distinct=_n_distinct(present, name, source),
            example=_example(present),
        )
        if reason := _useless(seen, name, present):
            columns.append(replace(seen, kind=LEFT_OUT, reason=reason))
            continue
        kind, reason = (seen.kind, "") if seen.kind else _kind(present, seen, source)
        columns.append(replace(seen, kind=kind, reason=reason))
    return columns


def _n_distinct(present: Any, name: str, source: str) -> int:
    try:
        return int(present.nunique())
    except TypeError:
        raise ValueError(
            f"{source}, column {name!r}: its values are lists or objects. "
            f"Spread them over columns of their own, or leave the column out: --drop {name!r}."
        ) from None


def _useless(column: Column, name: str, present: Any) -> str:
    """Why a column can tell a model nothing, or an empty string."""
    if not len(present):
        return "it has no values"
    if column.n_distinct == 1 and not column.n_missing:
        return "it has the same value in every row"
    if IDENTIFIER.match(name) and column.n_distinct == len(present) and not column.kind:
        return "it numbers the rows; --category or --columns keep it"
    return ""


def _kind(present: Any, column: Column, source: str) -> tuple[str, str]:
    """The kind of a column with values in it, or why it is left out."""
    pd = pandas()
    if pd.api.types.is_datetime64_any_dtype(present.dtype):
        return "date", ""
    if pd.api.types.is_bool_dtype(present.dtype) or pd.api.types.is_numeric_dtype(present.dtype):
        return "number", ""
    if isinstance(present.dtype, pd.CategoricalDtype):
        return "category", ""
    values = present.astype(str)
    numeric = pd.to_numeric(values, errors="coerce").notna()
    if numeric.all():
        return "number", ""
    if numeric.mean() >= MOSTLY and column.n_distinct > FEW:
        kinds = f", or say what the column is: --category {column.name!r}, --drop {column.name!r}"
        raise ValueError(text_in_a_number(source, column.name, values[~numeric], kinds))
    if values.str.fullmatch(ISO_DATE).all():
        return "date", ""
    if values.head(SAMPLE).str.split().str.len().mean() >= WORDS and column.n_distinct > FEW:
        return "text", ""
    if column.n_distinct > max(2 * FEW, 0.5 * len(present)):
        return LEFT_OUT, (
            f"it has {column.n_distinct} different values in {len(present)} rows; "
            "--category or --text keep it"
        )
    return "category", ""


def text_in_a_number(source: str, name: str, wrong: Any, otherwise: str = "") -> str:
    """The complaint about values that are no numbers, with what else may be done about them."""
    rows = "rows" if len(wrong) > 1 else "row"
    return (
        f"{source}, column {name!r}: {len(wrong)} of its values are no numbers, as "
        f"{wrong.iloc[0]!r:.40} in row {wrong.index[0] + 1}. Mend the {rows} (leave the field "
        f"empty where the number is not known){otherwise}."
    )


def infinite_number(source: str, name: str, row: int) -> str:
    """The complaint about a number that is not finite."""
    return (
        f"{source}, column {name!r}: row {row + 1} is infinite. "
        "Give a finite number, or leave the field empty."
    )


def _example(present: Any) -> str:
    """The first value, as short as it can be."""
    if not len(present):
        return ""
    value = present.iloc[0]
    return f"{value:.6g}" if isinstance(value, float) else f"{value!s:.30}"


def as_kind(series: Any, kind: str, source: str) -> Any:
    """The values of a column as the transformers of its kind take them.

    Parameters
    ----------
    series : Series
    kind : str
        One of `KINDS`.
    source : str
        Name of the file, for messages.

    Returns
    -------
    Series
    """
    pd = pandas()
    if kind == "number":
        numbers = pd.to_numeric(series, errors="coerce").astype(np.float64)
        wrong = series[numbers.isna() & series.notna()]
        if len(wrong):
            raise ValueError(text_in_a_number(source, series.name, wrong))
        infinite = numbers.index[np.isinf(numbers)]
        if len(infinite):
            raise ValueError(infinite_number(source, series.name, infinite[0]))
        return numbers
    if kind == "date":
        dates = pd.to_datetime(series, errors="coerce", utc=True, format="ISO8601")
        wrong = series[dates.isna() & series.notna()]
        if len(wrong):
            raise ValueError(
                f"{source}, column {series.name!r}: {wrong.iloc[0]!r:.40} in row "
                f"{wrong.index[0] + 1} is no date. Write dates as 2024-12-31."
            )
        return dates.dt.tz_localize(None)
    values = series.astype(object)
    return values.where(values.isna(), values.map(str)).where(values.notna(), np.nan)


def check_missing(
    frame: Any, names: Sequence[str], source: str, needed_by: str | None = None
) -> None:
    """Refuse missing values: as was asked for, or in columns that something needs."""
    for name in names:
        missing = frame.index[frame[name].isna()]
        if len(missing):
            where = listed((index + 1 for index in missing), most=3)
            because = (
                f"--missing refuse was given. Fill them, leave the column out (--drop {name!r}), "
                "or give --missing impute."
                if needed_by is None
                else f"{needed_by} needs one in every row. Fill them, or leave these rows out."
            )
            raise ValueError(
                f"{source}, column {name!r}: no value in {len(missing)} rows ({where}), and "
                f"{because}"
            )
