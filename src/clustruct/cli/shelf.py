"""Where pieces of a matrix that took work to make are kept while a model is fitted to them."""

import errno
import tempfile
from pathlib import Path
from typing import Any

from scipy.sparse import load_npz, save_npz

from clustruct.cli.memory import free_bytes

__all__ = ["Shelf"]

# The part of the memory, free in the beginning, that is filled before a file is written.
PART_OF_MEMORY = 0.5


class Shelf:
    """Sparse pieces, in memory while there is room and in a temporary folder from then on.

    It is a context: the folder is gone at its end, however that comes.

    Examples
    --------
    >>> from scipy.sparse import eye_array
    >>> from clustruct.cli.shelf import Shelf
    >>> with Shelf() as shelf:
    ...     shelf.put(eye_array(3, format="csr")).sum().compute()
    np.float64(3.0)
    """

    def __init__(self) -> None:
        self._room = PART_OF_MEMORY * free_bytes()
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._n_files = 0
        self.bytes_on_disk = 0

    def __enter__(self) -> "Shelf":
        return self

    def __exit__(self, *error: object) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def put(self, matrix: Any) -> Any:
        """Keep a piece.

        Parameters
        ----------
        matrix : sparse matrix of shape (n, d)

        Returns
        -------
        dask.array.Array
            Of one chunk, which is read when it is needed.
        """
        import dask
        import dask.array as da

        size = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
        if size <= self._room:
            self._room -= size
            piece = dask.delayed(lambda: matrix, pure=False)()
        else:
            self._room = 0.0  # pieces that follow each other are in one place
            piece = dask.delayed(load_npz, pure=False)(str(self._write(matrix, size)))
        return da.from_delayed(piece, matrix.shape, matrix.dtype, meta=matrix[:0])

    @property
    def place(self) -> str:
        """The folder."""
        return tempfile.gettempdir() if self._folder is None else self._folder.name

    def _write(self, matrix: Any, size: int) -> Path:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="clustruct-")
        path = Path(self._folder.name) / f"{self._n_files}.npz"
        try:
            save_npz(path, matrix, compressed=False)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            raise OSError(
                f"no room is left in {tempfile.gettempdir()} for what is made of the table. Name a "
                "folder with more room in the environment variable TMPDIR."
            ) from error
        self._n_files += 1
        self.bytes_on_disk += size
        return path
