"""The only place that touches ``X``.

A design answers a few questions about the data matrix, always with double precision arrays as wide
as the outputs. Objectives and solvers know nothing else of ``X``, so that a matrix on disk, on a
cluster or on a GPU is a new design, not a new solver. The rest of the package imports from here.
"""

from clustruct.design.factors import FactorDesign, as_codes
from clustruct.design.grouped import GroupedDesign
from clustruct.design.local import (
    CHUNK_BYTES,
    DenseDesign,
    Design,
    LocalDesign,
    Operator,
    PickingDesign,
    Rows,
    one_by_one,
)
from clustruct.design.sources import Beside, apply, as_design, average, computed, load, place
from clustruct.design.sparse import SparseDesign
from clustruct.grouping.rows import assignment

__all__ = [
    "CHUNK_BYTES",
    "Beside",
    "DenseDesign",
    "Design",
    "FactorDesign",
    "GroupedDesign",
    "LocalDesign",
    "Operator",
    "PickingDesign",
    "Rows",
    "SparseDesign",
    "apply",
    "as_codes",
    "as_design",
    "assignment",
    "average",
    "computed",
    "load",
    "one_by_one",
    "place",
]
