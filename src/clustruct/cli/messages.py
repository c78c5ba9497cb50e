"""How commands complain: what is wrong, where, and what to do about it."""

import difflib
import json
import math
import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Any


class BadUsage(ValueError):
    """Arguments that do not go together; the command ends with status 2."""


class EndedEarly(KeyboardInterrupt):
    """Ctrl-C, after which the command has kept and written the best so far; with the words."""


def note(text: str) -> None:
    """Print a line to standard error, unless that is closed or full."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(printable(text), file=sys.stderr)


# Characters that a terminal obeys instead of showing them, or that reorder or hide what stands
# beside them: controls but for tab and the end of a line, marks of direction, surrogates.
_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def printable(text: str) -> str:
    """Text of which a terminal shows every character: others are written as in Python."""
    return _OBEYED.sub(lambda found: repr(found[0])[1:-1], text)


def in_one_line(text: object) -> str:
    """The same on one line."""
    return printable(str(text)).replace("\n", "\\n").replace("\t", "\\t")


def as_json(value: Any) -> str:
    """Values as JSON; a number that is not finite, which JSON does not have, becomes null."""
    return json.dumps(_finite(value), allow_nan=False, default=_plain)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value


def _plain(value: Any) -> Any:
    """NumPy's scalars as Python's, and all else as text."""
    return value.item() if hasattr(value, "item") else str(value)


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """The names that are most like one that is not there, and otherwise the first few of them."""
    known = [str(other) for other in names]
    folded = {other.casefold(): other for other in reversed(known)}
    if name.casefold() in folded:
        return f"Did you mean {folded[name.casefold()]!r}?"
    near = difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.6)
    if near:
        return f"Did you mean {' or '.join(repr(folded[other]) for other in near)}?"
    return f"There are: {listed(known)}."


def listed(names: Iterable[object], most: int = 8) -> str:
    """Names in one line, the first few of many."""
    every = [str(name) for name in names]
    rest = len(every) - most
    return ", ".join(every[:most]) + (f" and {rest} more" if rest > 0 else "")


def in_percent(share: float) -> str:
    """A share in percent; what is more than none and less than all is never rounded to these."""
    percent = min(max(100.0 * share, 1.0), 99.0) if 0.0 < share < 1.0 else 100.0 * share
    return f"{percent:.0f} %"
