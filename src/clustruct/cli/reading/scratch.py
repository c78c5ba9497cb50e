"""A temporary place for what is made of a large table."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scipy.sparse import load_npz, save_npz

from clustruct.cli.reading.memory import free_bytes
from clustruct.cli.reading.streams import telling_full_disk

# The part of the memory, free in the beginning, that is filled before a file is written.
PART_OF_MEMORY = 0.5


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
        with telling_full_disk():
            yield Path(self._folder.name)
