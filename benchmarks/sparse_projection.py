"""Speed of the sparse projection against the plain one."""

import statistics
from functools import partial
from typing import Any

import data
import timing
from clustruct import project_clustered
from report import Options, Table, Target, milliseconds

N_CLUSTERS = (5, 15)
KEPT = 5  # one entry in so many may be nonzero
LIMIT = 3.0

Record = dict[str, Any]


def measure(options: Options) -> list[Record]:
    """Time both projections for every shape."""
    size = 100_000 if options.quick else 1_000_000
    return [_case(shape, size, q, options.repeats) for shape in data.SHAPES for q in N_CLUSTERS]


def _case(shape: str, size: int, q: int, repeats: int) -> Record:
    w = data.make(shape, size)
    runs = timing.compare(
        {
            "plain": partial(project_clustered, w, q),
            "sparse": partial(project_clustered, w, q, n_nonzero=size // KEPT),
        },
        repeats,
    )
    medians = {name: statistics.median(times) for name, times in runs.items()}
    case = {"d": size, "k": size // KEPT, "data": shape, "n_clusters": q}
    return case | {"seconds": medians, "runs": runs}


def ratio(record: Record) -> float:
    """Time of the sparse projection as a multiple of the plain one's."""
    return float(record["seconds"]["sparse"] / record["seconds"]["plain"])


def table(records: list[Record]) -> Table:
    """Times in milliseconds, a row for each case."""
    rows = [
        [f"{record['d']:,}", f"{record['k']:,}", record["data"], str(record["n_clusters"])]
        + [milliseconds(record["seconds"][name]) for name in ("plain", "sparse")]
        + [f"{ratio(record):.2f}"]
        for record in records
    ]
    return Table(["d", "k", "data", "Q", "plain", "sparse", "sparse/plain"], rows)


def targets(records: list[Record]) -> list[Target]:
    """The sparse projection takes at most three times as long, at full size."""
    found = []
    for q in N_CLUSTERS:
        cases = [r for r in records if (r["d"], r["n_clusters"]) == (1_000_000, q)]
        ratios = {record["data"]: ratio(record) for record in cases}
        detail = ", ".join(f"{name} {value:.2f}" for name, value in ratios.items())
        promise = f"d = 1,000,000, k = 200,000, Q = {q}, every shape: sparse / plain"
        found.append(Target(promise, max(ratios.values(), default=None), LIMIT, detail=detail))
    return found
