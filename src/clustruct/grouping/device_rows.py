"""Exact k-means of each row of a matrix on a GPU.

One block of threads solves a row at a time, from the sort to the labels (`device_rows.cu`, which
has the equations). The matrix is read where it lies, in its own precision and layout; the work
space beside the result does not grow with the number of rows.

What is promised: the inertia of a row exceeds the least one by at most about a millionth. Costs are
compared in double precision. In ordinary rows the excess is about 1e-15; rows whose inertia is so
small beside their width that rounding might matter are solved again on the host, by
`kernels.kmeans.kmeans1d`. Of partitions that are equally good up to that another may be found than
there.
"""

from functools import cache
from importlib.resources import files

import numpy as np

from clustruct.arrays import Array, beside, cast, namespace, to_host
from clustruct.grouping.cuda import Gpu, Launch, Limits, gpu_of
from clustruct.kernels.kmeans.kmeans1d import cluster_values

# Codes of the kernel: precisions, and what became of a row.
KINDS = {"float64": 0, "float32": 1, "float16": 2, "bfloat16": 3}
BAD_VALUE, BAD_WEIGHT, NO_WEIGHT, DOUBTFUL = 1, 2, 3, 4
# Labels up to 255 have eight bits.
MOST_SMALL = 256
MOST_VALUES = 1 << 30  # sums of two places fit 32 bits
# Threads of a block, each of which sorts eight values; a multiprocessor has registers for 1024.
LEAST_THREADS, MOST_THREADS = 64, 1024
# Bytes of shared memory that a block takes beside its arrays: the board of the kernel, and what the
# system keeps.
BOARD, KEPT = 1984, 1024
MOST_BLOCKS = 32
# Part of the memory for the work space of all blocks; one block takes what it must.
SCRATCH_SHARE = 16

Result = tuple[Array, Array, Array, Array, Array]


def cluster_rows(x: Array, weights: Array | None, n_clusters: int) -> Result:
    """Exact weighted k-means of each row of a matrix on a GPU.

    x (r, n): a tensor of torch or an array of CuPy, of half (either kind), single or double
    precision, n at least 1; any strides.
    weights: None, (n,) for all rows or (r, n), where x is; not negative, and no row all zero.
    n_clusters: at least 1.

    Returns, where x is, labels (r, n) in the order of the centres, of eight bits if they fit,
    centres (r, n_clusters) of double precision, sizes (r, n_clusters), the number of groups of each
    row and the inertias. Rows with fewer distinct values than groups have one for each value, and
    centres that are NaN and sizes of zero beyond.
    """
    return solve(gpu_of(x), x, weights, n_clusters)


def solve(gpu: Gpu, x: Array, weights: Array | None, n_clusters: int) -> Result:
    """The same, on a given GPU."""
    n_rows, n = (int(size) for size in x.shape)
    if n > MOST_VALUES:
        raise ValueError(
            f"x has rows of {n} values; the GPU takes rows of at most {MOST_VALUES}. Cluster "
            "longer ones on the host."
        )
    result = (
        gpu.empty((n_rows, n), "uint8" if n_clusters <= MOST_SMALL else "int32"),
        gpu.empty((n_rows, n_clusters), "float64"),
        gpu.empty((n_rows, n_clusters), "int64"),
        gpu.empty((n_rows,), "int64"),
        gpu.empty((n_rows,), "float64"),
    )
    if n_rows:
        states = gpu.empty((n_rows,), "int64")
        _launch(gpu, x, weights, n_clusters, result, states)
        _look_after(to_host(states), x, weights, n_clusters, result)
    return result


def _launch(
    gpu: Gpu, x: Array, weights: Array | None, n_clusters: int, result: Result, states: Array
) -> None:
    """Run the kernel."""
    n_rows, n = (int(size) for size in x.shape)
    in_shared, shared, scratch = _room(n, n_clusters, gpu.limits())
    threads = _n_threads(n)
    blocks = min(n_rows, _n_blocks(threads, shared, scratch, gpu.limits()))
    work_space = gpu.empty((blocks * scratch,), "uint8")
    labels, *rest = result
    words = (
        *_words_of(gpu, x),
        n_rows,
        n,
        *((0, 0, 0, 0) if weights is None else _words_of(gpu, weights)),
        n_clusters,
        gpu.address(labels),
        1 if n_clusters <= MOST_SMALL else 4,
        *(gpu.address(array) for array in (*rest, states, work_space)),
        scratch,
    )
    gpu.run(Launch(_source(in_shared), "rows", blocks, threads, shared), words)


@cache
def _source(in_shared: int) -> str:
    """The kernel, for so many kinds of arrays in shared memory."""
    text = files(__package__).joinpath("device_rows.cu").read_text(encoding="utf-8")
    return f"#define IN_SHARED {in_shared}\n{text}"


def _words_of(gpu: Gpu, array: Array) -> tuple[int, int, int, int]:
    """Address, precision, and how far rows and entries are apart; one row may serve for all."""
    kind = str(array.dtype).removeprefix("torch.")
    if kind not in KINDS:
        raise ValueError(f"there is no kernel for {kind}; give one of {', '.join(KINDS)}.")
    *row_step, step = gpu.steps(array)
    return gpu.address(array), KINDS[kind], row_step[0] if row_step else 0, step


def _room(n: int, n_clusters: int, limits: Limits) -> tuple[int, int, int]:
    """How many kinds of arrays are in shared memory, and bytes of that and of work space."""
    for in_shared, width in ((3, 2), (2, 2), (1, 2), (0, 4)):
        sums, costs = [16 * (n + 1)], [8 * (n + 1)]
        rest = [8 * n_clusters] * 3 + [4 * n_clusters] * 2 + [width * (n + 1)]
        fast = [size for sizes in (sums, rest, costs)[:in_shared] for size in sizes]
        slow = [size for sizes in (sums, rest, costs)[in_shared:] for size in sizes]
        slow += [8 * n, 8 * n, width * (n + 1), width * n * max(n_clusters - 2, 0)]
        shared = BOARD + sum(map(_in_sixteens, fast))
        if shared <= limits.block_shared:
            break
    return in_shared, shared, sum(map(_in_sixteens, slow))


def _in_sixteens(size: int) -> int:
    """The next multiple of sixteen."""
    return -(-size // 16) * 16


def _n_threads(n: int) -> int:
    """Threads for a row of so many values: the result depends on nothing else."""
    enough = 1 << max(n - 1, 1).bit_length() - 3 if n > 8 else 1
    return min(max(enough, LEAST_THREADS), MOST_THREADS)


def _n_blocks(threads: int, shared: int, scratch: int, limits: Limits) -> int:
    """Blocks that run at the same time."""
    at_once = min(MOST_THREADS // threads, limits.shared // (shared + KEPT), MOST_BLOCKS)
    return max(
        1, min(limits.processors * max(at_once, 1), limits.memory // SCRATCH_SHARE // scratch)
    )


def _look_after(
    states: Array, x: Array, weights: Array | None, n_clusters: int, result: Result
) -> None:
    """Refuse bad rows; solve those on the host that need more digits."""
    bad = np.flatnonzero((states > 0) & (states < DOUBTFUL))
    if bad.size:
        _refuse(int(bad[0]), int(states[bad[0]]), x, weights)
    for row in np.flatnonzero(states == DOUBTFUL).tolist():
        own = None if weights is None else _on_host(weights, row)
        found = cluster_values(_on_host(x, row), own, n_clusters)
        for array, values in zip(result, (*found[:3], len(found[1]), found[3]), strict=True):
            here = np.asarray(values)
            array[row] = cast(beside(here, array), array.dtype)


def _on_host(x: Array, row: int) -> Array:
    """A row, or the one that all share, as doubles of the host."""
    own = x if x.ndim == 1 else x[row]
    return np.ascontiguousarray(to_host(cast(own, namespace(x).float64)))


def _refuse(row: int, state: int, x: Array, weights: Array | None) -> None:
    """Say what is wrong with a row."""
    if state == NO_WEIGHT:
        raise ValueError(
            f"sample_weight of row {row} is zero throughout. Give at least one positive weight."
        )
    array, name = (x, "x") if state == BAD_VALUE or weights is None else (weights, "sample_weight")
    values = _on_host(array, row)
    fine = np.isfinite(values) if array is x else np.isfinite(values) & (values >= 0.0)
    column = int(np.argmin(fine))
    place = f"{row}, {column}" if array.ndim == 2 else f"{column}"
    entry = f"{name}[{place}] is {values[column]}"
    if np.isfinite(values[column]):
        raise ValueError(f"{entry}; weights must not be negative. Use zero to leave an entry out.")
    raise ValueError(
        f"{entry}; all entries must be finite. Remove or impute missing and infinite entries first."
    )
