"""Arrays of other libraries, on a GPU or not, as a design: products are made where ``X`` lies."""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, TypeVar
from typing import cast as cast_to

import numpy as np

from clustruct._finite import finite_moments
from clustruct.arrays import beside, cast, device_of, like, namespace, to_host
from clustruct.design.local.dense import locate
from clustruct.design.protocols import Floats, Labels, Rows, T
from clustruct.design.whole import WholeRows
from clustruct.grouping.device_kmeans import cluster_on_device
from clustruct.kernels.kmeans1d import cluster_values

__all__ = ["DeviceDesign", "size_of", "telling_of_memory"]

# Rows are taken in double precision by blocks of this size: a GPU wants larger ones than a cache.
BLOCK_BYTES = 1 << 28
# So many numbers are grouped on the device: fewer are sorted on the host while they would travel.
DEVICE_VALUES = 200_000


Method = TypeVar("Method", bound=Callable[..., Any])


def telling_of_memory(method: Method) -> Method:
    """Have a device that has no memory left for a product told with the remedy."""

    @wraps(method)
    def told(self: "DeviceDesign", *arguments: Any) -> Any:
        try:
            return method(self, *arguments)
        except Exception as error:
            if "OutOfMemory" not in type(error).__name__:
                raise
            raise MemoryError(
                f"The device has no memory left for `{method.__name__}` beside X, which takes "
                f"{self._n_bytes() / 1e9:.3g} GB: {error}. Give X in float32, free other arrays, "
                "or pass a Dask array in chunks."
            ) from error

    return cast_to("Method", told)


class DeviceDesign(WholeRows):
    """An array that speaks the array API; it is never copied, and never leaves its device.

    Parameters
    ----------
    X : array of shape (n, d)
        Single or double precision.
    """

    is_sparse = False
    on_host = False

    def __init__(self, X: Any) -> None:
        self._X = X
        self._xp = namespace(X)
        self.shape: tuple[int, int] = (int(X.shape[0]), int(X.shape[1]))
        self.n_entries = self.shape[0] * self.shape[1]

    # ---- Rows

    def place(self, rows: Any) -> Rows:
        """On the device of ``X``."""
        return beside(to_host(rows), self._X)

    def fold(
        self,
        function: Callable[..., T],
        *rows: Rows,
        combine: Callable[[T, T], T] | None = None,
    ) -> T:
        """The function, and its result on the host."""
        return _on_host(function(*rows))

    def sweep_keeping(
        self,
        function: Callable[..., tuple[Rows, T]],
        *rows: Rows,
        combine: Callable[[T, T], T] | None = None,
    ) -> tuple[Rows, T]:
        """The function of this design: new rows stay, their sum goes to the host."""
        kept, total = function(self, *rows)
        return kept, _on_host(total)

    @telling_of_memory
    def only(self, mask: Rows, *rows: Rows) -> tuple["DeviceDesign", tuple[Rows, ...]]:
        """A copy of some rows, and of what belongs to them, on the device."""
        (index,) = self._xp.nonzero(mask)
        some = tuple(self._xp.take(mine, index, axis=0) for mine in rows)
        return type(self)(self._some_rows(index)), some

    def locate(self, shares: Rows, positions: Floats) -> Labels:
        """By the cumulative sum of the shares, on the host."""
        return locate(to_host(shares), positions)

    def fetch(self, index: Labels, *rows: Rows) -> tuple[Any, tuple[Any, ...]]:
        """Some rows, and what belongs to them, brought to the host."""
        mine = beside(index, self._X)
        some = tuple(to_host(self._xp.take(x, mine, axis=0)) for x in rows)
        return self._matrix_on_host(self._some_rows(mine)), some

    def weights(self, values: Floats) -> Any:
        """On the device, in the precision of ``X``."""
        return self._mine(values)

    def over(self, rows: Rows) -> "DeviceDesign":
        """An array is a design already."""
        return DeviceDesign(rows)

    @telling_of_memory
    def rows(self, index: Labels) -> "DeviceDesign":
        """A copy of some rows, on the device."""
        return type(self)(self._some_rows(self._index(index)))

    @telling_of_memory
    def cluster(
        self, values: Floats, weights: Floats | None, n_clusters: int
    ) -> tuple[Labels, Floats, Labels, float]:
        """On the device, where there are many numbers of equal weight."""
        if weights is not None or values.size < DEVICE_VALUES:
            return cluster_values(values, weights, n_clusters)
        return cluster_on_device(beside(values, self._X), n_clusters)

    # ---- The matrix

    @telling_of_memory
    def scores(self, W: Floats) -> Rows:
        """``X W``, in double precision."""
        return self._double(self._times(self._X, self._mine(W)))

    @telling_of_memory
    def adjoint(self, R: Rows) -> Floats:
        """``X' R``."""
        product = self._times(self._transposed(), cast(R, self._X.dtype))
        return to_host(self._double(product))

    @telling_of_memory
    def moments(self, shares: Rows) -> tuple[Floats, Floats]:
        """Weighted mean and variance of each column, in two passes so that offsets do no harm."""
        means = self._zeros(self.shape[1])
        for rows, block in self._blocks():
            means = means + shares[rows] @ block
        variances = self._zeros(self.shape[1])
        for rows, block in self._blocks():
            variances = variances + shares[rows] @ (block - means) ** 2
        return finite_moments(to_host(means), to_host(variances))

    @telling_of_memory
    def gram(self, shares: Rows, means: Floats) -> Floats:
        """Weighted Gram matrix of the columns less ``means``."""
        centre, roots = beside(means, self._X), self._xp.sqrt(shares)
        gram = self._zeros(self.shape[1], self.shape[1])
        for rows, block in self._blocks():
            block = (block - centre) * roots[rows, None]
            gram = gram + block.T @ block
        return to_host(gram)

    @telling_of_memory
    def cross(self, R: Rows, means: Floats) -> Floats:
        """``X'R`` of the columns less ``means``, in double precision."""
        centre = beside(means, self._X)
        product = self._zeros(self.shape[1], R.shape[1])
        for rows, block in self._blocks():
            product = product + (block - centre).T @ R[rows, :]
        return to_host(product)

    def group_sums(self, labels: Labels, n_groups: int) -> Rows:
        """``X Z``."""
        return self.scores((labels[:, None] == np.arange(n_groups)).astype(np.float64))

    # ---- On the device

    def _index(self, index: Labels) -> Any:
        """Numbers of rows beside ``X``."""
        return beside(index, self._X)

    def _some_rows(self, index: Any) -> Any:
        """A copy of the rows with these numbers."""
        return self._xp.take(self._X, index, axis=0)

    def _matrix_on_host(self, X: Any) -> Any:
        return to_host(X)

    def _transposed(self) -> Any:
        return self._X.T

    def _n_bytes(self) -> int:
        return self.n_entries * size_of(self._X)

    def _mine(self, values: Floats) -> Any:
        """Numbers of the host beside ``X``, in its precision."""
        return like(values, self._X)

    def _times(self, X: Any, W: Any) -> Any:
        """A product; one column takes the routine for vectors, which is much the faster."""
        return (X @ W[:, 0])[:, None] if W.shape[1] == 1 else X @ W

    def _double(self, values: Any) -> Any:
        return cast(values, self._xp.float64)

    def _zeros(self, *shape: int) -> Any:
        return self._xp.zeros(shape, dtype=self._xp.float64, device=device_of(self._X))

    def _blocks(self) -> Iterator[tuple[slice, Any]]:
        """Blocks of rows in double precision."""
        height = max(1, BLOCK_BYTES // (8 * max(1, self.shape[1])))
        for first in range(0, self.shape[0], height):
            rows = slice(first, min(first + height, self.shape[0]))
            yield rows, self._double(self._X[rows, :])


def size_of(x: Any) -> int:
    """Bytes of a number."""
    return 4 if x.dtype == namespace(x).float32 else 8


def _on_host(result: Any) -> Any:
    """Arrays of the host for those of a device."""
    if isinstance(result, tuple):
        return tuple(_on_host(part) for part in result)
    return to_host(result)
