"""Numbers and dates as people write them, as numbers and dates: ``$3,822.10``, ``24.9.2023``.

The command line reads tables with these functions, and the transformers that model files hold do
the same with tables in Python.
"""

import re
from typing import Any

import numpy as np

ISO = "ISO8601"
CURRENCY = r"(?:[$€£¥₹]|USD|EUR|GBP|CHF|JPY)"
_SPACES = " \u00a0\u202f'\u2019"


def _number(decimal: str) -> re.Pattern[str]:
    """Numbers with this decimal mark, and the other mark or a space between thousands."""
    between = re.escape("," if decimal == "." else ".")
    digits = rf"(?:\d{{1,3}}(?:[{between}{_SPACES}]\d{{3}})+|\d+)"
    size = rf"(?:{digits}(?:{re.escape(decimal)}\d*)?|{re.escape(decimal)}\d+)(?:[eE][-+]?\d+)?"
    signed = rf"[-+\u2212]?\s?{CURRENCY}?\s?[-+\u2212]?\s?{size}\s?(?:{CURRENCY}|%)?"
    return re.compile(rf"{signed}|\({signed}\)")


# Patterns by decimal mark. Brackets around a number make it negative, as in accounts.
NUMBER = {decimal: _number(decimal) for decimal in (".", ",")}
_DECORATION = re.compile(rf"{CURRENCY}|[%()\s{_SPACES}]")


def read_numbers(series: Any, decimal: str = "") -> Any:
    """Numbers of a column; NaN for what is missing and for what is no number.

    `decimal` is the decimal mark of text with signs of currency, percent signs or marks between
    thousands, and empty for plain numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> from clustruct.estimators.columns.written import read_numbers
    >>> read_numbers(pd.Series(["$3,822.10", "12.5%", "(7)", "none"]), ".").tolist()
    [3822.1, 12.5, -7.0, nan]
    """
    import pandas as pd

    series = pd.Series(series)
    if not decimal or not _is_text(series):
        return pd.to_numeric(series, errors="coerce").astype(np.float64)
    text = series.astype(object)
    text = text.where(text.notna(), "").map(str).str.strip()
    text = text.where(text.str.fullmatch(NUMBER[decimal]), "")
    sign = np.where(text.str.contains("(", regex=False), -1.0, 1.0)
    text = text.str.replace(_DECORATION, "", regex=True).str.replace("\u2212", "-", regex=False)
    text = text.str.replace("." if decimal == "," else ",", "", regex=False)
    text = text.str.replace(decimal, ".", regex=False)
    return sign * pd.to_numeric(text, errors="coerce").astype(np.float64)


def read_dates(series: Any, form: str = ISO) -> Any:
    """Dates of a column; NaT for what is missing and for what is no date.

    `form` is as `datetime.strptime` takes it, or "ISO8601". Dates with a time zone are in UTC, and
    all are returned without one.

    Examples
    --------
    >>> import pandas as pd
    >>> from clustruct.estimators.columns.written import read_dates
    >>> read_dates(pd.Series(["Jun 12 1998", "soon"]), "%b %d %Y").dt.year.tolist()
    [1998.0, nan]
    """
    import pandas as pd

    series = pd.Series(series)
    if _is_text(series) and form != ISO:
        series = series.astype(object).map(lambda value: str(value).strip(), na_action="ignore")
    else:
        form = ISO
    return pd.to_datetime(series, errors="coerce", utc=True, format=form).dt.tz_localize(None)


def _is_text(series: Any) -> bool:
    from pandas.api import types

    return not (types.is_numeric_dtype(series) or types.is_datetime64_any_dtype(series))
