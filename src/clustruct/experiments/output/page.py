"""One self-contained HTML page for all experiments."""

import base64
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from clustruct import __version__
from clustruct.experiments.output.files import Section

__all__ = ["render_page"]


def render_page(sections: Sequence[Section], missing: Mapping[str, str]) -> str:
    """The HTML page; `missing` gives the reason for each experiment that could not run."""
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError:
        raise ImportError(
            "The page needs Jinja2: `pip install clustruct[experiments]` installs it."
        ) from None
    source = files("clustruct.experiments") / "templates" / "page.html"
    engine = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    template = engine.from_string(source.read_text(encoding="utf-8"))
    return template.render(
        sections=sections, missing=missing, version=__version__, data_url=_data_url, prose=_prose
    )


def _prose(text: str) -> Any:
    """Escaped text, with names between backticks set as code."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`]*)`", r"<code>\1</code>", str(escape(text))))


def _data_url(svg: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
