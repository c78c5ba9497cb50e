"""Sphinx configuration. The build needs no network and treats warnings as errors (make docs)."""

import subprocess
import sys
from pathlib import Path

import clustruct as cs

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "extensions"))

project = "clustruct"
author = "the clustruct developers"
copyright = f"2026, {author}"
version = release = cs.__version__

extensions = [
    "mathml",
    "myst_parser",
    "numpydoc",
    "outputs",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
html_math_renderer = "mathml"
# Tables that are not part of the package: the page shows the outputs of a run.
outputs_not_run = ["tariffs"]
exclude_patterns = [
    "_build",
    "generated/compared",
    "generated/extra",
    "reproduction/notes",
    "sg_execution_times.rst",  # of earlier builds
]

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc sections say it better
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": ["../examples/tutorials", "../examples/gallery"],
    "gallery_dirs": ["tutorials", "auto_examples"],
    "filename_pattern": r"/",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "capture_repr": ("_repr_html_", "__repr__"),
    "ignore_repr_types": r"Display|matplotlib",  # their figures show
    "write_computation_times": False,
}

html_theme = "pydata_sphinx_theme"
html_title = f"clustruct {version}"
html_theme_options = {
    "logo": {"text": "clustruct"},
    "show_prev_next": False,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {page: [] for page in ("index", "getting_started", "comparison")}  # no pages below
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["pages.css"]


def write_generated_files() -> None:
    """What pages quote: the figures of the benchmarks, and a report to look at."""
    folder = HERE / "generated"
    (folder / "extra").mkdir(parents=True, exist_ok=True)
    show = [sys.executable, str(HERE.parent / "benchmarks" / "run.py"), "--show"]
    figures = subprocess.run(show, stdout=subprocess.PIPE, text=True, check=True).stdout
    (folder / "benchmarks.txt").write_text(figures.strip() + "\n", encoding="utf-8")
    compare = [sys.executable, str(HERE.parent / "benchmarks" / "compare.py")]
    subprocess.run([*compare, str(folder / "compared")], check=True)
    problem = cs.datasets.make_clustered_features(300, 60, 5, noise=4.0, random_state=0)
    model = cs.FeatureClusterRegressorCV(range(2, 9), alphas=(1e-1, 1e-2), cv=3, random_state=0)
    model.fit(problem.X, problem.y)
    cs.report(model, problem.X, problem.y, folder / "extra" / "report.html")


write_generated_files()
