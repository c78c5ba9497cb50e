"""Larger than memory, and more than one worker: fits by Dask against plain NumPy.

Five questions. What does a matrix on disk that is larger than memory may be cost, in time, resident
memory and passes? What do chunks of 64 MB cost where the data is in memory? What does a second
worker gain, and what would it gain if there were nothing but products with ``X``, which two cores
read through the same memory? How many passes over ``X`` does a fit take? ``CLUSTRUCT_SCALE_GB``
sets the size of the matrix on disk, ``CLUSTRUCT_SCALE_DIR`` its folder.
"""

import multiprocessing
import os
import resource
import shutil
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import timing
from report import Options, Table, Target

WIDTH = 1000
CHUNK = 1 << 26
WORKER_CHUNK = 1 << 28  # a task of a cluster takes some milliseconds of the scheduler
GIGABYTES, QUICK_GIGABYTES = 20.0, 0.5
MOST_RESIDENT = 3.0
N_PRODUCTS = 10
MEMORY_ROWS = 128_000  # in memory: 1 GB in double precision
# Losses, and the part of the matrix on disk that each is fitted to: a logistic fit reads it often.
LOSSES = {"squared": 1.0, "logistic": 0.2}

Record = dict[str, Any]


def measure(options: Options) -> list[Record]:
    """All questions, each in a process of its own."""
    size = float(
        os.environ.get("CLUSTRUCT_SCALE_GB", QUICK_GIGABYTES if options.quick else GIGABYTES)
    )
    rows = MEMORY_ROWS // 8 if options.quick else MEMORY_ROWS
    records = []
    for loss, part in LOSSES.items():
        with _matrix_on_disk(part * size) as (path, n):
            records.append(timing.isolated(_fit_from_disk, path, n, loss, fresh=True))
        print(f"scale: {part * size:g} GB on disk, {loss}", file=sys.stderr)
    for loss in LOSSES:
        records.append(timing.isolated(_fit_in_chunks, rows, loss, options.repeats, fresh=True))
        print(f"scale: chunks in memory, {loss}", file=sys.stderr)
    for loss in LOSSES:
        times = {k: timing.isolated(_fit_on_workers, 2 * rows, loss, k, fresh=True) for k in (1, 2)}
        records.append(
            {
                "question": "workers",
                "loss": loss,
                "rows": 2 * rows,
                "seconds": times[2],
                "one": times[1],
            }
        )
        print(f"scale: workers, {loss}", file=sys.stderr)
    records.append(
        {
            "question": "memory",
            "loss": "none",
            "rows": 2 * rows,
            "seconds": min(_multiply_apart(2 * rows, 2) for _ in range(options.repeats)),
            "one": min(_multiply_apart(2 * rows, 1) for _ in range(options.repeats)),
        }
    )
    print("scale: products alone", file=sys.stderr)
    return records


def table(records: list[Record]) -> Table:
    """One line a measurement."""
    rows = [
        (
            record["question"],
            record["loss"],
            f"{record['rows']:,} x {WIDTH}",
            f"{record['seconds']:.1f}",
            f"{record['one'] / record['seconds']:.2f} x from 1 worker to 2"
            if record["question"] in ("workers", "memory")
            else f"{record['seconds'] / record['numpy']:.2f} x NumPy"
            if record["question"] == "chunks"
            else f"{record['gigabytes']:.1f} GB, peak {record['resident']:.2f} GB resident, "
            f"{record['passes']} passes",
        )
        for record in records
    ]
    return Table(("question", "loss", "X", "seconds", "found"), rows)


def targets(records: list[Record]) -> list[Target]:
    """What is promised."""

    def worst(question: str, figure: Any, choose: Any = max) -> float | None:
        found = [figure(record) for record in records if record["question"] == question]
        return choose(found) if found else None

    return [
        Target(
            "GB resident with a matrix on disk",
            worst("disk", lambda r: r["resident"]),
            MOST_RESIDENT,
        ),
        Target(
            "time in chunks over plain NumPy",
            worst("chunks", lambda r: r["seconds"] / r["numpy"]),
            1.2,
        ),
        Target(
            "gain from one worker to two",
            worst("workers", lambda r: r["one"] / r["seconds"], min),
            1.7,
            at_least=True,
        ),
    ]


@contextmanager
def _matrix_on_disk(gigabytes: float) -> Any:
    """A file of single precision and the number of its rows; removed at the end."""
    folder = Path(tempfile.mkdtemp(dir=os.environ.get("CLUSTRUCT_SCALE_DIR")))
    n = int(gigabytes * 1e9 / (4 * WIDTH))
    try:
        if shutil.disk_usage(folder).free < 1.2e9 * gigabytes:
            raise SystemExit(f"{gigabytes:g} GB do not fit on the disk: set CLUSTRUCT_SCALE_GB.")
        header = np.lib.format.open_memmap(
            folder / "X.npy", mode="w+", dtype=np.float32, shape=(n, WIDTH)
        )
        offset = header.offset
        del header
        height = CHUNK // (4 * WIDTH)
        with open(folder / "X.npy", "r+b") as file:
            file.seek(offset)
            for first in range(0, n, height):
                rng = np.random.default_rng(first)
                rng.standard_normal((min(height, n - first), WIDTH), dtype=np.float32).tofile(file)
        yield str(folder / "X.npy"), n
    finally:
        shutil.rmtree(folder)


def _weights() -> Any:
    return np.repeat([1.0, -1.0, 0.5, 2.0, 0.0], WIDTH // 5).astype(np.float32)


def _answers(scores: Any, loss: str) -> Any:
    noisy = scores + np.random.default_rng(0).standard_normal(scores.shape[0]) * 5.0
    return noisy if loss == "squared" else noisy > 0


def _model(loss: str) -> Any:
    import clustruct as cs

    if loss == "squared":
        return cs.FeatureClusterRegressor(5, alpha=1e-3, solver="pg")
    return cs.FeatureClusterClassifier(5, alpha=1e-3, solver="pg")


def _fit_from_disk(path: str, n: int, loss: str) -> Record:
    """A fit of a file in chunks, never kept; how often each chunk was read."""
    import dask

    from clustruct.design.partitioned import blocks
    from clustruct.design.partitioned import collections as partitioned

    mapped = np.load(path, mmap_mode="r")
    X = partitioned.in_chunks(mapped)
    y = _answers((X @ _weights()).compute(), loss)
    read, reads = np.fromfile, []

    def counted(*arguments: Any, **options: Any) -> Any:
        reads.append(1)
        return read(*arguments, **options)

    partitioned.np.fromfile = counted
    blocks.available_bytes = lambda: 0.0
    with dask.config.set(scheduler="threads", num_workers=os.cpu_count()):
        start = time.perf_counter()
        model = _model(loss).fit(X, y)
        seconds = time.perf_counter() - start
    return {
        "question": "disk",
        "loss": loss,
        "rows": n,
        "gigabytes": mapped.nbytes / 1e9,
        "seconds": seconds,
        "resident": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
        "passes": round((len(reads) - 1) / X.numblocks[0], 2),
        "groups": model.n_clusters_,
    }


def _in_memory(rows: int, loss: str) -> tuple[Any, Any]:
    X = np.random.default_rng(0).standard_normal((rows, WIDTH))
    return X, _answers(X @ _weights(), loss)


def _fit_in_chunks(rows: int, loss: str, repeats: int) -> Record:
    """The same data in memory, whole and in chunks, in turn."""
    import dask.array as da

    X, y = _in_memory(rows, loss)
    pieces = da.from_array(X, chunks=(CHUNK // (8 * WIDTH), WIDTH)).persist()
    times = timing.compare(
        {"numpy": lambda: _model(loss).fit(X, y), "dask": lambda: _model(loss).fit(pieces, y)},
        min(repeats, 3),
    )
    best = {name: min(taken) for name, taken in times.items()}
    return {
        "question": "chunks",
        "loss": loss,
        "rows": rows,
        "seconds": best["dask"],
        "numpy": best["numpy"],
    }


def _fit_on_workers(rows: int, loss: str, n_workers: int) -> float:
    """Seconds on a cluster of processes with one thread each; the second fit counts."""
    import dask.array as da
    import distributed

    options = {"threads_per_worker": 1, "dashboard_address": None, "memory_limit": "8GB"}
    with (
        distributed.LocalCluster(n_workers=n_workers, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        rng = da.random.default_rng(0)
        chunks = (WORKER_CHUNK // (8 * WIDTH), WIDTH)
        pieces = client.persist(rng.standard_normal((rows, WIDTH), chunks=chunks))
        distributed.wait(pieces)
        y = _answers((pieces @ _weights()).compute(), loss)
        return min(timing.seconds(lambda: _model(loss).fit(pieces, y)) for _ in range(2))


def _multiply_apart(rows: int, n_processes: int) -> float:
    """Seconds of bare products with parts of a matrix, a process for each part."""
    context = multiprocessing.get_context("spawn")
    barrier, times = context.Barrier(n_processes), context.Queue()
    processes = [
        context.Process(target=_multiply, args=(rows // n_processes, barrier, times))
        for _ in range(n_processes)
    ]
    for process in processes:
        process.start()
    slowest = max(times.get() for _ in processes)
    for process in processes:
        process.join()
    return slowest


def _multiply(rows: int, barrier: Any, times: Any) -> None:
    """Products as a pass makes them, all parts at the same time."""
    X = np.random.default_rng(0).standard_normal((rows, WIDTH))
    w = np.ones(WIDTH)
    scores = X @ w
    barrier.wait()
    begin = time.perf_counter()
    for _ in range(N_PRODUCTS):
        scores = X @ w
        w = 1e-6 * (scores @ X)
    times.put(time.perf_counter() - begin)
