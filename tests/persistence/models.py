"""Fitted models of every kind, and whether two of them are the same to the last bit."""

import dataclasses

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import clustruct as cs
from clustruct.estimators.columns.transformers import (
    FilledText,
    LevelEncoder,
    LevelText,
    MissingFlag,
    WordsOfColumn,
    WrittenDates,
    WrittenNumbers,
)

FEATURES = cs.datasets.make_clustered_features(60, 8, 3, random_state=0)
EXPERTS = cs.datasets.make_experts(80, 3, 2, random_state=0)
CLASSES = cs.datasets.make_experts(120, 3, 2, n_outputs=4, classification=True, random_state=0)
TASKS = cs.datasets.make_clustered_tasks(12, 4, 6, 2, random_state=0)
NAMED = pd.DataFrame(FEATURES.X, columns=[f"größe {j}" for j in range(8)])
SIGNS = np.where(FEATURES.y > 0, "up", "dn")
LEVELS = np.arange(60) % 5
COUNTRIES = ["at", None, "ch", "de", "größer"]
FRAME = pd.DataFrame(
    {
        "country": [COUNTRIES[level] for level in LEVELS],
        "size": FEATURES.X[:, 0],
        "new": LEVELS % 2 == 0,
        "age": LEVELS // 2,
    }
)


def of_features():
    yield cs.FeatureClusterRegressor(3).fit(NAMED, FEATURES.y), NAMED
    yield cs.FeatureClusterRegressor(3, n_nonzero=5).fit(FEATURES.X, FEATURES.y), FEATURES.X
    matrix = sparse.csr_array(FEATURES.X * (FEATURES.X > 0))
    yield cs.FeatureClusterRegressor(2, loss="huber").fit(matrix, FEATURES.y), matrix
    blocks = np.array(["a", "a", "b", "b", "b", "c", "c", "c"])
    counts = {"a": 1, "b": 2, "c": 2}
    model = cs.FeatureClusterRegressor(counts, blocks=blocks).fit(FEATURES.X, FEATURES.y)
    yield model, FEATURES.X
    many = np.column_stack([FEATURES.y, FEATURES.y[::-1]])
    yield cs.FeatureClusterRegressor(2).fit(FEATURES.X, many), FEATURES.X
    weights = {"up": 2.0, "dn": 1.0}
    yield cs.FeatureClusterClassifier(2, class_weight=weights).fit(NAMED, SIGNS), NAMED
    thirds = np.digitize(FEATURES.y, np.quantile(FEATURES.y, [1 / 3, 2 / 3]))
    single = FEATURES.X.astype(np.float32)
    yield cs.FeatureClusterClassifier(2, loss="squared").fit(single, thirds), single
    factors = {"age": "nominal", "country": cs.Factor(levels=["de", "ch", "at", "größer", "fr"])}
    yield cs.FeatureClusterRegressor(6, factors=factors).fit(FRAME, FEATURES.y), FRAME
    grid = {"alphas": (1e-1, 1e-2), "random_state": 0}
    search = cs.FeatureClusterRegressorCV(range(1, 4), cv=KFold(3), **grid)
    yield search.fit(NAMED, FEATURES.y), NAMED
    search = cs.FeatureClusterClassifierCV((1, 2), cv=3, scoring="accuracy", **grid)
    yield search.fit(FEATURES.X, SIGNS), FEATURES.X


def of_samples():
    one = {"n_init": 1, "random_state": 0}
    yield cs.SampleClusterRegressor(2, **one).fit(EXPERTS.X, EXPERTS.y), EXPERTS.X
    for gate in (True, GaussianNB(), make_pipeline(StandardScaler(), LogisticRegression())):
        model = cs.SampleClusterRegressor(2, gate=gate, **one)
        yield model.fit(EXPERTS.X, EXPERTS.y), EXPERTS.X
    model = cs.SampleClusterClassifier(2, gate=True, **one)
    yield model.fit(CLASSES.X, CLASSES.y), CLASSES.X
    model = cs.SampleClusterRegressorCV((1, 2), **one)
    yield model.fit(EXPERTS.X, EXPERTS.y), EXPERTS.X
    model = cs.SampleClusterClassifierCV((1, 2), criterion="cv", cv=2, **one)
    yield model.fit(CLASSES.X, CLASSES.y), CLASSES.X


def of_tasks():
    X, Y = TASKS.columns()
    yield cs.TaskClusterRegressor(2, random_state=0).fit(X, Y), X
    yield cs.TaskClusterRegressorCV((1, 2), cv=2, random_state=0).fit(X, Y), X
    signs = np.where(Y > 0, 1.0, 0.0)
    yield cs.TaskClusterClassifier(2, random_state=0).fit(X, signs), X
    yield cs.TaskClusterClassifierCV((1, 2), cv=2, random_state=0).fit(X, signs), X


def of_pipelines():
    frame = pd.DataFrame(
        {
            "size": [1.0, np.nan, 3.0, 4.0, 5.5, 6.0] * 5,
            "kind": ["a", "b", None, "a", "b", "c"] * 5,
            "words": ["good and bad", "bad", "very good", "fine", "not bad", "good"] * 5,
        }
    )
    columns = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["size"]),
            ("kinds", OneHotEncoder(handle_unknown="infrequent_if_exist"), ["kind"]),
            ("words", TfidfVectorizer(stop_words="english"), "words"),
        ]
    )
    target = np.arange(30) % 7 + np.tile([0.0, 1.0, 2.0], 10)
    model = Pipeline([("columns", columns), ("model", cs.FeatureClusterRegressor(3))])
    yield model.fit(frame, target), frame
    scaler = StandardScaler().set_output(transform="pandas")
    scaled = make_pipeline(scaler, cs.FeatureClusterRegressor(3))
    yield scaled.fit(NAMED, FEATURES.y), NAMED
    yield written()


def written():
    """A pipeline of our own transformers of columns, as the command line makes it."""
    frame = pd.DataFrame(
        {
            "date": ["02.01.1970", "1.10.2023", None, "3.4.2001", "5.6.2002"] * 6,
            "price": ["€ 1.234,50", "7", None, "3,5", "2"] * 6,
            "kind": ["a", "b", "c", "a", None, "b"] * 5,
            "two": ["yes", "no", "no"] * 10,
            "text": ["good and bad", "bad", "very good", None, "not bad"] * 6,
        }
    )
    levels = {"handle_unknown": "infrequent_if_exist", "sparse_output": False}
    dates = make_pipeline(WrittenDates("%d.%m.%Y"), SimpleImputer(), StandardScaler())
    prices = make_pipeline(WrittenNumbers(","), SimpleImputer(), FrozenEstimator(StandardScaler()))
    prices[-1].estimator.fit(np.arange(30.0)[:, None])
    columns = ColumnTransformer(
        [
            ("dates", dates, ["date"]),
            ("prices", prices, ["price"]),
            ("missing", make_pipeline(WrittenNumbers(","), MissingFlag()), ["price"]),
            ("kind", make_pipeline(LevelText(), LevelEncoder(min_frequency=6, **levels)), ["kind"]),
            ("two", LevelEncoder(drop="if_binary", **levels), ["two"]),
            ("text", make_pipeline(FilledText(), WordsOfColumn(min_df=2)), ["text"]),
        ],
        verbose_feature_names_out=False,
    )
    model = make_pipeline(columns, cs.FeatureClusterRegressor(3))
    return model.fit(frame, np.arange(30) % 7 + np.tile([0.0, 1.0, 2.0], 10)), frame


def every_model():
    """Fitted models with the samples to predict from."""
    yield from of_features()
    yield from of_samples()
    yield from of_tasks()
    yield from of_pipelines()


def same(a, b):
    """Whether two values are of the same type and hold the same bits."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray) and a.dtype.kind != "O":
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, np.ndarray):
        return a.shape == b.shape and same(a.ravel().tolist(), b.ravel().tolist())
    if sparse.issparse(a):
        return a.shape == b.shape and all(
            same(getattr(a, part), getattr(b, part)) for part in ("data", "indices", "indptr")
        )
    if isinstance(a, np.str_):  # the bytes of an empty one are whatever lies in memory
        return str(a) == str(b)
    if isinstance(a, np.generic):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    if isinstance(a, float):
        return np.float64(a).tobytes() == np.float64(b).tobytes()
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same(list(a), list(b)) and same(list(a.values()), list(b.values()))
    if dataclasses.is_dataclass(a) or (hasattr(a, "__dict__") and not isinstance(a, type)):
        return same(vars(a), vars(b))
    return a == b
