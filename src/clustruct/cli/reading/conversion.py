"""Tables that can only be read from beginning to end, copied so that parts of them can be read."""

import math
from collections.abc import Collection
from itertools import chain
from pathlib import Path
from typing import Any

from clustruct.cli.messages import BadUsage
from clustruct.cli.reading.columnar import ParquetFiles
from clustruct.cli.reading.scratch import Scratch
from clustruct.cli.reading.stored import ColumnarTable
from clustruct.cli.reading.streams import Source
from clustruct.cli.reading.tables import CAGED, caged_tables, codes_in, pandas, read_lines

# Bytes that are read at a time.
PIECE_BYTES = 1 << 26


def as_parquet(
    source: Source, as_text: Collection[str], encoding: str, scratch: Scratch
) -> ColumnarTable:
    """Copy a table to Parquet files in a temporary folder.

    Columns have the types that they have when the whole table is read. The columns `as_text` and
    the `encoding` are those of `read_table`.
    """
    if source.format == "svm":
        raise BadUsage(
            f"--out-of-core yes is for tables with named columns, and {source.name} is libsvm. "
            "Leave the option out."
        )
    pandas()
    with scratch.writing() as folder:
        if source.format in CAGED:
            _copy_arrow(source, folder)
        else:
            known = dict.fromkeys([*as_text, *codes_in(source, encoding)], "string")
            # A column may hold numbers in one piece and text in another. As the text of numbers is
            # lost once they are read, the table is then read again with the column as text.
            while conflict := _write_pieces(source, known, encoding, folder):
                known |= conflict
                source.stream.seek(0)
        files = sorted(folder.glob("*.parquet"))
    reader = ParquetFiles(source.name, list(map(str, files)), max_size=math.inf)
    return ColumnarTable(source.name, reader, source.format_name)


def _copy_arrow(source: Source, folder: Path) -> None:
    """Copy an Arrow file, or a Parquet file that was packed as a whole."""
    import pyarrow.parquet as pq

    tables = caged_tables(source)
    first = next(tables)
    with pq.ParquetWriter(folder / "table.parquet", first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table)


def _write_pieces(
    source: Source, known: dict[str, str], encoding: str, folder: Path
) -> dict[str, str]:
    """Write the pieces, or return the kind of a column that is not the same in all of them."""
    import pyarrow.parquet as pq

    ends = b"}" if source.format == "json" else b"\n"
    n_rows = max(1, int(PIECE_BYTES * max(1, source.start.count(ends)) / len(source.start)))
    texts = [name for name, kind in known.items() if kind == "string"]
    schemas: dict[Path, Any] = {}
    kinds: dict[str, set[str]] = {}
    for number, frame in enumerate(read_lines(source, texts, encoding, n_rows)):
        for name in frame.columns:
            found = kinds.setdefault(name, set())
            found |= {known.get(name) or _kind(frame[name])} - {""}
            if len(found) > 1 or "mixed" in found or found == {"list"} != {known.get(name)}:
                return {name: "list" if "list" in found else "string"}
        path = folder / f"{number:06}.parquet"
        table = _as_arrow(frame, known)
        pq.write_table(table, path, compression="lz4")
        schemas[path] = table.schema
    if not schemas:
        raise ValueError(f"{source.name} has no rows. Give a table with rows.")
    _give_same_columns(schemas)
    return {}


def _kind(series: Any) -> str:
    """What the values of a piece of a column are; empty if all are missing."""
    present = series.dropna()
    if not len(present):
        return ""
    if present.dtype.kind in "if":
        return "number"
    kind: str = pandas().api.types.infer_dtype(present)
    if kind == "mixed" and present.map(lambda value: isinstance(value, list | dict)).any():
        return "list"
    return kind if kind in ("boolean", "string") else "mixed"


def _as_arrow(frame: Any, known: dict[str, str]) -> Any:
    """A piece as a table; what is missing in all of its rows has no type yet.

    Lists are kept as such, so that they are complained of where they are used.
    """
    import pyarrow as pa

    arrays = {}
    for name in frame.columns:
        values = frame[name]
        if known.get(name) == "list":
            values = values.astype(object).map(lambda value: [str(value)], na_action="ignore")
        is_nothing = values.dtype in (object, float) and values.isna().all()
        arrays[name] = pa.nulls(len(frame)) if is_nothing else pa.array(values, from_pandas=True)
    return pa.table(arrays)


def _give_same_columns(schemas: dict[Path, Any]) -> None:
    """Write pieces again that lack a column, or have one of another type than others have."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    every = pa.unify_schemas(list(schemas.values()), promote_options="permissive")
    for place, field in enumerate(every):
        if pa.types.is_null(field.type):
            every = every.set(place, field.with_type(pa.float64()))
    for path, schema in schemas.items():
        if schema != every:
            table = pq.read_table(path)
            for name in set(every.names) - set(schema.names):
                table = table.append_column(name, pa.nulls(len(table)))
            table = table.select(every.names).cast(every, safe=False)
            pq.write_table(table, path, compression="lz4")
