"""``clustruct fit`` and Ctrl-C: one keeps the best so far, another one ends at once."""

import json
import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import pytest

import clustruct as cs
from clustruct import _interrupts, _progress, cli
from clustruct._progress import telling
from clustruct.cli.preparing import training

pty = pytest.importorskip("pty")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs signals of Unix")

# Runs a command that sends the signal of Ctrl-C to its processes when so much is told to be done,
# or asks for the key, and waits until it was pressed.
PRESSING = textwrap.dedent("""\
    import os, signal, sys, time
    from clustruct import _interrupts, _progress
    from clustruct.cli import main

    presses = [pair.rpartition(":") for pair in sys.argv[1].split(",")]
    begun = _progress.Count.tell

    def tell(count):
        begun(count)
        things, _, _ = count._about
        if presses and things == presses[0][0] and count._done >= int(presses[0][2]):
            presses.pop(0)
            press()

    def press():
        if sys.__stderr__.isatty():  # what older releases of rich put in its place says no
            time.sleep(0.3)  # the bar is drawn ten times a second
            print("PRESS", file=sys.stderr, flush=True)
            while not _interrupts._watch.get().came:
                time.sleep(0.01)
        else:
            os.killpg(os.getpgid(0), signal.SIGINT)

    _progress.Count.tell = tell
    _progress.OFTEN = -1.0
    _interrupts.PATIENCE = 0.0
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main(sys.argv[2:]))
""")


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((80, 6)), columns=list("abcdef"))
    frame["y"] = frame.sum(axis=1) + rng.standard_normal(80)
    frame.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


def run(presses, table, *options):
    command = [sys.executable, "-c", PRESSING, presses, "fit", str(table), "--target", "y"]
    return subprocess.run(
        [*command, *map(str, options)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        start_new_session=True,
        env={**os.environ, "COLUMNS": "200"},
    )


def test_a_search_is_saved(table, tmp_path):
    out, report = tmp_path / "model", tmp_path / "report.html"
    done = run("folds:2", table, "--out", out, "--report", report, "--json")
    assert done.returncode == cli.INTERRUPTED, done.stderr
    assert "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("clustruct: interrupted; the fit ended early. The best so far is in ")
    values = json.loads(done.stdout)
    assert values["interrupted"] == "the fit ended early"
    assert values["held_out"] is not None
    model = cs.load(out)
    assert model[-1].status_.interrupted
    assert np.isfinite(model.predict(pd.read_csv(table))).all()
    assert "Ctrl-C ended the fit early" in report.read_text()
    assert {path.name for path in tmp_path.iterdir()} == {"model", "report.html", "table.csv"}


@pytest.fixture
def pressing(monkeypatch):
    """A context in which the signal comes, in this process, when so much is told to be done."""
    monkeypatch.setattr(_interrupts, "PATIENCE", 0.0)
    monkeypatch.setattr(_progress, "OFTEN", -1.0)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def context(*presses):
        left = list(presses)

        def tell(progress):
            if left and progress.things == left[0][0] and progress.done >= left[0][1]:
                left.pop(0)
                signal.raise_signal(signal.SIGINT)

        return telling(tell)

    yield context
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("presses", [(("folds", 2), ("steps", 0)), (("folds", 0),)])
@pytest.mark.filterwarnings("always::sklearn.exceptions.ConvergenceWarning")
def test_twice_ends_at_once(clustruct, pressing, table, tmp_path, presses):
    """So does once, if there is nothing to keep."""
    out = tmp_path / "model"
    with pressing(*presses):
        status, _, err = clustruct("fit", table, "--target", "y", "--out", out)
    assert status == cli.INTERRUPTED
    assert "interrupted; no file was left half-written" in err
    assert not out.exists()


@pytest.mark.parametrize(("at", "kept"), [(12, 12), (4, None)])
@pytest.mark.filterwarnings("always::sklearn.exceptions.ConvergenceWarning")
def test_the_model_is_kept_without_its_resamples(clustruct, pressing, table, tmp_path, at, kept):
    out = tmp_path / "model"
    settings = ("--clusters", "2", "--alpha", "0.1", "--stability", "20")
    with pressing(("resamples", at)):
        status, _, err = clustruct("fit", table, "--target", "y", "--out", out, *settings)
    assert status == cli.INTERRUPTED
    assert "interrupted; there are" in err
    found = cs.load(out)[-1].stability_
    assert (found and found.n_resamples) == kept


def test_the_model_is_kept_without_a_comparison(clustruct, monkeypatch, table, tmp_path):
    def compare(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "compare", compare)
    out = tmp_path / "model"
    settings = ("--clusters", "2", "--alpha", "0.1")
    status, _, err = clustruct("fit", table, "--target", "y", "--out", out, *settings)
    assert status == cli.INTERRUPTED
    assert "interrupted; the model was not compared with others. The best so far is in" in err
    assert out.exists()


def test_a_terminal_shows_a_bar_and_hears_the_key(table, tmp_path):
    """With a real terminal: its driver makes a signal of the key."""
    out = tmp_path / "model"
    command = [sys.executable, "-c", PRESSING, "folds:2", "fit", str(table), "--target", "y"]
    child, screen = pty.fork()
    if child == 0:
        os.environ |= {"TERM": "xterm", "COLUMNS": "150"}
        os.execv(sys.executable, [*command, "--out", str(out)])
    seen, pressed = b"", False
    while True:
        try:
            part = os.read(screen, 65536)
        except OSError:  # the other side was closed
            break
        if not part:
            break
        seen += part
        if b"PRESS" in seen and not pressed:
            pressed = True
            os.write(screen, b"\x03")
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(screen)
    assert status == cli.INTERRUPTED, seen.decode()
    text = seen.decode()
    assert "2 of 5 folds, about" in text
    assert "best score -" in text
    assert "The best so far is in" in text
    assert out.exists()


def test_a_log_has_lines_without_control_characters(clustruct, monkeypatch, table):
    """Progress of long work; here every work is long."""
    monkeypatch.setattr(_progress, "FIRST", 0.0)
    status, _, err = clustruct("fit", table, "--target", "y")
    assert status == 0
    lines = [line for line in err.splitlines() if " folds" in line]
    assert lines[-1].startswith("clustruct: 5 of 5 folds, best score -")
    assert all(line.isprintable() for line in err.splitlines())
