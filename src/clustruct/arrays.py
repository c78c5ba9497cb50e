"""Functions of arrays of any library, on the host or on a device.

For NumPy arrays they call NumPy and SciPy; for others the array API standard, by array-api-compat.
"""

from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = Any
NUMPY = (np.ndarray, np.generic)


def namespace(x: Array) -> Any:
    """The module with the functions for an array: NumPy, or an array API namespace."""
    return np if isinstance(x, NUMPY) else _compat().array_namespace(x)


def device_of(x: Array) -> Any:
    """The device of an array."""
    return _compat().device(x)


def to_host(x: Array) -> NDArray[Any]:
    """A NumPy array of the same numbers."""
    if isinstance(x, np.ndarray):
        return x
    module = type(x).__module__.partition(".")[0]
    if module == "torch":
        return np.asarray(x.detach().cpu())
    if module == "cupy":
        return np.asarray(x.get())
    if module == "array_api_strict":
        return np.asarray(x._array)
    return np.asarray(x)


def beside(values: NDArray[Any], x: Array) -> Array:
    """An array of the host as one on the same device as another."""
    if isinstance(x, np.ndarray):
        return values
    # Torch warns of memory that may not be written to.
    values = np.require(values, requirements=["C", "W"])
    return namespace(x).asarray(values, device=device_of(x))


def cast(x: Array, dtype: Any) -> Array:
    """The same numbers in another precision; no copy if they have it already."""
    if isinstance(x, np.ndarray):
        return x.astype(dtype, copy=False)
    return namespace(x).astype(x, dtype, copy=False)


def like(values: NDArray[Any], x: Array) -> Array:
    """An array of the host on the same device as another, in its precision."""
    return cast(beside(values, x), x.dtype)


def row_dots(a: Array, b: Array) -> Array:
    """Inner product of each row of two matrices."""
    if isinstance(a, np.ndarray):
        return np.einsum("ik,ik->i", a, b)
    return namespace(a).sum(a * b, axis=1)


def column_dots(a: Array, b: Array) -> Array:
    """Inner product of each column of two matrices."""
    if isinstance(a, np.ndarray):
        return np.einsum("ik,ik->k", a, b)
    return namespace(a).sum(a * b, axis=0)


def concatenated(parts: Sequence[Array], axis: int = 0) -> Array:
    """Arrays joined along an axis."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts, axis=axis)
    return namespace(parts[0]).concat(list(parts), axis=axis)


def take(x: Array, index: NDArray[np.intp]) -> Array:
    """Some entries of a vector, or rows of a matrix."""
    return x[index] if isinstance(x, np.ndarray) else namespace(x).take(x, beside(index, x), axis=0)


def segment_sums(x: Array, bounds: NDArray[np.intp]) -> NDArray[Any]:
    """Sums of ``x[bounds[t] : bounds[t + 1]]``, none of which is empty, on the host."""
    if isinstance(x, np.ndarray):
        return np.add.reduceat(x, bounds[:-1])
    xp, ends = namespace(x), bounds.tolist()
    return to_host(xp.stack([xp.sum(x[a:b]) for a, b in pairwise(ends)]))


def indicator(codes: Array, n_codes: int) -> Array:
    """Matrix with True in the column of each row's code."""
    return codes[:, None] == beside(np.arange(n_codes), codes)


def look_up(values: NDArray[Any], codes: Array) -> Array:
    """The value of each code."""
    return namespace(codes).take(beside(values, codes), codes)


def count_true(mask: Array) -> Array:
    """Number of entries that are true."""
    xp = namespace(mask)
    return np.count_nonzero(mask) if xp is np else xp.sum(xp.astype(mask, xp.int64))


def totals_by_code(codes: Array, weights: Array, n_codes: int) -> Array:
    """Sum of the weights of the rows with each code."""
    if isinstance(codes, np.ndarray):
        return np.bincount(codes, weights, minlength=n_codes)
    xp = namespace(weights)
    sums = [xp.sum(xp.where(codes == code, weights, 0.0)) for code in range(n_codes)]
    return xp.stack(sums)


def blend(weights: Array, values: Array) -> Array:
    """Weighted sum over the second axis, ``sum_q w_iq v_iqk``."""
    if isinstance(values, np.ndarray):
        return np.einsum("iq,iqk->ik", weights, values)
    return namespace(values).sum(weights[:, :, None] * values, axis=1)


def softplus(x: Array) -> Array:
    """``log(1 + exp(x))`` without overflow."""
    if isinstance(x, np.ndarray):  # NumPy's own takes twice the time
        return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))
    xp = namespace(x)
    return xp.logaddexp(xp.zeros_like(x), x)


def expit(x: Array) -> Array:
    """``1 / (1 + exp(-x))``, to full relative precision."""
    if isinstance(x, np.ndarray):
        return special.expit(x)
    return namespace(x).exp(-softplus(-x))


def xlogy(x: Array) -> Array:
    """``x log x``, which is zero at zero."""
    if isinstance(x, np.ndarray):
        return special.xlogy(x, x)
    xp = namespace(x)
    return x * xp.log(xp.where(x > 0.0, x, xp.ones_like(x)))


def logsumexp(x: Array) -> Array:
    """``log sum_k exp(x_k)`` of each row."""
    if isinstance(x, np.ndarray):
        columns, largest = _by_columns(x)
        return np.log(np.exp(columns, out=columns).sum(axis=0)) + largest
    xp = namespace(x)
    largest = xp.max(x, axis=1, keepdims=True)
    return xp.log(xp.sum(xp.exp(x - largest), axis=1)) + largest[:, 0]


def softmax(x: Array) -> Array:
    """``exp(x_k)``, scaled so that each row sums to one."""
    if isinstance(x, np.ndarray):
        powers, _ = _by_columns(x)
        powers = np.exp(powers, out=powers)
        return np.ascontiguousarray((powers / powers.sum(axis=0)).T)
    xp = namespace(x)
    powers = xp.exp(x - xp.max(x, axis=1, keepdims=True))
    return powers / xp.sum(powers, axis=1, keepdims=True)


def _by_columns(x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Rows less their largest entry, as columns, and that entry: short sums are slow in NumPy."""
    columns = np.array(x.T, order="C")
    largest = columns.max(axis=0)
    columns -= largest
    return columns, largest


def log_softmax(x: Array) -> Array:
    """Logarithms of `softmax`."""
    return x - logsumexp(x)[:, None]


def _compat() -> Any:
    """array-api-compat: scikit-learn's copy, or the package itself beside older releases."""
    try:
        return import_module("sklearn.externals.array_api_compat")
    except ImportError:
        return import_module("array_api_compat")
