"""Run the tasks of some experiments in parallel, and store each result as it arrives.

Each task has its own seed, so that results are the same bits for any order and number of
processes. Each result is on disk before the task counts as done, so that an interrupted run can be
resumed.
"""

import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from joblib import Parallel, cpu_count, delayed
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from clustruct._progress import Lines, Progress
from clustruct.experiments.experiment import Experiment, Row, Task
from clustruct.experiments.store import Store


@dataclass(frozen=True)
class RunSettings:
    """How much to run, and where to store it."""

    out: Path
    repetitions: int | None = None  # None for as many as in the paper
    quick: bool = False  # few cells, few repetitions
    jobs: int | None = None  # processes; None for one a core

    @property
    def n_jobs(self) -> int:
        """Number of processes."""
        return cpu_count() if self.jobs is None else self.jobs


@dataclass
class Outcome:
    """The state of a run after a repetition, and in the end its results."""

    rows: dict[str, list[Row]] = field(default_factory=dict)  # by the name of the experiment
    missing: dict[str, str] = field(default_factory=dict)  # what an experiment lacks, and a remedy
    failures: list[str] = field(default_factory=list)  # tracebacks of repetitions that failed
    done: int = 0  # repetitions, earlier runs included
    total: int = 0
    computed: int = 0  # repetitions of this run
    seconds: float = 0.0  # processor time of these
    cost_done: float = 0.0  # estimated processor time of these and of failures
    cost: float = 0.0  # and of all that this run has to do
    wall: float = 0.0
    interrupted: bool = False
    latest: str = ""  # measurement of the last repetition


Watch = Callable[[Outcome], None]


def run_experiments(
    experiments: Sequence[Experiment], settings: RunSettings, watch: Watch = lambda outcome: None
) -> Outcome:
    """Run the tasks that have no result yet; `watch` is called after every repetition.

    Ctrl-C ends the run; the outcome then holds the results so far.
    """
    outcome, begin = Outcome(), time.perf_counter()
    tasks: dict[str, list[Task]] = {}
    for experiment in experiments:
        try:
            experiment.measurement.check()
        except (OSError, ImportError) as error:
            outcome.missing[experiment.name] = str(error)
            continue
        count, quick = settings.repetitions, settings.quick
        tasks[experiment.name] = experiment.tasks(repetitions=count, quick=quick)
    every = {(t.measurement.name, t.key): t for mine in tasks.values() for t in mine}
    stores = _stores(every, settings)
    pending = [task for (name, key), task in every.items() if key not in stores[name].rows]
    # All first repetitions come first, so that a run cut short has results for every cell.
    pending.sort(key=lambda task: task.repetition)
    outcome.total, outcome.done = len(every), len(every) - len(pending)
    try:
        with _sigterm_as_interrupt():
            _work(pending, stores, settings.n_jobs, outcome, watch)
    except KeyboardInterrupt:
        outcome.interrupted = True
        stores = _stores(every, settings)  # what is on disk counts, wherever the interrupt struck
        kept = sum(key in stores[name].rows for name, key in every)
        outcome.computed += kept - outcome.done
        outcome.done = kept
    for name, mine in tasks.items():
        rows = [stores[t.measurement.name].rows.get(t.key) for t in mine]
        outcome.rows[name] = [row for row in rows if row is not None]
    outcome.wall = time.perf_counter() - begin
    return outcome


def _stores(every: Iterable[tuple[str, str]], settings: RunSettings) -> dict[str, Store]:
    """The stores of the measurements, given as pairs of name and key."""
    names = {name for name, _ in every}
    return {name: Store(settings.out / "results" / f"{name}.jsonl") for name in sorted(names)}


@contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    """Treat SIGTERM as Ctrl-C, so that the worker processes end, too."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _work(
    pending: Sequence[Task], stores: dict[str, Store], n_jobs: int, outcome: Outcome, watch: Watch
) -> None:
    """Run the tasks and store each row as it arrives."""
    costs = {(t.measurement.name, t.key): t.measurement.cost(t.cell) for t in pending}
    outcome.cost = sum(costs.values())
    with closing(_results(pending, n_jobs)) as results:
        for name, key, row, error in results:
            outcome.latest = name
            outcome.cost_done += costs[name, key]
            if row is None:
                outcome.failures.append(f"{name} {key}: {error}")
            else:
                stores[name].append(row)
                outcome.done += 1
                outcome.computed += 1
                outcome.seconds += row.seconds
            watch(outcome)


def _results(
    pending: Sequence[Task], n_jobs: int
) -> Generator[tuple[str, str, Row | None, str], None, None]:
    jobs = (delayed(perform)(task, os.getpid()) for task in pending)
    yield from Parallel(n_jobs=n_jobs, batch_size=1, return_as="generator_unordered")(jobs)


def perform(task: Task, parent: int) -> tuple[str, str, Row | None, str]:
    """Run one repetition in any process; `parent` is the id of the process that asked for it.

    Returns the name of the measurement, the key of the task, and a row or the text of an error.
    """
    if os.getpid() != parent:
        # Ctrl-C reaches all processes of a terminal; only the parent handles it.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    name, key = task.measurement.name, task.key
    begin = time.process_time()
    try:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            values: dict[str, Any] = task.measurement.measure(task.cell, task.seed)
    except Exception:
        return name, key, None, traceback.format_exc()
    seconds = round(time.process_time() - begin, 3)
    return name, key, Row(key, dict(task.cell), task.repetition, seconds, values), ""


@contextmanager
def shown_progress(stream: TextIO | None = None) -> Iterator[Watch]:
    """Show a progress bar while the block runs; yields the callback that updates it.

    Without a terminal, lines on standard error tell now and then how far it is.
    """
    stream = stream or sys.stderr
    if stream is None or not stream.isatty():
        lines, begin = Lines(), time.perf_counter()

        def tell(outcome: Outcome) -> None:
            seconds, before = time.perf_counter() - begin, outcome.done - outcome.computed
            count = "repetitions", outcome.done, outcome.total
            lines(Progress(*count, seconds=seconds, before=before, remark=outcome.latest))

        yield tell
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[count]}"))
    console = Console(file=stream)
    with Bar(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
        job = bar.add_task("starting", total=None, count="")

        def update(outcome: Outcome) -> None:
            # Repetitions differ in their cost: the bar and the time left follow the cost.
            bar.update(job, completed=outcome.cost_done, total=outcome.cost)
            count = f"{outcome.done}/{outcome.total}"
            bar.update(job, description=outcome.latest, count=count)

        yield update
