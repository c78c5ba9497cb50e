"""Matrices in memory, dense and sparse, as designs."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from clustruct._finite import finite_moments
from clustruct.arrays import to_host
from clustruct.design.protocols import Check, Floats, Labels, Rows, T
from clustruct.kernels.group_sums import sum_columns_by_column, sum_columns_by_row
from clustruct.kernels.kmeans1d import cluster_values

__all__ = [
    "CHUNK_BYTES",
    "DenseDesign",
    "SparseDesign",
    "WholeRows",
    "aligned",
    "as_design",
    "local_matrix",
    "locate",
    "one_by_one",
]

CHUNK_BYTES = 1 << 23
# Blocks that are read for several weightings one after the other stay in the nearer cache.
NEAR_BYTES = 1 << 19
# So many columns and fewer are better multiplied by a block in that cache after the other.
FEW_COLUMNS = 8
# Where fewer rows are left out than this, leaving them out costs more than it saves.
WORTH_TAKING = 0.7
# Stored entries of a sparse matrix that are treated at once.
CHUNK_ENTRIES = 1 << 20


def as_design(X: Any, *, in_stretches: bool = False) -> "DenseDesign | SparseDesign":
    """The design of a validated matrix on the host: a NumPy array, or CSR or CSC."""
    return SparseDesign(X) if sparse.issparse(X) else DenseDesign(X, in_stretches=in_stretches)


def local_matrix(X: Any) -> Any:
    """A piece of a matrix as a design wants it: single or double precision, CSR or CSC."""
    if sparse.issparse(X):
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


# ---- Rows


def one_by_one(jobs: Sequence[Callable[[], T]]) -> Iterator[T]:
    """Run jobs one after the other, each when its result is asked for."""
    return (job() for job in jobs)


class WholeRows:
    """Rows that are one array each: all of them are treated at once, where they are."""

    streamed = False
    shape: tuple[int, int]
    _X: Any

    @property
    def dtype(self) -> Any:
        """Precision of the entries."""
        return self._X.dtype

    @property
    def single(self) -> bool:
        """Whether products are of single precision."""
        return str(self._X.dtype).endswith("float32")

    def keep(self, rows: Rows) -> Rows:
        """They are there."""
        return rows

    def map(self, function: Callable[..., Any], *rows: Rows) -> Rows:
        """The function itself."""
        return function(*rows)

    def sweep(
        self,
        function: Callable[..., T],
        *rows: Rows,
        combine: Callable[[T, T], T] | None = None,
    ) -> T:
        """The function of this design."""
        return function(self, *rows)

    def side_by_side(self, jobs: Sequence[Callable[[], T]]) -> Iterator[T]:
        """One after the other."""
        return one_by_one(jobs)

    def attach(self, values: Any, name: str = "rows", check: Check | None = None) -> NDArray[Any]:
        """On the host, where it stays until it is placed."""
        return np.asarray(values) if check is None else check(values, self.shape[0])

    def gather(self, rows: Rows) -> NDArray[Any]:
        """They are one array."""
        return to_host(rows)

    def hand_out(self, codes: Rows) -> Any:
        """As they are."""
        return codes


class LocalRows(WholeRows, ABC):
    """Rows that are NumPy arrays: all of them are treated at once."""

    on_host = True
    _X: Any

    def place(self, rows: Any) -> Rows:
        """They are there."""
        return rows

    def fold(
        self,
        function: Callable[..., T],
        *rows: Rows,
        combine: Callable[[T, T], T] | None = None,
    ) -> T:
        """The function itself."""
        return function(*rows)

    def sweep_keeping(
        self,
        function: Callable[..., tuple[Rows, T]],
        *rows: Rows,
        combine: Callable[[T, T], T] | None = None,
    ) -> tuple[Rows, T]:
        """The function of this design."""
        return function(self, *rows)

    @abstractmethod
    def rows(self, index: Labels) -> Any:
        """A design of some rows, which are copied."""

    def only(self, mask: Rows, *rows: Rows) -> tuple[Any, tuple[Rows, ...]]:
        """A design of some rows, and what belongs to them."""
        index = np.flatnonzero(mask)
        return self.rows(index), tuple(mine[index] for mine in rows)

    def locate(self, shares: Rows, positions: Floats) -> Labels:
        """By their cumulative sum."""
        return locate(shares, positions)

    def fetch(self, index: Labels, *rows: Rows) -> tuple[Any, tuple[Any, ...]]:
        """A copy of some rows, and of what belongs to them."""
        return self._X[index], tuple(mine[index] for mine in rows)

    def matrix(self) -> Any:
        """It is on the host."""
        return self._X

    def by_rows(self) -> Any:
        """Rows of an array are cheap to take."""
        return self

    def weights(self, values: Floats) -> Floats:
        """As they are."""
        return values

    def over(self, rows: Floats) -> "DenseDesign":
        """An array is a design already."""
        return DenseDesign(rows)

    cluster = staticmethod(cluster_values)


class DenseDesign(LocalRows):
    """An array of single or double precision; it is never copied.

    With `in_stretches`, products with a few columns are made of some rows after the other. By one
    thread they take half the time then; several threads share large products only.
    """

    is_sparse = False

    def __init__(self, X: NDArray[np.floating], *, in_stretches: bool = False) -> None:
        self._X = X
        self.shape: tuple[int, int] = X.shape
        self.n_entries = X.size
        self._in_stretches = in_stretches and X.flags.c_contiguous

    def scores(self, W: Floats) -> Floats:
        """``X W``."""
        W = W.astype(self._X.dtype, copy=False)
        if not (self._in_stretches and 2 <= W.shape[1] <= FEW_COLUMNS):
            return (self._X @ W).astype(np.float64, copy=False)
        scores = np.empty((self.shape[0], W.shape[1]))
        for rows in self._stretches():
            scores[rows] = self._X[rows] @ W
        return scores

    def adjoint(self, R: Floats) -> Floats:
        """``X' R``."""
        R = R.astype(self._X.dtype, copy=False)
        if not (self._in_stretches and 2 <= R.shape[1] <= FEW_COLUMNS):
            return (self._X.T @ R).astype(np.float64, copy=False)
        transposed = np.zeros((R.shape[1], self.shape[1]))
        for rows in self._stretches():
            transposed += R[rows].T @ self._X[rows]
        return transposed.T

    def _stretches(self) -> Iterator[slice]:
        """Rows that the nearer cache holds."""
        n_rows, width = self.shape
        height = max(1, NEAR_BYTES // max(1, width * self._X.itemsize))
        return (slice(first, first + height) for first in range(0, n_rows, height))

    def moments(self, shares: Floats) -> tuple[Floats, Floats]:
        """Weighted mean and variance of each column, in two passes so that offsets do no harm."""
        means = np.zeros(self.shape[1])
        for rows, block in self._blocks():
            means += shares[rows] @ block
        variances = np.zeros(self.shape[1])
        for rows, block in self._blocks():
            block = block - means
            variances += shares[rows] @ np.square(block, out=block)
        return finite_moments(means, variances)

    def gram(self, shares: Floats, means: Floats) -> Floats:
        """Weighted Gram matrix of the columns less ``means``."""
        gram = np.zeros((self.shape[1], self.shape[1]))
        roots = np.sqrt(shares)
        for rows, block in self._blocks():
            block = (block - means) * roots[rows, None]
            gram += block.T @ block
        return gram

    def cross(self, R: Floats, means: Floats) -> Floats:
        """``X'R`` of the columns less ``means``, in double precision."""
        product = np.zeros((self.shape[1], R.shape[1]))
        for rows, block in self._blocks():
            product += (block - means).T @ R[rows]
        return product

    def weighted_grams(
        self, R: Floats, weigh: Callable[[slice], Floats], *, centred: bool
    ) -> tuple[Floats, Floats, Floats]:
        """Sums of weightings, means of the columns of ``[X R]``, and Gram matrices about them.

        Every block is read once for all ``Q`` weightings: `weigh` returns the weights of some rows,
        ``Q x m``, not negative. Without `centred`, the means are zeros.
        """
        n_weightings = weigh(slice(0)).shape[0]
        width = self.shape[1] + R.shape[1]
        totals, means = np.zeros(n_weightings), np.zeros((n_weightings, width))
        grams = np.zeros((n_weightings, width, width))
        for rows, block in self._blocks(NEAR_BYTES):
            weights = weigh(rows)
            totals += weights.sum(axis=1)
            if centred:
                means += np.hstack([weights @ block, weights @ R[rows]])
        if centred:
            means /= totals[:, None]
        for rows, block in self._blocks(NEAR_BYTES):
            joined = np.hstack([block, R[rows]])
            for q, mine in enumerate(weigh(rows)):
                grams[q] += _gram_about(means[q], joined, mine)
        return totals, means, grams

    def group_sums(self, labels: Labels, n_groups: int) -> Floats:
        """``X Z``."""
        return self.scores((labels[:, None] == np.arange(n_groups)).astype(self._X.dtype))

    def rows(self, index: Labels) -> "DenseDesign":
        """A copy of some rows."""
        # The faster routine copies all of what does not lie row by row.
        by_row = self._X.flags.c_contiguous
        return DenseDesign(self._X.take(index, axis=0) if by_row else self._X[index])

    def row_products(self, B: Floats) -> Floats:
        """Each row times each of its numbers."""
        return (B[:, :, None] * self._X[:, None, :]).reshape(self.shape[0], -1)

    def _blocks(self, n_bytes: int = CHUNK_BYTES) -> Iterator[tuple[slice, Floats]]:
        """Blocks of rows in double precision, small enough to stay in the cache."""
        height = max(1, n_bytes // (8 * max(1, self.shape[1])))
        for first in range(0, self.shape[0], height):
            rows = slice(first, first + height)
            yield rows, self._X[rows].astype(np.float64, copy=False)


def _gram_about(means: Floats, rows: Floats, weights: Floats) -> Floats:
    """``(A - 1 m')' diag(weights) (A - 1 m')`` of some rows."""
    index = np.flatnonzero(weights)
    if index.size < WORTH_TAKING * weights.size:
        rows, weights = rows.take(index, axis=0), weights[index]
    away = rows - means
    away *= np.sqrt(weights)[:, None]
    gram: Floats = away.T @ away
    return gram


def locate(shares: Floats, positions: Floats) -> Labels:
    """Numbers of the rows at which the cumulative shares, of all together, pass the positions."""
    totals = shares.cumsum()
    totals /= totals[-1]
    return totals.searchsorted(positions, side="right")


# ---- Sparse matrices


class SparseDesign(LocalRows):
    """A CSR or CSC matrix; it is never made dense, centred or converted."""

    is_sparse = True

    def __init__(self, X: sparse.csr_matrix | sparse.csc_matrix) -> None:
        self._X = X
        self.shape: tuple[int, int] = X.shape
        self.n_entries = int(X.nnz)

    def scores(self, W: Floats) -> Floats:
        """``X W``."""
        return _sparse_product(self._X, W)

    def adjoint(self, R: Floats) -> Floats:
        """``X' R``."""
        return _sparse_product(self._X.T, R)

    def moments(self, shares: Floats) -> tuple[Floats, Floats]:
        """Weighted mean and variance of each column, a block of the matrix at a time."""
        means, variances, stored = (np.zeros(self.shape[1]) for _ in range(3))
        counts = np.zeros(self.shape[1], dtype=np.int32)
        for block, rows, columns in self._blocks():
            means[columns] += block.T @ shares[rows]
        # Of the entries stored and of the zeros apart, so that offsets do no harm.
        for block, rows, columns in self._blocks():
            away = block.data - _spread(block, means[columns])
            variances[columns] += _like(block, np.square(away, out=away)).T @ shares[rows]
            away.fill(1.0)
            stored[columns] += _like(block, away).T @ shares[rows]
            counts[columns] += _column_counts(block).astype(np.int32, copy=False)
        zeros = np.where(counts < self.shape[0], np.maximum(shares.sum() - stored, 0.0), 0.0)
        return finite_moments(means, variances + zeros * means**2)

    def _blocks(self) -> Iterator[tuple[Any, slice, slice]]:
        """Blocks of rows or columns in double precision with one entry a place, and where."""
        X = self._X
        by_row = X.format == "csr"
        lines = X.shape[0] if by_row else X.shape[1]
        height = max(1, CHUNK_ENTRIES * lines // max(1, X.nnz))
        for first in range(0, lines, height):
            part, whole = slice(first, first + height), slice(None)
            rows, columns = (part, whole) if by_row else (whole, part)
            block = X if height >= lines else X[rows, columns]
            if not block.has_canonical_format:
                block = block.copy()
                block.sum_duplicates()
            yield block.astype(np.float64, copy=False), rows, columns

    def gram(self, shares: Floats, means: Floats) -> Floats:
        """Weighted Gram matrix of the columns less ``means``."""
        X = self._summed().astype(np.float64, copy=False)
        full = _like(X, np.ones(X.nnz)).T @ np.ones(X.shape[0]) == X.shape[0]
        if full.any():  # a column without zeros stays as it is when centred, and offsets are gone
            shift = np.where(full, means, 0.0)
            X, means = _like(X, X.data - _spread(X, shift)), means - shift
        mine = X.T @ shares
        weighted = sparse.diags(np.sqrt(shares)) @ X
        gram: Floats = (weighted.T @ weighted).toarray()
        total = shares.sum()
        return gram - np.outer(mine, means) - np.outer(means, mine) + total * np.outer(means, means)

    def cross(self, R: Floats, means: Floats) -> Floats:
        """``X'R`` of the columns less ``means``, in double precision."""
        product: Floats = self._X.T.astype(np.float64, copy=False) @ R
        return product - np.outer(means, R.sum(axis=0))

    def group_sums(self, labels: Labels, n_groups: int) -> Floats:
        """``X Z``, adding each entry to its row and group."""
        X = self._X
        add = sum_columns_by_row if X.format == "csr" else sum_columns_by_column
        sums = np.zeros((X.shape[0], n_groups))
        add(X.data, X.indices, X.indptr, labels.astype(np.intp, copy=False), sums)
        return sums

    def rows(self, index: Labels) -> "SparseDesign":
        """A copy of some rows."""
        return SparseDesign(self._X[index])

    def by_rows(self) -> "SparseDesign":
        """CSR slices rows cheaply."""
        return SparseDesign(self._X.tocsr())

    def row_products(self, B: Floats) -> Floats:
        """Each row times each of its numbers; the only thing here that is made dense."""
        products: Floats = B[:, :, None] * self._X.toarray()[:, None, :]
        return products.reshape(self.shape[0], -1)

    def _summed(self) -> sparse.csr_matrix | sparse.csc_matrix:
        """The matrix with one entry a place: what squares and counts of entries rely on."""
        if self._X.has_canonical_format:
            return self._X
        # To turn rows into columns sorts them in linear time; sorting in place takes longer.
        X = self._X.tocsc() if self._X.format == "csr" else self._X.tocsr()
        X.sum_duplicates()
        return X


def _spread(X: sparse.csr_matrix | sparse.csc_matrix, values: Floats) -> Floats:
    """The value of its column for each entry, without indices of another width on the way."""
    if X.format == "csc":
        return np.repeat(values, np.diff(X.indptr))
    spread = np.empty(X.nnz)
    height = CHUNK_BYTES // 8
    for first in range(0, X.nnz, height):
        spread[first : first + height] = values[X.indices[first : first + height]]
    return spread


def _column_counts(X: sparse.csr_matrix | sparse.csc_matrix) -> NDArray[np.integer]:
    """How many entries each column has."""
    if X.format == "csc":
        return np.diff(X.indptr)
    return np.bincount(X.indices, minlength=X.shape[1])


def _like(
    X: sparse.csr_matrix | sparse.csc_matrix, data: Floats
) -> sparse.csr_matrix | sparse.csc_matrix:
    """A matrix with other entries at the same places, which it shares."""
    return type(X)((data, X.indices, X.indptr), shape=X.shape)


def _sparse_product(X: sparse.spmatrix, W: Floats) -> Floats:
    """``X W`` in the precision of ``X``; a single column takes SciPy's faster way."""
    W = W.astype(X.dtype, copy=False)
    product = (X @ W[:, 0])[:, None] if W.shape[1] == 1 else X @ W
    return np.asarray(product, dtype=np.float64)
