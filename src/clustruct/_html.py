"""Small escaped tables for notebooks, without colours, so that they fit any theme."""

from collections.abc import Sequence
from html import escape

MOST_ROWS = 30
_CELL = "padding:2px 10px;text-align:{}"


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
