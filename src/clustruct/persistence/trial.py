"""Whether the transformers and classifiers of a model file work: each is tried on rows of its own.

`foreign` checks what compiled code relies on. Whatever else is wrong with the state of a forged
transformer ends in some error of its Python code. A trial shows it when the file is loaded, not
when the model is used.
"""

import warnings
from copy import deepcopy
from typing import Any

import numpy as np

Column = list[Any]

# Rows for other classes cannot be told from their state, or could take all memory.
_NUMERIC = {
    *("StandardScaler", "RobustScaler", "MaxAbsScaler", "MinMaxScaler", "TfidfTransformer"),
    *("PCA", "TruncatedSVD", "LogisticRegression", "LinearRegression", "Ridge", "GaussianNB"),
    *("SimpleImputer", "MissingIndicator"),
}
_ENCODERS = ("OneHotEncoder", "OrdinalEncoder")
_WORDS = ("CountVectorizer", "TfidfVectorizer")
# Our own transformers of columns, which take any text.
_WRITTEN = "_ColumnTransform"
_KNOWN = {*_NUMERIC, *_ENCODERS, *_WORDS, _WRITTEN, "ColumnTransformer"}
_METHODS = ("transform", "predict", "predict_proba")
# A scaler may claim any number of columns, and wide tables take long; these are the most tried.
_WIDEST = 1000


def try_out(model: Any) -> None:
    """Use a fitted transformer or classifier on rows that it may get; errors mean that it cannot.

    A ValueError does not: it is an answer.
    """
    tables = _tables(model)
    if not tables:
        return
    model = deepcopy(model)  # vectorizers note something when they are used
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for table in tables:
            for name in _METHODS:
                try:
                    if hasattr(model, name):
                        getattr(model, name)(table)
                except (ValueError, ImportError):
                    continue


def _kinds(model: Any) -> set[str]:
    return {kind.__name__ for kind in type(model).__mro__}


def _tables(model: Any) -> list[Any]:
    """Tables of one row, of known values and of missing ones; none if it is unknown what it takes.

    Vectorizers take lists of text.
    """
    columns = _columns(model)
    if columns is None:
        return []
    rows = list(zip(*columns, strict=True))
    if _kinds(_taker(model)) & {*_WORDS}:
        return [list(row) for row in rows]
    return [_table(row, getattr(model, "feature_names_in_", None)) for row in rows]


def _columns(model: Any) -> list[Column] | None:
    """Two values for each column of a fitted estimator, a known and a missing one; None if unknown.

    A column of text for vectorizers counts as one. What is not fitted has no columns.
    """
    taker = _taker(model)
    kinds, n_columns = _kinds(taker), getattr(taker, "n_features_in_", None)
    if kinds & {*_WORDS}:
        # So short that no pattern of a forged file takes long on it.
        return [["aa bb", ""]]
    if not kinds & _KNOWN:
        return None
    if n_columns is None:
        return []
    if n_columns > _WIDEST:
        return None
    if "ColumnTransformer" in kinds:
        return _of_parts(taker)
    if kinds & {*_ENCODERS}:
        return [[*each[:1], None] for each in taker.categories_ if len(each)]
    return [["1", None] if _WRITTEN in kinds else [0.0, np.nan]] * n_columns


def _taker(model: Any) -> Any:
    """What takes the columns: the first step of a pipeline whose steps are all known."""
    kinds = _kinds(model)
    if "FrozenEstimator" in kinds:
        return _taker(model.estimator)
    if "Pipeline" not in kinds:
        return model
    steps = [step for _, step in model.steps if not isinstance(step, str | None)]
    takers = [_taker(step) for step in steps if not hasattr(step, "predict")]
    known = all(_kinds(taker) & _KNOWN for taker in takers)
    return takers[0] if takers and known else None


def _of_parts(columns: Any) -> list[Column] | None:
    """The columns of all parts; those that are passed on, or taken by none, are numbers."""
    made: list[Column] = [[0.0, np.nan]] * columns.n_features_in_
    for name, part, _ in columns.transformers_:
        if isinstance(part, str):
            continue
        values = _columns(part)
        if values is None:
            return None
        places = columns._transformer_to_input_indices[name]
        for place, each in zip(places, values, strict=False):
            made[place] = each
    return made


def _table(row: tuple[Any, ...], names: Any) -> Any:
    """A frame with these names of columns, or an array."""
    if names is not None:
        import pandas as pd

        return pd.DataFrame({name: [value] for name, value in zip(names, row, strict=False)})
    numeric = all(isinstance(value, float) for value in row)
    table = np.empty((1, len(row)), dtype=float if numeric else object)
    table[0] = row
    return table
