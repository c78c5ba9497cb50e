"""Tables that are read piece by piece: the models and answers of tables in memory."""

import gzip
import json
import sys

import numpy as np
import pandas as pd
import pytest

import clustruct as cs

pytest.importorskip("dask")
pytest.importorskip("pyarrow")
pytestmark = pytest.mark.usefixtures("uncaged")

N = 600


@pytest.fixture(scope="module")
def trips():
    """Numbers, categories and dates, with values missing in all of them."""
    rng = np.random.default_rng(0)
    numbers = {f"f{j}": rng.normal(3 * j, 1 + j, N) for j in range(6)}
    frame = pd.DataFrame(numbers)
    scaled = [(frame[f"f{j}"] - 3 * j) / (1 + j) for j in range(6)]
    frame["area"] = rng.choice(["north", "south", "centre"], N)
    frame["code"] = rng.integers(0, 3, N).astype(float)
    frame["since"] = pd.date_range("2001-01-01", periods=N, freq="h")
    frame["fare"] = sum(x * (1 if j % 2 else -2) for j, x in enumerate(scaled))
    frame["fare"] += 3.0 * (frame["area"] == "centre") + rng.normal(0, 0.3, N)
    frame["kind"] = np.where(frame["fare"] > 0, "dear", "cheap")
    frame.loc[::7, "f1"] = np.nan
    frame.loc[3:5, "area"] = None
    frame.loc[:50, "code"] = np.nan  # so that some pieces have whole numbers, others not
    frame.loc[10:12, "fare"] = np.nan
    frame["code"] = frame["code"].astype("Int64")
    return frame


@pytest.fixture
def folder(trips, tmp_path):
    path = tmp_path / "trips"
    path.mkdir()
    for number, first in enumerate(range(0, N, 200)):
        part = trips.iloc[first : first + 200]
        part.to_parquet(path / f"part{number}.parquet", row_group_size=70)
    (path / "_SUCCESS").write_text("")
    return path


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr("clustruct.cli.preparing.opening.PIECE_BYTES", 8 * 16 * 100)


TARGETS = {
    "numbers": ("--target", "fare", "--drop", "kind", "--clusters", "4,5"),
    "classes": ("--target", "kind", "--drop", "fare", "--clusters", "4", "--alpha", "0.01"),
    "weighted": ("--target", "fare", "--drop", "kind", "--weights", "f5", "--clusters", "4"),
    "robust": ("--target", "fare", "--drop", "kind", "--scale", "robust", "--clusters", "4"),
    "unscaled": ("--target", "fare", "--columns", "f0", "f2", "f4", "--scale", "none"),
    "raw": ("--target", "fare", "--columns", "f0", "f2", "--scale", "none", "--missing", "refuse"),
    "nonzero": ("--target", "fare", "--columns", "f0", "f2", "f3", "f4", "f5", "--nonzero", "3"),
}


@pytest.mark.parametrize("name", TARGETS)
def test_model_is_that_of_the_table_in_memory(
    name, clustruct, folder, trips, tmp_path, monkeypatch
):
    """Factors are for tables in memory: here, categories are columns of 0 and 1 in both."""
    monkeypatch.setattr(
        "clustruct.cli.preparing.problems.with_factors", lambda columns, *_: (columns, "")
    )
    options = [*TARGETS[name], "--category", "code"]
    if "--columns" in options:
        options = options[:-2]
    if name == "raw":
        for file in folder.glob("*.parquet"):
            pd.read_parquet(file).dropna(subset="fare").to_parquet(file, row_group_size=70)
    if name == "weighted":
        trips.assign(f5=trips["f5"].abs()).to_parquet(folder / "part0.parquet", row_group_size=70)
        for other in ("part1", "part2"):
            (folder / f"{other}.parquet").unlink()
    found = {}
    for way in ("no", "yes"):
        out = tmp_path / f"{way}.clustruct"
        args = ("fit", folder, *options, "--alpha", "0.01", "--out-of-core", way, "--out", out)
        status, text, err = clustruct(*args, "--json")
        assert status == 0, err
        assert ("is read out of core, piece by piece: as asked for" in err) == (way == "yes")
        assert "Warning" not in err
        found[way] = json.loads(text), cs.load(out)
    (here, whole), (there, pieces) = found["no"], found["yes"]
    assert there["out_of_core"]
    for key in ("rows", "target", "columns", "remarks"):
        assert there[key] == here[key]
    groups = [
        {frozenset(group["features"]) for group in found["model"]["groups"]}
        for found in (here, there)
    ]
    assert groups[0] == groups[1]
    np.testing.assert_allclose(pieces[-1].coef_, whole[-1].coef_, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(pieces[-1].intercept_, whole[-1].intercept_, rtol=1e-8)
    assert pieces.feature_names_in_.tolist() == whole.feature_names_in_.tolist()
    mine, theirs = (list(f["held_out"]["scores"][-1].values()) for f in (there, here))
    assert mine[:2] == theirs[:2]  # the name of the model, and that it is ours
    assert mine[2:] == pytest.approx(theirs[2:], rel=1e-6)


@pytest.fixture
def model(clustruct, folder, quick, tmp_path):
    out = tmp_path / "trips.clustruct"
    args = ("--target", "fare", "--drop", "kind", "--category", "code", *quick, "--out", out)
    status, _, err = clustruct("fit", folder, *args, "--out-of-core", "yes")
    assert status == 0, err
    return out


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet", "arrow"])
def test_predictions_are_those_of_the_table_in_memory(
    ending, clustruct, model, folder, trips, tmp_path
):
    extra = trips.assign(area=trips["area"].where(trips.index < 500, "west"), more=1)
    for file in folder.glob("*.parquet"):
        file.unlink()
    extra.to_parquet(folder / "new.parquet", row_group_size=70)
    text, notes = {}, {}
    for way in ("no", "yes"):
        out = tmp_path / f"{way}.{ending}"
        status, _, err = clustruct("predict", model, folder, "--out", out, "--out-of-core", way)
        assert status == 0, err
        text[way] = out.read_bytes()
        notes[way] = [line for line in err.splitlines() if "out of core" not in line]
    assert notes["yes"] == notes["no"]
    assert any(
        "100 rows hold categories that were not in the fit, as 'west'" in n for n in notes["no"]
    )
    if ending in ("parquet", "arrow"):
        read = pd.read_parquet if ending == "parquet" else pd.read_feather
        pd.testing.assert_frame_equal(
            read(tmp_path / f"yes.{ending}"), read(tmp_path / f"no.{ending}"), rtol=1e-12
        )
    else:
        assert text["yes"].count(b"\n") == text["no"].count(b"\n")


def test_predictions_to_standard_output_have_one_header(clustruct, model, folder):
    status, out, err = clustruct("predict", model, folder, "--out-of-core", "yes")
    assert status == 0, err
    lines = out.splitlines()
    assert len(lines) == 1 + N
    assert lines.count("prediction") == 1


def test_scores_are_those_of_the_table_in_memory(answer_of, model, folder, trips, tmp_path):
    path = tmp_path / "full.parquet"
    trips.dropna(subset="fare").to_parquet(path, row_group_size=90)
    out = ("--out", tmp_path / "p.csv")
    found = [answer_of("predict", model, path, *out, "--out-of-core", w) for w in ("no", "yes")]
    assert found[0]["scores"]["R2"] == pytest.approx(found[1]["scores"]["R2"], rel=1e-10)
    assert found[1]["rows"] == N - 3


def test_what_does_not_fit_is_read_in_pieces_by_itself(
    clustruct, folder, quick, monkeypatch, tmp_path
):
    args = ("fit", folder, "--target", "fare", "--drop", "kind", "code", *quick)
    status, _, err = clustruct(*args)
    assert status == 0
    assert "out of core" not in err
    monkeypatch.setattr("clustruct.cli.preparing.opening.free_bytes", lambda: 1e5)
    status, _, err = clustruct(*args)
    assert status == 0, err
    assert "piece by piece: work on it takes about 0.000" in err
    assert "and 0.0001 GB are free" in err


def test_report_says_that_it_shows_some_rows(clustruct, folder, quick, monkeypatch, tmp_path):
    pytest.importorskip("jinja2")
    monkeypatch.setattr("clustruct.cli.preparing.training.MOST_ROWS", 200)
    page = tmp_path / "page.html"
    args = ("--target", "fare", "--drop", "kind", "code", *quick, "--report", page)
    status, out, err = clustruct("fit", folder, *args, "--out-of-core", "yes")
    assert status == 0, err
    assert (
        "On 120 rows held out; other models were fitted to 200 of 477 rows, drawn at random" in out
    )
    assert "320 of 597 rows, drawn at random" in page.read_text()


@pytest.mark.parametrize("use", [("--samples", "--clusters", "1:2"), ("--tasks", "kind")])
def test_samples_and_tasks_are_those_of_memory(use, clustruct, folder, tmp_path):
    table = ("fit", folder, "--target", "fare", "--columns", "f0", "f2", "f4", *use)
    weights = []
    for way in ("no", "yes"):
        out = tmp_path / f"{way}.clustruct"
        status, _, err = clustruct(*table, "--out-of-core", way, "--out", out)
        assert status == 0, err
        model = cs.load(out)[-1]
        weights.append(model.experts_ if "--samples" in use else model.coef_)
    np.testing.assert_allclose(*weights, rtol=1e-6, atol=1e-8)


def test_predictions_for_tasks_are_those_of_memory(
    clustruct, complaint_of, folder, trips, tmp_path
):
    out = tmp_path / "tasks.clustruct"
    columns = ("--target", "fare", "--columns", "f0", "f2", "--tasks", "kind")
    assert clustruct("fit", folder, *columns, "--clusters", "1,2", "--out", out)[0] == 0
    new = trips.assign(kind=trips["kind"].where(trips.index < 590, "free"))
    path = tmp_path / "new.parquet"
    new.to_parquet(path, row_group_size=70)
    answers, notes = [], []
    for way in ("no", "yes"):
        to = tmp_path / f"{way}.csv"
        status, _, err = clustruct("predict", out, path, "--out", to, "--out-of-core", way)
        assert status == 0, err
        answers.append(pd.read_csv(to)["prediction"])
        notes.append([line for line in err.splitlines() if "out of core" not in line])
    np.testing.assert_allclose(*answers, rtol=1e-12)
    assert notes[0] == notes[1]
    assert any("column 'kind': 1 tasks were not in the fit, as 'free'" in n for n in notes[0])
    new.assign(kind=new["kind"].where(new.index % 100 != 7)).to_parquet(path, row_group_size=70)
    found = [complaint_of("predict", out, path, "--out-of-core", way) for way in ("no", "yes")]
    assert found[0] == found[1]
    assert "'kind': no value in 6 rows (8, 108, 208 and 3 more)" in found[0]


def test_all_missing_values_are_counted_before_anything_is_predicted(
    clustruct, complaint_of, folder, tmp_path
):
    out = tmp_path / "refuse.clustruct"
    args = ("--columns", "f0", "f2", "--missing", "refuse", "--clusters", "2", "--out", out)
    frame = pd.DataFrame({"f0": np.arange(N) % 7, "f2": np.arange(N) % 11.0, "y": np.arange(N)})
    path = tmp_path / "some.parquet"
    frame.to_parquet(path, row_group_size=70)
    assert clustruct("fit", path, "--target", "y", *args)[0] == 0
    frame["f2"] = frame["f2"].where(frame.index % 200 != 150)
    frame.to_parquet(path, row_group_size=70)
    found = [clustruct("predict", out, path, "--out-of-core", way) for way in ("no", "yes")]
    for status, printed, err in found:
        assert status == 1
        assert not printed
        assert "'f2': no value in 3 rows (151, 351, 551)" in err


def test_mistakes_are_told(clustruct, complaint_of, folder, tmp_path, trips, model):
    yes = ("--out-of-core", "yes")
    complaint = complaint_of("fit", folder, "--target", "fares", *yes)
    assert "has no column 'fares' (--target). Did you mean 'fare' or" in complaint
    refused = ("--target", "fare", "--missing", "refuse", *yes)
    assert "'fare': no value in 3 rows (11, 12, 13)" in complaint_of("fit", folder, *refused)
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "is a folder without Parquet files" in complaint_of("fit", empty, "--target", "y")
    svm = tmp_path / "words.svm"
    svm.write_text("1 1:2\n2 1:1 3:4\n" * 20)
    status, _, err = clustruct("fit", svm, *yes)
    assert status == 2
    assert "words.svm is libsvm. Leave the option out" in err
    trips.drop(columns="f1").to_parquet(folder / "part3.parquet")
    complaint = complaint_of("fit", folder, "--target", "fare", *yes)
    assert "part3.parquet has no column 'f1', which" in complaint
    (folder / "part3.parquet").write_bytes(b"PAR1 this is no table PAR1")
    for way in ("yes", "no"):
        complaint = complaint_of("fit", folder, "--target", "fare", "--out-of-core", way)
        assert "part3.parquet cannot be read as Parquet" in complaint
        complaint = complaint_of("predict", model, folder, "--out-of-core", way)
        assert "part3.parquet cannot be read as Parquet" in complaint


def test_a_file_damaged_inside_is_named_and_nothing_is_written(
    complaint_of, folder, model, tmp_path
):
    file = folder / "part1.parquet"
    content = bytearray(file.read_bytes())
    content[200:2500] = b"\xff" * 2300
    file.write_bytes(bytes(content))
    out = tmp_path / "predictions.csv"
    args = ("--out-of-core", "yes", "--out", out)
    assert "part1.parquet cannot be read" in complaint_of("predict", model, folder, *args)
    assert not out.exists()
    assert list(tmp_path.glob("predictions*")) == []


@pytest.fixture
def arrays(trips, tmp_path):
    """A matrix, and what to predict from it, in files of NumPy."""
    frame = trips.dropna(subset="fare")
    X, y = tmp_path / "X.npy", tmp_path / "fare.npy"
    np.save(X, frame[[f"f{j}" for j in range(6)]].to_numpy())
    np.save(y, frame["fare"].to_numpy())
    return X, y


@pytest.mark.parametrize("target", ["file", "number"])
def test_arrays_in_files(target, clustruct, arrays, tmp_path, monkeypatch):
    monkeypatch.setattr("clustruct.cli.reading.stored.PART_BYTES", 8 * 6 * 100)
    monkeypatch.setattr(
        "clustruct.cli.reading.stored.SLAB_BYTES", 8 * 2 * N
    )  # a few columns at a time
    X, y = arrays
    what = y if target == "file" else 3
    models = {}
    for way in ("no", "yes"):
        out = tmp_path / f"{way}.clustruct"
        args = ("--target", what, "--clusters", "2", "--out-of-core", way, "--out", out)
        status, _, err = clustruct("fit", X, *args)
        assert status == 0, err
        models[way] = cs.load(out)
    np.testing.assert_allclose(
        models["yes"][-1].coef_, models["no"][-1].coef_, rtol=1e-8, atol=1e-8
    )
    assert models["yes"].feature_names_in_[0] == "x0"
    answers = {}
    for way in ("no", "yes"):
        path = tmp_path / f"{way}.csv"
        args = ("predict", tmp_path / "yes.clustruct", X, "--out", path, "--out-of-core", way)
        assert clustruct(*args)[0] == 0
        answers[way] = pd.read_csv(path)["prediction"]
    np.testing.assert_allclose(answers["yes"], answers["no"], rtol=1e-10)
    assert len(answers["yes"]) == N - 3


def test_mistakes_in_arrays_are_told(complaint_of, arrays, tmp_path):
    X, y = arrays
    assert "has an array of shape (597,)" in complaint_of("fit", y, "--target", "0")
    assert "has no column 'x9' (--target)" in complaint_of("fit", X, "--target", "9")
    assert "nothere.npy does not exist" in complaint_of("fit", X, "--target", "nothere.npy")
    short = tmp_path / "short.npy"
    np.save(short, np.zeros(5))
    complaint = complaint_of("fit", X, "--target", short)
    assert f"shape (5,), and {X} has 597 rows" in complaint
    X.write_bytes(X.read_bytes()[:1000])
    assert "X.npy cannot be read as NumPy's" in complaint_of("fit", X, "--target", y)


def test_a_file_that_is_packed_or_no_table_is_left_to_those_who_know(
    clustruct, complaint_of, trips, quick, tmp_path
):
    packed = tmp_path / "trips.parquet.gz"
    plain = tmp_path / "trips.parquet"
    trips.to_parquet(plain)
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    args = ("--target", "fare", "--columns", "f0", "f2", *quick[2:], "--clusters", "2")
    assert clustruct("fit", packed, *args)[0] == 0
    plain.write_text("a,b\n1,2\n")
    assert "is no Parquet file" in complaint_of("fit", plain, *args)


def test_missing_dask_is_told(complaint_of, folder, monkeypatch):
    monkeypatch.setattr(
        "clustruct.cli.preparing.opening.find_spec", lambda name: None if name == "dask" else sys
    )
    complaint = complaint_of("fit", folder, "--target", "fare", "--out-of-core", "yes")
    assert "pip install 'clustruct[dask]'" in complaint
