"""The report in a real browser: it draws, searches and sorts, and runs nothing from the data."""

import pytest

import clustruct as cs
from tests.reporting.conftest import EVIL

LAPTOP, PHONE = (1280, 900), (390, 844)
# Pictures in the report of each model; that of tasks took one step, which makes no curve.
PICTURES = {"features": 3, "samples": 3, "tasks": 2, "tariff": 8}


@pytest.fixture(scope="module")
def pages(tmp_path_factory, features, samples, tasks, tariff):
    folder = tmp_path_factory.mktemp("pages")
    model, X, y, offset = tariff
    held_out = {"X_test": X[:99], "y_test": y[:99], "offset_test": offset[:99]}
    return {
        "features": cs.report(*features, folder / "features.html", title=f"Title {EVIL}"),
        "samples": cs.report(*samples, folder / "samples.html"),
        "tasks": cs.report(*tasks, folder / "tasks.html"),
        "tariff": cs.report(model, X, y, folder / "tariff.html", offset=offset, **held_out),
    }


@pytest.fixture
def visit(browser, pages):
    """A function that opens a report in a window of some size, light or dark."""

    def go(name, size=LAPTOP, scheme="light"):
        width, height = size
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
        )
        browser.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
        )
        browser.get_log("browser")  # what earlier pages have said
        browser.get(pages[name].as_uri())
        return browser

    return go


def find(browser, selector):
    return browser.find_elements("css selector", selector)


def press(browser, selector):
    """Click in the middle of the window, where nothing lies above what is clicked."""
    element = find(browser, selector)[0]
    browser.execute_script(
        "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element
    )
    element.click()


def texts(browser, selector):
    return [element.text for element in find(browser, selector)]


@pytest.mark.parametrize("name", PICTURES)
@pytest.mark.parametrize("size", [LAPTOP, PHONE])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_draws_without_complaint_on_any_screen(visit, name, size, scheme, tmp_path):
    browser = visit(name, size, scheme)
    assert browser.get_log("browser") == []
    assert len(find(browser, "figure svg")) >= PICTURES[name]
    heights = [figure.size["height"] for figure in find(browser, "figure svg")]
    assert min(heights) > 50
    wide = browser.execute_script("return document.documentElement.scrollWidth")
    assert wide <= size[0], "the page can be scrolled sideways"
    paper = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(246, 247, 249)" if scheme == "light" else "rgb(17, 21, 28)")
    picture = tmp_path / "page.png"
    assert browser.save_screenshot(str(picture))
    assert picture.stat().st_size > 10_000


def test_asks_nothing_of_the_network(visit):
    browser = visit("features")
    names = browser.execute_script(
        "return performance.getEntriesByType('resource').map((entry) => entry.name)"
    )
    assert [name for name in names if not name.startswith("data:")] == []


def test_names_from_the_data_are_text(visit):
    browser = visit("features")
    assert browser.title == f"Title {EVIL}"
    assert texts(browser, ".about") == [f"Title {EVIL}"]
    assert EVIL in texts(browser, ".chip") or EVIL in texts(browser, "#member-table td")
    assert find(browser, "img") == []
    search = find(browser, "#search")[0]
    search.send_keys("alert(1)")
    assert texts(browser, "#member-table tbody td:first-child") == [EVIL]


def test_search_finds_and_forgets(visit):
    browser = visit("features")
    search = find(browser, "#search")[0]
    assert texts(browser, "#found") == ["40 found"]
    search.send_keys("FEATURE 39")
    assert texts(browser, "#member-table tbody td:first-child") == ["feature 39"]
    search.clear()
    search.send_keys("no such thing")
    assert texts(browser, "#found") == ["0 found"]
    assert texts(browser, "#page") == ["page 1 of 1"]


def test_members_sort_by_any_column_both_ways(visit, features):
    browser = visit("features")
    weights = sorted(features[0].coef_)

    def shown():
        return [
            float(text.replace(",", "")) for text in texts(browser, "#member-table td:nth-child(3)")
        ]

    press(browser, "#member-table th:nth-child(3) button")
    assert shown() == pytest.approx(weights[:15], rel=1e-3)
    press(browser, "#member-table th:nth-child(3) button")
    assert shown() == pytest.approx(weights[::-1][:15], rel=1e-3)
    press(browser, "#member-table th:nth-child(1) button")
    names = texts(browser, "#member-table td:nth-child(1)")
    assert names[-3:] == ["feature 12", "feature 13", "feature 14"]


def test_groups_sort(visit, features):
    browser = visit("features")
    press(browser, "#group-table th:nth-child(3) button")
    sizes = [int(text) for text in texts(browser, "#group-table td:nth-child(3)")]
    assert sizes == sorted(features[0].cluster_sizes_)


def test_pages_turn(visit):
    browser = visit("features")
    first = texts(browser, "#member-table tbody tr")
    press(browser, "#next")
    assert texts(browser, "#page") == ["page 2 of 3"]
    assert not set(first) & set(texts(browser, "#member-table tbody tr"))
    press(browser, "#previous")
    assert texts(browser, "#member-table tbody tr") == first
    assert not find(browser, "#previous")[0].is_enabled()


def test_a_group_shows_all_its_members(visit, features):
    browser = visit("features")
    group = find(browser, "button.more")[0].get_attribute("data-group")
    press(browser, "button.more")
    size = features[0].cluster_sizes_[int(group)]
    assert texts(browser, "#found") == [f"{size} found"]
    assert set(texts(browser, "#member-table td:nth-child(2)")) == {group}
    press(browser, "#all")
    assert texts(browser, "#found") == ["40 found"]


def test_theme_can_be_turned(visit):
    browser = visit("samples")
    colours = []
    for _ in range(3):
        colours.append(
            browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        )
        press(browser, "#theme")
    assert colours[0] == colours[2] != colours[1]


def test_lines_can_be_copied(visit):
    WebDriverWait = pytest.importorskip("selenium.webdriver.support.ui").WebDriverWait
    browser = visit("samples")
    press(browser, "#copy")
    # The clipboard is written in the background, and the button tells of it for a moment only.
    WebDriverWait(browser, 20).until(lambda page: find(page, "#copy[data-copied]"))
    copied = find(browser, "#copy")[0].get_attribute("data-copied")
    assert copied.startswith("import clustruct as cs\n")
    assert browser.get_log("browser") == []
