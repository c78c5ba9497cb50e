"""Reading tables: CSV, TSV, Parquet, Arrow, JSON and libsvm."""

import csv
import io
import re
import shutil
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustruct._extras import load_extra
from clustruct.cli.messages import listed
from clustruct.cli.reading.cage import Cage
from clustruct.cli.reading.columnar import naming
from clustruct.cli.reading.records import json_array, json_lines
from clustruct.cli.reading.streams import START, Source, size_limit

# Formats that are read by another process, since damaged files can end the one that reads them.
CAGED = ("parquet", "arrow")
SEPARATORS = (",", ";", "\t", "|")
MOST_COLUMNS = 10**8
# A number with a decimal comma, between semicolons or at the ends of a line.
DECIMAL_COMMA = re.compile(rb"(?:^|;)\s*-?[0-9]+,[0-9]+\s*(?=;|\r?$)", re.MULTILINE)
# What may be the beginning of a field with zeros before a number, and such a field.
MAYBE_A_CODE = re.compile(rb"""[,;\t|"\s][-+]?0[0-9]""")
CODE = re.compile(r"\s*[-+]?0[0-9]+\s*")
CODE_ROWS = 1 << 16
DECIMAL_POINT = re.compile(rb"(?:^|;)\s*-?[0-9]+\.[0-9]+\s*(?=;|\r?$)", re.MULTILINE)


def pandas() -> Any:
    """The package that holds tables, or word of how to get it."""
    load_extra("pyarrow", "reading tables", "cli")  # what pandas reads Parquet and Arrow with
    return load_extra("pandas", "reading tables", "cli")


def read_table(source: Source, as_text: Collection[str] = (), encoding: str = "utf-8") -> Any:
    """Read a table, of any format but libsvm, as a data frame with unique names of columns.

    Values of columns `as_text` stay as they are written. The encoding is that of CSV and TSV.
    """
    if source.format in CAGED:
        tables = list(caged_tables(source))
        frame = as_frame(tables, source.name, source.format_name).reset_index(drop=True)
        frame = _named(source, frame)
    else:
        as_text = [*as_text, *codes_in(source, encoding)]
        frame = next(read_lines(source, as_text, encoding), None)
    if frame is None or not len(frame):
        raise ValueError(f"{source.name} has columns but no rows. Give a table with rows.")
    return frame


def read_lines(
    source: Source, as_text: Collection[str], encoding: str, n_rows: int | None = None
) -> Iterator[Any]:
    """Read CSV, TSV or JSON in frames of `n_rows`, or at once if that is None.

    The type of a column in a frame is that of its values in these rows.
    """
    frames = (
        _read_json(source, as_text, n_rows)
        if source.format in ("json", "jsonl")
        else _read_csv(source, as_text, encoding, n_rows)
    )
    for frame in frames:
        yield _named(source, frame)


def _named(source: Source, frame: Any) -> Any:
    """A frame whose columns have names that are text, each of its own."""
    frame.columns = [str(name) for name in frame.columns]
    _check_names(source.name, list(frame.columns))
    return frame


def _check_names(name: str, columns: list[str]) -> None:
    twice = [column for column, count in Counter(columns).items() if count > 1]
    if twice:
        raise ValueError(
            f"{name} has {Counter(columns)[twice[0]]} columns named {twice[0]!r}. "
            "Give each column a name of its own in the first line."
        )


# ---- CSV and TSV


def _read_csv(
    source: Source, as_text: Collection[str], encoding: str, n_rows: int | None
) -> Iterator[Any]:
    """Read CSV or TSV with pandas, in frames of `n_rows` or at once."""
    header, separator = _header(source, encoding)
    points, commas = (len(form.findall(source.start)) for form in (DECIMAL_POINT, DECIMAL_COMMA))
    parse = partial(
        pandas().read_csv,
        source.stream,
        sep=separator,
        decimal="," if separator == ";" and commas > points else ".",
        # All of them, if asked for all: pandas calls the second "a" of a header "a.1".
        dtype=dict.fromkeys(set(as_text) & set(header), str) if set(header) - set(as_text) else str,
        encoding=_with_mark(encoding),
        index_col=False,
        low_memory=False,
        skipinitialspace=True,
        chunksize=n_rows,
    )
    parsed = _parsed(source.name, encoding, len(header), parse)
    if n_rows is None:
        yield parsed
        return
    read_on = partial(_parsed, source.name, encoding, len(header), partial(next, parsed, None))
    with parsed:
        while (frame := read_on()) is not None:
            yield frame


def codes_in(source: Source, encoding: str) -> list[str]:
    """Columns of CSV and TSV with codes such as 04554, which lose their zeros as numbers."""
    if source.format not in ("csv", "tsv") or not _may_have_codes(source):
        return []
    found: dict[str, None] = {}
    for frame in _read_csv(source, _header(source, encoding)[0], encoding, CODE_ROWS):
        for name in frame.columns:
            values = frame[name].drop_duplicates().dropna()
            if name not in found and values.str.fullmatch(CODE).any():
                found[str(name)] = None
    source.stream.seek(0)
    return list(found)


def _may_have_codes(source: Source) -> bool:
    """Whether some field may begin with zeros before a number; most tables have none."""
    before, found = b"\n", False
    while not found and (block := source.stream.read(START)):
        found = MAYBE_A_CODE.search(before + block) is not None
        before = block[-3:]
    source.stream.seek(0)
    return found


def _parsed(name: str, encoding: str, n_columns: int, parse: Callable[[], Any]) -> Any:
    """What pandas makes of a file, or its complaint in our words."""
    pd = pandas()
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            return parse()
        except UnicodeDecodeError as error:
            raise ValueError(_not_encoded(name, encoding)) from error
        except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
            if "out of memory" in str(error):
                raise MemoryError(f"{name} was being read") from error
            raise ValueError(_ragged(name, str(error), n_columns)) from error


def _header(source: Source, encoding: str) -> tuple[list[str], str]:
    """The names in the first line, and what stands between them."""
    try:
        text = source.start.decode(_with_mark(encoding))
    except UnicodeDecodeError as error:
        if len(source.start) < START or error.start < START - 4:
            raise ValueError(_not_encoded(source.name, encoding)) from error
        text = source.start[: error.start].decode(_with_mark(encoding))  # a character was cut
    except LookupError as error:
        raise ValueError(
            f"{encoding!r} is no encoding. Give --encoding utf-8 or cp1252."
        ) from error
    text = text.lstrip()
    if not text:
        raise ValueError(f"{source.name} is empty. Name a file with a table in it.")
    separator = "\t" if source.format == "tsv" else max(SEPARATORS, key=text.splitlines()[0].count)
    try:
        stream = io.StringIO(text, newline="")
        names = next(csv.reader(stream, delimiter=separator, skipinitialspace=True))
    except csv.Error as error:
        raise ValueError(f"{source.name} is no table: {error}. Mend its first line.") from error
    header = [name or f"Unnamed: {place}" for place, name in enumerate(names)]
    _check_names(source.name, header)
    try:
        numbers = np.array(header, dtype=float)
    except ValueError:
        return header, separator
    # A first line of numbers is a row, unless it counts the columns.
    if len(header) > 1 and not np.array_equal(numbers, numbers[0] + np.arange(len(header))):
        raise ValueError(
            f"{source.name} has numbers in its first line, {listed(header, most=3)}, where the "
            "names of the columns belong. Add a line with names at the top."
        )
    return header, separator


def _with_mark(encoding: str) -> str:
    """The encoding that drops the mark which some programs write first."""
    return "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding


def _not_encoded(name: str, encoding: str) -> str:
    return (
        f"{name} is not text in {encoding}. If it comes from an older program, "
        "give --encoding cp1252 (or another); otherwise it may be no text at all."
    )


def _ragged(name: str, reason: str, n_columns: int) -> str:
    """The complaint of pandas in our words."""
    found = re.search(r"Expected \d+ fields in line (\d+), saw (\d+)", reason)
    if found:
        return (
            f"{name}, line {found[1]}: {found[2]} fields, where the first line has {n_columns}. "
            "Mend the line; text that holds the separator needs quotes."
        )
    if "Length of header" in reason:
        return (
            f"{name}: rows have more fields than the first line, which has {n_columns}. "
            "Give every column a name in the first line."
        )
    return f"{name} is no table: {reason.strip()}. Mend the file."


# ---- JSON, Parquet, Arrow


def _read_json(source: Source, as_text: Collection[str], n_rows: int | None) -> Iterator[Any]:
    records = json_lines(source) if source.format == "jsonl" else json_array(source)
    while some := list(islice(records, n_rows)):
        for row in some:
            for name in as_text:
                if row.get(name) is not None and row[name] == row[name]:
                    row[name] = str(row[name])
        yield pandas().DataFrame(some)


def caged_tables(source: Source) -> Iterator[Any]:
    """The tables of a Parquet or Arrow file, read by another process."""
    with _as_file(source) as path, closing(_cage(source, path)) as cage:
        yield from cage.whole()


def _cage(source: Source, path: Path) -> Cage:
    return Cage(source.format, source.name, [path], size_limit(source.n_raw, source.max_size))


@contextmanager
def _as_file(source: Source) -> Iterator[Path]:
    """The content as a file with a name: itself, or a copy of what was unpacked."""
    if isinstance(source.stream, io.BufferedReader):
        yield Path(source.name)
        return
    with tempfile.TemporaryDirectory(prefix="clustruct-") as folder:
        path = Path(folder) / f"table.{source.format}"
        with path.open("wb") as copy:
            shutil.copyfileobj(source.stream, copy)
        yield path


def as_frame(tables: list[Any], name: str, format_name: str) -> Any:
    """Tables below each other as a frame; what pandas makes of their notes may be anything."""
    import pyarrow as pa

    with naming(name, format_name):
        return pa.concat_tables(tables).to_pandas()


# ---- libsvm


@dataclass(frozen=True, eq=False)
class SparseTable:
    """The content of a libsvm file."""

    X: Any  # samples
    y: NDArray[np.float64]  # the number before each sample
    base: int  # the number of the first column in the file, 0 or 1


def read_sparse(
    source: Source, n_features: int | None = None, base: int | None = None
) -> SparseTable:
    """Read a libsvm file, with so many columns and numbered from `base` if these are given."""
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(source.stream, zero_based=True)
    except (ValueError, UnicodeDecodeError, OverflowError) as error:
        raise ValueError(_bad_line(source)) from error
    if not X.shape[0]:
        raise ValueError(f"{source.name} has no rows. Give a table with rows.")
    if base is None:
        base = 0 if X.shape[1] and X[:, [0]].nnz else 1
    if base and X.shape[1] and X[:, [0]].nnz:
        raise ValueError(
            f"{source.name} has a column 0, and the columns of the model begin with 1. "
            "Number the columns as in the file that the model was fitted to."
        )
    X = X[:, base:]
    most = MOST_COLUMNS if n_features is None else n_features
    if X.shape[1] > most:
        raise ValueError(
            f"{source.name} has a column {X.shape[1] - 1 + base}, and the last one that "
            f"{'can be' if n_features is None else 'the model knows'} is {most - 1 + base}. "
            "Number the columns as in the file that the model was fitted to."
        )
    if n_features is not None:
        X.resize(X.shape[0], n_features)
    return SparseTable(X, y, base)


def sparse_names(base: int, n_features: int) -> list[str]:
    """Names of the columns of a libsvm file, which has none itself."""
    return [f"x{column + base}" for column in range(n_features)]


def _bad_line(source: Source) -> str:
    """Which line of a libsvm file is not one."""
    source.stream.seek(0)
    entry = re.compile(rb"^\s*[-+0-9.eE]+(\s+(qid|[0-9]+):[-+0-9.eEinfaINFA]+)*\s*(#.*)?$")
    for number, line in enumerate(source.stream, start=1):
        if line.strip() and not line.lstrip().startswith(b"#") and not entry.match(line):
            shown = line.strip()[:40].decode("utf-8", errors="replace")
            return (
                f"{source.name}, line {number}: {shown!r} is not in libsvm's form. "
                "Give a number and then column:value pairs, such as `1 3:0.5 7:2`."
            )
    return (
        f"{source.name} is not in libsvm's form: columns must be numbered upwards in every line. "
        "Mend the file."
    )
