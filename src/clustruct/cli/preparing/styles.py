"""How a column of text writes numbers or dates: one style for all of its values."""

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustruct.cli.messages import BadUsage
from clustruct.cli.reading.tables import pandas
from clustruct.estimators.columns.written import CURRENCY, ISO, NUMBER, read_dates

ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?")
# Of two forms that suit every value the first is taken: the month comes first between slashes, the
# day between points and dashes.
_DAYS = (
    *("%m/%d/%Y", "%d/%m/%Y", "%m/%d/%y", "%d/%m/%y", "%Y/%m/%d"),
    *("%d.%m.%Y", "%d.%m.%y", "%Y.%m.%d", "%d-%m-%Y", "%m-%d-%Y", "%d-%m-%y"),
    *("%b %d %Y", "%b %d, %Y", "%B %d %Y", "%B %d, %Y", "%d %b %Y", "%d %B %Y", "%d. %B %Y"),
    *("%d-%b-%Y", "%d-%b-%y", "%b %Y", "%B %Y", "%b-%y", "%b-%Y"),
)
_TIMES = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")
DATE_FORMS = (ISO, *(f"{day}{time}" for day in _DAYS for time in _TIMES))
_LIKE_A_DATE = re.compile(r"(?=.*\d)\s*\w+[-/. ][\w.,/: -]{2,40}")
_WORDS = {
    **dict.fromkeys(("%Y", "%y"), "year"),
    **dict.fromkeys(("%m", "%b", "%B"), "month"),
    **dict.fromkeys(("%H", "%I"), "hour"),
    "%d": "day",
    "%M": "minute",
    "%S": "second",
    "%f": "fraction",
    "%p": "am/pm",
}
_LEADING_ZERO = re.compile(r"\s*[-+]?0\d+\s*")
_SIGN = re.compile(rf"({CURRENCY}|%)")
_THOUSAND = re.compile(r"\d[.,]\d{3}")
PERCENT = "%"


class Styles:
    """Counts batch by batch how many values are written in each of some styles.

    A style is looked for if the first value of the column is written in it. Of two styles with as
    many values the first one is better.
    """

    def __init__(self, suits: Callable[[Any, str], Any], styles: Sequence[str]) -> None:
        self._suits = suits
        self._styles = styles
        self._counts: dict[str, int] | None = None
        self._wrong: dict[str, tuple[Any, int]] = {}

    def add(self, values: Any, times: NDArray[np.intp]) -> None:
        """The next values, as a series of text, and how often each of them occurs."""
        if self._counts is None:
            first = values.iloc[:1]
            self._counts = {s: 0 for s in self._styles if not s or self._suits(first, s).all()}
        for style in self._counts:
            good = self._suits(values, style).to_numpy(dtype=bool)
            self._counts[style] += int(times[good].sum())
            if style not in self._wrong and not good.all():
                self._wrong[style] = first_of(values[~good])

    @property
    def best(self) -> str | None:
        """The style of most values; None if the first value is written in none."""
        counts = self._counts or {}
        return max(counts, key=counts.__getitem__, default=None)

    @property
    def n_good(self) -> int:
        """Values that are written in the best style."""
        return max((self._counts or {}).values(), default=0)

    @property
    def wrong(self) -> tuple[Any, int] | None:
        """The first value that is not, and its row; None if all are."""
        return None if self.best is None else self._wrong.get(self.best)

    def is_sought(self, style: str | None) -> bool:
        """Whether the first value is written in a style."""
        return style in (self._counts or {})

    def suits_all(self, style: str | None) -> bool:
        """Whether all values are written in a style."""
        return self.is_sought(style) and style not in self._wrong


class Written:
    """Looks at how the values of a column are written, batch by batch.

    Styles of numbers are the decimal mark, or empty for plain numbers; those of dates are forms.
    """

    def __init__(self) -> None:
        self.numbers = Styles(_suits_number, ("", ".", ","))
        self.dates = Styles(_suits_date, DATE_FORMS)
        self.has_leading_zeros = False
        self.signs: set[str] = set()  # of currency, and of percent
        self._n_values = self._n_signs = 0
        self._has_thousands = False

    def add(self, values: Any) -> None:
        """The next values: a series of text, of which none is missing."""
        self._n_values += len(values)
        values, times = _distinct(values)
        self.numbers.add(values, times)
        self.dates.add(values, times)
        if self.numbers.is_sought(".") or self.numbers.is_sought(","):
            signs = values.str.extract(_SIGN, expand=False)
            self.signs.update(signs.dropna().unique())
            self._n_signs += int(times[signs.notna()].sum())
            self._has_thousands |= bool(values.str.contains(_THOUSAND).any())
        if not self.has_leading_zeros:
            self.has_leading_zeros = bool(values.str.fullmatch(_LEADING_ZERO).any())

    @property
    def are_numbers(self) -> bool:
        """Whether all values are numbers of one unit."""
        if not self.numbers.suits_all(self.numbers.best):
            return False
        every_one = PERCENT not in self.signs or self._n_signs == self._n_values
        return len(self.signs) < 2 and every_one

    @property
    def are_dates(self) -> bool:
        """Whether all values are dates of one form."""
        return self.dates.suits_all(self.dates.best)

    @property
    def may_have_a_decimal_comma(self) -> bool:
        """Whether a comma could as well be the decimal mark, with other numbers then."""
        return self.numbers.best == "." and self.numbers.suits_all(",") and self._has_thousands

    @property
    def may_be_the_other_way_round(self) -> bool:
        """Whether day and month could as well be exchanged, with other dates then."""
        return self.are_dates and self.dates.suits_all(other_way_round(str(self.dates.best)))


def first_of(series: Any) -> tuple[Any, int]:
    """The first value of a series, and its row."""
    return series.iloc[0], int(series.index[0])


def _distinct(values: Any) -> tuple[Any, NDArray[np.intp]]:
    """Values without repetitions, each with the number of its first row, and their counts."""
    place, _ = pandas().factorize(values)
    first = np.flatnonzero(np.diff(np.maximum.accumulate(place), prepend=-1))
    return values.iloc[first], np.bincount(place)


def _suits_number(values: Any, style: str) -> Any:
    if style:
        return values.str.strip().str.fullmatch(NUMBER[style])
    return pandas().to_numeric(values, errors="coerce").notna()


def _suits_date(values: Any, form: str) -> Any:
    if form == ISO:
        return values.str.fullmatch(ISO_DATE)
    if len(values) == 1 and not _LIKE_A_DATE.fullmatch(values.iloc[0]):  # saves trying all forms
        return values.isna()
    return read_dates(values, form).notna()


def other_way_round(form: str) -> str:
    """A form of dates with day and month exchanged; empty if that is no known form."""
    found = form.replace("%d", "%?").replace("%m", "%d").replace("%?", "%m")
    return found if found != form and found in DATE_FORMS else ""


def date_words(form: str) -> str:
    """A form of dates in words, such as day.month.year."""
    if form == ISO:
        return "year-month-day"
    return re.sub(r"%\w", lambda found: _WORDS.get(found[0], found[0]), form)


def check_date_form(form: str, option: str) -> str:
    """The form, if dates can be written and read in it."""
    if form == ISO:
        return form
    day = datetime(2001, 11, 22)
    try:
        read = datetime.strptime(day.strftime(form), form)
    except ValueError:
        read = datetime.min
    if read.year != day.year:
        raise BadUsage(
            f"{option}: {form!r} is no form of dates. Give %Y, %m and %d for year, month and day, "
            "%b for Jun, %B for June, %y for 98, %H:%M:%S for the time: 'sold=%d/%m/%Y'."
        )
    return form
