"""What the rest of the package may ask of ``X``, and how arrays with a row a sample are handled.

Arrays with a row for each sample (scores, targets, shares) are *rows*: they live where the rows of
``X`` live, and only the design knows how to reach them. Arrays with an entry for each feature
(weights, means, Gram matrices) are on the host, in double precision.

A design says what it can do (whether passes are dear, whether rows are on the host); nobody asks
what it is. The plainest one is here as well: a dense matrix in memory. What `Operator` and `Design`
do by default is right for it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from clustruct._finite import LARGEST, finite_moments
from clustruct._typing import Floats, Indices, Labels
from clustruct.arrays import beside, namespace, to_host
from clustruct.kernels.kmeans.kmeans1d import cluster_values

# A NumPy array where ``X`` is one; the array of another library, or of many pieces, elsewhere.
Rows = Any
T = TypeVar("T")
# Brings what users pass for so many rows to the host, validates it, and returns an array.
Check = Callable[[Any, int], NDArray[Any]]
# Puts two results of a function together; None to add them up.
Combine: TypeAlias = Callable[[T, T], T] | None

CHUNK_BYTES = 1 << 23
# Blocks that are read for several weightings one after the other stay in the nearer cache.
NEAR_BYTES = 1 << 19
# So many columns and fewer are better multiplied by a block in that cache after the other.
FEW_COLUMNS = 8
# Rows that are looked at for columns which hardly vary, and the least ratio of size and range that
# anybody asks for.
SEEN, LEAST_RATIO = 16, 1e6
# Where fewer rows are left out than this, leaving them out costs more than it saves.
WORTH_TAKING = 0.7


class Operator(ABC):
    """A linear map from weights to scores: what gradients and Newton steps need of ``X``.

    shape: rows and columns.
    single: whether products are of single precision, or may be.
    streamed: whether passes are dear: reading ``X`` costs more than computing with it.
    """

    shape: tuple[int, int]
    single: bool
    streamed: bool = False

    @abstractmethod
    def scores(self, W: Floats) -> Rows:
        """``X W`` for a ``d x K`` matrix."""

    @abstractmethod
    def adjoint(self, R: Rows) -> Floats:
        """``X' R`` for an ``n x K`` matrix."""

    @abstractmethod
    def moments(self, shares: Rows) -> tuple[Floats, Floats]:
        """Weighted mean and variance of each column."""

    def dense_rows(self) -> Floats | None:
        """``X`` in double precision, row by row, as kernels want it; None if it is another."""
        return None

    def place(self, rows: Any) -> Rows:
        """Bring rows on the host, or attached ones, to where those of ``X`` are."""
        return rows

    def map(self, function: Callable[..., Any], *rows: Rows) -> Rows:
        """New rows from others: the function treats each row by itself."""
        return function(*rows)

    def fold(self, function: Callable[..., T], *rows: Rows, combine: Combine[T] = None) -> T:
        """A sum over rows: the function returns an array, or a tuple of them, for those given.

        What it returns for different rows is added up, or put together by `combine`.
        """
        return function(*rows)

    def sweep(self, function: Callable[..., T], *rows: Rows, combine: Combine[T] = None) -> T:
        """The same for functions that take the design of these rows first: one pass over ``X``."""
        return function(self, *rows)

    def sweep_keeping(
        self, function: Callable[..., tuple[Rows, T]], *rows: Rows, combine: Combine[T] = None
    ) -> tuple[Rows, T]:
        """A sweep by a function that returns new rows as well, which stay where ``X`` is.

        It returns an array of rows, or a tuple of them, and what is to be added up.
        """
        return function(self, *rows)


class Design(Operator):
    """What the rest of the package may ask of ``X`` (``n x d``).

    n_entries: stored numbers, a measure of the cost of one product.
    is_sparse: whether zeros are left out.
    on_host: whether rows are on the host, as NumPy arrays; the design is then a `LocalDesign`.
    has_levels: whether columns are levels of factors; the design is then a `FactorDesign`.
    """

    n_entries: int
    is_sparse: bool = False
    has_levels: bool = False
    on_host: bool = False

    def attach(self, values: Any, name: str = "rows", check: Check | None = None) -> Rows:
        """What users pass for the rows, validated, as `map` and `fold` take it.

        It is on the host, also where ``X`` is on a device, or in the pieces of ``X``. The check
        sees whole arrays; it is not applied to Dask collections, which have to be folded for it.
        """
        return np.asarray(values) if check is None else check(values, self.shape[0])

    def gather(self, rows: Rows) -> NDArray[Any]:
        """Rows as one array on the host."""
        return to_host(rows)

    def keep(self, rows: Rows) -> Rows:
        """The same rows, computed once, where `map` would leave that to every pass."""
        return rows

    @abstractmethod
    def gram(self, shares: Rows, means: Floats) -> Floats:
        """``(X - 1 m')' diag(shares) (X - 1 m')`` for given ``m``, ``d x d``."""

    @abstractmethod
    def cross(self, R: Rows, means: Floats) -> Floats:
        """``(X - 1 m')' R`` for given ``m``, as exact as `gram` whatever the precision of ``X``."""

    def group_sums(self, labels: Labels, n_groups: int) -> Rows:
        """``X Z``: the columns of each group added up, those with label -1 left out."""
        return self.scores((labels[:, None] == np.arange(n_groups)).astype(np.float64))

    def group_sums_together(self, groupings: Sequence[tuple[Labels, int]]) -> list[Rows]:
        """`group_sums` of several groupings, in one pass."""
        return [self.group_sums(*grouping) for grouping in groupings]

    def weights(self, values: Floats) -> Any:
        """Weights as users get them: where ``X`` is, and in its precision if that is elsewhere."""
        return values

    def hand_out(self, codes: Rows) -> Any:
        """Integers of the rows as users get them: beside ``X``, lazily for Dask."""
        return codes

    def side_by_side(self, jobs: Sequence[Callable[[], T]]) -> Iterable[T]:
        """Run independent jobs and return their results; concurrent jobs share passes."""
        return one_by_one(jobs)

    @abstractmethod
    def only(self, mask: Rows, *rows: Rows) -> tuple["Design", tuple[Rows, ...]]:
        """The design of the rows where the mask is true, and what belongs to these rows."""

    def locate(self, shares: Rows, positions: Floats) -> Labels:
        """Numbers of the rows at which shares, added up from the first, pass the positions."""
        totals = to_host(shares).cumsum()
        totals /= totals[-1]
        return totals.searchsorted(positions, side="right")

    @abstractmethod
    def fetch(self, index: Labels, *rows: Rows) -> tuple[Any, tuple[Any, ...]]:
        """Rows of ascending numbers as a matrix of the host, and what belongs to them."""

    def by_rows(self) -> "Design":
        """The same design, of which rows are cheap to take."""
        return self

    @abstractmethod
    def over(self, rows: Rows) -> "Design":
        """The design whose matrix is the given rows, ``n x Q``."""

    def far_columns(self, ratio: float) -> Iterator[tuple[int, float, float]]:
        """Columns whose largest size exceeds their range more than `ratio` times, with their range.

        Constant columns are none of them unless they cannot be squared. Few rows tell in most cases
        that there are none; others take a pass.
        """
        return iter(())

    # Exact k-means of numbers of the host, made where it takes least time.
    cluster = staticmethod(cluster_values)


class PickingDesign(Design):
    """A design all of whose rows are at hand, on the host or on a device."""

    # Blocks of rows, dense and in double precision, for the sums below.
    _blocks: Callable[..., Iterator[tuple[slice, Any]]]

    def __init__(self, X: Any, n_entries: int) -> None:
        self._X = X
        self.shape = (int(X.shape[0]), int(X.shape[1]))
        self.n_entries = n_entries
        self.dtype: Any = X.dtype
        # Names of dtypes take NumPy longer than small products.
        known = isinstance(X.dtype, np.dtype)
        self.single = X.dtype == np.float32 if known else str(X.dtype).endswith("float32")

    def _zeros(self, *shape: int) -> Any:
        """Sums to begin with, where ``X`` is."""
        return np.zeros(shape)

    def moments(self, shares: Rows) -> tuple[Floats, Floats]:
        """Weighted mean and variance of each column, in two passes so that offsets do no harm."""
        means, variances = self._zeros(self.shape[1]), self._zeros(self.shape[1])
        for rows, block in self._blocks():
            means += shares[rows] @ block
        for rows, block in self._blocks():
            away = block - means
            away *= away
            variances += shares[rows] @ away
        return finite_moments(to_host(means), to_host(variances))

    def gram(self, shares: Rows, means: Floats) -> Floats:
        """Weighted Gram matrix of the columns less ``means``."""
        gram = self._zeros(self.shape[1], self.shape[1])
        centre, roots = beside(means, gram), namespace(shares).sqrt(shares)
        for rows, block in self._blocks():
            away = (block - centre) * roots[rows, None]
            gram += away.T @ away
        return to_host(gram)

    def cross(self, R: Rows, means: Floats) -> Floats:
        """``X'R`` of the columns less ``means``, in double precision."""
        product = self._zeros(self.shape[1], R.shape[1])
        centre = beside(means, product)
        for rows, block in self._blocks():
            product += (block - centre).T @ R[rows, :]
        return to_host(product)

    def far_columns(self, ratio: float) -> Iterator[tuple[int, float, float]]:
        """By a few rows, which are as near to each other as all of them, and then by all."""
        index = np.unique(np.linspace(0, self.shape[0] - 1, SEEN).astype(np.intp))
        columns = hardly_varying(self.fetch(index)[0], ratio)
        if columns.size:
            yield from far_among(columns, *self.ranges(columns), ratio)

    def ranges(self, columns: Indices) -> tuple[Floats, Floats]:
        """Least and largest value of some columns."""
        least, largest = np.full(columns.size, np.inf), np.full(columns.size, -np.inf)
        for _, block in self._blocks():
            xp = namespace(block)
            mine = xp.take(block, beside(columns, block), axis=1)
            least = np.minimum(least, to_host(xp.min(mine, axis=0)))
            largest = np.maximum(largest, to_host(xp.max(mine, axis=0)))
        return least, largest

    @abstractmethod
    def rows(self, index: Labels) -> "PickingDesign":
        """A copy of some of the rows, as a design of their own."""


class LocalDesign(PickingDesign):
    """A design whose rows are arrays of the host."""

    on_host = True

    def matrix(self) -> Any:
        """``X`` itself, a NumPy array or a sparse matrix."""
        return self._X

    @abstractmethod
    def rows(self, index: Labels) -> "LocalDesign":
        """A copy of some of the rows, as a design of their own."""

    @abstractmethod
    def row_products(self, B: Rows) -> Rows:
        """``[b_i1 x_i, ..., b_iK x_i]`` for each row ``b_i`` of an ``n x K`` matrix, dense."""

    def only(self, mask: Rows, *rows: Rows) -> tuple["LocalDesign", tuple[Rows, ...]]:
        """A copy of some rows, and of what belongs to them."""
        index = np.flatnonzero(mask)
        return self.rows(index), tuple(mine[index] for mine in rows)

    def fetch(self, index: Labels, *rows: Rows) -> tuple[Any, tuple[Any, ...]]:
        """A copy of some rows, and of what belongs to them."""
        return self._X[index], tuple(mine[index] for mine in rows)

    def over(self, rows: Floats) -> "DenseDesign":
        """An array is a design already."""
        return DenseDesign(rows)


class DenseDesign(LocalDesign):
    """An array of single or double precision; it is never copied.

    With `in_stretches`, products with a few columns are made of some rows after the other. By one
    thread they take half the time then; several threads share large products only.
    """

    def __init__(self, X: NDArray[np.floating], *, in_stretches: bool = False) -> None:
        super().__init__(X, X.size)
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

    def dense_rows(self) -> Floats | None:
        """The array, copied if it does not lie row by row; None in single precision."""
        return None if self.single else np.ascontiguousarray(self._X)

    def _stretches(self) -> Iterator[slice]:
        """Rows that the nearer cache holds."""
        n_rows, width = self.shape
        height = max(1, NEAR_BYTES // max(1, width * self._X.itemsize))
        return (slice(first, first + height) for first in range(0, n_rows, height))

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


def hardly_varying(rows: Any, ratio: float) -> Indices:
    """Columns of a few rows of the host that differ by less than ``1 / ratio`` of their size.

    Columns of zeros are none of them: what is zero somewhere has no offset.
    """
    if sparse.issparse(rows):
        full = np.flatnonzero(np.asarray((rows != 0).sum(axis=0)).ravel() == rows.shape[0])
        return full[hardly_varying(rows[:, full].toarray(), ratio)]
    least, largest = rows.min(axis=0), rows.max(axis=0)
    size = np.maximum(np.abs(least), np.abs(largest))
    with np.errstate(over="ignore", invalid="ignore"):
        near = np.subtract(largest, least, dtype=np.float64) < size / ratio
    return np.flatnonzero(near)


def far_among(
    columns: Indices, least: Floats, largest: Floats, ratio: float
) -> Iterator[tuple[int, float, float]]:
    """Those of some columns that lie more than `ratio` times their range from zero.

    Constant ones are among them only if they are too large to be squared.
    """
    size = np.maximum(np.abs(least), np.abs(largest))
    far = largest - least < size / ratio
    for k in np.flatnonzero(far & ((least < largest) | (size > LARGEST))):
        yield int(columns[k]), float(least[k]), float(largest[k])


def one_by_one(jobs: Sequence[Callable[[], T]]) -> Iterator[T]:
    """Run jobs one after the other, each when its result is asked for."""
    return (job() for job in jobs)


def aligned(x: Any) -> Any:
    """The same array where numbers may lie.

    What comes over a network may begin at any byte. NumPy then multiplies by another routine, whose
    last bits differ.
    """
    return np.require(x, requirements="A") if isinstance(x, np.ndarray) else x
