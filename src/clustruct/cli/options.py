"""What the options of several commands have in common."""

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from clustruct.cli.console import Console
from clustruct.cli.reading.streams import FORMATS

Command = Callable[[argparse.Namespace, Console], None]


def add_command(
    commands: Any, name: str, command: Command, purpose: str, *examples: str
) -> argparse.ArgumentParser:
    """A parser for a command, with its purpose and examples in the help."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=purpose,
        description=f"{purpose[0].upper()}{purpose[1:]}.",
    )
    parser.set_defaults(command=command, name=name)
    add_common(parser, *examples)
    return parser


def add_common(parser: argparse.ArgumentParser, *examples: str) -> None:
    """Options that may stand before or after the name of the command, and examples below them."""
    title = "example" if len(examples) == 1 else "examples"
    parser.epilog = "\n  ".join((f"{title}:", *examples))
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    unset = argparse.SUPPRESS  # or the command's default would undo what stands before its name
    parser.add_argument("--json", action="store_true", default=unset, help="print JSON")
    parser.add_argument(
        "--debug", action="store_true", default=unset, help="show the traceback of an error"
    )


def add_table_options(parser: argparse.ArgumentParser, *, with_model: bool = False) -> None:
    """The table to read and how; with a saved model to apply to it, if wanted."""
    if with_model:
        parser.add_argument("model", metavar="MODEL", help="model file that `clustruct fit` wrote")
    parser.add_argument(
        "data",
        metavar="DATA",
        help="CSV, TSV, Parquet, Arrow, JSON (lines, or an array of records) or libsvm (.svm) "
        "file, compressed or not; a folder of Parquet files; a NumPy matrix (.npy); - for standard "
        "input",
    )
    parser.add_argument("--format", choices=FORMATS, help="format, where the name does not tell")
    parser.add_argument(
        "--encoding", default="utf-8", metavar="NAME", help="of text files (default: %(default)s)"
    )
    parser.add_argument(
        "--out-of-core",
        choices=("auto", "yes", "no"),
        default="auto",
        help="read the table, of any format but libsvm, piece by piece (default: auto, where it "
        "does not fit into memory)",
    )


def clusters(text: str) -> list[int] | None:
    """``auto``, a number, numbers with commas, or a range with a colon."""
    if text == "auto":
        return None
    first, colon, last = text.partition(":")
    try:
        counts = (
            list(range(int(first), int(last) + 1))
            if colon
            else [int(part) for part in text.split(",")]
        )
    except ValueError:
        counts = []
    if not counts or min(counts) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is none of: auto, 5, 2:15 or 2,4,8")
    return counts


def nonzero(text: str) -> int | None:
    """``auto``, ``all``, or a number; 0 stands for all."""
    return {"auto": None, "all": 0}[text] if text in ("auto", "all") else whole(text)


def whole(text: str) -> int:
    """A whole number that is not negative."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number")
    return int(text)


def strength(text: str) -> float | None:
    """``auto``, or a number that is not negative."""
    return None if text == "auto" else non_negative(text)


def price(text: str) -> float | str:
    """``auto``, or a number above 0."""
    number = "auto" if text == "auto" else non_negative(text)
    if not number:
        raise argparse.ArgumentTypeError("a price is above 0: with 0, every level is a group")
    return number


def non_negative(text: str) -> float:
    """A number that is not negative."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0.0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of at least 0")
    return number


def share(text: str) -> float:
    """A number from 0 up to, but not including, 1."""
    number = non_negative(text)
    if number >= 1.0:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no share: give a number below 1, such as 0.2"
        )
    return number


def output(text: str) -> Path:
    """A file to write, in a folder that is there: better known before the work than after."""
    path = Path(text)
    if path.is_dir() or not path.parent.is_dir():
        what = "is a folder" if path.is_dir() else f"would be in {path.parent}, which is no folder"
        raise argparse.ArgumentTypeError(f"{text!r} {what}")
    if not os.access(path.parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise argparse.ArgumentTypeError(f"{text!r} cannot be written. Name another file")
    return path
