"""Transformers for columns of tables, for what scikit-learn's own do not take or do not name.

They are what the command line puts before a model, beside scikit-learn's imputers, scalers and
vectorizers; and they hold no functions, so that model files can hold them. Features that stand for
a part of a column are called ``column: part``, such as ``sex: male`` or ``age: missing``.
"""

import re
from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import MissingIndicator
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.validation import (
    _check_feature_names,
    _check_feature_names_in,
    _check_n_features,
    check_is_fitted,
)

from clustruct.estimators.columns.written import ISO, read_dates, read_numbers

SECONDS = 86_400.0
# A whole number that was written as one with a fraction, as columns with missing values are.
WHOLE = re.compile(r"-?(0|[1-9][0-9]*)\.0")


class _ColumnTransform(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """A transformer that learns nothing but the names of its columns."""

    def fit(self, X: Any, y: ArrayLike | None = None) -> "_ColumnTransform":
        """Remember the names of the columns."""
        _check_n_features(self, X, reset=True)
        _check_feature_names(self, X, reset=True)
        return self

    def _columns(self, X: Any) -> list[Any]:
        """The columns, as many and by the names that there were."""
        check_is_fitted(self, "n_features_in_")
        _check_n_features(self, X, reset=False)
        _check_feature_names(self, X, reset=False)
        if hasattr(X, "iloc"):
            return [X.iloc[:, place] for place in range(X.shape[1])]
        return list(np.asarray(X, dtype=object).T)


class DateToDays(_ColumnTransform):
    """Dates as days since the beginning of 1970; NaN where there is none."""

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Count the days, with fractions, of dates or of text in the form of ISO 8601."""
        return np.column_stack([_days(column) for column in self._columns(X)])


class WrittenDates(DateToDays):
    """The same for text with dates of a form, as `datetime.strptime` takes it, or "ISO8601".

    Examples
    --------
    >>> from clustruct.estimators.columns.transformers import WrittenDates
    >>> WrittenDates("%d.%m.%Y").fit_transform([["02.01.1970"], ["1.10.2023"]]).tolist()
    [[1.0], [19631.0]]
    """

    def __init__(self, form: str = ISO) -> None:
        self.form = form

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Count the days of dates, or of text of the form; what is not of it is missing."""
        columns = [_days(read_dates(column, self.form)) for column in self._columns(X)]
        return np.column_stack(columns)


class WrittenNumbers(_ColumnTransform):
    """Numbers of text with signs of currency, percent signs or marks between thousands.

    The decimal mark is "." or ",".

    Examples
    --------
    >>> from clustruct.estimators.columns.transformers import WrittenNumbers
    >>> WrittenNumbers(",").fit_transform([["€ 1.234,50"], [7]]).tolist()
    [[1234.5], [7.0]]
    """

    def __init__(self, decimal: str = ".") -> None:
        self.decimal = decimal

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Read numbers, or text; what is neither is missing."""
        columns = [read_numbers(column, self.decimal) for column in self._columns(X)]
        return np.column_stack(columns)


class LevelText(_ColumnTransform):
    """Levels of categories as text, the same whatever the type of the column that holds them.

    Whole numbers have no fraction: 1000, 1000.0 and "1000" are one level, and "01200" stays as it
    is. Dates of a form, as `WrittenDates` takes it, are written in the order of ISO 8601, which
    sorts them. Missing values stay missing.

    Examples
    --------
    >>> from clustruct.estimators.columns.transformers import LevelText
    >>> LevelText().fit_transform([[1000.0], ["1000"], ["01200"]]).ravel().tolist()
    ['1000', '1000', '01200']
    >>> LevelText("%d.%m.%Y").fit_transform([["24.9.2023"]]).tolist()
    [['2023-09-24']]
    """

    def __init__(self, form: str = "") -> None:
        self.form = form

    def transform(self, X: Any) -> NDArray[np.object_]:
        """Write the levels; what is no date of the form is missing."""
        columns = self._columns(X)
        made = np.empty((len(X), len(columns)), dtype=object)
        for place, column in enumerate(columns):
            made[:, place] = _level_texts(read_dates(column, self.form) if self.form else column)
        return made


class _PartsOfColumns:
    """Names of features that stand for parts of columns."""

    @abstractmethod
    def _parts(self, place: int) -> list[str]:
        """The parts of a column that have a feature."""

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Names as ``column: part``, with the names of the fit if none are given."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        made = [
            f"{name}: {part}" for place, name in enumerate(names) for part in self._parts(place)
        ]
        return np.asarray(made, dtype=object)


class MissingFlag(_PartsOfColumns, MissingIndicator):
    """scikit-learn's `MissingIndicator`, with features called ``column: missing``."""

    def transform(self, X: Any) -> Any:
        """1 where values are missing, 0 elsewhere: numbers, so that matrices stay numeric."""
        return super().transform(X).astype(np.float64)

    def _parts(self, place: int) -> list[str]:
        return ["missing"] if place in self.features_ else []


class LevelEncoder(_PartsOfColumns, OneHotEncoder):
    """scikit-learn's `OneHotEncoder`, with features called ``column: level``.

    A missing value is the level ``missing``, and rare levels are together
    ``other (12 rare levels)``, or ``other (its name)`` if there is one. An unknown level counts as
    the one without a feature, where there is such a level, or as none; nothing warns of it.

    Examples
    --------
    >>> import pandas as pd
    >>> from clustruct.estimators.columns.transformers import LevelEncoder
    >>> sizes = pd.DataFrame({"size": ["S", "M", "M", "L", "L", None, None]})
    >>> encoder = LevelEncoder(min_frequency=2, drop="if_binary").fit(sizes)
    >>> encoder.get_feature_names_out().tolist()
    ['size: L', 'size: M', 'size: missing', 'size: other (S)']
    """

    def _parts(self, place: int) -> list[str]:
        values = _with_none(self.categories_[place])
        missing = "missing value" if "missing" in map(str, values) else "missing"
        names = {value: missing if value is None else str(value) for value in values}
        rare = self.infrequent_categories_[place] if self._infrequent_enabled else None
        apart = [names.pop(value) for value in _with_none(() if rare is None else rare)]
        levels = list(names.values())
        if apart:
            levels.append(f"other ({apart[0] if len(apart) == 1 else f'{len(apart)} rare levels'})")
        dropped = self.drop_idx_ is not None and self.drop_idx_[place] is not None
        return levels[1:] if dropped else levels

    def _transform(self, X: Any, **options: Any) -> Any:
        if "warn_on_unknown" in options:  # of levels that count as the first of two
            options["warn_on_unknown"] = False
        return super()._transform(X, **options)


class WordsOfColumn(TfidfVectorizer):
    """scikit-learn's `TfidfVectorizer`, with features called ``column: word``."""

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Names of the words, with the name of the column before them if it is given."""
        words = super().get_feature_names_out()
        if input_features is None:
            return np.asarray(words, dtype=object)
        column = np.asarray(input_features, dtype=object).reshape(-1)[0]
        return np.asarray([f"{column}: {word}" for word in words], dtype=object)


class FilledText(_ColumnTransform):
    """One column of text, empty where it is missing, as vectorizers take it."""

    def transform(self, X: Any) -> NDArray[np.object_]:
        """Fill what is missing."""
        (column,) = self._columns(X)
        filled = np.empty(len(column), dtype=object)
        filled[:] = ["" if _is_missing(value) else str(value) for value in column]
        return filled


def _days(column: Any) -> NDArray[np.float64]:
    values = np.asarray(column)
    if values.dtype.kind != "M":
        dates = [np.datetime64("NaT" if _is_missing(value) else value) for value in column]
        values = np.array(dates, dtype="datetime64[us]")
    seconds = values.astype("datetime64[us]").astype(np.float64) / 1e6
    return np.where(np.isnat(values), np.nan, seconds / SECONDS)


def _level_texts(column: Any) -> NDArray[np.object_]:
    """The values of a column as text, each distinct one written once; NaN where missing."""
    import pandas as pd

    codes, values = pd.factorize(pd.Series(column))
    texts = np.array([*map(_level_text, values), np.nan], dtype=object)
    return texts[codes]  # the code of missing values, -1, finds the last


def _level_text(value: Any) -> str:
    text = str(value)
    if WHOLE.fullmatch(text):
        return text[:-2]
    return text.removesuffix(" 00:00:00") if hasattr(value, "isoformat") else text


def _with_none(values: Iterable[Any]) -> list[Any]:
    """Levels, with None for what is missing."""
    return [None if _is_missing(value) else value for value in values]


def _is_missing(value: Any) -> bool:
    return value is None or value != value  # NaN and NaT differ from themselves
