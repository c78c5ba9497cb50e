"""The command line: exit status, what goes where, and no tracebacks."""

import json
import os
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest

import clustruct as package
from clustruct import cli
from clustruct.cli.commands import predict
from clustruct.cli.preparing import training

QUIET = {**os.environ, "PYTHONWARNINGS": "ignore"}  # for the case that kernels are uncompiled
EVERY = [
    ["fit"],
    ["predict"],
    ["report"],
    ["data"],
    ["data", "list"],
    ["data", "fetch"],
    ["data", "show"],
    ["demo"],
    ["reproduce"],
]


def test_version(clustruct):
    assert clustruct("--version") == (0, f"clustruct {package.__version__}\n", "")


@pytest.mark.parametrize("args", [[], *EVERY], ids=" ".join)
def test_help_has_an_example(clustruct, args):
    status, out, _ = clustruct(*args, "--help")
    assert status == 0
    _, _, examples = out.partition("example")
    assert f"\n  clustruct {' '.join(args)}".rstrip() in examples


def test_help_loads_nothing_heavy(run_python):
    code = "import sys, clustruct.cli as c\nc.parser()\nprint(sorted(sys.modules))"
    done = run_python(code)
    assert done.returncode == 0, done.stderr
    assert "'sklearn'" not in done.stdout
    assert "'pandas'" not in done.stdout


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["dance"],
        ["demo", "--nonsense"],
        ["demo", "--out"],
        ["fit"],
        ["fit", "x.csv", "--clusters", "many"],
        ["fit", "x.csv", "--clusters", "0"],
        ["fit", "x.csv", "--clusters", "5:2"],
        ["fit", "x.csv", "--alpha", "-1"],
        ["fit", "x.csv", "--test-size", "1"],
        ["fit", "x.csv", "--nonzero", "few"],
        ["fit", "x.csv", "--seed", "1.5"],
        ["fit", "x.csv", "--out", "no/such/folder/m"],
        ["fit", "x.csv", "--features", "--samples"],
        ["fit", "x.csv", "--samples", "--tasks", "t"],
        ["fit", "x.csv", "--regression", "--classification"],
        ["predict", "m"],
        ["data"],
        ["data", "show"],
    ],
    ids=" ".join,
)
def test_bad_usage_exits_with_2(clustruct, args):
    status, out, err = clustruct(*args)
    assert (status, out) == (2, "")
    assert err.startswith("usage: clustruct")


def test_bad_usage_that_shows_later_exits_with_2(clustruct, flats_csv):
    status, out, err = clustruct("fit", flats_csv)
    assert (status, out) == (2, "")
    assert "--target is needed" in err
    assert "clustruct fit --help" in err


def test_bad_data_exits_with_1_and_one_line(clustruct, tmp_path):
    status, out, err = clustruct("fit", tmp_path / "missing.csv", "--target", "y")
    assert (status, out) == (1, "")
    (line,) = err.splitlines()
    assert line.startswith("clustruct: error: ")
    assert "missing.csv does not exist" in line


def test_debug_shows_the_traceback(tmp_path):
    with pytest.raises(FileNotFoundError):
        cli.main(["--debug", "fit", str(tmp_path / "missing.csv"), "--target", "y"])


def broken(error):
    def command(*args, **kwargs):
        raise error

    return command


def test_unexpected_error_is_named(clustruct, monkeypatch, flats_csv):
    monkeypatch.setattr(training, "train", broken(KeyError("oh")))
    status, _, err = clustruct("fit", flats_csv, "--target", "rent", "--json")
    assert status == 1
    (line,) = err.splitlines()
    assert line.startswith("clustruct: unexpected KeyError: 'oh' (--debug shows where)")
    assert "please report it" in line


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (MemoryError("1 TB"), "memory ran out (MemoryError: 1 TB). Give --out-of-core yes"),
        (RecursionError("deep"), "nested too deeply (RecursionError: deep). Give a table"),
        (ZeroDivisionError("oh"), "extreme values"),
        (OverflowError("oh"), "extreme values"),
        (np.linalg.LinAlgError("no convergence"), "(LinAlgError: no convergence). Look for"),
        (OSError(28, "No space left on device"), "Make room, or name another folder"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_faults_that_no_check_foresaw_have_a_remedy(
    complaint_of, monkeypatch, flats_csv, error, remedy
):
    monkeypatch.setattr(training, "train", broken(error))
    assert remedy in complaint_of("fit", flats_csv, "--target", "rent", "--json")


def test_names_that_the_system_refuses_are_told(clustruct, flats_csv):
    for args in (["predict", "m", "x", "--out", "a" * 300], ["fit", "x" * 300, "--target", "y"]):
        status, _, err = clustruct(*args)
        assert status in (1, 2)
        assert "File name too long" in err


def test_interrupted(clustruct, monkeypatch, flats_csv, tmp_path):
    monkeypatch.setattr(training, "train", broken(KeyboardInterrupt()))
    out = tmp_path / "model"
    status, _, err = clustruct("fit", flats_csv, "--target", "rent", "--out", out)
    assert status == cli.INTERRUPTED
    assert "interrupted" in err
    assert not out.exists()


def test_warnings_are_one_line(clustruct, monkeypatch):
    def command(args, console):
        warnings.warn("take care", stacklevel=1)

    monkeypatch.setattr(predict, "run", command)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        status, _, err = clustruct("predict", "model", "data.csv")
    assert (status, err) == (0, "clustruct: warning: take care\n")


@pytest.mark.parametrize("args", [["--json", "data", "list"], ["data", "list", "--json"]])
def test_json_stands_before_or_after(clustruct, args):
    _, out, _ = clustruct(*args)
    assert {entry["name"] for entry in json.loads(out)} >= {"reviews", "diabetes"}


def test_reader_that_goes_away():
    # The reader ends before anything is written, like `clustruct data list | true`.
    command = [sys.executable, "-m", "clustruct", "data", "list"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, env=QUIET) as process:
        process.stdout.close()
        process.stdout = None
        _, err = process.communicate(timeout=300)
    assert err == b""
    assert process.returncode == cli.PIPE_CLOSED


@pytest.mark.skipif(sys.platform == "win32", reason="closes a stream as a Unix shell does")
def test_closed_stdout(tmp_path):
    table = tmp_path / "d.csv"
    command = f'"{sys.executable}" -m clustruct data show diabetes --out "{table}" >&-'
    done = subprocess.run(command, shell=True, capture_output=True, check=False, env=QUIET)
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    assert table.exists()


def test_plain_stream(run_python):
    done = run_python("-m", "clustruct", "data", "list", env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal as a Unix terminal does")
def test_control_c_leaves_nothing_behind(flats_csv, tmp_path):
    out = tmp_path / "here"
    out.mkdir()
    command = [sys.executable, "-m", "clustruct", "fit", "-", "--format", "csv", "--target", "rent"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*command, "--out", str(out / "model")], stdin=pipe, stdout=pipe, stderr=pipe, env=QUIET
    ) as process:
        # More than a pipe holds: once all is written, the table is being read, and waits for more.
        header, *rows = flats_csv.read_bytes().splitlines(keepends=True)
        process.stdin.write(header + rows[0] * (1_000_000 // len(rows[0])))
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=300)
    assert process.returncode == cli.INTERRUPTED, err
    assert b"Traceback" not in err
    assert not list(out.iterdir())


def test_without_rich_a_remedy_is_named(complaint_of, clustruct, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich", None)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert "pip install 'clustruct[cli]'" in complaint_of("data", "list")
    assert clustruct("--version")[0] == 0


@pytest.mark.parametrize("absent", ["pandas", "pyarrow"])
def test_without_pandas_a_remedy_is_named(complaint_of, monkeypatch, flats_csv, absent):
    monkeypatch.setitem(sys.modules, absent, None)
    complaint = complaint_of("fit", flats_csv, "--target", "rent")
    assert absent in complaint
    assert "pip install 'clustruct[cli]'" in complaint
