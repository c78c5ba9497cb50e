"""Real data is what it is known to be. Tests are skipped where the files are nowhere."""

import doctest
import re
import sys

import numpy as np
import pandas as pd
import pytest

import clustruct as cs

TABLES = ["fetch_tone", "fetch_cheese", "fetch_rent", "fetch_meatspec"]
TASKS = ["fetch_school", "fetch_landmine"]
FILES = {
    "fetch_movie_reviews": "scaledata.tar.xz",
    "fetch_school": "school.mat",
    "fetch_landmine": "LandmineData.mat",
    "fetch_tone": "tonedata.csv",
    "fetch_cheese": "cheese.csv",
    "fetch_rent": "rent.csv",
    "fetch_meatspec": "meatspec.csv",
}
TARGETS = {
    "fetch_school": "score",
    "fetch_landmine": "landmine",
    "fetch_tone": "tuned",
    "fetch_cheese": "log_volume",
    "fetch_rent": "rentm",
    "fetch_meatspec": "fat",
}


def test_school(fetch):
    school = fetch("fetch_school")
    assert school.data.shape == (15362, 28)
    assert school.target.shape == school.tasks.shape == (15362,)
    assert np.unique(school.tasks).tolist() == list(range(139))
    assert (np.ptp(school.data, axis=0) == 0).nonzero()[0].tolist() == [27]
    assert school.feature_names[27] == "constant"
    assert (school.target.min(), school.target.max()) == (1, 70)


@pytest.mark.parametrize(
    ("kind", "size", "without"),
    [
        ("year", 3, 0),
        ("gender", 2, 0),
        ("verbal_reasoning", 3, 15),
        ("ethnic_group", 11, 0),
        ("school_gender", 3, 0),
        ("school_denomination", 3, 0),
    ],
)
def test_school_names_are_at_the_right_columns(fetch, kind, size, without):
    school = fetch("fetch_school")
    pattern = re.compile(rf"{kind}_\d+")
    columns = [i for i, name in enumerate(school.feature_names) if pattern.fullmatch(name)]
    assert len(columns) == size
    indicators = school.data[:, columns]
    assert np.bincount(indicators.sum(axis=1).astype(int), minlength=2).tolist() == [
        without,
        15362 - without,
    ]
    if kind.startswith("school"):
        for task in range(139):
            assert (np.ptp(indicators[school.tasks == task], axis=0) == 0).all()


def test_landmine(fetch):
    landmine = fetch("fetch_landmine")
    assert landmine.data.shape == (14820, 9)
    assert np.unique(landmine.tasks).tolist() == list(range(29))
    assert np.bincount(landmine.target).tolist() == [13916, 904]


def test_tone(fetch):
    tone = fetch("fetch_tone")
    assert tone.data.shape == (150, 1)
    assert tone.feature_names == ["stretchratio"]
    assert (tone.data[0, 0], tone.target[0]) == (1.35, 1.461)


def test_cheese(fetch):
    cheese = fetch("fetch_cheese")
    assert cheese.data.shape == (5555, 2)
    assert cheese.retailer.shape == (5555,)
    assert len(set(cheese.retailer)) == 88
    assert cheese.retailer[0] == "LOS ANGELES - LUCKY"
    assert np.exp(cheese.target[0]) == pytest.approx(21374)
    np.testing.assert_allclose(cheese.data[0], [np.log(2.57846), 0.162])


def test_rent(fetch):
    rent = fetch("fetch_rent")
    assert rent.data.shape == (2053, 11)
    area = rent.data[:, rent.feature_names.index("area")]
    assert np.unique(area).tolist() == list(range(1, 26))
    assert not {"rent", "rentm"} & set(rent.feature_names)


def test_meatspec(fetch):
    meatspec = fetch("fetch_meatspec")
    assert meatspec.data.shape == (215, 100)
    assert meatspec.feature_names == [f"V{number}" for number in range(1, 101)]
    assert meatspec.target[0] == 22.5
    neighbours = np.corrcoef(meatspec.data.T)[range(99), range(1, 100)]
    assert neighbours.min() > 0.999


@pytest.mark.parametrize("name", TABLES + TASKS)
def test_form(fetch, name):
    bunch = fetch(name)
    assert bunch.data.dtype == np.float64
    assert np.isfinite(bunch.data).all()
    assert bunch.target.shape == bunch.data.shape[:1]
    assert len(bunch.feature_names) == bunch.data.shape[1]
    assert all(type(feature) is str for feature in bunch.feature_names)
    assert "Source:" in bunch.DESCR
    assert bunch.frame is None


@pytest.mark.parametrize("name", TABLES)
def test_return_x_y(fetch, name):
    bunch = fetch(name)
    X, y = fetch(name, return_X_y=True)
    np.testing.assert_array_equal(X, bunch.data)
    np.testing.assert_array_equal(y, bunch.target)
    frame, series = fetch(name, return_X_y=True, as_frame=True)
    assert list(frame.columns) == bunch.feature_names
    assert isinstance(series, pd.Series)


@pytest.mark.parametrize("name", TABLES + TASKS)
def test_as_frame(fetch, name):
    bunch, framed = fetch(name), fetch(name, as_frame=True)
    assert list(framed.data.columns) == bunch.feature_names
    assert framed.target.name == TARGETS[name]
    np.testing.assert_array_equal(framed.data.to_numpy(dtype=float), bunch.data)
    np.testing.assert_array_equal(framed.target, bunch.target)
    others = set(bunch) - {"data", "target", "feature_names", "DESCR", "frame"}
    for other in others:
        np.testing.assert_array_equal(framed[other], bunch[other])
    assert set(framed.frame.columns) == {*bunch.feature_names, TARGETS[name], *others}


def test_district_is_categorical(fetch):
    area = fetch("fetch_rent", as_frame=True).data["area"]
    assert list(area.cat.categories) == list(range(1, 26))


def test_as_frame_without_pandas(fetch, monkeypatch):
    fetch("fetch_tone")
    monkeypatch.setitem(sys.modules, "pandas", None)  # makes `import pandas` fail
    with pytest.raises(ImportError, match=r"as_frame=True needs pandas.*Install it"):
        cs.datasets.fetch_tone(as_frame=True)


@pytest.mark.parametrize("name", FILES)
def test_corrupted_file_is_refused(name, tmp_path):
    (tmp_path / FILES[name]).write_bytes(b"nothing of the sort")
    with pytest.raises(OSError, match="SHA-256") as caught:
        getattr(cs.datasets, name)(data_home=tmp_path)
    assert FILES[name] in str(caught.value)


@pytest.mark.parametrize("name", FILES)
def test_missing_file(name, tmp_path, monkeypatch):
    monkeypatch.setattr("urllib.request.urlopen", refuse)
    with pytest.raises(OSError) as caught:
        getattr(cs.datasets, name)(data_home=tmp_path)
    downloads = name in ("fetch_movie_reviews", "fetch_school")
    assert isinstance(caught.value, FileNotFoundError) != downloads
    assert "CLUSTRUCT_DATA" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def refuse(url, timeout):
    raise OSError(f"no network, and no {url}")


@pytest.mark.parametrize("name", FILES)
def test_examples_are_true(fetch, name):
    # The examples of the documentation are skipped there, as they need the files.
    fetch(name)
    loader = getattr(cs.datasets, name)
    source = loader.__doc__.replace("  # doctest: +SKIP", "")
    example = doctest.DocTestParser().get_doctest(source, {}, name, None, None)
    report = []
    doctest.DocTestRunner(verbose=False).run(example, out=report.append)
    assert not report, "".join(report)
