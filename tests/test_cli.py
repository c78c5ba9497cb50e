"""The command line: exit status, what goes where, and no tracebacks."""

import io
import json
import os
import subprocess
import sys

import pytest

import clustruct
from clustruct import cli, demo
from clustruct._console import Console, plain_table

QUIET = {**os.environ, "PYTHONWARNINGS": "ignore"}  # for the case that kernels are uncompiled


@pytest.fixture(scope="module")
def found():
    return demo.run_demo()


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"clustruct {clustruct.__version__}\n"


@pytest.mark.parametrize("args", [["--help"], ["demo", "--help"]])
def test_help_has_an_example(capsys, args):
    with pytest.raises(SystemExit) as stop:
        cli.main(args)
    assert stop.value.code == 0
    assert "example:\n  clustruct demo" in capsys.readouterr().out


@pytest.mark.parametrize("args", [[], ["dance"], ["demo", "--nonsense"], ["demo", "--out"]])
def test_bad_usage_exits_with_2(capsys, args):
    with pytest.raises(SystemExit) as stop:
        cli.main(args)
    assert stop.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("usage: clustruct")


def test_demo_prints_tables_and_draws(capsys, tmp_path):
    assert cli.main(["demo", "--out", str(tmp_path / "new" / "folder")]) == 0
    printed = capsys.readouterr()
    picture = tmp_path / "new" / "folder" / "clustruct-demo.png"
    assert printed.err == ""
    assert printed.out.rstrip().endswith(str(picture))
    assert picture.read_bytes().startswith(b"\x89PNG")
    for text in ("project_clustered(w, 5)", "worst radius", "accuracy", "zero", "kmeans_1d"):
        assert text in printed.out


@pytest.mark.parametrize("args", [["--json", "demo"], ["demo", "--json"]])
def test_demo_json(capsys, tmp_path, args):
    assert cli.main([*args, "--out", str(tmp_path)]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["version"] == clustruct.__version__
    assert answer["picture"] == str(tmp_path / "clustruct-demo.png")
    assert len(answer["full"]["weights"]) == 30


def test_demo_is_consistent(found):
    plain, sparse = found.projected
    assert len(plain.groups) == 5
    assert sum(len(group.features) for group in plain.groups) == 30
    assert plain.lost == pytest.approx(found.lost_by_n_clusters[4], rel=1e-9)
    assert sum(group.label >= 0 for group in sparse.groups) <= 4
    assert sum(weight != 0 for weight in sparse.weights) <= 12
    assert [group.weight for group in sparse.groups] == sorted(g.weight for g in sparse.groups)
    losses = found.lost_by_n_clusters
    assert losses == sorted(losses, reverse=True)


def test_demo_without_extras(capsys, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "rich", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert cli.main(["demo", "--out", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "matplotlib" in lines[-1]
    assert "pip install" in lines[-1]
    assert "group   weight  size  features" in lines
    assert not list(tmp_path.iterdir())


def test_bad_data_exits_with_1(capsys, tmp_path):
    (tmp_path / "file").write_text("in the way")
    assert cli.main(["demo", "--out", str(tmp_path / "file")]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    assert line.startswith("clustruct: error: ")
    assert str(tmp_path / "file") in line


def test_debug_shows_the_traceback(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(FileExistsError):
        cli.main(["demo", "--debug", "--out", str(tmp_path / "file")])


def test_unexpected_error_is_named(capsys, monkeypatch):
    def broken():
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(demo, "run_demo", broken)
    assert cli.main(["demo"]) == 1
    printed = capsys.readouterr().err
    assert printed == "clustruct: unexpected ZeroDivisionError: oh (--debug shows where)\n"


def test_reader_that_goes_away(tmp_path):
    # The reader ends before anything is written, like `clustruct demo | true`.
    command = [sys.executable, "-m", "clustruct", "demo", "--out", str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, env=QUIET) as process:
        process.stdout.close()
        process.stdout = None
        _, err = process.communicate(timeout=300)
    assert err == b""
    assert process.returncode == cli.PIPE_CLOSED


@pytest.mark.skipif(sys.platform == "win32", reason="closes a stream as a Unix shell does")
def test_closed_stdout(tmp_path):
    command = f'"{sys.executable}" -m clustruct demo --out "{tmp_path}" >&-'
    done = subprocess.run(command, shell=True, capture_output=True, check=False, env=QUIET)
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    assert (tmp_path / "clustruct-demo.png").exists()


def test_plain_stream(run_python, tmp_path):
    args = ("-m", "clustruct", "demo", "--out", str(tmp_path))
    done = run_python(*args, env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert "o  |  o" in done.stdout or "|" in done.stdout


def test_plain_table_wraps_and_aligns():
    lines = plain_table(("n", "name"), [("1", "one"), ("10", "ten " * 9)], width=30)
    assert lines == [
        " n  name",
        "---------------------------",
        " 1  one",
        "10  ten ten ten ten ten ten",
        "    ten ten ten",
        "",
    ]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_on_a_terminal_only():
    terminal, pipe = Terminal(), io.StringIO()
    with Console(err=terminal).progress("thinking"):
        assert terminal.getvalue() == "thinking ..."
    assert terminal.getvalue().endswith("\r")
    with Console(err=pipe).progress("thinking"):
        pass
    assert pipe.getvalue() == ""


def test_number_line_of_one_value():
    out = io.StringIO()
    Console(out=out).number_line([("a", [2.0, 2.0], 2.0)])
    assert out.getvalue().startswith("a  ┃\n")
