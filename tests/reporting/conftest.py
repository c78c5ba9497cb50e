"""Models to report on, and a browser to look with."""

import json

import numpy as np
import pytest

import clustruct as cs
from tests.reporting.browsers import has_browser, open_browser

EVIL = "<script>alert(1)</script>"
ENDING = "</script><img src=x onerror=alert(2)>"
N_POLICIES = 600


@pytest.fixture(scope="session")
def features():
    """A model whose features have hostile names: model, frame, targets."""
    pandas = pytest.importorskip("pandas")
    problem = cs.datasets.make_clustered_features(160, 40, 3, noise=0.5, random_state=0)
    names = [EVIL, ENDING, *(f"feature {j}" for j in range(2, 40))]
    X = pandas.DataFrame(problem.X, columns=names)
    model = cs.FeatureClusterRegressorCV((2, 3, 4), alphas=(1e-2, 1e-3), cv=3, random_state=0)
    return model.fit(X, problem.y), X, problem.y


@pytest.fixture(scope="session")
def samples():
    """Three experts."""
    problem = cs.datasets.make_experts(400, 4, 3, random_state=0)
    model = cs.SampleClusterRegressorCV((2, 3, 4), random_state=0)
    return model.fit(problem.X, problem.y), problem.X, problem.y


@pytest.fixture(scope="session")
def tasks():
    """Tasks in columns."""
    X, Y = cs.datasets.make_clustered_tasks(n_tasks=12, n_clusters=2, random_state=0).columns()
    return cs.TaskClusterRegressor(2).fit(X, Y), X, Y


@pytest.fixture(scope="session")
def tariff():
    """A model of claims: frame with hostile levels, missing values and many postcodes."""
    pandas = pytest.importorskip("pandas")
    rng, n = np.random.default_rng(0), N_POLICIES
    names = [EVIL, ENDING, "\"quoted\" & 'single'", "x" * 300, "日本語", ""]
    fuel, age, place = rng.integers(0, 6, n), rng.integers(18, 60, n), rng.integers(0, 150, n)
    X = pandas.DataFrame(
        {
            "<b>fuel</b>": [names[q] for q in fuel],
            "age": np.where(rng.random(n) < 0.1, np.nan, age),
            "hour": rng.integers(0, 24, n),
            "postcode": [f"p{q:03d}" for q in place],
            "noise": rng.choice(["a", "b"], n),
            "same": "one",
            "km": rng.gamma(2.0, 0.5, n),
        }
    )
    offset = np.log(rng.uniform(0.5, 2.0, n))
    score = np.where(fuel < 3, 0.8, -0.8) + 0.8 * (age < 30) + 0.6 * (place < 50)
    y = rng.poisson(np.exp(score + offset)) * 1.0
    asked = {"age": cs.Factor("decreasing"), "hour": "cyclic"}
    model = cs.FeatureClusterRegressor(price=0.01, alpha=1e-3, loss="poisson", factors=asked)
    return model.fit(X, y, offset=offset), X, y, offset


@pytest.fixture(scope="session")
def read(tmp_path_factory):
    """A function that writes a report and returns its text."""

    def write(model, X, y, **options):
        path = tmp_path_factory.mktemp("report") / "report.html"
        assert cs.report(model, X, y, path, **options) == path
        return path.read_text(encoding="utf-8")

    return write


def embedded(text):
    """The rows that the page draws its table of members from."""
    begin = text.index('id="member-data">') + len('id="member-data">')
    return json.loads(text[begin : text.index("</script>", begin)])


@pytest.fixture(scope="session")
def browser():
    """A browser without a window, or a reason to skip."""
    pytest.importorskip("selenium.webdriver")
    if not has_browser():
        pytest.skip("no chromium with chromedriver here; `make browser` installs them on Debian")
    with open_browser() as session:
        yield session


@pytest.fixture
def rng():
    """Random numbers."""
    return np.random.default_rng(0)
