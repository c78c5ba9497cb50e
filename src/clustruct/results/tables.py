"""Tables of results, in notebooks and as text."""

import shutil
import sys
import textwrap
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

MOST_ROWS = 30
MOST_MEMBERS = 20  # names of a group that a table shows
_GAP = "  "
_CELL = "padding:2px 10px;text-align:{}"  # without colours, so that it fits any theme

Group = TypeVar("Group")


def number(value: object) -> str:
    """A float with four digits; anything else as text."""
    if isinstance(value, bool) or not isinstance(value, float):
        return str(value)
    return f"{value:.4g}"


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table as HTML; of more than `MOST_ROWS` rows, those in the middle are left out."""
    head = "".join(f'<th style="{_CELL.format("left")}">{escape(name)}</th>' for name in header)
    lines = [_row(row) for row in rows]
    if len(rows) > MOST_ROWS:
        half = MOST_ROWS // 2
        left_out = f'<tr><td colspan="{len(header)}"><i>{len(rows) - 2 * half} more</i></td></tr>'
        lines = [*lines[:half], left_out, *lines[-half:]]
    caption = f'<caption style="text-align:left"><b>{escape(title)}</b></caption>'
    return (
        f'<table style="border-collapse:collapse">{caption}'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    )


def _row(row: Sequence[object]) -> str:
    cells = []
    for value in row:
        numeric = isinstance(value, (int, float)) and not isinstance(value, bool)
        style = _CELL.format("right" if numeric else "left")
        cells.append(f'<td style="{style}">{escape(number(value))}</td>')
    return f"<tr>{''.join(cells)}</tr>"


class ShownAsTable:
    """A result that is shown as a table, in notebooks and as text."""

    @abstractmethod
    def _table(self) -> tuple[str, Sequence[str], list[Sequence[object]]]:
        """Title, header and rows."""

    def _repr_html_(self) -> str:
        return table(*self._table())

    def __repr__(self) -> str:
        title, header, rows = self._table()
        cells = [[number(value) for value in row] for row in rows]
        if len(cells) > MOST_ROWS:
            half = MOST_ROWS // 2
            left_out = [*["..."] * (len(header) - 1), f"{len(cells) - 2 * half} more"]
            cells = [*cells[:half], left_out, *cells[-half:]]
        lines = textwrap.wrap(title, _width(), break_long_words=False)
        return "\n".join([*lines, "", *plain_table(header, cells, _width())]).rstrip()


class GroupTable(ShownAsTable, list[Group]):
    """A list of groups that is shown as a table."""


class ClassTable(GroupTable[Group]):
    """A table of groups whose weights may separate classes."""

    def __init__(self, iterable: Iterable[Group] = (), classes: Iterable[str] = ()) -> None:
        super().__init__(iterable)
        self.classes = tuple(classes)


def _width() -> int:
    """Columns of text to fill: the terminal's, within reason, or 100 where there is no terminal."""
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    return max(60, min(120, shutil.get_terminal_size().columns)) if is_terminal else 100


def plain_table(header: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """The lines of a table in plain text, the last column wrapped and left-aligned."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)][:-1]
    room = max(20, width - sum(widths) - len(_GAP) * len(widths))

    def lines(row: Sequence[str]) -> Iterator[str]:
        margin = _GAP.join(cell.rjust(size) for cell, size in zip(row, widths, strict=False))
        for text in textwrap.wrap(row[-1], room) or [""]:
            yield f"{margin}{_GAP}{text}".rstrip()
            margin = " " * len(margin)

    body = [line for row in rows for line in lines(row)]
    rule = "-" * max(map(len, [*lines(header), *body]))
    return [*lines(header), rule, *body, ""]


def plural(count: int, thing: str) -> str:
    """A count with its noun, such as "1 group" or "3 groups"."""
    return f"{count:,} {plural_word(count, thing)}"


def plural_word(count: int, thing: str) -> str:
    """The noun in singular or plural."""
    return thing if count == 1 else f"{thing}s"


def classes_note(classes: Sequence[str], n_outputs: int) -> str:
    """The meaning of the sign of weights for the classes, to follow a title."""
    if n_outputs == 1 and len(classes) == 2:
        return f"; positive weights speak for {classes[1]}, negative ones for {classes[0]}"
    return "; positive weights speak for a class, negative ones against it" if classes else ""


def largest(values: NDArray[Any], names: Sequence[str], most: int) -> str:
    """The values of largest magnitude, with their names."""
    order = np.argsort(-np.abs(values), kind="stable")[:most]
    return ", ".join(f"{names[j]} {values[j]:+.3g}" for j in order if values[j])


def shown_weight(weight: float | NDArray[Any]) -> float | str:
    """A weight for a table: one number, or several in a row."""
    if np.ndim(weight) == 0:
        return float(weight)
    return ", ".join(f"{value:.4g}" for value in np.asarray(weight).reshape(-1))


def some_of(names: Iterable[str]) -> str:
    """The first names, and how many more there are."""
    every = list(names)
    more = f", and {len(every) - MOST_MEMBERS} more" if len(every) > MOST_MEMBERS else ""
    return ", ".join(every[:MOST_MEMBERS]) + more


def scores_table(title: str, rows: list[dict[str, Any]]) -> str:
    """Candidates of a search without single folds, the chosen one first, then the best."""
    shown = [
        {
            **{name: value for name, value in row.items() if not name.startswith("fold")},
            "chosen": "yes" if row["chosen"] else "",
        }
        for row in sorted(rows, key=lambda row: (not row["chosen"], -row["mean_score"]))
    ]
    return table_of(f"{title}, the best first", shown)


def table_of(title: str, rows: list[dict[str, Any]]) -> str:
    """Dictionaries with the same keys, as a table."""
    return table(title, [name.replace("_", " ") for name in rows[0]], [[*r.values()] for r in rows])
