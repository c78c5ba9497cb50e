"""``--offset`` and ``--exposure``, from the table to the fit, the predictions and the report."""

import numpy as np
import pandas as pd
import pytest

import clustruct as cs

MODEL = "model.clustruct"
FIXED = ("--clusters", "2", "--alpha", "0.01", "--nonzero", "all", "--test-size", "0")


@pytest.fixture(scope="module")
def table():
    """Two features that matter alike, an offset, and an exposure that is its exponential."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 4))
    offset = X[:, 0] - X[:, 3] + rng.standard_normal(80)
    y = X @ [1.0, 1.0, -1.0, -1.0] + offset + 0.1 * rng.standard_normal(80)
    frame = pd.DataFrame(X, columns=list("abcd"))
    return frame.assign(o=offset, expo=np.exp(offset), y=y, sign=np.where(y > 0, "yes", "no"))


@pytest.fixture
def path(table, tmp_path):
    table.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


def drop(*names):
    return "--drop", *names


@pytest.mark.parametrize("option", [("--offset", "o"), ("--exposure", "expo")])
@pytest.mark.parametrize("out_of_core", ["no", "yes"])
def test_fits_and_predictions_use_the_column(option, out_of_core, answer_of, table, path, tmp_path):
    out, other = tmp_path / MODEL, {"o": "expo", "expo": "o"}[option[1]]
    how = ("--out-of-core", out_of_core)
    told = answer_of(
        "fit", path, "--target", "y", *option, *drop("sign", other), *FIXED, "--out", out, *how
    )
    assert told["offset"]["name"] == option[1]
    assert [column["name"] for column in told["columns"]] == list("abcd")
    model = cs.load(out)
    assert model[-1].has_offset_
    X = table[list("abcd")]
    by_hand = cs.FeatureClusterRegressor(2, alpha=0.01, random_state=0)
    by_hand.fit((X - X.mean()) / X.std(ddof=0), table["y"], offset=table["o"])
    np.testing.assert_allclose(model[-1].coef_, by_hand.coef_, atol=1e-6)
    rows = answer_of("predict", out, path, *how)
    expected = model.predict(X, offset=table["o"].to_numpy())
    np.testing.assert_allclose([row["prediction"] for row in rows["predictions"]], expected)
    assert rows["scores"]["R2"] > 0.99


def test_experts_and_tasks(answer_of, table, tmp_path):
    frame = table.drop(columns=["sign", "expo"]).assign(task=np.where(np.arange(80) % 2, "u", "v"))
    frame.to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / MODEL
    given = ("fit", tmp_path / "t.csv", "--target", "y", "--offset", "o", "--test-size", "0")
    for use, more in (
        (("--samples", "--drop", "task"), {}),
        (("--tasks", "task"), {"tasks": frame["task"].to_numpy()}),
    ):
        answer_of(*given, *use, "--clusters", "2", "--out", out)
        rows = answer_of("predict", out, tmp_path / "t.csv")["predictions"]
        model, offset = cs.load(out), frame["o"].to_numpy()
        expected = model.predict(frame[list("abcd")], offset=offset, **more)
        np.testing.assert_allclose([row["prediction"] for row in rows], expected)
        if "expert 0" in rows[0]:
            each = model[-1].predict_experts(model[:-1].transform(frame[list("abcd")]), offset)
            np.testing.assert_allclose([row["expert 1"] for row in rows], each[:, 1])


def test_reports_and_comparisons_know_the_offset(answer_of, clustruct, path, tmp_path):
    out, page = tmp_path / MODEL, tmp_path / "page.html"
    options = (*drop("sign", "o"), "--clusters", "2", "--alpha", "0.01", "--out", out)
    told = answer_of("fit", path, "--target", "y", "--exposure", "expo", *options)
    scores = {entry["model"]: entry for entry in told["held_out"]["scores"]}
    assert min(entry["R²"] for name, entry in scores.items() if "mean" not in name) > 0.98
    status, _, err = clustruct("report", out, path, "--out", page)
    assert status == 0, err
    assert "offset=offset" in page.read_text(encoding="utf-8")
    status, text, _ = clustruct(
        "fit", path, "--target", "sign", "--offset", "o", *drop("y", "expo"), *options[-6:]
    )
    assert status == 0
    assert "Offset: o." in text
    assert "does not take the offset: no claim is made" in text
    assert "was not compared with a model without groups" in text


def test_mistakes_are_told(clustruct, complaint_of, answer_of, table, path, tmp_path):
    given = ("fit", path, "--target", "y")
    assert "'nothing' (--exposure)" in complaint_of(*given, "--exposure", "nothing")
    wrong = complaint_of(*given, "--exposure", "o")
    bad = np.flatnonzero(table["o"] <= 0)
    first = ", ".join(str(row + 1) for row in bad[:3])
    assert f"exposures must be above 0, and those of {bad.size} rows ({first}" in wrong
    assert "Mend them, or leave these rows out" in wrong
    for more, words in (
        (
            ("--weights", "expo"),
            "named for two purposes by --target, --weights, --tasks, --exposure",
        ),
        (("--offset", "o"), "not allowed with"),
    ):
        status, _, err = clustruct(*given, "--exposure", "expo", *more)
        assert status == 2
        assert words in err
    out = tmp_path / MODEL
    answer_of(*given, "--offset", "o", *drop("sign", "expo"), *FIXED, "--out", out)
    table.drop(columns="o").to_csv(tmp_path / "new.csv", index=False)
    message = complaint_of("predict", out, tmp_path / "new.csv")
    assert "has no column 'o'" in message
    assert "Rename or add it" in message
    table.assign(o=table["o"].where(table.index > 1)).to_csv(tmp_path / "new.csv", index=False)
    message = complaint_of("predict", out, tmp_path / "new.csv")
    assert "column 'o': no value in 2 rows (1, 2), and --offset needs one in every row" in message


def test_numbers_with_a_decimal_comma(answer_of, table, tmp_path):
    text = table.assign(expo=[f"{value:.8f}".replace(".", ",") for value in table["expo"]])
    text.drop(columns=["o", "sign"]).to_csv(tmp_path / "t.csv", index=False, sep=";")
    out = tmp_path / MODEL
    given = ("fit", tmp_path / "t.csv", "--target", "y", "--exposure", "expo")
    answer_of(*given, "--decimal-comma", "expo", *FIXED, "--out", out)
    rows = answer_of("predict", out, tmp_path / "t.csv")
    assert rows["scores"]["R2"] > 0.99
