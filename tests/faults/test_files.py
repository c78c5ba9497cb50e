"""Faults of disks, signals, memory and clocks: what `docs/faults.md` promises of files."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress

import numpy as np
import pandas as pd
import pytest

import clustruct as cs
from clustruct import cli
from clustruct.cli.writing import write_table
from tests.persistence.models import FEATURES, same

UNIX = pytest.mark.skipif(os.name != "posix", reason="signals and limits are those of Unix")
TABLE = pd.DataFrame({"x": np.arange(40.0), "z": np.arange(40) % 7.0})
TABLE["y"] = TABLE["x"] - 2.0 * TABLE["z"]
FIT = ("--target", "y", "--clusters", "2", "--alpha", "0.01", "--nonzero", "all")
SECONDS = 300


@pytest.fixture(scope="module")
def model():
    return cs.FeatureClusterRegressor(2).fit(FEATURES.X, FEATURES.y)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "t.csv"
    TABLE.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def saved(table):
    path = table.with_suffix(".clustruct")
    assert cli.main(["fit", str(table), *FIT, "--out", str(path)]) == 0
    return path


# ---- A full disk


@contextmanager
def files_of_at_most(n_bytes):
    """Let no file grow beyond a size, as on a disk with no more room."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@UNIX
@pytest.mark.parametrize("name", ["m.clustruct", "p.csv", "p.jsonl", "p.parquet", "p.arrow"])
def test_a_full_disk_leaves_what_was_there(table, saved, tmp_path, capsys, name):
    out = tmp_path / name
    command = ["predict", str(saved), str(table)]
    if out.suffix == ".clustruct":
        command = ["fit", str(table), *FIT]
    out.write_bytes(b"before")
    with files_of_at_most(100):
        assert cli.main([*command, "--out", str(out)]) == cli.BAD_DATA
    (line,) = [one for one in capsys.readouterr().err.splitlines() if "error" in one]
    assert "File too large" in line
    assert "Make room, or name another folder" in line
    assert out.read_bytes() == b"before"
    assert os.listdir(tmp_path) == [name]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk_behind_standard_output_is_told(tmp_path):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "clustruct", "data", "list"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == cli.BAD_DATA
    lines = [line for line in done.stderr.splitlines() if "uncompiled" not in line]
    assert len(lines) == 1
    assert "No space left on device. No room is left" in lines[0]


@UNIX
def test_no_room_for_temporary_files_is_told(tmp_path, capsys, monkeypatch):
    import gzip

    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(TABLE.to_csv(index=False).encode()))
    monkeypatch.setattr("clustruct.cli.reading.streams.COPY_BYTES", 10)
    with files_of_at_most(100):
        assert cli.main(["fit", str(path), *FIT]) == cli.BAD_DATA
    assert "Name a folder with more room in the environment variable TMPDIR" in (
        capsys.readouterr().err
    )


# ---- Folders that cannot be written


def test_a_folder_that_cannot_be_written_is_told_before_the_work(table, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write anywhere
    with pytest.raises(SystemExit) as stop:
        cli.main(["fit", str(table), *FIT, "--out", str(tmp_path / "m")])
    assert stop.value.code == cli.BAD_USAGE


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="there is no /proc")
def test_a_folder_that_turns_out_not_to_be_writable_is_told(model):
    with pytest.raises(OSError, match=r"/proc/m cannot be written: .*another folder"):
        cs.save(model, "/proc/m")


# ---- Signals


class Interrupting:
    """Raise KeyboardInterrupt at the given call of the system that writes, closes or renames."""

    NAMES = ("write", "writelines", "flush", "close", "fsync", "replace", "chmod", "rename")

    def __init__(self, at):
        self.left = at
        self.happened = False

    def __call__(self, frame, event, function):
        if event == "c_call" and getattr(function, "__name__", "") in self.NAMES:
            self.left -= 1
            if self.left == 0:
                self.happened = True
                raise KeyboardInterrupt

    def __enter__(self):
        sys.setprofile(self)
        return self

    def __exit__(self, *error):
        sys.setprofile(None)


def writers(model):
    """Functions that write a file, with the name of the file."""
    yield "m.clustruct", lambda path: cs.save(model, path)
    for ending in ("csv", "jsonl", "parquet", "arrow"):
        yield f"t.{ending}", lambda path: write_table(TABLE, path)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # files not closed
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_an_interrupt_at_any_write_leaves_the_old_file_or_the_new_one(model, tmp_path):
    for name, write in writers(model):
        path = tmp_path / name
        write(path)
        new, n_calls = path.read_bytes(), 0
        while True:
            n_calls += 1
            path.write_bytes(b"before")
            with suppress(KeyboardInterrupt), Interrupting(n_calls) as watch:
                write(path)
            sys.setprofile(None)
            assert path.read_bytes() in (b"before", new), (name, n_calls)
            assert [p.name for p in tmp_path.iterdir()] == [name], (name, n_calls)
            if not watch.happened:
                break
        assert path.read_bytes() == new
        assert n_calls > 4
        path.unlink()


@UNIX
@pytest.mark.parametrize(
    "number",
    ["SIGTERM", *(pytest.param(name, marks=pytest.mark.slow) for name in ("SIGHUP", "SIGKILL"))],
)
def test_a_signal_leaves_no_broken_file(table, tmp_path, number):
    """SIGKILL cannot be answered: what was there stays, and temporary files may be left."""
    folder, scratch = tmp_path / "out", tmp_path / "scratch"
    folder.mkdir()
    scratch.mkdir()
    (folder / "m").write_bytes(b"before")
    command = [sys.executable, "-m", "clustruct", "fit", "-", "--format", "csv", *FIT]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*command, "--out", str(folder / "m")],
        stdin=pipe,
        stderr=pipe,
        stdout=pipe,
        env={**os.environ, "TMPDIR": str(scratch)},
    ) as process:
        # More than a pipe holds: when all of it is written, the table is being read.
        header, row, *_ = table.read_bytes().splitlines(keepends=True)
        process.stdin.write(header + row * (1_000_000 // len(row)))
        process.stdin.flush()
        process.send_signal(getattr(signal, number))
        _, err = process.communicate(timeout=SECONDS)
    assert (folder / "m").read_bytes() == b"before"
    if number == "SIGKILL":
        assert process.returncode == -signal.SIGKILL
        return
    assert process.returncode == cli.ENDED + getattr(signal, number)
    assert f"clustruct: ended by {number}; no file was left half-written" in err.decode()
    assert b"Traceback" not in err
    assert os.listdir(folder) == ["m"]
    assert os.listdir(scratch) == []


def test_signals_are_given_back(table):
    before = signal.getsignal(signal.SIGTERM)
    assert cli.main(["data", "list"]) == 0
    assert signal.getsignal(signal.SIGTERM) is before


# ---- Memory


@UNIX
@pytest.mark.slow
@pytest.mark.parametrize("gigabytes", [0.6, 0.8, 1.0, 1.5, 2.0])
def test_limits_on_memory_end_in_a_message_or_in_success(tmp_path, gigabytes):
    import resource

    path = tmp_path / "large.csv"
    with path.open("w") as stream:
        stream.write("x,z,y\n")
        for _ in range(40):
            stream.write("1,2,3\n4,5,7\n2,2,9\n" * 20_000)
    limit = int(gigabytes * 2**30)
    done = subprocess.run(
        [sys.executable, "-m", "clustruct", "fit", str(path), *FIT],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode in (0, cli.BAD_DATA), done.stderr[-2000:]
    assert "Traceback" not in done.stderr
    if done.returncode:
        assert "clustruct: error: " in done.stderr


# ---- Clocks


def test_a_clock_that_jumps_changes_nothing(model, monkeypatch):
    """Durations are taken from clocks that cannot be set."""
    jumps = iter([1e9, 0.0, 2e9, -1.0] * 10**6)
    monkeypatch.setattr(time, "time", lambda: next(jumps))
    monkeypatch.setattr(time, "time_ns", lambda: int(next(jumps)))
    again = cs.FeatureClusterRegressor(2).fit(FEATURES.X, FEATURES.y)
    assert same(again.coef_, model.coef_)
    assert again.status_.converged == model.status_.converged
    assert all(one.seconds >= 0.0 for one in again.trace_)


# ---- Several writers


def test_writers_of_one_file_leave_one_whole_file(model, tmp_path):
    path, n_writes = tmp_path / "m.clustruct", 15
    other = cs.FeatureClusterRegressor(3).fit(FEATURES.X, FEATURES.y)
    cs.save(model, path)
    threads = [
        threading.Thread(target=lambda one=one: [cs.save(one, path) for _ in range(n_writes)])
        for one in (model, other)
    ]
    for thread in threads:
        thread.start()
    found = []
    while any(thread.is_alive() for thread in threads):
        found.append(cs.load(path))
    for thread in threads:
        thread.join()
    for one in [*found, cs.load(path)]:
        assert any(same(one.coef_, known.coef_) for known in (model, other))
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.slow
def test_commands_with_one_output_leave_one_whole_file(table, tmp_path):
    out = tmp_path / "m.clustruct"
    command = [sys.executable, "-m", "clustruct", "fit", str(table), *FIT[:2], "--alpha", "0.01"]
    running = [
        subprocess.Popen(
            [*command, "--clusters", str(1 + number % 2), "--out", str(out)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for number in range(4)
    ]
    assert [process.wait(timeout=SECONDS) for process in running] == [0] * 4
    assert cs.load(out)[-1].n_clusters_ in (1, 2)
    assert os.listdir(tmp_path) == ["m.clustruct"]
