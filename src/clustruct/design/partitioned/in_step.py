"""Concurrent jobs share passes over ``X``.

Each job runs in a thread of its own, but only one of them at a time: it goes on until it asks for a
pass, and then the next one does. When all of them wait, one pass serves all. Nothing depends on
which thread is faster, and a job gets the same bits as by itself.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any, Generic, TypeVar

import numpy as np
from sklearn import config_context, get_config

T = TypeVar("T")
A = TypeVar("A")

# Jobs that are under way at a time, of those handed over together.
MOST_AT_ONCE = 32


class Abandoned(BaseException):
    """Ends a job whose result nobody waits for any more."""


class Member(Generic[T]):
    """A job, its thread, and the baton that lets it go on."""

    def __init__(self, job: Callable[[], T], parent: "Member[Any] | None") -> None:
        self.parent = parent
        self.waits_for = 0
        self.reply: Any = None
        self.result: T | None = None
        self.error: BaseException | None = None
        self.done = False
        self._job = job
        self._config = get_config()
        self._errors = np.geterr()  # which NumPy 1 keeps apart for each thread
        self._baton = threading.Semaphore(0)
        self._given_back = threading.Semaphore(0)
        self._thread = threading.Thread(target=copy_context().run, args=(self._run,), daemon=True)

    def _run(self) -> None:
        self._baton.acquire()
        try:
            with config_context(**self._config), np.errstate(**self._errors):
                self.result = self._job()
        except BaseException as error:  # told to those who wait for the result
            self.error = error
        self.done = True
        self._given_back.release()

    def go_on(self) -> None:
        """Let the job run until it pauses or ends."""
        if self._thread.ident is None:
            self._thread.start()
        self._baton.release()
        self.wait()

    def wait(self) -> None:
        """Wait until the job pauses or has ended."""
        self._given_back.acquire()
        if self.done:
            self._thread.join()

    def pause(self) -> None:
        """Called by the job itself: wait until it may go on."""
        self._given_back.release()
        self._baton.acquire()

    def end(self) -> None:
        """Let a job that has begun come to its end."""
        while self._thread.ident is not None and not self.done:
            self.go_on()


class Meeting(Generic[A]):
    """Where jobs wait for each other.

    `answer` makes a pass for some questions, and `fits` says whether one pass may serve them.
    """

    def __init__(
        self,
        answer: Callable[[Sequence[A]], Sequence[Any]],
        fits: Callable[[Sequence[A]], bool],
    ) -> None:
        self._answer = answer
        self._fits = fits
        self._ready: deque[Member[Any]] = deque()
        self._asking: deque[tuple[Member[Any], A]] = deque()
        self._under_way: set[Member[Any]] = set()
        self._running: Member[Any] | None = None
        self._abandoned = False

    def run(self, jobs: Sequence[Callable[[], T]]) -> list[T]:
        """Run the jobs and return their results; nested jobs join the batch."""
        results: list[T] = []
        for first in range(0, len(jobs), MOST_AT_ONCE):
            some = jobs[first : first + MOST_AT_ONCE]
            members = [Member(job, self._running) for job in some]
            self._under_way.update(members)
            self._ready.extend(members)
            if self._running is None:
                self._lead()
            else:
                self._running.waits_for = len(members)
                self._pause()
            for member in members:
                if member.error is not None:
                    raise member.error
                results.append(member.result)  # type: ignore[arg-type]
        return results

    def ask(self, question: A) -> Any:
        """Wait for the pass that serves the job that is running, and return what it found."""
        mine = self._running
        assert mine is not None
        self._asking.append((mine, question))
        self._pause()
        reply, mine.reply = mine.reply, None
        return reply

    def _pause(self) -> None:
        """Called by the job that is running: wait until it may go on."""
        assert self._running is not None
        if not self._abandoned:
            self._running.pause()
        if self._abandoned:
            raise Abandoned

    def _lead(self) -> None:
        """Let one job after the other go on, and make a pass when all wait."""
        try:
            while self._ready or self._asking:
                while self._ready:
                    self._let(self._ready.popleft())
                if self._asking:
                    self._answer_some()
        except BaseException:
            self._abandon()
            raise

    def _let(self, member: Member[Any]) -> None:
        """Let a job go on until it pauses or ends."""
        self._running = member
        member.go_on()
        self._running = None
        if not member.done:
            return
        self._under_way.discard(member)
        if member.parent is not None:
            member.parent.waits_for -= 1
            if not member.parent.waits_for:
                self._ready.append(member.parent)
        elif member.error is not None:
            raise member.error

    def _answer_some(self) -> None:
        """Make a pass for as many questions as fit, at least one."""
        some = [self._asking.popleft()]
        while self._asking and self._fits([question for _, question in [*some, self._asking[0]]]):
            some.append(self._asking.popleft())
        answers = self._answer([question for _, question in some])
        for (member, _), answer in zip(some, answers, strict=True):
            member.reply = answer
            self._ready.append(member)

    def _abandon(self) -> None:
        """End all jobs, one after the other."""
        self._abandoned = True
        if self._running is not None:
            self._running.wait()  # an interrupt came while it was working
        for member in list(self._under_way):
            self._running = member
            member.end()
        self._running = None
