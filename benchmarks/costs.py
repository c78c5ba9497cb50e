"""The cost of a pass over ``X``: constants of this machine, and a model checked at three sizes.

A pass hands a function to every chunk. It costs

    seconds = chunks * task + entries * (entry + miss * away) + chunks * width * partial,

the time of a task, of an entry of ``X`` (read from memory by both products), and of a number of a
partial gradient, which every chunk makes and which are added up. An entry of a sparse matrix has to
find its weight and its place in the gradient: each doubling ``away`` of what these take beyond the
cache of a core costs ``miss`` more, a law found by measuring. Constants come from sizes apart
from those that the model is checked at. Times are of the processor, which other programs on the
machine do not lengthen as much as those of the clock.
"""

import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import timing
from report import Options, Table, Target

PER_ROW = 100  # nonzeros of a sparse row
CHECKED = {  # rows, columns, chunks
    "dense": ((20_000, 500, 10), (40_000, 1000, 20), (60_000, 2000, 30)),
    "sparse": ((50_000, 50_000, 10), (200_000, 200_000, 20), (400_000, 400_000, 30)),
}
# What constants come from: many small chunks, entries near the cache and, of a sparse matrix, far
# from it; and chunks of one row, which are all gradient.
SIZES_OF_CONSTANTS = {
    "dense": ((64 * 64, 16, 64), (20_000, 1500, 4)),
    "sparse": (
        (64 * 64, 200, 64),
        (200_000, 20_000, 4),
        (200_000, 300_000, 4),
        (200_000, 1_000_000, 4),
    ),
}
THIN = (40, 300_000, 40)
TOLERANCE = 0.25
# Bytes from which on times were found to rise, and those of a column: two weights and a number of
# the gradient.
CACHE, COLUMN = 1 << 21, 24

Record = dict[str, Any]
Size = tuple[int, int, int]


class Constants(NamedTuple):
    """Seconds of the processor."""

    task: float
    entry: float
    miss: float
    partial: float

    def seconds(self, entries: float, width: float, chunks: float) -> float:
        """Of one pass by one worker."""
        entry = self.entry + self.miss * away(width)
        return chunks * self.task + entries * entry + chunks * width * self.partial


def away(width: float) -> float:
    """Doublings of what the columns take, beyond the cache."""
    return max(0.0, float(np.log2(COLUMN * width / CACHE)))


def measure(options: Options) -> list[Record]:
    """Constants for both kinds of matrix, and passes at three sizes."""
    records = []
    for kind, sizes in CHECKED.items():
        records += timing.isolated(_of_kind, kind, sizes, max(3, options.repeats), fresh=True)
        print(f"costs: {kind}", file=sys.stderr)
    return records


def table(records: list[Record]) -> Table:
    """Predicted and measured, and the constants below."""
    rows = [
        (
            record["kind"],
            f"{record['rows']:,} x {record['width']:,}",
            str(record["chunks"]),
            f"{1e3 * record['predicted']:.1f}",
            f"{1e3 * record['measured']:.1f}",
            f"{record['predicted'] / record['measured'] - 1:+.0%}",
        )
        for record in records
    ]
    notes = [
        f"{kind}: {1e6 * c['task']:.0f} us a task, {1e9 * c['entry']:.2f} ns an entry, "
        f"{1e9 * c['miss']:.2f} ns more a doubling beyond the cache, "
        f"{1e9 * c['partial']:.2f} ns a number of a partial gradient"
        for kind, c in {record["kind"]: record["constants"] for record in records}.items()
    ]
    return Table(("kind", "X", "chunks", "predicted ms", "measured ms", "off"), rows, notes)


def targets(records: list[Record]) -> list[Target]:
    """The model holds."""
    off = [abs(record["predicted"] / record["measured"] - 1.0) for record in records]
    return [Target("error of the model of a pass", max(off, default=None), TOLERANCE)]


def _of_kind(kind: str, sizes: tuple[Size, ...], repeats: int) -> list[Record]:
    import dask

    apart = SIZES_OF_CONSTANTS[kind]
    plans = [*((kind, *size) for size in (*apart, *sizes)), ("sparse", *THIN)]
    with dask.config.set(scheduler="synchronous"):
        *times, thin = _passes(plans, repeats)
    constants = _constants(kind, dict(zip(apart, times, strict=False)), thin)
    return [
        {
            "kind": kind,
            "rows": n,
            "width": d,
            "chunks": chunks,
            "predicted": constants.seconds(_entries(kind, n, d), d, chunks),
            "measured": measured,
            "constants": constants._asdict(),
        }
        for (n, d, chunks), measured in zip(sizes, times[len(apart) :], strict=True)
    ]


def _entries(kind: str, n: int, d: int) -> int:
    return n * d if kind == "dense" else n * PER_ROW


def _constants(kind: str, times: dict[Size, float], thin: float) -> Constants:
    """From passes each of which is nearly all of one kind of cost."""
    small, *large = times
    task = times[small] / small[2]
    partial = max(0.0, thin / THIN[2] - task) / THIN[1]

    def entry(size: Size) -> float:
        n, d, chunks = size
        return (times[size] - chunks * task - chunks * d * partial) / _entries(kind, n, d)

    near, far = entry(large[0]), large[1:]
    miss = [(entry(size) - near) / away(size[1]) for size in far]
    return Constants(task, near, float(np.mean(miss)) if far else 0.0, partial)


def _passes(plans: list[tuple[str, int, int, int]], repeats: int) -> list[float]:
    """Seconds of a product with the second derivative at each size, the least of some.

    Sizes take turns: whoever else uses the caches for a while is felt by all of them.
    """
    works = [_work(*plan) for plan in plans]
    times: list[list[float]] = [[] for _ in plans]
    for _ in range(repeats + 1):
        for mine, work in zip(times, works, strict=True):
            start = time.process_time()
            work()
            mine.append(time.process_time() - start)
    return [min(mine[1:]) for mine in times]


def _work(kind: str, n: int, d: int, chunks: int) -> Callable[[], Any]:
    """A pass over a matrix."""
    from clustruct.design.partitioned.blocks import BlockDesign

    rng = np.random.default_rng(0)
    heights = [n // chunks] * chunks
    design = BlockDesign([_block(kind, rows, d, rng) for rows in heights], heights, d)
    w = rng.standard_normal((d, 2))

    def both(X: Any) -> Any:
        moved = X.scores(w)
        return X.adjoint(moved[:, 1:])

    return lambda: design.sweep(both)


def _block(kind: str, n: int, d: int, rng: np.random.Generator) -> Any:
    if kind == "dense":
        return rng.standard_normal((n, d))
    per_row = min(PER_ROW, d)
    columns = rng.integers(0, d, (n, per_row), dtype=np.int32)
    columns.sort(axis=1)
    data = rng.standard_normal(n * per_row)
    return sparse.csr_matrix((data, columns.reshape(-1), np.arange(n + 1) * per_row), shape=(n, d))
