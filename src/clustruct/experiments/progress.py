"""Progress of a run on standard error, where that is a terminal: what is done, and time left."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from clustruct.experiments.runner import Progress

__all__ = ["shown_progress"]

Watch = Callable[[Progress], None]


@contextmanager
def shown_progress(stream: TextIO | None = None) -> Iterator[Watch]:
    """A function to tell of progress, which shows it while the block runs.

    Parameters
    ----------
    stream : text stream, optional
        In place of standard error.

    Yields
    ------
    callable
    """
    stream = sys.stderr if stream is None else stream
    if stream is None or not stream.isatty():
        yield lambda progress: None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as Bar
    except ImportError:
        yield lambda progress: _print(stream, progress)
        stream.write("\n")
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Bar(*columns, console=Console(file=stream), transient=True) as bar:
        job = bar.add_task("starting", total=None, left="")

        def watch(progress: Progress) -> None:
            bar.update(
                job,
                description=progress.name,
                completed=progress.done,
                total=progress.total,
                left=_left(progress.seconds_left),
            )

        yield watch


def _print(stream: TextIO, progress: Progress) -> None:
    left = _left(progress.seconds_left)
    stream.write(f"\r{progress.done} of {progress.total} repetitions, {left:<20}")
    stream.flush()


def _left(seconds: float | None) -> str:
    if seconds is None:
        return ""
    minutes = round(seconds / 60)
    return f"about {minutes} min left" if minutes else "less than a minute left"
