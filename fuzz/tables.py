"""Readers of the command line on damaged and hostile files of every format, packed or not.

A file is read as a table with rows and columns of different names, or refused with an error that
names it and says what to do.
"""

import bz2
import gzip
import io
import lzma
import os
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from clustruct.cli.reading.streams import open_source
from clustruct.cli.reading.tables import read_sparse, read_table
from fuzz.cases import Fault, Random, Recipe, Target
from fuzz.damage import damaged, draw_damage, draw_hostility
from fuzz.messages import is_useless
from fuzz.scratch import folder
from fuzz.shrinking import packed, shorter_contents, unpacked, with_entry

# Text formats are read in a few milliseconds; the others take a process of their own, in seconds.
FORMATS = {"csv": 18, "tsv": 9, "json": 9, "jsonl": 12, "svm": 12, "parquet": 1, "arrow": 1}
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": lambda data: gzip.compress(data, mtime=0),
    ".bz2": bz2.compress,
    ".xz": lambda data: lzma.compress(data, preset=0),
}


@cache
def base_tables() -> dict[str, list[bytes]]:
    """Sound files of each format."""
    import pandas as pd

    rng = np.random.default_rng(0)
    found: dict[str, list[bytes]] = {name: [] for name in FORMATS}
    for n_rows in (1, 5, 40):
        frame = pd.DataFrame(
            {
                "number": np.round(rng.standard_normal(n_rows), 3),
                "count": rng.integers(0, 9, n_rows),
                "code": [f"{k:05d}" for k in rng.integers(0, 99, n_rows)],
                "text, quoted": rng.choice(["a", 'b "c"', "größe, x", "日本"], n_rows),
                "day": pd.date_range("2024-01-01", periods=n_rows).astype(str),
                "missing": np.where(rng.random(n_rows) < 0.5, np.nan, 1.5),
            }
        )
        frame["kind"] = frame["text, quoted"].astype("category")
        found["csv"].append(frame.to_csv(index=False).encode())
        found["csv"].append(frame.to_csv(index=False, sep=";", decimal=",").encode())
        found["tsv"].append(frame.to_csv(index=False, sep="\t").encode())
        found["json"].append(frame.to_json(orient="records").encode())
        found["jsonl"].append(frame.to_json(orient="records", lines=True).encode())
        lines = [f"{y} 1:{a} 4:{b}" for y, a, b in rng.integers(0, 9, (n_rows, 3)).tolist()]
        found["svm"].append("\n".join(lines).encode())
        for name, write in (("parquet", frame.to_parquet), ("arrow", frame.to_feather)):
            stream = io.BytesIO()
            write(stream)
            found[name].append(stream.getvalue())
    return found


def _prepare() -> None:
    base_tables()


def _draw(rng: Random) -> Recipe:
    names = list(FORMATS)
    chances = np.array(list(FORMATS.values()), dtype=float)
    name = str(rng.choice(names, p=chances / chances.sum()))
    contents = base_tables()[name]
    content = contents[int(rng.integers(len(contents)))]
    binary = name in ("parquet", "arrow")
    edits = [
        draw_damage(rng) if binary or rng.random() < 0.4 else draw_hostility(rng)
        for _ in range(1 + int(rng.integers(4)))
    ]
    packing = "" if rng.random() < 0.7 else str(rng.choice(list(PACKERS)))
    broken = packing and rng.random() < 0.5
    content = damaged(content, edits)
    content = PACKERS[packing](content)
    if broken:
        content = damaged(content, [draw_damage(rng)])
    return {"format": name, "packing": packing, "content": packed(content)}


def _check(recipe: Recipe) -> str:
    path = Path(folder()) / f"{os.getpid()}.{recipe['format']}{recipe['packing']}"
    path.write_bytes(unpacked(recipe["content"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with open_source(str(path)) as source:
                if source.format == "svm":
                    shape, names = read_sparse(source).X.shape, []
                else:
                    frame = read_table(source)
                    shape, names = frame.shape, frame.columns.tolist()
        except ValueError as error:
            return _refused(recipe, path, error)
    if not shape[0] or len(set(names)) < len(names):
        raise Fault(f"{recipe['format']}: no rows, or columns of one name", f"{shape} {names}")
    return f"read as {recipe['format']}"


def _refused(recipe: Recipe, path: Path, error: Any) -> str:
    if path.name not in str(error) or is_useless(str(error), ()):
        start = " ".join(str(error).replace(str(path), "NAME").split()[:5])
        what = f"{recipe['format']}: the message names no file or no remedy, {start}"
        raise Fault(what, str(error)) from error
    return "refused"


def _smaller(recipe: Recipe) -> Iterator[Recipe]:
    if recipe["packing"]:
        yield from with_entry(recipe, "packing", iter([""]))
    yield from ({**recipe, "content": text} for text in shorter_contents(recipe["content"]))


TARGET = Target("tables", _draw, _check, _smaller, share=0.16, short=150, prepare=_prepare)
