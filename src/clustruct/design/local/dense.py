"""Arrays in memory, as a design."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustruct._finite import finite_moments
from clustruct.design.protocols import Floats, Labels, Rows, T
from clustruct.design.whole import WholeRows
from clustruct.kernels.kmeans1d import cluster_values

__all__ = ["CHUNK_BYTES", "DenseDesign", "LocalRows", "locate"]

CHUNK_BYTES = 1 << 23
# Blocks that are read for several weightings one after the other stay in the nearer cache.
NEAR_BYTES = 1 << 19
# So many columns and fewer are better multiplied by a block in that cache after the other.
FEW_COLUMNS = 8
# Where fewer rows are left out than this, leaving them out costs more than it saves.
WORTH_TAKING = 0.7


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

    def weights(self, values: Floats) -> Floats:
        """As they are."""
        return values

    def over(self, rows: Floats) -> "DenseDesign":
        """An array is a design already."""
        return DenseDesign(rows)

    cluster = staticmethod(cluster_values)


class DenseDesign(LocalRows):
    """An array of single or double precision; it is never copied.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    in_stretches : bool, default=False
        Whether products with a few columns are made of some rows after the other. By one thread
        they take half the time then; several share large products only.
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
        """Means of the columns of ``[X R]``, and their Gram matrix about them, by weightings.

        Every block is read once for all weightings, which are few and known by the block.

        Parameters
        ----------
        R : ndarray of shape (n, K)
        weigh : callable
            The weights of some rows, ``Q x m``, not negative; rows without weight are left out.
        centred : bool
            Whether the means are taken, or zeros.

        Returns
        -------
        tuple of ndarray
            Sums of the weights (Q,), means (Q, d + K) and Gram matrices (Q, d + K, d + K).
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
