"""Running the cases of a target in child processes, and what became of them.

A worker runs every JOBS-th case and writes the number of the present one to shared memory before it
starts it. So the parent knows which case has ended a worker, by a crash, by its limit of memory or
by its limit of processor time, whose signal ends the process, and starts another worker behind it.
"""

import faulthandler
import multiprocessing
import multiprocessing.connection
import os
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fuzz.cases import OUT_OF_MEMORY, Failure, Recipe, Target, draw_case, run_case
from fuzz.known import reason_for
from fuzz.scratch import folder

FORK = multiprocessing.get_context("fork")
# Workers say how far they are so often, in seconds.
NEWS = 0.5
# A case may wait this many times its processor time before it counts as stuck.
PATIENCE = 10.0
OUT_OF_TIME = signal.SIGPROF
STUCK = "runs beyond its limit of time"
# AddressSanitizer maps terabytes, of which it uses little, so that no limit can be set.
SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")


@dataclass
class Tally:
    """What became of the cases of a target."""

    name: str
    seconds: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    failures: dict[str, Failure] = field(default_factory=dict)  # the first one of each kind
    slowest: float = 0.0  # processor time of a case, in seconds
    spent: float = 0.0  # processor time of all cases, but for those of workers that died

    @property
    def n_cases(self) -> int:
        """Number of cases that were run."""
        return sum(self.outcomes.values())

    def add(self, failure: Failure) -> None:
        """Count a failure, and remember the first one of its kind unless it is known."""
        reason = reason_for(failure)
        if reason is not None:
            self.outcomes["known fault"] += 1
            self.known[reason] += 1
            return
        self.outcomes["failed"] += 1
        self.failures.setdefault(failure.what, failure)


@dataclass(frozen=True)
class Budget:
    """How long a target runs: until a time of the clock, or so many cases."""

    seconds: float = float("inf")
    cases: int = sys.maxsize


def run_target(target: Target, seed: int, budget: Budget, jobs: int) -> Tally:
    """Run cases of a target by `jobs` workers until the budget is spent."""
    tally = Tally(target.name)
    folder()  # made here, so that it goes with this process and not with a worker
    jobs = min(jobs, target.most_jobs)
    began = time.monotonic()
    deadline = began + budget.seconds
    workers = [_Worker(target, seed, first, jobs, budget.cases, deadline) for first in range(jobs)]
    while any(not worker.done for worker in workers):
        ready = [w.connection for w in workers if not w.done]
        multiprocessing.connection.wait([*ready, *_sentinels(workers)], timeout=NEWS)
        for worker in workers:
            worker.hear(tally)
    tally.seconds = time.monotonic() - began
    return tally


def _sentinels(workers: list["_Worker"]) -> Iterator[int]:
    return (worker.process.sentinel for worker in workers if not worker.done)


class _Worker:
    """A child process that runs every so-many-th case, and its successors."""

    def __init__(
        self, target: Target, seed: int, first: int, step: int, stop: int, deadline: float
    ) -> None:
        self.target, self.seed, self.step = target, seed, step
        self.stop, self.deadline = stop, deadline
        self.done = False
        self._start(first)

    def _start(self, first: int) -> None:
        self.slot = FORK.RawValue("q", first)
        self.connection, theirs = FORK.Pipe(duplex=False)
        arguments = (self.target, self.seed, first, self.step, self.stop, self.deadline)
        self.process = FORK.Process(target=_work, args=(*arguments, theirs, self.slot))
        self.process.start()
        theirs.close()
        self.seen, self.since = first, time.monotonic()

    def hear(self, tally: Tally) -> None:
        """Take what the worker says; where it has died or is stuck, start another one."""
        if self.done:
            return
        alive = self.process.is_alive()  # asked first: what it said before it died is still there
        finished = False
        with suppress(EOFError, OSError):
            while self.connection.poll():
                finished |= _count(self.connection.recv(), tally)
        if finished:
            self.process.join()
            self.done = True
            return
        index = self.slot.value
        if index != self.seen:
            self.seen, self.since = index, time.monotonic()
        stuck = time.monotonic() - self.since > PATIENCE * self.target.seconds
        if alive and not stuck:
            return
        if alive:
            self.process.kill()
        self.process.join()
        what = STUCK if stuck else ending(self.process.exitcode)
        recipe = draw_case(self.target, self.seed, index)
        tally.add(Failure(self.target.name, index, recipe, what, f"case {index} {what}"))
        self.done = index + self.step >= self.stop or time.monotonic() >= self.deadline
        if not self.done:
            self._start(index + self.step)


def _count(message: Any, tally: Tally) -> bool:
    """Count what a worker says, and return whether it was the last of it."""
    if isinstance(message, Failure):
        tally.add(message)
        return False
    counts, slowest, spent, finished = message
    tally.outcomes.update(counts)
    tally.spent += spent
    tally.slowest = max(tally.slowest, slowest)
    return bool(finished)


def _work(
    target: Target,
    seed: int,
    first: int,
    step: int,
    stop: int,
    deadline: float,
    connection: multiprocessing.connection.Connection,
    slot: Any,
) -> None:
    """Run cases one after the other, and tell the parent of failures at once."""
    limit_process(target.memory)
    counts: Counter[str] = Counter()
    slowest, told = 0.0, time.monotonic()
    spent = time.process_time()
    index = first
    while index < stop and (now := time.monotonic()) < deadline:
        if now - told > NEWS:
            used = time.process_time()
            connection.send((counts, slowest, used - spent, False))
            counts, told, spent = Counter(), now, used
        slot.value = index
        began = time.process_time()
        outcome, what, details, recipe = _run_limited(target, seed, index)
        slowest = max(slowest, time.process_time() - began)
        if what:
            connection.send(Failure(target.name, index, recipe, what, details))
        else:
            counts[outcome] += 1
        index += step
    connection.send((counts, slowest, time.process_time() - spent, True))
    connection.close()


def _run_limited(target: Target, seed: int, index: int) -> tuple[str, str, str, Recipe]:
    """Run a case under its limit of processor time."""
    signal.setitimer(signal.ITIMER_PROF, target.seconds)
    recipe: Recipe = {}
    try:
        recipe = draw_case(target, seed, index)
        return *run_case(target, recipe), recipe
    except MemoryError as error:
        return "failed", OUT_OF_MEMORY, repr(error), recipe
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)


def limit_process(memory: int) -> None:
    """Limit the memory of this process to so many bytes beyond what it has; end it out of time."""
    signal.signal(OUT_OF_TIME, signal.SIG_DFL)
    faulthandler.disable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pages = Path("/proc/self/statm")
    if pages.exists() and not SANITIZED:
        most = int(pages.read_text().split()[0]) * resource.getpagesize() + memory
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def ending(code: int | None) -> str:
    """What an exit status says of the end of a process."""
    if code == -OUT_OF_TIME:
        return STUCK
    if code is not None and code < 0:
        return f"ends the process by {signal.Signals(-code).name}"
    return f"ends the process with status {code}"


def in_child(target: Target, recipe: Recipe) -> str:
    """What fails in a case, or ``""``; it is run in a process of its own."""
    return _in_child(lambda: run_case(target, recipe)[1], target)


def _in_child(function: Callable[[], str], target: Target) -> str:
    folder()
    ours, theirs = FORK.Pipe(duplex=False)

    def work() -> None:
        limit_process(target.memory)
        signal.setitimer(signal.ITIMER_PROF, target.seconds)
        try:
            what = function()
        except MemoryError:
            what = OUT_OF_MEMORY
        theirs.send(what)

    process = FORK.Process(target=work)
    process.start()
    theirs.close()
    process.join(PATIENCE * target.seconds)
    if process.is_alive():
        process.kill()
        process.join()
        return STUCK
    if process.exitcode == 0 and ours.poll():
        return str(ours.recv())
    return ending(process.exitcode)
