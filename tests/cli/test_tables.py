"""Tables in every format, compressed or not, and files that are not what they say."""

import bz2
import gzip
import io
import json
import lzma
import math
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from clustruct.cli.messages import BadUsage, as_json, did_you_mean, listed
from clustruct.cli.reading.streams import open_source
from clustruct.cli.reading.tables import read_sparse, read_table
from clustruct.cli.writing import write_table

TABLE = pd.DataFrame({"a": [1, 2, 3], "b": ["x, y", "größe", None], "c": [0.5, np.nan, -1e300]})


def zstd(data):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


PACKERS = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstd,
}


def read(path, **options):
    with open_source(str(path)) as source:
        return read_table(source, **options)


def read_svm(path, **options):
    with open_source(str(path)) as source:
        return read_sparse(source, **options)


@pytest.mark.parametrize("packing", PACKERS)
@pytest.mark.parametrize("ending", [".csv", ".tsv", ".jsonl", ".parquet", ".arrow"])
def test_every_format_comes_back(tmp_path, ending, packing):
    plain = tmp_path / f"table{ending}"
    write_table(TABLE, plain)
    path = tmp_path / f"table{ending}{packing}"
    path.write_bytes(PACKERS[packing](plain.read_bytes()))
    found = read(path)
    assert found.columns.tolist() == TABLE.columns.tolist()
    assert found["a"].tolist() == TABLE["a"].tolist()
    np.testing.assert_array_equal(found["c"], TABLE["c"])
    assert found["b"].isna().tolist() == [False, False, True]
    assert found["b"].tolist()[:2] == ["x, y", "größe"]


def test_standard_input(monkeypatch):
    class Stdin:
        buffer = io.BytesIO(gzip.compress(b"a,b\n1,2\n"))

    monkeypatch.setattr(sys, "stdin", Stdin)
    with open_source("-", "csv") as source:
        assert read_table(source).to_dict("list") == {"a": [1], "b": [2]}
    with pytest.raises(BadUsage, match="--format"):
        read("-")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a;b\n1;2\n", {"a": [1], "b": [2]}),
        ("a;b\n1,5;2,25\n2,0;3,0\n", {"a": [1.5, 2.0], "b": [2.25, 3.0]}),
        ("a|b\n1|x\n", {"a": [1], "b": ["x"]}),
        ("a\tb\n1\tx\n", {"a": [1], "b": ["x"]}),
        ("\ufeffa,b\n1,2\n", {"a": [1], "b": [2]}),
        ('"a b",c\n1,"x, y"\n', {"a b": [1], "c": ["x, y"]}),
        ("a\n1\n", {"a": [1]}),
        ("0,1\n5,6\n", {"0": [5], "1": [6]}),
    ],
)
def test_csv_of_many_kinds(tmp_path, text, expected):
    path = tmp_path / "table.csv"
    path.write_text(text, encoding="utf-8")
    assert read(path).to_dict("list") == expected


def test_columns_can_stay_text(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("zip,n\n01234,1\n99999,2\n")
    assert read(path, as_text=["zip", "nowhere"])["zip"].tolist() == ["01234", "99999"]


def test_another_encoding(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes("stadt\nKöln\n".encode("cp1252"))
    with pytest.raises(ValueError, match=r"table\.csv is not text in utf-8\. .*--encoding cp1252"):
        read(path)
    assert read(path, encoding="cp1252")["stadt"].tolist() == ["Köln"]


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("t.csv", b"", "is empty. Name a file with a table"),
        ("t.csv", b" \n\n", "is empty"),
        ("t.csv", b"a,b\n", "has columns but no rows"),
        ("t.csv", b"a,a\n1,2\n", "has 2 columns named 'a'. Give each column a name of its own"),
        ("t.csv", b"1.5,7,2\n1,2,3\n", "numbers in its first line, 1.5, 7, 2, where the names"),
        ("t.csv", b"a,b\n1,2\n1,2,3\n", "line 3: 3 fields, where the first line has 2. Mend"),
        ("t.csv", b"a,b\n1,2,3\n1,2,3\n", "more fields than the first line|3 fields, where"),
        ("t.csv", b"\x89PNG\r\n\x1a\n" + bytes(100), "no CSV file but a picture"),
        ("t.csv", b"a,b\n" + bytes(100), "no CSV file but a binary file"),
        ("t.csv", b"PK\x03\x04" + bytes(100), "an Excel workbook"),
        ("t.csv", b"PAR1" + bytes(100), "begins like Parquet. Give --format parquet"),
        ("t.csv.gz", b"a,b\n1,2\n", "is not compressed by gzip, as its name says"),
        ("t.csv.gz", gzip.compress(b"a,b\n" * 9999, mtime=0)[:40], "cannot be unpacked"),
        ("t.csv.zst", zstd(b"a,b\n" * 9999)[:20], "cannot be unpacked"),
        ("t.parquet", b"a,b\n1,2\n", "no Parquet file but something else"),
        ("t.parquet", b"PAR1" + bytes(100), "cannot be read as Parquet"),
        ("t.arrow", b"ARROW1" + bytes(100), "cannot be read as Arrow"),
        ("t.jsonl", b'{"a": 1}\n{"a": \n', "line 2: no JSON. Give one object a line"),
        ("t.jsonl", b'{"a": 1}\n[1]\n', "line 2: no JSON object"),
        ("t.json", b'[{"a": 1}, 2]', "record 2: no JSON object. Give an array of objects"),
        ("t.json", b'[{"a": 1} {"a": 2}]', "record 2: no JSON object"),
        ("t.json", b'[{"a": 1}, {"a": ', "record 2: no JSON object"),
        ("t.json", b'[{"a": 1}', "record 2: no JSON object"),
        ("t.json", b'[{"a": "\xff"}]', "is not text in utf-8"),
        ("t.json", b"17", "record 1: no JSON object"),
        ("t.json", b"[]", "has columns but no rows"),
        ("t.xyz", b"a,b\n1,2\n", "no ending that tells its format. Give --format"),
    ],
)
def test_files_that_are_not_what_they_say(tmp_path, name, data, message):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(ValueError, match=message) as caught:
        read(path)
    assert str(path) in str(caught.value)


def test_files_that_are_not_there(tmp_path):
    (tmp_path / "flats.csv").touch()
    with pytest.raises(FileNotFoundError, match=r"does not exist\. Did you mean 'flats\.csv'\?"):
        read(tmp_path / "flat.csv")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        read(tmp_path)


def test_endings_that_cannot_be_written(tmp_path):
    for name in ("table.xyz", "table.csv.gz", "table.svm"):
        with pytest.raises(ValueError, match="no ending that can be written"):
            write_table(TABLE, tmp_path / name)
    assert not list(tmp_path.iterdir())


# ---- libsvm


@pytest.mark.parametrize("zero_based", [True, False])
def test_sparse_files_come_back(tmp_path, zero_based):
    path = tmp_path / "t.svm"
    X = sparse.csr_matrix([[0.0, 1.5, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
    dump_svmlight_file(X, [1.0, -1.0, 1.0], str(path), zero_based=zero_based)
    table = read_svm(path)
    assert table.base == (0 if zero_based else 1)
    np.testing.assert_array_equal(table.X.toarray(), X.toarray())
    assert table.y.tolist() == [1.0, -1.0, 1.0]


def test_sparse_files_have_the_columns_of_the_model(tmp_path):
    path = tmp_path / "t.svm"
    path.write_text("1 2:1\n")
    assert read_svm(path, n_features=5, base=1).X.shape == (1, 5)
    with pytest.raises(ValueError, match="a column 2, and the last one that the model knows is 1"):
        read_svm(path, n_features=1, base=1)
    path.write_text("1 0:1\n")
    with pytest.raises(ValueError, match="a column 0, and the columns of the model begin with 1"):
        read_svm(path, n_features=1, base=1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 1:2\nyes 1:3\n", "line 2: 'yes 1:3' is not in libsvm's form"),
        ("1 1:2\n1 one:3\n", "line 2"),
        ("a,b\n1,2\n", "line 1: 'a,b'"),
        ("# nothing\n", "has no rows"),
    ],
)
def test_sparse_files_that_are_none(tmp_path, text, message):
    path = tmp_path / "t.svm"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        read_svm(path)
    assert str(path) in str(caught.value)


# ---- Anything


@given(data=st.binary(max_size=200) | st.text('a1,;:\t\n{}[] ".-#', max_size=80).map(str.encode))
@pytest.mark.parametrize(
    "ending", ["csv", "tsv", "jsonl", "json", "parquet", "arrow", "csv.gz", "svm"]
)
def test_any_bytes_are_read_or_refused(tmp_path_factory, ending, data):
    path = tmp_path_factory.getbasetemp() / f"any.{ending}"
    path.write_bytes(data)
    try:
        table = read_svm(path).X if ending == "svm" else read(path)
    except ValueError as error:
        complaint = str(error)
    else:
        assert table.shape[0] > 0
        return
    assert str(path) in complaint


# ---- Words


def test_json_has_no_numbers_that_are_not_finite():
    values = {"a": float("nan"), "b": [np.float64(1.5), np.int64(2), math.inf], 3: (None, "x")}
    assert json.loads(as_json(values)) == {"a": None, "b": [1.5, 2, None], "3": [None, "x"]}


def test_near_names():
    assert did_you_mean("prise", ["size", "price", "Price per m2"]) == "Did you mean 'price'?"
    assert did_you_mean("PRICE", ["size", "price"]) == "Did you mean 'price'?"
    assert did_you_mean("xyz", ["size", "price"]) == "There are: size, price."
    assert listed(range(10), most=3) == "0, 1, 2 and 7 more"
