"""A bar on a terminal while a model is being fitted."""

import io
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

from clustruct._console import Console

__all__ = ["fit_with_progress"]

DONE = re.compile(r"\w+ (\d+) of (\d+): .* left")


def fit_with_progress(console: Console, text: str, model: Any, fit: Callable[[], Any]) -> None:
    """Fit a model, and show on a terminal how far that is.

    Parameters
    ----------
    console : Console
    text : str
        What is being done.
    model : estimator
        What tells of its progress, by folds or fits that are done, when it is asked to.
    fit : callable
        Fits it.
    """
    if not console.is_watched:
        fit()
        return
    model.set_params(verbose=1)
    with warnings.catch_warnings(record=True) as caught:
        try:
            with (
                _bar(console, text) as tell,
                redirect_stderr(_Lines(tell)),
                redirect_stdout(_Lines(tell)),
            ):
                fit()
        finally:
            model.set_params(verbose=0)
    for warning in caught:  # when the bar has gone
        warnings.showwarning(warning.message, warning.category, warning.filename, warning.lineno)


class _Lines(io.StringIO):
    """A stream that passes on what is written to it, piece by piece."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__()
        self._tell = tell

    def write(self, text: str) -> int:
        self._tell(text)
        return len(text)


@contextmanager
def _bar(console: Console, text: str) -> Iterator[Callable[[str], None]]:
    """A bar that moves with what it is told; a line of text where rich is not installed."""
    try:
        from rich.console import Console as RichConsole
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    except ImportError:
        with console.progress(text):
            yield lambda line: None
        return
    columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    screen = RichConsole(file=sys.stderr)
    still: dict[str, Any] = {"transient": True, "redirect_stdout": False, "redirect_stderr": False}
    with Progress(*columns, console=screen, **still) as progress:
        task = progress.add_task(text, total=None)

        def tell(line: str) -> None:
            if found := DONE.search(line):
                # One more than there are: the fit to all rows, or its gate, comes last.
                progress.update(task, completed=int(found[1]), total=int(found[2]) + 1)

        yield tell
