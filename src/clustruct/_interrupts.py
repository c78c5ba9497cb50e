"""Ctrl-C that keeps what was found: long work asks between its steps whether to end.

Inside `keeping`, the first Ctrl-C is noted, and work that has something to keep ends at its next
step with the best so far; the second one raises KeyboardInterrupt at once. So does the first one
where there is nothing to keep yet, or where the work has lasted for less than `PATIENCE`: a loop of
short fits ends by one Ctrl-C. Only the main thread gets signals, and handlers of others are
respected: elsewhere nothing here has an effect.
"""

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")

# Seconds of work that are worth keeping.
PATIENCE = 3.0
NOTED = "Ctrl-C: ending with the best so far. Press it again to end at once."


class Watch:
    """Ctrl-C, as a piece of work is told of it.

    came: it was pressed, and has been kept back.
    cut: some loop has ended early for it.
    """

    def __init__(self) -> None:
        self.came = self.cut = False
        self._begin = time.perf_counter()
        self._holds = self._heeded = self._waits = self._again = False

    def hear(self, number: int, frame: Any) -> None:
        """Handle the signal: note it, or raise KeyboardInterrupt."""
        if self.came or not self._holds or time.perf_counter() - self._begin < PATIENCE:
            self._again = self.came
            raise KeyboardInterrupt
        self.came = True
        # A line that was being written when the signal came may refuse another one.
        with suppress(OSError, RuntimeError, ValueError, AttributeError):
            sys.stderr.write(f"\n{NOTED}\n")
            sys.stderr.flush()
        if self._waits:
            raise KeyboardInterrupt

    @property
    def pending(self) -> bool:
        """Whether it was pressed, and nobody has taken care of it."""
        return self.came and not self._heeded

    def hold(self) -> None:
        """There is something to keep from now on."""
        self._holds = True

    def heed(self) -> bool:
        """Take care of the first Ctrl-C, after which work goes on; False if there was none.

        A second one raises KeyboardInterrupt, and is not taken care of.
        """
        if not self.pending or self._again:
            return False
        self._heeded = True
        return True

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Raise KeyboardInterrupt at the first Ctrl-C: nothing is half done in the block."""
        if self.pending:
            raise KeyboardInterrupt
        self._waits = True
        try:
            yield
        finally:
            self._waits = False


_watch: ContextVar[Watch | None] = ContextVar("watch", default=None)
_in_part: ContextVar[bool] = ContextVar("in_part", default=False)


@contextmanager
def keeping() -> Iterator[Watch]:
    """Let the work in the block end by Ctrl-C with what it has; the outermost block counts."""
    outer = _watch.get()
    if outer is not None:
        yield outer
        return
    watch = Watch()
    token = _watch.set(watch)
    mine = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if mine:
        signal.signal(signal.SIGINT, watch.hear)
    try:
        yield watch
    finally:
        if mine:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        _watch.reset(token)


def is_kept() -> bool:
    """Whether `keeping` is in effect here."""
    return _watch.get() is not None


@contextmanager
def in_part() -> Iterator[None]:
    """Mark work, such as a fold, that is of no use unless it is complete: `asked` raises there."""
    token = _in_part.set(True)
    try:
        yield
    finally:
        _in_part.reset(token)


def next_part(parts: Iterator[T]) -> T | None:
    """The next part of the work, complete; None after the last one."""
    with in_part():
        return next(parts, None)


def asked() -> bool:
    """Whether to end now with the best so far; loops ask between steps.

    Raises KeyboardInterrupt instead in a part of the work that is of no use unless complete.
    """
    watch = _watch.get()
    if watch is None or not watch.pending:
        return False
    if _in_part.get():
        raise KeyboardInterrupt
    watch.cut = True
    return True


def hold() -> None:
    """There is a complete point, which Ctrl-C should keep; without effect in a part."""
    watch = _watch.get()
    if watch is not None and not _in_part.get():
        watch.hold()


@contextmanager
def waiting() -> Iterator[None]:
    """Raise KeyboardInterrupt at the first Ctrl-C, while others work; see `Watch.waiting`."""
    watch = _watch.get()
    if watch is None:
        yield
        return
    with watch.waiting():
        yield


@contextmanager
def deaf_children() -> Iterator[None]:
    """Processes that start in the block do not hear Ctrl-C, which a terminal sends to all.

    The parent does, and ends them. They inherit a signal that is blocked (not on Windows).
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
