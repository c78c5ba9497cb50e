"""The only place that touches ``X``.

A design answers a few questions about the data matrix, always with double precision arrays as wide
as the outputs. Objectives and solvers know nothing else of ``X``, so that a matrix on disk, on a
cluster or on a GPU is a new design, not a new solver.
"""

from typing import Any

from scipy.sparse import issparse

from clustruct.design.dense import CHUNK_BYTES, DenseDesign
from clustruct.design.grouped import GroupedDesign, assignment
from clustruct.design.protocols import Design, Operator, Rows
from clustruct.design.sparse import SparseDesign

__all__ = [
    "CHUNK_BYTES",
    "DenseDesign",
    "Design",
    "GroupedDesign",
    "Operator",
    "Rows",
    "SparseDesign",
    "as_design",
    "assignment",
]


def as_design(X: Any) -> Design:
    """The design for a validated matrix: a NumPy array, or CSR or CSC."""
    return SparseDesign(X) if issparse(X) else DenseDesign(X)
