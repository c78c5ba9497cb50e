"""What the columns of a table are: numbers, categories, text or dates; shown before it is used."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustruct.cli.messages import did_you_mean, in_percent, listed
from clustruct.cli.preparing.styles import Written, date_words, first_of, other_way_round
from clustruct.cli.reading.tables import pandas
from clustruct.estimators.columns.factors import Factor
from clustruct.estimators.columns.written import ISO, read_dates, read_numbers

KINDS = ("number", "category", "text", "date")
ORDERED = "ordered"  # what a column is wished to be whose values have an order, whatever they are
LEFT_OUT = "left out"
# A column with so many numbers among its values is one of numbers with something wrong in it.
MOSTLY = 0.8
FEW = 10
WORDS = 4.0  # on average: from here on, values are text and no names of categories
NUMBERS_ROWS = re.compile(r"(?i)^(index|row|row.?number|unnamed: ?\d+)$")
# `id`, `row id`, `customer_id`, `userId`, `CustomerID` and `uuid`, but not `paid` or `grid`.
IDENTIFIES = re.compile(r"(?i:^id$|[_.\- ]id$|[ug]uid$|identifier$)|[a-z0-9]I[dD]$")
NEARLY = 0.9  # the part of all rows in which an identifier is different
YEARS = (1700, 2100)  # numbers that rise by one from row to row, and yet do not number the rows
SAMPLE = 2000  # values that are looked at to tell text from categories
MOST_LEVELS = 100
# Missing numbers are filled, and from so many on a feature says which; from half of all rows on,
# the column is named.
FLAGGED_ROWS, FLAGGED_SHARE, MOSTLY_MISSING = 5, 0.05, 0.5
ZERO = 1e-9  # what is smaller, relative to the largest number beside it, is rounding


def rare_below(n_rows: int) -> int:
    """Rows that a level of a category has at least, or it is put together with other rare ones."""
    return max(1, min(5, n_rows // 100))


@dataclass(frozen=True)
class Column:
    """A column of a table, as it was recognised."""

    name: str
    kind: str  # one of `KINDS`, or "left out"
    n_missing: int
    n_distinct: int
    example: str  # its first value
    reason: str = ""  # why it is left out
    n_rows: int = 0
    # How its values are written: for numbers the decimal mark, empty for plain ones; for dates
    # the form, empty for dates that are no text
    style: str = ""
    levels: tuple[str, ...] = ()  # its values, in order, if there are two at most
    has_rare: bool = False  # whether some of its values are too rare to be levels of a category
    remark: str = ""  # what the user should know or decide
    factor: Factor | None = None  # how its levels share weights, if it is a factor
    finds_direction: bool = False  # whether the fit finds out if a monotone factor rises or falls

    @property
    def used(self) -> bool:
        """Whether the model sees it."""
        return self.kind != LEFT_OUT

    @property
    def share_missing(self) -> float:
        """The part of all rows in which it is missing."""
        return self.n_missing / max(1, self.n_rows)

    @property
    def is_flagged(self) -> bool:
        """Whether a feature tells where a number or a date is missing."""
        enough = self.n_missing >= max(FLAGGED_ROWS, FLAGGED_SHARE * self.n_rows)
        return enough and self.kind in ("number", "date")


def written_as_text(
    kinds: Mapping[str, str], styles: Mapping[str, str], tasks: str | None
) -> list[str]:
    """Columns whose values stay text, even where they look like numbers."""
    kept = [name for name, kind in kinds.items() if kind != "number"]
    kept += [name for name, style in styles.items() if style and name not in kept]
    return kept if tasks is None else [*kept, tasks]


def find(frame: Any, name: str, source: str, option: str) -> str:
    """The name, if there is such a column."""
    if name not in frame.columns:
        raise ValueError(
            f"{source} has no column {name!r} ({option}). {did_you_mean(name, frame.columns)}"
        )
    return name


def recognise(
    frame: Any,
    names: Sequence[str],
    wishes: Mapping[str, str],
    source: str,
    styles: Mapping[str, str] | None = None,
    n_left_out: int = 0,
) -> list[Column]:
    """Recognise the kinds of the columns `names`, or raise if one has values of several kinds.

    `wishes` and `styles` hold kinds and styles that were asked for, by the name of the column.
    `n_left_out` rows of the file are not in the frame, and leave gaps in numbers of rows.
    """
    columns = []
    for name in names:
        look = _Look(name, source, wishes.get(name, ""))
        for series in batches_of(frame, name):
            look.add(series)
        seen = look.column()
        if reason := _useless(seen, look, n_left_out):
            columns.append(replace(seen, kind=LEFT_OUT, reason=reason))
            continue
        style = (styles or {}).get(name)
        kind, reason = (seen.kind, "") if seen.kind else _kind(look, seen, source)
        kind = look.ordered_kind if kind == ORDERED else kind
        seen = replace(seen, kind=kind, reason=reason)
        if kind in ("number", "date"):
            seen = replace(seen, style=look.style(kind) if style is None else style)
        remark = "" if style is not None else _either_way(look, seen)
        if not remark and seen.used and seen.share_missing >= MOSTLY_MISSING:
            remark = (
                f"{in_percent(seen.share_missing)} of its values are missing. --drop {name!r} "
                "leaves it out."
            )
        columns.append(replace(seen, remark=remark))
    return columns


def batches_of(frame: Any, name: str) -> Iterable[Any]:
    """A column as one series; in batches where it is text and the table is not in memory."""
    if isinstance(frame, pandas().DataFrame):
        return [frame[name]]
    found: Iterable[Any] = frame.batches(name)
    return found


class _Look:
    """Looks at a column batch by batch: number of values, levels, how they are written."""

    def __init__(self, name: str, source: str, wish: str) -> None:
        self._name, self._source, self._wish = name, source, wish
        self._hashes: list[Any] = []  # of different values, 64 bits each
        self._counts: list[Any] = []  # of rows that have them, where they may be levels
        self._first: Any = None
        self._levels: set[str] = set()
        self._n_rows = self.n_present = 0
        self.dtype: Any = None
        self.written = Written()
        self.order = _Order()
        self._n_sampled = self._n_words = 0

    def add(self, series: Any) -> None:
        """Look at the next batch."""
        present = series.dropna()
        self._n_rows += len(series)
        if not len(present):
            return
        if not self.n_present:
            self.dtype, self._first = present.dtype, present.iloc[0]
        self.n_present += len(present)
        self._count(present)
        if self._wish in ("category", "text"):
            return
        if not self.kind_of_type:
            self._look_at(present.astype(str).astype(object))
        elif self.kind_of_type == "number":
            self.order.add(present.to_numpy(dtype=np.float64))

    def _count(self, present: Any) -> None:
        try:
            if self.kind_of_type in ("number", "date") and self._wish != "category":
                values = present.unique()
            else:
                found = present.value_counts(sort=False)
                found = found[found > 0]
                values = found.index.to_numpy()
                self._counts.append(found.to_numpy())
            self._hashes.append(pandas().util.hash_array(values, categorize=False))
        except (TypeError, ValueError):  # the latter from arrays
            raise ValueError(
                f"{self._source}, column {self._name!r}: its values are lists or objects. Spread "
                f"them over columns of their own, or leave the column out: --drop {self._name!r}."
            ) from None
        if len(self._levels) < 3:
            self._levels.update(str(value) for value in values[:3])

    @property
    def kind_of_type(self) -> str:
        """The kind that all values of the type are of; none for text."""
        types = pandas().api.types
        if types.is_datetime64_any_dtype(self.dtype):
            return "date"
        if types.is_bool_dtype(self.dtype) or types.is_numeric_dtype(self.dtype):
            return "number"
        return "category" if isinstance(self.dtype, pandas().CategoricalDtype) else ""

    @property
    def ordered_kind(self) -> str:
        """The kind of values that have an order: numbers, dates or else levels in words."""
        if self.kind_of_type:
            return self.kind_of_type
        if self.written.are_numbers and not self.are_codes:
            return "number"
        return "date" if self.written.are_dates else "category"

    @property
    def are_codes(self) -> bool:
        """Whether values such as 01200 would lose their zeros as numbers."""
        return self.written.has_leading_zeros and not self.written.numbers.best

    def _look_at(self, values: Any) -> None:
        """Values that are text: whether they are numbers, dates or words."""
        self.written.add(values)
        if values.is_unique:
            self.order.add(read_numbers(values).to_numpy())
        else:
            self.order.are_whole = False
        sample = values.head(SAMPLE - self._n_sampled)
        self._n_sampled += len(sample)
        self._n_words += int(sample.str.split().str.len().sum())

    @property
    def n_words(self) -> float:
        """Words of a value, on average over the first of them."""
        return self._n_words / max(1, self._n_sampled)

    def style(self, kind: str) -> str:
        """How numbers or dates are written; empty where they are no text."""
        if self.kind_of_type:
            return ""
        written = self.written
        return (written.numbers.best or "") if kind == "number" else written.dates.best or ISO

    @property
    def _example(self) -> str:
        """The first value, as short as it can be; zero where it is that but for rounding."""
        value = self._first
        if isinstance(value, float):
            return f"{value:.6g}" if abs(value) > ZERO * self.order.largest else "0"
        return "" if value is None else f"{value!s:.30}"

    def column(self) -> Column:
        """What was seen."""
        hashes = np.concatenate(self._hashes) if self._hashes else np.empty(0, np.uint64)
        distinct, place = np.unique(hashes, return_inverse=True)
        rare = distinct.size > MOST_LEVELS
        if self._counts:
            counts = np.bincount(place, np.concatenate(self._counts))
            rare |= bool((counts < rare_below(self._n_rows)).any())
        return Column(
            self._name,
            self._wish,
            self._n_rows - self.n_present,
            int(distinct.size),
            self._example,
            n_rows=self._n_rows,
            levels=tuple(sorted(self._levels)) if distinct.size <= 2 else (),
            has_rare=bool(rare),
        )


class _Order:
    """Whether numbers count the rows, from some of them after the others."""

    def __init__(self) -> None:
        self.are_whole, self._rise = True, True
        self._low, self._high = np.inf, -np.inf
        self._last = -np.inf

    @property
    def largest(self) -> float:
        """The largest absolute value."""
        return float(max(abs(self._low), abs(self._high))) if self._high >= self._low else 0.0

    def add(self, numbers: Any) -> None:
        """The next ones; NaN for what is no number."""
        finite = numbers[np.isfinite(numbers)]
        if finite.size:
            self._low = min(self._low, float(finite.min()))
            self._high = max(self._high, float(finite.max()))
        self.are_whole &= finite.size == numbers.size and bool((np.floor(finite) == finite).all())
        if self.are_whole and self._rise:
            self._rise = bool((np.diff(numbers, prepend=self._last) > 0).all())
            self._last = float(numbers[-1])

    def counts(self, n_rows: int, n_left_out: int) -> bool:
        """Whether different numbers count these rows, but for gaps of others that were left out."""
        if not self.are_whole or self._high - self._low + 1 > n_rows + n_left_out:
            return False
        if 0 <= self._low <= 1 + n_left_out:
            return True
        return self._rise and not (YEARS[0] <= self._low and self._high <= YEARS[1])


def _useless(column: Column, look: _Look, n_left_out: int) -> str:
    """Why a column can tell a model nothing, or an empty string."""
    if not look.n_present:
        return "it has no values"
    if column.n_distinct == 1 and not column.n_missing:
        return "it has the same value in every row"
    # Whole numbers or text may identify rows: fractions name nothing.
    may_identify = look.order.are_whole or not look.kind_of_type
    if column.kind or look.kind_of_type == "date" or not may_identify:
        return ""
    keep = f"--number {column.name!r} or --category {column.name!r} keeps it"
    unique = column.n_distinct == look.n_present
    is_long = look.n_present >= FEW and not column.n_missing
    counts = is_long and look.order.counts(column.n_rows, n_left_out)
    if unique and (counts or NUMBERS_ROWS.match(column.name)):
        return f"it numbers the rows; {keep}"
    if IDENTIFIES.search(column.name) and column.n_distinct >= NEARLY * look.n_present:
        return f"it is an identifier, by its name and as nearly all rows differ; {keep}"
    return ""


def _kind(look: _Look, column: Column, source: str) -> tuple[str, str]:
    """The kind of a column with values in it, or why it is left out."""
    if look.kind_of_type:
        return look.kind_of_type, ""
    written = look.written
    are_codes = look.are_codes
    if written.are_numbers and not are_codes:
        return "number", ""
    if written.are_dates:
        return "date", ""
    wrong = written.numbers.wrong
    mostly = written.numbers.n_good >= MOSTLY * look.n_present
    if mostly and wrong is not None and column.n_distinct > FEW and not are_codes:
        kinds = f", or say what the column is: --category {column.name!r}, --drop {column.name!r}"
        n_wrong = look.n_present - written.numbers.n_good
        raise ValueError(text_in_a_number(source, column.name, wrong, n_wrong, kinds))
    if look.n_words >= WORDS and column.n_distinct > FEW:
        return "text", ""
    are_names = column.n_distinct == look.n_present >= FEW
    if are_names or column.n_distinct > max(2 * FEW, 0.5 * look.n_present):
        return LEFT_OUT, _too_many(column, look, are_codes)
    return "category", ""


def _too_many(column: Column, look: _Look, are_codes: bool) -> str:
    """Why a column of text with so many different values is left out."""
    many = f"it has {column.n_distinct} distinct values in {look.n_present} rows"
    signs = sorted(look.written.signs)
    if are_codes and look.written.numbers.wrong is None:
        return (
            f"{many}, codes with zeros before them; --number {column.name!r} takes them for numbers"
        )
    if look.written.numbers.n_good == look.n_present and len(signs) > 0:
        return (
            f"its numbers are of different units ({listed(signs)}); --number {column.name!r} "
            "takes them for one"
        )
    return f"{many}; --category {column.name!r} or --text {column.name!r} keeps it"


def _either_way(look: _Look, column: Column) -> str:
    """What the values of a column leave open, and how it was decided."""
    written, value = look.written, column.example
    if column.kind == "number" and column.style and written.may_have_a_decimal_comma:
        return (
            "commas and points could be taken either way in every value; the point was taken for "
            f"the decimal mark, as in 1,234.5. --decimal-comma {column.name!r} takes the comma."
        )
    if column.kind == "date" and written.may_be_the_other_way_round:
        other = other_way_round(column.style)
        return (
            f"day and month could be either way round in every value; {value!r} was read as "
            f"{date_words(column.style)}. --date-format {f'{column.name}={other}'!r} reads it as "
            f"{date_words(other)}."
        )
    return ""


def text_in_a_number(
    source: str, name: str, first: tuple[Any, int], count: int, otherwise: str = ""
) -> str:
    """The error about values that are not numbers, with other remedies."""
    return (
        f"{source}, column {name!r}: {count} of its values are not numbers, such as "
        f"{first[0]!r:.40} in row {first[1] + 1}. Mend the {'rows' if count > 1 else 'row'} (leave "
        f"the field empty where the number is not known){otherwise}."
    )


def infinite_number(source: str, name: str, row: int) -> str:
    """The error about a number that is not finite."""
    return (
        f"{source}, column {name!r}: row {row + 1} is infinite. "
        "Give a finite number, or leave the field empty."
    )


def as_kind(series: Any, kind: str, source: str, style: str = "") -> Any:
    """Convert the values of a column to those that the transformers of its kind take."""
    if kind == "number":
        numbers = read_numbers(series, style)
        wrong = series[numbers.isna() & series.notna()]
        if len(wrong):
            first = first_of(wrong)
            raise ValueError(text_in_a_number(source, series.name, first, len(wrong)))
        infinite = numbers.index[np.isinf(numbers)]
        if len(infinite):
            raise ValueError(infinite_number(source, series.name, infinite[0]))
        return numbers
    if kind == "date":
        form = style or ISO
        dates = read_dates(series, form)
        wrong = series[dates.isna() & series.notna()]
        if len(wrong):
            example = "2024-12-31" if form == ISO else date_words(form)
            raise ValueError(
                f"{source}, column {series.name!r}: {wrong.iloc[0]!r:.40} in row "
                f"{wrong.index[0] + 1} is no date. Write all of them as {example}, or leave the "
                "field empty."
            )
        return dates
    values = series.astype(object)
    return values.where(values.isna(), values.map(str)).where(values.notna(), np.nan)


def as_texts(series: Any) -> NDArray[Any]:
    """The values of a column without missing ones, as text."""
    return np.array([str(value) for value in series], dtype=object).astype(str)


def check_missing(
    frame: Any, names: Sequence[str], source: str, needed_by: str | None = None
) -> None:
    """Refuse missing values: as was asked for, or in columns that something needs."""
    for name in names:
        missing = np.concatenate([s.index[s.isna()] for s in batches_of(frame, name)])
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
