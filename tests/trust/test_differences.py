"""Tests of differences between the groups of models."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import clustruct as cs
from clustruct.trust import selective


def levels(seed, effects, n=150, spread=1.0):
    rng = np.random.default_rng(seed)
    names = np.array(list("abcdefgh"))
    codes = rng.integers(8, size=n)
    y = np.asarray(effects)[codes] + spread * rng.standard_normal(n)
    return pd.DataFrame({"level": pd.Categorical(names[codes])}), y


def test_a_model_of_one_factor_agrees_with_its_level_means(monkeypatch):
    """Without ridge the groups are those of exact k-means of the means."""
    monkeypatch.setattr(selective, "STEPS", 2)
    frame, y = levels(0, [0, 0, 0, 2, 2, 2, 4, 4])
    model = cs.FeatureClusterRegressor(3, alpha=0.0).fit(frame, y)
    tests = cs.compare_groups(model, frame, y)
    assert tests.method == "selective"
    by_level = pd.DataFrame({"y": y, "level": frame["level"]}).groupby("level", observed=True)["y"]
    means, sizes = by_level.mean(), by_level.size()
    variance = ((y - means[frame["level"]].to_numpy()) ** 2).sum() / (y.size - means.size)
    alone = cs.compare_groups_1d(means, 3, np.sqrt(variance / sizes))
    for mine, theirs in zip(tests, alone, strict=True):
        assert mine.difference == pytest.approx(theirs.difference)
        assert mine.std_error == pytest.approx(theirs.std_error)
        assert mine.p_value == pytest.approx(theirs.p_value, rel=0.05)


def split_p_values(effect, n_problems):
    found = []
    for seed in range(n_problems):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((80, 4))
        y = effect * X[:, :2].sum(axis=1) + rng.standard_normal(80)
        model = cs.FeatureClusterRegressor(2, solver="greedy").fit(X, y)
        (test,) = cs.compare_groups(model, X, y, random_state=seed)
        found.append(test.p_value)
    return np.array(found)


def test_split_p_values_are_uniform_where_nothing_differs():
    assert kstest(split_p_values(0.0, 60), "uniform").pvalue > 0.01


def test_split_finds_what_differs():
    assert np.median(split_p_values(1.0, 9)) < 1e-4  # of Student's t, with 40 rows


@pytest.mark.parametrize("classes", [2, 3])
def test_classes(classes):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 6))
    scores = X[:, :3].sum(axis=1) + rng.logistic(size=300)
    y = np.digitize(scores, [0.0] if classes == 2 else [-0.8, 0.8])
    model = cs.FeatureClusterClassifier(2).fit(X, y)
    (test,) = cs.compare_groups(model, X, y, random_state=0)
    assert test.p_value < 1e-4


def test_counts_with_an_offset():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 6))
    offset = rng.uniform(0, 1, 300)
    y = rng.poisson(np.exp(0.4 * X[:, :3].sum(axis=1) + offset))
    model = cs.FeatureClusterRegressor(2, loss="poisson").fit(X, y, offset=offset)
    (test,) = cs.compare_groups(model, X, y, offset=offset, random_state=0)
    assert test.p_value < 1e-6
    assert test.difference == pytest.approx(-0.4, abs=4 * test.std_error)


def test_factors_are_compared_by_themselves():
    frame, y = levels(0, [0, 0, 0, 0, 2, 2, 2, 2], n=200)
    frame["other"] = pd.Categorical(np.random.default_rng(1).choice(list("xyz"), 200))
    y = y + frame["other"].map({"x": 0.0, "y": 0.0, "z": 3.0}).to_numpy(dtype=float)
    model = cs.FeatureClusterRegressor({"level": 2, "other": 2}).fit(frame, y)
    tests = cs.compare_groups(model, frame, y, random_state=0)
    assert [test.names[0].split(":")[0] for test in tests] == ["level", "other"]
    assert all(test.p_value < 1e-3 for test in tests)


def test_a_pipeline_names_its_columns():
    problem = cs.datasets.make_clustered_features(200, 4, 2, random_state=0)
    frame = pd.DataFrame(problem.X, columns=["age", "bmi", "height", "income"])
    model = make_pipeline(StandardScaler(), cs.FeatureClusterRegressor(2)).fit(frame, problem.y)
    (test,) = cs.compare_groups(model, frame, problem.y, random_state=0)
    named = [name for members in test.names for name in members.split(", ")]
    assert sorted(named) == sorted(frame.columns)


def test_what_cannot_be_had_is_said():
    frame, y = levels(0, [0, 0, 0, 0, 2, 2, 2, 2])
    X = np.random.default_rng(0).standard_normal((150, 4))
    plain = cs.FeatureClusterRegressor(2).fit(X, y)
    search = cs.FeatureClusterRegressorCV(prices=0.1).fit(frame, y)
    huber = cs.FeatureClusterRegressor(2, loss="huber").fit(frame, y)
    for model, rows, message in [
        (plain, X, "one factor"),
        (search, frame, "not chosen"),
        (huber, frame, "squared loss"),
    ]:
        with pytest.raises(ValueError, match=f"{message}.*method='split'"):
            cs.compare_groups(model, rows, y, method="selective")
    experts = cs.SampleClusterRegressor(2).fit(X, y)
    with pytest.raises(ValueError, match="groups samples"):
        cs.compare_groups(experts, X, y)
    with pytest.raises(ValueError, match="method='exact'"):
        cs.compare_groups(plain, X, y, method="exact")
