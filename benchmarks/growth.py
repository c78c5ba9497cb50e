"""How time and memory of a fit grow with the samples, the features, the nonzeros and the groups.

Slopes are of straight lines through the times on logarithmic axes: 1 is linear growth.
"""

import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import timing
from clustruct import FeatureClusterRegressor
from report import Options, Table, Target

SLOPE_LIMIT = 1.2
MEMORY_LIMIT = 2.0  # times X, X included
PATIENCE = 600.0

# What varies -> (samples, features, nonzeros a row or 0 for dense, groups) of each case.
SERIES: dict[str, list[tuple[int, int, int, int]]] = {
    "n, dense": [(n, 100, 0, 8) for n in (10_000, 30_000, 100_000, 300_000)],
    "n, sparse": [(n, 20_000, 50, 8) for n in (5_000, 15_000, 50_000, 150_000)],
    "d, sparse": [(20_000, d, 50, 8) for d in (10_000, 30_000, 100_000, 300_000, 1_000_000)],
    "nonzeros": [(20_000, 20_000, k, 8) for k in (10, 30, 100, 300)],
    "Q": [(20_000, 20_000, 50, q) for q in (2, 4, 8, 16, 32, 64)],
}
LARGE = {"dense": (1_000_000, 100, 0, 8), "sparse": (100_000, 1_000_000, 100, 8)}

Record = dict[str, Any]


def measure(options: Options) -> list[Record]:
    """Times of every series, then time and memory of the two large fits."""
    records = []
    for series, cases in SERIES.items():
        for case in cases[:2] if options.quick else cases:
            seconds = _seconds(case, min(options.repeats, 3))
            records.append({"series": series, "case": case, "seconds": seconds})
            print(f"growth: {series} {case}", file=sys.stderr)
    for name, case in {} if options.quick else LARGE.items():
        record: Record = {"series": f"large, {name}", "case": case}
        record |= timing.isolated(_memory, case, fresh=True, timeout=PATIENCE)
        records.append(record)
    return records


def _draw(case: tuple[int, int, int, int]) -> tuple[Any, np.ndarray]:
    n, d, per_row, q = case
    rng = np.random.default_rng(0)
    w = rng.uniform(-5, 5, q)[rng.integers(0, q, d)]
    if per_row:
        columns = np.sort(rng.integers(0, d, (n, per_row), dtype=np.int32), axis=1)
        rows = np.arange(0, n * per_row + 1, per_row, dtype=np.int32)
        X: Any = sparse.csr_matrix((rng.random(n * per_row), columns.ravel(), rows), shape=(n, d))
    else:
        X = rng.standard_normal((n, d))
    return X, X @ w + rng.standard_normal(n)


def _fit(X: Any, y: np.ndarray, q: int) -> None:
    FeatureClusterRegressor(q, solver="pg").fit(X, y)


def _seconds(case: tuple[int, int, int, int], repeats: int) -> float:
    X, y = _draw(case)
    _fit(X, y, case[3])
    return statistics.median(timing.seconds(lambda: _fit(X, y, case[3])) for _ in range(repeats))


def _memory(case: tuple[int, int, int, int]) -> Record:
    """Time of a fit, and the rise of the resident set during it, in a process of its own."""
    _fit(*_draw((50, 5, 0, 2)), 2)  # whatever is loaded on first use
    X, y = _draw(case)
    size = X.nbytes if case[2] == 0 else X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    seconds, extra = watched(lambda: _fit(X, y, case[3]))
    return {"seconds": seconds, "bytes": size, "extra": extra}


def watched(call: Callable[[], object]) -> tuple[float, int]:
    """Time of a call, and the rise of the resident set during it."""
    before, peak, done = _resident(), [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.002):
            peak[0] = max(peak[0], _resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    begin = time.perf_counter()
    call()
    seconds = time.perf_counter() - begin
    done.set()
    watcher.join()
    return seconds, max(0, peak[0] - before)


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096


def slope(records: list[Record], series: str) -> float | None:
    """Exponent of the growth in the last part of a series, where fixed costs matter least."""
    mine = [record for record in records if record["series"] == series][-3:]
    if len(mine) < 3:
        return None
    column = {"n": 0, "d": 1, "nonzeros": 2, "Q": 3}[series.partition(",")[0]]
    sizes = [record["case"][column] for record in mine]
    times = [record["seconds"] for record in mine]
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def table(records: list[Record]) -> Table:
    """Times, and memory where it was measured."""
    rows = []
    for record in records:
        n, d, per_row, q = record["case"]
        memory = f"{1 + record['extra'] / record['bytes']:.2f}" if "extra" in record else ""
        sizes = [f"{n:,}", f"{d:,}", str(per_row or d), str(q)]
        rows.append([record["series"], *sizes, f"{record['seconds']:.3f}", memory])
    header = ["series", "n", "d", "nonzeros a row", "Q", "seconds", "memory / X"]
    notes = [
        f"growth with {series}: exponent {exponent:.2f}"
        for series in SERIES
        if (exponent := slope(records, series)) is not None
    ]
    return Table(header, rows, notes)


def targets(records: list[Record]) -> list[Target]:
    """Growth is near linear, and large fits take little memory beside X."""
    found = [
        Target(f"growth with {series}: exponent", slope(records, series), SLOPE_LIMIT)
        for series in SERIES
    ]
    for name in LARGE:
        large = [record for record in records if record["series"] == f"large, {name}"]
        used = 1 + large[0]["extra"] / large[0]["bytes"] if large else None
        found.append(Target(f"large, {name}: memory / X, X included", used, MEMORY_LIMIT))
    return found
