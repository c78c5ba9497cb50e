"""Writing tables: CSV, TSV, Parquet, Arrow and JSON lines."""

from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

from clustruct._atomic import replacing
from clustruct.cli.messages import listed
from clustruct.cli.reading.streams import PACKED, format_of

WRITTEN = ("csv", "tsv", "jsonl", "parquet", "arrow")


def write_table(frame: Any, path: Path) -> None:
    """Write a data frame in the format that the name of the file stands for."""
    write_pieces([frame], path)


def write_pieces(frames: Iterable[Any], path: Path) -> None:
    """The same for frames that follow each other, of which one at a time is in memory."""
    wanted = format_of(path.name)
    if wanted not in WRITTEN or path.suffix.lower() in PACKED:
        endings = (f".{name}" for name in WRITTEN)
        raise ValueError(f"{path} has no ending that can be written. End it in {listed(endings)}.")
    with replacing(path) as unfinished:
        write = _write_batches if wanted in ("parquet", "arrow") else _write_lines
        write(unfinished, frames, wanted)


def _write_lines(path: Path, frames: Iterable[Any], wanted: str) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        for number, frame in enumerate(frames):
            if wanted == "jsonl":
                text = frame.to_json(orient="records", lines=True, double_precision=15)
                stream.write(text if text.endswith("\n") else f"{text}\n")
            else:
                separator = "\t" if wanted == "tsv" else ","
                frame.to_csv(stream, index=False, header=not number, sep=separator)


def _write_batches(path: Path, frames: Iterable[Any], wanted: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    def opened(schema: Any) -> Any:
        if wanted == "parquet":
            return pq.ParquetWriter(path, schema)
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        return pa.ipc.new_file(str(path), schema, options=options)

    tables = (pa.Table.from_pandas(frame, preserve_index=False) for frame in frames)
    first = next(tables)
    with opened(first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table.cast(first.schema))
