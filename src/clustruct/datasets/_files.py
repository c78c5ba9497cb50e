"""Find, download and check the files of real data.

A file is looked for in the folder named by ``CLUSTRUCT_DATA``, then in the user's cache; a folder
given by the caller replaces both. Downloads go to the last of these folders, under a temporary name
until they are complete and checked.
"""

import hashlib
import os
import sys
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from shutil import copyfileobj

from clustruct._atomic import PathLike, replacing

__all__ = ["DataFile", "PathLike", "locate"]

VARIABLE = "CLUSTRUCT_DATA"
TIMEOUT = 60  # seconds without a response after which a download fails


def _sha256_of_file(path: Path) -> str:
    """SHA-256 of a whole file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@dataclass(frozen=True)
class DataFile:
    """A file of a public data set."""

    name: str
    sha256: str  # expected result of `digest`
    source: str  # where people can get it, for messages
    url: str | None = None  # where programs can download it
    digest: Callable[[Path], str] = _sha256_of_file


def locate(*files: DataFile, data_home: PathLike | None, download_if_missing: bool = True) -> Path:
    """Path of the first of several equivalent files that exists, or of a download; checked."""
    folders = _folders(data_home)
    for folder in folders:
        for file in files:
            if (folder / file.name).is_file():
                path = folder / file.name
                _check(file, path, str(path), f"Delete it and get it again from {file.source}.")
                return path
    if download_if_missing:
        for file in files:
            if file.url is not None:
                return _download(file, file.url, folders[-1])
    names = " or ".join(file.name for file in files)
    places = ", ".join(str(folder) for folder in folders)
    raise FileNotFoundError(
        f"{names} is in none of the folders looked in: {places}. Get it from {files[0].source}, "
        f"and put it in one of them or in a folder that the environment variable {VARIABLE} names."
    )


def _folders(data_home: PathLike | None) -> list[Path]:
    """Folders to look in, in order; downloads go to the last one."""
    if data_home is not None:
        return [Path(data_home).expanduser()]
    named = os.environ.get(VARIABLE)
    return [*([Path(named).expanduser()] if named else []), _cache_folder()]


def _cache_folder() -> Path:
    """The package's folder in the cache directory of the system."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "clustruct"


def _check(file: DataFile, path: Path, what: str, remedy: str) -> None:
    """Raise OSError if a file has the wrong SHA-256; ``what`` names it in the message."""
    found = file.digest(path)
    if found != file.sha256:
        raise OSError(
            f"{what} is not the file it should be: the SHA-256 of {file.name} must be "
            f"{file.sha256}, and is {found}. {remedy}"
        )


def _download(file: DataFile, url: str, folder: Path) -> Path:
    """Download a file; it gets its name only when it is complete and checked."""
    folder.mkdir(parents=True, exist_ok=True)
    otherwise = (
        f"Try again, or get it from {file.source} and put it in a folder that the environment "
        f"variable {VARIABLE} names."
    )
    path = folder / file.name
    with replacing(path) as partial:
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT) as stream, partial.open("wb") as copy:
                copyfileobj(stream, copy)
        except (OSError, HTTPException) as error:
            raise OSError(
                f"{file.name} could not be downloaded from {url}: {error}. {otherwise}"
            ) from error
        _check(file, partial, f"What was downloaded from {url}", otherwise)
    return path
