"""Clocks: calls taken in turn, and calls in a process of their own."""

import gc
import math
import multiprocessing
import signal
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from typing import Any

SHORT = 0.01  # seconds; shorter calls are repeated more often, each after a call to warm up
MORE = 5  # times as often
BUDGET = 2.0  # seconds that the repeats of one call may take together, the first one apart


class Failure(Exception):
    """A call in a process of its own did not come to a result."""


def seconds(call: Callable[[], object]) -> float:
    """Time of one call. What it returns is freed outside the clock."""
    start = time.perf_counter()
    result = call()
    elapsed = time.perf_counter() - start
    del result
    return round(elapsed, 9)


def rounds(estimate: float, repeats: int) -> int:
    """How often a call is worth repeating that takes so many seconds."""
    if estimate < SHORT:
        return MORE * repeats
    return max(1, min(repeats, math.ceil(BUDGET / estimate)))


def interleaved(
    calls: Mapping[str, Callable[[], object]], estimates: Mapping[str, float], repeats: int
) -> dict[str, list[float]]:
    """Times of calls taken in turn, so that a slow moment of the machine hits all alike.

    How often each is called depends on the time that it should take; those called less often are
    spread evenly over the others' rounds.
    """
    shares = {name: rounds(estimates[name], repeats) for name in calls}
    most = max(shares.values())
    times: dict[str, list[float]] = {name: [] for name in calls}
    names = list(calls)
    gc.collect()
    gc.disable()
    try:
        for turn in range(most):
            first = turn % len(names)
            for name in names[first:] + names[:first]:
                if turn * shares[name] // most == (turn + 1) * shares[name] // most:
                    continue
                if estimates[name] < SHORT:
                    calls[name]()
                times[name].append(seconds(calls[name]))
    finally:
        gc.enable()
    return times


def compare(calls: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, list[float]]:
    """Times of calls taken in turn, after one call of each to warm up and to guess its time."""
    return interleaved(calls, {name: seconds(call) for name, call in calls.items()}, repeats)


def isolated(
    function: Callable[..., Any], *args: Any, fresh: bool, timeout: float | None = None
) -> Any:
    """Result of a call in another process; Failure says how it failed or crashed.

    ``fresh`` asks for a new interpreter; else the process is a fork where the system has that.
    """
    fork = not fresh and "fork" in multiprocessing.get_all_start_methods()
    context: Any = multiprocessing.get_context("fork" if fork else "spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(sender, function, *args))
    process.start()
    sender.close()
    try:
        if not receiver.poll(timeout):
            process.kill()
            raise Failure(f"stopped after {timeout:.0f} s")
        error, value = receiver.recv()
    except EOFError:
        process.join()
        raise Failure(f"crashed, {_cause_of_death(process.exitcode)}") from None
    finally:
        process.join()
        receiver.close()
    if error is not None:
        raise Failure(error)
    return value


def _answer(sender: Connection, function: Callable[..., Any], *args: Any) -> None:
    try:
        sender.send((None, function(*args)))
    except Exception as error:
        sender.send((f"{type(error).__name__}: {error}", None))


def _cause_of_death(code: int) -> str:
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"exit code {code}"
