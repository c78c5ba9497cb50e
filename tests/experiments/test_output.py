"""Verdicts, tables, the page, and the command line."""

import csv
import io
import json
import runpy
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from clustruct import cli
from clustruct.experiments import catalogue, reproduce
from clustruct.experiments.comparison import Comparison, Entry, Figure, figure_of
from clustruct.experiments.environment import environment, environment_line
from clustruct.experiments.output.files import render_page
from clustruct.experiments.paper import baselines
from clustruct.experiments.runner import RunSettings

REPRODUCTION = Path(__file__).parents[2] / "docs" / "reproduction"


@pytest.mark.parametrize(
    ("ours", "paper", "verdict"),
    [
        (Figure(1.0, 0.5, 50), Figure(1.1, 0.5, 50), "agrees"),
        (Figure(1.0, 0.5, 50), Figure(1.3, 0.5, 50), "better"),
        (Figure(1.3, 0.5, 50), Figure(1.0, 0.5, 50), "worse"),
        (Figure(1.01, 0.0, 50), Figure(1.0, 0.0, 50), "worse"),
        # A mean that is printed as 1.0 may have been 1.04.
        (Figure(1.04, 0.0, 50), Figure(1.0, 0.0, 50, unit=0.1), "agrees"),
        (Figure(1.0, 0.0, 3), Figure(9.0, 0.5, 50), "too few repetitions"),
        (None, Figure(9.0, 0.5, 50), "not measured"),
        (Figure(1.0, 0.5, 50), None, "not in the paper"),
    ],
)
def test_verdict_is_by_two_standard_errors_of_the_difference(ours, paper, verdict):
    assert Entry("m", "c", ours, paper).verdict == verdict


def test_auto_is_held_against_the_best_of_the_paper():
    paper = {"c": {n: Figure(m, 0.1, 50) for n, m in (("oracle", 1), ("x", 3), ("y", 2))}}
    found = {"c": {"auto": [1.4, 1.5, 1.5, 1.6], "x": [3.0, 3.1]}}
    names = {"oracle": "O", "x": "X", "y": "Y", "auto": "A"}
    comparison = Comparison("t", "q", names, found, paper)
    entry = comparison.entry("auto", "c")
    assert (entry.rival, entry.paper.mean, entry.verdict) == ("y", 2, "better")
    assert comparison.entry("oracle", "c").verdict == "not measured"


def test_figure_is_mean_and_sample_deviation():
    assert figure_of([1.0, 3.0]) == Figure(2.0, pytest.approx(2**0.5), 2)
    assert figure_of([]) is None


class Page(HTMLParser):
    """What a page holds; complains of tags that do not match."""

    VOID = ("meta", "img", "br", "link")

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.sources, self.text = [], [], [], []

    def handle_starttag(self, tag, attributes):
        self.seen.append(tag)
        self.sources += [v for k, v in attributes if k in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_everything_is_written_and_the_page_is_whole(make_experiment, lacking, tmp_path):
    experiments = [make_experiment(), make_experiment("bad", check=lacking)]
    found = reproduce.reproduce(experiments, RunSettings(tmp_path, jobs=1))
    folder = tmp_path / "small"
    rows = list(csv.DictReader(io.StringIO((folder / "results.csv").read_text(encoding="utf-8"))))
    assert len(rows) == 8
    assert {"n", "repetition", "errors.a"} <= set(rows[0])
    table = list(csv.DictReader(io.StringIO((folder / "table.csv").read_text(encoding="utf-8"))))
    assert [line["verdict"] for line in table] == ["agrees", "better"]
    assert "| **A & B** |" in (folder / "table.md").read_text(encoding="utf-8")
    assert "8 repetitions" in (folder / "environment.txt").read_text(encoding="utf-8")
    page = Page()
    page.feed((tmp_path / "index.html").read_text(encoding="utf-8"))
    assert page.open == []
    text = " ".join("".join(page.text).split())
    assert "A title <b>" in text  # escaped: shown, not obeyed
    assert "get it from <somewhere>" in text
    assert "b" not in page.seen
    assert all(source.startswith(("#", "data:")) for source in page.sources)
    assert found.complaints == ["bad was left out: the file is nowhere; get it from <somewhere>"]
    log = json.loads((tmp_path / "runs.jsonl").read_text(encoding="utf-8"))
    assert (log["computed"], log["jobs"]) == (8, 1)


def test_the_page_opens_in_a_browser(make_experiment, tmp_path):
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no chromium to open the page in")
    reproduce.reproduce([make_experiment()], RunSettings(tmp_path, jobs=1))
    shown = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--dump-dom", str(tmp_path / "index.html")],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "The paper, reproduced" in shown.stdout


def test_the_page_of_nothing_is_a_page():
    page = Page()
    page.feed(render_page([], {}))
    assert page.open == []


def test_drawings_are_valid_and_always_the_same():
    for picture in runpy.run_path(str(REPRODUCTION / "drawings.py"))["DRAWINGS"]:
        svg = picture.svg()
        assert ElementTree.fromstring(svg).tag.endswith("svg")
        assert svg == picture.svg()


def test_document_is_made_from_results(make_experiment, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(REPRODUCTION)
    write_document = runpy.run_path(str(REPRODUCTION / "write_page.py"))["write_document"]
    folder = tmp_path / "reproduction"
    experiment = make_experiment()
    reproduce.reproduce([experiment], RunSettings(folder, jobs=1))
    (folder / "notes").mkdir()
    (folder / "notes" / "small.md").write_text("Why it is so.", encoding="utf-8")
    page = write_document(folder, {"small": experiment})
    text = page.read_text(encoding="utf-8")
    assert page == tmp_path / "reproduction.md"
    assert "Why it is so." in text
    assert "| A title <b> | 1 | 1 | 0 |" in text
    assert (folder / "graphical-models.svg").exists()
    assert text == write_document(folder, {"small": experiment}).read_text(encoding="utf-8")


def test_environment_fits_in_a_line():
    line = environment_line(environment())
    assert "numpy" in line
    assert "\n" not in line


@pytest.fixture
def small_catalogue(make_experiment, monkeypatch):
    """The command line with one small experiment."""
    known = {"small": make_experiment()}
    monkeypatch.setattr(catalogue, "EXPERIMENTS", known)
    return known


def test_command_prints_tables_and_goes_on(small_catalogue, tmp_path, capsys):
    arguments = ["reproduce", "--out", str(tmp_path), "--jobs", "1"]
    assert cli.main([*arguments, "--repetitions", "2"]) == 0
    assert "4 of 4 there" in capsys.readouterr().out
    assert cli.main([*arguments, "all", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["computed"], found["done"]) == (4, 8)
    assert found["experiments"]["small"]["better"] == 1
    assert cli.main([*arguments, "--quick", "small"]) == 0


def test_command_names_what_there_is(small_catalogue, tmp_path, capsys):
    assert cli.main(["reproduce", "smal", "--out", str(tmp_path / "new")]) == 2
    assert "there is no experiment 'smal'. Did you mean 'small'" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("option", ["--repetitions", "--jobs"])
def test_command_refuses_what_is_no_count(option, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["reproduce", option, "0"])
    assert stop.value.code == 2
    assert "no whole number of at least 1" in capsys.readouterr().err


def test_command_says_what_was_left_out(make_experiment, lacking, monkeypatch, tmp_path, capsys):
    known = {"bad": make_experiment("bad", check=lacking), "small": make_experiment()}
    monkeypatch.setattr(catalogue, "EXPERIMENTS", known)
    assert cli.main(["reproduce", "--out", str(tmp_path), "--jobs", "1"]) == 1
    said = capsys.readouterr()
    assert "8 of 8 there" in said.out
    assert "bad was left out: the file is nowhere" in said.err
    assert "Traceback" not in said.err


def test_interrupted_command_says_how_to_go_on(small_catalogue, monkeypatch, tmp_path, capsys):
    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("clustruct.experiments.runner._results", interrupt)
    assert cli.main(["reproduce", "--out", str(tmp_path)]) == cli.INTERRUPTED
    assert "0 of 8 repetitions are kept" in capsys.readouterr().err


def test_missing_oscar_is_told_with_the_remedy(make_experiment, monkeypatch, tmp_path):
    monkeypatch.setattr(baselines, "oscar_version", lambda: None)
    experiment = make_experiment(settings={"oscar": None})
    found = reproduce.reproduce([experiment], RunSettings(tmp_path, jobs=1))
    (complaint,) = found.complaints
    assert "pip install clustruct[experiments]" in complaint
