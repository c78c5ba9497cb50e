"""The only place that touches ``X``.

A design answers a few questions about the data matrix, always with double precision arrays as wide
as the outputs. Objectives and solvers know nothing else of ``X``, so that a matrix on disk, on a
cluster or on a GPU is a new design, not a new solver.
"""

from typing import Any

from clustruct.design.grouped import GroupedDesign, assignment
from clustruct.design.kinds import is_elsewhere, is_sparse_tensor
from clustruct.design.local.dense import CHUNK_BYTES, DenseDesign
from clustruct.design.local.matrices import local_design
from clustruct.design.local.sparse import SparseDesign
from clustruct.design.protocols import (
    Design,
    LocalDesign,
    Operator,
    PickingDesign,
    Rows,
    StreamedDesign,
)
from clustruct.design.whole import one_by_one

__all__ = [
    "CHUNK_BYTES",
    "DenseDesign",
    "Design",
    "GroupedDesign",
    "LocalDesign",
    "Operator",
    "PickingDesign",
    "Rows",
    "SparseDesign",
    "StreamedDesign",
    "any_design",
    "as_design",
    "assignment",
    "one_by_one",
]


def as_design(X: Any) -> LocalDesign:
    """The design for a validated matrix of the host: a NumPy array, or CSR or CSC."""
    return local_design(X)


def any_design(X: Any) -> Design:
    """The same, or that of an array of another library."""
    if is_sparse_tensor(X):
        from clustruct.design.device.sparse import SparseDeviceDesign

        return SparseDeviceDesign(X)
    if is_elsewhere(X):
        from clustruct.design.device.dense import DeviceDesign

        return DeviceDesign(X)
    return local_design(X)
