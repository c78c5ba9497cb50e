"""The built documentation in a browser, at the width of a laptop and of a phone.

`make docs` builds the site and runs these tests; the environment variable ``CLUSTRUCT_SITE`` names
the folder of the built pages. Without it they are skipped, as an older site would be in the way.
"""

import functools
import http.server
import os
import re
import threading
from pathlib import Path

import pytest

from tests.reporting.browsers import has_browser, open_browser

VARIABLE = "CLUSTRUCT_SITE"
SITE = Path(os.environ.get(VARIABLE, "."))
LAPTOP, PHONE = 1280, 390
DOCS = Path(__file__).parents[2] / "docs"
FOLDERS = ("tutorials", "auto_examples")
API = ("clustruct.FeatureClusterRegressor", "clustruct.kmeans_1d", "clustruct.plot.weights")
PAGES = sorted(
    [path.stem for path in DOCS.glob("*.md")]
    + [f"{name}/index" for name in FOLDERS]
    + [
        f"{name}/{path.stem}"
        for name, source in zip(FOLDERS, ("tutorials", "gallery"), strict=True)
        for path in (DOCS.parent / "examples" / source).glob("plot_*.py")
    ]
    + [f"generated/{name}" for name in API]
)
# What would be loaded from somewhere else; links that a reader may follow are fine.
ELSEWHERE = re.compile(
    r"""<(?:script|img|iframe|source|video|link)\b[^>]*\b(?:src|href)\s*=\s*["'](?:https?:)?//[^"']*"""
)

pytestmark = pytest.mark.skipif(
    VARIABLE not in os.environ, reason=f"{VARIABLE} does not name a built site; see make docs"
)


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server that prints nothing."""

    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def address():
    """The address of a server of the site on this machine."""
    handler = functools.partial(Quiet, directory=str(SITE))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser():
    """A browser, if there is one."""
    if not has_browser():
        pytest.skip("no chromium with chromedriver here; `make browser` installs them on Debian")
    with open_browser() as session:
        yield session


@pytest.fixture
def visit(browser, address):
    """A function that opens a page at a width."""

    def go(page, width=LAPTOP):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get_log("browser")  # what earlier pages have said
        browser.get(f"{address}/{page}")
        return browser

    return go


def wait_for(browser, script):
    """Wait until a script returns something."""
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(browser, 30).until(lambda session: session.execute_script(script))


def test_no_page_loads_anything_from_elsewhere():
    found = {
        (path.relative_to(SITE).as_posix(), match)
        for path in SITE.rglob("*.html")
        for match in ELSEWHERE.findall(path.read_text(encoding="utf-8"))
        if 'rel="canonical"' not in match
    }
    assert found == set()


@pytest.mark.parametrize("page", PAGES)
def test_page_fits_its_window(visit, address, page):
    browser = visit(f"{page}.html")
    clipped = browser.execute_script(
        "const kinds = 'h1, pre, div.math, .pst-scrollable-table-container';"
        "return [...document.querySelectorAll(kinds)]"
        ".filter(e => e.clientWidth && e.scrollWidth > e.clientWidth + 1)"
        ".map(e => e.textContent.trim().slice(0, 200))"
    )
    assert clipped == []
    for width in (LAPTOP, PHONE):
        visit(f"{page}.html", width)
        inside = browser.execute_script("return document.documentElement.scrollWidth")
        assert inside <= width, f"the page is {inside} pixels wide in a window of {width}"
    loaded = browser.execute_script(
        "return performance.getEntriesByType('resource').map(entry => entry.name)"
    )
    assert [name for name in loaded if not name.startswith((address, "data:"))] == []
    said = [line["message"] for line in browser.get_log("browser") if line["level"] == "SEVERE"]
    assert said == []


@pytest.mark.parametrize("page", ["index", "comparison", "tutorials/plot_1_categories"])
def test_pictures_are_there(visit, page):
    browser = visit(f"{page}.html")
    missing = browser.execute_script(
        "return [...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)"
    )
    assert missing == []


def test_landing_page_has_a_picture_an_install_line_cards_and_outputs(visit):
    browser = visit("index.html")
    count = "return document.querySelectorAll('article %s').length"
    assert browser.execute_script(count % "img") >= 2
    assert browser.execute_script(count % ".sd-card") == 3
    assert browser.execute_script(count % ".output pre") >= 3
    assert "pip install" in browser.find_element("css selector", "article").text


@pytest.mark.parametrize("page", ["getting_started", "features", "samples", "tasks", "trust"])
def test_outputs_stand_below_the_code(visit, page):
    browser = visit(f"{page}.html")
    script = "return [...document.querySelectorAll('.output pre')].map(e => e.textContent.trim())"
    shown = browser.execute_script(script)
    assert len(shown) >= 2
    assert all(shown)


def test_formulas_are_drawn_by_the_browser(visit):
    browser = visit("features.html")
    sizes = browser.execute_script(
        "return [...document.querySelectorAll('math')].map(e => e.getBoundingClientRect().height)"
    )
    assert len(sizes) > 20
    assert min(sizes) > 5
    fraction = "return document.querySelector('div.math mfrac').getBoundingClientRect().height"
    assert browser.execute_script(fraction) > 20  # two lines, and not one


@pytest.mark.parametrize(
    ("word", "page"), [("certificate", "certificates"), ("Titanic", "tutorials")]
)
def test_search_finds(visit, word, page):
    browser = visit(f"search.html?q={word}")
    links = "return [...document.querySelectorAll('#search-results li a')].map(a => a.href)"
    found = wait_for(browser, f"const l = (() => {{ {links} }})(); return l.length ? l : null")
    assert any(page in link for link in found)


def test_gallery_has_at_least_twelve_examples(visit):
    browser = visit("auto_examples/index.html")
    count = "return document.querySelectorAll('.sphx-glr-thumbcontainer').length"
    assert browser.execute_script(count) >= 12
