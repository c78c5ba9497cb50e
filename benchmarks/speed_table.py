"""The table of exact k-means on the page of benchmarks."""

import textwrap
from pathlib import Path
from typing import Any

import data
import kmeans
from report import milliseconds

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
BEGIN = "<!-- speed table: written by benchmarks/run.py, begin -->"
END = "<!-- speed table: written by benchmarks/run.py, end -->"

Record = dict[str, Any]


def update(records: list[Record], environment: dict[str, Any], path: Path = PAGE) -> None:
    """Put the table between the marks."""
    text = path.read_text(encoding="utf-8")
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{path.name} lacks the lines\n{BEGIN}\n{END}")
    table = "\n".join(speed_table(records, environment))
    path.write_text(f"{head}{BEGIN}\n{table}\n{END}{tail}", encoding="utf-8")


def speed_table(records: list[Record], environment: dict[str, Any]) -> list[str]:
    """Lines of Markdown: our time, the fastest peer's and their ratio for each case."""
    packages = environment["packages"]
    peers = ", ".join(
        f"{name} {packages[name]}"
        for name in ("ckwrap", "ckmeans-1d-dp", "kmeans1d", "jenkspy")
        if packages[name]
    )
    lines = textwrap.wrap(
        "`kmeans_1d` against the fastest of the other packages with an optimal result, in "
        f"milliseconds, and how many times faster it is ({peers}; {environment['cpu']}, "
        f"Python {environment['python']}, NumPy {packages['numpy']}):",
        100,
    )
    for n in (kmeans.SIZES[-1], kmeans.SIZES[0]):
        columns = " | ".join(f"Q = {q}" for q in kmeans.N_CLUSTERS)
        lines += ["", f"| n = {n:,} | {columns} |", "|---|" + "---:|" * len(kmeans.N_CLUSTERS)]
        cases = {(r["data"], r["n_clusters"]): r for r in records if r["n"] == n}
        for shape in data.SHAPES:
            cells = [_cell(cases[shape, q]) for q in kmeans.N_CLUSTERS]
            lines.append(f"| {shape} | {' | '.join(cells)} |")
        sorts = [
            milliseconds(cases["normal", q]["candidates"][kmeans.SORT]["seconds"])
            for q in kmeans.N_CLUSTERS
        ]
        lines.append(f"| *`np.argsort`, normal* | {' | '.join(sorts)} |")
    return lines


def _cell(record: Record) -> str:
    ours = milliseconds(record["candidates"][kmeans.OURS]["seconds"])
    peer, ratio = kmeans.fastest(record), kmeans.ratio(record)
    if peer is None or ratio is None:
        return f"{ours} vs none"
    return f"{ours} vs {milliseconds(peer[1])}, **{ratio:.{0 if ratio >= 10 else 1}f} x**"
