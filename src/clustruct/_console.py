"""What commands print with: tables and progress, as the terminal at hand allows."""

import io
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

_GAP = "  "
_ASCII = str.maketrans("²█", "2#")


class Console:
    """Answers go to standard output, progress to standard error if that is a terminal.

    Parameters
    ----------
    out, err : text streams, optional
        Taken in place of the standard streams. A stream may be None, as Python's own are when they
        were closed before it started; what is written to it is dropped.
    """

    def __init__(self, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self._out = sys.stdout if out is None else out
        self._err = sys.stderr if err is None else err

    @property
    def width(self) -> int:
        """Columns to fill: the terminal's, within reason, or 100 where there is no terminal."""
        is_terminal = self._out is not None and self._out.isatty()
        return max(60, min(120, shutil.get_terminal_size().columns)) if is_terminal else 100

    def say(self, text: str = "") -> None:
        """Print a line."""
        if not self._can_print(text):
            text = text.translate(_ASCII).encode("ascii", "replace").decode("ascii")
        if self._out is not None:
            print(text, file=self._out)

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
        """Print a table, the last column wrapped and left-aligned, the others right-aligned."""
        if title:
            self.say(title)
        if not self._print_rich(header, rows):
            for line in plain_table(header, rows, self.width):
                self.say(line)

    def _print_rich(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
        """Print a table with rich; False if that is not installed or the stream is too plain."""
        try:
            from rich import box
            from rich.console import Console as RichConsole
            from rich.table import Table
        except ImportError:
            return False
        if not self._can_print("─█"):
            return False
        table = Table(box=box.SIMPLE_HEAD)
        for name in header[:-1]:
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column(header[-1])
        for row in rows:
            table.add_row(*row)
        # By way of a string: rich itself would end the program when the reader has gone away.
        page = io.StringIO()
        terminal = self._out is not None and self._out.isatty()
        plain: dict[str, Any] = {"width": self.width, "markup": False, "highlight": False}
        RichConsole(file=page, force_terminal=terminal, **plain).print(table)
        self.say(page.getvalue().removesuffix("\n"))
        return True

    @property
    def is_watched(self) -> bool:
        """Whether somebody can see progress: whether standard error is a terminal."""
        return self._err is not None and self._err.isatty()

    def note(self, text: str) -> None:
        """Print a line for people that is no part of the answer, to standard error."""
        if self._err is not None:
            print(text, file=self._err)

    @contextmanager
    def progress(self, text: str) -> Iterator[None]:
        """Show what is being done while the block runs, on a terminal only."""
        if self._err is None or not self.is_watched:
            yield
            return
        self._err.write(f"{text} ...")
        self._err.flush()
        try:
            yield
        finally:
            self._err.write(f"\r{'':{len(text) + 4}}\r")
            self._err.flush()

    def flush(self) -> None:
        """Hand everything printed so far to the reader, so that an error shows up here."""
        if self._out is not None:
            self._out.flush()

    def abandon(self) -> None:
        """Drop what is still to be printed, for a reader that has gone away."""
        if self._out is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._out.fileno())

    def _can_print(self, text: str) -> bool:
        try:
            text.encode(getattr(self._out, "encoding", None) or "utf-8")
        except UnicodeEncodeError:
            return False
        return True


def plain_table(header: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """The lines of a table in plain text."""
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
