"""Faults that are known and not mended yet, each with the reason why it is let through.

This is the one place for them: a failure that is listed here is counted as known, is not kept as a
regression and does not end a run with an error. A line goes when its fault is mended.
"""

import re
from typing import NamedTuple

from fuzz.cases import Failure


class Known(NamedTuple):
    """A kind of failure: its target, a pattern of what failed, and why it is let through."""

    target: str
    what: str
    reason: str


KNOWN: tuple[Known, ...] = ()


def reason_for(failure: Failure) -> str | None:
    """Why a failure is let through, or None."""
    for known in KNOWN:
        if known.target == failure.target and re.search(known.what, failure.what):
            return known.reason
    return None
