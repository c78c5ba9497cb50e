"""Short vectors and whole matrices: ``kmeans_1d`` against packages that compress models use.

Processor time, not wall-clock, of calls made in turn in one process, each with one thread, so that
the ratio is one of work per core. Numba's compilation is outside the clock. The excess is that of
the weighted inertia over the least one, which ours is: flash1dkmeans and scikit-learn are
heuristics, fast1dkmeans is exact. The time depends on the numbers, so that each figure is the mean
of several vectors; fast1dkmeans, which crashes at times, gets the first one in a process apart.
"""

import os
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import timing
from clustruct import kmeans_1d
from report import Options, Table, Target, milliseconds

LENGTHS = (256, 1024, 4096, 14_336, 65_536, 200_000)
NUMBERS = (2, 4, 8, 16, 64, 256)
ROWS = (4096, 11_008)  # of the matrices of a language model with seven billion weights
N_ROWS = 16
N_VECTORS = 8
OURS = "clustruct"
FLASH = "flash1dkmeans"
SHORT = 0.005  # seconds; shorter calls are repeated in a row
CRASHES = ("fast1dkmeans",)
LONG = 1.0  # seconds; a peer that takes longer for all vectors gets the first one alone
MOST_FOR = {"fast1dkmeans": 20_000}  # longer vectors take it seconds to minutes

Record = dict[str, Any]
Floats = NDArray[np.float64]
Call = Callable[[Floats, Floats | None, int], Any]


def _flash(x: Floats, w: Floats | None, k: int) -> Any:
    """Centres by flash1dkmeans."""
    extra = {} if w is None else {"sample_weights": w}
    return import_module(FLASH).kmeans_1d(x, k, random_state=0, **extra)[0]


def _fast(x: Floats, w: Floats | None, k: int) -> Any:
    """Centres by fast1dkmeans, which has no weights."""
    if w is not None:
        raise NotImplementedError("takes no weights")
    labels = import_module("fast1dkmeans").cluster(x, k)
    if labels.max() >= k:
        raise RuntimeError(f"returned {labels.max() + 1} groups instead of {k}")
    return np.bincount(labels, x) / np.bincount(labels)


def _sklearn(x: Floats, w: Floats | None, k: int) -> Any:
    """Centres by the best of scikit-learn's k-means++ starts, of which its default makes one."""
    made = import_module("sklearn.cluster").KMeans(k, random_state=0)
    return made.fit(x[:, None], sample_weight=w).cluster_centers_[:, 0]


PEERS: dict[str, Call] = {FLASH: _flash, "fast1dkmeans": _fast, "scikit-learn": _sklearn}


def _ours(x: Floats, w: Floats | None, k: int) -> Any:
    return kmeans_1d(x, k, sample_weight=w).centers


def measure(options: Options) -> list[Record]:
    """Vectors of several lengths, then rows of matrices."""
    os.environ.setdefault("NUMBA_NUM_THREADS", "1")
    # A process that has used several threads of OpenMP may not be forked: its children would wait.
    with threadpool_limits(1):
        return _measure(options)


def _measure(options: Options) -> list[Record]:
    records = []
    lengths = LENGTHS[:3] if options.quick else LENGTHS
    for n in lengths:
        for k in NUMBERS:
            if k < n:
                records.append(_vector(n, k, options.repeats))
                print(f"matrices: {_summary(records[-1])}", file=sys.stderr)
    for n in ROWS[: 1 if options.quick else None]:
        records.append(_matrix(n, 16, options.repeats))
        print(f"matrices: {_summary(records[-1])}", file=sys.stderr)
    return records


def _vector(n: int, k: int, repeats: int) -> Record:
    """Vectors of normal numbers without weights, one call each."""
    xs = np.random.default_rng(n).standard_normal((N_VECTORS, n))
    found = _time(xs, [None] * N_VECTORS, k, repeats, lambda: [_ours(x, None, k) for x in xs])
    return {"n": n, "k": k, "rows": 1, "candidates": found}


def _time(
    xs: Floats, ws: Sequence[Floats | None], k: int, repeats: int, ours: Callable[[], object]
) -> dict[str, Record]:
    """Processor seconds a vector of each candidate, calls in turn, and the excess of inertia."""
    x, w = xs[0], ws[0]
    best = weighted_inertia(x, w, _ours(x, w, k))
    found: dict[str, Record] = {OURS: {"excess": 0.0}}
    calls = {OURS: ours}
    for name in PEERS:
        if x.size > MOST_FOR.get(name, x.size):
            found[name] = {"failed": "left out, as one call would take seconds to minutes"}
            continue
        try:
            first, centers = timing.isolated(_probe, name, x, w, k, fresh=False, timeout=60.0)
        except timing.Failure as failure:
            found[name] = {"failed": str(failure)}
            continue
        excess = weighted_inertia(x, w, centers) / best - 1.0
        found[name] = {"excess": excess, "seconds": first}
        if name not in CRASHES and first * len(xs) < LONG:
            calls[name] = lambda call=PEERS[name]: [
                call(a, b, k) for a, b in zip(xs, ws, strict=True)
            ]
    runs: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(repeats):
        for name, call in calls.items():
            runs[name].append(_processor_seconds(call) / len(xs))
    for name, times in runs.items():
        found[name] |= {"runs": times, "seconds": statistics.median(times)}
    return found


def _probe(name: str, x: Floats, w: Floats | None, k: int) -> tuple[float, Floats]:
    """Processor time and centres of a peer, in a process that may crash; one call to compile."""
    peer = PEERS[name]
    peer(x[: 4 * k], None if w is None else w[: 4 * k], k)
    return _processor_seconds(lambda: peer(x, w, k)), np.asarray(peer(x, w, k))


def _processor_seconds(call: Callable[[], object]) -> float:
    """Processor time of one call of as many in a row as take a few milliseconds."""
    start = time.process_time()
    call()
    n_calls = max(1, min(100, int(SHORT / max(time.process_time() - start, 1e-6))))
    start = time.process_time()
    for _ in range(n_calls):
        call()
    return (time.process_time() - start) / n_calls


def weighted_inertia(x: Floats, w: Floats | None, centers: Any) -> float:
    """Weighted sum of squared distances to the nearest centre."""
    centers = np.sort(np.asarray(centers, dtype=np.float64))
    codes = np.searchsorted(0.5 * (centers[1:] + centers[:-1]), x)
    return float(np.average((x - centers[codes]) ** 2, weights=w) * x.size)


def _matrix(n: int, k: int, repeats: int) -> Record:
    """Rows of single precision with weights of their own: our one call against one a row."""
    rng = np.random.default_rng(n)
    x = rng.standard_normal((N_ROWS, n)).astype(np.float32)
    w = rng.random((N_ROWS, n)).astype(np.float32)
    found = _time(
        x.astype(np.float64),
        w.astype(np.float64),
        k,
        repeats,
        lambda: kmeans_1d(x, k, sample_weight=w, n_jobs=1),
    )
    tracemalloc.start()
    kmeans_1d(x, k, sample_weight=w, n_jobs=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    record = {"n": n, "k": k, "rows": N_ROWS, "candidates": found}
    return record | {"bytes_over_matrix": peak / x.nbytes}


def ratio(record: Record, name: str = FLASH) -> float | None:
    """A peer's time over ours, None where it was not measured."""
    found = record["candidates"]
    if "seconds" not in found.get(name, {}):
        return None
    return float(found[name]["seconds"] / found[OURS]["seconds"])


def table(records: list[Record]) -> Table:
    """Milliseconds for one vector or row, ratios and excesses."""
    header = ["n", "k", "rows", OURS]
    for name in PEERS:
        header += [name, "ratio", "excess"]
    rows = []
    for record in records:
        found = record["candidates"]
        row = [f"{record['n']:,}", str(record["k"]), str(record["rows"])]
        row.append(milliseconds(found[OURS]["seconds"]))
        for name in PEERS:
            times = ratio(record, name)
            if times is None:
                row += ["none", "", ""]
            else:
                excess = f"{100 * found[name]['excess']:.2g} %"
                row += [milliseconds(found[name]["seconds"]), f"{times:.2f}", excess]
        rows.append(row)
    return Table(header, rows, _notes(records))


def _notes(records: list[Record]) -> list[str]:
    notes = ["Medians of processor milliseconds for one vector; ratio: the peer's time over ours."]
    for record in records:
        if "bytes_over_matrix" in record:
            share = record["bytes_over_matrix"]
            notes.append(
                f"Rows of {record['n']:,}: our call allocates {share:.2f} times the bytes of the "
                f"{record['rows']} rows in single precision, its result and work space included."
            )
        for name, found in record["candidates"].items():
            if "failed" in found:
                notes.append(
                    f"none: {name}, n = {record['n']:,}, k = {record['k']}: {found['failed']}"
                )
    return notes


def targets(records: list[Record]) -> list[Target]:
    """Twice the speed of flash1dkmeans for vectors, three times for rows."""
    found = []
    for k in NUMBERS:
        ratios = {r["n"]: ratio(r) for r in records if r["rows"] == 1 and r["k"] == k}
        known = {n: value for n, value in ratios.items() if value is not None}
        detail = ", ".join(f"{n:,}: {value:.2f}" for n, value in known.items())
        least = min(known.values()) if known else None
        found.append(Target(f"k = {k}, one vector: {FLASH} / ours", least, 2.0, True, detail))
    for n in ROWS:
        ratios_of_rows = [ratio(r) for r in records if r["rows"] > 1 and r["n"] == n]
        figure = ratios_of_rows[0] if ratios_of_rows else None
        promise = f"rows of {n:,}, k = 16, weighted: {FLASH} / ours"
        found.append(Target(promise, figure, 3.0, True))
    return found


def _summary(record: Record) -> str:
    ours = milliseconds(record["candidates"][OURS]["seconds"])
    times = ratio(record)
    peer = f"{FLASH} not measured" if times is None else f"{FLASH} / ours {times:.2f}"
    return f"n = {record['n']:,}, k = {record['k']}, {record['rows']} rows: {ours} ms, {peer}"
