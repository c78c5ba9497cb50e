"""The documentation names every public name, and its code runs as it stands."""

import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import clustruct as cs
from tests.test_docstrings import NAMES

DOCS = Path(__file__).parent.parent / "docs"
PAGES = ("index", "getting_started", "features", "samples", "choosing", "certificates")
MORE_PAGES = ("algorithms", "tasks", "model_files", "coming_from", "plots_and_report", "scaling")
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


def run_page(page, **given):
    """Run all blocks of a page, in order and in one namespace, which is returned."""
    text = text_of(page)
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.S):
        exec(block, given)
    return given


@pytest.mark.parametrize("page", [*PAGES, *MORE_PAGES])
def test_code_runs(page, tmp_path, monkeypatch):
    mpl.use("agg")
    monkeypatch.chdir(tmp_path)
    data = cs.datasets.make_experts(200, 4, 3, random_state=0)
    model = cs.FeatureClusterRegressor(2)
    run_page(page, cs=cs, X=data.X, y=data.y, model=model, n_numeric=2)


def test_parts_of_the_tutorial_work():
    found = run_page("extending")
    truth, labels = found["problem"].labels, found["run"].solution.labels
    assert adjusted_rand_score(truth, labels) == 1.0
    # The loss: derivatives, the Fenchel-Young inequality with equality at the derivative, the fit.
    loss = found["LogCoshLoss"]()
    target, scores = np.array([[0.3], [-1.0], [2.0]]), np.array([[1.0], [-1.5], [2.0]])
    slope = loss.gradient(target, scores)
    for derivative, function in (
        (slope, lambda z: loss.value(target, z)[:, None]),
        (loss.hessian_product(target, scores, np.ones((3, 1))), lambda z: loss.gradient(target, z)),
    ):
        step = 1e-6
        difference = (function(scores + step) - function(scores - step)) / (2 * step)
        np.testing.assert_allclose(derivative, difference, atol=1e-8)
    young = loss.value(target, scores) + loss.conjugate(target, slope) - (slope * scores)[:, 0]
    np.testing.assert_allclose(young, 0.0, atol=1e-12)
    robust, point = found["robust"], found["point"]
    bound = robust.dual_bound(point, found["explained"])
    assert 0.0 < bound <= point.value
    assert adjusted_rand_score(truth, found["robust_run"].solution.labels) == 1.0
    # The constraint: its projection is idempotent and orthogonal, and the fit obeys it.
    W = np.random.default_rng(0).standard_normal((12, 1))
    nearest = found["Mirrored"]().project(W)
    again = found["Mirrored"]().project(nearest.point)
    np.testing.assert_allclose(again.point, nearest.point)
    explained = found["Mirrored"]().explained(W)
    np.testing.assert_allclose(explained, (W**2).sum() - nearest.sq_distance)
    weights = found["mirrored"].solution.point.W
    np.testing.assert_allclose(weights, weights[::-1])
    # The solver: its objective falls, and it ends by itself.
    moved = found["moved"]
    assert moved.converged
    assert (np.diff([step.objective for step in moved.trace]) < 0).all()
    assert moved.solution.point.value < moved.trace[0].objective


def test_pictures_are_small():
    sizes = [(DOCS / "pictures" / name).stat().st_size for name in PICTURES]
    assert sum(sizes) < 150_000
