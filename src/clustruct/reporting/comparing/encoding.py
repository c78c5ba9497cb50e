"""Samples as rivals take them: frames with factors as a sparse matrix, and as codes for trees."""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from clustruct._typing import Floats
from clustruct.inspection import factors_of, prepared

MOST_CODES = 255  # categories that gradient boosting takes


class Codes(NamedTuple):
    """Rows for trees: a column for each factor and numeric column, NaN for levels never seen."""

    train: Floats
    test: Floats
    categorical: list[int]  # columns without an order, if their levels are not too many


def as_matrix(model: Any, X: Any, rows: Any = None) -> Any:
    """Samples, or some rows, as the estimator sees them; frames with factors as one-hot columns.

    Nested lists become an array. Unknown levels have zero in all columns of their factor.
    """
    ready, factors = prepared(model, X, rows), factors_of(model)
    if factors is None:
        return np.asarray(ready) if isinstance(ready, list) else ready
    design = factors.encode(ready)
    n = design.shape[0]
    columns = np.empty((n, len(design.codes)), dtype=np.int32)
    known = np.empty(columns.shape, dtype=bool)
    for f, (codes, n_levels) in enumerate(zip(design.codes, design.n_levels, strict=True)):
        known[:, f] = codes < n_levels
        columns[:, f] = design.offsets[f] + np.where(known[:, f], codes, 0)
    starts = np.arange(n + 1, dtype=np.int32) * columns.shape[1]
    levels = sparse.csr_array(
        (known.ravel().astype(np.float64), columns.ravel(), starts), (n, int(design.offsets[-1]))
    )
    levels.eliminate_zeros()
    return sparse.hstack([levels, sparse.csr_array(design.numeric)], format="csr")


def on_one_scale(model: Any, train: Any, test: Any) -> tuple[Any, Any]:
    """Matrices of frames with factors, their numeric columns with a standard deviation of 1.

    Beside columns of 0 and 1 a ridge would otherwise weigh them by their unit.
    """
    factors = factors_of(model)
    if factors is None or not factors.numeric:
        return train, test
    numbers = slice(factors.n_weights - len(factors.numeric), None)
    spread = np.std(train[:, numbers].toarray(), axis=0)
    scale = np.ones(factors.n_weights)
    scale[numbers] = 1.0 / np.where(spread > 0.0, spread, 1.0)
    diagonal = sparse.dia_array((scale[None], [0]), (scale.size, scale.size)).tocsr()
    return train @ diagonal, test @ diagonal


def as_codes(model: Any, train: Any, test: Any) -> Codes | None:
    """Samples as codes of levels and numbers; None for models of a matrix of numbers."""
    factors = factors_of(model)
    if factors is None:
        return None
    categorical = [
        f
        for f, factor in enumerate(factors.factors)
        if factor.kind == "nominal" and len(factor.levels) <= MOST_CODES
    ]
    return Codes(_coded(model, factors, train), _coded(model, factors, test), categorical)


def _coded(model: Any, factors: Any, X: Any) -> Floats:
    design = factors.encode(prepared(model, X))
    columns = []
    for codes, factor in zip(design.codes, factors.factors, strict=True):
        unseen = codes >= len(factor.levels)
        if factor.kind != "nominal":  # a missing level has no place in the order
            unseen |= np.array([level is None for level in (*factor.levels, None)])[codes]
        columns.append(np.where(unseen, np.nan, codes))
    return np.column_stack([*columns, design.numeric])
