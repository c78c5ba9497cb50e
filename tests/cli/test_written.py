"""Columns as people write them: dates, money, codes, identifiers, gaps, counts and JSON arrays.

Every table is fitted and predicted in memory and out of core; both must understand it alike.
"""

import json

import numpy as np
import pandas as pd
import pytest

import clustruct as cs
from clustruct.cli.preparing.columns import recognise
from clustruct.cli.preparing.styles import Written
from clustruct.cli.preparing.targets import recognise_target
from clustruct.estimators.columns.transformers import (
    DateToDays,
    LevelEncoder,
    MissingFlag,
    WrittenDates,
    WrittenNumbers,
)
from clustruct.estimators.columns.written import read_dates, read_numbers
from clustruct.persistence.model_files import save

pytest.importorskip("dask")

N = 120
WAYS = ("no", "yes")
QUICK = ("--alpha", "0.01", "--nonzero", "all", "--clusters", "12")
# Where nobody asks how well the table is predicted, nothing is held out.
ALL_ROWS = ("--test-size", "0")
DAYS = pd.date_range("2001-01-03", periods=N, freq="37D")


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr("clustruct.cli.preparing.opening.PIECE_BYTES", 1_500)
    monkeypatch.setattr("clustruct.cli.reading.conversion.PIECE_BYTES", 1_500)


@pytest.fixture
def both_ways(clustruct, tmp_path):
    """A function that fits and predicts in memory and out of core, and gives the one answer."""

    def run(frame, *options, name="t.csv", target="y"):
        path = frame if not isinstance(frame, pd.DataFrame) else tmp_path / name
        if isinstance(frame, pd.DataFrame):
            write = {
                "t.csv": lambda: frame.to_csv(path, index=False),
                "t.parquet": lambda: frame.to_parquet(path),
                "t.json": lambda: frame.to_json(path, orient="records"),
            }
            write[name]()
        found, predictions = [], []
        for way in WAYS:
            out = tmp_path / f"{way}.clustruct"
            args = ("--target", target, *QUICK, *options, "--out-of-core", way)
            status, text, err = clustruct("fit", path, *args, "--out", out, "--json")
            assert status == 0, err
            found.append(json.loads(text))
            status, text, err = clustruct("predict", out, path, "--json", "--out-of-core", way)
            assert status == 0, err
            predictions.append([row["prediction"] for row in json.loads(text)["predictions"]])
        here, there = found
        # Factors are for tables in memory, so that only there a remark tells of them.
        here["remarks"] = [text for text in here["remarks"] if "among themselves" not in text]
        for key in ("rows", "rows_read", "rows_left_out", "target", "columns", "remarks"):
            assert there[key] == here[key], key
        if here["target"]["kind"] == "regression":
            np.testing.assert_allclose(*predictions, rtol=1e-7)
        else:
            assert predictions[0] == predictions[1]
        here["predictions"] = predictions[0]
        here["by_name"] = {column["name"]: column for column in here["columns"]}
        here["features"] = {f for g in here["model"]["groups"] for f in g["features"]}
        here["model_file"] = tmp_path / "no.clustruct"
        return here

    return run


def _target(frame, *columns):
    noise = np.random.default_rng(0).normal(0, 0.1, len(frame))
    return frame.assign(y=noise + sum(np.asarray(c, dtype=float) for c in columns))


# ---- Dates

FORMS = {
    "%b %d %Y": "month day year",
    "%d %B %Y": "day month year",
    "%d.%m.%Y": "day.month.year",
    "%m/%d/%Y": "month/day/year",
    "%d/%m/%Y": "day/month/year",
    "%m/%d/%y": "month/day/year",
    "%d-%b-%Y": "day-month-year",
    "%B %d, %Y": "month day, year",
    "%Y/%m/%d": "year/month/day",
    "%m/%d/%Y %I:%M %p": "month/day/year hour:minute am/pm",
    "%Y-%m-%d": "",
    "%Y-%m-%dT%H:%M:%S": "",
}


@pytest.mark.parametrize("form", FORMS)
def test_dates_are_read_as_they_are_written(form, both_ways):
    frame = pd.DataFrame({"sold": DAYS.strftime(form), "a": np.sin(np.arange(N))})
    frame = _target(frame, (DAYS - DAYS[0]).days / 1000.0)
    found = both_ways(frame)
    column = found["by_name"]["sold"]
    assert column["kind"] == "date"
    assert FORMS[form] in column["prepared"]
    assert found["remarks"] == []
    assert found["held_out"]["scores"][-1]["R²"] > 0.9


def test_new_tables_are_read_with_the_form_of_the_fit(both_ways, clustruct, tmp_path):
    """Days up to the twelfth could be months; the fit has seen days beyond it."""
    frame = pd.DataFrame({"sold": DAYS.strftime("%d/%m/%Y"), "a": np.sin(np.arange(N))})
    found = both_ways(_target(frame, (DAYS - DAYS[0]).days / 1000.0))
    new = pd.DataFrame({"sold": ["1/2/2009", "11/2/2009"], "a": [0.0, 0.0]})
    new.to_csv(tmp_path / "new.csv", index=False)
    days = pd.to_datetime(["2009-02-01", "2009-02-11"])
    plain = cs.load(found["model_file"]).predict(pd.DataFrame({"sold": days, "a": [0.0, 0.0]}))
    for way in WAYS:
        args = ("predict", found["model_file"], tmp_path / "new.csv", "--json")
        _, out, _ = clustruct(*args, "--out-of-core", way)
        answers = [row["prediction"] for row in json.loads(out)["predictions"]]
        np.testing.assert_allclose(answers, plain)
    raw = cs.load(found["model_file"]).predict(new)  # the model takes the table as it is
    np.testing.assert_allclose(raw, plain)


def test_dates_that_could_be_either_way_round_are_told(both_ways):
    days = pd.to_datetime([f"{2001 + i % 12}-{i % 11 + 1:02d}-{i % 7 + 1:02d}" for i in range(N)])
    frame = pd.DataFrame({"sold": days.strftime("%m/%d/%Y"), "a": np.sin(np.arange(N))})
    frame = _target(frame, days.year - 2000.0)
    found = both_ways(frame)
    (remark,) = found["remarks"]
    assert "'01/01/2001' was read as month/day/year" in remark
    assert "--date-format 'sold=%d/%m/%Y' reads it as day/month/year" in remark
    found = both_ways(frame, "--date-format", "sold=%d/%m/%Y")
    assert found["by_name"]["sold"]["style"] == "%d/%m/%Y"
    assert found["remarks"] == []


def test_forms_of_dates_are_checked(clustruct, complaint_of, tmp_path):
    frame = _target(pd.DataFrame({"sold": DAYS.strftime("%d.%m.%Y")}), np.arange(N))
    frame.to_csv(tmp_path / "t.csv", index=False)
    args = ("fit", tmp_path / "t.csv", "--target", "y")
    for wrong in ("sold=%Q", "sold=day", "%d.%m.%Y"):
        status, _, err = clustruct(*args, "--date-format", wrong)
        assert status == 2
        assert "--date-format" in err
    status, _, err = clustruct(*args, "--date-format", "sold=%d.%m.%Y", "--category", "sold")
    assert status == 2
    assert "cannot both be meant" in err
    complaint = complaint_of(*args, "--date-format", "sold=%m/%d/%Y")
    assert "column 'sold': '03.01.2001' in row 1 is no date" in complaint


# ---- Numbers


MONEY = {
    "$3,822.10": ("$", lambda v: f"${v:,.2f}"),
    "1,234": ("", lambda v: f"{v:,.0f}"),
    "12.5%": ("%", lambda v: f"{v:.1f}%"),
    "€ 1.234,50": ("€", lambda v: "€ " + f"{v:,.2f}".translate(str.maketrans(",.", ".,"))),
    "1 234,5": ("", lambda v: f"{v:,.1f}".replace(",", " ").replace(".", ",")),
    "(12 USD)": ("USD", lambda v: f"({-v:,.2f} USD)" if v < 0 else f"{v:,.2f} USD"),
}


@pytest.mark.parametrize("name", MONEY)
def test_money_and_thousands_are_numbers(name, both_ways, clustruct):
    rng = np.random.default_rng(1)
    values = rng.uniform(10, 30_000, N).round(0) + 0.5
    if "(" in name:
        values[::3] *= -1
    frame = pd.DataFrame({"price": [MONEY[name][1](v) for v in values], "a": rng.normal(size=N)})
    frame = _target(frame, values / 1000.0)
    found = both_ways(frame)
    column = found["by_name"]["price"]
    assert column["kind"] == "number"
    assert "read as " in column["prepared"]
    assert found["held_out"]["scores"][-1]["R²"] > 0.99
    raw = cs.load(found["model_file"]).predict(frame)  # the model takes the table as it is
    np.testing.assert_allclose(raw, found["predictions"])


def test_commas_that_could_be_either_are_told(both_ways):
    values = np.random.default_rng(0).integers(1001, 9999, N)
    frame = pd.DataFrame({"price": [f"€ {v // 1000},{v % 1000:03d}" for v in values]})
    frame = _target(frame.assign(a=np.sin(np.arange(N))), values / 1000.0)
    found = both_ways(frame)
    (remark,) = found["remarks"]
    assert "--decimal-comma 'price' takes the comma" in remark
    first = f"read as {values[0]}"
    assert first in found["by_name"]["price"]["prepared"]
    found = both_ways(frame, "--decimal-comma", "price")
    assert f"read as {values[0] / 1000:.12g}" in found["by_name"]["price"]["prepared"]


def test_numbers_with_a_point_between_thousands_stay_so_in_new_tables(
    both_ways, clustruct, tmp_path
):
    values = np.random.default_rng(0).integers(1001, 9999, N) + 0.5
    text = [f"{v:,.2f}".translate(str.maketrans(",.", ".,")) for v in values]
    frame = _target(pd.DataFrame({"price": text, "a": np.sin(np.arange(N))}), values)
    found = both_ways(frame)
    (tmp_path / "new.csv").write_text('price,a\n2.000,0\n"2.000,00",0\n')
    for way in WAYS:
        args = ("predict", found["model_file"], tmp_path / "new.csv", "--json")
        _, out, _ = clustruct(*args, "--out-of-core", way)
        one, other = (row["prediction"] for row in json.loads(out)["predictions"])
        assert one == other == pytest.approx(2000, rel=0.1)


def test_numbers_of_several_units_are_none():
    rng = np.random.default_rng(0)
    values = [f"{'$€'[i % 2]}{v:.2f}" for i, v in enumerate(rng.uniform(1, 1000, N))]
    (column,) = recognise(pd.DataFrame({"c": values}), ["c"], {}, "t.csv")
    assert not column.used
    assert "of different units ($, €); --number 'c'" in column.reason
    mixed = [f"{v:.2f}{'%' * (i % 2)}" for i, v in enumerate(rng.uniform(1, 1000, N))]
    (column,) = recognise(pd.DataFrame({"c": mixed}), ["c"], {}, "t.csv")
    assert not column.used


def test_readers_of_numbers_and_dates():
    text = pd.Series(["$1,234.5", "-$2", "\u22123", "4e2", "5 %", None, "1,23", "six"])
    expected = [1234.5, -2, -3, 400, 5, np.nan, np.nan, np.nan]
    np.testing.assert_array_equal(read_numbers(text, "."), expected)
    text = pd.Series(["1.234,5", "2'000", "1 000 000", ",5", "1.23"])
    np.testing.assert_array_equal(read_numbers(text, ","), [1234.5, 2000, 1e6, 0.5, np.nan])
    assert read_numbers(pd.Series([1, 2]), ",").tolist() == [1.0, 2.0]
    dates = read_dates(pd.Series([" Jun 12 1998 ", "12 Jun 1998", None]), "%b %d %Y")
    assert dates.isna().tolist() == [False, True, True]


def test_long_values_are_looked_at_quickly():
    """Patterns that try all ways to share out spaces or digits would not come to an end."""
    written = Written()
    for sign in (" ", "1", "1 ", "0", "1,", "a "):
        written.add(pd.Series([sign * 20_000 + "x", "x" + sign * 20_000]))
    assert not written.are_numbers
    assert not written.are_dates


def test_styles_do_not_depend_on_batches():
    values = pd.Series(["2020", "01/02/2020", "$5", "1,234", "x"] * 5).sample(
        frac=1, random_state=0
    )
    for start in range(5):
        turned = pd.concat([values[start:], values[:start]])
        whole, pieces = Written(), Written()
        whole.add(turned)
        for first in range(0, len(turned), 3):
            pieces.add(turned[first : first + 3])
        for one, other in ((whole.numbers, pieces.numbers), (whole.dates, pieces.dates)):
            assert (one.best, one.n_good, one.wrong) == (other.best, other.n_good, other.wrong)
        assert (whole.are_numbers, whole.are_dates) == (pieces.are_numbers, pieces.are_dates)
        assert whole.signs == pieces.signs


def test_zeros_before_numbers_make_codes(both_ways):
    rng = np.random.default_rng(0)
    code = rng.integers(0, 4, N)
    frame = pd.DataFrame({"zip": [f"0455{c}" for c in code], "a": rng.normal(size=N)})
    frame = _target(frame, code)
    found = both_ways(frame)
    assert found["by_name"]["zip"]["kind"] == "category"
    assert "zip: 04551" in found["features"]
    found = both_ways(frame, "--number", "zip")
    assert found["by_name"]["zip"]["kind"] == "number"


# ---- Identifiers


def test_identifiers_are_left_out_and_can_be_kept(both_ways):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "customer_id": rng.permutation(N) * 7 + 1000,
            "userId": [f"u{i}" for i in rng.permutation(N)],
            "number": np.arange(1, N + 1),
            "from zero": rng.permutation(N),
            "counter": np.arange(5000, 5000 + N),
            "year": np.arange(1850, 1850 + N),
            "paid": rng.permutation(N) * 3,
            "grid": rng.permutation(N) * 5,
            "humid": rng.normal(size=N),
        }
    )
    frame = _target(frame, frame["humid"])
    found = both_ways(frame)
    left = {name for name, column in found["by_name"].items() if column["kind"] == "left out"}
    assert left == {"customer_id", "userId", "number", "from zero", "counter"}
    assert "it numbers the rows; --number 'number'" in found["by_name"]["number"]["reason"]
    assert "an identifier" in found["by_name"]["customer_id"]["reason"]
    found = both_ways(frame, "--number", "number", "customer_id")
    assert {"number", "customer_id"} <= found["features"]


def test_identifiers_have_gaps_where_rows_are_left_out(both_ways):
    frame = pd.DataFrame({"n": np.arange(1, N + 1), "a": np.sin(np.arange(N))})
    frame = _target(frame, frame["a"])
    frame.loc[[0, 7, 30], "y"] = np.nan
    assert both_ways(frame)["by_name"]["n"]["kind"] == "left out"


# ---- Missing values and levels


def test_gaps_have_features_of_their_own(both_ways):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"income": rng.normal(size=N), "age": rng.normal(size=N)})
    frame["since"] = DAYS.strftime("%d.%m.%Y")
    frame["sex"] = rng.choice(["female", "male"], N)
    gaps = rng.random(N) < 0.6
    frame = _target(frame, frame["age"] + 5 * gaps)
    frame.loc[gaps, "income"] = np.nan
    frame.loc[[1, 2], "age"] = np.nan
    frame.loc[::10, "since"] = None
    frame.loc[::6, "sex"] = None
    frame["seen"] = np.where(np.arange(N) % 4, "yes", None)
    found = both_ways(frame)
    flags = {"income: missing", "since: missing", "sex: missing", "seen: missing"}
    assert flags < found["features"]
    assert "seen: yes" not in found["features"]
    assert "age: missing" not in found["features"]
    share = f"{100 * gaps.mean():.0f} %"
    prepared = {name: column["prepared"] for name, column in found["by_name"].items()}
    assert f"filled with the median ({share} missing)" in prepared["income"]
    assert "1 where it is missing" in prepared["income"]
    assert prepared["seen"] == "1 for missing (25 %), 0 for yes"
    assert prepared["sex"] == "3 columns of 0 and 1, one for missing (17 %)"
    (remark,) = found["remarks"]
    assert f"column 'income': {share} of its values are missing" in remark
    assert found["held_out"]["scores"][-1]["R²"] > 0.95


def test_rare_levels_are_together_and_two_levels_are_one_column(both_ways, clustruct, tmp_path):
    rng = np.random.default_rng(0)
    n = 600
    rare = [f"small studio {i}" for i in range(30)]
    frame = pd.DataFrame({"studio": rng.choice(["Fox", "MGM", "RKO"], n), "a": rng.normal(size=n)})
    frame.loc[:29, "studio"] = rare
    frame["sex"] = rng.choice(["female", "male"], n)
    frame = _target(frame, frame["sex"] == "male")
    found = both_ways(frame.sample(frac=1, random_state=0))
    features = found["features"]
    assert {"a", "sex: male", "studio: Fox", "studio: MGM", "studio: RKO"} < features
    (other,) = [name for name in features if "other" in name]
    assert other.startswith("studio: other (")
    assert other.endswith(" rare levels)")
    assert len(features) == 6
    assert found["by_name"]["sex"]["prepared"] == "1 for male, 0 for female"
    assert "rare ones together" in found["by_name"]["studio"]["prepared"]
    new = frame.head(4).assign(sex=["male", None, "unknown", "female"])
    new.to_csv(tmp_path / "new.csv", index=False)
    for way in WAYS:
        args = ("predict", found["model_file"], tmp_path / "new.csv", "--out-of-core", way)
        status, _, err = clustruct(*args)
        assert status == 0
        assert "column 'sex': 2 rows hold categories that were not in the fit" in err
        assert "they count as 'female'" in err


def test_levels_called_missing_are_told_from_gaps():
    frame = pd.DataFrame({"k": ["missing", "x", None]})
    names = LevelEncoder().fit(frame).get_feature_names_out().tolist()
    assert names == ["k: missing", "k: x", "k: missing value"]


def test_transformers_are_saved(tmp_path):
    frame = pd.DataFrame({"d": ["1.2.2003", None], "p": ["$1", "$2"], "k": ["x", "y"]})
    steps = {
        "d": WrittenDates("%d.%m.%Y"),
        "p": WrittenNumbers("."),
        "k": LevelEncoder(drop="if_binary", handle_unknown="ignore", sparse_output=False),
    }
    for name, step in steps.items():
        made = step.fit_transform(frame[[name]])
        save(step, tmp_path / name, notes={})
        again = cs.load(tmp_path / name)
        np.testing.assert_array_equal(again.transform(frame[[name]]), made)
        assert list(again.get_feature_names_out()) == list(step.get_feature_names_out())
    days = DateToDays().fit(frame[["d"]]).set_output(transform="pandas")
    flag = MissingFlag(features="all").fit(steps["d"].transform(frame[["d"]]))
    save(flag, tmp_path / "flag", notes={})
    assert cs.load(tmp_path / "flag").transform([[np.nan], [1.0]]).tolist() == [[1.0], [0.0]]
    assert days.get_feature_names_out().tolist() == ["d"]


def test_model_files_of_older_releases_predict(clustruct, tmp_path):
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    frame = pd.DataFrame({"d": DAYS.strftime("%Y-%m-%d"), "k": ["x", "y", "z"] * 40})
    encoder = OneHotEncoder(handle_unknown="infrequent_if_exist", sparse_output=False)
    steps = [("dates", make_pipeline(DateToDays(), SimpleImputer()), ["d"]), ("k", encoder, ["k"])]
    columns = ColumnTransformer(steps, verbose_feature_names_out=False)
    model = make_pipeline(columns, cs.FeatureClusterRegressor(2)).fit(frame, np.arange(N))
    notes = {"target": "y", "kind": "regression", "columns": {"d": "date", "k": "category"}}
    notes |= {"missing": "impute", "tasks": None, "base": None}
    save(model, tmp_path / "old", notes=notes)
    frame.to_csv(tmp_path / "t.csv", index=False)
    for way in WAYS:
        args = ("predict", tmp_path / "old", tmp_path / "t.csv", "--json", "--out-of-core", way)
        status, out, err = clustruct(*args)
        assert status == 0, err
        rows = json.loads(out)["predictions"]
        np.testing.assert_allclose([row["prediction"] for row in rows], model.predict(frame))


# ---- JSON arrays


@pytest.mark.parametrize("indent", [None, 2])
def test_arrays_of_records(both_ways, tmp_path, indent):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=N), "k": rng.choice(["é", 'b"}', "c, ]"], N)})
    frame = _target(frame, frame["a"])
    records = [
        {k: v for k, v in row.items() if k != "k" or i % 5}
        for i, row in enumerate(frame.to_dict("records"))
    ]
    path = tmp_path / "t.json"
    path.write_text("\ufeff" + json.dumps(records, indent=indent), encoding="utf-8")
    found = both_ways(path)
    assert found["rows"] == N
    assert found["by_name"]["k"]["missing"] == N // 5
    lines = tmp_path / "t.jsonl"  # what the file is called does not matter
    lines.write_bytes(path.read_bytes())
    again = both_ways(lines)
    assert again["predictions"] == found["predictions"]


# ---- Targets


@pytest.mark.parametrize("values", [[0, 1, 2], [1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5, 6, 7]])
def test_counts_are_numbers_and_a_question(values, both_ways):
    rng = np.random.default_rng(0)
    y = rng.choice(values, N)
    frame = pd.DataFrame({"a": y + rng.normal(size=N), "b": rng.normal(size=N), "y": y})
    found = both_ways(frame, *ALL_ROWS)
    assert found["target"]["kind"] == "regression"
    assert "--classification takes them for classes" in found["target"]["question"]
    (remark,) = found["remarks"]
    assert found["target"]["question"] in remark
    found = both_ways(frame, "--classification", *ALL_ROWS)
    assert found["target"]["kind"] == "classification"
    assert found["remarks"] == []
    found = both_ways(frame, "--regression", *ALL_ROWS)
    assert found["remarks"] == []


def test_two_numbers_are_classes_without_a_question():
    target = recognise_target(pd.Series([0, 1] * 20), "y", None, "t.csv")
    assert target.is_classes
    assert not target.question


def test_a_class_of_one_row_is_left_out(both_ways, clustruct):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=N), "b": rng.normal(size=N)})
    frame["y"] = np.where(frame["a"] > 0, "yes", "no")
    frame.loc[[5, 50], "y"] = ["maybe", "perhaps"]
    frame.loc[[7, 9, 11], "y"] = None
    found = both_ways(frame, *ALL_ROWS)
    assert (found["rows_read"], found["rows"]) == (N, N - 5)
    assert found["rows_left_out"] == [
        {"rows": 3, "reason": "the target is missing"},
        {"rows": 2, "reason": "their class has no other (maybe, perhaps)"},
    ]


def test_money_is_a_target(both_ways):
    rng = np.random.default_rng(0)
    values = rng.uniform(1000, 9000, N).round(2)
    frame = pd.DataFrame({"a": values / 1000, "b": rng.normal(size=N)})
    frame["y"] = [f"${value:,.2f}" for value in values]
    found = both_ways(frame)
    assert found["target"]["kind"] == "regression"
    assert np.mean(found["predictions"]) == pytest.approx(values.mean(), rel=0.1)


# ---- predict --keep


@pytest.fixture
def kept_model(clustruct, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"who": [f"{i:04d}" for i in range(N)], "a": rng.normal(size=N)})
    frame["many"] = pd.array(np.arange(N) * 3, dtype="Int64")
    frame.loc[3, "many"] = pd.NA
    frame["prediction"] = "none"
    frame["y"] = np.where(frame["a"] > 0, "yes", "no")
    for name, write in (("t.csv", frame.to_csv), ("t.parquet", frame.to_parquet)):
        write(tmp_path / name, index=False)
    out = tmp_path / "m.clustruct"
    args = ("--target", "y", "--columns", "a", "--clusters", "1", "--alpha", "0.01", "--json")
    assert clustruct("fit", tmp_path / "t.csv", *args, "--out", out)[0] == 0
    return out


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_columns_are_carried_through(kept_model, clustruct, tmp_path, name, way):
    args = ("predict", kept_model, tmp_path / name, "--out-of-core", way)
    out = tmp_path / "out.csv"
    status, _, err = clustruct(
        *args, "--keep", "who", "prediction", "--keep", "a", "many", "who", "--out", out
    )
    assert status == 0, err
    found = pd.read_csv(out, dtype=str)
    assert found.columns.tolist() == [
        *("who", "prediction in the table", "a", "many"),
        *("prediction", "probability no", "probability yes"),
    ]
    assert found["who"].tolist() == [f"{i:04d}" for i in range(N)]
    assert set(found["prediction in the table"]) == {"none"}
    assert found["many"].isna().sum() == 1
    assert float(found["many"][5]) == 15
    if name == "t.csv":
        assert found["many"][5] == "15"  # as it is written
    answers = tmp_path / "out.parquet"
    assert clustruct(*args, "--keep", "many", "who", "--out", answers)[0] == 0
    assert pd.read_parquet(answers)["who"].tolist() == found["who"].tolist()


@pytest.mark.parametrize("way", WAYS)
def test_columns_to_keep_must_be_there(kept_model, complaint_of, tmp_path, way):
    args = ("predict", kept_model, tmp_path / "t.csv", "--keep", "whom", "--out-of-core", way)
    complaint = complaint_of(*args)
    assert "has no column 'whom' (--keep). Did you mean 'who'?" in complaint


# ---- Numbers that are zero


def test_rounding_is_shown_as_zero(clustruct, tmp_path):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=N), rng.normal(size=N)
    a[0], b[0] = -1.766e-14, 3e-5
    frame = pd.DataFrame({"a": a, "b": b, "small": 1e-14 * rng.normal(size=N)})
    frame = _target(frame, 2 * a)
    frame.to_csv(tmp_path / "t.csv", index=False)
    status, out, _ = clustruct("fit", tmp_path / "t.csv", "--target", "y", *QUICK)
    assert status == 0
    assert "e-14" in next(line for line in out.splitlines() if " small " in line)
    assert "e-14" not in next(line for line in out.splitlines() if line.strip().startswith("a "))
    assert "3e-05" in out


def test_weights_that_are_rounding_are_shown_as_zero():
    from clustruct.cli.summary import _expert_table

    groups = [
        {"group": 0, "share": 0.5, "intercept": [-1.766e-14], "weights": {"a": 2.0, "b": 1e-17}},
        {"group": 1, "share": 0.5, "intercept": [1.0], "weights": {"a": -2.0, "b": 1e-4}},
    ]
    _, rows = _expert_table(groups, [])
    assert rows[0][2:] == ["0", "a +2, b 0"]
    assert rows[1][2:] == ["+1", "a -2, b +0.0001"]
