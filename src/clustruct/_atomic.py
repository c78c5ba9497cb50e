"""Files that are written atomically."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PathLike = str | os.PathLike[str]

SUFFIX = ".part"


@contextmanager
def replacing(path: PathLike) -> Iterator[Path]:
    """Yield an empty temporary file, which is renamed to ``path`` when the block succeeds.

    If the block fails, Ctrl-C included, it is deleted, and an older file stays as it was. The
    folder has to exist.
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder. Give the name of a file.")
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"{target.parent}, the folder of {target.name}, does not exist. "
            "Make it first, or name another."
        )
    partial = None
    try:
        partial = _new_file(target)
        partial.chmod(_usual_mode(target))
        yield partial
        with partial.open("rb") as stream:
            os.fsync(stream.fileno())  # a crash cannot leave the name without the content
        partial.replace(target)
    finally:
        if partial is not None:
            partial.unlink(missing_ok=True)


def _new_file(target: Path) -> Path:
    """An empty file beside the target, with a name of its own."""
    try:
        handle, name = tempfile.mkstemp(prefix=f"{target.name}.", suffix=SUFFIX, dir=target.parent)
    except OSError as error:
        reason = f"{target} cannot be written: {error.strerror or error}"
        raise type(error)(f"{reason}. Name a file in another folder.") from error
    try:
        os.close(handle)
    except BaseException:  # such as Ctrl-C, which may come now
        os.unlink(name)
        raise
    return Path(name)


def _usual_mode(target: Path) -> int:
    """The permissions of the replaced file, or of a new one."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
