"""The command line: parse, call, print; no mathematics.

Every command prints tables for people or, with ``--json``, one JSON object for programs. It exits
with 0, with 1 on bad data, with 2 on bad usage, with 130 when interrupted, and shows a traceback
only with ``--debug``. Each command has a module of its own in `commands`, and its options are in
`arguments`.
"""

import argparse
import io
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from clustruct.cli.arguments import parser
from clustruct.cli.console import Console
from clustruct.cli.messages import BadUsage, note

__all__ = ["main", "parser"]

BAD_DATA = 1
BAD_USAGE = 2
INTERRUPTED = 130
PIPE_CLOSED = 141  # what shells report for a program that a closed pipe has ended


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status."""
    args = parser().parse_args(argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal may not know every sign
    try:
        with warnings.catch_warnings():
            if not args.debug:
                warnings.showwarning = _warn
            run(args, Console())
        if sys.stdout is not None:
            sys.stdout.flush()  # so that a closed pipe shows up here
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except KeyboardInterrupt:
        note("clustruct: interrupted; no file was left half-written")
        return INTERRUPTED
    except BadUsage as error:
        note(f"clustruct: {error}\nclustruct {args.name} --help says more.")
        return BAD_USAGE
    except Exception as error:
        if args.debug:
            raise
        if isinstance(error, (ValueError, OSError, ImportError)):
            note(f"clustruct: error: {error}")
        else:  # no user can have caused it
            note(f"clustruct: unexpected {type(error).__name__}: {error} (--debug shows where)")
        return BAD_DATA
    return 0


def run(args: argparse.Namespace, console: Console) -> None:
    """Run a command that was parsed, whose module is loaded now."""
    with console.progress("loading"):
        command = import_module(f"clustruct.cli.commands.{args.name}")
    getattr(command, args.action)(args, console)


def _warn(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
    """Print a warning without the lines of code that raised it."""
    note(f"clustruct: warning: {message}")
