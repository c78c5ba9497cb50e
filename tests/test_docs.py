"""The documentation names every public name, and its code runs as it stands."""

import re
from pathlib import Path

import pytest

from tests.test_docstrings import NAMES

DOCS = Path(__file__).parent.parent / "docs"
PAGES = ("index", "getting_started", "features", "samples", "choosing", "certificates")
MORE_PAGES = ("algorithms", "coming_from", "plots_and_report")
PICTURES = ("weights.svg", "experts.svg", "report.png")


def listed_names():
    """What the pages of public names list for autosummary."""
    text = (DOCS / "api.md").read_text(encoding="utf-8")
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


@pytest.mark.parametrize("page", [*PAGES, *MORE_PAGES])
def test_code_runs(page, tmp_path, monkeypatch):
    """All blocks of a page in order, in one namespace, with data that a page takes for given."""
    import matplotlib as mpl

    import clustruct as cs

    mpl.use("agg")
    monkeypatch.chdir(tmp_path)
    given = cs.datasets.make_experts(200, 4, 3, random_state=0)
    namespace = {"cs": cs, "X": given.X, "y": given.y, "n_numeric": 2}
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.S):
        exec(block, namespace)


def test_pictures_are_small():
    sizes = [(DOCS / "pictures" / name).stat().st_size for name in PICTURES]
    assert sum(sizes) < 150_000
