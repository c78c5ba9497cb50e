"""Reports on models with hostile names, opened in a browser.

No script from a name runs, not even when the mouse passes or a field gets the focus, nothing is
loaded from anywhere, and the browser has no complaint.
"""

import os
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import clustruct as cs
from fuzz.cases import Fault, Random, Recipe, Target
from fuzz.scratch import at_end, folder
from fuzz.shrinking import without_parts
from tests.reporting.browsers import has_browser, open_browser

HIT = "window.hit=1"
# Parts of names; each would set `window.hit`, load something, or end what it stands in.
PIECES = (
    f"<script>{HIT}</script>", f"</script><script>{HIT}</script>", f"<img src=x onerror={HIT}>",
    f"<svg onload={HIT}>", f'" onmouseover="{HIT}" x="', f"' onfocus='{HIT}' autofocus x='",
    f"javascript:{HIT}", f"</title><script>{HIT}</script>", f"</style><script>{HIT}</script>",
    f"--><script>{HIT}</script>", f"]]><script>{HIT}</script>", f"`-({HIT})-`", f"';{HIT};'",
    f'";{HIT};"', f"\\u003cscript\\u003e{HIT}\\u003c/script\\u003e", f"&lt;script&gt;{HIT}",
    "{{7*7}}", "{% raw %}", "${7*7}", "<!--", "-->", "</textarea>", "</svg>", "<b>", "&amp;",
    "<link rel=stylesheet href=http://localhost:1/x.css>", "<base href=http://localhost:1/>",
    "<iframe src=http://localhost:1/></iframe>", "url(http://localhost:1/x.png)",
    "<image href=http://localhost:1/x.png />", "\u2028", "\u202e", "\ufeff", "\x1b[2J", "\x08",
    "__proto__", "constructor", "toString", "é", "日本語", "x" * 400, "a b", "", "0", "-1", "nan",
)  # fmt: skip
N_ROWS = 60


@cache
def _browser() -> Any:
    """A browser, which ends with the process that asked first; None where there is none."""
    if not has_browser():
        return None
    stack = ExitStack()
    session = stack.enter_context(open_browser())
    at_end(stack.close)
    return session


def _prepare() -> None:
    _browser()


def _draw(rng: Random) -> Recipe:
    def name() -> str:
        return "".join(str(rng.choice(PIECES)) for _ in range(int(rng.integers(1, 4))))

    return {
        "model": str(rng.choice(["features", "factors", "experts", "tasks", "classes"])),
        "seed": int(rng.integers(1000)),
        "columns": [name() for _ in range(5)],
        "levels": [name() for _ in range(3)],
        "title": name(),
    }


def _check(recipe: Recipe) -> str:
    path = Path(folder()) / f"{os.getpid()}.html"
    try:
        _write(recipe, path)
    except ValueError:
        return "refused"
    browser = _browser()
    if browser is None:
        return "no browser"
    browser.get_log("browser")
    browser.get(path.as_uri())
    told = browser.execute_script(
        """
        for (const element of document.querySelectorAll("*"))
            for (const kind of ["mouseover", "focus", "click"])
                if (kind != "click" || element.tagName != "A")
                    element.dispatchEvent(new Event(kind));
        const outside = [...document.querySelectorAll("[src], [href], [action], [data]")].map(
            (e) => e.getAttribute("src") || e.getAttribute("href") || e.getAttribute("action") || ""
        ).filter((a) => !a.startsWith("#") && !a.startsWith("data:") && a != "");
        const loaded = performance.getEntriesByType("resource").map((e) => e.name)
            .filter((a) => !a.startsWith("data:"));
        return [window.hit === undefined, outside, loaded];
        """
    )
    if not told[0]:
        raise Fault("a script from a name has run")
    if told[1] or told[2]:
        raise Fault("the page has links to elsewhere", f"{told[1:]}")
    complaints = browser.get_log("browser")
    if complaints:
        raise Fault("the browser complains", f"{complaints}")
    return recipe["model"]


def _write(recipe: Recipe, path: Path) -> None:
    """Fit a small model to data with these names, and write its report."""
    import pandas as pd

    rng = np.random.default_rng(recipe["seed"])
    X = rng.standard_normal((N_ROWS, 5))
    y = X[:, 0] + X[:, 1] - X[:, 2] + 0.1 * rng.standard_normal(N_ROWS)
    columns = list(dict.fromkeys(recipe["columns"]))
    frame = pd.DataFrame(X[:, : len(columns)], columns=columns)
    levels = np.array(recipe["levels"], dtype=object)[
        rng.integers(0, len(recipe["levels"]), N_ROWS)
    ]
    kind, model = recipe["model"], cs.FeatureClusterRegressor(2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == "factors":
            frame[columns[0]] = levels
            model = cs.FeatureClusterRegressor(3, factors={columns[0]: "nominal"})
        elif kind == "experts":
            model = cs.SampleClusterRegressor(2, n_init=1, random_state=0)
        elif kind == "classes":
            y = levels
            model = cs.FeatureClusterClassifier(2, random_state=0)
        if kind == "tasks":
            fitted = cs.TaskClusterRegressor(2, random_state=0).fit(frame, y, tasks=levels)
            cs.report(fitted, frame, y, path, tasks=levels, title=recipe["title"])
            return
        cs.report(model.fit(frame, y), frame, y, path, title=recipe["title"])


def _smaller(recipe: Recipe) -> Iterator[Recipe]:
    for name in ("columns", "levels"):
        least = 3 if name == "columns" else 1
        yield from ({**recipe, name: some} for some in without_parts(recipe[name], least=least))
        for i, value in enumerate(recipe[name]):
            if len(value) > 2:
                yield {**recipe, name: [*recipe[name][:i], f"x{i}", *recipe[name][i + 1 :]]}
    if recipe["title"]:
        yield {**recipe, "title": ""}


TARGET = Target(
    "reports", _draw, _check, _smaller, share=0.02, short=2, prepare=_prepare, most_jobs=1
)
