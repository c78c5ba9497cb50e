"""Frames with categories as samples of models of features, and these models without groups."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
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
        taken = factors_wanted(X, model.categorical_features, model.factors)
    else:
        taken = model.factors_ is not None
    if not taken:
        return validate_data(model, X, reset=reset, **checks)
    in_pieces = checks.get("skip_check_array", False)
    if in_pieces or not (is_frame(X) or isinstance(X, np.ndarray | list | tuple)):
        raise ValueError(
            "The model has columns of categories, and X is "
            f"{'in pieces' if in_pieces else f'a {type(X).__name__}'}. Categories are taken from "
            "data frames and NumPy arrays in memory. Convert X, or encode categories as numbers."
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


def centred(factors: FactorColumns, W: Floats) -> tuple[Floats, Floats]:
    """Weights of one-hot columns, and what the intercept gains.

    The mean of each factor goes into the intercept, so that a row of zeros, which an encoder makes
    of an unknown level, has the mean effect of the factor.
    """
    parts, gained, (*levels, numeric) = [], np.zeros(W.shape[1]), factors.slices
    for factor, mine in zip(factors.factors, levels, strict=True):
        mean = factor.shares @ W[mine]
        parts.append(W[mine][_encoding(factor).places] - mean)
        gained = gained + mean
    return np.concatenate([*parts, W[numeric]]), gained


def as_pipeline(factors: FactorColumns, linear: Any, by_name: bool) -> Pipeline:
    """A fitted pipeline of one-hot encoders and a linear model of `centred` weights."""
    steps: list[tuple[str, Any, list[Any]]] = []
    for factor in factors.factors:
        if factor.edges is not None:
            raise ValueError(
                f"The factor {factor.name!r} has bins, and scikit-learn has no encoder for them. "
                "Cut the column before the fit, for instance by pandas.cut."
            )
        encoder = OneHotEncoder(categories=[_encoding(factor).categories], handle_unknown="ignore")
        steps.append((f"factor{factor.place}", encoder, [factor.place]))
    steps.append(("numeric", "passthrough", list(factors.numeric)))
    if by_name:
        steps = [(name, step, [factors.names[j] for j in mine]) for name, step, mine in steps]
    columns = ColumnTransformer(steps).fit(_example(factors, by_name))
    linear.n_features_in_ = int(linear.coef_.shape[-1])
    return Pipeline([("columns", columns), ("linear", linear)])


class Encoding(NamedTuple):
    """Levels of a factor as an encoder takes them: their categories and their places."""

    categories: NDArray[Any]
    places: list[int]


def _encoding(factor: FactorLevels) -> Encoding:
    """Numbers ascending, missing values last; objects may be missing in two ways."""
    places = [q for q, level in enumerate(factor.levels) if level is not None]
    levels = [factor.levels[q] for q in places]
    missing = [q for q, level in enumerate(factor.levels) if level is None]
    if all(isinstance(level, int | float) and not isinstance(level, bool) for level in levels):
        places.sort(key=factor.levels.__getitem__)
        found = [*sorted(levels), *(np.nan for _ in missing)]
        return Encoding(np.array(found, dtype=np.float64), [*places, *missing])
    if not missing:
        return Encoding(np.array(levels), places)
    return Encoding(np.array([*levels, None, np.nan], dtype=object), [*places, *missing, *missing])


def _example(factors: FactorColumns, by_name: bool) -> Any:
    """Rows that have all levels, as a frame if the model was fitted to one."""
    each = {factor.place: _encoding(factor).categories for factor in factors.factors}
    height = max(categories.size for categories in each.values())
    columns = [np.resize(each.get(j, np.zeros(1)), height) for j in range(len(factors.names))]
    if by_name:
        from pandas import DataFrame

        return DataFrame(dict(zip(factors.names, columns, strict=True)))
    numbers = all(column.dtype.kind in "biuf" for column in columns)
    return np.column_stack([c if numbers else c.astype(object) for c in columns])
