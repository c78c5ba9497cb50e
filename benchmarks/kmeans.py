"""Speed of ``kmeans_1d`` against other packages and against ``numpy.argsort``."""

import statistics
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import data
import timing
from clustruct import kmeans_1d
from peers import PEERS, Floats, inertia
from report import Options, Table, Target, milliseconds

SIZES = (5623, 100_000, 1_000_000)
N_CLUSTERS = (5, 15, 64)
CAP = 15.0  # seconds; a peer that would need more for one call is left out, and the table says so
PATIENCE = 4  # a call that takes this many times the cap after all is stopped
LONG = 4.0  # seconds; a call that takes longer is made once, without another to warm up
TOLERANCE = 1e-9  # relative excess of the inertia from which on an answer counts as worse
TINY = sys.float_info.min

OURS = "clustruct"
SORT = "argsort"
EASY = ("normal", "uniform")

Record = dict[str, Any]


def measure(options: Options) -> list[Record]:
    """Time and judge every case; sizes ascend, so that long calls are foreseen."""
    records: list[Record] = []
    sizes = SIZES[: 2 if options.quick else None] if options.size is None else (options.size,)
    for n in sizes:
        for shape in data.SHAPES:
            x = data.make(shape, n)
            for q in N_CLUSTERS:
                earlier = [r for r in records if (r["data"], r["n_clusters"]) == (shape, q)]
                records.append(_case(x, shape, q, earlier, options.repeats))
                print(f"kmeans: {_summary(records[-1])}", file=sys.stderr)
    return records


def _case(x: Floats, shape: str, q: int, earlier: list[Record], repeats: int) -> Record:
    """One row of the table."""
    best = inertia(x, kmeans_1d(x, q).labels, q)
    found: dict[str, Record] = {OURS: {"inertia": best}, SORT: {}}
    calls: dict[str, Callable[[], object]] = {
        OURS: partial(kmeans_1d, x, q),
        SORT: partial(np.argsort, x),
    }
    first = {name: timing.seconds(call) for name, call in calls.items()}
    for name, peer in PEERS.items():
        forecast = _forecast(name, x.size, earlier)
        if forecast > CAP:
            found[name] = {"skipped": f"would take about {forecast:.0f} s for one call"}
            continue
        try:
            # In a process of its own: a peer may crash or run away.
            first[name], total = timing.isolated(
                _probe, name, x, q, fresh=False, timeout=PATIENCE * CAP
            )
        except timing.Failure as failure:
            found[name] = {"failed": str(failure)}
            continue
        found[name] = {"inertia": total, "excess": (total - best) / max(best, TINY)}
        if first[name] < LONG:
            calls[name] = partial(peer.call, x, q)
    times = timing.interleaved(calls, first, repeats)
    for name in first:
        runs = times.get(name, [first[name]])
        found[name] |= {"seconds": statistics.median(runs), "runs": runs}
    return {"n": x.size, "data": shape, "n_clusters": q, "candidates": found}


def _probe(name: str, x: Floats, q: int) -> tuple[float, float]:
    """Time of the first call of a peer, and the inertia of its answer."""
    peer = PEERS[name]
    peer.call(x[: 2 * q], min(q, 2))  # loads the package
    results: list[Any] = []
    elapsed = timing.seconds(lambda: results.append(peer.call(x, q)))
    return elapsed, inertia(x, peer.labels(x, results[0]), q)


def _forecast(name: str, n: int, earlier: list[Record]) -> float:
    """Time that a call should take, by the time for the largest smaller array."""
    for record in reversed(earlier):
        found = record["candidates"][name]
        if "seconds" in found:
            return float(found["seconds"] * (n / record["n"]) ** PEERS[name].growth)
    return 0.0


def is_worse(found: Record) -> bool:
    """Whether a peer missed the optimum."""
    return bool(found.get("excess", 0.0) > TOLERANCE)


def fastest(record: Record, default: bool = False) -> tuple[str, float] | None:
    """Name and time of the fastest peer with the right answer, perhaps with its own settings."""
    right = {
        name: found["seconds"]
        for name, found in record["candidates"].items()
        if name in PEERS and "seconds" in found and not is_worse(found)
        if PEERS[name].default or not default
    }
    return min(right.items(), key=lambda item: item[1]) if right else None


def ratio(record: Record, default: bool = False) -> float | None:
    """How many times the fastest right peer's time is ours; None if no peer was right."""
    peer = fastest(record, default)
    return None if peer is None else peer[1] / float(record["candidates"][OURS]["seconds"])


def sort_ratio(record: Record) -> float:
    """Our time as a multiple of that of ``numpy.argsort``."""
    found = record["candidates"]
    return float(found[OURS]["seconds"] / found[SORT]["seconds"])


def table(records: list[Record]) -> Table:
    """Times in milliseconds, a row for each case."""
    peers = list(PEERS)
    header = ["n", "data", "Q", OURS, SORT, "ours/sort"]
    header += [name.replace(", loglinear", "*") for name in peers] + ["peer/ours"]
    rows = []
    for record in records:
        found = record["candidates"]
        times_ours = ratio(record)
        rows.append(
            [f"{record['n']:,}", record["data"], str(record["n_clusters"])]
            + [milliseconds(found[name]["seconds"]) for name in (OURS, SORT)]
            + [f"{sort_ratio(record):.2f}"]
            + [_cell(found[name]) for name in peers]
            + ["none" if times_ours is None else f"{times_ours:.1f}"]
        )
    return Table(header, rows, _notes(records))


def _cell(found: Record) -> str:
    if "skipped" in found:
        return f"> {CAP:g} s"
    if "failed" in found:
        return "FAILED"
    return milliseconds(found["seconds"]) + (" worse" if is_worse(found) else "")


def _notes(records: list[Record]) -> list[str]:
    notes = [
        "Medians in milliseconds. peer/ours: the fastest peer with the right answer over ours.",
        "*: with method='loglinear', which is not the default.",
        f"> {CAP:g} s: left out, as one call would take longer by the time for a smaller array.",
        f"worse: the answer's inertia is above ours by more than {TOLERANCE:g}, relatively.",
    ]
    for record in records:
        for name, found in record["candidates"].items():
            case = f"{name} at n = {record['n']:,}, {record['data']}, Q = {record['n_clusters']}"
            if "failed" in found:
                notes.append(f"FAILED: {case}: {found['failed']}")
            elif is_worse(found):
                notes.append(f"worse: {case}: inertia above ours by {found['excess']:.2g}")
    return notes


def targets(records: list[Record]) -> list[Target]:
    """The promises about speed, and that no peer's answer beats ours."""
    found = []
    groups = (
        (SIZES[-1], "normal and uniform", EASY, 10),
        (SIZES[-1], "other shapes", tuple(set(data.SHAPES) - set(EASY)), 4),
        (SIZES[0], "every shape", tuple(data.SHAPES), 8),
    )
    for n, words, shapes, limit in groups:
        for q in N_CLUSTERS:
            cases = [r for r in records if (r["n"], r["n_clusters"]) == (n, q)]
            cases = [r for r in cases if r["data"] in shapes and ratio(r) is not None]
            figure, detail = _least(cases)
            promise = f"n = {n:,}, {words}, Q = {q}: fastest peer / ours"
            found.append(Target(promise, figure, limit, True, detail))
    for q in N_CLUSTERS:
        key = (SIZES[-1], "normal", q)
        ratios = [sort_ratio(r) for r in records if (r["n"], r["data"], r["n_clusters"]) == key]
        promise = f"n = {SIZES[-1]:,}, normal, Q = {q}: ours / argsort"
        found.append(Target(promise, ratios[0] if ratios else None, 2.5))
    excesses = [f["excess"] for r in records for f in r["candidates"].values() if "excess" in f]
    promise = "every case: relative excess of our inertia over the best peer's"
    found.append(Target(promise, 0.0 - min(excesses, default=0.0), TOLERANCE))
    return found


def _least(cases: list[Record]) -> tuple[float | None, str]:
    """The least ratio of some cases, and all of them in words."""
    if not cases:
        return None, ""
    ratios = {record["data"]: ratio(record) or 0.0 for record in cases}
    detail = ", ".join(f"{name} {ratios[name]:.1f}" for name in data.SHAPES if name in ratios)
    default = min(ratio(record, default=True) or np.inf for record in cases)
    return min(ratios.values()), f"{detail}; least against default settings {default:.1f}"


def _summary(record: Record) -> str:
    peer = fastest(record)
    ours = milliseconds(record["candidates"][OURS]["seconds"])
    rival = "no peer right" if peer is None else f"{peer[0]} {milliseconds(peer[1])} ms"
    case = f"n = {record['n']:,}, {record['data']}, Q = {record['n_clusters']}"
    return f"{case}: ours {ours} ms, {rival}"
