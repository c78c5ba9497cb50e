"""Blocks from the columns that a ColumnTransformer makes."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import clustruct as cs

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "size": RNG.standard_normal(60),
        "age": RNG.standard_normal(60),
        "colour": RNG.choice(["red", "green", "blue"], 60),
        "town": RNG.choice(["a", "b", "c", "d", "e"], 60, p=[0.5, 0.44, 0.02, 0.02, 0.02]),
        "words": RNG.choice(["good one", "bad one", "so so"], 60),
    }
)
ENCODERS = {
    "plain": OneHotEncoder(),
    "sparse": OneHotEncoder(sparse_output=False),
    "one dropped": OneHotEncoder(drop="first"),
    "dropped if two": OneHotEncoder(drop="if_binary"),
    "rare ones joined": OneHotEncoder(min_frequency=3),
    "rare ones joined, one dropped": OneHotEncoder(min_frequency=3, drop="first"),
    "at most three": OneHotEncoder(max_categories=3, handle_unknown="infrequent_if_exist"),
    "filled before": make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()),
}


def fitted(encoder, **options):
    parts = [
        ("numbers", StandardScaler(), ["size"]),
        ("kinds", encoder, ["colour", "town"]),
        ("text", TfidfVectorizer(), "words"),
        ("gone", "drop", ["age"]),
    ]
    return ColumnTransformer(parts, **options).fit(FRAME)


@pytest.mark.parametrize("name", ENCODERS)
def test_every_column_has_the_block_of_its_source(name):
    columns = fitted(ENCODERS[name])
    sources = {"numbers__size": "numbers", "kinds__colour": "colour", "kinds__town": "town"}
    expected = [
        next((block for start, block in sources.items() if made.startswith(start)), "text")
        for made in columns.get_feature_names_out()
    ]
    assert cs.column_blocks(columns).tolist() == expected


def test_parts_are_joined_or_left_alone():
    columns = fitted(OneHotEncoder(), remainder="passthrough").set_params(gone="passthrough")
    columns.fit(FRAME)
    blocks = cs.column_blocks(columns, together=["numbers", "gone"], alone="kinds")
    assert blocks.tolist() == ["numbers"] + ["-1"] * 8 + ["text"] * 4 + ["numbers"]
    assert set(cs.column_blocks(columns, together=("kinds", "text"))) == {
        "numbers",
        "kinds",
        "gone",
    }


def test_blocks_go_into_a_model():
    columns = fitted(OneHotEncoder())
    blocks = cs.column_blocks(columns, alone="numbers")
    counts = {"colour": 2, "town": 2, "text": 1}
    model = make_pipeline(columns, cs.FeatureClusterRegressor(counts, blocks=blocks))
    labels = model.fit(FRAME, RNG.standard_normal(60))[-1].labels_
    for name, count in counts.items():
        assert np.unique(labels[blocks == name]).size <= count
    assert not set(labels[blocks == "colour"]) & set(labels[blocks == "town"])


def test_columns_without_names_and_names_that_are_taken():
    unnamed = ColumnTransformer([("kinds", OneHotEncoder(), [2, 3])]).fit(FRAME.to_numpy())
    assert set(cs.column_blocks(unnamed)) == {"kinds__0", "kinds__1"}
    parts = [("colour", StandardScaler(), ["size"]), ("k", OneHotEncoder(), ["colour", "town"])]
    taken = ColumnTransformer(parts).fit(FRAME)
    assert set(cs.column_blocks(taken)) == {"colour", "k__colour", "town"}


def test_what_is_wrong_is_said():
    with pytest.raises(ValueError, match="fitted ColumnTransformer, got StandardScaler"):
        cs.column_blocks(StandardScaler())
    with pytest.raises(NotFittedError):
        cs.column_blocks(ColumnTransformer([("a", "passthrough", [0])]))
    with pytest.raises(ValueError, match="hold 'dates', which is no part"):
        cs.column_blocks(fitted(OneHotEncoder()), together=["numbers", "dates"])
