"""Sparse tensors of torch, on a GPU or not, as a design."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from clustruct._finite import finite_moments
from clustruct.arrays import beside, cast, namespace, to_host
from clustruct.design.device.dense import BLOCK_BYTES, DeviceDesign, size_of, telling_of_memory
from clustruct.design.protocols import Floats, Labels, Rows

__all__ = ["SparseDeviceDesign", "as_rows"]


class SparseDeviceDesign(DeviceDesign):
    """A sparse tensor; it is never made dense as a whole, and never leaves its device.

    Products with the transposed matrix want its rows together, too: it is kept by columns as well,
    which takes the memory of ``X`` once more.

    Parameters
    ----------
    X : sparse tensor of shape (n, d)
        Single or double precision, by rows (CSR).
    """

    is_sparse = True

    def __init__(self, X: Any) -> None:
        self._X = X
        self._xp = namespace(X.values())
        self.shape: tuple[int, int] = (int(X.shape[0]), int(X.shape[1]))
        self.n_entries = int(X.values().shape[0])
        by_column = X.to_sparse_csc()
        self._columns = _csr(
            by_column.ccol_indices(), by_column.row_indices(), by_column.values(), self.shape[::-1]
        )

    # ---- The matrix

    @telling_of_memory
    def moments(self, shares: Rows) -> tuple[Floats, Floats]:
        """Weighted mean and variance of each column."""
        columns = self._columns
        bounds, rows = columns.crow_indices(), columns.col_indices()
        values = self._double(columns.values())

        def sums(entries: Any) -> Any:
            return _csr(bounds, rows, entries, columns.shape) @ shares

        counts = bounds[1:] - bounds[:-1]
        means = sums(values)
        # Of the entries stored and of the zeros apart, so that offsets do no harm.
        away = values - self._xp.repeat(means, counts)
        stored = sums(self._xp.ones_like(values))
        zeros = self._xp.clip(self._xp.sum(shares) - stored, 0.0, None)
        zeros = self._xp.where(counts < self.shape[0], zeros, 0.0)
        variances = sums(away * away) + zeros * means**2
        return finite_moments(to_host(means), to_host(variances))

    @telling_of_memory
    def cross(self, R: Rows, means: Floats) -> Floats:
        """``X'R`` of the columns less ``means``, in double precision."""
        columns = self._columns
        double = _csr(
            columns.crow_indices(),
            columns.col_indices(),
            self._double(columns.values()),
            columns.shape,
        )
        product = to_host(self._times(double, R))
        return product - np.outer(means, to_host(self._xp.sum(R, axis=0)))

    # ---- On the device

    def _index(self, index: Labels) -> Any:
        return beside(index, self._X.values())

    def _some_rows(self, index: Any) -> Any:
        xp, bounds = self._xp, self._X.crow_indices()
        first, counts = bounds[index], bounds[index + 1] - bounds[index]
        ends = xp.cumsum(counts, 0)
        # Entry by entry: where its row begins, and how far into the row it is.
        places = xp.repeat_interleave(first - (ends - counts), counts)
        places = places + xp.arange(places.shape[0], device=places.device)
        starts = xp.cat([xp.zeros_like(ends[:1]), ends])
        shape = (int(index.shape[0]), self.shape[1])
        return _csr(starts, self._X.col_indices()[places], self._X.values()[places], shape)

    def _matrix_on_host(self, X: Any) -> Any:
        parts = (X.values(), X.col_indices(), X.crow_indices())
        return sparse.csr_matrix(tuple(map(to_host, parts)), shape=tuple(X.shape))

    def _transposed(self) -> Any:
        return self._columns

    def _mine(self, values: Floats) -> Any:
        return cast(beside(values, self._X.values()), self._X.dtype)

    def _zeros(self, *shape: int) -> Any:
        return self._xp.zeros(shape, dtype=self._xp.float64, device=self._X.device)

    def _n_bytes(self) -> int:
        index = self._X.col_indices()
        return self.n_entries * (size_of(self._X.values()) + index.element_size())

    def _blocks(self) -> Iterator[tuple[slice, Any]]:
        """Blocks of rows, dense: for Gram matrices, which are small."""
        n, d = self.shape
        height = max(1, BLOCK_BYTES // (8 * max(1, d)))
        bounds, columns = self._X.crow_indices(), self._X.col_indices()
        for first in range(0, n, height):
            last = min(first + height, n)
            begin, end = int(bounds[first]), int(bounds[last])
            part = _csr(
                bounds[first : last + 1] - bounds[first],
                columns[begin:end],
                self._X.values()[begin:end],
                (last - first, d),
            )
            yield slice(first, last), self._double(part.to_dense())


def as_rows(X: Any) -> Any:
    """A sparse tensor by rows, with one entry a place."""
    kind = str(X.layout).removeprefix("torch.")
    if kind == "sparse_csr":
        return X
    if kind not in ("sparse_coo", "sparse_csc"):
        raise ValueError(
            f"X is a tensor of layout {kind}. Give a dense one, or a sparse one by rows: "
            "`X.to_sparse_csr()`."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch calls the layout a beta
        return (X.coalesce() if kind == "sparse_coo" else X).to_sparse_csr()


def _csr(bounds: Any, columns: Any, values: Any, shape: tuple[int, int]) -> Any:
    """A matrix from its parts, which it shares."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch calls the layout a beta
        return torch.sparse_csr_tensor(bounds, columns, values, size=tuple(shape))
