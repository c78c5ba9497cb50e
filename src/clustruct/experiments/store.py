"""Results on disk, one JSON line a repetition, which an interruption cannot damage.

A line is written whole, flushed and synced before its task counts as done. A torn last line after a
crash is dropped when the file is opened, and its repetition is computed again.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from clustruct._atomic import replacing
from clustruct.experiments.experiment import Row


class Store:
    """The rows of one measurement, in a file that need not exist yet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.rows: dict[str, Row] = {}
        text = path.read_bytes() if path.exists() else b""
        for line in text.split(b"\n")[:-1]:  # the last one is empty, or torn
            with suppress(ValueError, TypeError):  # a damaged line, or one of something else
                row = Row(**json.loads(line))
                self.rows[row.key] = row
        kept = b"".join(_line(row) for row in self.rows.values())
        if kept != text:
            write_whole(path, kept)

    def append(self, row: Row) -> None:
        """Keep a row; it is on disk when this returns."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            file.write(_line(row))
            file.flush()
            os.fsync(file.fileno())
        self.rows[row.key] = row


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file atomically, and the folder it is in if needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other runs out of a folder; the system releases the lock when the process ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise ValueError(f"{folder} is a file. Give --out the name of a folder.") from None
    with (folder / ".lock").open("w") as file:
        try:
            import fcntl
        except ImportError:  # only POSIX systems have it
            yield
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ValueError(
                f"Another run is writing to {folder}. Wait for it, or give another --out."
            ) from None
        yield


def _line(row: Row) -> bytes:
    return json.dumps(asdict(row), sort_keys=True, separators=(",", ":")).encode() + b"\n"
