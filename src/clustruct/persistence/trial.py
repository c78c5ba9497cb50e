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
_METHODS = ("transform", "predict", "predict_proba")
# A scaler may claim any number of columns; one with more than these is not tried.
_WIDEST = 1_000_000


def try_out(model: Any) -> None:
    """Use a fitted transformer or classifier on rows that it may get; errors mean that it cannot.

    A ValueError does not: it is an answer.
    """
    columns = _columns(model)
    if columns is None:
        return
    model = deepcopy(model)  # vectorizers note something when they are used
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for row in zip(*columns, strict=True):
            for name in _METHODS:
                try:
                    if hasattr(model, name):
                        getattr(model, name)(_table(model, row))
                except (ValueError, ImportError):
                    continue


def _kinds(model: Any) -> set[str]:
    return {kind.__name__ for kind in type(model).__mro__}


def _columns(model: Any) -> list[Column] | None:
    """Two values for each column of a fitted estimator, a known and a missing one; None if unknown.

    A column of text for vectorizers counts as one.
    """
    kinds, n_columns = _kinds(model), getattr(model, "n_features_in_", None)
    if n_columns is not None and n_columns > _WIDEST:
        return None
    if "FrozenEstimator" in kinds:
        return _columns(model.estimator)
    if "Pipeline" in kinds:
        return _of_steps(model)
    if "ColumnTransformer" in kinds:
        return _of_parts(model)
    if kinds & {*_WORDS}:
        words = list(getattr(model, "vocabulary_", ()))
        return [[" ".join(map(str, words[:3])), ""]] if words else None
    if n_columns is None:
        return None
    if kinds & {*_ENCODERS}:
        return [[*each[:1], None] for each in model.categories_ if len(each)]
    if _WRITTEN in kinds:
        return [["1", None]] * n_columns
    if not kinds & _NUMERIC:
        return None
    return [[0.0, np.nan]] * n_columns


def _of_steps(pipeline: Any) -> list[Column] | None:
    """The columns of the first step that is one, if all are known but those that predict."""
    steps = [step for _, step in pipeline.steps if not isinstance(step, str | None)]
    columns = [_columns(step) for step in steps if not hasattr(step, "predict")]
    return columns[0] if columns and None not in columns else None


def _of_parts(columns: Any) -> list[Column] | None:
    """The columns of all parts; those that are passed on, or taken by none, are numbers."""
    if "transformers_" not in vars(columns):
        return None
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


def _table(model: Any, row: tuple[Any, ...]) -> Any:
    """A row as the estimator was fitted to: text, a frame with names of columns, or an array."""
    if _kinds(model) & {*_WORDS}:
        return list(row)
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        import pandas as pd

        return pd.DataFrame({name: [value] for name, value in zip(names, row, strict=False)})
    numeric = all(isinstance(value, float) for value in row)
    table = np.empty((1, len(row)), dtype=float if numeric else object)
    table[0] = row
    return table
