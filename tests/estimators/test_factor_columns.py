"""Columns of frames as factors: mistakes, and what is learnt of their levels."""

import dask.dataframe as dask
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import clustruct as cs
from clustruct import FeatureClusterRegressor
from clustruct.estimators.columns.factors import learn_factors
from clustruct.grouping.constraints import Free
from tests.estimators.policies import policies

MISTAKES = {
    "blocks": ({"blocks": [0, 0, 1, 1, 1]}, "blocks was given as well"),
    "constraint": ({"constraint": Free()}, "constraint was given as well"),
    "n_nonzero": ({"n_nonzero": 3}, "Factors and n_nonzero=3 cannot be combined"),
    "too few groups": ({"n_clusters": 2}, "less than the number of factors, 3"),
    "missing factor": ({"n_clusters": {"city": 3}}, r"missing: \['fuel', 'fleet'\]"),
    "unknown factor": (
        {"n_clusters": {"city": 3, "fuel": 1, "fleet": 1, "power": 1}},
        r"not a factor \['power'\]",
    ),
    "unknown column": ({"factors": {"town": "nominal"}}, "'town', which is no column of X"),
    "unknown kind": ({"factors": {"city": "sorted"}}, "kind='sorted' is no kind of factor"),
    "no factor": ({"factors": {"city": 3}}, r"factors\['city'\] is 3"),
    "levels": ({"factors": {"city": cs.Factor(levels=("a", "b"))}}, "not among the levels"),
    "bins of text": ({"factors": {"city": cs.Factor(bins=3)}}, "'city' of X is no column of num"),
    "name": ({"categorical_features": ["town"]}, "'town', which is no column of X"),
    "number": ({"categorical_features": [1, 7]}, "holds 7, which is no column of X"),
    "mask": ({"categorical_features": [True, False]}, "a mask of shape"),
    "text left over": ({"categorical_features": ["fuel"]}, "'city' of X is no column of numbers"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(mistake):
    frame, y = policies()
    parameters, message = MISTAKES[mistake]
    with pytest.raises(ValueError, match=message):
        FeatureClusterRegressor(**{"n_clusters": 7, **parameters}).fit(frame, y)


def changed(frame, name, value):
    """The frame with a value in some row."""
    column = frame[name].astype(object)
    column.iloc[4] = value
    return frame.assign(**{name: column})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: changed(f, "power", np.nan), "'power' of X holds NaN or infinity, 1 times, fir"),
        (lambda f: changed(f, "age", np.inf), "'age' of X holds NaN or infinity.* in row 4"),
        (lambda f: changed(f, "power", "much"), "holds values of several types"),
        (lambda f: changed(f, "city", ["a"]), "'city' of X holds values that cannot be levels"),
        (lambda f: f.assign(age=pd.Timestamp("2020-01-01")), "'age' of X is no column of numbers"),
        (lambda f: f.iloc[:0], "0 sample"),
    ],
)
def test_bad_frames(change, message):
    frame, y = policies()
    frame = change(frame)
    with pytest.raises(ValueError, match=message):
        FeatureClusterRegressor(7).fit(frame, y[: len(frame)])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f[["city", "power", "fuel", "age", "fleet"]], "must be in the same order"),
        (lambda f: f.rename(columns={"city": "town"}), "feature names should match"),
        (lambda f: f.drop(columns="fuel"), "feature names should match"),
        (lambda f: changed(f, "power", np.nan), "'power' of X holds NaN"),
        (lambda f: f.assign(city=7), "'city' of X was text in fit, such as 'a', and is other val"),
        (lambda f: f.assign(power="1.0"), "'power' of X is no column of numbers"),
        (lambda f: f.iloc[:0], "0 sample"),
    ],
)
def test_bad_frames_at_prediction(change, message):
    frame, y = policies()
    model = FeatureClusterRegressor(7).fit(frame, y)
    with pytest.raises(ValueError, match=message):
        model.predict(change(frame))


def test_arrays_for_a_model_of_a_frame():
    frame, y = policies()
    model = FeatureClusterRegressor(7).fit(frame, y)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        np.testing.assert_array_equal(model.predict(frame.to_numpy(object)), model.predict(frame))
    with (
        pytest.warns(UserWarning, match="does not have valid feature names"),
        pytest.raises(ValueError, match="'city' of X was text in fit"),
    ):
        model.predict(np.zeros((3, 5)))
    with pytest.raises(ValueError, match="data frames and NumPy arrays"):
        model.predict(sparse.csr_matrix((3, 5)))
    with pytest.raises(ValueError, match="data frames and NumPy arrays"):
        model.predict(dask.from_pandas(frame, npartitions=2))
    with pytest.raises(ValueError, match="data frames and NumPy arrays"):
        FeatureClusterRegressor(7).fit(dask.from_pandas(frame, npartitions=2), y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kind": "any"}, "kind='any'"),
        ({"bins": 0}, "bins=0"),
        ({"bins": (2.0, 1.0)}, "ascending edges"),
        ({"bins": (2.0, np.nan)}, "ascending edges"),
        ({"bins": 3, "levels": ("a",)}, "cannot be combined"),
        ({"levels": ("a", "a")}, "holds a level twice"),
        ({"min_weight": -1.0}, "min_weight=-1.0"),
    ],
)
def test_factors_that_cannot_be(parameters, message):
    with pytest.raises(ValueError, match=message):
        cs.Factor(**parameters)


# ---- Levels and their order


ORDERED = pd.Categorical(["b", "a"], ["b", "z", "a"], ordered=True)


def learn(values, weights=None, **asked):
    """The levels of a single column as a fit learns them."""
    frame = pd.DataFrame({"x": values})
    given = {"x": cs.Factor(**asked)} if asked else None
    columns, design = learn_factors(frame, ["x"], [0], given)
    columns, design = columns.settled(design, weights, float(len(frame)), given)
    return columns, design, frame


@pytest.mark.parametrize(
    ("values", "asked", "levels", "kind"),
    [
        (["b", "a", "c", "a"], {}, ("a", "b", "c"), "nominal"),
        (["b", "a", None, "a"], {}, ("a", "b", None), "nominal"),
        ([10, 9, 2, 9], {"kind": "ordinal"}, (2, 9, 10), "ordinal"),
        ([1.5, np.nan, -1.0], {"kind": "cyclic"}, (-1.0, 1.5, None), "cyclic"),
        (["b", "a", "b"], {"levels": ("z", "b", "a")}, ("b", "a"), "nominal"),
        (ORDERED, {}, ("b", "a"), "ordinal"),
        (ORDERED, {"kind": "nominal"}, ("b", "a"), "nominal"),
        (pd.Categorical(["b", "a"], ["b", "a"]), {"kind": "increasing"}, ("b", "a"), "increasing"),
        ([True, False], {}, (False, True), "nominal"),
        ([None, None], {}, (None,), "nominal"),
        ([1.0, 2.0, 3.0, 4.0], {"bins": 2}, ("< 3", ">= 3"), "ordinal"),
        ([1.0, 1.0, 1.0, 4.0], {"bins": 4}, ("< 4", ">= 4"), "ordinal"),
        ([5.0, 5.0], {"bins": 4}, ("all",), "ordinal"),
        ([1.0, np.nan, 9.0], {"bins": (0.0, 2.0, 9.0)}, ("< 9", ">= 9", None), "ordinal"),
        ([1.0, 2.0, 3.0], {"bins": (2.0, 3.0)}, ("< 2", "2 to 3", ">= 3"), "ordinal"),
        ([1.0, 2.0], {"bins": 2, "kind": "decreasing"}, ("< 2", ">= 2"), "decreasing"),
    ],
)
def test_levels_are_learnt_in_their_order(values, asked, levels, kind):
    columns, design, frame = learn(values, **asked)
    (factor,) = columns.factors
    assert factor.levels == levels
    assert factor.kind == kind
    assert factor.shares.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(
        factor.shares, np.bincount(design.codes[0], minlength=len(levels)) / len(frame)
    )
    # New data that is the same gets the same codes.
    np.testing.assert_array_equal(columns.encode(frame).codes[0], design.codes[0])


def test_bins_of_new_values():
    columns, _, _ = learn([1.0, 2.0, 3.0, 7.0], bins=(2.0, 5.0))
    new = pd.DataFrame({"x": [-1e9, 1.99, 2.0, 4.9, 5.0, 1e9, np.nan]})
    assert columns.encode(new).codes[0].tolist() == [0, 0, 1, 1, 2, 2, 3]  # 3 is unknown


def test_bins_of_missing_values_alone():
    columns, _, _ = learn([np.nan, np.nan], bins=3)
    assert columns.factors[0].levels == (None,)
    new = pd.DataFrame({"x": [1.0, np.nan]})
    assert columns.encode(new).codes[0].tolist() == [1, 0]  # 1 is unknown


def test_codes_of_many_levels_take_two_bytes():
    _, design, _ = learn(np.arange(1000), kind="ordinal")
    assert design.codes[0].dtype == np.uint16
    assert design.codes[0].tolist() == list(range(1000))
