"""Run the Python blocks of Markdown pages at the build, and show what they print.

The blocks marked ``python`` of a page run in order and in one namespace, as in a notebook. Below
each block stand its printed lines, the values of its expressions and its figures. A semicolon after
an expression hides its value. Blocks marked ``py`` do not run. Tests run pages by `run_page`.
"""

import ast
import contextlib
import io
import itertools
import os
import re
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from docutils import nodes
from matplotlib.figure import Figure
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

WIDTH = 88  # characters; what fits a page on a small screen without scrolling
BLOCK = re.compile(r"^```python\n(.*?)^```", flags=re.S | re.M)

logger = logging.getLogger(__name__)


class Session:
    """The namespace of one page, in which its blocks run one after the other."""

    def __init__(self, **given: Any) -> None:
        self.names: dict[str, Any] = {"__name__": "__main__", **given}
        self.folder = tempfile.mkdtemp()  # where the blocks write files
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)

    def run(self, code: str) -> tuple[str, list[Figure]]:
        """Run a block; return its text and the figures that it made."""
        plt.close("all")
        parts = []
        with contextlib.chdir(self.folder), _narrow():
            for statement in ast.parse(code).body:
                text = io.StringIO()
                with contextlib.redirect_stdout(text):
                    self._run(statement, code)
                parts.append(text.getvalue().rstrip())
        return _joined(parts), [plt.figure(number) for number in plt.get_fignums()]

    def _run(self, statement: ast.stmt, code: str) -> None:
        if isinstance(statement, ast.Expr):
            value = eval(compile(ast.Expression(statement.value), "page", "eval"), self.names)
            rest = code.splitlines()[statement.end_lineno - 1][statement.end_col_offset :]
            if not rest.lstrip().startswith(";"):
                _show(value)
        else:
            exec(compile(ast.Module([statement], []), "page", "exec"), self.names)


def run_page(path: Path, **given: Any) -> dict[str, Any]:
    """Run all blocks of a page; return its namespace."""
    session = Session(**given)
    for code in BLOCK.findall(path.read_text(encoding="utf-8")):
        session.run(code)
    return session.names


@contextlib.contextmanager
def _narrow() -> Any:
    """Print arrays and tables briefly, and no wider than a page."""
    pandas = ("display.width", WIDTH, "display.max_columns", 12, "display.max_rows", 12)
    arrays = {"precision": 4, "threshold": 24, "edgeitems": 3, "linewidth": WIDTH, "suppress": True}
    with np.printoptions(**arrays), pd.option_context(*pandas):
        yield


def _show(value: Any) -> None:
    """Print a value, except for what says nothing: models, paths, and plots, whose figures show."""
    silent = value is None or isinstance(value, Path) or hasattr(value, "fit")
    if not silent and not type(value).__name__.endswith("Display"):
        print(repr(value))


def _joined(parts: list[str]) -> str:
    """The outputs of a block, with an empty line beside those of several lines."""
    parts = [part for part in parts if part]
    text = "".join(parts[:1])
    for before, part in itertools.pairwise(parts):
        text += ("\n\n" if "\n" in before + part else "\n") + part
    return text


class ShowOutputs(SphinxTransform):
    """Put the outputs of the Python blocks of a page below them."""

    default_priority = 100

    def apply(self, **kwargs: Any) -> None:
        """Run the blocks in the order in which they stand."""
        page = self.env.docname
        if (
            not os.fspath(self.env.doc2path(page)).endswith(".md")
            or page in self.config.outputs_not_run
        ):
            return
        session = Session()
        for number, block in enumerate(list(self.document.findall(_is_python))):
            try:
                text, figures = session.run(block.astext())
            except Exception as error:
                message = f"a block fails: {type(error).__name__}: {error}\n{block.astext()}"
                logger.warning(message, location=block)
                return
            shown: list[nodes.Node] = []
            if text:
                shown.append(nodes.literal_block(text, text, language="none", classes=["output"]))
            for index, figure in enumerate(figures):
                shown.append(self._picture(figure, f"{page}-{number}-{index}"))
            block.parent[block.parent.index(block) + 1 : block.parent.index(block) + 1] = shown

    def _picture(self, figure: Figure, name: str) -> nodes.image:
        """The figure as a picture, which is written to ``generated/outputs``."""
        path = Path(self.env.srcdir) / "generated" / "outputs" / f"{name.replace('/', '-')}.svg"
        path.parent.mkdir(parents=True, exist_ok=True)
        with mpl.rc_context({"svg.hashsalt": name}):
            figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")
        plt.close(figure)
        uri = "/" + os.path.relpath(path, self.env.srcdir)
        return nodes.image(uri=uri, alt="The plot that the code above makes", classes=["output"])


def _is_python(node: nodes.Node) -> bool:
    return isinstance(node, nodes.literal_block) and node.get("language") == "python"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    mpl.use("agg")
    app.add_config_value("outputs_not_run", [], "env")
    app.add_transform(ShowOutputs)
    # Forked processes would wait forever for the threads that linear algebra had before the fork.
    return {"parallel_read_safe": False, "parallel_write_safe": True}
