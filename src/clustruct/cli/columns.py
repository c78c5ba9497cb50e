"""What the columns of a table are: numbers, categories, text or dates; shown before it is used."""

import re
from collections.abc import Iterable, Mapping, Sequence
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
    "infinite_number",
    "recognise",
    "stretches",
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
        look = _Look(name, source, closely=name not in wishes)
        for series in stretches(frame, name):
            look.add(series)
        seen = look.column(wishes.get(name, ""))
        if reason := _useless(seen, look.n_present):
            columns.append(replace(seen, kind=LEFT_OUT, reason=reason))
            continue
        kind, reason = (seen.kind, "") if seen.kind else _kind(look, seen, source)
        columns.append(replace(seen, kind=kind, reason=reason))
    return columns


def stretches(frame: Any, name: str) -> Iterable[Any]:
    """A column as one series; as several where it is text and the table is not in memory."""
    if isinstance(frame, pandas().DataFrame):
        return [frame[name]]
    found: Iterable[Any] = frame.stretches(name)
    return found


class _Look:
    """What is to be known of a column, from one stretch of it after the other.

    Parameters
    ----------
    name, source : str
        For messages.
    closely : bool
        Whether values are looked at, too: what they are is not known.
    """

    def __init__(self, name: str, source: str, *, closely: bool) -> None:
        self._name, self._source, self._closely = name, source, closely
        self._hashes: list[Any] = []  # of different values, 64 bits each
        self._example = ""
        self._n_rows = self.n_present = 0
        self.dtype: Any = None
        self.n_numeric = 0
        self.wrong: tuple[Any, int] | None = None  # the first value that is no number, its row
        self.all_dates = True
        self._n_sampled = self._n_words = 0

    def add(self, series: Any) -> None:
        """The next stretch."""
        present = series.dropna()
        self._n_rows += len(series)
        self._hashes.append(self._hashed(present))
        if not len(present):
            return
        if not self.n_present:
            self.dtype, self._example = present.dtype, _example(present.iloc[0])
        self.n_present += len(present)
        if self._closely and not self.kind_of_type:
            self._look_at(present.astype(str))

    def _hashed(self, present: Any) -> Any:
        try:
            return pandas().util.hash_array(present.unique(), categorize=False)
        except TypeError:
            raise ValueError(
                f"{self._source}, column {self._name!r}: its values are lists or objects. Spread "
                f"them over columns of their own, or leave the column out: --drop {self._name!r}."
            ) from None

    @property
    def kind_of_type(self) -> str:
        """The kind that all values of the type are of; none for text."""
        types = pandas().api.types
        if types.is_datetime64_any_dtype(self.dtype):
            return "date"
        if types.is_bool_dtype(self.dtype) or types.is_numeric_dtype(self.dtype):
            return "number"
        return "category" if isinstance(self.dtype, pandas().CategoricalDtype) else ""

    def _look_at(self, values: Any) -> None:
        """Values that are text: whether they are numbers, dates or words."""
        numeric = pandas().to_numeric(values, errors="coerce").notna()
        self.n_numeric += int(numeric.sum())
        if self.wrong is None and not numeric.all():
            wrong = values[~numeric]
            self.wrong = wrong.iloc[0], int(wrong.index[0])
        if self.all_dates:
            self.all_dates = bool(values.str.fullmatch(ISO_DATE).all())
        sample = values.head(SAMPLE - self._n_sampled)
        self._n_sampled += len(sample)
        self._n_words += int(sample.str.split().str.len().sum())

    @property
    def n_words(self) -> float:
        """Words of a value, on average over the first of them."""
        return self._n_words / max(1, self._n_sampled)

    def column(self, kind: str) -> Column:
        """What was seen."""
        distinct = np.unique(np.concatenate(self._hashes)).size
        missing = self._n_rows - self.n_present
        return Column(self._name, kind, missing, int(distinct), self._example)


def _useless(column: Column, n_present: int) -> str:
    """Why a column can tell a model nothing, or an empty string."""
    if not n_present:
        return "it has no values"
    if column.n_distinct == 1 and not column.n_missing:
        return "it has the same value in every row"
    if IDENTIFIER.match(column.name) and column.n_distinct == n_present and not column.kind:
        return "it numbers the rows; --category or --columns keep it"
    return ""


def _kind(look: _Look, column: Column, source: str) -> tuple[str, str]:
    """The kind of a column with values in it, or why it is left out."""
    if look.kind_of_type:
        return look.kind_of_type, ""
    if look.wrong is None:
        return "number", ""
    if look.n_numeric / look.n_present >= MOSTLY and column.n_distinct > FEW:
        kinds = f", or say what the column is: --category {column.name!r}, --drop {column.name!r}"
        n_wrong = look.n_present - look.n_numeric
        raise ValueError(text_in_a_number(source, column.name, *look.wrong, n_wrong, kinds))
    if look.all_dates:
        return "date", ""
    if look.n_words >= WORDS and column.n_distinct > FEW:
        return "text", ""
    if column.n_distinct > max(2 * FEW, 0.5 * look.n_present):
        return LEFT_OUT, (
            f"it has {column.n_distinct} different values in {look.n_present} rows; "
            "--category or --text keep it"
        )
    return "category", ""


def text_in_a_number(
    source: str, name: str, value: Any, row: int, count: int, otherwise: str = ""
) -> str:
    """The complaint about values that are no numbers, with what else may be done about them."""
    rows = "rows" if count > 1 else "row"
    return (
        f"{source}, column {name!r}: {count} of its values are no numbers, as "
        f"{value!r:.40} in row {row + 1}. Mend the {rows} (leave the field "
        f"empty where the number is not known){otherwise}."
    )


def infinite_number(source: str, name: str, row: int) -> str:
    """The complaint about a number that is not finite."""
    return (
        f"{source}, column {name!r}: row {row + 1} is infinite. "
        "Give a finite number, or leave the field empty."
    )


def _example(value: Any) -> str:
    """A value, as short as it can be."""
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
            first = wrong.iloc[0], wrong.index[0]
            raise ValueError(text_in_a_number(source, series.name, *first, len(wrong)))
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
        missing = np.concatenate([s.index[s.isna()] for s in stretches(frame, name)])
        if missing.size:
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
