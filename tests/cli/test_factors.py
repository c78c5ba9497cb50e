"""Factors on the command line: from the options to models, predictions and tariffs."""

import json
import math
import sqlite3

import numpy as np
import pandas as pd
import pytest

import clustruct as cs
from clustruct import cli

MODEL = "policies.clustruct"
CLAIMS = ("--target", "claims", "--loss", "poisson", "--exposure", "years")
# Options that leave nothing to be searched
GIVEN = ("--price", "0.003", "--alpha", "0.01", "--test-size", "0")


@pytest.fixture(scope="module")
def policies():
    """Claims that rise with the bonus class and are more in two cities, whatever the fuel."""
    rng = np.random.default_rng(0)
    n = 400
    frame = pd.DataFrame(
        {
            "bonus": rng.integers(0, 12, n),
            "city": rng.choice(["1000", "1200", "01200", "2000"], n),
            "fuel": rng.choice(["petrol", "diesel"], n),
            "power": rng.normal(60.0, 10.0, n).round(1),
            "years": rng.uniform(0.2, 1.0, n).round(3),
        }
    )
    rate = np.exp(-1.0 + 0.15 * frame["bonus"] + 1.0 * frame["city"].isin(["01200", "2000"]))
    frame["claims"] = rng.poisson(rate * frame["years"])
    return frame


@pytest.fixture(scope="module")
def table(policies, tmp_path_factory):
    path = tmp_path_factory.mktemp("policies") / "policies.csv"
    policies.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def saved(table):
    """A saved model, without a search."""
    out = table.with_name(MODEL)
    options = ("--monotone", "bonus", "--category", "city", *GIVEN, "--out", str(out))
    assert cli.main(["fit", str(table), *CLAIMS, *options]) == 0
    return out


def factors_of(answer):
    return {factor["factor"]: factor for factor in answer["model"]["factors"]}


# ---- Fits


def test_a_tariff_from_end_to_end(clustruct, table, tmp_path):
    out = tmp_path / MODEL
    options = ("--ordinal", "bonus", "--monotone", "bonus", "--category", "city", "--out", out)
    status, told, err = clustruct("fit", table, *CLAIMS, *options)
    assert (status, err) == (0, "")
    text = " ".join(told.split())
    assert "monotone factor: 12 levels" in text
    assert "3 factors with 18 levels in" in text
    assert "Left out, as all levels have the same effect: fuel." in text
    assert "bonus was found to be increasing: objective 0." in text
    assert "01200, 2000" in text
    assert "On 80 rows held out" in text
    model = cs.load(out)[-1]
    assert [f.kind for f in model.factors_.factors] == ["increasing", "nominal", "nominal"]
    bonus = model.coef_[:12]
    assert (np.diff(bonus) >= 0).all()
    assert bonus[-1] > bonus[0] + 0.5


@pytest.mark.parametrize(("sign", "direction"), [(1, "increasing"), (-1, "decreasing")])
def test_the_direction_with_the_lower_objective_is_found(
    answer_of, policies, tmp_path, sign, direction
):
    path = tmp_path / "turned.csv"
    policies.assign(bonus=sign * policies["bonus"]).to_csv(path, index=False)
    found = factors_of(answer_of("fit", path, *CLAIMS, "--monotone", "bonus", *GIVEN))["bonus"]
    assert (found["kind"], found["direction"]["kind"]) == (direction, direction)
    assert found["direction"]["objective"] < found["direction"]["otherwise"]
    given = answer_of("fit", path, *CLAIMS, "--monotone", f"bonus={direction}", *GIVEN)
    again = factors_of(given)["bonus"]
    assert "direction" not in again  # there was nothing to find
    assert again["groups"] == found["groups"]


def test_a_direction_is_that_of_a_fit_with_the_other_factors(answer_of, tmp_path):
    """The bonus lowers the target in each town, and is highest where targets are."""
    rng = np.random.default_rng(1)
    town = rng.integers(0, 2, 300)
    bonus = 3 * town + rng.integers(0, 4, 300)
    frame = pd.DataFrame({"town": np.where(town, "a", "b"), "bonus": bonus})
    frame["y"] = 10.0 * town - bonus + 0.1 * rng.standard_normal(300)
    assert np.corrcoef(frame["bonus"], frame["y"])[0, 1] > 0.3
    path = tmp_path / "towns.csv"
    frame.to_csv(path, index=False)
    answer = answer_of("fit", path, "--target", "y", "--monotone", "bonus", *GIVEN)
    assert factors_of(answer)["bonus"]["kind"] == "decreasing"


def test_groups_in_all_or_a_price_for_each(answer_of, table):
    options = (*CLAIMS, "--category", "city", "--bins", "bonus=3", "power=50,60,70")
    asked = ("--alpha", "0.01", "--test-size", "0", "--clusters", "6")
    answer = answer_of("fit", table, *options, *asked)
    factors = factors_of(answer)
    assert sum(len(factor["groups"]) for factor in factors.values()) == 6
    assert [factors[name]["levels"] for name in ("bonus", "power", "city")] == [3, 4, 4]
    assert answer["model"]["groups"][0].keys() >= {"group", "weight", "size", "features"}
    few = answer_of("fit", table, *options, "--price", "10", "--alpha", "0.01", "--test-size", "0")
    assert [len(factor["groups"]) for factor in few["model"]["factors"]] == [1, 1, 1, 1]
    large = answer_of("fit", table, *options, *asked, "--min-weight", "90")
    rows = {name: table_rows(table, name, large) for name in ("city", "fuel")}
    assert all(count >= 90 for counts in rows.values() for count in counts)


def table_rows(table, name, answer):
    """Rows of each group of a factor."""
    column = pd.read_csv(table, dtype=str)[name]
    return [int(column.isin(g["levels"]).sum()) for g in factors_of(answer)[name]["groups"]]


def test_levels_have_the_order_of_their_kind(answer_of, tmp_path):
    rng = np.random.default_rng(2)
    days = pd.to_datetime("2019-11-28") + pd.to_timedelta(rng.integers(0, 6, 90), "D")
    frame = pd.DataFrame(
        {
            "number": rng.choice([2, 10, 9], 90),
            "word": rng.choice(["small", "medium", "large"], 90),
            "size": rng.choice(["small", "medium", "large"], 90),
            "day": days.strftime("%d.%m.%Y"),
            "y": rng.standard_normal(90),
        }
    )
    path, out = tmp_path / "ordered.csv", tmp_path / MODEL
    frame.to_csv(path, index=False)
    ordinal = ("--ordinal", "number", "word", "day", "size=small,medium,large")
    answer = answer_of("fit", path, "--target", "y", *ordinal, *GIVEN, "--out", out)
    levels = {f.name: list(f.levels) for f in cs.load(out)[-1].factors_.factors}
    assert levels["number"] == [2.0, 9.0, 10.0]
    assert levels["word"] == ["large", "medium", "small"]
    assert levels["size"] == ["small", "medium", "large"]
    assert levels["day"] == [str(day.date()) for day in sorted(days.unique())]
    (remark,) = answer["remarks"]
    assert "'word': its levels are text and sorted as such: large, medium, small." in remark


def test_without_the_options_categories_are_columns(answer_of, table, tmp_path):
    """Nor where another option has no place for factors."""
    for options in ((), ("--category", "city", "--nonzero", "3")):
        out = tmp_path / MODEL
        quick = ("--clusters", "9", "--alpha", "0.1", "--test-size", "0", "--out", out)
        answer = answer_of("fit", table, "--target", "claims", *quick, *options)
        assert answer["model"]["factors"] == []
        assert cs.load(out)[-1].factors_ is None
        hints = [remark for remark in answer["remarks"] if "--category city fuses" in remark]
        assert len(hints) == (not options)


# ---- Predictions


def test_levels_are_the_same_whatever_another_file_makes_of_them(
    answer_of, clustruct, policies, saved, table, tmp_path
):
    expected = [row["prediction"] for row in answer_of("predict", saved, table)["predictions"]]
    numbers = policies[policies["city"] != "01200"].copy()
    kept = [expected[place] for place in numbers.index]
    numbers["city"] = numbers["city"].astype(float)
    numbers["bonus"] = numbers["bonus"].astype(float)
    first = numbers.index[0]
    numbers.loc[first, "city"] = np.nan
    for name in ("new.csv", "new.parquet"):
        path = tmp_path / name
        numbers.to_csv(path, index=False) if name.endswith("csv") else numbers.to_parquet(path)
        status, out, err = clustruct("predict", saved, path, "--json")
        assert status == 0
        found = [row["prediction"] for row in json.loads(out)["predictions"]]
        np.testing.assert_allclose(found[1:], kept[1:], rtol=1e-12)
        assert "column 'city': 1 rows hold levels that were not in the fit, as a missing one" in err
    # A table in Python is taken as it is, too.
    raw = numbers.iloc[1:]
    predicted = cs.load(saved).predict(raw, offset=np.log(raw["years"]))
    np.testing.assert_allclose(predicted, kept[1:], rtol=1e-12)


def test_unknown_levels_have_the_mean_effect(answer_of, clustruct, policies, saved, tmp_path):
    path = tmp_path / "new.csv"
    policies.assign(city="9999", bonus=70).head(5).to_csv(path, index=False)
    status, out, err = clustruct("predict", saved, path, "--json")
    assert status == 0
    assert "column 'city': 5 rows hold levels that were not in the fit, as '9999'" in err
    assert "column 'bonus': 5 rows hold levels that were not in the fit, as '70'" in err
    model, rows = cs.load(saved), policies.head(5)
    offset = np.log(rows["years"])
    factors, coef = model[-1].factors_, model[-1].coef_
    means = [f.shares @ coef[factors.blocks == q] for q, f in enumerate(factors.factors)]
    fuel = dict(zip(factors.factors[2].levels, coef[factors.blocks == 2], strict=True))
    power = coef[-1] * model[0].transform(rows)["power"].to_numpy()
    scores = means[0] + means[1] + [fuel[f] for f in rows["fuel"]] + power + model[-1].intercept_
    found = [row["prediction"] for row in json.loads(out)["predictions"]]
    np.testing.assert_allclose(found, np.exp(scores + offset), rtol=1e-12)


# ---- Tariffs


def test_a_tariff_is_written_in_the_units_of_the_table(
    answer_of, clustruct, policies, saved, table, tmp_path
):
    files = {name: tmp_path / f"tariff.{name}" for name in ("csv", "sql", "python")}
    options = [part for name, path in files.items() for part in (f"--{name}", path)]
    status, out, err = clustruct("tariff", saved, "--reference", "bonus=3", "city=2000", *options)
    assert (status, err) == (0, "")
    assert "relativities multiply a base prediction" in out
    assert "Effect of numbers, for each unit from a centre: power" in " ".join(out.split())
    rows = pd.read_csv(files["csv"], dtype={"level": str}).set_index(["factor", "level"])
    assert rows.loc[("bonus", "3"), "relativity"] == rows.loc[("city", "2000"), "relativity"] == 1.0
    assert rows.loc["city"]["observed"].sum() == policies["claims"].sum()
    expected = [row["prediction"] for row in answer_of("predict", saved, table)["predictions"]]
    made = {}
    exec(files["python"].read_text(), made)
    predicted = [
        made["predict"](row, math.log(row["years"])) for row in policies.to_dict("records")
    ]
    np.testing.assert_allclose(predicted, expected, rtol=1e-9)
    with sqlite3.connect(":memory:") as base:
        base.create_function("exp", 1, math.exp)
        policies.to_sql("policies", base)
        found = pd.read_sql(files["sql"].read_text(), base)
    np.testing.assert_allclose(found["prediction"], expected, rtol=1e-9)


def test_the_base_of_a_tariff_is_at_the_centre_of_the_numbers(answer_of, policies, saved):
    told = answer_of("tariff", saved)
    assert told["centres"]["power"] == pytest.approx(policies["power"].mean())
    row = policies.iloc[[0]]
    relative = {(r["factor"], str(r["level"])): r["relativity"] for r in told["relativities"]}
    levels = [("city", row["city"].item()), ("fuel", row["fuel"].item())]
    levels += [("bonus", f"{row['bonus'].item():.1f}")]
    apart = row["power"].item() - told["centres"]["power"]
    rate = told["base"] * math.prod(relative[each] for each in levels)
    rate *= relative["power", "per unit"] ** apart
    predicted = cs.load(saved).predict(row, offset=np.log(row["years"]))
    assert predicted[0] == pytest.approx(rate * row["years"].item(), rel=1e-9)


def test_mistakes_about_a_tariff(clustruct, complaint_of, saved, table, tmp_path):
    for given, text in (
        ("city=3000", "'city' has no level '3000'"),
        ("fuel=coal", "'fuel' has no level 'coal'"),
        ("cty=1000", "Did you mean 'city'?"),
        ("city", "Give COL=LEVEL"),
    ):
        status, _, err = clustruct("tariff", saved, "--reference", given)
        assert status == 2
        assert text in err
    plain = tmp_path / "plain.clustruct"
    quick = ("--clusters", "9", "--alpha", "0.1", "--nonzero", "all", "--test-size", "0")
    clustruct("fit", table, "--target", "claims", *quick, "--out", plain)
    assert "is no model of factors" in complaint_of("tariff", plain)
    assert "does not exist" in complaint_of("tariff", tmp_path / "none.clustruct")


def test_columns_that_no_formula_takes(complaint_of, policies, tmp_path):
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(len(policies)), unit="D")
    holes = policies["power"].where(np.arange(len(policies)) % 4 > 0)
    changes = {"is a date": {"since": days}, "has missing values": {"power": holes}}
    for why, columns in changes.items():
        table, out = tmp_path / "t.csv", tmp_path / "t.clustruct"
        policies.assign(**columns).to_csv(table, index=False)
        options = ("--category", "city", *GIVEN, "--out", str(out))
        assert cli.main(["fit", str(table), *CLAIMS, *options]) == 0
        (name,) = columns
        complaint = complaint_of("tariff", out)
        assert f"the column {name!r} {why}" in complaint
        assert f"--drop {name!r}" in complaint


def test_a_reference_of_a_factor_with_an_equals_sign(answer_of, policies, tmp_path):
    table, out = tmp_path / "t.csv", tmp_path / "t.clustruct"
    policies.rename(columns={"city": "city=town"}).to_csv(table, index=False)
    answer_of("fit", table, *CLAIMS, "--category", "city=town", *GIVEN, "--out", out)
    told = answer_of("tariff", out, "--reference", "city=town=1200")
    rows = {(row["factor"], str(row["level"])): row for row in told["relativities"]}
    assert rows["city=town", "1200"]["relativity"] == 1.0


# ---- Mistakes

TOGETHER = "cannot both be meant"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("--ordinal bonus --category bonus", TOGETHER),
        ("--bins bonus=3 --category bonus", TOGETHER),
        ("--ordinal bonus --cyclic bonus", TOGETHER),
        ("--text city --ordinal city", TOGETHER),
        ("--ordinal claims", "--ordinal claims and --target cannot both be meant"),
        ("--ordinal years", "--ordinal years and --exposure cannot both be meant"),
        ("--monotone bonus --drop bonus", "--monotone bonus and --drop cannot both be meant"),
        ("--monotone bonus --columns city", "--columns without it"),
        ("--monotone bonus=up", "'up' is no direction"),
        ("--bins bonus", "Give COL=10"),
        ("--bins bonus=3,2", "Give COL=10"),
        ("--bins bonus=2 --ordinal bonus=1,2", TOGETHER),
        ("--ordinal bonus --samples", "--samples groups samples, and no levels"),
        ("--ordinal bonus --tasks city", "--tasks groups tasks, and no levels"),
        ("--ordinal bonus --nonzero 3", "--nonzero 3 is for features"),
        ("--ordinal bonus --out-of-core yes", "Give --out-of-core no"),
        ("--ordinal bonus --text fuel", "The column 'fuel' is text"),
        ("--category city --price 1 --clusters 5", "Give one"),
        ("--category city --clusters 1", "each of the 2 factors has a group"),
        ("--price 0.1 --drop city fuel", "no column of"),
    ],
)
def test_options_that_do_not_go_together(clustruct, table, options, text):
    status, _, err = clustruct("fit", table, *CLAIMS, *options.split())
    assert (status, "Traceback" in err) == (2, False)
    assert text in err


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("--ordinal bonnus", "Did you mean 'bonus'?"),
        ("--bins city=3", "--bins cuts numbers, and it is a category"),
        ("--ordinal city=1000,1200", "01200, 2000 is not among its levels as given"),
    ],
)
def test_columns_that_cannot_be_such_factors(complaint_of, table, options, text):
    assert text in complaint_of("fit", table, *CLAIMS, *options.split())


def test_targets_that_factors_are_not_for(clustruct, complaint_of, policies, tmp_path):
    path = tmp_path / "other.csv"
    classes = np.array(["a", "b", "c"])[policies.index % 3]
    frame = policies.assign(kind=classes, less=policies["claims"] - 1)
    frame.loc[7, "years"] = 0.0
    frame.to_csv(path, index=False)
    status, _, err = clustruct("fit", path, "--target", "kind", "--ordinal", "bonus")
    assert status == 2
    assert "has 3 classes" in err
    negative = ("--target", "less", "--loss", "poisson", "--ordinal", "bonus")
    assert "Give numbers of at least 0" in complaint_of("fit", path, *negative)
    assert "exposures must be above 0" in complaint_of("fit", path, *CLAIMS, "--ordinal", "bonus")


def test_levels_that_tell_nothing(answer_of, policies, tmp_path):
    """A factor with one level is left out; one with a level for each row is fused to one group."""
    path = tmp_path / "odd.csv"
    rows = policies.head(120)
    rows.assign(same="x", each=[f"r{i}" for i in range(120)]).to_csv(path, index=False)
    options = (*CLAIMS, "--category", "each", "same", "--price", "1", "--alpha", "0.01")
    answer = answer_of("fit", path, *options, "--test-size", "0")
    assert "same" not in factors_of(answer)
    assert any("'same': left out" in remark for remark in answer["remarks"])
    each = factors_of(answer)["each"]
    assert (each["levels"], len(each["groups"])) == (120, 1)


def test_two_classes_have_odds(clustruct, policies, tmp_path):
    path, out = tmp_path / "classes.csv", tmp_path / MODEL
    policies.assign(claims=np.where(policies["claims"] > 0, "yes", "no")).to_csv(path, index=False)
    options = ("--target", "claims", "--drop", "years", "--monotone", "bonus", *GIVEN, "--out", out)
    status, told, err = clustruct("fit", path, *options)
    assert status == 0, err
    assert "bonus was found to be increasing" in told
    assert "relativities multiply a base odds" in clustruct("tariff", out)[1]
