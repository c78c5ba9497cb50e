"""Tables as Markdown and as CSV."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clustruct.experiments.comparison import Comparison, Entry, Figure

MARKS = {"agrees": "=", "better": "↓ better", "worse": "↑ worse"}


@dataclass(frozen=True)
class Table:
    """A table with a title."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def markdown(self) -> str:
        """The table in Markdown, without its title."""

        def line(cells: Sequence[str]) -> str:
            return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

        rule = line(["---"] * len(self.header))
        return "\n".join([line(self.header), rule, *map(line, self.rows)]) + "\n"

    def csv(self) -> str:
        """The table as CSV, without its title."""
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="\n").writerows([self.header, *self.rows])
        return buffer.getvalue()


def comparison_table(comparison: Comparison) -> Table:
    """A comparison to read: a line for the paper, one for ours and one for the verdict."""
    body: list[list[str]] = []
    for name, printed in comparison.methods.items():
        entries = [comparison.entry(name, column) for column in comparison.columns]
        lines = {
            "paper": [_papers(entry, comparison.methods) for entry in entries],
            "ours": [_figure(entry.ours) for entry in entries],
            "verdict": [MARKS.get(entry.verdict, entry.verdict) for entry in entries],
        }
        body += [
            [f"**{printed}**" if line == "paper" else "", line, *cells]
            for line, cells in lines.items()
        ]
    return Table(comparison.title, [comparison.quantity, "", *comparison.columns], body)


def _papers(entry: Entry, methods: Mapping[str, str]) -> str:
    """The paper's figure, with the name of its method if that is another one."""
    return _figure(entry.paper) + (f"<br>by {methods[entry.rival]}" if entry.rival else "")


def _figure(figure: Figure | None) -> str:
    """A figure that stays on one line."""
    return "" if figure is None else str(figure).replace(" ", "\N{NO-BREAK SPACE}")


def entries_table(comparison: Comparison) -> Table:
    """A comparison to compute with, a row for each cell."""
    header = ["method", "column", "ours_mean", "ours_deviation", "ours_count"]
    header += ["paper_mean", "paper_deviation", "paper_count", "paper_method", "verdict"]
    body = []
    for entry in comparison.entries:
        row: list[Any] = [entry.method, entry.column]
        for figure in (entry.ours, entry.paper):
            row += [figure.mean, figure.deviation, figure.count] if figure else ["", "", ""]
        whose = entry.rival or (entry.method if entry.paper else "")
        body.append([*row, whose, entry.verdict])
    return Table(comparison.title, header, body)


def records_table(title: str, records: Iterable[Mapping[str, Any]]) -> Table:
    """A row for each record; nested values get names like ``errors.pg``."""
    flat = [dict(_flattened(record, "")) for record in records]
    header = list(dict.fromkeys(name for line in flat for name in line))
    return Table(title, header, [[line.get(name, "") for name in header] for line in flat])


def _flattened(value: Any, name: str) -> Iterable[tuple[str, Any]]:
    """The name and value of each leaf."""
    if isinstance(value, list | tuple):
        value = {str(i): item for i, item in enumerate(value)}
    if not isinstance(value, Mapping):
        yield name, value
        return
    for key, item in value.items():
        yield from _flattened(item, f"{name}.{key}" if name else key)
