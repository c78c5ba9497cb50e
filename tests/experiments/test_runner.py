"""Tasks, seeds, results on disk, and what becomes of a run that is interrupted."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clustruct.experiments.runner import Outcome, RunSettings, run_experiments, shown_progress
from clustruct.experiments.store import Store, locked, write_whole

SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from conftest import CELLS, measure, present
from clustruct.experiments.experiment import Experiment, Measurement
from clustruct.experiments.runner import RunSettings, run_experiments

cells = tuple({{**cell, "wait": 0.2}} for cell in CELLS)
slow = Measurement("slow", measure, {{}})
experiment = Experiment("slow", "t", "a", slow, cells, 20, present, cells)
outcome = run_experiments([experiment], RunSettings(Path({out!r}), jobs={jobs}))
print(outcome.computed, outcome.done, outcome.total, outcome.interrupted)
"""


def values(outcome, name="small"):
    return [(row.cell["n"], row.repetition, row.values) for row in outcome.rows[name]]


def lines_of(path):
    return path.read_text(encoding="utf-8").splitlines()


def test_results_do_not_depend_on_jobs_and_order(make_experiment, tmp_path):
    experiment = make_experiment()
    alone = run_experiments([experiment], RunSettings(tmp_path / "a", jobs=1))
    together = run_experiments([experiment], RunSettings(tmp_path / "b", jobs=2))
    some = run_experiments([experiment], RunSettings(tmp_path / "c", repetitions=2, jobs=1))
    assert alone.total == alone.computed == 8
    assert values(alone) == values(together)
    assert values(some) == [v for v in values(alone) if v[1] < 2]
    assert len({json.dumps(v[2]) for v in values(alone)}) == 8


def test_a_run_goes_on_and_computes_nothing_twice(make_experiment, tmp_path):
    experiment = make_experiment()
    first = run_experiments([experiment], RunSettings(tmp_path, repetitions=3, jobs=1))
    again = run_experiments([experiment], RunSettings(tmp_path, jobs=1))
    assert (first.computed, again.computed, again.done) == (6, 2, 8)
    assert values(first) == values(again)[:6]


def test_other_settings_are_other_results(make_experiment, tmp_path):
    run_experiments([make_experiment()], RunSettings(tmp_path, jobs=1))
    changed = make_experiment(settings={"version": 2})
    assert run_experiments([changed], RunSettings(tmp_path, jobs=1)).computed == 8
    # The old ones are still there.
    assert run_experiments([make_experiment()], RunSettings(tmp_path, jobs=1)).computed == 0


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-20],
        lambda text: text + '{"key": "torn',
        lambda text: text.replace("{", "\0\0\0", 1),
        lambda text: '{"another": "thing"}\n[]\n' + text,
    ],
)
def test_what_a_crash_leaves_is_never_read_as_whole(make_experiment, tmp_path, damage):
    experiment = make_experiment()
    whole = run_experiments([experiment], RunSettings(tmp_path, jobs=1))
    path = tmp_path / "results" / "small.jsonl"
    path.write_text(damage(path.read_text(encoding="utf-8")), encoding="utf-8")
    again = run_experiments([experiment], RunSettings(tmp_path, jobs=1))
    assert again.computed <= 1
    assert values(again) == values(whole)
    assert len(lines_of(path)) == 8
    assert all(json.loads(line) for line in lines_of(path))


def test_a_failing_repetition_is_told_and_not_kept(make_experiment, broken, tmp_path):
    good, bad = make_experiment(), make_experiment("bad", run=broken)
    outcome = run_experiments([bad, good], RunSettings(tmp_path, jobs=2))
    assert len(outcome.failures) == 8
    assert "it <b>broke</b>" in outcome.failures[0]
    assert outcome.rows["bad"] == []
    assert len(outcome.rows["small"]) == 8


def test_what_lacks_data_is_left_out(make_experiment, lacking, tmp_path):
    good, bad = make_experiment(), make_experiment("bad", check=lacking)
    outcome = run_experiments([bad, good], RunSettings(tmp_path, jobs=1))
    assert outcome.missing == {"bad": "the file is nowhere; get it from <somewhere>"}
    assert len(outcome.rows["small"]) == 8


def start(out, jobs):
    script = SCRIPT.format(tests=str(Path(__file__).parent), out=str(out), jobs=jobs)
    return subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for_lines(process, path, count):
    # Far longer than it takes: a busy machine needs a minute to start two workers.
    for _ in range(12_000):
        if path.exists() and len(lines_of(path)) >= count:
            return
        assert process.poll() is None, f"ended before {count} lines: {process.communicate()}"
        time.sleep(0.05)
    raise AssertionError(f"{path} did not get {count} lines")


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_process_loses_only_what_was_in_progress(tmp_path, jobs):
    path = tmp_path / "results" / "slow.jsonl"
    process = start(tmp_path, jobs)
    wait_for_lines(process, path, 3)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    kept = Store(path).rows
    assert 3 <= len(kept) < 40
    before = {key: row.values for key, row in kept.items()}
    out, err = start(tmp_path, 2).communicate(timeout=600)
    assert err == ""
    assert out.split() == [str(40 - len(kept)), "40", "40", "False"]
    after = Store(path).rows
    assert {key: after[key].values for key in before} == before


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.parametrize(("jobs", "number"), [(1, "SIGINT"), (2, "SIGINT"), (2, "SIGTERM")])
def test_a_request_to_end_is_answered_cleanly(tmp_path, jobs, number):
    path = tmp_path / "results" / "slow.jsonl"
    process = start(tmp_path, jobs)
    wait_for_lines(process, path, 3)
    if number == "SIGINT":
        os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to all processes
    else:
        process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=600)
    assert "Traceback" not in err
    computed, done, total, interrupted = out.split()
    assert computed == done == str(len(lines_of(path)))
    assert (total, interrupted) == ("40", "True")
    assert int(done) < 40


def test_two_runs_keep_out_of_each_others_way(tmp_path):
    pytest.importorskip("fcntl")
    with locked(tmp_path), pytest.raises(ValueError, match="Another run"), locked(tmp_path):
        pass
    with locked(tmp_path):
        pass


def test_a_file_in_place_of_the_folder_is_told(tmp_path):
    path = tmp_path / "file"
    path.touch()
    with pytest.raises(ValueError, match="is a file"), locked(path):
        pass


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_whole(path, "before")
    monkeypatch.setattr(os, "fsync", lambda file: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_whole(path, "after")
    assert path.read_text(encoding="utf-8") == "before"
    assert list(tmp_path.iterdir()) == [path]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("stream", "shown"), [(Terminal(), True), (io.StringIO(), False)])
def test_progress_is_shown_on_a_terminal_only(stream, shown):
    with shown_progress(stream) as update:
        update(Outcome(done=3, total=10, cost_done=2.0, cost=8.0, latest="phase"))
    assert ("3/10" in stream.getvalue()) is shown
    assert ("phase" in stream.getvalue()) is shown
