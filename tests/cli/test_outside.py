"""Files from outside: damaged, made to do harm, or with text that a terminal would obey."""

import io
import json
import os
import random
import re
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clustruct.cli import options
from clustruct.cli.console import Console
from clustruct.cli.messages import in_one_line, printable
from clustruct.cli.reading import cage as caging
from clustruct.cli.reading import memory
from clustruct.cli.reading.cage import Cage
from clustruct.cli.reading.columnar import ParquetFiles
from clustruct.cli.reading.stored import find_table
from clustruct.cli.reading.streams import MOST_UNPACKED, open_source, size_limit
from clustruct.cli.reading.tables import read_table
from tests.cli.test_tables import PACKERS, read

TABLE = pd.DataFrame(
    {
        "n": np.arange(50.0),
        "text": ["one", "two"] * 25,
        "kind": pd.Categorical(["u", "v"] * 25),
        "y": np.arange(50) % 7,
    }
)
UNIX = pytest.mark.skipif(os.name != "posix", reason="signals and limits are those of Unix")


@pytest.fixture
def parquet(tmp_path):
    path = tmp_path / "t.parquet"
    TABLE.to_parquet(path, row_group_size=20)
    return path


# ---- The cage


def test_cage_gives_what_its_reader_gives(parquet):
    files = ParquetFiles(str(parquet), [str(parquet)], np.inf)
    cage = Cage("parquet", str(parquet), [parquet], np.inf)
    assert cage.describe() == files.describe()
    asked = {
        "whole": (),
        "parts": (1, 3, ["kind", "n"]),
        "pieces": (["text", "n"], 200),
    }
    for name, arguments in asked.items():
        mine, theirs = (list(getattr(one, name)(*arguments)) for one in (cage, files))
        assert len(mine) > 1
        assert pa.concat_tables(mine).equals(pa.concat_tables(theirs), check_metadata=True)


def test_streams_may_be_nested_or_left(parquet):
    cage = Cage("parquet", str(parquet), [parquet], np.inf)
    outer = cage.pieces(["n"], 100)
    first = next(outer)
    inner = [table.num_rows for table in cage.parts(0, 3, ["y"])]
    assert inner == [20, 20, 10]
    assert first.num_rows + sum(table.num_rows for table in outer) == 50
    left = cage.pieces(["n"], 100)
    next(left)
    left.close()
    assert cage.describe()["heights"] == [20, 20, 10]
    cage.close()


@UNIX
@pytest.mark.parametrize(
    ("number", "said"),
    [
        (signal.SIGSEGV, r"its reader crashed \(SIGSEGV\), which damaged files cause\. Get an"),
        (signal.SIGKILL, "was killed, as systems do when memory runs out. .*--out-of-core yes"),
        (signal.SIGXCPU, "did not come to an end. Get an undamaged copy, or save .* as CSV"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_reader_that_dies_is_told(parquet, number, said):
    cage = Cage("parquet", str(parquet), [parquet], np.inf)
    cage.describe()
    (child,) = cage._idle
    os.kill(child._process.pid, number)
    child._process.wait()
    with pytest.raises(ValueError, match=rf"t\.parquet cannot be read as Parquet: .*{said}"):
        list(cage.parts(0, 1, ["n"]))
    assert cage.describe()["heights"] == [20, 20, 10]  # another child
    cage.close()


def test_the_child_answers_until_its_questions_end(parquet):
    """Elsewhere it is killed, and would not tell whether it ends by itself."""
    first = {"format": "parquet", "name": "t", "files": [str(parquet)], "max_size": 1e9}
    asked = (first, ["describe"], ["parts", 0, 0, ["n"]], ["whole"], ["parts", 0, 1, ["absent"]])
    done = subprocess.run(
        [sys.executable, "-m", "clustruct.cli.reading.cage"],
        input=b"".join(json.dumps(question).encode() + b"\n" for question in asked),
        capture_output=True,
        check=True,
    )
    assert done.stderr == b""
    answers = io.BytesIO(done.stdout)
    kind, described = json.loads(answers.readline())
    assert (kind, described["heights"]) == ("value", [20, 20, 10])
    assert json.loads(answers.readline()) == ["value", "none"]
    assert json.loads(answers.readline()) == ["value", "some"]
    with pa.ipc.open_stream(answers) as stream:
        assert stream.read_all()["n"].to_pylist() == TABLE["n"].tolist()
    assert json.loads(answers.readline()) == ["value", "end"]
    kind, said = json.loads(answers.readline())
    assert (kind, "absent" in said) == ("error", True)
    assert answers.read() == b""


@pytest.mark.parametrize(
    ("status", "lines", "said"),
    [
        (1, ["Traceback", "ImportError: no reader"], r"stopped \(ImportError: no reader\)"),
        (1, [], r"stopped \(no reason given\)"),
        (0xC0000005, [], r"crashed \(status 0xc0000005\)"),  # an access violation on Windows
        (-250, [], r"crashed \(signal 250\)"),
    ],
)
def test_reasons_of_an_ended_reader(status, lines, said):
    assert re.search(said + ".* Get an undamaged copy", caging._reason(status, lines))


@UNIX
def test_limits_of_the_child_are_set(monkeypatch):
    import resource

    found = {}
    monkeypatch.setattr(resource, "setrlimit", lambda which, pair: found.update({which: pair[0]}))
    monkeypatch.setattr(caging, "free_bytes", lambda: 1e9)
    caging._limit_memory()
    caging._limit_seconds(5.0)
    assert found[resource.RLIMIT_DATA] == int(1e9) + caging.SLACK_BYTES
    assert found[resource.RLIMIT_CPU] > 5
    monkeypatch.setitem(sys.modules, "resource", None)  # as on Windows
    caging._limit_memory()
    caging._limit_seconds(5.0)
    assert memory._of_process() == np.inf


@UNIX
def test_free_memory_is_known_without_psutil(monkeypatch):
    monkeypatch.setattr(memory, "find_spec", lambda name: None)
    assert 0.0 < memory._of_machine() < np.inf
    monkeypatch.delattr(os, "sysconf_names")  # as on Windows
    assert memory._of_machine() == np.inf


def damaged(path, n, seed=0):
    """Copies of a file, each with one byte changed, most of them near its end."""
    data, draw = path.read_bytes(), random.Random(seed)
    for number in range(n):
        other = bytearray(data)
        place = draw.randrange(len(data)) if number % 3 == 0 else len(data) - draw.randrange(1, 800)
        other[place] ^= draw.randrange(1, 256)
        path.write_bytes(other)
        yield place


def read_or_refused(path):
    """The complaint about a file; empty where it is read."""
    try:
        assert len(read(path)) > 0
    except ValueError as error:
        complaint = str(error)
    else:
        return ""
    assert str(path) in complaint
    assert complaint.endswith(".")
    return complaint


@pytest.mark.parametrize("ending", ["arrow", "parquet"])
def test_files_with_a_changed_byte_are_read_or_refused(tmp_path, ending):
    path = tmp_path / f"t.{ending}"
    (TABLE.to_feather if ending == "arrow" else TABLE.to_parquet)(path)
    for _ in damaged(path, 4):
        read_or_refused(path)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["arrow", "parquet"])
def test_many_files_with_a_changed_byte_are_read_or_refused(tmp_path, ending):
    path = tmp_path / f"t.{ending}"
    (TABLE.to_feather if ending == "arrow" else TABLE.to_parquet)(path)
    for _ in damaged(path, 300, seed=1):
        read_or_refused(path)


@pytest.mark.parametrize("ending", ["arrow", "parquet"])
def test_notes_of_pandas_that_are_none(tmp_path, ending):
    """These ended as KeyError or TypeError."""
    path = tmp_path / f"t.{ending}"
    table = pa.table({"a": [1, 2], "y": [3, 4]})
    for notes in (b'{"columns": [{"name": "a"}], "index_columns": []}', b"{", b'{"columns": 3}'):
        table = table.replace_schema_metadata({b"pandas": notes})
        if ending == "arrow":
            with pa.ipc.new_file(str(path), table.schema) as writer:
                writer.write_table(table)
        else:
            pq.write_table(table, path)
        with pytest.raises(ValueError, match=rf"t\.{ending} cannot be read as"):
            read(path)


def test_messages_name_the_file_and_not_its_copy(parquet):
    packed = parquet.with_suffix(".parquet.gz")
    packed.write_bytes(PACKERS[".gz"](parquet.read_bytes()[:-100]))
    assert read_or_refused(packed)


def test_invalid_arrays_are_refused(tmp_path):
    """Codes beyond the categories ended the process, or gave other rows' text."""
    path = tmp_path / "t.arrow"
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 1, 77], pa.int8()), ["a", "b"], safe=False)
    with pa.ipc.new_file(str(path), pa.schema([("k", codes.type)])) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays([codes], names=["k"]))
    with pytest.raises(ValueError, match=r"t\.arrow cannot be read as Arrow: .*Get an undamaged"):
        read(path)


def test_damaged_arrays_are_read_or_refused(tmp_path):
    """Some headers ended as TokenError."""
    path = tmp_path / "X.npy"
    np.save(path, np.arange(12.0).reshape(6, 2))
    data, draw, n_refused = path.read_bytes(), random.Random(0), 0
    for _ in range(150):
        other = bytearray(data)
        for _ in range(2):
            other[draw.randrange(128)] = draw.randrange(256)
        path.write_bytes(other)
        try:
            find_table(str(path), None).load()
        except ValueError as error:
            n_refused += "X.npy" in str(error)
    assert n_refused > 100


# ---- Damage and bombs


@pytest.mark.parametrize("packing", [name for name in PACKERS if name])
def test_damaged_compression_is_told(tmp_path, packing):
    """That of gzip ended as "unexpected error: Error -3 while decompressing"."""
    rng = np.random.default_rng(0)
    text = "a,b\n" + "".join(f"{x},{y}\n" for x, y in rng.normal(size=(3000, 2)))
    path = tmp_path / f"t.csv{packing}"
    path.write_bytes(PACKERS[packing](text.encode()))
    said = [read_or_refused(path) for _ in damaged(path, 40)]
    if packing != ".zst":  # which has no sums, so that most damage shows in the table only
        assert sum("cannot be unpacked" in one for one in said) > 30


@pytest.mark.parametrize("packing", [name for name in PACKERS if name])
def test_content_is_unpacked_up_to_a_limit(tmp_path, packing):
    path = tmp_path / f"t.csv{packing}"
    path.write_bytes(PACKERS[packing](b"a,b\n" + b"1,2\n" * 300_000))
    said = r"t\.csv.* holds at least 1,0.*, and 1,000,000 are allowed\. .*--max-size"
    with pytest.raises(ValueError, match=said), open_source(str(path), None, 1_000_000):
        pass
    with open_source(str(path), None, 2_000_000) as source:
        assert source.n_bytes == 1_200_004
        assert len(read_table(source)) == 300_000


def test_tables_are_unpacked_up_to_a_limit(tmp_path, complaint_of):
    """Runs of one value take a few bytes of a Parquet file; columns of nothing none of Arrow's."""
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": np.zeros(1_000_000), "y": np.zeros(1_000_000)}), path)
    assert path.stat().st_size < 10_000
    for way in ("yes", "no"):
        args = ("fit", path, "--target", "y", "--max-size", "1M", "--out-of-core", way)
        assert "holds at least 16,0" in complaint_of(*args)
    assert find_table(str(path), None).bytes_in_memory() == 1.6e7
    path = tmp_path / "t.arrow"
    with pa.ipc.new_file(str(path), pa.schema([("a", pa.null())])) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays([pa.nulls(1_000_000)], names=["a"]))
    assert "holds at least 8,000,000 bytes" in complaint_of(
        "fit", path, "--target", "a", "--max-size", "1M"
    )


def test_default_limit_grows_with_the_file():
    assert size_limit(1000) == MOST_UNPACKED
    assert size_limit(10**9) == 10**11
    assert size_limit(1000, 7.0) == 7.0


def test_sizes_as_people_write_them():
    assert [options.size(text) for text in ("17", "2k", "1.5M", "20G", "3TB")] == [
        17,
        2048,
        3 << 19,
        20 << 30,
        3 << 40,
    ]


@pytest.mark.parametrize("text", ["0", "-1", "many", "1e3", "", "5X"])
def test_sizes_that_are_none(clustruct, text):
    status, _, err = clustruct("fit", "x.csv", f"--max-size={text}")
    assert status == 2
    assert "is no size: give bytes, such as 500M or 20G" in err


def test_short_fields_take_more_memory_than_their_text(tmp_path, clustruct, monkeypatch, quick):
    """A file of 1 MB of single digits is a table of 4 MB, of which there are some copies."""
    path = tmp_path / "t.csv.gz"
    rows = "".join(f"{i % 7},{i % 3}\n" for i in range(5000))
    path.write_bytes(PACKERS[".gz"](f"a,y\n{rows}".encode()))
    monkeypatch.setattr("clustruct.cli.preparing.opening.free_bytes", lambda: 3 * 3.9 * 20_000)
    status, _, err = clustruct("fit", path, "--target", "y", "--regression", *quick)
    assert status == 0, err
    assert "is read out of core" in err


def test_parsers_that_run_out_of_memory_are_told(complaint_of, flats_csv, monkeypatch):
    def read_csv(*args, **kwargs):
        raise pd.errors.ParserError("Error tokenizing data. C error: out of memory")

    monkeypatch.setattr(pd, "read_csv", read_csv)
    said = complaint_of("fit", flats_csv, "--target", "rent")
    assert "memory ran out" in said
    assert "--out-of-core yes" in said


# ---- Free memory


def test_limits_of_groups_count_as_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "CGROUPS", tmp_path)
    assert list(memory._of_groups()) == [np.inf]
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("700\n")
    assert list(memory._of_groups()) == [np.inf]
    (tmp_path / "memory.max").write_text("1000\n")
    assert min(memory._of_groups()) == 300.0
    (tmp_path / "memory.stat").write_text("anon 5\ninactive_file 200\n")
    assert memory.free_bytes() == 500.0


@UNIX
def test_limits_of_the_process_count_as_memory(run_python):
    code = (
        "import resource; from clustruct.cli.reading.memory import free_bytes\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)); print(free_bytes() < 1 << 30)"
    )
    assert run_python(code).stdout == "True\n"


# ---- Terminals

HOSTILE = "\x1b[31mred\x1b]0;title\x07"


def test_what_a_terminal_would_obey_is_written_out():
    assert printable(HOSTILE) == r"\x1b[31mred\x1b]0;title\x07"
    assert printable("größe\t日本 👩‍👩‍👧\n") == "größe\t日本 👩‍👩‍👧\n"
    assert printable("a\x9bb\x7fc\rd\u202ee\ud800") == r"a\x9bb\x7fc\rd\u202ee\ud800"
    assert in_one_line("a\nb\tc") == r"a\nb\tc"


def test_no_command_prints_what_a_terminal_would_obey(clustruct, flats, tmp_path, quick):
    table, model = tmp_path / "t.csv", tmp_path / "m.clustruct"
    values = flats["area"].replace({"north": HOSTILE, "south": "a\x9b2Jb\u202e"})
    flats.assign(**{f"{HOSTILE}area": values, "advert": None}).to_csv(table, index=False)
    fit = clustruct("fit", table, "--target", "rent", *quick, "--out", model)
    new = pd.read_csv(table).assign(**{f"new {HOSTILE}": 1})
    new.loc[0, f"{HOSTILE}area"] = "unseen \x1b[2J"
    new.to_csv(table, index=False)
    predict = clustruct("predict", model, table, "--out", tmp_path / "p.csv")
    wrong = clustruct("fit", table, "--target", HOSTILE)
    usage = clustruct("fit", table, f"--{HOSTILE}")
    for _, out, err in (fit, predict, wrong, usage):
        assert not set("\x1b\x07\x9b\u202e\r") & set(out + err)
    assert fit[0] == predict[0] == 0
    assert r"\x1b[31mred" in fit[1]
    assert r"unseen \x1b[2J" in predict[2]
    assert wrong[0] == 1


def test_tables_for_programs_are_printed_as_they_are(capsys, monkeypatch):
    Console().data(HOSTILE)
    assert capsys.readouterr().out == f"{HOSTILE}\n"
    console = Console()
    console._screen._force_terminal = True
    console.data(HOSTILE)
    assert capsys.readouterr().out == f"{printable(HOSTILE)}\n"


def test_names_do_not_leave_the_remarks_of_formulas(clustruct, flats, tmp_path):
    """A line of a name would be read as SQL, or as Python."""
    table, model = tmp_path / "t.csv", tmp_path / "m.clustruct"
    name = "size\nimport os"
    flats.rename(columns={"size": name})[[name, "area", "rent"]].to_csv(table, index=False)
    args = ("--target", "rent", "--category", "area", "--clusters", "3", "--alpha", "0.01")
    status, _, err = clustruct("fit", table, *args, "--out", model)
    assert status == 0, err
    code, sql = tmp_path / "f.py", tmp_path / "f.sql"
    status, _, err = clustruct("tariff", model, "--python", code, "--sql", sql)
    assert status == 0, err
    assert "import os" not in [line.strip() for line in code.read_text().splitlines()]
    assert r"size\nimport os" in code.read_text().splitlines()[0]
    assert r"size\nimport os" in sql.read_text().splitlines()[0]
