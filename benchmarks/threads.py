"""Two calls at once, in two threads, against one call alone.

The least time of the repeats counts: other programs on the machine can only make it longer, and
those on the second core would be taken for a lock. ``numpy.sort``, which holds no lock, shows what
the machine allows.
"""

import os
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import data
import timing
from clustruct import kmeans_1d
from report import Options, Table, Target, milliseconds

N_CLUSTERS = (5, 15, 64)
CALLS = 5  # in a row, so that starting a thread weighs nothing
SORT = "numpy.sort"
LIMIT = 1.5  # one call's time would be 1, and 2 if the calls had to wait for each other

Record = dict[str, Any]


def measure(options: Options) -> list[Record]:
    """Time one thread and two, in turn."""
    if (os.cpu_count() or 1) < 2:
        return []
    n = 100_000 if options.quick else 1_000_000
    arrays = [data.make("normal", n, seed) for seed in (0, 1)]
    works: dict[str, Callable[[Any], object]] = {
        f"kmeans_1d, Q = {q}": partial(kmeans_1d, n_clusters=q) for q in N_CLUSTERS
    }
    works[SORT] = np.sort
    records = []
    for name, work in works.items():
        runs = timing.compare(
            {
                "one": partial(_in_threads, work, arrays[:1]),
                "two": partial(_in_threads, work, arrays),
            },
            options.repeats,
        )
        least = {key: min(times) / CALLS for key, times in runs.items()}
        records.append({"n": n, "call": name, "seconds": least, "runs": runs})
    return records


def _in_threads(work: Callable[[Any], object], arrays: list[Any]) -> None:
    def repeat(x: Any) -> None:
        for _ in range(CALLS):
            work(x)

    workers = [threading.Thread(target=repeat, args=(x,)) for x in arrays]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def ratio(record: Record) -> float:
    """Time of two calls at once as a multiple of one call's."""
    return float(record["seconds"]["two"] / record["seconds"]["one"])


def table(records: list[Record]) -> Table:
    """Times in milliseconds, a row for each call."""
    rows = [
        [record["call"], f"{record['n']:,}"]
        + [milliseconds(record["seconds"][name]) for name in ("one", "two")]
        + [f"{ratio(record):.2f}"]
        for record in records
    ]
    notes = [] if rows else ["left out: this machine has one core"]
    return Table(["call", "n", "one alone", "two at once", "two/one"], rows, notes)


def targets(records: list[Record]) -> list[Target]:
    """Two threads take about the time of one."""
    figure = max((ratio(r) for r in records if r["call"] != SORT), default=None)
    detail = ", ".join(f"{r['call']}: {ratio(r):.2f}" for r in records)
    return [Target("two threads at once / one alone", figure, LIMIT, detail=detail)]
