"""Peak memory of a call beyond its input, in bytes for each element.

Every array counts that the call makes, its result included; the input (values, and weights where
there are any) does not. Two measures: ``tracemalloc`` sees what goes through Python and NumPy, the
resident set of a fresh process sees everything.
"""

import math
import sys
import tracemalloc
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import data
import timing
from clustruct import kmeans_1d, project_clustered
from report import Options, Table, Target

N_CLUSTERS = (5, 15, 64, 1000, 20_000)
KEPT = 5
LIMIT = 120.0
MOST = 2 << 30  # bytes of address space for a call
PATIENCE = 60.0  # seconds for a call
CALLS = ("kmeans_1d", "kmeans_1d, weighted", "project_clustered", "project_clustered, sparse")

Record = dict[str, Any]


def measure(options: Options) -> list[Record]:
    """Every call and Q on normal data, and the other shapes where memory could depend on them."""
    sizes = (100_000,) if options.quick else (100_000, 1_000_000)
    cases = [(call, "normal", n, q) for n in sizes for call in CALLS for q in N_CLUSTERS]
    others = [shape for shape in data.SHAPES if shape != "normal"]
    calls = ("kmeans_1d", "project_clustered, sparse")
    cases += [(call, shape, sizes[-1], q) for call in calls for shape in others for q in (15, 1000)]
    records = []
    for call, shape, n, q in cases:
        record: Record = {"call": call, "data": shape, "n": n, "n_clusters": q}
        try:
            record |= timing.isolated(_extra, call, shape, n, q, fresh=True, timeout=PATIENCE)
        except timing.Failure as failure:
            record["failed"] = str(failure)
        records.append(record)
        print(f"memory: {call}, {shape}, n = {n:,}, Q = {q:,}", file=sys.stderr)
    return records


def _extra(call: str, shape: str, n: int, q: int) -> Record:
    """Peak extra memory in bytes, by tracemalloc and by resident set."""
    _limit_memory()
    x = data.make(shape, n)
    weights = np.random.default_rng(1).random(n) + 0.5
    _run(call, x[:1000], weights[:1000], min(q, 100))  # whatever is loaded on first use
    before = _resident("VmRSS")
    _run(call, x, weights, q)
    peak = _resident("VmHWM")
    tracemalloc.start()
    _run(call, x, weights, q)
    traced = tracemalloc.get_traced_memory()[1]
    resident = None if before is None or peak is None else peak - before
    return {"traced": traced, "resident": resident}


def _limit_memory() -> None:
    """Let a call that wants far too much fail, rather than the machine."""
    with suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MOST, MOST))


def _run(call: str, x: Any, weights: Any, q: int) -> None:
    if call == "kmeans_1d":
        kmeans_1d(x, q)
    elif call == "kmeans_1d, weighted":
        kmeans_1d(x, q, sample_weight=weights)
    elif call == "project_clustered":
        project_clustered(x, q)
    else:
        project_clustered(x, q, n_nonzero=x.size // KEPT)


def _resident(field: str) -> int | None:
    """Memory now (VmRSS) or at its highest (VmHWM) in bytes.

    Not by ``resource.getrusage`` where that can be helped: on Linux its peak outlives the start of
    a new program, so it would report that of the parent.
    """
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return _peak_by_rusage()
    sizes = [line.split()[1] for line in lines if line.startswith(f"{field}:")]
    return 1024 * int(sizes[0]) if sizes else None


def _peak_by_rusage() -> int | None:
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else 1024 * peak)


def per_element(record: Record) -> float:
    """The larger of the two measures, in bytes for each element; infinite where it failed."""
    if "failed" in record:
        return math.inf
    return float(max(record["traced"], record["resident"] or 0) / record["n"])


def table(records: list[Record]) -> Table:
    """Bytes an element, a row for each case."""
    rows = [
        [record["call"], record["data"], f"{record['n']:,}", f"{record['n_clusters']:,}"]
        + [_cell(record, measure) for measure in ("traced", "resident")]
        for record in records
    ]
    notes = [
        "Bytes an element at the peak: all arrays beyond the input, the result included (labels",
        "and, for projections, the point take 8 each). Resident: of a fresh process.",
    ]
    failures = sorted({record["failed"] for record in records if "failed" in record})
    room = f"a call is given {MOST >> 30} GiB and {PATIENCE:g} s"
    notes += [f"FAILED ({room}): {failure}" for failure in failures]
    return Table(["call", "data", "n", "Q", "traced", "resident"], rows, notes)


def _cell(record: Record, measure: str) -> str:
    if "failed" in record:
        return "FAILED"
    return "unknown" if record[measure] is None else f"{record[measure] / record['n']:.1f}"


def targets(records: list[Record]) -> list[Target]:
    """No call takes more than its share, whatever Q is."""
    found = []
    for call in CALLS:
        cases = [record for record in records if record["call"] == call]
        worst = max(cases, key=per_element)
        detail = f"worst at n = {worst['n']:,}, {worst['data']}, Q = {worst['n_clusters']:,}"
        promise = f"{call}, every n and Q: peak bytes an element"
        found.append(Target(promise, per_element(worst), LIMIT, detail=detail))
    return found
