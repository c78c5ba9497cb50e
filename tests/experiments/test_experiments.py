"""Every experiment in miniature: it measures what it says, and shows it."""

import os
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import sparse

from clustruct.experiments.catalogue import EXPERIMENTS
from clustruct.experiments.experiment import Task
from clustruct.experiments.output.files import make_sections, render_page, section_markdown
from clustruct.experiments.paper import (
    baselines,
    convergence,
    phase,
    table1,
    table4,
    table5,
    tables2_3,
)
from clustruct.experiments.runner import RunSettings, perform, run_experiments


def measured(experiment, cells, repetitions=2):
    """Rows of some cells."""
    rows = []
    for cell in cells:
        for r in range(repetitions):
            _, _, row, error = perform(Task(experiment.measurement, cell, r), os.getpid())
            assert row is not None, error
            rows.append(row)
    return rows


def shown(experiment, rows):
    """The presentation; all of its pictures can be drawn, and it fits on both kinds of page."""
    (section,), complaint = make_sections({experiment.name: experiment}, {experiment.name: rows})
    assert complaint == ""
    for svg in section.pictures.values():
        assert ElementTree.fromstring(svg).tag.endswith("svg")
    assert len(section.pictures) == len(section.presentation.pictures) > 0
    assert experiment.title in section_markdown(section, "")
    assert experiment.name in render_page([section], {})
    return section.presentation


@pytest.fixture
def small_experts(monkeypatch):
    monkeypatch.setattr(table1, "N_TRAIN", 300)
    monkeypatch.setattr(table1, "N_FOLDS", 2)
    monkeypatch.setattr(table1, "ALPHAS", np.array([1e-4, 1e-1]))


def test_table1(small_experts):
    cells = [
        table1.CELLS["p = 0"],
        table1.CELLS["p = 0.25"],
        table1.OTHERS["p = 0, 8 features that matter"],
    ]
    presentation = shown(table1.TABLE1, measured(table1.TABLE1, cells, 1))
    (comparison,) = presentation.comparisons
    assert comparison.columns == ("p = 0", "p = 0.25")
    for method in table1.METHODS:  # easy problems: everybody finds the groups
        assert comparison.entry(method, "p = 0").ours.mean < 2.0
    assert len(presentation.tables[1].rows) == 1  # the other reading


def test_table1_scale_changes_the_weights_and_not_the_noise(small_experts):
    cell = table1.CELLS["p = 0"]
    (plain,) = measured(table1.TABLE1, [cell], 1)
    (large,) = measured(table1.TABLE1, [{**cell, "scale": 3.0}], 1)
    oracle = plain.values["losses"]["oracle"]
    assert large.values["losses"]["oracle"] == pytest.approx(oracle, rel=0.5)


@pytest.fixture
def small_features(monkeypatch):
    monkeypatch.setattr(tables2_3, "D", 20)
    monkeypatch.setattr(tables2_3, "N_FOLDS", 2)
    monkeypatch.setattr(tables2_3, "ALPHAS", np.geomspace(1.0, 1e-4, 3))
    monkeypatch.setattr(tables2_3, "OSCAR_RATIOS", np.geomspace(1.0, 1e-4, 4))
    monkeypatch.setattr(tables2_3, "CG_STEPS", 3)


def test_tables_2_and_3(small_features):
    cells = [
        tables2_3.SIZES["n = 150"],
        tables2_3.SIZES["n = 50"],
        tables2_3.NOISES["sigma = 0.05"],
    ]
    rows = measured(tables2_3.TABLE2, cells, 1)
    second, third = shown(tables2_3.TABLE2, rows), shown(tables2_3.TABLE3, rows)
    error = second.comparisons[0].entry("pg", "n = 150").ours.mean
    assert error < 1.0
    # Table 3 shows 100 times the same repetitions.
    assert third.comparisons[0].entry("pg", "sigma = 0.5").ours.mean == pytest.approx(100 * error)
    less = third.comparisons[0].entry("oracle", "sigma = 0.05").ours.mean
    assert less < third.comparisons[0].entry("oracle", "sigma = 0.5").ours.mean / 5
    assert tables2_3.TABLE2.measurement is tables2_3.TABLE3.measurement


def test_oscar_is_left_out_where_its_package_is_missing(small_features, monkeypatch):
    monkeypatch.setattr(baselines, "oscar_version", lambda: None)
    rows = measured(tables2_3.TABLE2, [tables2_3.SIZES["n = 50"]], 1)
    assert "oscar" not in rows[0].values["errors"]
    entry = shown(tables2_3.TABLE2, rows).comparisons[0].entry("oscar", "n = 50")
    assert entry.verdict == "not measured"


@pytest.fixture
def small_reviews(monkeypatch):
    """Sixty words of which few matter, in place of the reviews."""
    rng = np.random.default_rng(0)
    X = sparse.csr_array(rng.random((200, 60)) * (rng.random((200, 60)) < 0.3))
    w = np.repeat([0.5, 0.0, -0.5], [6, 48, 6])
    words = np.array([f"<w{j}>" for j in range(60)], dtype=object)
    y = 0.5 + 0.2 * (X @ w) + 0.05 * rng.standard_normal(200)
    bunch = SimpleNamespace(data=X, target=y, feature_names=words)
    for module in (table4, table5):
        monkeypatch.setattr(module, "load_reviews", lambda *args: bunch)
    monkeypatch.setattr(table4, "N_CLUSTERS", (3, 5))
    monkeypatch.setattr(table4, "N_FOLDS", 2)
    monkeypatch.setattr(table5, "N_CLUSTERS", 5)
    monkeypatch.setattr(table4, "ALPHAS", np.geomspace(1e-1, 1e-5, 5))


def test_table4(small_reviews):
    rows = measured(table4.TABLE4, table4.CELLS.values(), 1)
    assert set(rows[0].values["errors"]) >= set(table4.METHODS) - {"oscar"}
    presentation = shown(table4.TABLE4, rows)
    (comparison,) = presentation.comparisons
    variance = 100 * 0.05**2
    assert variance / 2 < comparison.entry("auto", "TF-IDF").ours.mean < 4 * variance
    # Both weightings are tested on the same splits, here even of the same data.
    assert rows[0].values == rows[1].values


def test_table5(small_reviews):
    rows = measured(table5.TABLE5, table5.CELLS.values(), repetitions=1)
    groups = rows[0].values["groups"]
    assert sum(group["size"] for group in groups) == 60
    weights = [group["weight"] for group in groups]
    assert weights == sorted(weights)
    assert set(groups[0]["words"]) <= {f"<w{j}>" for j in range(54, 60)}
    shown(table5.TABLE5, rows)


def test_convergence():
    cells = [convergence.CELLS["n = 1 d"], convergence.CELLS["n = 32 d"]]
    rows = measured(convergence.CONVERGENCE, cells)
    for row in rows:
        errors, bounds = row.values["errors"], row.values["bounds"]
        assert all(e <= b * (1 + 1e-4) for e, b in zip(errors, bounds, strict=True))
    assert rows[-1].values["errors"][-1] < 0.01
    assert rows[0].values["errors"][-1] > 0.1
    shown(convergence.CONVERGENCE, rows)


def test_phase():
    cells = [{"d": 20, "k": 20, "n": n} for n in (10, 60)]
    cells += [{"d": 100, "k": 5, "n": n} for n in (10, 60)]
    rows = measured(phase.PHASE, cells)
    presentation = shown(phase.PHASE, rows)
    assert len(presentation.pictures) == 2
    assert presentation.tables[0].rows[1][1] == "60"


def test_cells_can_be_told_apart_and_shown():
    for experiment in EXPERIMENTS.values():
        tasks = experiment.tasks(repetitions=None, quick=False)
        assert len({task.key for task in tasks}) == len(tasks)
        assert len({tuple(task.seed.generate_state(4)) for task in tasks}) == len(tasks)
        quick = {task.key for task in experiment.tasks(repetitions=None, quick=True)}
        assert quick <= {task.key for task in tasks}


def test_missing_reviews_are_told_and_the_rest_runs(monkeypatch, tmp_path):
    monkeypatch.setenv("CLUSTRUCT_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(
        "urllib.request.urlopen", lambda *args, **kw: (_ for _ in ()).throw(OSError("no network"))
    )
    outcome = run_experiments([EXPERIMENTS["table5"]], RunSettings(tmp_path, jobs=1))
    assert "CLUSTRUCT_DATA" in outcome.missing["table5"]


@pytest.mark.parametrize(
    ("errors", "matters"),
    [
        ([1, 2, 3], True),
        ([3, 1, 2], False),
        ([3, 2, 1], True),
        ([3, 1.0001, 1], False),
        ([1], False),
    ],
)
def test_an_edge_matters_where_the_grid_is_too_short(errors, matters):
    assert baselines.edge_matters(np.array(errors, dtype=float)) is matters


@pytest.mark.parametrize("kind", ["lasso", "ridge", "oscar"])
def test_baselines_choose_by_the_folds_and_agree_with_each_other(kind):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((80, 6))
    y = X @ np.array([1.0, 1.0, 0, 0, 0, -2.0]) + 3.0 + 0.1 * rng.standard_normal(80)
    folds = [(np.arange(40), np.arange(40, 80)), (np.arange(40, 80), np.arange(40))]
    strengths = np.geomspace(1.0, 1e-4, 9)
    if kind == "oscar":
        pytest.importorskip("sortedl1")
        found = baselines.oscar(
            X, y, folds, strengths, (1.0,), intercept=True, solver="hybrid", tol=1e-6, max_iter=500
        )
    elif kind == "lasso":
        found = baselines.lasso(X, y, folds, strengths)
    else:
        found = baselines.ridge(X, y, folds, strengths, intercept=True)
    assert found.model.intercept == pytest.approx(3.0, abs=0.1)
    assert found.model.coef == pytest.approx([1, 1, 0, 0, 0, -2], abs=0.1)
    assert found.chosen["strength"] < 0.2
