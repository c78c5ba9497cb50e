"""Sparse matrices in memory as designs."""

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from clustruct._finite import finite_moments
from clustruct._typing import Floats, Indices, Labels
from clustruct.design.local import CHUNK_BYTES, LocalDesign
from clustruct.kernels.fits.group_sums import sum_columns_by_column, sum_columns_by_row

Matrix: TypeAlias = sparse.csr_matrix | sparse.csc_matrix

# Stored entries of a sparse matrix that are treated at once.
CHUNK_ENTRIES = 1 << 20


class SparseDesign(LocalDesign):
    """A CSR or CSC matrix; it is never made dense, centred or converted."""

    is_sparse = True

    def __init__(self, X: Matrix) -> None:
        super().__init__(X, int(X.nnz))

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
        for block, rows, columns in self._lines():
            means[columns] += block.T @ shares[rows]
        # Of the entries stored and of the zeros apart, so that offsets do no harm.
        for block, rows, columns in self._lines():
            away = block.data - _spread(block, means[columns])
            variances[columns] += _like(block, np.square(away, out=away)).T @ shares[rows]
            away.fill(1.0)
            stored[columns] += _like(block, away).T @ shares[rows]
            counts[columns] += _column_counts(block).astype(np.int32, copy=False)
        zeros = np.where(counts < self.shape[0], np.maximum(shares.sum() - stored, 0.0), 0.0)
        return finite_moments(means, variances + zeros * means**2)

    def ranges(self, columns: Indices) -> tuple[Floats, Floats]:
        """Least and largest value of some columns, zeros among them."""
        mine = self._summed()[:, columns]
        return mine.min(axis=0).toarray()[0], mine.max(axis=0).toarray()[0]

    def _lines(self) -> Iterator[tuple[Any, slice, slice]]:
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

    def _summed(self) -> Matrix:
        """The matrix with one entry a place: what squares and counts of entries rely on."""
        if self._X.has_canonical_format:
            return self._X
        # To turn rows into columns sorts them in linear time; sorting in place takes longer.
        X = self._X.tocsc() if self._X.format == "csr" else self._X.tocsr()
        X.sum_duplicates()
        return X


def _spread(X: Matrix, values: Floats) -> Floats:
    """The value of its column for each entry, without indices of another width on the way."""
    if X.format == "csc":
        return np.repeat(values, np.diff(X.indptr))
    spread = np.empty(X.nnz)
    height = CHUNK_BYTES // 8
    for first in range(0, X.nnz, height):
        spread[first : first + height] = values[X.indices[first : first + height]]
    return spread


def _column_counts(X: Matrix) -> NDArray[np.integer]:
    """How many entries each column has."""
    if X.format == "csc":
        return np.diff(X.indptr)
    return np.bincount(X.indices, minlength=X.shape[1])


def _like(X: Matrix, data: Floats) -> Matrix:
    """A matrix with other entries at the same places, which it shares."""
    return type(X)((data, X.indices, X.indptr), shape=X.shape)


def _sparse_product(X: sparse.spmatrix, W: Floats) -> Floats:
    """``X W`` in the precision of ``X``; a single column takes SciPy's faster way."""
    W = W.astype(X.dtype, copy=False)
    product = (X @ W[:, 0])[:, None] if W.shape[1] == 1 else X @ W
    return np.asarray(product, dtype=np.float64)
