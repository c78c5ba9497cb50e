"""Values of options: text that becomes numbers and paths, or a complaint."""

import argparse
import os
import re
from pathlib import Path


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


def positive(text: str) -> int:
    """A whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least 1")
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


def resamples(text: str) -> int:
    """A number of resamples: two at least, to compare."""
    number = whole(text)
    if number < 2:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of at least 2")
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


def size(text: str) -> int:
    """Bytes: a number, or one that ends in K, M, G or T for powers of 1024."""
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([KMGT]?)B?", text.strip().upper())
    number = 0 if found is None else int(float(found[1]) * 1024 ** " KMGT".index(found[2] or " "))
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no size: give bytes, such as 500M or 20G")
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
