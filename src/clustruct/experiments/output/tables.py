"""Tables as Markdown and as CSV."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from clustruct.experiments.comparison import Comparison, Entry
from clustruct.experiments.experiment import PlainTable, Row

__all__ = [
    "comparison_csv",
    "comparison_markdown",
    "plain_csv",
    "plain_markdown",
    "raw_csv",
]

MARKS = {"agrees": "=", "better": "↓ better", "worse": "↑ worse"}


def comparison_markdown(comparison: Comparison) -> str:
    """A comparison as Markdown: ours, the paper's and the verdict in each cell."""
    header = [comparison.quantity, *comparison.columns]
    rows = [
        [
            f"**{printed}**",
            *(_cell(comparison.entry(method, column)) for column in comparison.columns),
        ]
        for method, printed in comparison.methods.items()
    ]
    return _markdown(header, rows)


def _cell(entry: Entry) -> str:
    if entry.ours is None:
        return f"not measured; paper {entry.paper}" if entry.paper else "not measured"
    if entry.paper is None:
        return str(entry.ours)
    whose = f"paper's best, {entry.rival.upper()}" if entry.rival else "paper"
    mark = MARKS.get(entry.verdict, entry.verdict)
    return f"{entry.ours}<br>{whose} {entry.paper}<br>{mark}"


def comparison_csv(comparison: Comparison) -> str:
    """A comparison as CSV, one line for each cell."""
    header = ["method", "column", "ours_mean", "ours_deviation", "ours_count"]
    header += ["paper_mean", "paper_deviation", "paper_count", "paper_method", "verdict"]
    rows = []
    for entry in comparison.entries:
        figures = [
            value
            for figure in (entry.ours, entry.paper)
            for value in ((figure.mean, figure.deviation, figure.count) if figure else ("", "", ""))
        ]
        whose = entry.rival or (entry.method if entry.paper else "")
        rows.append([entry.method, entry.column, *figures, whose, entry.verdict])
    return _csv(header, rows)


def plain_markdown(table: PlainTable) -> str:
    """A table without figures of the paper, as Markdown."""
    return _markdown(table.header, table.rows)


def plain_csv(table: PlainTable) -> str:
    """A table without figures of the paper, as CSV."""
    return _csv(table.header, table.rows)


def raw_csv(rows: Sequence[Row]) -> str:
    """One line for each repetition; nested values get names like ``errors.pg``."""
    flat = [
        {
            **row.cell,
            "repetition": row.repetition,
            "seconds": row.seconds,
            **_flattened(row.values),
        }
        for row in rows
    ]
    header = list(dict.fromkeys(name for line in flat for name in line))
    return _csv(header, [[line.get(name, "") for name in header] for line in flat])


def _flattened(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= _flattened(value, f"{prefix}{name}.")
        elif isinstance(value, Sequence) and not isinstance(value, str):
            items = {str(i): item for i, item in enumerate(value)}
            flat |= _flattened(items, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def _markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return "\n".join([line(header), line(["---"] * len(header)), *map(line, rows)]) + "\n"


def _csv(header: Sequence[Any], rows: Sequence[Sequence[Any]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return buffer.getvalue()
