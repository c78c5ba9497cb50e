"""Two transformers for columns of tables, for what scikit-learn's own do not take.

They are what the command line puts before a model, beside scikit-learn's imputers, scalers,
encoders and vectorizers; and they hold no functions, so that model files can hold them.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_is_fitted

__all__ = ["DateToDays", "FilledText"]

SECONDS = 86_400.0


class _ColumnTransform(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """A transformer that learns nothing but the names of its columns."""

    def fit(self, X: Any, y: ArrayLike | None = None) -> "_ColumnTransform":
        """Remember the names of the columns.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_columns)
            Columns.
        y : None
            Ignored.

        Returns
        -------
        estimator
            Itself.
        """
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
    """Dates as days since the beginning of 1970; NaN where there is none.

    Examples
    --------
    >>> from clustruct.estimators.columns import DateToDays
    >>> DateToDays().fit_transform([["1970-01-02"], ["1970-01-03T12:00"]]).tolist()
    [[1.0], [2.5]]
    """

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Count the days.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_columns)
            Dates, or text in the form of ISO 8601.

        Returns
        -------
        ndarray of shape (n_samples, n_columns)
            Days, with fractions.
        """
        return np.column_stack([_days(column) for column in self._columns(X)])


class FilledText(_ColumnTransform):
    """One column of text, empty where it is missing, as vectorizers take it.

    Examples
    --------
    >>> from clustruct.estimators.columns import FilledText
    >>> FilledText().fit_transform([["good"], [None]]).tolist()
    ['good', '']
    """

    def transform(self, X: Any) -> NDArray[np.object_]:
        """Fill what is missing.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, 1)
            Text.

        Returns
        -------
        ndarray of shape (n_samples,)
            Text.
        """
        (column,) = self._columns(X)
        filled = np.empty(len(column), dtype=object)
        filled[:] = ["" if _is_missing(value) else str(value) for value in column]
        return filled


def _days(column: Any) -> NDArray[np.float64]:
    values = np.asarray(column)
    if values.dtype.kind != "M":
        values = np.array(
            [
                np.datetime64("NaT") if _is_missing(value) else np.datetime64(value)
                for value in column
            ],
            dtype="datetime64[us]",
        )
    seconds = values.astype("datetime64[us]").astype(np.float64) / 1e6
    return np.where(np.isnat(values), np.nan, seconds / SECONDS)


def _is_missing(value: Any) -> bool:
    return value is None or value != value  # NaN and NaT differ from themselves
