"""Files that are there whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["PathLike", "replacing"]

PathLike = str | os.PathLike[str]

SUFFIX = ".part"


@contextmanager
def replacing(path: PathLike) -> Iterator[Path]:
    """A temporary file to write to, which takes the name ``path`` when the block has ended well.

    Whatever ends the block otherwise, Ctrl-C included, leaves nothing behind, and a file that had
    the name before as it was.
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder. Give the name of a file.")
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"{target.parent}, the folder of {target.name}, does not exist. "
            "Make it first, or name another."
        )
    try:
        handle, name = tempfile.mkstemp(prefix=f"{target.name}.", suffix=SUFFIX, dir=target.parent)
    except OSError as error:
        raise type(error)(
            f"{target} cannot be written: {error.strerror or error}. Name a file in another folder."
        ) from error
    partial = Path(name)
    try:
        os.close(handle)
        partial.chmod(_usual_mode(target))
        yield partial
        with partial.open("rb") as stream:
            os.fsync(stream.fileno())  # so that no crash leaves the name without the content
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _usual_mode(target: Path) -> int:
    """The permissions of the file to be replaced, or those that a new file gets."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
