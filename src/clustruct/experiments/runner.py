"""Run the tasks of some experiments, all cores at work, and keep each result as it comes.

A task knows its own seed, so that results are the same bits whatever the order and the number of
processes; and each result is on disk before the next one counts, so that a run goes on where it
was interrupted.
"""

import os
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from joblib import Parallel, cpu_count, delayed
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from clustruct.experiments.experiment import Experiment, Row, Task
from clustruct.experiments.store import Store

__all__ = ["Outcome", "Plan", "Progress", "perform", "run_experiments"]


@dataclass(frozen=True)
class Plan:
    """How much to do, and where to keep it.

    Attributes
    ----------
    out : Path
    repetitions : int or None
        None for as many as in the paper.
    quick : bool
        Few cells, few repetitions.
    jobs : int or None
        Processes; None for one a core.
    """

    out: Path
    repetitions: int | None = None
    quick: bool = False
    jobs: int | None = None

    @property
    def n_jobs(self) -> int:
        """Number of processes."""
        return cpu_count() if self.jobs is None else self.jobs


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    Attributes
    ----------
    done, total : int
        Repetitions, those of earlier runs included.
    seconds_left : float or None
        An estimate, once there is something to judge by.
    name : str
        Measurement that the last result belongs to.
    """

    done: int
    total: int
    seconds_left: float | None
    name: str


@dataclass
class Outcome:
    """What came of a run.

    Attributes
    ----------
    rows : dict
        For each experiment that could run, the rows of its tasks.
    missing : dict
        For each experiment that could not, what it lacks, with the remedy.
    failures : list of str
        Repetitions that ended in an error, with its text.
    done, total : int
    computed : int
        Repetitions done by this run.
    seconds : float
        Processor time of these.
    wall : float
        Seconds this run took.
    """

    rows: dict[str, list[Row]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    done: int = 0
    total: int = 0
    computed: int = 0
    seconds: float = 0.0
    wall: float = 0.0
    interrupted: bool = False


def run_experiments(
    experiments: Sequence[Experiment],
    plan: Plan,
    watch: Callable[[Progress], None] = lambda progress: None,
) -> Outcome:
    """Do what is not yet done of some experiments.

    Parameters
    ----------
    experiments : sequence of Experiment
    plan : Plan
    watch : callable
        Told of every repetition that is done.

    Returns
    -------
    Outcome
        After Ctrl-C, of what was done until then.
    """
    outcome = Outcome()
    begin = time.perf_counter()
    tasks: dict[str, list[Task]] = {}
    for experiment in experiments:
        try:
            experiment.measurement.check()
        except (OSError, ImportError) as error:
            outcome.missing[experiment.name] = str(error)
            continue
        tasks[experiment.name] = experiment.tasks(repetitions=plan.repetitions, quick=plan.quick)
    every = {(t.measurement.name, t.key): t for mine in tasks.values() for t in mine}
    names = {name for name, _ in every}
    stores = {name: Store(plan.out / "results" / f"{name}.jsonl") for name in sorted(names)}
    pending = [task for (name, key), task in every.items() if key not in stores[name].rows]
    # The first repetitions of everything first: a run that is cut short has something of all.
    pending.sort(key=lambda task: task.repetition)
    outcome.total, outcome.done = len(every), len(every) - len(pending)
    try:
        _work(pending, stores, plan, outcome, watch)
    except KeyboardInterrupt:
        outcome.interrupted = True
    for name, mine in tasks.items():
        rows = [stores[t.measurement.name].rows.get(t.key) for t in mine]
        outcome.rows[name] = [row for row in rows if row is not None]
    outcome.wall = time.perf_counter() - begin
    return outcome


def _work(
    pending: Sequence[Task],
    stores: dict[str, Store],
    plan: Plan,
    outcome: Outcome,
    watch: Callable[[Progress], None],
) -> None:
    """Do the tasks, and keep each row as it comes."""
    left = {(t.measurement.name, t.key): t.measurement.cost(t.cell) for t in pending}
    clock = _Clock(sum(left.values()))
    with closing(_results(pending, plan.n_jobs)) as results:
        for name, key, row, error in results:
            clock.spend(left.pop((name, key)))
            if row is None:
                outcome.failures.append(f"{name} {key}: {error}")
            else:
                stores[name].append(row)
                outcome.done += 1
                outcome.computed += 1
                outcome.seconds += row.seconds
            watch(Progress(outcome.done, outcome.total, clock.left(), name))


def _results(
    pending: Sequence[Task], n_jobs: int
) -> Generator[tuple[str, str, Row | None, str], None, None]:
    jobs = (delayed(perform)(task, os.getpid()) for task in pending)
    parallel = Parallel(n_jobs=n_jobs, batch_size=1, return_as="generator_unordered")
    yield from parallel(jobs)


def perform(task: Task, parent: int) -> tuple[str, str, Row | None, str]:
    """One repetition, in whatever process; an error becomes its text.

    Parameters
    ----------
    task : Task
    parent : int
        Process that has asked for it.

    Returns
    -------
    name, key : str
        Of the measurement and of the task.
    row : Row or None
    error : str
        Why there is no row.
    """
    if os.getpid() != parent:
        # Ctrl-C goes to all processes of a terminal; only the first one is to answer.
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


class _Clock:
    """Time left, by the costs of what is done and what is not."""

    def __init__(self, total: float) -> None:
        self._left = total
        self._spent = 0.0
        self._begin = time.perf_counter()

    def spend(self, cost: float) -> None:
        self._spent += cost
        self._left -= cost

    def left(self) -> float | None:
        if not self._spent:
            return None
        return (time.perf_counter() - self._begin) / self._spent * max(self._left, 0.0)
