"""The command line: parse, call, print; no mathematics.

Every command prints tables for people or, with ``--json``, one JSON object for programs. It exits
with 0, with 1 on bad data, with 2 on bad usage, with 130 when interrupted (also if the best so far
was kept and written), with 128 and the number of the signal when told to end, and shows a traceback
only with ``--debug``. Each command has a module of its own in `commands`, and its options are in
`arguments`.
"""

import argparse
import errno
import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

from clustruct.cli.arguments import parser
from clustruct.cli.console import Console
from clustruct.cli.messages import BadUsage, EndedEarly, note

__all__ = ["main", "parser"]

BAD_DATA = 1
BAD_USAGE = 2
INTERRUPTED = 130
ENDED = 128  # and the number of the signal
PIPE_CLOSED = 141  # what shells report for a program that a closed pipe has ended
# Faults that no check foresaw, by the names of their classes, and what to do about them.
_ARITHMETIC = (
    "the numbers of the table are beyond what can be computed with",
    "Look for columns, weights or targets with extreme values: divide them by their size, or leave "
    "columns out by --drop. --debug shows where it happened.",
)
REMEDIES = {
    "MemoryError": (
        "memory ran out",
        "Give --out-of-core yes, use fewer columns (--columns, --drop) or rows, or free memory.",
    ),
    "RecursionError": (
        "the data are nested too deeply",
        "Give a table whose values are numbers and text.",
    ),
    "ArithmeticError": _ARITHMETIC,
    "LinAlgError": _ARITHMETIC,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status; whatever happens, it ends with a message."""
    args = argparse.Namespace(debug=False, name="")
    try:
        args = parser().parse_args(argv)
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # a terminal may not know every sign
        with _ending_cleanly(), warnings.catch_warnings():
            if not args.debug:
                warnings.showwarning = _warn
            run(args, Console())
        if sys.stdout is not None:
            sys.stdout.flush()  # so that a closed pipe or a full disk shows up here
    except BrokenPipeError:
        _drop_output()
        return PIPE_CLOSED
    except EndedEarly as error:
        note(f"clustruct: interrupted; {error}")
        return INTERRUPTED
    except KeyboardInterrupt:
        note("clustruct: interrupted; no file was left half-written")
        return INTERRUPTED
    except Ended as error:
        note(f"clustruct: ended by {error.signal.name}; no file was left half-written")
        return ENDED + error.signal
    except BadUsage as error:
        note(f"clustruct: {error}\nclustruct {args.name} --help says more.")
        return BAD_USAGE
    except Exception as error:
        if args.debug:
            raise
        note(f"clustruct: {_complaint(error, getattr(args, 'model', None))}")
        if isinstance(error, OSError):
            _drop_output()
        return BAD_DATA
    return 0


class Ended(BaseException):
    """A signal that asks the program to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = signal.Signals(number)


@contextmanager
def _ending_cleanly() -> Iterator[None]:
    """Let signals that ask for the end clean up first, where nobody else has a use for them."""

    def end(number: int, frame: object) -> None:
        raise Ended(number)

    names = ("SIGTERM", "SIGHUP") if threading.current_thread() is threading.main_thread() else ()
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    free = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    try:
        for number in free:
            signal.signal(number, end)
        yield
    finally:
        for number in free:
            signal.signal(number, signal.SIG_DFL)


def _complaint(error: Exception, model: str | None) -> str:
    """What went wrong, and what to do about it; `model` is the model file that was used."""
    said = f"{type(error).__name__}: {error}".removesuffix(": ")
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return (
            f"error: {error}. No room is left where it writes; files that were there are as they "
            "were. Make room, or name another folder (--out, and TMPDIR for temporary files)."
        )
    for kind in type(error).__mro__:
        if kind.__name__ in REMEDIES:
            reason, remedy = REMEDIES[kind.__name__]
            return f"error: {reason} ({said}). {remedy}"
    if isinstance(error, ValueError | OSError | ImportError):
        return f"error: {error}"
    if model is not None and isinstance(error, AttributeError | LookupError | TypeError):
        return (
            f"error: {model} holds a model that does not work ({said}; --debug shows where). Get "
            "an undamaged copy, or fit it again by `clustruct fit --out`."
        )
    return (
        f"unexpected {said} (--debug shows where). This is a fault of clustruct: please report it, "
        "with the command and what --debug shows."
    )


def _drop_output() -> None:
    """Write what is left in standard output to nowhere, or Python complains at its end."""
    with suppress(OSError, ValueError, AttributeError):
        try:
            sys.stdout.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def run(args: argparse.Namespace, console: Console) -> None:
    """Run a command that was parsed, whose module is loaded now."""
    with console.progress("loading"):
        command = import_module(f"clustruct.cli.commands.{args.name}")
    getattr(command, args.action)(args, console)


def _warn(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
    """Print a warning without the lines of code that raised it."""
    note(f"clustruct: warning: {message}")
