"""The command line: parse, call, print; no mathematics.

Every command prints tables for people or, with ``--json``, one JSON object for programs. It exits
with 0, with 1 on bad data, with 2 on bad usage, with 130 when interrupted, and shows a traceback
only with ``--debug``. Each command has a module of its own, which is named in `COMMANDS`.
"""

import argparse
import io
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from clustruct import __version__
from clustruct.cli.commands import data, demo, fit, predict, report, reproduce, tariff
from clustruct.cli.console import Console
from clustruct.cli.messages import BadUsage, note
from clustruct.cli.options import Command, add_common

__all__ = ["main", "parser"]

BAD_DATA = 1
BAD_USAGE = 2
INTERRUPTED = 130
PIPE_CLOSED = 141  # what shells report for a program that a closed pipe has ended

COMMANDS = (demo, fit, predict, tariff, report, data, reproduce)
EXAMPLES = (
    "clustruct demo",
    "clustruct fit flats.csv --target rent --out flats.clustruct --report flats.html",
    "clustruct predict flats.clustruct new.csv --out rents.csv",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status."""
    args = parser().parse_args(argv)
    command: Command = args.command
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal may not know every sign
    try:
        with warnings.catch_warnings():
            if not args.debug:
                warnings.showwarning = _warn
            command(args, Console())
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


def _warn(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
    """Print a warning without the lines of code that raised it."""
    note(f"clustruct: warning: {message}")


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    top = argparse.ArgumentParser(
        prog="clustruct",
        description="Linear models whose features, samples or tasks share weights in groups.",
    )
    top.add_argument("--version", action="version", version=f"clustruct {__version__}")
    top.set_defaults(json=False, debug=False)
    add_common(top, *EXAMPLES)
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in COMMANDS:
        module.add(commands)
    return top
