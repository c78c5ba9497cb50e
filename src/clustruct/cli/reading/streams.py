"""From the name of a file to its bytes: unpacked, and seen to be what the name says."""

import bz2
import errno
import gzip
import io
import lzma
import math
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from clustruct._extras import load_extra
from clustruct.cli.messages import BadUsage, did_you_mean, listed

# How names end, and what that says of the content.
ENDINGS = {
    **dict.fromkeys((".csv", ".txt"), "csv"),
    **dict.fromkeys((".tsv", ".tab"), "tsv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), "arrow"),
    **dict.fromkeys((".jsonl", ".ndjson"), "jsonl"),
    ".json": "json",
    **dict.fromkeys((".svm", ".libsvm", ".svmlight"), "svm"),
}
FORMATS = tuple(dict.fromkeys(ENDINGS.values()))
NAMES = {
    "csv": "CSV",
    "tsv": "TSV",
    "parquet": "Parquet",
    "arrow": "Arrow",
    "jsonl": "JSON lines",
    "json": "JSON",
    "svm": "libsvm",
}
PACKED = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}
# How files begin: those of compression, the binary formats of tables, and others.
PACKED_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
}
TABLE_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow"}
OTHER_MAGIC = {
    b"PK\x03\x04": "a zip archive (an Excel workbook is one)",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"%PDF": "a PDF",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"SQLite format 3": "an SQLite database",
    b"\x89HDF": "an HDF5 file",
    b"\x80\x04": "a pickle",
    b"\x80\x05": "a pickle",
}
# What the libraries raise for content that is damaged.
_DAMAGE = (OSError, EOFError, lzma.LZMAError, zlib.error)
STDIN = "-"
START = 1 << 16
# What cannot be read twice is copied: to memory up to this size, else to a file.
COPY_BYTES = 1 << 26
# What a file may unpack to: so many bytes, or so many times its own size if that is more. Tables
# are rarely packed to less than a thirtieth, and files that are made to do harm to a thousandth.
MOST_UNPACKED, MOST_TIMES = 4 << 30, 100.0


@dataclass(frozen=True)
class Source:
    """Where a table is read from."""

    name: str  # for messages
    format: str  # one of `FORMATS`
    stream: IO[bytes]  # the content, unpacked; it can be read from the start again
    start: bytes  # the first bytes of it
    n_bytes: int = 0  # length of the content
    n_raw: int = 0  # length of the file
    max_size: float | None = None  # what it may unpack to, if an option says so

    @property
    def format_name(self) -> str:
        """The format, as people write it."""
        return NAMES[self.format]


def format_of(name: str) -> str | None:
    """The format that the name of a file stands for, compressed or not."""
    path = Path(name)
    if path.suffix.lower() in PACKED:
        path = path.with_suffix("")
    return ENDINGS.get(path.suffix.lower())


@contextmanager
def open_source(
    name: str, wanted: str | None = None, max_size: float | None = None
) -> Iterator[Source]:
    """Open a file, or standard input for ``-``; with `wanted`, it is of that format.

    What is compressed is unpacked to a copy, at most `max_size` bytes of it (`size_limit`).
    """
    known = wanted or format_of(name)
    if name == STDIN and known is None:
        raise BadUsage(
            f"standard input has no name that tells its format. Give --format: {listed(FORMATS)}."
        )
    label = "standard input" if name == STDIN else name
    with _raw(name) as raw:
        n_raw = raw.seek(0, io.SEEK_END)
        raw.seek(0)
        with _unpacked(raw, label, size_limit(n_raw, max_size)) as stream:
            n_bytes = stream.seek(0, io.SEEK_END)
            stream.seek(0)
            start = stream.read(START)
            stream.seek(0)
            if not start.strip():
                raise ValueError(f"{label} is empty. Name a file with a table in it.")
            found = _agreed(known, start, label, name != STDIN)
            yield Source(label, found, stream, start, n_bytes, n_raw, max_size)


def size_limit(n_raw: int, max_size: float | None = None) -> float:
    """Bytes that a file of `n_raw` bytes may unpack to; `max_size` if that is given."""
    return max(MOST_UNPACKED, MOST_TIMES * n_raw) if max_size is None else max_size


def check_size(name: str, size: float, most: float) -> None:
    """Refuse content that takes more bytes than are allowed."""
    if size > most:
        raise ValueError(
            f"{name} holds at least {size:,.0f} bytes when it is unpacked, and {most:,.0f} are "
            "allowed. If you trust where it comes from, allow more with --max-size, such "
            "as --max-size 100G."
        )


def _raw(name: str) -> IO[bytes]:
    """The bytes as they are."""
    if name == STDIN:
        return _copied(sys.stdin.buffer)
    path = Path(name)
    if path.is_dir():
        raise IsADirectoryError(f"{name} is a folder. Name a file in it.")
    if not path.exists():
        folder = path.parent
        near = did_you_mean(
            path.name, (p.name for p in folder.iterdir()) if folder.is_dir() else ()
        )
        remedy = near if near.startswith("Did") else "Mend the name."
        raise FileNotFoundError(f"{name} does not exist. {remedy}")
    return path.open("rb")


def _copied(stream: Any, label: str = "", most: float = math.inf) -> IO[bytes]:
    """The content of a stream, from its beginning whenever it is asked for."""
    copy = tempfile.SpooledTemporaryFile(max_size=COPY_BYTES)  # noqa: SIM115 (is handed on)
    size = 0
    try:
        with telling_full_disk():
            while block := stream.read(START):
                size += len(block)
                check_size(label, size, most)
                copy.write(block)
            copy.seek(0)
    except BaseException:
        with suppress(OSError):  # of what was still to be written
            copy.close()
        raise
    return cast(IO[bytes], copy)


@contextmanager
def telling_full_disk() -> Iterator[None]:
    """Say what to do where the folder for temporary files is full."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        raise OSError(
            f"no room is left in {tempfile.gettempdir()} for what is made of the table. Name a "
            "folder with more room in the environment variable TMPDIR."
        ) from error


def _unpacked(raw: IO[bytes], label: str, most: float) -> IO[bytes]:
    """The content of a file that may be compressed; its first bytes tell, not its name."""
    start = raw.read(8)
    raw.seek(0)
    packing = _begins(start, PACKED_MAGIC)
    said = PACKED.get(Path(label).suffix.lower())
    if said is not None and packing is None and start:
        raise ValueError(
            f"{label} is not compressed by {said}, as its name says. "
            f"Rename it without {Path(label).suffix}, or get it again."
        )
    if packing is None:
        return raw
    try:
        return _copied(_unpacking(raw, packing), label, most)
    except _DAMAGE as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # of the system, not of the content
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ValueError(f"{label} cannot be unpacked: {reason}. Get an undamaged copy.") from error


def _unpacking(raw: IO[bytes], packing: str) -> Any:
    """A stream that unpacks as it is read."""
    if packing == "zstd":
        pa = load_extra("pyarrow", "a file compressed by zstd", "cli")
        return pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")
    openers: dict[str, Any] = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}
    return openers[packing](raw, "rb")


def _begins(start: bytes, magic: dict[bytes, str]) -> str | None:
    """What a file is that begins like this; None if it is none of these."""
    return next((name for sign, name in magic.items() if start.startswith(sign)), None)


def _agreed(said: str | None, start: bytes, label: str, named: bool) -> str:
    """The format, if what the name says and what the content shows agree."""
    found = _begins(start, TABLE_MAGIC)
    if found is not None:
        if said not in (None, found):
            raise ValueError(
                f"{label} is said to be {NAMES[str(said)]}, but begins like {NAMES[found]}. "
                f"Give --format {found}."
            )
        return found
    if said is None:
        raise ValueError(
            f"{label} has no ending that tells its format. Give --format: {listed(FORMATS)}."
        )
    if said in ("json", "jsonl"):  # both are called either, and the first sign tells
        first = start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
        said = {b"[": "json", b"{": "jsonl"}.get(first, said)
    other = _begins(start, OTHER_MAGIC)
    if other is None and said in TABLE_MAGIC.values():
        other = "something else"
    if other is None and b"\0" in start:
        other = "a binary file of another kind"
    if other is not None:
        remedy = "Name the right file" if named else "Send the right file"
        raise ValueError(
            f"{label} is no {NAMES[said]} file but {other}. {remedy}, or save the table as CSV."
        )
    return said
