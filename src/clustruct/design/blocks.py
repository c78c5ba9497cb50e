"""Rows in pieces, each a matrix of its own: on disk, in memory or on the workers of a cluster."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse

from clustruct.design.local import aligned, local_design, local_matrix
from clustruct.design.pieces import Piece, Pieces, added, cluster, compute, delay, join, keep
from clustruct.design.protocols import Floats, Labels, Rows, T
from clustruct.kernels.kmeans1d import cluster_values

__all__ = ["BlockDesign"]

# Bytes of a column of rows up to which sums over them are taken on the host.
MOST_LOCAL = 1 << 30


class BlockDesign:
    """A matrix in pieces of rows.

    Parameters
    ----------
    blocks : sequence of Delayed
        A NumPy array or SciPy sparse matrix each, none of them empty.
    heights : sequence of int
        Their numbers of rows.
    width : int
        Number of columns.
    """

    streamed = True
    on_host = False
    is_sparse = False

    def __init__(self, blocks: Sequence[Piece], heights: Sequence[int], width: int) -> None:
        self._blocks = tuple(blocks)
        self.heights = tuple(heights)
        self.shape: tuple[int, int] = (sum(heights), width)
        self.n_entries = self.shape[0] * width
        self.n_passes = 0
        self._blamed = False

    def survey(self) -> float:
        """Look at the first block, for what is stored in all; return their bytes, about."""
        parts = delay(_describe, [self._blocks[:1]])
        ((self.is_sparse, entries, n_bytes),) = self._guarded(lambda: compute(parts))
        scale = self.shape[0] / self.heights[0]
        self.n_entries = int(scale * entries)
        return scale * n_bytes

    def hold(self) -> None:
        """Read the blocks once, and keep them where they were read."""
        self.n_passes += 1
        self._blocks = self._guarded(lambda: keep(self._blocks))

    # ---- Rows

    def map(self, function: Callable[..., Any], *rows: Pieces) -> Pieces:
        """Left for the pass that needs it: it costs less than to keep the answer."""

        def at_hand() -> list[Any]:
            return [function(*mine) for mine in _side_by_side(rows)]

        if cluster() is None:
            return Pieces(at_hand, at_hand)
        return Pieces(lambda: delay(function, [mine.parts for mine in rows]), at_hand)

    def fold(
        self,
        function: Callable[..., T],
        *rows: Pieces,
        combine: Callable[[T, T], T] | None = None,
    ) -> T:
        """On the host while rows are small beside a pass over ``X``, else where they lie."""
        if 8 * self.shape[0] > MOST_LOCAL and cluster() is not None:
            return self._total(delay(function, [mine.parts for mine in rows]), combine)
        results = [function(*mine) for mine in _side_by_side(rows)]
        return join(results, combine or added, delayed_=False)

    def sweep(
        self,
        function: Callable[..., T],
        *rows: Pieces,
        combine: Callable[[T, T], T] | None = None,
    ) -> T:
        """One pass over the blocks."""
        self.n_passes += 1
        return self._total(self._on_blocks(function, rows), combine)

    def place(self, rows: Any) -> Pieces:
        """In the same pieces."""
        if isinstance(rows, Pieces):
            return rows
        local = np.split(rows, np.cumsum(self.heights)[:-1])
        if cluster() is None:
            return Pieces.of(local, rows.shape)
        return Pieces(lambda: cluster().scatter(local), lambda: local, rows.shape)

    # ---- The matrix

    def scores(self, W: Floats) -> Pieces:
        """``X W``, kept where the blocks are."""
        if not W.any():  # where all fits begin, and nothing has to be read
            return self.place(np.zeros((self.shape[0], W.shape[1])))
        return self._rows_of(lambda X: X.scores(W))

    def adjoint(self, R: Rows) -> Floats:
        """``X' R``."""
        return self.sweep(lambda X, r: X.adjoint(r), R)

    def moments(self, shares: Rows) -> tuple[Floats, Floats]:
        """Weighted mean and variance of each column, in one pass: those of blocks are joined."""
        _, means, variances = self.sweep(_moments, shares, combine=_joined_moments)
        return means, variances

    def gram(self, shares: Rows, means: Floats) -> Floats:
        """Weighted Gram matrix of the columns less ``means``."""
        return self.sweep(lambda X, s: X.gram(s, means), shares)

    def cross(self, R: Rows, means: Floats) -> Floats:
        """``X'R`` of the columns less ``means``, in double precision."""
        return self.sweep(lambda X, r: X.cross(r, means), R)

    def group_sums(self, labels: Labels, n_groups: int) -> Pieces:
        """``X Z``, kept where the blocks are."""
        return self.group_sums_together([(labels, n_groups)])[0]

    def group_sums_together(self, groupings: Sequence[tuple[Labels, int]]) -> list[Pieces]:
        """The same for several groupings, in one pass."""
        together = self._rows_of(
            lambda X: np.hstack([X.group_sums(labels, count) for labels, count in groupings])
        )
        ends = np.cumsum([count for _, count in groupings])
        return [
            self._columns(together, int(end) - count, count)
            for end, (_, count) in zip(ends, groupings, strict=True)
        ]

    def weights(self, values: Floats) -> Floats:
        """As they are."""
        return values

    def over(self, rows: Pieces) -> "BlockDesign":
        """The same pieces of other columns."""
        assert rows.shape is not None
        _, width = rows.shape
        return BlockDesign(rows.parts, self.heights, width)

    cluster = staticmethod(cluster_values)

    # ---- Passes

    def _columns(self, rows: Pieces, first: int, count: int) -> Pieces:
        """Some columns of rows."""
        some = self.map(lambda r: np.ascontiguousarray(r[:, first : first + count]), rows)
        some.shape = (self.shape[0], count)
        return some

    def _rows_of(self, function: Callable[..., Any]) -> Pieces:
        """Rows that take a pass, and so are kept."""
        self.n_passes += 1
        parts = self._guarded(lambda: keep(self._on_blocks(function, ())))
        return Pieces(lambda: parts, lambda: self._guarded(lambda: compute(parts)))

    def _on_blocks(self, function: Callable[..., Any], rows: Sequence[Pieces]) -> list[Piece]:
        """The function of each block's design and rows."""

        def on_block(block: Any, *mine: Any) -> Any:
            return function(local_design(local_matrix(block)), *map(aligned, mine))

        return delay(on_block, [self._blocks, *(mine.parts for mine in rows)])

    def _total(self, parts: Sequence[Piece], combine: Callable[[T, T], T] | None) -> T:
        total = self._guarded(lambda: compute([join(parts, combine or added, delayed_=True)])[0])
        if not self._blamed and not _is_finite(total):
            self._blamed = True
            self._name_bad_block()
        return total

    def _guarded(self, work: Callable[[], T]) -> T:
        """A failure of one block is told with its place."""
        try:
            return work()
        except Exception as error:
            self._name_failing_block(error)
            raise

    def _name_failing_block(self, error: Exception) -> None:
        for number, block in enumerate(self._blocks):
            try:
                compute(delay(_touch, [[block]]))
            except Exception as reason:
                raise RuntimeError(
                    f"Chunk {number} of X ({self._place(number)}) could not be computed: "
                    f"{type(reason).__name__}: {reason}. Mend the source of that chunk, or leave "
                    "it out."
                ) from error

    def _name_bad_block(self) -> None:
        for number, block in enumerate(self._blocks):
            (bad,) = compute(delay(_bad_entries, [[block]]))
            if bad:
                raise ValueError(
                    f"Input X contains NaN or infinity: {bad} entries in chunk {number} "
                    f"({self._place(number)}). Replace them, or leave these rows out."
                )

    def _place(self, number: int) -> str:
        first = sum(self.heights[:number])
        return f"rows {first} to {first + self.heights[number] - 1}"


def _side_by_side(rows: Sequence[Pieces]) -> Iterator[tuple[Any, ...]]:
    """The pieces of several rows on the host."""
    return zip(*(map(aligned, mine.local) for mine in rows), strict=True)


def _moments(design: Any, shares: Floats) -> tuple[float, Floats, Floats]:
    """Weight, means and summed squares of a block."""
    weight = float(shares.sum())
    if weight <= 0.0:
        return 0.0, np.zeros(design.shape[1]), np.zeros(design.shape[1])
    means, variances = design.moments(shares / weight)
    return weight, means, weight * variances


def _joined_moments(
    a: tuple[float, Floats, Floats], b: tuple[float, Floats, Floats]
) -> tuple[float, Floats, Floats]:
    """Those of two blocks together."""
    weight = a[0] + b[0]
    share_of_b = b[0] / weight if weight > 0.0 else 0.0
    apart = b[1] - a[1]
    return (
        weight,
        a[1] + share_of_b * apart,
        a[2] + b[2] + a[0] * share_of_b * apart**2,
    )


def _describe(block: Any) -> tuple[bool, int, int]:
    """Whether a block is sparse, the numbers it stores, and its bytes."""
    matrix = local_matrix(block)
    if issparse(matrix):
        n_bytes = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
        return True, int(matrix.nnz), int(n_bytes)
    return False, int(matrix.size), int(matrix.nbytes)


def _touch(block: Any) -> tuple[int, ...]:
    return local_matrix(block).shape


def _bad_entries(block: Any) -> int:
    matrix = local_matrix(block)
    values = matrix.data if issparse(matrix) else matrix
    return int(values.size - np.count_nonzero(np.isfinite(values)))


def _is_finite(total: Any) -> bool:
    """Whether all numbers of a result are."""
    if isinstance(total, tuple):
        return all(_is_finite(part) for part in total)
    if hasattr(total, "__dict__"):
        return all(_is_finite(part) for part in vars(total).values())
    array = np.asarray(total)
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())
