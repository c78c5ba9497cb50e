"""What columns are taken for, and what becomes of them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

import clustruct as cs
from clustruct.cli.preparing.columns import as_kind, check_missing, recognise
from clustruct.cli.preparing.preparation import blocks_of, fit_columns
from clustruct.cli.preparing.targets import recognise_target
from clustruct.estimators.columns.transformers import DateToDays, FilledText

N = 40
LONG = [f"a text of several words, the one numbered {i}" for i in range(N)]


def kind_of(values, **wishes):
    (column,) = recognise(pd.DataFrame({"c": values}), ["c"], wishes, "t.csv")
    return column.kind


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (np.arange(N) * 1.5, "number"),
        (np.arange(N) % 2 == 0, "number"),
        ([str(2 * i) for i in range(N)], "number"),
        (pd.array([1, None, 3] * 10, dtype="Int64"), "number"),
        (["a", "b"] * 20, "category"),
        (["a", "b", None, "c"] * 10, "category"),
        (pd.Categorical([1, 2] * 20), "category"),
        (["1", "2", "x"] * 10, "category"),
        (LONG, "text"),
        (["2020-01-01", "2021-12-31"] * 20, "date"),
        (["2020-01-01T10:00:00Z", None] * 20, "date"),
        (pd.date_range("2020-01-01", periods=N), "date"),
        ([f"id{i}" for i in range(N)], "left out"),
        ([f"name {i}" for i in range(15)], "left out"),
        ([None] * N, "left out"),
        ([7] * N, "left out"),
    ],
)
def test_kinds_are_recognised(values, kind):
    assert kind_of(values) == kind


def test_wishes_are_heard():
    assert kind_of(np.arange(N), c="category") == "category"
    assert kind_of([f"id{i}" for i in range(N)], c="text") == "text"


def test_row_numbers_are_left_out():
    frame = pd.DataFrame({"id": range(N), "Unnamed: 0": range(N), "year": range(1990, 1990 + N)})
    assert [c.used for c in recognise(frame, list(frame), {}, "t.csv")] == [False, False, True]


def test_text_in_a_number_is_shown():
    values = [str(i) for i in range(N)]
    values[16] = "abc"
    with pytest.raises(ValueError, match=r"t\.csv, column 'c': 1 .* 'abc' in row 17.*--category"):
        kind_of(values)
    with pytest.raises(ValueError, match=r"t\.csv, column 'c'.* 'abc' in row 17"):
        as_kind(pd.Series(values, name="c"), "number", "t.csv")


def test_lists_are_refused():
    with pytest.raises(ValueError, match=r"t\.csv, column 'c': its values are lists"):
        kind_of([[1], [2]])


@pytest.mark.parametrize("values", [[1.0, np.inf], [1.0, -np.inf]])
def test_infinite_numbers_are_shown(values):
    with pytest.raises(ValueError, match=r"t\.csv, column 'c': row 2 is infinite"):
        as_kind(pd.Series(values, name="c"), "number", "t.csv")


def test_dates_that_are_none_are_shown():
    with pytest.raises(ValueError, match=r"t\.csv, column 'c': 'soon' in row 2 is no date"):
        as_kind(pd.Series(["2020-01-01", "soon"], name="c"), "date", "t.csv")


def test_missing_values_are_shown():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [np.nan, 1.0]})
    with pytest.raises(
        ValueError, match=r"t\.csv, column 'b': no value in 1 rows \(1\).*--missing"
    ):
        check_missing(frame, ["a", "b"], "t.csv")


# ---- Targets


@pytest.mark.parametrize(
    ("values", "kind", "dtype"),
    [
        (np.arange(N) * 0.5, "regression", "f"),
        (np.arange(N), "regression", "f"),
        (["yes", "no"] * 20, "classification", "U"),
        ([True, False] * 20, "classification", "U"),
        ([0, 1] * 20, "classification", "i"),
        ([0.5, 1.5] * 20, "classification", "f"),
        ([1, 2, 3, 4, 5] * 8, "regression", "f"),
        (["01", "02", "03", "10"] * 10, "classification", "U"),
        (["$1,200", "$3,500.50", "$40"] * 10, "regression", "f"),
        (["1", "2.5", "3", "7"] * 10, "regression", "f"),
    ],
)
def test_targets_are_recognised(values, kind, dtype):
    target = recognise_target(pd.Series(values), "y", None, "t.csv")
    assert target.kind == kind
    assert target.values.dtype.kind == dtype


def test_targets_can_be_said():
    ratings = pd.Series([1, 2, 3, 4, 5] * 8)
    assert recognise_target(ratings, "y", "regression", "t.csv").values.dtype == np.float64
    numbers = pd.Series(np.repeat(np.arange(15), 3))
    assert recognise_target(numbers, "y", "classification", "t.csv").is_classes


@pytest.mark.parametrize(
    ("values", "wanted", "message"),
    [
        ([3] * N, None, "the target is '3' in every row, so that there is nothing to learn"),
        (["a", "b"] * 20, "regression", "values are not numbers, such as 'a' in row 1"),
        ([*map(str, range(N - 1)), "?"], None, r"not numbers, such as '\?' in row 40"),
        ([f"name {i}" for i in range(N)], None, "40 classes in 40 rows. Name another column"),
        (["a"] * 20 + ["b"], None, "all rows but 1 are of one class"),
    ],
)
def test_targets_that_are_none(values, wanted, message):
    with pytest.raises(ValueError, match=message) as caught:
        recognise_target(pd.Series(values), "y", wanted, "t.csv")
    assert "t.csv, column 'y'" in str(caught.value)


# ---- Preparation


def prepared(frame, scale="standard", missing="impute"):
    columns = recognise(frame, list(frame), {}, "t.csv")
    columns = [c for c in columns if c.used]
    clean = pd.DataFrame({c.name: as_kind(frame[c.name], c.kind, "t.csv") for c in columns})
    steps = fit_columns(clean, columns, scale, missing, "t.csv")
    return steps, steps.transform(clean)


def test_numbers_and_dates_are_standardised():
    frame = pd.DataFrame({"a": np.arange(N) ** 2.0, "d": pd.date_range("2020-01-01", periods=N)})
    frame.loc[3, "a"] = np.nan
    _, matrix = prepared(frame)
    assert matrix.columns.tolist() == ["a", "d"]
    np.testing.assert_allclose(matrix.mean(), 0.0, atol=1e-12)
    np.testing.assert_allclose(matrix.std(ddof=0), 1.0)


def test_columns_can_stay_as_they_are():
    frame = pd.DataFrame({"a": np.arange(N) * 2.0})
    _, matrix = prepared(frame, "none", "refuse")
    np.testing.assert_array_equal(matrix["a"], frame["a"])


def test_blocks_are_those_of_the_columns():
    frame = pd.DataFrame({"a": np.arange(N) ** 2.0, "k": ["x", "y"] * 20})
    frame["l"] = ["u", "v", "w", None] * 10
    frame.loc[::4, "a"] = np.nan
    steps, matrix = prepared(frame)
    levels = ["l: u", "l: v", "l: w", "l: missing"]
    assert matrix.columns.tolist() == ["a", "a: missing", "k: y", *levels]
    alone = "yes-or-no columns"
    assert blocks_of(steps).tolist() == ["numbers", alone, alone, "l", "l", "l", "l"]
    assert set(matrix.dtypes) == {np.dtype(np.float64)}
    steps, _ = prepared(frame[["a"]].dropna())
    assert blocks_of(steps) is None
    steps, _ = prepared(frame.rename(columns={"k": "dates"}))  # a category by that name
    assert len(set(blocks_of(steps))) == 3


def test_words_become_a_sparse_matrix_with_unique_names():
    words = ["apple", "berry", "cherry"]
    texts = [f"on the plate numbered {i} is one {words[i % 3]}" for i in range(N)]
    frame = pd.DataFrame({"plate": np.arange(N) ** 2, "one": texts, "two": texts[::-1]})
    steps, matrix = prepared(frame)
    names = steps.get_feature_names_out()
    assert matrix.shape[1] == len(names) == len(set(names))
    assert {"plate", "one: apple", "two: apple"} <= set(names)
    assert set(blocks_of(steps)) == {"numbers", "one", "two"}


def test_text_without_words_is_refused():
    frame = pd.DataFrame({"c": [f"! ? ! {'.' * i} !" for i in range(N)]})
    with pytest.raises(ValueError, match=r"t\.csv, column 'c': no words are left"):
        prepared(frame)


def test_transformers_take_what_python_gives_them():
    days = DateToDays().fit_transform(pd.DataFrame({"d": ["1970-01-03", None]}))
    np.testing.assert_array_equal(days, [[2.0], [np.nan]])
    frame = pd.DataFrame({"t": ["good", np.nan]})
    text = FilledText().fit(frame)
    assert text.transform(frame).tolist() == ["good", ""]
    assert text.get_feature_names_out().tolist() == ["t"]
    with pytest.raises(ValueError, match="feature names"):
        text.transform(pd.DataFrame({"other": ["good"]}))


def test_transformers_are_saved(tmp_path):
    frame = pd.DataFrame({"d": pd.date_range("2020-01-01", periods=N)})
    model = make_pipeline(DateToDays(), cs.FeatureClusterRegressor(1)).fit(frame, np.arange(N))
    cs.save(model, tmp_path / "m")
    np.testing.assert_array_equal(cs.load(tmp_path / "m").predict(frame), model.predict(frame))
