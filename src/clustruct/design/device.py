"""Arrays of other libraries, on a GPU or not, as a design: products are made where ``X`` lies."""

import warnings
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, TypeVar
from typing import cast as cast_to

import numpy as np
from scipy import sparse

from clustruct._finite import finite_moments
from clustruct._typing import Floats, Labels
from clustruct.arrays import beside, cast, device_of, like, namespace, take, to_host
from clustruct.design.local import Combine, PickingDesign, Rows, T
from clustruct.grouping.device_kmeans import cluster_on_device
from clustruct.kernels.kmeans.kmeans1d import cluster_values

# Rows are taken in double precision by blocks of this size: a GPU wants larger ones than a cache.
BLOCK_BYTES = 1 << 28
# So many numbers are grouped on the device: fewer are sorted on the host while they would travel.
DEVICE_VALUES = 200_000


Method = TypeVar("Method", bound=Callable[..., Any])


def _telling_of_memory(method: Method) -> Method:
    """Have out-of-memory errors state how much ``X`` takes, and the remedy."""

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


class DeviceDesign(PickingDesign):
    """An array that speaks the array API; it is never copied, and never leaves its device."""

    def __init__(self, X: Any) -> None:
        super().__init__(X, int(X.shape[0]) * int(X.shape[1]))
        self._near = X  # other arrays are placed beside this one
        self._xp = namespace(X)

    # ---- Rows

    def place(self, rows: Any) -> Rows:
        """On the device of ``X``."""
        return beside(to_host(rows), self._near)

    def fold(self, function: Callable[..., T], *rows: Rows, combine: Combine[T] = None) -> T:
        """The function, and its result on the host."""
        return _on_host(function(*rows))

    def sweep_keeping(
        self, function: Callable[..., tuple[Rows, T]], *rows: Rows, combine: Combine[T] = None
    ) -> tuple[Rows, T]:
        """The function of this design: new rows stay, their sum goes to the host."""
        kept, total = function(self, *rows)
        return kept, _on_host(total)

    @_telling_of_memory
    def only(self, mask: Rows, *rows: Rows) -> tuple["DeviceDesign", tuple[Rows, ...]]:
        """A copy of some rows, and of what belongs to them, on the device."""
        (index,) = self._xp.nonzero(mask)
        some = tuple(self._xp.take(mine, index, axis=0) for mine in rows)
        return type(self)(self._some_rows(index)), some

    def fetch(self, index: Labels, *rows: Rows) -> tuple[Any, tuple[Any, ...]]:
        """Some rows, and what belongs to them, brought to the host."""
        mine = self._some_rows(beside(index, self._near))
        return self._matrix_on_host(mine), tuple(to_host(take(x, index)) for x in rows)

    def weights(self, values: Floats) -> Any:
        """On the device, in the precision of ``X``."""
        return like(values, self._near)

    def over(self, rows: Rows) -> "DeviceDesign":
        """An array is a design already."""
        return DeviceDesign(rows)

    @_telling_of_memory
    def rows(self, index: Labels) -> "DeviceDesign":
        """A copy of some rows, on the device."""
        return type(self)(self._some_rows(beside(index, self._near)))

    @_telling_of_memory
    def cluster(
        self, values: Floats, weights: Floats | None, n_clusters: int
    ) -> tuple[Labels, Floats, Labels, float]:
        """On the device, where there are many numbers of equal weight."""
        if weights is not None or values.size < DEVICE_VALUES:
            return cluster_values(values, weights, n_clusters)
        return cluster_on_device(beside(values, self._near), n_clusters)

    # ---- The matrix

    @_telling_of_memory
    def scores(self, W: Floats) -> Rows:
        """``X W``, in double precision."""
        return self._double(self._times(self._X, self.weights(W)))

    @_telling_of_memory
    def adjoint(self, R: Rows) -> Floats:
        """``X' R``."""
        product = self._times(self._transposed(), cast(R, self._X.dtype))
        return to_host(self._double(product))

    moments = _telling_of_memory(PickingDesign.moments)
    gram = _telling_of_memory(PickingDesign.gram)
    cross = _telling_of_memory(PickingDesign.cross)

    # ---- On the device

    def _some_rows(self, index: Any) -> Any:
        """A copy of the rows with these numbers."""
        return self._xp.take(self._X, index, axis=0)

    def _matrix_on_host(self, X: Any) -> Any:
        return to_host(X)

    def _transposed(self) -> Any:
        return self._X.T

    def _n_bytes(self) -> int:
        return self.n_entries * _size_of(self._near)

    def _times(self, X: Any, W: Any) -> Any:
        """A product; one column takes the routine for vectors, which is much the faster."""
        return (X @ W[:, 0])[:, None] if W.shape[1] == 1 else X @ W

    def _double(self, values: Any) -> Any:
        return cast(values, self._xp.float64)

    def _zeros(self, *shape: int) -> Any:
        return self._xp.zeros(shape, dtype=self._xp.float64, device=device_of(self._near))

    def _blocks(self) -> Iterator[tuple[slice, Any]]:
        """Blocks of rows in double precision."""
        height = max(1, BLOCK_BYTES // (8 * max(1, self.shape[1])))
        for first in range(0, self.shape[0], height):
            rows = slice(first, min(first + height, self.shape[0]))
            yield rows, self._double(self._X[rows, :])


def _size_of(x: Any) -> int:
    """Bytes of a number."""
    return 4 if x.dtype == namespace(x).float32 else 8


def _on_host(result: Any) -> Any:
    """Arrays of the host for those of a device; other results stay as they are."""
    if isinstance(result, tuple):
        return tuple(_on_host(part) for part in result)
    return to_host(result) if hasattr(result, "shape") else result


# ---- Sparse tensors


class SparseDeviceDesign(DeviceDesign):
    """A sparse tensor by rows (CSR), never dense as a whole, which never leaves its device.

    Products with the transposed matrix want its rows together, too: it is kept by columns as well,
    which takes the memory of ``X`` once more.
    """

    is_sparse = True

    def __init__(self, X: Any) -> None:
        PickingDesign.__init__(self, X, int(X.values().shape[0]))
        self._near = X.values()
        self._xp = namespace(self._near)
        by_column = X.to_sparse_csc()
        self._columns = _csr(
            by_column.ccol_indices(), by_column.row_indices(), by_column.values(), self.shape[::-1]
        )

    # ---- The matrix

    @_telling_of_memory
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

    @_telling_of_memory
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

    def _n_bytes(self) -> int:
        index = self._X.col_indices()
        return self.n_entries * (_size_of(self._near) + index.element_size())

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
