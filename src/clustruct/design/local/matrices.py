"""The design of a matrix that is an array of the host."""

from typing import Any

import numpy as np
from scipy.sparse import issparse

from clustruct.design.local.dense import DenseDesign
from clustruct.design.local.sparse import SparseDesign

__all__ = ["aligned", "local_design", "local_matrix"]


def local_design(X: Any, *, in_stretches: bool = False) -> DenseDesign | SparseDesign:
    """The design for a validated matrix: a NumPy array, or CSR or CSC."""
    return SparseDesign(X) if issparse(X) else DenseDesign(X, in_stretches=in_stretches)


def local_matrix(X: Any) -> Any:
    """A piece of a matrix as a design wants it: single or double precision, CSR or CSC."""
    if issparse(X):
        X = X if X.format in ("csr", "csc") else X.tocsr()
        X = X if all(part.flags.aligned for part in (X.data, X.indices, X.indptr)) else X.copy()
    else:
        X = aligned(np.asarray(X))
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def aligned(x: Any) -> Any:
    """The same array where numbers may lie.

    What comes over a network may begin at any byte. NumPy then multiplies by another routine, whose
    last bits differ.
    """
    return np.require(x, requirements="A") if isinstance(x, np.ndarray) else x
