"""Effects per raw unit are what the whole pipeline's answers change by."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)

import clustruct as cs
from clustruct.estimators.columns.transformers import DateToDays, FilledText
from clustruct.explanation.effects import raw_effects
from clustruct.explanation.origins import origins_of

pandas = pytest.importorskip("pandas")

N = 120
NUMBERS = ("size", "age", "rooms", "plain")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    days = pandas.Timestamp("2015-01-01") + pandas.to_timedelta(rng.integers(0, 3000, N), "D")
    size = rng.normal(80, 20, N)
    size[rng.random(N) < 0.2] = np.nan
    return pandas.DataFrame(
        {
            "size": size,
            "age": rng.uniform(0, 60, N),
            "rooms": rng.integers(1, 7, N).astype(float),
            "plain": rng.normal(0, 0.1, N),
            "sold": days,
            "heat": rng.choice(["gas", "oil", "wood"], N),
            "sex: f": rng.choice(["f", "m"], N),
            "town": rng.choice(
                [f"t{k}" for k in range(6)], N, p=[0.4, 0.4, 0.05, 0.05, 0.05, 0.05]
            ),
            "words": rng.choice(["good film", "bad film", "good book"], N),
        }
    )


@pytest.fixture(scope="module")
def answers(table):
    rng = np.random.default_rng(1)
    return table["age"] * 0.3 + (table["heat"] == "gas") * 4 + rng.normal(0, 1, N)


def preparation():
    size = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    return ColumnTransformer(
        [
            ("a", size, ["size"]),
            ("b", make_pipeline(SimpleImputer(), RobustScaler()), ["age"]),
            ("c", MinMaxScaler(), [2]),
            ("d", "passthrough", slice("plain", "plain")),
            ("e", make_pipeline(DateToDays(), StandardScaler()), ["sold"]),
            ("f", OneHotEncoder(), ["heat"]),
            ("g", OneHotEncoder(drop="if_binary"), ["sex: f"]),
            ("h", OneHotEncoder(max_categories=3), ["town"]),
            ("i", make_pipeline(FilledText(), TfidfVectorizer()), ["words"]),
        ]
    )


@pytest.fixture(scope="module")
def model(table, answers):
    return make_pipeline(preparation(), cs.FeatureClusterRegressor(6)).fit(table, answers)


def changed(table, column, change):
    other = table.copy()
    other[column] = change(other[column])
    return other


def effect(found, column, level=""):
    (place,) = [
        j
        for j, origin in enumerate(found.origins)
        if (origin.column, origin.level) == (column, level) and origin.kind != "missing"
    ]
    return found.values[place], found.units[place]


def test_a_unit_of_a_number_changes_the_answer_by_its_effect(model, table):
    found = raw_effects(model)
    full = table.assign(size=table["size"].fillna(80.0))
    for column in NUMBERS:
        difference = model.predict(changed(full, column, lambda x: x + 1)) - model.predict(full)
        value, unit = effect(found, column)
        np.testing.assert_allclose(difference, value, rtol=1e-7, atol=1e-9)
        assert unit == "per unit"


def test_dates_that_span_years_are_told_by_the_year(model, table):
    value, unit = effect(raw_effects(model), "sold")
    later = changed(table, "sold", lambda x: x + pandas.Timedelta(days=1461))
    np.testing.assert_allclose(model.predict(later) - model.predict(table), 4 * value, rtol=1e-6)
    assert unit == "per year"


def test_a_level_is_compared_with_the_others_or_with_the_one_left_out(model, table):
    found = raw_effects(model)

    def at(column, level):
        return model.predict(changed(table, column, lambda x: level))

    heat = {level: at("heat", level) for level in ("gas", "oil", "wood")}
    for level, answer in heat.items():
        others = np.mean([heat[other] for other in heat if other != level], axis=0)
        value, unit = effect(found, "heat", level)
        np.testing.assert_allclose(answer - others, value, atol=1e-9)
        assert unit == "against the other levels"
    value, unit = effect(found, "sex: f", "m")
    np.testing.assert_allclose(at("sex: f", "m") - at("sex: f", "f"), value, atol=1e-9)
    assert unit == "against f"


def test_rare_levels_are_one_called_other(model, table):
    found = raw_effects(model)
    levels = [origin.level for origin in found.origins if origin.column == "town"]
    assert levels == ["t0", "t1", "other"]
    at = {
        level: model.predict(changed(table, "town", lambda x, t=town: t))
        for level, town in zip(levels, ("t0", "t1", "t4"), strict=True)
    }
    value, _ = effect(found, "town", "other")
    np.testing.assert_allclose(at["other"] - (at["t0"] + at["t1"]) / 2, value, atol=1e-9)


def test_a_missing_value_has_an_effect_of_its_own(model, table):
    found = raw_effects(model)
    (place,) = [j for j, origin in enumerate(found.origins) if origin.kind == "missing"]
    median = table["size"].median()
    missing = model.predict(table.assign(size=np.nan)) - model.predict(table.assign(size=median))
    np.testing.assert_allclose(missing, found.values[place], atol=1e-9)
    assert found.units[place] == "if missing"


def test_words_have_no_unit(model):
    found = raw_effects(model)
    words = [j for j, origin in enumerate(found.origins) if origin.kind == "text"]
    assert len(words) == 4
    assert {found.origins[j].column for j in words} == {"words"}
    assert np.isnan(found.values[words]).all()
    assert not any(np.array(found.units)[words])


def test_counted_words_count_by_the_occurrence():
    texts = ["good film", "bad film", "good good book", "bad book"] * 5
    model = make_pipeline(CountVectorizer(), cs.FeatureClusterRegressor(2))
    found = raw_effects(model.fit(texts, [1.0, 0.0, 2.0, 0.0] * 5))
    (place,) = np.flatnonzero(model[0].get_feature_names_out() == "good")
    once, twice = model.predict(["good film", "good good film"])
    assert found.values[place] == pytest.approx(twice - once)
    assert set(found.units) == {"per occurrence"}


@pytest.mark.parametrize(
    "steps",
    [
        [StandardScaler()],
        [MaxAbsScaler(), StandardScaler()],
        [SimpleImputer(), MinMaxScaler((-3, 5))],
        [SelectKBest(k=2), StandardScaler()],
        [FrozenEstimator(StandardScaler().fit(np.arange(12.0).reshape(4, 3) ** 2))],
        [FunctionTransformer(), StandardScaler(with_std=False)],
        [FeatureUnion([("a", StandardScaler()), ("b", MaxAbsScaler())])],
        [make_column_transformer((StandardScaler(), [True, False, True]), remainder="passthrough")],
    ],
)
def test_log_odds_change_by_the_effects_of_all_features_of_a_column(steps):
    rng = np.random.default_rng(0)
    X = rng.normal(5, [1, 10, 100], (80, 3))
    y = X[:, 0] + X[:, 2] / 100 + rng.normal(0, 1, 80) > 6
    model = make_pipeline(*steps, cs.FeatureClusterClassifier(2)).fit(X, y)
    found = raw_effects(model)
    assert all(found.units)
    for j in range(3):
        mine = [place for place, origin in enumerate(found.origins) if origin.column == f"x{j}"]
        difference = model.decision_function(X + np.eye(3)[j]) - model.decision_function(X)
        np.testing.assert_allclose(difference, found.values[0, mine].sum(), atol=1e-9)


def test_steps_that_mix_or_bend_columns_leave_no_unit():
    X = np.random.default_rng(0).uniform(1, 2, (40, 3))
    for steps in ([PCA(2)], [FunctionTransformer(np.log)], [StandardScaler(), PCA(3)]):
        model = make_pipeline(*steps, cs.FeatureClusterRegressor(2)).fit(X, X.sum(axis=1))
        found = raw_effects(model)
        assert not any(found.units)
        assert len(found.units) == final_width(model)


def final_width(model):
    return model[-1].n_features_in_


def test_without_steps_effects_are_the_weights():
    problem = cs.datasets.make_experts(80, 3, 2, random_state=0)
    model = cs.SampleClusterRegressor(2, n_init=1, random_state=0).fit(problem.X, problem.y)
    found = raw_effects(model)
    np.testing.assert_array_equal(found.values, model.experts_)
    assert not found.rescaled
    assert [origin.column for origin in origins_of(model)] == ["x0", "x1", "x2"]


def test_a_filled_column_is_known_to_be(model):
    filled = {origin.column for origin in origins_of(model) if origin.imputed}
    assert filled == {"size", "age"}


class Doubled(TransformerMixin, BaseEstimator):
    """A step of one's own, which names no features."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.hstack([X, X])


ROUNDED = FunctionTransformer(np.round, feature_names_out="one-to-one")
STEPS = {
    "names nothing": (Doubled(), [("", "other")] * 4),
    "named nothing before": (make_pipeline(Doubled(), StandardScaler()), [("", "other")] * 4),
    "bends each column": (PowerTransformer(), [("a", "other"), ("b", "other")]),
    "drops a part": (
        FeatureUnion([("no", "drop"), ("yes", "passthrough"), ("scaled", MaxAbsScaler())]),
        [("a", "number"), ("b", "number")] * 2,
    ),
    "levels of halves": (
        make_pipeline(MaxAbsScaler(), ROUNDED, OneHotEncoder(sparse_output=False)),
        None,
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_origins_are_told_as_far_as_steps_can_be_followed(name):
    step, expected = STEPS[name]
    rng = np.random.default_rng(0)
    X = pandas.DataFrame({"a": rng.uniform(1, 9, 40), "b": rng.uniform(1, 9, 40)})
    model = make_pipeline(step, cs.FeatureClusterRegressor(2)).fit(X, rng.standard_normal(40))
    found = [(origin.column, origin.kind) for origin in origins_of(model)]
    if expected is None:
        expected = [("", "other")] * model[-1].n_features_in_
    assert found == expected
