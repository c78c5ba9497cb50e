"""Which kind of matrix users pass, told without loading the library it is from."""

from importlib.util import find_spec
from mmap import mmap
from typing import Any

import numpy as np
from sklearn import get_config

__all__ = ["is_elsewhere", "is_large_map", "is_partitioned", "is_sparse_tensor"]

LIBRARIES = ("array_api_strict", "cupy", "torch")


def is_partitioned(X: Any) -> bool:
    """Whether it is a collection of Dask."""
    return _library(X) in ("dask", "dask_expr")


def is_elsewhere(X: Any) -> bool:
    """Whether it is an array of a library other than NumPy that scikit-learn was told to accept."""
    return _library(X) in LIBRARIES and bool(get_config()["array_api_dispatch"])


def is_sparse_tensor(X: Any) -> bool:
    """Whether it is a tensor of torch with zeros left out."""
    return _library(X) == "torch" and str(X.layout) != "torch.strided"


def is_large_map(X: Any) -> bool:
    """Whether it is the whole of a mapped file that does not fit into memory, and Dask is here."""
    base: Any = getattr(X, "base", None)
    whole = isinstance(X, np.memmap) and isinstance(base, mmap) and X.flags.c_contiguous
    if not whole or X.ndim != 2 or X.dtype.kind != "f" or find_spec("dask") is None:
        return False
    from clustruct.design.partitioned.pieces import available_bytes

    return bool(X.nbytes > available_bytes())


def _library(X: Any) -> str:
    return type(X).__module__.partition(".")[0]
