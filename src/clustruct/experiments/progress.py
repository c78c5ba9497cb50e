"""The progress bar of a run, on standard error if that is a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from clustruct.experiments.runner import Outcome, Watch


@contextmanager
def shown_progress(stream: TextIO | None = None) -> Iterator[Watch]:
    """Show a progress bar while the block runs; yields the callback that updates it."""
    stream = stream or sys.stderr
    if stream is None or not stream.isatty():
        yield lambda outcome: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[count]}"))
    console = Console(file=stream)
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
        job = bar.add_task("starting", total=None, count="")

        def update(outcome: Outcome) -> None:
            # Repetitions differ in their cost: the bar and the time left follow the cost.
            bar.update(job, completed=outcome.cost_done, total=outcome.cost)
            count = f"{outcome.done}/{outcome.total}"
            bar.update(job, description=outcome.latest, count=count)

        yield update
