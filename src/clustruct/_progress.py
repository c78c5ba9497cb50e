"""Progress of long work: how much is done, how much is left, and the best so far.

Work that consists of jobs counts them with `counting`, whoever listens. Counts nest: a job that
counts jobs of its own moves the outermost count by a part. Nothing that is computed depends on it,
and in other processes nobody listens.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass

# Seconds between two reports of parts of a job.
OFTEN = 0.1
# Seconds until the first line, from there to the next one, and between lines in the end.
FIRST, SECOND, LONGEST = 5.0, 10.0, 30.0


@dataclass(frozen=True)
class Progress:
    """How far some work is.

    things: what is counted, in the plural.
    at_most: whether there may be fewer than `total`.
    part: how much of the next one is done, from 0 to 1.
    best: the best so far of what `measure` names.
    over: whether the work has ended.
    before: how many were done before the clock was started.
    """

    things: str
    done: int
    total: int
    at_most: bool = False
    part: float = 0.0
    seconds: float = 0.0
    measure: str = ""
    best: float | None = None
    remark: str = ""
    over: bool = False
    before: int = 0

    @property
    def left(self) -> float | None:
        """Seconds left if jobs take as long as those so far; None if their number is not known."""
        done = self.done + self.part
        if self.at_most or self.over or done <= self.before:
            return None
        return self.seconds / (done - self.before) * (self.total - done)

    @property
    def in_words(self) -> str:
        """All of it in one line, without the time that was spent."""
        most = "at most " if self.at_most else ""
        told = [f"{self.done} of {most}{self.total} {self.things}"]
        if self.left:
            told.append(f"about {in_time(self.left)} left")
        if self.best is not None:
            told.append(f"best {self.measure} {self.best:.6g}")
        return ", ".join([*told, self.remark] if self.remark else told)


def in_time(seconds: float) -> str:
    """A duration in words, as precise as it has to be."""
    if seconds < 100.0:
        return f"{seconds:.0f} s" if seconds >= 10.0 else f"{seconds:.1f} s"
    minutes = seconds / 60.0
    return f"{minutes:.0f} min" if minutes < 100.0 else f"{minutes / 60.0:.1f} h"


Tell = Callable[[Progress], object]
_listeners: ContextVar[tuple[Tell, ...]] = ContextVar("listeners", default=())
_count: ContextVar["Count | None"] = ContextVar("count", default=None)


class Count:
    """Jobs, of which some are done."""

    def __init__(self, things: str, total: int, at_most: bool, measure: str) -> None:
        self._about = things, max(1, total), at_most
        self._measure = measure
        self._outer, self._listeners = _count.get(), _listeners.get()
        self._begin = self._told = time.perf_counter()
        self._done, self._part, self._over = 0, 0.0, False
        self._best: float | None = None
        self._remark = ""

    def tick(self, best: float | None = None, remark: str = "", *, done: int | None = None) -> None:
        """One more job is done, or so many in all; the best so far, if it is known."""
        self._done, self._part = self._done + 1 if done is None else done, 0.0
        self._best, self._remark = best if best is not None else self._best, remark
        _, _, at_most = self._about
        if not at_most or time.perf_counter() - self._told > OFTEN:
            self.tell()

    def move(self, part: float) -> None:
        """A part of the next job is done."""
        self._part = min(1.0, part)
        if time.perf_counter() - self._told > OFTEN:
            self.tell()

    def end(self) -> None:
        """All is done, or abandoned."""
        self._over = True
        if self._outer is None:
            self.tell()

    def tell(self) -> None:
        """Tell the listeners, or the count that this is a part of."""
        if self._outer is not None:
            self._outer.move((self._done + self._part) / self._about[1])
            return
        self._told = time.perf_counter()
        seconds = self._told - self._begin
        found = self._measure, self._best, self._remark, self._over
        things, total, at_most = self._about
        progress = Progress(things, self._done, total, at_most, self._part, seconds, *found)
        for tell in self._listeners:
            tell(progress)


class _Nobody(Count):
    """A count that nobody listens to."""

    def __init__(self) -> None:
        pass

    def tick(self, best: float | None = None, remark: str = "", *, done: int | None = None) -> None:
        """Nobody is told."""


@contextmanager
def counting(
    things: str, total: int, *, at_most: bool = False, measure: str = ""
) -> Iterator[Count]:
    """Count jobs of the block; those inside of another such block are parts of its jobs.

    Without a name of its `things`, nothing is counted, and jobs inside count for themselves.
    """
    if not things or not _listeners.get():
        yield _Nobody()
        return
    count = Count(things, total, at_most, measure)
    count.tell()
    token = _count.set(count)
    try:
        yield count
    finally:
        _count.reset(token)
        count.end()


@contextmanager
def telling(tell: Tell) -> Iterator[None]:
    """Report the progress of all work in the block to a function."""
    token = _listeners.set((*_listeners.get(), tell))
    try:
        yield
    finally:
        _listeners.reset(token)


class Lines:
    """Progress as lines on standard error, now and then: for logs, and for `verbose`.

    The first line comes after some seconds, the next ones at growing intervals, and one at the end
    of work that had any; with `always`, also of shorter work whose number of jobs was known.
    """

    def __init__(
        self, *, always: bool = False, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._always, self._clock = always, clock
        self._next, self._gap, self._shown = clock() + FIRST, SECOND, False

    def __call__(self, progress: Progress) -> None:
        """Write a line if it is time to."""
        if progress.over:
            if self._shown or (self._always and not progress.at_most):
                self._write(progress)
            self._shown = False
        elif (now := self._clock()) >= self._next:
            self._next, self._gap = now + self._gap, min(2.0 * self._gap, LONGEST)
            self._shown = True
            self._write(progress)

    @staticmethod
    def _write(progress: Progress) -> None:
        with suppress(OSError, ValueError, AttributeError):  # closed, full or None
            line = f"{progress.in_words} ({in_time(progress.seconds)})"
            sys.stderr.write(f"clustruct: {line}\n")
            sys.stderr.flush()


@contextmanager
def shown(verbose: int | bool) -> Iterator[None]:
    """Write lines of progress to standard error if asked to, unless the caller does so already."""
    if not verbose or any(isinstance(tell, Lines) for tell in _listeners.get()):
        yield
        return
    with telling(Lines(always=True)):
        yield
