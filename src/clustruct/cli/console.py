"""What commands print with: results, tables, notes and progress."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

from clustruct._extras import load_extra
from clustruct._progress import Lines, Progress, telling
from clustruct.cli.messages import in_one_line, note, printable

# Columns of text that a table fills: the terminal's within these limits, or so many without one.
NARROWEST, WIDEST, NO_TERMINAL = 60, 120, 100


class Console:
    """Print results to standard output, and notes and progress to standard error.

    A standard stream may be None, as when it was closed before Python started; what is written to
    it is dropped. With `out`, results are printed there instead of to standard output.
    """

    def __init__(self, out: TextIO | None = None) -> None:
        load_extra("rich.console", "the command line", "cli")
        from rich.console import Console as Screen

        class Screens(Screen):
            def on_broken_pipe(self) -> None:
                raise

        plain: dict[str, Any] = {"markup": False, "highlight": False, "emoji": False}
        self._out = out
        self._screen = Screens(file=out, **plain)
        is_terminal, width = self._screen.is_terminal, self._screen.width
        self._screen.width = max(NARROWEST, min(WIDEST, width)) if is_terminal else NO_TERMINAL
        self._errors = Screens(stderr=True, **plain)

    def say(self, text: str = "") -> None:
        """Print text, with characters that a terminal would obey written as in Python."""
        print(printable(text), file=self._out)

    def data(self, text: str) -> None:
        """Print lines of a table as they are, for programs; on a terminal, as `say` does."""
        print(printable(text) if self._screen.is_terminal else text, file=self._out)

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
        """Print a table, the last column wrapped and left-aligned, the others right-aligned."""
        from rich import box
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD)
        for name in header[:-1]:
            table.add_column(in_one_line(name), justify="right", no_wrap=True)
        table.add_column(in_one_line(header[-1]))
        for row in rows:
            table.add_row(*map(in_one_line, row))
        if title:
            self.say(title)
        self._screen.print(table)

    def note(self, text: str) -> None:
        """Print a line to standard error: for people, and no part of the result."""
        note(text)

    @contextmanager
    def progress(self, text: str) -> Iterator[None]:
        """Show what is being done while the block runs, and how far it is.

        A terminal has a bar; elsewhere long work gets a line now and then.
        """
        if not self._errors.is_terminal:
            with telling(Lines()):
                yield
            return
        from rich import progress as rich

        name = rich.TextColumn("{task.description}", markup=False)
        with rich.Progress(
            *(rich.SpinnerColumn(), name, rich.BarColumn(bar_width=20), rich.TimeElapsedColumn()),
            console=self._errors,
            transient=True,
            redirect_stdout=False,
        ) as bar:
            task = bar.add_task(text, total=None)

            def tell(told: Progress) -> None:
                if told.over:  # what comes next has not told yet how much it is
                    bar.update(task, description=text, total=None)
                    return
                done = told.done + told.part
                bar.update(task, description=told.in_words, completed=done, total=told.total)

            with telling(tell):
                yield
