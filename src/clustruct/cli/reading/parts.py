"""Tables that can be read in parts, and where to find them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from clustruct.cli.reading.streams import TABLE_MAGIC, format_of

__all__ = ["Part", "PartedTable", "find_table"]


@dataclass(frozen=True)
class Part:
    """Rows that are stored together.

    Attributes
    ----------
    file : Path
    number : int
        Of the part in the file.
    first : int
        Number of its first row in the whole table.
    n_rows : int
    """

    file: Path
    number: int
    first: int
    n_rows: int


class PartedTable(Protocol):
    """A table of which some rows or some columns can be read.

    Attributes
    ----------
    name, format_name : str
        For messages.
    is_stream : bool
        Whether it is one file that can be read from beginning to end.
    """

    name: str
    format_name: str
    is_stream: bool

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        ...

    @property
    def parts(self) -> list[Part]:
        """All rows, in order."""
        ...

    @property
    def n_rows(self) -> int:
        """Their number."""
        ...

    def column_for(self, target: str) -> str:
        """The column that is meant by a target."""
        ...

    def bytes_in_memory(self) -> float:
        """What a data frame of all of it would take, about."""
        ...

    def is_text(self, name: str) -> bool:
        """Whether a column is stored as text, of which a value may take any memory."""
        ...

    def column(self, name: str) -> Any:
        """All values of a column, as a series; rows are numbered from 0."""
        ...

    def stretches(self, columns: Sequence[str], n_bytes: int) -> Iterator[Any]:
        """Some columns from the first row to the last, in frames of so many bytes, about."""
        ...

    def frame(self, parts: Sequence[Part], columns: Sequence[str]) -> Any:
        """Some rows of some columns; rows are numbered as in the whole table."""
        ...

    def load(self) -> Any:
        """All of it, as a data frame."""
        ...


def find_table(name: str, wanted: str | None, target: str | None = None) -> PartedTable | None:
    """The table of a folder, of a Parquet file or of an array; None for all else.

    Parameters
    ----------
    name : str
    wanted : str or None
        The format, where it was given.
    target : str or None
        For an array, the file with the target, if it is in one.

    Returns
    -------
    PartedTable or None
    """
    path = Path(name)
    if path.is_dir():
        from clustruct.cli.reading.parquet import ParquetTable

        files = sorted(p for p in path.iterdir() if p.is_file() and format_of(p.name) == "parquet")
        if not files:
            raise ValueError(
                f"{name} is a folder without Parquet files. Name a file, or a folder with files "
                "that end in .parquet."
            )
        return ParquetTable(name, files)
    if not path.is_file():
        return None
    if path.suffix.lower() == ".npy" and wanted is None:
        from clustruct.cli.reading.arrays import ArrayTable

        return ArrayTable(name, target)
    if (wanted or format_of(name)) == "parquet" and _is_plain(path):
        from clustruct.cli.reading.parquet import ParquetTable

        return ParquetTable(name, [path])
    return None


def _is_plain(path: Path) -> bool:
    """Whether a Parquet file is one, and not compressed as a whole or something else."""
    with path.open("rb") as stream:
        return TABLE_MAGIC.get(stream.read(4)) == "parquet"
