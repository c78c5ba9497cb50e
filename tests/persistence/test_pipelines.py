"""Pipelines that people build: saving and loading refuses none of them, and changes none."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.feature_selection import VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

import clustruct as cs

N = 60
RNG = np.random.default_rng(0)
NUMBERS = pd.DataFrame(RNG.standard_normal((N, 4)), columns=list("abcd"))
TABLE = pd.DataFrame(
    {
        "a": NUMBERS["a"],
        "level": RNG.choice(["x", "y", "z"], N),
        "code": RNG.integers(0, 4, N),
        "truth": RNG.choice([True, False], N),
        "category": pd.Categorical(RNG.choice(["low", "high"], N)),
        "gaps": np.where(RNG.random(N) < 0.2, np.nan, RNG.standard_normal(N)),
        "lost": np.where(RNG.random(N) < 0.2, None, RNG.choice(["p", "q"], N)),
        "text": RNG.choice(["good film", "bad bad film", "so so"], N),
    }
)
SCALERS = [
    StandardScaler(),
    StandardScaler(with_mean=False, with_std=False),
    RobustScaler(with_centering=False),
    MaxAbsScaler(),
    MinMaxScaler(),
    Normalizer(),
    Binarizer(),
    PolynomialFeatures(2),
    PCA(2),
    TruncatedSVD(2),
    VarianceThreshold(),
    SimpleImputer(add_indicator=True),
    FunctionTransformer(),
    FrozenEstimator(StandardScaler().fit(NUMBERS)),
    make_union(StandardScaler(), PCA(2)),
    FeatureUnion([("left", "drop"), ("right", MinMaxScaler())]),
    make_pipeline(StandardScaler(), PCA(2)),
    StandardScaler().set_output(transform="pandas"),
    "passthrough",
    None,
]
VECTORIZERS = [
    CountVectorizer(stop_words="english", binary=True),
    TfidfVectorizer(),
    TfidfVectorizer(use_idf=False),
    TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 3)),
    TfidfVectorizer(vocabulary=["good", "bad"]),
    HashingVectorizer(n_features=16),
    make_pipeline(CountVectorizer(), TfidfTransformer()),
    make_union(CountVectorizer(), TfidfVectorizer()),
]
ENCODERS = [
    OneHotEncoder(),
    OneHotEncoder(drop="first"),
    OneHotEncoder(drop="if_binary", sparse_output=False),
    OneHotEncoder(min_frequency=10, handle_unknown="infrequent_if_exist"),
    OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2),
]


def name(value):
    return repr(value).replace("\n", "").replace(" ", "")[:60]


def assert_comes_back(first, X, tmp_path, model=None):
    model = make_pipeline(first, cs.FeatureClusterRegressor(2)) if model is None else model
    model.fit(X, NUMBERS["a"] + 0.1 * NUMBERS["b"])
    cs.save(model, tmp_path / "m")
    np.testing.assert_array_equal(cs.load(tmp_path / "m").predict(X), model.predict(X))


@pytest.mark.parametrize("scaler", SCALERS, ids=name)
def test_transformers_of_numbers(scaler, tmp_path):
    assert_comes_back(scaler, NUMBERS, tmp_path)
    if not isinstance(scaler, FrozenEstimator):  # which was fitted to names
        assert_comes_back(scaler, NUMBERS.to_numpy(), tmp_path)


@pytest.mark.parametrize("vectorizer", VECTORIZERS, ids=name)
def test_vectorizers_alone_and_of_a_column(vectorizer, tmp_path):
    assert_comes_back(vectorizer, TABLE["text"].tolist(), tmp_path)
    columns = make_column_transformer((vectorizer, "text"), (StandardScaler(), ["a", "code"]))
    assert_comes_back(columns, TABLE, tmp_path)


@pytest.mark.parametrize("encoder", ENCODERS, ids=name)
@pytest.mark.parametrize(
    "names", [["level"], ["code"], ["truth"], ["category", "lost"], ["level", "code"]], ids=str
)
def test_encoders_alone_and_of_columns(encoder, names, tmp_path):
    assert_comes_back(encoder, TABLE[names], tmp_path)
    columns = make_column_transformer(
        (encoder, names), (SimpleImputer(), ["gaps"]), remainder="passthrough"
    )
    assert_comes_back(columns, TABLE[[*names, "gaps", "a"]], tmp_path)


def test_other_compositions(tmp_path):
    texts = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder())
    parts = [(texts, ["lost", "level"]), (MissingIndicator(), ["gaps"])]
    assert_comes_back(make_column_transformer(*parts), TABLE, tmp_path)
    by_place = make_column_transformer((OneHotEncoder(), [1]), (StandardScaler(), [0, 2]))
    assert_comes_back(by_place, TABLE.to_numpy(object), tmp_path)
    some = make_column_transformer((StandardScaler(), slice(0, 2)), ("drop", ["d"]))
    assert_comes_back(some, NUMBERS, tmp_path)
    assert_comes_back(DictVectorizer(), TABLE[["a", "level"]].to_dict("records"), tmp_path)
    wide = sparse.csr_array(RNG.random((N, 20)) * (RNG.random((N, 20)) < 0.3))
    assert_comes_back(TfidfTransformer(use_idf=False), wide, tmp_path)
    model = TransformedTargetRegressor(cs.FeatureClusterRegressor(2), transformer=StandardScaler())
    assert_comes_back(None, NUMBERS, tmp_path, model)
