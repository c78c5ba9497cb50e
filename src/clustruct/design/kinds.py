"""Which kind of matrix users pass, told without loading the library it is from."""

from typing import Any

__all__ = ["is_partitioned"]


def is_partitioned(X: Any) -> bool:
    """Whether it is a collection of Dask."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr")
