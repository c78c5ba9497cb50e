"""Tables of relativities: against predictions, and against sums over rows by pandas."""

import csv
from dataclasses import fields, replace
from functools import cache

import numpy as np
import pandas as pd
import pytest

import clustruct as cs
from clustruct.estimators.columns.frames import columns_of

N = 600
FACTORS = {"age": cs.Factor("increasing", bins=5), "doors": "ordinal"}


def claims(n=N, seed=0):
    """Policies with missing values, numbers of claims and exposure in years."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "region": rng.choice(["north", "south", "o'east", None], n, p=[0.4, 0.3, 0.2, 0.1]),
            "power": rng.uniform(0.0, 3.0, n),
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.integers(18, 80, n)),
            "fleet": rng.random(n) < 0.3,
            "doors": rng.integers(2, 6, n),
        }
    )
    score = -0.5 + 0.8 * (frame["region"] == "north") + 0.3 * frame["power"] + 0.4 * frame["fleet"]
    years = rng.uniform(0.1, 1.0, n)
    return frame, rng.poisson(years * np.exp(score)).astype(float), years


CASES = {
    "poisson": (cs.FeatureClusterRegressor, {"loss": "poisson"}),
    "squared": (cs.FeatureClusterRegressor, {}),
    "quantile": (cs.FeatureClusterRegressor, {"loss": "quantile"}),
    "logistic": (cs.FeatureClusterClassifier, {}),
    "squared classes": (cs.FeatureClusterClassifier, {"loss": "squared"}),
}


@cache
def fitted(case, weighted=True):
    """A model of a case, and the rows it was fitted to."""
    kind, parameters = CASES[case]
    frame, y, years = claims()
    target = np.where(y > 0, "some", "none") if kind is cs.FeatureClusterClassifier else y
    rows = {"offset": np.log(years)}
    if weighted:
        rows["sample_weight"] = np.random.default_rng(1).integers(0, 3, len(frame)).astype(float)
    model = kind(12, alpha=1e-3, factors=FACTORS, **parameters).fit(frame, target, **rows)
    return model, frame, target, rows


@pytest.fixture(scope="module")
def poisson():
    return fitted("poisson")


def on_scale(model, table, frame, offset):
    """What the table is about, from the predictions of the model."""
    if table.scale == "odds":
        probability = model.predict_proba(frame, offset)[:, 1]
        return probability / (1.0 - probability)
    return (
        model.decision_function(frame, offset)
        if table.scale == "score"
        else model.predict(frame, offset)
    )


def by_table(model, table, frame):
    """The same from the base value and relativities, level by level."""
    product = table.multiplies
    found = np.full(len(frame), table.base)
    for name in frame:
        mine = {row.level: row.relativity for row in table if row.factor == name}
        if "per unit" in mine:
            unit = mine["per unit"]
            part = unit ** frame[name] if product else unit * frame[name]
        else:
            (factor,) = (each for each in model.factors_.factors if each.name == name)
            codes = factor.codes(columns_of(frame[[name]], [name])[0])
            part = np.array([mine[(*factor.levels, "unknown")[code]] for code in codes])
        found = found * part if product else found + part
    return found


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    "reference", [None, "mean", {"region": None, "age": 30, "fleet": True, "doors": 3}]
)
def test_base_and_relativities_make_up_the_prediction(case, reference):
    model, frame, target, rows = fitted(case)
    frame = frame.assign(region=frame["region"].where(frame.index > 9, "island"))
    table = model.relativities(frame, target, reference=reference, **rows)
    expected = on_scale(model, table, frame, None)
    # Effects of order one that nearly cancel leave a prediction with fewer digits.
    np.testing.assert_allclose(by_table(model, table, frame), expected, rtol=1e-12, atol=1e-15)
    assert table.multiplies == (case in ("poisson", "logistic"))


@pytest.mark.parametrize("case", CASES)
def test_sums_over_given_rows_are_those_of_pandas(case):
    model, frame, target, rows = fitted(case)
    weights, loads = rows["sample_weight"], np.exp(rows["offset"])
    table = model.relativities(frame, target, **rows)
    numbers = (target == "some").astype(float) if target.dtype.kind == "U" else target
    exposure = weights * loads if case == "poisson" else weights
    if case == "squared classes":
        predicted = None
    elif case == "logistic":
        predicted = model.predict_proba(frame, rows["offset"])[:, 1]
    else:
        predicted = model.predict(frame, rows["offset"])
    for row in table:
        mine = np.ones(len(frame), dtype=bool)
        if row.factor in ("region", "fleet", "doors"):
            values = frame[row.factor]
            mine = values.isna() if row.level is None else values == row.level
        elif row.factor == "age":
            ages, edges = frame["age"], model.factors_.factors[1].edges
            bins = edges.searchsorted(ages, side="right")
            names = [level for level in model.factors_.factors[1].levels if level is not None]
            mine = (
                ages.isna()
                if row.level is None
                else (bins == names.index(row.level)) & ~ages.isna()
            )
        assert row.exposure == pytest.approx(exposure[mine].sum(), rel=1e-12)
        assert row.observed == pytest.approx((weights * numbers)[mine].sum(), rel=1e-12)
        assert row.observed_mean == pytest.approx(row.observed / row.exposure, rel=1e-12)
        if predicted is None:
            assert row.fitted is row.fitted_mean is None
        else:
            assert row.fitted == pytest.approx((weights * predicted)[mine].sum(), rel=1e-12)
            assert row.fitted_mean == pytest.approx(row.fitted / row.exposure, rel=1e-12)


@pytest.mark.parametrize("case", ["poisson", "logistic"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_fit_keeps_the_sums_of_the_training_rows(case, weighted):
    model, frame, target, rows = fitted(case, weighted)
    kept, given = model.relativities(), model.relativities(frame, target, **rows)
    assert len(kept) == len(given)
    for mine, theirs in zip(kept, given, strict=True):
        assert mine.fitted is None
        assert mine.exposure == pytest.approx(theirs.exposure, rel=1e-12)
        assert mine.observed == pytest.approx(theirs.observed, rel=1e-12)


def test_searches_and_model_files_keep_them_as_well(tmp_path):
    frame, y, years = claims(300)
    weights = np.arange(300) % 3
    search = cs.FeatureClusterRegressorCV(
        prices=(1e-2, 1e-3), alphas=(1e-3,), cv=2, loss="poisson", factors=FACTORS, random_state=0
    ).fit(frame, y, sample_weight=weights, offset=np.log(years))
    table = search.relativities()
    for name in ("region", "fleet"):
        mine = [row for row in table if row.factor == name]
        assert sum(row.exposure for row in mine) == pytest.approx(weights @ years)
        assert sum(row.observed for row in mine) == pytest.approx(weights @ y)
    cs.save(search, tmp_path / "model")
    again = cs.load(tmp_path / "model").relativities()
    assert list(again) == list(table)
    assert again.base == table.base


def test_the_reference_is_the_level_with_the_most_exposure(poisson):
    model, frame, _, rows = poisson
    table = model.relativities()
    exposure = pd.Series(rows["sample_weight"] * np.exp(rows["offset"]))
    for name in ("region", "doors", "fleet"):
        most = exposure.groupby(frame[name]).sum().idxmax()
        assert table.references[name] == most
        assert {row.relativity for row in table if (row.factor, row.level) == (name, most)} == {1.0}
    # Other rows do not move it.
    few = frame[frame["region"] == "south"]
    assert model.relativities(few).references == table.references


def test_mean_effects_are_weighted_by_exposure(poisson):
    table = poisson[0].relativities(reference="mean")
    assert table.references == {}
    for name in ("region", "age", "doors", "fleet"):
        mine = [row for row in table if row.factor == name]
        logs = sum(row.exposure * np.log(row.relativity) for row in mine)
        assert logs == pytest.approx(0.0, abs=1e-9)


def test_groups_are_those_of_the_labels(poisson):
    model, *_ = poisson
    table = model.relativities()
    assert [row.group for row in table] == model.labels_.tolist()
    for group in set(model.labels_.tolist()):
        assert len({(row.effect, row.relativity) for row in table if row.group == group}) == 1
    assert next(row.kind for row in table if row.factor == "age") == "increasing"
    assert [row.kind for row in table if row.level == "per unit"] == ["numeric"]


def test_models_of_older_files_know_no_exposure(poisson):
    model, frame, y, rows = poisson
    columns, table = model.factors_, model.relativities()
    older = tuple(replace(each, exposure=None, observed=None) for each in columns.factors)
    try:
        model.factors_ = replace(columns, factors=older)
        before = model.relativities(reference=table.references)
        assert [row.relativity for row in before] == [row.relativity for row in table]
        assert {row.exposure for row in before} == {row.observed for row in before} == {None}
        assert "exposure" in before.rows()[0]
        assert model.relativities(frame, y, **rows)[0].exposure is not None
        assert set(model.relativities().references) == set(table.references)
    finally:
        model.factors_ = columns


def test_without_targets_there_is_nothing_observed(poisson):
    model, frame, _, rows = poisson
    table = model.relativities(frame, **rows)
    assert all(row.observed is None and row.fitted > 0.0 for row in table)


# ---- As frame, text and file


def test_tables_are_frames_text_and_files(poisson, tmp_path):
    model, frame, y, rows = poisson
    table = model.relativities()
    assert list(pd.DataFrame(table)) == [field.name for field in fields(cs.Relativity)]
    known = pd.DataFrame(table.rows())
    assert not {"fitted", "fitted_mean", "lower", "upper"} & set(known)
    assert "missing" in repr(table)
    assert "fitted mean" not in repr(table)
    assert "fitted mean" in repr(model.relativities(frame, y, **rows))
    assert "o&#x27;east" in table._repr_html_()
    table.to_csv(tmp_path / "tariff.csv")
    with (tmp_path / "tariff.csv").open(newline="") as stream:
        written = list(csv.DictReader(stream))
    assert [row["factor"] for row in written] == [row.factor for row in table]
    assert [float(row["relativity"]) for row in written] == [row.relativity for row in table]
    assert {row["level"] for row in written if row["factor"] == "region"} == {
        "north",
        "south",
        "o'east",
        "missing",
    }
    assert "0 levels of 0 factors" in repr(cs.Relativities())
    cs.Relativities().to_csv(tmp_path / "empty.csv")


# ---- Mistakes


def test_models_without_factors_or_with_several_outputs_have_none():
    frame, y, _ = claims(100)
    numbers = cs.FeatureClusterRegressor(1).fit(frame[["power", "doors"]], y)
    with pytest.raises(ValueError, match="fitted to numbers alone"):
        numbers.relativities()
    for kind, target in [
        (cs.FeatureClusterRegressor, np.column_stack([y, y])),
        (cs.FeatureClusterClassifier, np.arange(100) % 3),
    ]:
        model = kind(8, solver="greedy").fit(frame[["region", "fleet"]], target)
        with pytest.raises(ValueError, match="Fit a model for each output"):
            model.relativities()


def test_mistakes_in_arguments_are_named(poisson):
    model, frame, y, _ = poisson
    with pytest.raises(ValueError, match="y was given without X"):
        model.relativities(y=y)
    with pytest.raises(ValueError, match="'power', which is no factor"):
        model.relativities(reference={"power": 1.0})
    with pytest.raises(ValueError, match=r"'west', which is none of its levels. They are \["):
        model.relativities(reference={"region": "west"})
    with pytest.raises(ValueError, match="reference='most' is no choice"):
        model.relativities(reference="most")
    classifier, frame, target, _ = fitted("logistic")
    target = np.where(target == "some", "many", target)
    with pytest.raises(ValueError, match="'many', which is no class"):
        classifier.relativities(frame, target)


def test_a_base_value_far_from_all_rows_is_infinite_and_no_warning():
    years = np.repeat([2007.0, 2008.0, 2009.0], 20)
    X = pd.DataFrame({"year": years, "town": np.tile(["a", "b"], 30)})
    y = np.exp(years.max() - years)
    table = cs.FeatureClusterRegressor(2, alpha=1e-9, loss="poisson").fit(X, y).relativities()
    assert table.base == np.inf
    assert [row.relativity for row in table if row.factor == "year"] == pytest.approx(
        [np.exp(-1.0)]
    )
