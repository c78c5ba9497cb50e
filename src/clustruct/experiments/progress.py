"""The progress bar of a run, on standard error if that is a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from clustruct.experiments.runner import Progress

__all__ = ["shown_progress"]


@contextmanager
def shown_progress(stream: TextIO | None = None) -> Iterator[Callable[[Progress], None]]:
    """Show a progress bar while the block runs; yields the callback that updates it."""
    stream = sys.stderr if stream is None else stream
    if stream is None or not stream.isatty():
        yield lambda progress: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[count]}"))
    console = Console(file=stream)
    with Bar(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
        job = bar.add_task("starting", total=None, count="")

        def update(progress: Progress) -> None:
            bar.update(
                job,
                description=progress.name,
                # Repetitions differ in their cost: the bar and the time left follow the cost.
                completed=progress.cost_done,
                total=progress.cost,
                count=f"{progress.done}/{progress.total}",
            )

        yield update
