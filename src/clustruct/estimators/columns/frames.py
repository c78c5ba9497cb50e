"""Columns of data frames and arrays: their types, their distinct values and their numbers."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clustruct._typing import Floats, Indices

# What pandas calls objects that are all numbers, and that are all true or false.
NUMBERS = {"integer", "floating", "mixed-integer-float", "decimal", "complex", "empty"}
BOOLEANS = {"boolean"}
MISSING = -1


class Column(NamedTuple):
    """A column: its name, a pandas series or an array, and its type.

    type: "category", "ordered category", "text" (objects of other kinds among it), "boolean",
        "number" or "other".
    """

    name: str
    values: Any
    type: str


def is_frame(X: Any) -> bool:
    """Whether it is a data frame in memory: of pandas, or one that pandas can be made of."""
    return hasattr(X, "iloc") or (hasattr(X, "to_pandas") and hasattr(X, "head"))


def types_of(X: Any) -> list[str]:
    """Types of the columns; frames of other libraries than pandas are not converted for it."""
    if hasattr(X, "iloc"):
        return [_type_of(dtype, partial(_series, X, j)) for j, dtype in enumerate(X.dtypes)]
    return [_type_of(dtype) for dtype in X.head(0).to_pandas().dtypes]


def columns_of(X: Any, names: Sequence[str]) -> list[Column]:
    """The columns of a frame, or of an array, under given names."""
    if is_frame(X):
        frame = X if hasattr(X, "iloc") else X.to_pandas()
        each = [_series(frame, j) for j in range(frame.shape[1])]
        types = types_of(frame)
    else:
        each = list(np.asarray(X).T)
        types = [_type_of_array(values) for values in each]
    return [Column(*parts) for parts in zip(names, each, types, strict=True)]


def _series(frame: Any, place: int) -> Any:
    """A column of a frame of pandas, also where names are repeated."""
    return frame.iloc[:, place]


def _type_of(dtype: Any, values: Callable[[], Any] | None = None) -> str:
    """The type of a column of pandas; objects are looked at where there are values."""
    if hasattr(dtype, "categories"):
        return "ordered category" if dtype.ordered else "category"
    kind = getattr(dtype, "kind", "O")
    if kind == "O":
        if dtype.type is str or values is None:
            return "text"
        from pandas.api.types import infer_dtype

        found = infer_dtype(values(), skipna=True)
        return "number" if found in NUMBERS else "boolean" if found in BOOLEANS else "text"
    return "number" if kind in "iuf" else "boolean" if kind == "b" else "other"


def _type_of_array(values: NDArray[Any]) -> str:
    """The type of a column of an array; objects are numbers where they can be converted."""
    if values.dtype.kind in "iufb":
        return "boolean" if values.dtype.kind == "b" else "number"
    if values.dtype.kind == "O":
        try:
            values.astype(np.float64)
        except (TypeError, ValueError):
            return "text"
        return "text" if any(isinstance(value, str) for value in values.tolist()) else "number"
    return "text" if values.dtype.kind in "US" else "other"


def distinct_values(column: Column) -> tuple[Indices, list[Any]]:
    """The code of each row, -1 where the value is missing, and the value of each code.

    Values are in the order of a category's categories; otherwise in no order.
    """
    values = column.values
    try:
        if column.type.endswith("category"):
            return values.cat.codes.to_numpy(), values.cat.categories.tolist()
        if hasattr(values, "factorize"):
            codes, found = values.factorize()
            return codes, found.tolist()
        return _factorised(values)
    except TypeError as error:
        raise ValueError(
            f"Column {column.name!r} of X holds values that cannot be levels: {error}. Convert "
            "them to text."
        ) from error


def _factorised(values: NDArray[Any]) -> tuple[Indices, list[Any]]:
    """The same for a column of an array."""
    known: dict[Any, int] = {}
    codes = [
        MISSING if value is None or value != value else known.setdefault(value, len(known))
        for value in values.tolist()
    ]
    return np.array(codes, dtype=np.intp), list(known)


def numbers_of(column: Column, *, allow_missing: bool = False) -> Floats:
    """The numbers of a column; missing and infinite ones are errors that name it."""
    if column.type not in ("number", "boolean"):
        raise ValueError(
            f"Column {column.name!r} of X is no column of numbers: its type is {column.type}. Name "
            "it in categorical_features to take its values as levels, or convert it to numbers."
        )
    if hasattr(column.values, "to_numpy"):
        numbers = column.values.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        numbers = column.values.astype(np.float64)
    bad = np.isinf(numbers) if allow_missing else ~np.isfinite(numbers)
    if bad.any():
        raise ValueError(
            f"Column {column.name!r} of X holds NaN or infinity, {np.count_nonzero(bad)} times, "
            f"first in row {int(bad.argmax())}. Fill these values, leave the rows out, or name the "
            "column in factors: missing values are then a level of their own."
        )
    return numbers
