"""Files of formats whose readers can crash, read by a process of its own.

`Cage` has the methods of a class of `columnar` and has a child process call them. The child reads
questions, one a line as JSON, and answers with a line of JSON and tables as an Arrow stream. If the
file ends the child, that is told as a ValueError, with the file and what to do. Memory and
processor time of the child have limits where the system can set them.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from clustruct.cli.reading.columnar import READERS
from clustruct.cli.reading.memory import free_bytes

PACKAGE_FOLDER = str(Path(__file__).parents[3])
# Beside what is free: threads' stacks and arenas are reserved, and never filled.
SLACK_BYTES = 2 << 30
# Seconds of processor time for one question: some, and so many for a megabyte of the file. Reading
# takes a hundredth of that.
SECONDS, SECONDS_A_MEGABYTE = 60, 1.0
_CRASHED = 0x40000000  # on Windows, the status of a program that crashed is above this


class Cage:
    """Files of a format, read by child processes; methods are those of its class in `READERS`."""

    def __init__(self, format_: str, name: str, files: Sequence[Path], max_size: float) -> None:
        self._first = {
            "format": format_,
            "name": name,
            "files": [str(file) for file in files],
            "max_size": max_size,
        }
        # One child answers all questions, but while a stream of tables is being read from it.
        self._idle: list[_Child] = []
        self._reading = threading.Lock()
        self._end = weakref.finalize(self, _end_all, self._idle)

    def describe(self) -> dict[str, Any]:
        """Columns, those of them that are text, rows of the parts, and size in memory."""
        with self._reading:
            child = self._child()
            value: dict[str, Any] = child.ask("describe")
            self._idle.append(child)
        return value

    def whole(self) -> Iterator[Any]:
        """All of the file."""
        return self._tables("whole")

    def parts(self, first: int, stop: int, columns: Sequence[str]) -> Iterator[Any]:
        """Some columns of some parts."""
        with self._reading:  # so that threads take turns with one child
            tables = list(self._tables("parts", first, stop, list(columns)))
        return iter(tables)

    def pieces(self, columns: Sequence[str], n_bytes: int) -> Iterator[Any]:
        """Some columns of all rows, in tables of about so many bytes."""
        return self._tables("pieces", list(columns), n_bytes)

    def close(self) -> None:
        """End the children that wait."""
        _end_all(self._idle)

    def _tables(self, question: str, *arguments: Any) -> Iterator[Any]:
        child = self._child()
        is_done = False
        try:
            yield from child.tables(question, *arguments)
            is_done = True
        finally:
            if is_done:
                self._idle.append(child)
            else:
                child.end()

    def _child(self) -> "_Child":
        try:
            return self._idle.pop()
        except IndexError:
            return _Child(self._first)


class _Child:
    """A child process, and the questions that it is asked."""

    def __init__(self, first: dict[str, Any]) -> None:
        self._name, self._format = first["name"], first["format"]
        known = [PACKAGE_FOLDER, *filter(None, [os.environ.get("PYTHONPATH")])]
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (is closed at the end)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "clustruct.cli.reading.cage"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(known), "PYTHONWARNINGS": "ignore"},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._questions, self._answers = self._process.stdin, self._process.stdout
        self._send(first)

    def ask(self, question: str, *arguments: Any) -> Any:
        """The value that a method returns."""
        self._send([question, *arguments])
        return self._answer()

    def tables(self, question: str, *arguments: Any) -> Iterator[Any]:
        """The tables that a method yields."""
        import pyarrow as pa

        self._send([question, *arguments])
        if self._answer() == "none":
            return
        try:
            reader = pa.ipc.open_stream(self._answers)
            for batch in reader:
                yield pa.Table.from_batches([batch])
        except (pa.ArrowException, OSError, EOFError):
            self._died()
        self._answer()  # whether it came to the end

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._questions, self._answers, self._errors):
            _close(stream)

    def _send(self, question: Any) -> None:
        try:
            self._questions.write(json.dumps(question).encode("ascii") + b"\n")
            self._questions.flush()
        except OSError:
            self._died()

    def _answer(self) -> Any:
        """The value of a line; an error that the child tells is raised."""
        line = self._answers.readline()
        if not line.endswith(b"\n"):
            self._died()
        kind, value = json.loads(line)
        if kind == "error":
            self.end()
            raise ValueError(value)
        return value

    def _died(self) -> None:
        """Say how the child has ended."""
        _close(self._questions)
        status = self._process.wait()
        self._errors.seek(0)
        said = self._errors.read().decode("utf-8", errors="replace").strip().splitlines()
        self.end()
        raise ValueError(
            f"{self._name} cannot be read as {self._format.capitalize()}: {_reason(status, said)}."
        )


def _reason(status: int, said: Sequence[str]) -> str:
    """What ended a child, and what to do about it."""
    remedy = "Get an undamaged copy, or save the table as CSV where it was made"
    if status < 0:
        name = next((s.name for s in signal.Signals if s == -status), f"signal {-status}")
        if name == "SIGKILL":
            return (
                "the process that read it was killed, as systems do when memory runs out. "
                "Free memory, or give --out-of-core yes"
            )
        if name == "SIGXCPU":
            return f"reading it did not come to an end. {remedy}"
        return f"its reader crashed ({name}), which damaged files cause. {remedy}"
    if status >= _CRASHED:
        return f"its reader crashed (status {status:#x}), which damaged files cause. {remedy}"
    return f"its reader stopped ({(said or ['no reason given'])[-1]:.200}). {remedy}"


def _close(stream: IO[bytes]) -> None:
    with suppress(OSError):  # for what was still to be written to a child that is gone
        stream.close()


def _end_all(children: list[_Child]) -> None:
    while children:
        children.pop().end()


# ---- In the child


def serve() -> None:
    """Answer questions from standard input until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    questions = sys.stdin.buffer
    first = json.loads(questions.readline())
    files = first["files"]
    seconds = SECONDS + SECONDS_A_MEGABYTE * sum(map(os.path.getsize, files)) / 1e6
    import pyarrow  # noqa: F401 (before memory is limited)

    _limit_memory()
    reader = READERS[first["format"]](first["name"], files, first["max_size"])
    for line in questions:
        _limit_seconds(seconds)
        name, *arguments = json.loads(line)
        method = getattr(reader, name)
        try:
            if name == "describe":
                _tell("value", method(*arguments))
            else:
                _tell_tables(method(*arguments))
        except BrokenPipeError:
            return
        except Exception as error:
            _tell("error", str(error))


def _tell(kind: str, value: Any) -> None:
    sys.stdout.buffer.write(json.dumps([kind, value]).encode("ascii") + b"\n")
    sys.stdout.buffer.flush()


def _tell_tables(tables: Iterator[Any]) -> None:
    """Write tables as a stream, and then a line that says how it ended."""
    import pyarrow as pa

    first = next(tables, None)
    _tell("value", "none" if first is None else "some")
    if first is None:
        return
    try:
        with pa.ipc.new_stream(sys.stdout.buffer, first.schema) as writer:
            writer.write_table(first)
            del first
            for table in tables:
                writer.write_table(table)
    finally:
        sys.stdout.buffer.flush()
    _tell("value", "end")


def _limit_memory() -> None:
    """Let the process take no more memory than is free."""
    try:
        import resource
    except ImportError:  # on Windows
        return
    free = free_bytes()
    if free < float("inf"):
        _set_limit(resource.RLIMIT_DATA, int(free) + SLACK_BYTES)


def _limit_seconds(more: float) -> None:
    """Let the process take so many seconds of processor time from now on."""
    try:
        import resource
    except ImportError:  # on Windows
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    _set_limit(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime + more) + 1)


def _set_limit(which: int, value: int) -> None:
    """Set a limit of this process, within what is allowed to it."""
    import resource

    _, hard = resource.getrlimit(which)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(which, (value, hard))


if __name__ == "__main__":
    serve()
