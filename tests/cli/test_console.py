"""What commands print with."""

import io
import sys
import time
import warnings

import pytest

import clustruct as cs
from clustruct._progress import counting
from clustruct.cli.console import Console
from clustruct.cli.preparing import training
from clustruct.estimators.search.progress import reporting_to


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """A function that makes standard error a terminal, and gives it."""

    def make():
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr(sys, "stderr", Terminal())
        return sys.stderr

    return make


def test_tables_wrap_the_last_column_and_align_the_others():
    out = io.StringIO()
    Console(out).table(("n", "name"), [("1", "one"), ("10", "ten " * 30)], "Numbers")
    title, *lines = out.getvalue().splitlines()
    assert title == "Numbers"
    words = [line.split() for line in lines if line.strip()]
    assert words[0] == ["n", "name"]
    assert words[2] == ["1", "one"]
    assert sum(line.count("ten") for line in words[3:]) == 30
    assert len(words) > 4
    assert {len(line) for line in lines if line.strip()} <= {100}
    first, second = (line for line in lines if line.split()[:1] in (["1"], ["10"]))
    assert first.index("1") == second.index("10") + 1


def test_text_is_printed_as_it_is(capsys):
    Console().say("[bold]a[/bold]\t:smile: " + "x" * 300)
    assert capsys.readouterr().out == "[bold]a[/bold]\t:smile: " + "x" * 300 + "\n"


def test_progress_is_a_bar_on_a_terminal(terminal):
    screen = terminal()
    with Console().progress("thinking"), counting("folds", 4, measure="score") as count:
        assert "thinking" in screen.getvalue()
        count.tick(0.5)
        count.move(0.5)
        count.tick(0.75)
        time.sleep(0.2)  # the bar is drawn ten times a second
    shown = screen.getvalue()
    assert "2 of 4 folds, about" in shown
    assert "s left, best score 0.75" in shown
    assert "\u2501" in shown  # of the bar


def test_progress_elsewhere_is_a_line_now_and_then(monkeypatch):
    monkeypatch.setattr("clustruct._progress.FIRST", 0.0)
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    with Console().progress("thinking"), counting("folds", 4, measure="score") as count:
        count.tick(0.5)
        count.tick(0.75)
    first, last = pipe.getvalue().splitlines()
    assert first == "clustruct: 0 of 4 folds (0.0 s)"
    assert last == "clustruct: 2 of 4 folds, best score 0.75 (0.0 s)"


def test_short_work_prints_nothing_elsewhere(monkeypatch):
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    with Console().progress("thinking"), counting("folds", 4) as count:
        count.tick()
    assert pipe.getvalue() == ""


def test_results_printed_during_progress_stay_on_standard_output(terminal, capsys):
    screen = terminal()
    console = Console()
    with console.progress("thinking"):
        console.say("a result")
    assert capsys.readouterr().out == "a result\n"
    assert "a result" not in screen.getvalue()


def test_notes_go_to_standard_error(capsys):
    Console().note("by the way")
    assert capsys.readouterr() == ("", "by the way\n")


def test_streams_that_are_closed(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    console = Console()
    console.say("nobody reads this")
    console.note("nor this")
    console.table(("n",), [("1",)])
    with console.progress("thinking"):
        pass


@pytest.mark.parametrize("use", ["features", "samples", "tasks"])
def test_searches_tell_their_progress(use):
    heard = []
    X, y, ids = cs.datasets.make_clustered_tasks(random_state=0).rows()
    model, routed = {
        "features": (cs.FeatureClusterRegressorCV((1, 2), alphas=(0.1,), cv=2), {}),
        "samples": (cs.SampleClusterRegressorCV((1, 2), n_init=1), {}),
        "tasks": (cs.TaskClusterRegressorCV((1, 2), cv=2), {"tasks": ids}),
    }[use]
    with reporting_to(lambda *told: heard.append(told)):
        model.fit(X, y, **routed)
    assert heard == [(0, 2), (1, 2), (2, 2)]


def test_a_fit_shows_its_progress_and_its_warnings(terminal, clustruct, flats_csv, monkeypatch):
    told = []

    class Model:
        def fit(self, X, y):
            warnings.warn("odd", stacklevel=2)
            told.append(True)
            raise KeyboardInterrupt

    monkeypatch.setattr(training, "choose_model", lambda *args: Model())
    screen = terminal()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        status, _, _ = clustruct("fit", flats_csv, "--target", "rent", "--drop", "advert")
    assert status == 130
    assert told
    assert "fitting 48 rows" in screen.getvalue()
    assert "clustruct: warning: odd" in screen.getvalue()
