"""``clustruct fit`` and what comes after it."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file

import clustruct as cs
from clustruct.cli.arguments import LOSS_PARAMETERS
from clustruct.cli.models import Settings, choose_model
from clustruct.cli.preparing import training
from clustruct.losses import LOSSES
from clustruct.reporting import build
from clustruct.reporting.comparing.comparison import compare

MODEL = "model.clustruct"


def write_svm(path, n=40, d=12):
    problem = cs.datasets.make_clustered_features(n, d, 3, random_state=0)
    dump_svmlight_file(problem.X, problem.y, str(path), zero_based=False)
    return problem


# ---- Features


def test_tables_of_all_kinds_of_columns(answer_of, flats_csv, tmp_path):
    out = tmp_path / MODEL
    answer = answer_of("fit", flats_csv, "--target", "rent", "--alpha", "0.01", "--out", out)
    kinds = {column["name"]: column["kind"] for column in answer["columns"]}
    assert kinds == {
        "size": "number",
        "rooms": "number",
        "area": "category",
        "since": "date",
        "advert": "text",
    }
    assert answer["target"]["kind"] == "regression"
    assert answer["rows"] == 60
    sizes = [group["size"] for group in answer["model"]["groups"]]
    assert sum(sizes) == answer["model"]["n_features"]
    scores = {entry["model"]: entry for entry in answer["held_out"]["scores"]}
    assert sum(entry["ours"] for entry in scores.values()) == 1
    assert any("Ridge" in name for name in scores)
    assert answer["out"] == str(out)


def test_saved_models_take_the_table_as_it_is(answer_of, flats_csv, quick, tmp_path):
    out = tmp_path / MODEL
    options = ("--target", "rent", "--drop", "advert", *quick, "--out", out)
    answer_of("fit", flats_csv, *options)
    raw = pd.read_csv(flats_csv)
    predicted = cs.load(out).predict(raw)
    told = answer_of("predict", out, flats_csv)
    assert [row["prediction"] for row in told["predictions"]] == predicted.tolist()
    assert told["scores"]["R2"] > 0.9
    assert answer_of("fit", flats_csv, *options)["model"]["groups"]


def test_people_are_told_what_was_understood(clustruct, flats_csv, quick):
    status, out, err = clustruct("fit", flats_csv, "--target", "rent", *quick, "--drop", "advert")
    assert (status, err.count("\n")) == (0, 1)
    assert "--category area fuses its levels among themselves." in err
    for text in (
        "60 rows",
        "rent, 60 distinct numbers: regression",
        "mean 0, deviation 1",
        "filled with the median",
        "4 columns of 0 and 1",
        "shared inside the numbers and inside each category",
        "training objective",
        "On 12 rows held out",
        "Ridge regression, a weight for every feature",
        "not saved",
    ):
        assert text in " ".join(out.split()), text


def headline_of(clustruct, table, *options):
    """What the command line says of the model, and all that it prints."""
    status, out, err = clustruct("fit", table, "--target", "y", "--nonzero", "all", *options)
    assert (status, err) == (0, "")
    text = " ".join(out.split())
    return text[text.index("Model:") :]


@pytest.fixture(scope="module")
def own_weights(tmp_path_factory):
    """A table in which every column has a weight of its own, and hardly any noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 8))
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(8)])
    frame["y"] = X @ np.linspace(-3, 3, 8) + 0.1 * rng.standard_normal(200)
    path = tmp_path_factory.mktemp("own") / "own.csv"
    frame.to_csv(path, index=False)
    return path


def test_a_number_of_groups_that_was_given_was_not_chosen(clustruct, own_weights):
    text = headline_of(clustruct, own_weights, "--clusters", "4")
    assert text.startswith("Model: 8 features in 4 groups of equal weight, as given; alpha ")
    assert "chosen by cross-validation" in text.partition("On 40 rows")[0]
    text = headline_of(clustruct, own_weights, "--clusters", "4", "--alpha", "0.01")
    assert text.startswith("Model: 8 features in 4 groups of equal weight, as given; alpha 0.01 ")
    assert "chosen" not in text
    text = headline_of(clustruct, own_weights, "--samples", "--clusters", "1")
    assert text.startswith("Model: 1 expert, as given; alpha 0.001 ")


def test_a_number_of_groups_that_was_chosen(clustruct, own_weights):
    text = headline_of(clustruct, own_weights, "--clusters", "2:4", "--alpha", "0.01")
    assert "4 groups of equal weight, the fewest not clearly worse than the best in" in text
    text = headline_of(clustruct, own_weights, "--clusters", "2:4", "--alpha", "0.01", "--best")
    assert "4 groups of equal weight, chosen by cross-validation; alpha 0.01" in text
    text = headline_of(clustruct, own_weights, "--samples", "--clusters", "1,2")
    assert "chosen by BIC" in text


def test_no_groups_where_every_grouping_is_clearly_worse(clustruct, answer_of, own_weights):
    text = headline_of(clustruct, own_weights)
    assert "8 features, every one with its own weight: no grouping, of up to 4, was as good" in text
    assert "choice of groups" not in text
    told = answer_of("fit", own_weights, "--target", "y", "--nonzero", "all")["model"]
    assert (told["grouped"], told["given"], told["chosen"]["n_clusters"]) == (False, False, 8)
    assert len(told["groups"]) == 8


def test_a_choice_at_the_end_of_what_was_tried_is_told(clustruct, own_weights):
    text = headline_of(clustruct, own_weights, "--clusters", "2,3", "--alpha", "0.01")
    assert "3 groups, the most that were tried, are clearly better than 2." in text
    assert "--clusters 3:6 tries them" in text
    text = headline_of(clustruct, own_weights, "--clusters", "2,8", "--alpha", "0.01")
    assert "the most that were tried" not in text  # there are no more


def test_the_same_seed_gives_the_same_answer(clustruct, flats_csv):
    args = ("fit", flats_csv, "--target", "rent", "--clusters", "4,5", "--json", "--seed", "3")
    assert clustruct(*args) == clustruct(*args)


def test_classes(answer_of, tmp_path, quick):
    problem = cs.datasets.make_clustered_features(
        90, 6, 2, low=-2, high=2, classification=True, random_state=0
    )
    frame = pd.DataFrame(problem.X, columns=list("abcdef"))
    frame["y"] = np.where(problem.y > 0, "yes", "no")
    frame.to_csv(tmp_path / "t.csv", index=False)
    answer = answer_of("fit", tmp_path / "t.csv", "--target", "y", *quick, "--out", tmp_path / "m")
    assert answer["target"]["kind"] == "classification"
    assert answer["held_out"]["scores"][-1]["Accuracy"] > 0.7
    rows = answer_of("predict", tmp_path / "m", tmp_path / "t.csv")["predictions"]
    assert rows[0]["prediction"] in ("yes", "no")
    assert rows[0]["probability no"] + rows[0]["probability yes"] == pytest.approx(1.0)


def test_sparse_files(answer_of, tmp_path, quick):
    write_svm(tmp_path / "t.svm")
    out = tmp_path / MODEL
    answer = answer_of("fit", tmp_path / "t.svm", *quick, "--out", out)
    assert answer["model"]["n_features"] == 12
    assert answer["model"]["groups"][0]["features"][0].startswith("x")
    told = answer_of("predict", out, tmp_path / "t.svm")
    assert len(told["predictions"]) == 40
    assert told["scores"]["R2"] > 0.5


def test_rows_have_weights(answer_of, flats, tmp_path, quick):
    frame = flats[["size", "rooms", "rent"]].dropna()
    doubled = pd.concat([frame, frame.iloc[:20]])
    doubled.to_csv(tmp_path / "doubled.csv", index=False)
    weight = np.where(np.arange(len(frame)) < 20, 2, 1)
    frame.assign(w=weight).to_csv(tmp_path / "weighted.csv", index=False)
    options = ("--target", "rent", *quick, "--test-size", "0", "--scale", "none")
    one = answer_of("fit", tmp_path / "doubled.csv", *options)
    other = answer_of("fit", tmp_path / "weighted.csv", *options, "--weights", "w")
    assert one["model"]["objective"] == pytest.approx(other["model"]["objective"])


def test_columns_can_be_chosen(answer_of, flats_csv, quick):
    base = ("fit", flats_csv, "--target", "rent", *quick)
    found = answer_of(*base, "--columns", "size", "rooms")
    assert [column["name"] for column in found["columns"]] == ["size", "rooms"]
    found = answer_of(*base, "--drop", "advert", "since", "area")
    assert [column["name"] for column in found["columns"]] == ["size", "rooms"]
    found = answer_of(*base, "--columns", "size", "rooms", "--category", "rooms")
    assert found["model"]["n_features"] == 6


def test_sparsity_does_without_blocks(answer_of, flats_csv):
    args = ("fit", flats_csv, "--target", "rent", "--drop", "advert", "--alpha", "0.01")
    found = answer_of(*args, "--clusters", "2", "--nonzero", "3")["model"]
    sizes = {group["group"]: group["size"] for group in found["groups"]}
    assert sum(size for label, size in sizes.items() if label >= 0) <= 3
    assert sizes[-1] >= 4


def test_several_classes(clustruct, tmp_path, quick):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(90, 4)), columns=list("abcd"))
    frame["y"] = np.array(["u", "v", "w"])[np.argmax(frame[["a", "b", "c"]].to_numpy(), axis=1)]
    frame.to_csv(tmp_path / "t.csv", index=False)
    status, out, _ = clustruct("fit", tmp_path / "t.csv", "--target", "y", *quick)
    assert status == 0
    (header,) = [line.split() for line in out.splitlines() if "those that matter most" in line]
    assert header[:5] == ["group", "u", "v", "w", "size"]


# ---- Samples


def test_experts_on_classes(clustruct, tmp_path):
    made = cs.datasets.make_experts(90, 3, 2, n_outputs=4, classification=True, random_state=0)
    frame = pd.DataFrame(made.X, columns=list("abc")).assign(y=made.y)
    frame.to_csv(tmp_path / "t.csv", index=False)
    args = ("fit", tmp_path / "t.csv", "--target", "y", "--samples", "--clusters", "2")
    status, out, _ = clustruct(*args, "--classification")
    assert status == 0
    (line,) = [line for line in out.splitlines() if "best of 2 predictions" in line]
    (header,) = [line for line in out.splitlines() if "Accuracy" in line]
    assert line.index("Experts") == header.index("model")


def test_samples(answer_of, clustruct, tmp_path):
    path, out = tmp_path / "experts.csv", tmp_path / MODEL
    answer_of("data", "show", "made-experts", "--out", path)
    args = ("fit", path, "--target", "y", "--samples", "--clusters", "3", "--out", out)
    found = answer_of(*args)
    assert [group["group"] for group in found["model"]["groups"]] == [0, 1, 2]
    assert sum(group["share"] for group in found["model"]["groups"]) == pytest.approx(1.0)
    row = answer_of("predict", out, path)["predictions"][0]
    assert set(row) == {"prediction", "expert 0", "expert 1", "expert 2"}
    _, text, _ = clustruct(*args)
    assert "The gate, which predicts the expert of a row, helps" in text


# ---- Tasks


def test_tasks(answer_of, clustruct, tmp_path):
    path, out = tmp_path / "tasks.csv", tmp_path / MODEL
    answer_of("data", "show", "made-tasks", "--out", path)
    args = ("fit", path, "--target", "y", "--tasks", "task", "--clusters", "2,3", "--out", out)
    found = answer_of(*args)
    assert sum(group["size"] for group in found["model"]["groups"]) == 24
    assert any("each task" in entry["model"] for entry in found["held_out"]["scores"])
    told = answer_of("predict", out, path)
    assert told["scores"]["R2"] > 0.5
    frame = pd.read_csv(path)
    frame.loc[0, "task"] = "a new one"
    frame.to_csv(path, index=False)
    status, _, err = clustruct("predict", out, path)
    assert status == 0
    assert f"{path}, column 'task': 1 tasks were not in the fit, as 'a new one'" in err
    frame.drop(columns="task").to_csv(path, index=False)
    assert "no column 'task'" in clustruct("predict", out, path)[2]


def test_one_task_is_none(complaint_of, flats, tmp_path):
    flats.assign(t="a").to_csv(tmp_path / "t.csv", index=False)
    complaint = complaint_of("fit", tmp_path / "t.csv", "--target", "rent", "--tasks", "t")
    assert "t.csv, column 't': all rows are of one task" in complaint


# ---- What is left out, and what is refused


def test_useless_columns_are_left_out_and_named(clustruct, flats, tmp_path, quick):
    path = tmp_path / "t.csv"
    flats.assign(empty=None, same=1, id=range(60)).to_csv(path, index=False)
    status, out, err = clustruct("fit", path, "--target", "rent", *quick, "--drop", "advert")
    assert status == 0
    for name, reason in (
        ("empty", "no values"),
        ("same", "same value"),
        ("id", "numbers the rows"),
    ):
        (line,) = [line for line in err.splitlines() if f"column {name!r}" in line]
        assert str(path) in line
        assert reason in line
        assert f"--drop {name!r}" in line
    assert out.count("left out") == 3


def test_rows_without_target_are_left_out_and_counted(clustruct, flats, tmp_path, quick):
    frame = flats.copy()
    frame.loc[:4, "rent"] = np.nan
    frame.to_csv(tmp_path / "t.csv", index=False)
    args = ("fit", tmp_path / "t.csv", "--target", "rent", *quick, "--drop", "advert", "area")
    _, out, _ = clustruct(*args)
    assert "t.csv (CSV): 60 rows, 5 left out because the target is missing." in out
    _, out, _ = clustruct(*args, "--json")
    found = json.loads(out)
    assert (found["rows_read"], found["rows"]) == (60, 55)
    assert found["rows_left_out"] == [{"rows": 5, "reason": "the target is missing"}]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--target", "rend"], ["no column 'rend' (--target)", "Did you mean 'rent'?"]),
        (["--target", "rent", "--drop", "Size"], ["'Size' (--drop)", "Did you mean 'size'?"]),
        (["--target", "rent", "--columns", "x"], ["'x' (--columns)", "There are: size, rooms"]),
        (["--target", "rent", "--text", "adverd"], ["(--text)", "'advert'"]),
        (["--target", "rent", "--weights", "w"], ["(--weights)"]),
        (["--target", "rent", "--missing", "refuse"], ["column 'size'", "--missing impute"]),
        (["--target", "rent", "--weights", "size"], ["column 'size': no value in 1 rows"]),
        (["--target", "rent", "--number", "area"], ["column 'area'", "not numbers"]),
        (["--target", "rent", "--date", "area"], ["column 'area'", "no date"]),
        (["--target", "area", "--regression"], ["column 'area'", "not numbers"]),
        (["--target", "advert"], ["column 'advert'", "60 classes in 60 rows"]),
        (
            ["--target", "rent", "--drop", "size", "rooms", "area", "since", "advert"],
            ["no column to predict 'rent' from"],
        ),
    ],
)
def test_mistakes_are_named(complaint_of, flats_csv, options, words):
    complaint = complaint_of("fit", flats_csv, *options)
    for word in [str(flats_csv), *words]:
        assert word in complaint


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "--target is needed"),
        (["--target", "rent", "--loss", "logistic"], "--loss logistic is not for regression"),
        (
            ["--target", "rent", "--loss", "poisson", "--tweedie-power", "1.5"],
            "--tweedie-power goes with --loss tweedie only",
        ),
        (["--target", "rent", "--text", "area", "--category", "area"], "cannot both be meant"),
        (["--target", "rent", "--clusters", "2"], "the columns are in 3 blocks"),
        (["--target", "rent", "--samples", "--nonzero", "3"], "--nonzero goes with --features"),
        (["--target", "rent", "--samples", "--best"], "--best goes with --features and --tasks"),
        (["--target", "area", "--samples", "--clusters", "5"], "there can be 2 experts at most"),
    ],
)
def test_options_that_do_not_go_together(clustruct, flats_csv, options, words):
    status, _, err = clustruct("fit", flats_csv, *options, "--json")
    assert status == 2
    assert words in err


def test_names_do_not_go_with_sparse_files(clustruct, tmp_path):
    write_svm(tmp_path / "t.svm")
    status, _, err = clustruct("fit", tmp_path / "t.svm", "--target", "y")
    assert status == 2
    assert "whose columns have no names" in err


@pytest.mark.parametrize(
    ("rows", "words"), [(1, "one row with a target"), (5, "5 rows with a target")]
)
def test_tables_with_few_rows(complaint_of, flats, tmp_path, rows, words):
    flats[["size", "rooms", "rent"]].head(rows).to_csv(tmp_path / "t.csv", index=False)
    complaint = complaint_of("fit", tmp_path / "t.csv", "--target", "rent")
    assert words in complaint
    assert "t.csv" in complaint


# ---- The parts


@pytest.mark.parametrize(
    ("settings", "shape", "expected"),
    [
        (Settings(), (50, 30), {"n_clusters": (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, None)}),
        (Settings(), (50, 30), {"n_nonzero": (None, 7), "alphas": "auto", "rule": "fewest"}),
        (Settings(), (50, 13), {"n_clusters": (1, 2, 3, 4, 5, 6, None)}),
        (Settings(), (50, 4), {"n_clusters": (1, 2, None), "n_nonzero": None}),
        (Settings(), (50, 2), {"n_clusters": (1, None)}),
        (Settings(), (50, 1), {"n_clusters": (1,)}),
        (Settings(best=True), (50, 9), {"rule": "best"}),
        (Settings("tasks"), (50, 9), {"rule": "fewest"}),
        (Settings("tasks", best=True), (50, 9), {"rule": "best"}),
        (Settings(clusters=[3], alpha=0.1, nonzero=0), (50, 9), {"n_clusters": 3, "alpha": 0.1}),
        (Settings(clusters=[3]), (50, 9), {"n_clusters": (3,), "alphas": "auto"}),
        (Settings(nonzero=5), (50, 9), {"n_nonzero": 5}),
        (Settings("samples"), (50, 9), {"n_clusters": tuple(range(1, 9)), "gate": True}),
        (Settings("samples", clusters=[2]), (50, 9), {"n_clusters": 2}),
    ],
)
def test_models_are_what_was_asked_for(settings, shape, expected):
    model = choose_model(settings, "regression", shape, np.arange(50.0), None)
    params = model.get_params()
    assert {name: params[name] for name in expected} == expected


def test_groups_to_try_count_in_each_block():
    """At most half of a block, but two; and one for each block at least."""
    blocks = np.repeat(["numbers", "sex", "town"], [6, 2, 5]).astype(object)
    model = choose_model(Settings(), "regression", (50, 13), np.arange(50.0), blocks)
    assert model.n_clusters == (3, 4, 5, 6, 7, 8, None)


def test_few_rows_of_a_class_make_few_folds():
    y = np.repeat([0, 1], [40, 3])
    assert choose_model(Settings(), "classification", (43, 5), y, None).cv == 3


def test_a_report_needs_no_second_comparison(clustruct, flats_csv, quick, tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(training, "compare", lambda *a, **k: calls.append(a) or compare(*a, **k))
    monkeypatch.setattr(build, "compare", lambda *a, **k: calls.append(a))
    report = tmp_path / "r.html"
    options = ("--target", "rent", "--drop", "advert", *quick, "--report", report)
    assert clustruct("fit", flats_csv, *options)[0] == 0
    assert len(calls) == 1
    assert "Ridge regression" in report.read_text(encoding="utf-8")


def test_json_is_one_object(clustruct, flats_csv, quick):
    _, out, _ = clustruct(
        "fit", flats_csv, "--target", "rent", "--drop", "advert", *quick, "--json"
    )
    assert len(out.splitlines()) == 1
    json.loads(out)


# ---- Mistakes


def table(tmp_path, *more):
    rng = np.random.default_rng(0)
    rows = [",".join(f"{number:.3f}" for number in row) for row in rng.normal(size=(30, 3))]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["a,b,y", *rows, *more]))
    return path


def test_a_target_that_is_not_finite(complaint_of, tmp_path):
    complaint = complaint_of("fit", table(tmp_path, "1,2,inf"), "--target", "y")
    assert "t.csv, column 'y': row 31 is infinite. Give a finite number" in complaint


def test_text_in_the_target(complaint_of, tmp_path):
    complaint = complaint_of("fit", table(tmp_path, "1,2,oops"), "--target", "y")
    assert (
        "t.csv, column 'y': 1 of its values are not numbers, such as 'oops' in row 31" in complaint
    )
    assert complaint.endswith("or give --classification if it names classes.")
    assert "--drop" not in complaint


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--drop", "y"), "column 'y' is named for two purposes"),
        (("--tasks", "y"), "column 'y' is named for two purposes"),
        (("--test-size", "0.99"), "--test-size 0.99 leaves fewer than two of the 30 rows"),
        (("--samples", "--clusters", "99"), "--clusters 99 is more than the 24 rows to fit to"),
    ],
)
def test_options_that_the_table_does_not_allow(clustruct, tmp_path, options, message):
    status, _, err = clustruct("fit", table(tmp_path), "--target", "y", *options)
    assert status == 2
    assert message in err


def test_a_folder_that_cannot_be_written_to(clustruct, tmp_path, monkeypatch):
    path = table(tmp_path)
    monkeypatch.setattr("os.access", lambda *_: False)
    status, _, err = clustruct("fit", path, "--target", "y", "--out", tmp_path / MODEL)
    assert status == 2
    assert "cannot be written. Name another file" in err


def test_a_model_that_is_not_there(complaint_of, tmp_path):
    complaint = complaint_of("predict", tmp_path / MODEL, table(tmp_path))
    assert f"{MODEL} does not exist. Name a model file" in complaint
    assert "is a folder" in complaint_of("predict", tmp_path, table(tmp_path))


# ---- Losses for counts and amounts.


@pytest.fixture
def policies(tmp_path):
    """Claims of areas, more varied than Poisson counts, and their cost."""
    rng = np.random.default_rng(0)
    area = rng.integers(0, 6, 600)
    means = np.exp(np.repeat([0.6, -0.6], 3)[area]) * rng.gamma(0.5, 2.0, 600)
    claims = rng.poisson(means)
    cost = np.round(claims * rng.gamma(2.0, 1.0, 600), 3)
    rows = [f"{'abcdef'[a]},{c},{m}" for a, c, m in zip(area, claims, cost, strict=True)]
    path = tmp_path / "policies.csv"
    path.write_text("\n".join(["area,claims,cost", *rows]), encoding="utf-8")
    return path


def test_counts_and_their_dispersion(clustruct, policies, tmp_path):
    common = ("fit", policies, "--target", "claims", "--drop", "cost", "--alpha", "0.001")
    status, out, err = clustruct(*common, "--loss", "poisson", "--report", tmp_path / "r.html")
    assert status == 0, err
    assert "Target: claims, as asked for: regression." in out  # not classes, as the loss says
    assert "Dispersion (Pearson): " in out
    assert "times as much around their predictions as Poisson counts do" in out
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Dispersion (Pearson)" in page
    assert "as Poisson counts do" in page


def test_parameters_of_losses_reach_the_model(clustruct, policies):
    options = ("--loss", "tweedie", "--tweedie-power", "1.3", "--clusters", "2", "--json")
    status, out, err = clustruct("fit", policies, "--target", "cost", "--drop", "claims", *options)
    assert status == 0, err
    found = json.loads(out)["model"]
    assert found["dispersion"] > 0.0
    assert not found["remarks"]  # it is no news for amounts
    groups = [sorted(group["features"]) for group in found["groups"]]
    assert groups == [["area: d", "area: e", "area: f"], ["area: a", "area: b", "area: c"]]


def test_all_parameters_of_losses_are_options():
    known = [f"{kind.name}-{name}" for kind in LOSSES.values() for name in kind.parameters]
    assert sorted(LOSS_PARAMETERS) == sorted(known)
