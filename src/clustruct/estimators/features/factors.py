"""Frames with categories as samples of models of features, and these models without groups."""

from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from clustruct._typing import Floats
from clustruct.estimators.columns.factors import (
    FactorColumns,
    FactorLevels,
    factors_wanted,
    learn_factors,
)
from clustruct.estimators.columns.frames import is_frame
from clustruct.estimators.intake import names_of_features


def validate_samples(model: Any, X: Any, *, reset: bool, **checks: Any) -> Any:
    """A validated matrix of numbers, or the design of a frame with factors.

    With `reset` the model gets to know the columns; its `factors_` are None if all are numbers.
    """
    if reset:
        model.factors_ = None
    wanted = factors_wanted(X, model.categorical_features, model.factors) if reset else None
    if not (wanted or model.factors_):
        return validate_data(model, X, reset=reset, **checks)
    in_pieces = checks.get("skip_check_array", False)
    if in_pieces or not (is_frame(X) or isinstance(X, np.ndarray | list | tuple)):
        raise ValueError(
            f"X is a {type(X).__name__} with columns of categories. These are taken from data "
            "frames and NumPy arrays in memory. Convert X, or encode the categories as numbers."
        )
    if isinstance(X, list | tuple):
        X = np.array(X, dtype=object)
    if not is_frame(X):
        X = check_array(X, dtype=None, ensure_all_finite=False)
    elif X.shape[0] == 0:
        raise ValueError("X has 0 sample(s), and a minimum of 1 is required.")
    validate_data(model, X, reset=reset, skip_check_array=True)
    if not reset:
        return model.factors_.encode(X)
    _require_only_factors(model)
    names = [str(name) for name in names_of_features(model)]
    model.factors_, design = learn_factors(X, names, model.categorical_features, model.factors)
    return design


def _require_only_factors(model: Any) -> None:
    """Complain of other ways to say which weights are shared."""
    for name in ("blocks", "constraint"):
        if getattr(model, name) is not None:
            raise ValueError(
                f"X has columns of categories, whose levels are grouped inside their column, and "
                f"{name} was given as well. Leave {name} None, or set categorical_features to None "
                "and encode the categories as numbers."
            )


# ---- Without groups


def as_pipeline(factors: FactorColumns, linear: Any, by_name: bool) -> Pipeline:
    """A fitted pipeline of one-hot encoders and a linear model of `centred` weights."""
    each = factors.factors
    steps: list[tuple[str, Any, list[Any]]] = []
    for factor in each:
        if factor.edges is not None:
            raise ValueError(
                f"The factor {factor.name!r} has bins, which no fitted encoder of scikit-learn "
                "stands for. Cut the column before the fit, for instance by pandas.cut."
            )
        encoder = OneHotEncoder(categories=[_categories(factor)], handle_unknown="ignore")
        steps.append((f"factor{factor.place}", encoder, [factor.place]))
    steps.append(("numeric", "passthrough", list(factors.numeric)))
    if by_name:
        steps = [(name, step, [factors.names[j] for j in mine]) for name, step, mine in steps]
    linear.n_features_in_ = factors.n_weights
    columns = ColumnTransformer(steps).fit(_example(factors, by_name))
    return Pipeline([("columns", columns), ("linear", linear)])


def centred(factors: FactorColumns, W: Floats) -> tuple[Floats, Floats]:
    """Weights whose mean over the levels of each factor is zero, and what the intercept gains.

    A row without level, which an encoder gives zeros, then has the mean effect of the factor. The
    levels are in the order of `_categories`.
    """
    moved, gained, first = W.copy(), np.zeros(W.shape[1]), 0
    for factor in factors.factors:
        last = first + len(factor.levels)
        mean = factor.shares @ W[first:last]
        moved[first:last] = W[first:last][_order(factor)] - mean
        gained, first = gained + mean, last
    return moved, gained


def _order(factor: FactorLevels) -> list[int]:
    """Levels in an order that an encoder takes: numbers ascending, missing values last."""
    levels = factor.levels
    if any(isinstance(level, str) for level in levels):
        return list(range(len(levels)))
    return sorted(range(len(levels)), key=lambda q: (levels[q] is None, levels[q]))


def _categories(factor: FactorLevels) -> Any:
    """Levels as an encoder takes them."""
    levels = [factor.levels[q] for q in _order(factor)]
    whole = None not in levels and not any(isinstance(level, str) for level in levels)
    found = [np.nan if level is None else level for level in levels]
    return np.array(found) if whole else np.array(found, dtype=object)


def _example(factors: FactorColumns, by_name: bool) -> Any:
    """Rows that have all levels, as a frame if the model was fitted to one."""
    height = max(len(factor.levels) for factor in factors.factors)
    columns = [np.zeros(height) for _ in factors.names]
    for factor in factors.factors:
        columns[factor.place] = np.resize(_categories(factor), height)
    if not by_name:
        numbers = all(column.dtype.kind in "biuf" for column in columns)
        return np.column_stack([c if numbers else c.astype(object) for c in columns])
    from pandas import DataFrame

    return DataFrame(dict(zip(factors.names, columns, strict=True)))
