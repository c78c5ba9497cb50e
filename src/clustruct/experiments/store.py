"""Results on disk, one line a repetition, safe against interruption at any moment.

A line is written whole, flushed and synced before the next task counts as done. What a crash leaves
behind, a torn last line say, is no row: it is dropped when the file is opened, and the repetition
is done again.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from clustruct._atomic import replacing
from clustruct.experiments.experiment import Row

__all__ = ["Store", "locked", "write_whole"]

_FIELDS = ("key", "cell", "repetition", "seconds", "values")


class Store:
    """The rows of one measurement.

    Parameters
    ----------
    path : Path
        File of JSON lines; it need not be there yet.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.rows: dict[str, Row] = {}
        text = path.read_bytes() if path.exists() else b""
        lines = text.split(b"\n")
        for line in lines[:-1]:  # the last one is empty, or torn
            row = _row(line)
            if row is not None:
                self.rows[row.key] = row
        kept = b"".join(_line(row) for row in self.rows.values())
        if kept != text:
            write_whole(path, kept)

    def append(self, row: Row) -> None:
        """Keep a row, on disk before this returns."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            file.write(_line(row))
            file.flush()
            os.fsync(file.fileno())
        self.rows[row.key] = row


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file such that it is there in full or as it was before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other runs out of a folder; the system lifts the lock when the process ends."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as file:
        try:
            import fcntl
        except ImportError:  # not a POSIX system: no such lock
            yield
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ValueError(
                f"Another run writes to {folder} at this moment. "
                "Wait for it, or give another --out."
            ) from None
        yield


def _line(row: Row) -> bytes:
    return json.dumps(asdict(row), sort_keys=True, separators=(",", ":")).encode() + b"\n"


def _row(line: bytes) -> Row | None:
    try:
        found: Any = json.loads(line)
    except ValueError:
        return None
    if not isinstance(found, dict) or set(found) != set(_FIELDS):
        return None
    return Row(**found)
