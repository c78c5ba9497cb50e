"""``clustruct predict``, ``report`` and ``data``."""

import json
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer

import clustruct as cs
from tests.persistence.test_refused import rebuilt


@pytest.fixture
def model(clustruct, flats_csv, quick, tmp_path):
    out = tmp_path / "model.clustruct"
    args = (
        "fit",
        flats_csv,
        "--target",
        "rent",
        "--drop",
        "advert",
        *quick,
        "--out",
        out,
        "--json",
    )
    status, _, err = clustruct(*args)
    assert status == 0, err
    return out


def test_predictions_go_to_standard_output(clustruct, model, flats, tmp_path):
    flats.drop(columns=["rent", "advert"]).to_csv(tmp_path / "new.csv", index=False)
    status, out, err = clustruct("predict", model, tmp_path / "new.csv")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "prediction"
    assert len(lines) == 61
    assert float(lines[1]) > 0


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet", "arrow"])
def test_predictions_go_to_files(clustruct, model, flats_csv, tmp_path, ending):
    out = tmp_path / f"predictions.{ending}"
    status, text, err = clustruct("predict", model, flats_csv, "--out", out)
    assert status == 0, err
    assert "60 rows" in text
    assert out.exists()
    assert "has the targets, too: R2" in err
    assert "1 columns that the model does not know are ignored: 'advert'" in err


def test_missing_columns_are_named(complaint_of, model, flats, tmp_path):
    path = tmp_path / "new.csv"
    flats.rename(columns={"size": "Size m2"}).drop(columns="since").to_csv(path, index=False)
    complaint = complaint_of("predict", model, path)
    assert f"{path} has no column 'size', 'since', which {model} needs" in complaint
    assert "Did you mean 'Size m2'?" in complaint


def test_new_categories_are_counted(clustruct, model, flats, tmp_path):
    path = tmp_path / "new.csv"
    flats.assign(area=["west", *flats["area"][1:]]).to_csv(path, index=False)
    status, _, err = clustruct("predict", model, path)
    assert status == 0
    assert (
        f"{path}, column 'area': 1 rows hold categories that were not in the fit, as 'west'" in err
    )


def test_text_in_a_number_is_named(complaint_of, model, flats, tmp_path):
    path = tmp_path / "new.csv"
    flats.assign(rooms=["two", *flats["rooms"][1:]]).to_csv(path, index=False)
    complaint = complaint_of("predict", model, path)
    assert f"{path}, column 'rooms'" in complaint
    assert "'two' in row 1" in complaint


def test_categories_that_look_like_numbers_stay_categories(clustruct, answer_of, tmp_path, quick):
    frame = pd.DataFrame({"code": ["1", "2", "x"] * 20, "a": range(60)})
    frame["y"] = (frame["code"] == "1") * 100.0 + frame["a"]
    frame.to_csv(tmp_path / "t.csv", index=False)
    answer_of("fit", tmp_path / "t.csv", "--target", "y", *quick, "--out", tmp_path / "m")
    frame[frame["code"] != "x"].to_csv(tmp_path / "new.csv", index=False)
    status, _, err = clustruct("predict", tmp_path / "m", tmp_path / "new.csv")
    assert status == 0
    assert "not in the fit" not in err


def test_missing_values_are_refused_where_the_fit_did(
    complaint_of, flats, tmp_path, quick, answer_of
):
    frame = flats[["size", "rooms", "rent"]].dropna()
    frame.to_csv(tmp_path / "t.csv", index=False)
    args = ("--target", "rent", "--missing", "refuse", *quick, "--out", tmp_path / "m")
    answer_of("fit", tmp_path / "t.csv", *args)
    frame.assign(size=None).to_csv(tmp_path / "new.csv", index=False)
    assert "column 'size'" in complaint_of("predict", tmp_path / "m", tmp_path / "new.csv")


def test_files_that_are_no_models(complaint_of, flats_csv, tmp_path):
    complaint = complaint_of("predict", flats_csv, flats_csv)
    assert f"{flats_csv} cannot be loaded" in complaint
    cs.save(cs.FeatureClusterRegressor(), tmp_path / "m")
    complaint = complaint_of("predict", tmp_path / "m", flats_csv)
    assert "clustruct.load in Python" in complaint


def test_formats_must_agree(complaint_of, model, tmp_path):
    (tmp_path / "t.svm").write_text("1 1:2\n")
    complaint = complaint_of("predict", model, tmp_path / "t.svm")
    assert "was fitted to a table with named columns" in complaint


# ---- report


def test_report(clustruct, model, flats_csv, tmp_path):
    page = tmp_path / "page.html"
    status, out, err = clustruct("report", model, flats_csv, "--out", page)
    assert status == 0, err
    assert out == f"Report: {page}\n"
    assert "<html" in page.read_text(encoding="utf-8")


def test_fit_writes_a_report(answer_of, flats_csv, quick, tmp_path):
    page = tmp_path / "page.html"
    args = ("--target", "rent", "--drop", "advert", *quick, "--report", page)
    assert answer_of("fit", flats_csv, *args)["report"] == str(page)
    assert "rent" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("out_of_core", ["yes", "no"])
def test_report_leaves_out_rows_without_a_target(clustruct, model, flats, tmp_path, out_of_core):
    some = flats.assign(rent=flats["rent"].where(np.arange(len(flats)) > 2))
    some.to_csv(tmp_path / "some.csv", index=False)
    args = ("report", model, tmp_path / "some.csv", "--out", tmp_path / "page.html")
    status, _, err = clustruct(*args, "--out-of-core", out_of_core)
    assert status == 0, err
    assert f"{len(flats)} rows, 3 left out because the target is missing" in err


def test_report_needs_the_answers(complaint_of, model, flats, tmp_path):
    flats.drop(columns="rent").to_csv(tmp_path / "new.csv", index=False)
    complaint = complaint_of("report", model, tmp_path / "new.csv", "--out", tmp_path / "r.html")
    assert "has no column 'rent'" in complaint
    assert not (tmp_path / "r.html").exists()


def test_report_without_jinja(complaint_of, model, flats_csv, monkeypatch, tmp_path):
    monkeypatch.setattr("clustruct.cli.commands.report.find_spec", lambda name: None)
    complaint = complaint_of("report", model, flats_csv, "--out", tmp_path / "r.html")
    assert "pip install 'clustruct[report]'" in complaint


# ---- data


def test_data_is_listed(clustruct, answer_of):
    _, out, _ = clustruct("data", "list")
    assert "comes with scikit-learn" in out
    assert {"name", "what", "target", "where"} == set(answer_of("data", "list")[0])


@pytest.mark.parametrize("name", ["breast-cancer", "diabetes", "made-features", "made-tasks"])
def test_data_is_shown_and_written(clustruct, answer_of, tmp_path, name):
    path = tmp_path / "t.csv"
    found = answer_of("data", "show", name, "--rows", "2", "--out", path)
    assert found["target"] in found["columns"]
    assert len(found["head"]) == 2
    assert len(pd.read_csv(path)) == found["rows"]
    _, out, _ = clustruct("data", "show", name, "--out", path)
    assert f"clustruct fit {path} --target {found['target']}" in out


def test_data_that_needs_no_file(clustruct):
    assert clustruct("data", "fetch", "diabetes")[1].startswith("diabetes needs no file: it comes")
    assert clustruct("data", "fetch", "made-tasks")[1].startswith("made-tasks needs no file: it is")


def test_data_of_another_name(complaint_of):
    assert "Did you mean 'diabetes'?" in complaint_of("data", "show", "diabets")


def test_data_that_is_not_here(complaint_of, monkeypatch, tmp_path):
    monkeypatch.setenv("CLUSTRUCT_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    complaint = complaint_of("data", "fetch", "rent")
    assert "rent.csv is in none of the folders looked in" in complaint
    assert "R package catdata" in complaint


def test_the_list_says_how_to_get_data(answer_of, monkeypatch, tmp_path):
    monkeypatch.setenv("CLUSTRUCT_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    where = {entry["name"]: entry["where"] for entry in answer_of("data", "list")}
    assert where["rent"].startswith("not here; from")
    assert where["reviews"] == "can be fetched"
    (tmp_path / "rent.csv").write_text("another file", encoding="utf-8")
    where = {entry["name"]: entry["where"] for entry in answer_of("data", "list")}
    assert "Delete it and get it again" in where["rent"]


# ---- demo


@pytest.mark.slow
def test_demo(clustruct, monkeypatch, tmp_path):
    monkeypatch.setenv("CLUSTRUCT_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    status, out, err = clustruct("demo", "--out", tmp_path / "new" / "folder")
    assert status == 0, err
    assert err == ""
    pages = ["breast-cancer.html", "made-experts.html", "made-tasks.html"]
    assert all((tmp_path / "new" / "folder" / page).exists() for page in pages)
    assert out.splitlines()[-1].endswith(f"new/folder: {', '.join(pages)}")


def test_demo_tells_its_commands(clustruct, monkeypatch, tmp_path):
    from clustruct.cli.commands import demo

    job = demo.Job(
        "Features: a short one",
        "diabetes",
        "csv",
        "--target progression --clusters 3 --alpha 0.1 --nonzero all",
    )
    missing = demo.Job("Words: not here", "reviews", "jsonl", "")
    monkeypatch.setattr(demo, "JOBS", (job, missing))
    monkeypatch.setenv("CLUSTRUCT_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    status, out, err = clustruct("demo", "--out", tmp_path / "d", "--json")
    assert status == 0, err
    (done,) = json.loads(out)["jobs"]
    assert done["commands"][1].startswith(f"clustruct fit {tmp_path / 'd' / 'diabetes.csv'}")
    assert done["result"]["model"]["chosen"]["n_clusters"] == 3
    status, out, err = clustruct("demo", "--out", tmp_path / "d")
    assert err == ""
    assert "$ clustruct fit" in out
    assert out.rstrip().endswith("diabetes.html")


FORGED_NOTES = [
    ("columns", 3),
    ("columns", {"dict": [["size", 1]]}),
    ("tasks", 7),
    ("base", "one"),
    ("styles", {"dict": [["size", None]]}),
    ("offset", {"dict": [["name", "size"]]}),
    ("offset", 3),
]


@pytest.mark.filterwarnings("ignore:.*was written with scikit-learn")
def test_forged_notes_are_refused(complaint_of, model, flats_csv):
    with zipfile.ZipFile(model) as source:
        members = {name: source.read(name) for name in source.namelist() if name != "manifest.json"}
    for place, value in FORGED_NOTES:
        content = json.loads(members["model.json"])
        pairs = [pair for pair in content["notes"]["dict"] if pair[0] != place]
        content["notes"]["dict"] = [*pairs, [place, value]]
        rebuilt(model, {**members, "model.json": json.dumps(content).encode()})
        said = complaint_of("predict", model, flats_csv)
        assert "not what the command line needs to know" in said, place


def test_models_that_do_not_work_are_named(complaint_of, model, flats_csv, monkeypatch):
    def fails(*args, **kwargs):
        raise AttributeError("something that scikit-learn needs and no check looks for")

    monkeypatch.setattr(ColumnTransformer, "transform", fails)
    monkeypatch.setattr("clustruct.persistence.foreign.try_out", lambda model: None)
    said = complaint_of("predict", model, flats_csv)
    assert "model.clustruct holds a model that does not work (AttributeError" in said
    assert "fit it again" in said
