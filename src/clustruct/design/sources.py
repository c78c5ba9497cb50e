"""What users pass as ``X``, and for its rows: the only place that asks where it lives.

NumPy arrays, sparse matrices and all that scikit-learn converts to them are on the host. Arrays of
other libraries stay on their device. Dask collections, and mapped files that do not fit into
memory, are read in pieces.
"""

from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from mmap import mmap
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn import get_config
from sklearn.utils import check_array

from clustruct import arrays
from clustruct.arrays import to_host
from clustruct.design.factors import FactorDesign
from clustruct.design.local import Check, DenseDesign, Design, PickingDesign
from clustruct.design.sparse import SparseDesign

# scikit-learn's checks of a matrix: sparse ones stay sparse, single precision stays single.
MATRIX_CHECKS: dict[str, Any] = {
    "accept_sparse": ("csr", "csc"),
    "dtype": (np.float64, np.float32),
}
LIBRARIES = ("array_api_strict", "cupy", "torch")


class Beside(NamedTuple):
    """What users pass for the rows of ``X``: the arguments of `Design.attach`."""

    values: Any
    name: str
    check: Check


def as_design(X: Any, *, in_stretches: bool = False) -> DenseDesign | SparseDesign | FactorDesign:
    """The design of a validated matrix on the host: a NumPy array, CSR or CSC, or coded factors."""
    if isinstance(X, FactorDesign):
        return X
    return SparseDesign(X) if issparse(X) else DenseDesign(X, in_stretches=in_stretches)


def place(X: Any, validate: Callable[..., Any]) -> Design:
    """Validate what users pass as ``X`` and return its design.

    validate: scikit-learn's `validate_data` for an estimator: takes a matrix and its checks,
        returns the matrix. For a Dask collection it checks names and number of features only.
    """
    if not (is_partitioned(X) or _is_large_map(X)):
        return _place_whole(X, validate)
    from clustruct.design.partitioned.blocks import block_design
    from clustruct.design.partitioned.collections import in_chunks

    array = X if is_partitioned(X) else in_chunks(X)
    _validated(array, validate)
    design = block_design(array)
    design.lazy = array is X  # a mapped file is an array of the host to those who passed it
    return design


def apply(
    function: Callable[..., Any],
    X: Any,
    validate: Callable[..., Any],
    axes: tuple[int, ...] = (),
    dtype: Any = np.float64,
    beside: Sequence[Beside] = (),
) -> Any:
    """Apply a row-wise function to what users pass as ``X``, lazily for Dask.

    function: from a `PickingDesign`, and from what is beside its rows, to an array with as many
        rows.
    validate: as in `place`; pieces are validated when they are computed.
    axes: shape of what the function returns, without the rows.
    dtype: of what the function returns; None for that of ``X``.
    beside: what belongs to the rows, such as ids; several are passed in their order.
    """
    if not is_partitioned(X):
        design = _place_whole(X, validate)
        return function(design, *(design.attach(*mine) for mine in beside))
    from clustruct.design.partitioned.collections import map_pieces

    array = _validated(X, validate)
    dtype = array.dtype if dtype is None else dtype
    return map_pieces(partial(_on_piece, function), array, axes, dtype, beside)


def average(values: Any, beside: Beside | None = None) -> float:
    """Mean of a number for each row, such as `apply` returns, weighted by what is beside it."""
    if is_partitioned(values):
        from clustruct.design.partitioned.collections import average_pieces

        return average_pieces(values, beside)
    n = int(values.shape[0])
    shares = np.full(n, 1.0 / n)
    if beside is not None:
        weights = beside.check(beside.values, n)
        shares = weights / weights.sum()
    return float(arrays.beside(shares, values) @ values)


def load(x: Any) -> Any:
    """Bring arrays of other libraries and Dask collections to the host; all else stays as it is."""
    return to_host(x) if _library(x) in LIBRARIES else computed(x)


def computed(x: Any) -> Any:
    """Compute a Dask collection; anything else stays as it is."""
    return x.compute() if is_partitioned(x) else x


def is_partitioned(X: Any) -> bool:
    """Whether it is a Dask collection, told without loading Dask."""
    return _library(X) in ("dask", "dask_expr")


def _place_whole(X: Any, validate: Callable[..., Any]) -> PickingDesign:
    """The design of a matrix in one piece, on the host or on a device."""
    if isinstance(X, FactorDesign):  # rows of a frame that was validated before
        return X
    if not (_library(X) in LIBRARIES and get_config()["array_api_dispatch"]):
        return as_design(validate(X, **MATRIX_CHECKS))
    from clustruct.design.device import DeviceDesign, SparseDeviceDesign, as_rows

    if _library(X) == "torch" and str(X.layout) != "torch.strided":
        matrix = as_rows(X)
        validate(X, skip_check_array=True)
        check_array(matrix.values(), ensure_2d=False, ensure_min_samples=0, input_name="X")
        return SparseDeviceDesign(matrix if matrix.is_floating_point() else matrix.double())
    xp = arrays.namespace(X)
    return DeviceDesign(validate(X, dtype=(xp.float64, xp.float32)))


def _validated(X: Any, validate: Callable[..., Any]) -> Any:
    """A Dask array with the features that are wanted, in one piece each row."""
    if X.ndim != 2:
        raise ValueError(
            f"X has {X.ndim} dimension(s), but samples and features are two. Reshape it."
        )
    framed = hasattr(X, "to_dask_array")
    # Names and numbers of features are all there is to be told from an empty frame.
    validate(X._meta if framed else X, skip_check_array=True)
    array = X.to_dask_array() if framed else X
    return array.rechunk({1: -1}) if array.numblocks[1] > 1 else array


def _on_piece(function: Callable[..., Any], piece: Any, *rows: Any) -> Any:
    """The function of a piece that has been checked as a whole matrix would be."""
    return function(as_design(check_array(piece, **MATRIX_CHECKS)), *rows)


def _is_large_map(X: Any) -> bool:
    """Whether it is the whole of a mapped file that does not fit into memory, and Dask is here."""
    base: Any = getattr(X, "base", None)
    whole = isinstance(X, np.memmap) and isinstance(base, mmap) and X.flags.c_contiguous
    if not whole or X.ndim != 2 or X.dtype.kind != "f" or find_spec("dask") is None:
        return False
    from clustruct.design.partitioned.pieces import available_bytes

    return bool(X.nbytes > available_bytes())


def _library(X: Any) -> str:
    return type(X).__module__.partition(".")[0]
