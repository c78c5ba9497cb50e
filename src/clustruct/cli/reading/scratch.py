"""Free memory, and a temporary place for what is made of a large table."""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import load_npz, save_npz

# The part of the memory, free in the beginning, that is filled before a file is written.
PART_OF_MEMORY = 0.5


def free_bytes() -> float:
    """Free memory; infinite where it is not known."""
    if find_spec("psutil") is not None:
        import psutil

        return float(psutil.virtual_memory().available)
    names = os.sysconf_names if hasattr(os, "sysconf_names") else {}
    if "SC_AVPHYS_PAGES" in names:
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return np.inf


def size_in_words(n_bytes: float) -> str:
    """Bytes for a message."""
    return f"{n_bytes / 1e9:.3g} GB"


class Scratch:
    """Sparse pieces, in memory while there is room and in a temporary folder from then on.

    It is a context: the folder is gone at its end, however that comes.
    """

    def __init__(self) -> None:
        self._room = PART_OF_MEMORY * free_bytes()
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._n_files = 0
        self.bytes_on_disk = 0

    def __enter__(self) -> "Scratch":
        return self

    def __exit__(self, *error: object) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def put(self, matrix: Any) -> Any:
        """Keep a sparse matrix; return a Dask array of one chunk, which is read lazily."""
        import dask
        import dask.array as da

        size = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
        if size <= self._room:
            self._room -= size
            piece = dask.delayed(lambda: matrix, pure=False)()
        else:
            self._room = 0.0  # pieces that follow each other are in one place
            with self.writing() as folder:
                path = folder / f"{self._n_files}.npz"
                save_npz(path, matrix, compressed=False)
            self._n_files += 1
            self.bytes_on_disk += size
            piece = dask.delayed(load_npz, pure=False)(str(path))
        return da.from_delayed(piece, matrix.shape, matrix.dtype, meta=matrix[:0])

    @contextmanager
    def writing(self) -> Iterator[Path]:
        """The folder, to write a file in; a full disk is told."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="clustruct-")
        try:
            yield Path(self._folder.name)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            raise OSError(
                f"no room is left in {tempfile.gettempdir()} for what is made of the table. Name a "
                "folder with more room in the environment variable TMPDIR."
            ) from error
