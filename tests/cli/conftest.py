import json

import numpy as np
import pandas as pd
import pytest

from clustruct import cli
from clustruct.cli.reading.columnar import READERS


@pytest.fixture(autouse=True)
def quick_rivals(monkeypatch):
    """Rivals take longer than all else; the journeys and the tests of reports have all of them."""
    monkeypatch.setattr("clustruct.reporting.comparing.rivals.MOST_BOOSTED", 0)
    monkeypatch.setattr("clustruct.reporting.comparing.rivals.EXPONENTS", np.array([-1.0, -3.0]))


class _Uncaged:
    """The reader of files, in this process: it takes the place of a `Cage`."""

    def __init__(self, format_, name, files, max_size):
        self._reader = READERS[format_](name, [str(file) for file in files], max_size)

    def __getattr__(self, name):
        return getattr(self._reader, name)

    def close(self):
        pass


@pytest.fixture
def uncaged(monkeypatch):
    """Read Parquet and Arrow files in this process, which is quicker; others test the cage."""
    for module in ("stored", "tables"):
        monkeypatch.setattr(f"clustruct.cli.reading.{module}.Cage", _Uncaged)


@pytest.fixture
def clustruct(capsys):
    """A function that runs a command line here, and gives status, output and complaints."""

    def run(*args):
        try:
            status = cli.main([str(arg) for arg in args])
        except SystemExit as stop:
            status = stop.code
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run


@pytest.fixture
def answer_of(clustruct):
    """A function that runs a command line with --json, and gives the answer."""

    def run(*args):
        status, out, err = clustruct(*args, "--json")
        assert status == 0, err
        return json.loads(out)

    return run


@pytest.fixture
def complaint_of(clustruct):
    """A function that runs a command line which fails, and gives its one line of complaint."""

    def run(*args, status=1):
        found, out, err = clustruct(*args)
        assert found == status, (out, err)
        (line,) = [line for line in err.splitlines() if line.startswith("clustruct: error: ")]
        return line.removeprefix("clustruct: error: ")

    return run


@pytest.fixture(scope="session")
def flats():
    """A table with a column of every kind."""
    rng = np.random.default_rng(0)
    n = 60
    size, rooms = rng.uniform(20, 150, n).round(1), rng.integers(1, 6, n)
    area = rng.choice(["north", "south", "centre"], n)
    words = rng.choice(["bright", "quiet", "dark", "loud", "garden", "balcony"], (n, 5))
    frame = pd.DataFrame(
        {
            "size": size,
            "rooms": rooms,
            "area": area,
            "since": pd.date_range("2001-01-01", periods=n, freq="37D").strftime("%Y-%m-%d"),
            "advert": [f"number {i} " + " ".join(row) for i, row in enumerate(words)],
            "rent": 10 * size + 50 * (area == "centre") + rng.normal(0, 5, n).round(2),
        }
    )
    frame.loc[3, "size"] = np.nan
    frame.loc[[4, 5], "area"] = None
    return frame


@pytest.fixture
def flats_csv(flats, tmp_path):
    path = tmp_path / "flats.csv"
    flats.to_csv(path, index=False)
    return path


@pytest.fixture
def quick():
    """Options that leave nothing to be searched."""
    return ("--clusters", "4", "--alpha", "0.01", "--nonzero", "all")
