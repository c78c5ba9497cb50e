"""Tables that can only be read from beginning to end, out of core: as the same ones in memory."""

import gzip
import io
import json
import sys
import tempfile

import numpy as np
import pandas as pd
import pytest

import clustruct as cs
from clustruct.cli.reading.conversion import as_parquet
from clustruct.cli.reading.scratch import Scratch
from clustruct.cli.reading.streams import open_source
from clustruct.cli.reading.tables import read_table
from clustruct.cli.writing import write_table
from tests.releases import release_of

pytest.importorskip("dask")
pytest.importorskip("pyarrow")
pytestmark = pytest.mark.usefixtures("uncaged")

N = 400
WAYS = ("no", "yes")
FIT = ("--target", "fare", "--clusters", "9", "--alpha", "0.01", "--nonzero", "all")


@pytest.fixture(scope="module")
def trips():
    """Columns of which the last rows tell the kind."""
    rng = np.random.default_rng(0)
    late = np.arange(N) > N - 30
    frame = pd.DataFrame({"far": rng.normal(5, 2, N), "seats": rng.integers(1, 9, N)})
    frame["code"] = [f"{i % 7:03d}" if not last else "none" for i, last in enumerate(late)]
    frame["load"] = np.where(late, 0.5, 1.0) * rng.integers(0, 9, N)
    frame["paid"] = rng.random(N) < 0.5
    frame["since"] = pd.date_range("2001-01-01", periods=N, freq="h").strftime("%Y-%m-%d")
    words = np.array(["bright", "quiet", "dark", "loud", "garden", "balcony"])
    frame["note"] = [" ".join(row) for row in rng.choice(words, (N, 5))]
    frame["fare"] = 2 * frame["far"] + frame["seats"] + frame["note"].str.count("dark")
    frame["fare"] += rng.normal(0, 0.1, N)
    frame["gone"] = np.where(late, rng.normal(size=N), np.nan)
    frame.loc[::9, ["note", "since"]] = None
    frame.loc[3, "fare"] = np.nan
    return frame


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr("clustruct.cli.preparing.opening.PIECE_BYTES", 5_000)
    monkeypatch.setattr("clustruct.cli.reading.conversion.PIECE_BYTES", 5_000)


def _zstd(content):
    import pyarrow as pa

    return pa.compress(content, codec="zstd", asbytes=True)


PACKERS = {".gz": gzip.compress, ".zst": _zstd}
NAMES = ["t.csv", "t.tsv.gz", "t.jsonl", "t.arrow", "t.csv.zst", "t.parquet.gz"]


def _written(frame, path):
    packer = PACKERS.get(path.suffix)
    plain = path if packer is None else path.with_suffix("")
    write_table(frame, plain)
    if packer is not None:
        path.write_bytes(packer(plain.read_bytes()))
    return path


@pytest.mark.parametrize("name", NAMES)
def test_model_and_predictions_are_those_of_the_table_in_memory(name, clustruct, trips, tmp_path):
    path = _written(trips, tmp_path / name)
    found, answers = [], []
    for way in WAYS:
        out, to = tmp_path / f"{way}.clustruct", tmp_path / f"{way}.csv"
        args = ("fit", path, *FIT, "--out-of-core", way, "--out", out, "--json")
        status, text, err = clustruct(*args)
        assert status == 0, err
        assert ("is read out of core, from a copy that is written first" in err) == (way == "yes")
        found.append((json.loads(text), cs.load(out)))
        status, _, err = clustruct("predict", out, path, "--out", to, "--out-of-core", way)
        assert status == 0, err
        answers.append(pd.read_csv(to)["prediction"])
    (here, whole), (there, pieces) = found
    for key in ("rows", "target", "columns", "remarks"):
        assert there[key] == here[key]
    np.testing.assert_allclose(pieces[-1].coef_, whole[-1].coef_, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(*answers, rtol=1e-8)
    assert len(answers[0]) == N


COLUMNS = {
    "whole numbers": [1, 2, 3, 4] * 25,
    "fractions at the end": [1] * 99 + [0.5],
    "text at the end": [*range(99), "x"],
    "numbers with zeros before them": ["007"] * 99 + ["x"],
    "missing at the end": [1] * 99 + [None],
    "missing but for the end": [None] * 99 + [7],
    "text but for the end": ["a"] * 99 + [None],
    "truth": [True, False] * 50,
    "truth with gaps": [True, False, None, None] * 25,
    "truth, and then a number": [True] * 99 + [3],
    "nothing": [None] * 100,
    "great numbers": [2**70] * 50 + [1] * 50,
    "dates": ["2024-12-31"] * 100,
}


@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
@pytest.mark.parametrize("name", COLUMNS)
def test_types_are_those_of_all_rows(name, ending, tmp_path, monkeypatch):
    monkeypatch.setattr("clustruct.cli.reading.conversion.PIECE_BYTES", 30)
    path = tmp_path / f"table{ending}"
    values = COLUMNS[name]
    if ending == ".csv":
        lines = [f"{i},{'' if value is None else value}" for i, value in enumerate(values)]
        path.write_text("\n".join(["n,a", *lines]))
    else:
        rows = [{"n": i} | ({} if v is None else {"a": v}) for i, v in enumerate(values)]
        rows[-1].setdefault("a", None)
        path.write_text("\n".join(json.dumps(row) for row in rows))
    for as_text in ((), ("a",)):
        with open_source(str(path)) as source, Scratch() as scratch:
            known = read_table(source, as_text)
            source.stream.seek(0)
            table = as_parquet(source, as_text, "utf-8", scratch)
            assert len(table.bounds) > 6
            found = table.load()
        assert list(found.columns) == list(known.columns)
        assert found["n"].tolist() == known["n"].tolist()
        mine, theirs = (frame["a"].dropna() for frame in (found, known))
        assert mine.index.tolist() == theirs.index.tolist()
        assert mine.map(str).tolist() == theirs.map(str).tolist()
        if mine.empty and release_of(pd.__version__) < (3, 0):
            continue  # the type of a column without values was another
        assert (mine.dtype.kind in "if") == (theirs.dtype.kind in "if")


def test_standard_input(clustruct, trips, monkeypatch):
    content = trips.to_csv(index=False).encode()

    def stdin():
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    found = []
    monkeypatch.setattr("clustruct.cli.reading.streams.COPY_BYTES", 1000)  # the rest is in a file
    for way in WAYS:
        stdin()
        args = ("fit", "-", "--format", "csv", *FIT, "--out-of-core", way, "--json")
        status, text, err = clustruct(*args)
        assert status == 0, err
        found.append(json.loads(text))
    assert found[0]["columns"] == found[1]["columns"]
    assert found[1]["out_of_core"]


def test_what_does_not_fit_is_copied_by_itself(clustruct, trips, tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    path = _written(trips, tmp_path / "t.csv")
    assert "out of core" not in clustruct("fit", path, *FIT)[2]
    monkeypatch.setattr("clustruct.cli.preparing.opening.free_bytes", lambda: 1e4)
    status, _, err = clustruct("fit", path, *FIT)
    assert status == 0, err
    assert "from a copy that is written first: work on it takes about 0.0002" in err
    assert list(folder.iterdir()) == []
    svm = tmp_path / "t.svm"
    svm.write_text("1 1:2\n2 1:1 3:4\n3.5 2:1\n" * 1000)
    args = ("--clusters", "2", "--alpha", "0.01", "--nonzero", "all")
    status, _, err = clustruct("fit", svm, *args)
    assert status == 0, err
    assert "out of core" not in err


def _complaints(complaint_of, *args):
    return [complaint_of(*args, "--out-of-core", way) for way in WAYS]


def test_mistakes_are_told_as_in_memory(complaint_of, trips, tmp_path):
    path = _written(trips, tmp_path / "t.csv")
    content = path.read_text()
    args = ("fit", path, *FIT)
    mistakes = {
        "t.csv, line 402: 10 fields, where the first line has 9": content
        + "1,2,3,4,5,6,7,8,9,10\n",
        "is not text in utf-8": content.encode() + b"\xff\xfe",
        "has columns but no rows": content.splitlines()[0],
        "is empty": "",
        "has no column 'fare' (--target)": content.replace("fare", "fair"),
        "has 2 columns named 'far'": content.replace("seats", "far"),
    }
    for said, wrong in mistakes.items():
        path.write_bytes(wrong if isinstance(wrong, bytes) else wrong.encode())
        here, there = _complaints(complaint_of, *args)
        assert here == there
        assert said in here
    lines = tmp_path / "t.jsonl"
    lines.write_text('{"a": 1, "fare": 2}\n' * 300 + "no JSON\n")
    here, there = _complaints(complaint_of, "fit", lines, *FIT)
    assert here == there
    assert "t.jsonl, line 301: no JSON" in here
    lines.write_text('{"a": [1], "fare": 2}\n{"a": [2], "fare": 3}\n' * 100)
    here, there = _complaints(complaint_of, "fit", lines, *FIT)
    assert here == there
    assert "'a': its values are lists or objects" in here
    arrow = _written(trips, tmp_path / "t.arrow")
    arrow.write_bytes(arrow.read_bytes()[:-300])
    assert all(
        "t.arrow cannot be read as Arrow" in said
        for said in _complaints(complaint_of, "fit", arrow, *FIT)
    )
    packed = _written(pd.concat([trips] * 30), tmp_path / "t.csv.gz")
    packed.write_bytes(packed.read_bytes()[:-300])
    here, there = _complaints(complaint_of, "fit", packed, *FIT)
    assert here == there
    assert "t.csv.gz cannot be unpacked: Compressed file ended before" in here


def test_missing_dask_is_told_before_a_copy_is_made(complaint_of, trips, tmp_path, monkeypatch):
    path = _written(trips, tmp_path / "t.csv")
    monkeypatch.setattr(
        "clustruct.cli.preparing.opening.find_spec", lambda name: None if name == "dask" else sys
    )
    monkeypatch.setattr("clustruct.cli.preparing.opening.as_parquet", None)
    complaint = complaint_of("fit", path, *FIT, "--out-of-core", "yes")
    assert "pip install 'clustruct[dask]'" in complaint
