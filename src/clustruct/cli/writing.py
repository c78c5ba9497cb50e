"""Writing tables: CSV, TSV, Parquet, Arrow and JSON lines."""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from clustruct._atomic import replacing
from clustruct.cli.messages import listed
from clustruct.cli.reading.streams import format_of

__all__ = ["write_pieces", "write_table"]


def write_table(frame: Any, path: Path) -> None:
    """Write a data frame in the format that the name of the file stands for."""
    write_pieces([frame], path)


def write_pieces(frames: Iterable[Any], path: Path) -> None:
    """The same for frames that follow each other, of which one at a time is in memory."""
    writers: dict[str | None, Callable[[Path, Iterable[Any]], None]] = {
        "csv": partial(_write_lines, lambda frame, first: frame.to_csv(index=False, header=first)),
        "tsv": partial(
            _write_lines, lambda frame, first: frame.to_csv(index=False, header=first, sep="\t")
        ),
        "jsonl": partial(_write_lines, _as_json_lines),
        "parquet": _write_parquet,
        "arrow": _write_arrow,
    }
    wanted = format_of(path.name)
    if wanted not in writers or path.suffix.lower() in (".gz", ".bz2", ".xz", ".zst"):
        endings = (".csv", ".tsv", ".jsonl", ".parquet", ".arrow")
        raise ValueError(f"{path} has no ending that can be written. End it in {listed(endings)}.")
    with replacing(path) as unfinished:
        writers[wanted](unfinished, frames)


def _write_lines(text_of: Callable[[Any, bool], str], path: Path, frames: Iterable[Any]) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        for number, frame in enumerate(frames):
            stream.write(text_of(frame, number == 0))


def _as_json_lines(frame: Any, first: bool) -> str:
    text: str = frame.to_json(orient="records", lines=True, double_precision=15)
    return text if text.endswith("\n") else f"{text}\n"


def _write_parquet(path: Path, frames: Iterable[Any]) -> None:
    import pyarrow.parquet as pq

    _write_batches(partial(pq.ParquetWriter, path), frames)


def _write_arrow(path: Path, frames: Iterable[Any]) -> None:
    import pyarrow as pa

    options = pa.ipc.IpcWriteOptions(compression="lz4")
    _write_batches(lambda schema: pa.ipc.new_file(str(path), schema, options=options), frames)


def _write_batches(open_with: Callable[[Any], Any], frames: Iterable[Any]) -> None:
    """Frames of the same columns, to what is opened with their schema."""
    import pyarrow as pa

    tables = (pa.Table.from_pandas(frame, preserve_index=False) for frame in frames)
    first = next(tables)
    with open_with(first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table.cast(first.schema))
