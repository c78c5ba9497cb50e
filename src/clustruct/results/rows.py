"""Groups of every row of a matrix, and matrices of few values."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from clustruct._docs import documented_fields
from clustruct.arrays import beside, to_host


@documented_fields
@dataclass(frozen=True, eq=False)
class ClusteringRows:
    """Groups of the numbers of every row of a matrix, as found by `kmeans_1d`.

    With `group_size` the arrays but for the labels have one axis more: one clustering for each
    group of columns of each row.

    See Also
    --------
    kmeans_1d : The function that returns it.

    Examples
    --------
    >>> import clustruct as cs
    >>> rows = cs.kmeans_1d([[1.0, 9.0, 2.0, 8.0], [5.0, 5.0, 5.0, 5.0]], 2)
    >>> rows.labels.tolist()
    [[0, 1, 0, 1], [0, 0, 0, 0]]
    >>> rows.centers.tolist()
    [[1.5, 8.5], [5.0, nan]]
    >>> rows.n_found.tolist()
    [2, 1]
    """

    labels: Annotated[Any, "Group of each entry of the matrix, in the order of the row's centres."]
    centers: Annotated[
        Any,
        "Weighted means of the groups of each row, ascending, in the precision of the matrix; NaN "
        "beyond the last group of a row with fewer distinct values than groups.",
    ]
    sizes: Annotated[Any, "How many numbers each group holds; 0 beyond the last group."]
    n_found: Annotated[Any, "Number of groups of each row."]
    inertia: Annotated[Any, "Weighted sum of squared distances to the centres, for each row."]


@documented_fields
@dataclass(frozen=True, eq=False)
class QuantizedMatrix:
    """A matrix whose entries are codes into the codebook of their row, as made by `quantize`.

    See Also
    --------
    quantize : The function that returns it.

    Examples
    --------
    >>> import clustruct as cs
    >>> small = cs.quantize([[1.0, 9.0, 2.0, 8.0]], bits=1)
    >>> small.codes.tolist()
    [[0, 1, 0, 1]]
    >>> small.dequantize().tolist()
    [[1.5, 8.5, 1.5, 8.5]]
    >>> small.error
    1.0
    """

    codes: Annotated[Any, "Code of each entry."]
    codebooks: Annotated[
        Any,
        "Values of each row (of each group of columns of each row, with `group_size`); NaN where a "
        "row needs fewer.",
    ]
    errors: Annotated[
        Any, "Weighted sum of squared differences to the matrix, for each codebook; the least one."
    ]
    bits: Annotated[int, "Bits of a code."]
    group_size: Annotated[int | None, "Columns that share a codebook; None for all of a row."]

    @property
    def error(self) -> float:
        """Weighted sum of squared differences to the matrix: that of all rows."""
        return float(np.sum(to_host(self.errors)))

    @property
    def n_bytes(self) -> int:
        """Bytes that the codes, packed without gaps, and the codebooks take."""
        n_codes = int(np.prod(self.codes.shape))
        n_values = int(np.prod(self.codebooks.shape))
        return -(-n_codes * self.bits // 8) + n_values * int(self.codebooks.dtype.itemsize)

    def dequantize(self) -> Any:
        """The matrix with each code replaced by its value.

        Returns
        -------
        array of shape (n_rows, n_columns)
            In the precision of the codebooks, where they are.
        """
        n_codes = int(self.codebooks.shape[-1])
        n_books = int(np.prod(self.codebooks.shape[:-1]))
        books = self.codebooks.reshape(n_books * n_codes)
        first = beside(np.arange(n_books)[:, None] * n_codes, books)
        places = first + self.codes.reshape(n_books, -1 if n_books else 0)
        return books[places].reshape(self.codes.shape)
