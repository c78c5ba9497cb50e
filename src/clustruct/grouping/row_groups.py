"""Exact k-means of every row of a matrix: which backend has the matrix, and the one of the host.

A backend is a function ``cluster_rows(x, weights, n_clusters)`` of a matrix ``(R, n)``, weights
None, ``(n,)`` or ``(R, n)``, and a number of groups. It returns labels ``(R, n)`` in the order of
the centres, centres ``(R, k)`` in double precision, sizes ``(R, k)``, numbers of groups ``(R,)``
and inertias ``(R,)``. A row with fewer distinct values than groups has one group for each value;
the places of the others hold the centre NaN, which cannot be mistaken for a value, and the size 0.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clustruct._typing import Floats
from clustruct.arrays import beside, to_host
from clustruct.grouping import device_rows
from clustruct.grouping.cuda import lies_on_gpu
from clustruct.kernels.kmeans.kmeans1d import cluster_values, resolve_groups
from clustruct.kernels.kmeans.vectors import (
    LONGEST,
    NO_BYTES,
    NO_LABELS,
    NO_SHORTS,
    NONE,
    work_space,
)
from clustruct.kernels.numbers.finite import all_finite

# Rows are converted to double precision and clustered in blocks of about so many numbers, which a
# processor's cache holds.
BLOCK_SIZE = 1 << 17
LABEL_TYPES = (np.uint8, np.uint16, np.intp)
EMPTY = (NO_BYTES, NO_SHORTS, NO_LABELS)


class Rows(NamedTuple):
    """What a backend returns for one number of groups."""

    labels: Any
    centers: Any
    sizes: Any
    n_found: Any
    inertia: Any


def label_type(n_clusters: int) -> type[np.integer]:
    """The shortest type of integers that holds the labels."""
    return next(kind for kind in LABEL_TYPES if n_clusters - 1 <= np.iinfo(kind).max)


class Source(NamedTuple):
    """The matrix that rows are from, for messages, and whether its rows should ascend."""

    name: str
    columns: int
    presorted: bool = False

    def place(self, width: int, row: int, column: int) -> str:
        """Where an entry of the rows that are clustered is in the matrix."""
        return ", ".join(map(str, divmod(row * width + column, self.columns)))


class BrainRows:
    """Rows of bfloat16 numbers, given as their bits, that become single precision when taken."""

    def __init__(self, bits: NDArray[np.uint16]) -> None:
        self.bits, self.shape, self.ndim = bits, bits.shape, bits.ndim

    def __getitem__(self, rows: Any) -> NDArray[np.float32]:
        return (self.bits[rows].astype(np.uint32) << 16).view(np.float32)


def on_host(x: Any) -> Any:
    """A matrix of the host that gives its rows to NumPy; a tensor of torch shares its memory."""
    if not is_tensor(x):
        return x
    tensor = x.detach()
    if str(tensor.dtype) == "torch.bfloat16":
        return BrainRows(tensor.view(import_module("torch").int16).numpy().view(np.uint16))
    return tensor.numpy()


def is_tensor(x: Any) -> bool:
    """Whether something is a tensor of torch."""
    return type(x).__module__.partition(".")[0] == "torch"


def cluster_rows(
    x: Any, weights: Any, numbers: Sequence[int], n_jobs: int | None, source: Source
) -> list[Rows]:
    """Cluster each row of a matrix where it lies, into each of some numbers of groups.

    The one place that chooses a backend, see the module.
    """
    if lies_on_gpu(x):
        if weights is not None and not lies_on_gpu(weights):
            weights = beside(to_host(weights), x)
        return [Rows(*device_rows.cluster_rows(x, weights, number)) for number in numbers]
    found = cluster_host_rows(on_host(x), on_host(weights), numbers, n_jobs, source)
    if not is_tensor(x):
        return found
    torch = import_module("torch")
    return [Rows(*map(torch.from_numpy, rows)) for rows in found]


def cluster_host_rows(
    x: Any, weights: Any, numbers: Sequence[int], n_jobs: int | None, source: Source
) -> list[Rows]:
    """Cluster each row of a matrix of the host into each of some numbers of groups.

    The numbers of groups ascend. One thread for each of ``n_jobs`` blocks of rows, None for as many
    as there are processors; the results do not depend on it.
    """
    n_rows, n = x.shape
    if n_rows == 0:
        return _Outputs(0, n, numbers).by_number()
    outputs = _Outputs(n_rows, n, numbers)
    n_block = max(1, min(BLOCK_SIZE // n, n_rows))
    blocks = [slice(a, min(a + n_block, n_rows)) for a in range(0, n_rows, n_block)]
    n_threads = min(n_jobs or os.cpu_count() or 1, len(blocks))

    def solve(block: slice) -> None:
        _cluster_block(x[block], weights, block, outputs, source)

    if n_threads <= 1:
        for block in blocks:
            solve(block)
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            # The error of the first row in order, if there are several.
            for job in [pool.submit(solve, block) for block in blocks]:
                job.result()
    return outputs.by_number()


class _Outputs:
    """Arrays for the results of all rows and all numbers of groups."""

    def __init__(self, n_rows: int, n: int, numbers: Sequence[int]) -> None:
        # More groups than values are never found.
        self.wanted = list(numbers)
        self.numbers = np.array([min(number, n) for number in numbers], dtype=np.int64)
        self.ends = np.cumsum(self.numbers)
        shape = (len(numbers), n_rows, n)
        self.labels = np.empty(shape, dtype=label_type(int(self.numbers.max())))
        self.centers = np.empty((n_rows, int(self.ends[-1])))
        self.sizes = np.empty(self.centers.shape, dtype=np.int64)
        self.found = np.empty((n_rows, len(numbers)), dtype=np.int64)
        self.inertia = np.empty(self.found.shape)

    def write(self, row: int, k: int, groups: tuple[Any, ...]) -> None:
        """The clustering of one row into the k-th number of groups."""
        labels, centers, sizes, inertia = groups
        end, n_found = int(self.ends[k]), len(centers)
        start = end - int(self.numbers[k])
        self.labels[k, row] = labels
        self.centers[row, start : start + n_found] = centers
        self.centers[row, start + n_found : end] = np.nan
        self.sizes[row, start : start + n_found] = sizes
        self.sizes[row, start + n_found : end] = 0
        self.found[row, k], self.inertia[row, k] = n_found, inertia

    def by_number(self) -> list[Rows]:
        """The results for each number of groups."""
        parts = []
        for k, wanted in enumerate(self.wanted):
            part = slice(int(self.ends[k] - self.numbers[k]), int(self.ends[k]))
            lacking = ((0, 0), (0, wanted - int(self.numbers[k])))
            parts.append(
                Rows(
                    self.labels[k],
                    np.pad(self.centers[:, part], lacking, constant_values=np.nan),
                    np.pad(self.sizes[:, part], lacking),
                    self.found[:, k].copy(),
                    self.inertia[:, k].copy(),
                )
            )
        return parts


def _cluster_block(
    x: NDArray[Any], weights: Any, block: slice, outputs: _Outputs, source: Source
) -> None:
    """Cluster some rows, converted to double precision here and not before."""
    values = np.ascontiguousarray(x, dtype=np.float64)
    _check_finite(values, block.start, source)
    if source.presorted:
        _check_sorted(values, block.start, source)
    masses = _block_of_weights(weights, block, source)
    undecided: NDArray[Any] = np.ones(len(values), dtype=np.uint8)
    if values.shape[1] <= LONGEST:
        _cluster_short(values, masses, block, outputs, undecided)
    # `resolve_groups` knows what short vectors leave undecided.
    solve = resolve_groups if values.shape[1] <= LONGEST else cluster_values
    for row in np.flatnonzero(undecided).tolist():
        alone = masses[min(row, len(masses) - 1)] if len(masses) else None
        for k, number in enumerate(outputs.numbers.tolist()):
            outputs.write(block.start + row, k, solve(values[row], alone, number))


def _cluster_short(
    values: Floats,
    weights: Floats,
    block: slice,
    outputs: _Outputs,
    undecided: NDArray[np.uint8],
) -> None:
    """Cluster the rows that can be decided in one call."""
    exponents = np.empty(len(values), dtype=np.int64)
    labels = {np.dtype(t): empty for t, empty in zip(LABEL_TYPES, EMPTY, strict=True)}
    own = np.empty((len(outputs.numbers), *values.shape), dtype=outputs.labels.dtype)
    labels[own.dtype] = own
    inertia = outputs.inertia[block]
    work_space(values.shape[1], int(outputs.numbers.max())).cluster(
        values, values.view(np.int64), weights, outputs.numbers, *labels.values(),
        outputs.centers[block], outputs.sizes[block], outputs.found[block], inertia, exponents,
        undecided,
    )  # fmt: skip
    outputs.labels[:, block] = own
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        np.ldexp(inertia, np.where(undecided, 0, exponents)[:, None], out=inertia)


def _block_of_weights(weights: Any, block: slice, source: Source) -> Floats:
    """Weights of some rows in double precision: one row if they are shared, none without weights.

    They are checked here, so that no pass over all of them is needed.
    """
    if weights is None:
        return NONE
    shared = weights.ndim == 1
    rows = weights[:][None] if shared else weights[block]
    masses = np.ascontiguousarray(rows, dtype=np.float64)
    first = 0 if shared else block.start
    source = Source("sample_weight" + ".T" * source.name.endswith(".T"), source.columns)
    _check_finite(masses, first, source)
    if masses.min() < 0.0:
        row, column = (int(i) for i in np.argwhere(masses < 0.0)[0])
        place = source.place(masses.shape[1], first + row, column)
        raise ValueError(
            f"{source.name}[{place}] is {masses[row, column]}; weights must not be negative. "
            "Use zero to leave an entry out."
        )
    light = ~masses.any(axis=1)
    if light.any():
        where = source.place(masses.shape[1], first + int(light.argmax()), 0)
        raise ValueError(
            f"{source.name} is zero for all of the row that begins at [{where}]. Give at least one "
            "positive weight."
        )
    return masses


def _check_finite(values: Floats, first_row: int, source: Source) -> None:
    """Raise an error that names the first entry that is not finite."""
    if all_finite(values.reshape(-1)):
        return
    row, column = (int(i) for i in np.argwhere(~np.isfinite(values))[0])
    place = source.place(values.shape[1], first_row + row, column)
    raise ValueError(
        f"{source.name}[{place}] is {values[row, column]}; all entries must be finite. "
        "Remove or impute missing and infinite entries first."
    )


def _check_sorted(values: Floats, first_row: int, source: Source) -> None:
    """Raise an error that names the first entry that is less than the one before."""
    falls = values[:, 1:] < values[:, :-1]
    if falls.any():
        row, column = (int(i) for i in np.argwhere(falls)[0])
        place = source.place(values.shape[1], first_row + row, column + 1)
        raise ValueError(
            f"presorted=True, but {source.name}[{place}] is less than the entry before it. Sort "
            "the rows, or leave presorted at False."
        )
