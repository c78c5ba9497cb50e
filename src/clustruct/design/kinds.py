"""Which kind of matrix users pass, told without loading the library it is from."""

from typing import Any

from sklearn import get_config

__all__ = ["is_elsewhere", "is_partitioned"]

LIBRARIES = ("array_api_strict", "cupy", "torch")


def is_partitioned(X: Any) -> bool:
    """Whether it is a collection of Dask."""
    return _library(X) in ("dask", "dask_expr")


def is_elsewhere(X: Any) -> bool:
    """Whether it is an array of a library other than NumPy that scikit-learn was told to accept."""
    return _library(X) in LIBRARIES and bool(get_config()["array_api_dispatch"])


def _library(X: Any) -> str:
    return type(X).__module__.partition(".")[0]
