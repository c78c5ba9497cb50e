"""The documentation names every public name, and its code runs as it stands."""

import os
import re
from itertools import product
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from scipy.optimize import nnls
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import adjusted_rand_score, mean_pinball_loss

import clustruct as cs
from docs.extensions import outputs
from tests.releases import SCIKIT_LEARN
from tests.test_docstrings import NAMES

DOCS = Path(__file__).parent.parent / "docs"
PAGES = ("index", "getting_started", "features", "samples", "choosing", "certificates")
MORE_PAGES = ("algorithms", "tasks", "model_files", "coming_from", "plots_and_report", "scaling")
MORE_PAGES += ("compressing",)
PICTURES = ("weights.svg", "experts.svg", "report.png")


def text_of(page):
    return (DOCS / f"{page}.md").read_text(encoding="utf-8")


def listed_names():
    """The names that the API reference lists for autosummary."""
    text = text_of("api")
    for block in re.findall(r"\.\. autosummary::\n(.*?)```", text, flags=re.S):
        for line in block.splitlines():
            if line.startswith("   ") and not line.strip().startswith((":", "..")):
                yield line.strip()


def test_every_public_name_is_listed_once():
    listed = [name for name in listed_names() if name]
    assert sorted(listed) == sorted(set(listed))
    assert set(listed) == set(NAMES)


def test_every_page_is_in_a_table_of_contents():
    pages = {path.stem for path in DOCS.glob("*.md")} - {"index"}
    text = "".join(path.read_text(encoding="utf-8") for path in DOCS.glob("*.md"))
    entries = set()
    for block in re.findall(r"```\{toctree\}\n(.*?)```", text, flags=re.S):
        entries.update(line.strip() for line in block.splitlines() if line.strip())
    assert pages - entries == set()


@pytest.mark.parametrize("page", sorted(path.stem for path in DOCS.glob("*.md")))
def test_source_files_that_pages_name_exist(page):
    named = set(re.findall(r"`([a-z_0-9]+(?:/[a-z_0-9]+)+\.py)`", text_of(page)))
    package = Path(cs.__file__).parent
    roots = (package, package.parent, DOCS.parent)
    assert {path for path in named if not any((root / path).exists() for root in roots)} == set()


def test_links_to_terms_lead_to_the_glossary():
    terms = set(re.findall(r"^\((term-[a-z-]+)\)=$", text_of("glossary"), flags=re.M))
    assert len(terms) > 30
    for path in DOCS.glob("*.md"):
        assert set(re.findall(r"#(term-[a-z-]+)", path.read_text(encoding="utf-8"))) <= terms


def run_page(page):
    """Run all blocks of a page, in order and in one namespace, which is returned."""
    mpl.use("agg")
    return outputs.run_page(DOCS / f"{page}.md")


@pytest.mark.parametrize("page", [*PAGES, *MORE_PAGES])
def test_code_runs(page):
    if page == "tasks" and SCIKIT_LEARN < (1, 8):
        pytest.skip("scikit-learn gives the score of a pipeline its tasks from 1.8 on")
    run_page(page)


@pytest.mark.parametrize("page", sorted(path.stem for path in DOCS.glob("*.md")))
def test_code_fits_a_page(page):
    """A hundred characters fit on a screen of 1280 pixels."""
    blocks = re.findall(r"^```([^\n]*)\n(.*?)^```", text_of(page), flags=re.S | re.M)
    code = [block for kind, block in blocks if not kind.startswith("{")]
    assert [line for block in code for line in block.splitlines() if len(line) > 100] == []


def test_outputs_are_values_and_printed_lines_in_order():
    session = outputs.Session()
    text, figures = session.run("print('one')\n'two'\n3;\nx = [4]\nx  # five\n")
    assert (text, figures) == ("one\n'two'\n[4]", [])
    text, figures = session.run("import matplotlib.pyplot as plt\nplt.figure();\nx + x\n")
    assert (text, len(figures)) == ("[4, 4]", 1)


def test_code_of_prediction_intervals_runs():
    pytest.importorskip("crepes")
    pytest.importorskip("mapie")
    found = run_page("prediction_intervals")
    y, new = found["y"], found["new"]
    low, high = found["intervals"][:, :, 0].T
    assert np.mean((low <= y[new]) & (y[new] <= high)) == pytest.approx(0.9, abs=0.06)


@pytest.mark.slow
def test_code_of_tariffs_runs():
    folder = Path(os.environ.get("CLUSTRUCT_DATA", "."))
    for name in ("beMTPL97.csv.xz", "bike.csv.xz", "rent.csv"):
        if not (folder / name).exists():
            pytest.skip(f"{name} is not in the folder that CLUSTRUCT_DATA names")
    found = run_page("tariffs")
    assert found["tariff"].n_clusters_ <= 40
    assert found["deviances"]["tariff"] < found["deviances"]["one rate for all"]
    bonus = found["groups_of"]("bm")["relativity"]
    assert bonus.is_monotonic_increasing


@pytest.fixture(scope="module")
def tutorial():
    return run_page("extending")


@pytest.mark.parametrize("name", ["Pinball", "Mirrored", "NonNegativeClustered", "OneMove"])
def test_parts_of_the_tutorial_are_short(name):
    text = (DOCS / "extending.md").read_text(encoding="utf-8")
    body = text.partition(f"class {name}")[2].partition("\n\n\n")[0]
    assert 10 < len(body.splitlines()) < 40


def test_the_loss_of_the_tutorial_is_what_it_says(tutorial):
    loss = tutorial["Pinball"](0.9)
    target, scores = np.array([[0.3], [-1.0], [2.0]]), np.array([[0.35], [-1.05], [2.0]])
    slope = loss.gradient(target, scores)
    for derivative, function in (
        (slope, lambda z: loss.value(target, z)[:, None]),
        (loss.hessian_product(target, scores, np.ones((3, 1))), lambda z: loss.gradient(target, z)),
    ):
        step = 1e-6
        difference = (function(scores + step) - function(scores - step)) / (2 * step)
        np.testing.assert_allclose(derivative, difference, atol=1e-6)
    young = loss.value(target, scores) + loss.conjugate(target, slope) - (slope * scores)[:, 0]
    np.testing.assert_allclose(young, 0.0, atol=1e-12)
    truth, high = tutorial["problem"].labels, tutorial["high"]
    assert adjusted_rand_score(truth, high.labels_) == 1.0
    assert np.mean(tutorial["y"] <= high.predict(tutorial["X"])) == pytest.approx(0.9, abs=0.02)
    assert 0.0 < high.certificate_.lower_bound <= high.objective_
    assert tutorial["search"].best_params_["n_clusters"] == 3
    assert tutorial["search"].cv_results_.scoring == "neg_mean_pinball_deviance"


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
def test_the_loss_of_the_tutorial_fits_quantiles(tutorial, quantile):
    X, y = tutorial["X"][:, :4], tutorial["y"]
    loss = tutorial["Pinball"](quantile, smoothing=0.05)
    mine = cs.FeatureClusterRegressor(None, alpha=0.0, loss=loss).fit(X, y)
    its = QuantileRegressor(quantile=quantile, alpha=0.0).fit(X, y)
    np.testing.assert_allclose(mine.coef_, its.coef_, atol=0.01 * np.abs(its.coef_).max())
    mine, its = (mean_pinball_loss(y, m.predict(X), alpha=quantile) for m in (mine, its))
    assert its <= mine <= 1.001 * its


def test_the_constraint_of_the_tutorial_is_obeyed(tutorial):
    W = np.random.default_rng(0).standard_normal((12, 1))
    nearest = tutorial["Mirrored"]().project(W)
    again = tutorial["Mirrored"]().project(nearest.point)
    np.testing.assert_allclose(again.point, nearest.point)
    explained = tutorial["Mirrored"]().explained(W)
    np.testing.assert_allclose(explained, (W**2).sum() - nearest.sq_distance)
    weights = tutorial["mirrored"].coef_
    np.testing.assert_allclose(weights, weights[::-1])
    for name in ("signed", "tuned"):
        weights = tutorial[name].coef_
        assert weights.min() >= 0.0
        assert np.unique(weights).size <= 3
    assert len(tutorial["tuned"].cv_results_["mean_test_score"]) == 10  # alphas


@pytest.mark.parametrize("seed", range(3))
def test_nonnegative_groups_are_the_best_there_are(tutorial, seed):
    rng = np.random.default_rng(seed)
    n, d, alpha = 60, 6, 1e-2
    X = rng.standard_normal((n, d))
    y = X @ np.array([-1.0, -0.5, 0.1, 1.0, 1.1, 2.0]) + 0.1 * rng.standard_normal(n)
    constraint = tutorial["NonNegativeClustered"](2)
    model = cs.FeatureClusterRegressor(constraint=constraint, alpha=alpha, fit_intercept=False)
    model.fit(X, y)

    def least(labels):
        """The objective with the best values, none of them negative, by SciPy."""
        Z = np.eye(2)[list(labels)]
        rows = np.vstack([X @ Z / np.sqrt(n), np.sqrt(alpha) * Z])
        values, _ = nnls(rows, np.append(y / np.sqrt(n), np.zeros(d)))
        return 0.5 * np.mean((y - X @ Z @ values) ** 2) + 0.5 * alpha * np.sum((Z @ values) ** 2)

    best = min(map(least, product(range(2), repeat=d)))
    assert best <= model.objective_ * (1 + 1e-9)
    assert model.objective_ == pytest.approx(best, rel=1e-4)
    assert model.certificate_.lower_bound <= best


def test_the_solver_of_the_tutorial_descends(tutorial):
    assert adjusted_rand_score(tutorial["problem"].labels, tutorial["run"].solution.labels) == 1.0
    moved = tutorial["moved"]
    assert moved.converged
    assert (np.diff([step.objective for step in moved.trace]) < 0).all()
    assert moved.solution.point.value < moved.trace[0].objective


def test_pictures_are_small():
    sizes = [(DOCS / "pictures" / name).stat().st_size for name in PICTURES]
    assert sum(sizes) < 150_000
