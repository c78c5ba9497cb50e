"""From the name of a file to its bytes: unpacked, and seen to be what the name says."""

import bz2
import gzip
import io
import lzma
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
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
STDIN = "-"
START = 1 << 16
# What cannot be read twice is copied: to memory up to this size, else to a file.
COPY_BYTES = 1 << 26
# How much longer content is than what it is packed into, about.
PACKED_TIMES = 4.0


@dataclass(frozen=True)
class Source:
    """Where a table is read from."""

    name: str  # for messages
    format: str  # one of `FORMATS`
    stream: IO[bytes]  # the content, unpacked; it can be read from the start again
    start: bytes  # the first bytes of it
    n_bytes: float = 0.0  # length of the content; about, where it is packed

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
def open_source(name: str, wanted: str | None = None) -> Iterator[Source]:
    """Open a file, or standard input for ``-``; with `wanted`, it is of that format."""
    known = wanted or format_of(name)
    if name == STDIN and known is None:
        raise BadUsage(
            f"standard input has no name that tells its format. Give --format: {listed(FORMATS)}."
        )
    label = "standard input" if name == STDIN else name
    with _raw(name) as raw:
        n_bytes = float(raw.seek(0, io.SEEK_END))
        raw.seek(0)
        with _unpacked(raw, label) as stream:
            n_bytes *= 1.0 if stream is raw else PACKED_TIMES
            start = _start(stream, label)
            found = _agreed(known, start, label, name != STDIN)
            yield Source(label, found, stream, start, n_bytes)


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


def _copied(stream: Any) -> IO[bytes]:
    """The content of a stream, from its beginning whenever it is asked for."""
    copy = tempfile.SpooledTemporaryFile(max_size=COPY_BYTES)  # noqa: SIM115 (is handed on)
    try:
        shutil.copyfileobj(stream, copy, START)
    except BaseException:
        copy.close()
        raise
    copy.seek(0)
    return cast(IO[bytes], copy)


def _unpacked(raw: IO[bytes], label: str) -> IO[bytes]:
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
    if packing == "zstd":
        return _zstd(raw, label)
    openers: dict[str, Any] = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}
    return cast(IO[bytes], openers[packing](raw, "rb"))


def _begins(start: bytes, magic: dict[bytes, str]) -> str | None:
    """What a file is that begins like this; None if it is none of these."""
    return next((name for sign, name in magic.items() if start.startswith(sign)), None)


def _zstd(raw: IO[bytes], label: str) -> IO[bytes]:
    pa = load_extra("pyarrow", "a file compressed by zstd", "cli")
    try:
        return _copied(pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd"))
    except OSError as error:
        raise ValueError(_cannot_unpack(label, error)) from error


def _cannot_unpack(label: str, error: Exception) -> str:
    return f"{label} cannot be unpacked: {error}. Get an undamaged copy."


def _start(stream: IO[bytes], label: str) -> bytes:
    try:
        start = stream.read(START)
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise ValueError(_cannot_unpack(label, error)) from error
    stream.seek(0)
    if not start.strip():
        raise ValueError(f"{label} is empty. Name a file with a table in it.")
    return start


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
