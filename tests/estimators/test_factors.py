"""Data frames with categories: fits and predictions, against one-hot matrices."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import clustruct as cs
from clustruct import FeatureClusterClassifier, FeatureClusterRegressor, FeatureClusterRegressorCV
from clustruct.design import FactorDesign
from clustruct.inspection import feature_names, levels_of, most_groups
from tests.estimators.policies import EFFECTS, policies

ALPHA = 1e-3
QUICK = {"solver": "pg", "n_init": 1}


def one_hot(frame):
    """The matrix in the order of the weights, and the blocks of its columns."""
    parts, blocks = [], []
    for name in ("city", "fuel", "fleet"):
        column = frame[name]
        levels = list(column.cat.categories) if name == "fuel" else sorted(column.unique())
        parts += [(column == level).to_numpy(float) for level in levels]
        blocks += [name] * len(levels)
    return np.column_stack([*parts, frame["power"], frame["age"]]), [*blocks, "-1", "-1"]


CASES = {
    "squared": (FeatureClusterRegressor, {}),
    "huber": (FeatureClusterRegressor, {"loss": "huber", "huber_delta": 0.5}),
    "no intercept": (FeatureClusterRegressor, {"fit_intercept": False}),
    "logistic": (FeatureClusterClassifier, {}),
    "squared classes": (FeatureClusterClassifier, {"loss": "squared"}),
    "multinomial": (FeatureClusterClassifier, {"class_weight": "balanced", **QUICK}),
    "two outputs": (FeatureClusterRegressor, QUICK),
}


def targets(case, y):
    if case in ("logistic", "squared classes"):
        return np.where(y > 0.5, "claim", "none")
    if case == "multinomial":
        return np.digitize(y, [0.0, 1.0])
    return np.column_stack([y, -2.0 * y]) if case == "two outputs" else y


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_clusters", [8, {"city": 3, "fuel": 2, "fleet": 1}])
def test_a_frame_is_its_one_hot_matrix_with_blocks(case, weighted, n_clusters):
    frame, y = policies()
    X, blocks = one_hot(frame)
    kind, parameters = CASES[case]
    target = targets(case, y)
    weights = np.random.default_rng(1).integers(0, 3, len(frame)) if weighted else None
    # By the same solver, so that groups are the same; some cases have one of their own.
    model = kind(n_clusters, alpha=ALPHA, random_state=0, **{"solver": "greedy", **parameters})
    coded = clone(model).fit(frame, target, sample_weight=weights)
    plain = clone(model).set_params(blocks=blocks).fit(X, target, sample_weight=weights)
    assert coded.objective_ == pytest.approx(plain.objective_, rel=1e-6)
    np.testing.assert_array_equal(coded.labels_, plain.labels_)
    assert coded.coef_.shape == plain.coef_.shape
    np.testing.assert_allclose(coded.coef_, plain.coef_, atol=1e-4)
    assert coded.n_features_in_ == 5
    assert coded.feature_names_in_.tolist() == list(frame)
    if kind is FeatureClusterClassifier:
        np.testing.assert_array_equal(coded.predict(frame), plain.predict(X))
    else:
        np.testing.assert_allclose(coded.predict(frame), plain.predict(X), atol=1e-3)
    np.testing.assert_allclose(coded.transform(frame), plain.transform(X), atol=1e-12)


@pytest.mark.parametrize("case", ["squared", "huber", "no intercept", "logistic"])
@pytest.mark.parametrize("n_clusters", [8, {"city": 3, "fuel": 2, "fleet": 1}])
def test_the_solver_for_factors_is_no_worse_than_the_search_on_the_one_hot_matrix(case, n_clusters):
    frame, y = policies()
    X, blocks = one_hot(frame)
    kind, parameters = CASES[case]
    target = targets(case, y)
    model = kind(n_clusters, alpha=ALPHA, random_state=0, **parameters)
    coded = clone(model).fit(frame, target)
    plain = model.set_params(blocks=blocks).fit(X, target)
    assert coded.status_.solver == "bcd"
    assert coded.objective_ <= plain.objective_ * (1.0 + 1e-6)


def test_numbers_and_booleans_alone_are_what_they_were():
    frame, y = policies()
    frame = frame[["power", "fleet", "age"]]
    model = FeatureClusterRegressor(2).fit(frame, y)
    assert model.factors_ is None
    before = FeatureClusterRegressor(2).fit(frame.to_numpy(float), y)
    np.testing.assert_array_equal(model.coef_, before.coef_)
    objects = FeatureClusterRegressor(2).fit(frame.astype(object), y)  # numbers in objects
    assert objects.factors_ is None


def test_the_matrix_is_never_formed(monkeypatch):
    monkeypatch.setattr(FactorDesign, "_as_dense", lambda self: pytest.fail("formed"))
    frame, y = policies()
    for case, (kind, parameters) in CASES.items():
        model = kind(8, **{**parameters, **QUICK}).fit(frame, targets(case, y))
        model.predict(frame)
        model.transform(frame)
    FeatureClusterRegressorCV((6, 8), alphas=(1e-3,), cv=3).fit(frame, y)


# ---- What is seen of the groups


def test_groups_are_shown_factor_by_factor():
    frame, y = policies()
    model = FeatureClusterRegressor(7, alpha=1e-4).fit(frame, y)
    groups = [group.features for group in model.clusters()]
    assert groups == [
        ("city: e", "city: f"),
        ("city: a", "city: b"),
        ("city: c", "city: d"),
        ("fuel: wood", "fuel: oil"),
        ("fuel: gas",),
        ("fleet: False",),
        ("fleet: True",),
        ("age",),
        ("power",),
    ]
    labels = [group.label for group in model.clusters()]
    assert sorted(labels) == list(range(model.n_clusters_))
    for group in model.clusters():
        assert group.weight == pytest.approx(model.cluster_values_[group.label])
    assert model.coef_.shape == model.labels_.shape == (13,)
    assert model.get_feature_names_out().size == model.n_clusters_ == 9
    names = model.set_output(transform="pandas").transform(frame)
    assert list(names.columns) == model.get_feature_names_out().tolist()


def test_plots_name_the_levels():
    frame, y = policies()
    model = FeatureClusterRegressor(7).fit(frame, y)
    levels = levels_of(model)
    assert levels.names.tolist() == feature_names(model).tolist() == model.factors_.weight_names
    np.testing.assert_allclose(levels.weights[:, 0], model.coef_)
    assert most_groups(model) == 13
    assert cs.plot.weights(model).figure_ is not None


# ---- Unknown and missing levels


def test_unknown_levels_have_the_weighted_mean_effect():
    frame, y = policies()
    weights = np.random.default_rng(2).random(len(frame))
    model = FeatureClusterRegressor(7).fit(frame, y, sample_weight=weights)
    shares = pd.Series(weights).groupby(frame["city"]).sum() / weights.sum()
    factor = model.factors_.factors[0]
    assert (factor.name, factor.kind, factor.levels) == ("city", "nominal", tuple("abcdef"))
    np.testing.assert_allclose(factor.shares, shares.to_numpy())
    mean = float(shares.to_numpy() @ model.coef_[:6])
    new = frame.iloc[:3].assign(city=["a", "nowhere", None])
    known = model.predict(frame.iloc[:3].assign(city="a")) - model.coef_[0]
    np.testing.assert_allclose(model.predict(new), known + np.array([model.coef_[0], mean, mean]))
    sums = model.transform(new)
    np.testing.assert_allclose(sums @ model.cluster_values_ + model.intercept_, model.predict(new))


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_missing_values_seen_in_training_are_a_level(missing):
    frame, y = policies()
    rows = np.arange(0, 300, 7)
    frame["city"] = frame["city"].astype(object)
    frame.loc[rows, "city"] = missing
    y = y + 10.0 * np.isin(np.arange(300), rows)
    model = FeatureClusterRegressor(9, alpha=1e-5).fit(frame, y)
    assert model.factors_.factors[0].levels == (*"abcdef", None)
    assert model.factors_.weight_names[6] == "city: missing"
    assert model.score(frame, y) > 0.9
    for other in (None, np.nan, pd.NA):
        new = frame.copy()
        new.loc[rows, "city"] = other
        np.testing.assert_array_equal(model.predict(new), model.predict(frame))
    as_categories = frame.assign(city=frame["city"].astype("category"))
    np.testing.assert_array_equal(model.predict(as_categories), model.predict(frame))


def test_levels_without_weighted_rows_are_unknown():
    frame, y = policies()
    weights = np.where(frame["city"] == "c", 0.0, 1.0)
    kept = weights > 0
    model = FeatureClusterRegressor(7).fit(frame, y, sample_weight=weights)
    without = FeatureClusterRegressor(7).fit(frame[kept], y[kept])
    assert model.factors_.factors[0].levels == tuple("abdef")
    np.testing.assert_array_equal(model.coef_, without.coef_)
    np.testing.assert_array_equal(model.predict(frame), without.predict(frame))
    unused = frame.assign(fuel=frame["fuel"].cat.add_categories(["coal"]))
    assert FeatureClusterRegressor(7).fit(unused, y).factors_.factors[1].levels == (
        "wood",
        "oil",
        "gas",
    )


# ---- Searches and paths


@pytest.mark.parametrize(
    "scoring", [None, "neg_median_absolute_error", lambda m, X, y: m.score(X, y)]
)
def test_a_search_on_a_frame_is_one_on_its_one_hot_matrix(scoring):
    frame, y = policies(120)
    X, blocks = one_hot(frame)
    search = FeatureClusterRegressorCV(
        (3, 6, 8), alphas=(1e-1, 1e-3), cv=3, scoring=scoring, prices=None, solver="greedy"
    )
    coded = clone(search).fit(frame, y)
    plain = search.set_params(blocks=blocks).fit(X, y)
    assert coded.best_params_ == plain.best_params_
    np.testing.assert_allclose(
        coded.cv_results_.fold_scores, plain.cv_results_.fold_scores, rtol=1e-5
    )
    np.testing.assert_array_equal(coded.labels_, plain.labels_)
    assert coded.predict(frame) == pytest.approx(plain.predict(X), abs=1e-5)


@pytest.mark.parametrize("criterion", ["bic", "ebic"])
def test_criteria(criterion):
    frame, y = policies()
    search = FeatureClusterRegressorCV((4, 7, 10), alphas=(1e-4,), criterion=criterion, prices=None)
    assert search.fit(frame, y).best_params_["n_clusters"] == 7
    priced = FeatureClusterRegressorCV(criterion=criterion).fit(frame, y)
    assert "price" in priced.best_params_
    assert priced.n_clusters_ == search.n_clusters_


def test_a_level_that_a_fold_lacks_does_no_harm():
    frame, y = policies(120)
    for case, (kind, _) in {"squared": CASES["squared"], "logistic": CASES["logistic"]}.items():
        kind = {"squared": FeatureClusterRegressorCV}.get(case, cs.FeatureClusterClassifierCV)
        alone = frame.assign(city=np.where(np.arange(120) < 5, "only here", frame["city"]))
        folds = PredefinedSplit(np.where(np.arange(120) < 30, 0, np.arange(120) % 2 + 1))
        search = kind((4, 7), alphas=(1e-1, 1e-3), cv=folds).fit(alone, targets(case, y))
        assert np.isfinite(search.cv_results_.fold_scores).all()
        assert "city: only here" in search.factors_.weight_names


@pytest.mark.slow
def test_parallel_folds_find_the_same():
    frame, y = policies(120)
    search = FeatureClusterRegressorCV((4, 7), alphas=(1e-2,), cv=3)
    one, two = search.fit(frame, y).cv_results_, clone(search).set_params(n_jobs=2).fit(frame, y)
    np.testing.assert_array_equal(one.fold_scores, two.cv_results_.fold_scores)


def test_totals_too_small_for_the_factors_are_left_out_of_searches():
    frame, y = policies(120)
    search = FeatureClusterRegressorCV(alphas=(1e-3,), cv=2, prices=None).fit(frame, y)
    assert search.cv_results_.n_clusters == tuple(range(3, 16))
    with pytest.raises(ValueError, match="less than the number of factors, 3"):
        FeatureClusterRegressorCV((1, 2), alphas=(1e-3,), cv=2, prices=None).fit(frame, y)


def test_path():
    frame, y = policies()
    X, blocks = one_hot(frame)
    options = {"n_clusters": (3, 7), "alphas": (1e-1, 1e-3)}
    coded = cs.feature_cluster_path(frame, y, solver="greedy", **options)
    plain = cs.feature_cluster_path(X, y, blocks=blocks, solver="greedy", **options)
    np.testing.assert_allclose(coded.objectives, plain.objectives, rtol=1e-6)
    # Factors with one group have the value zero up to rounding, and come in any order.
    together = [path.labels[..., :, None] == path.labels[..., None, :] for path in (coded, plain)]
    np.testing.assert_array_equal(*together)
    swept = cs.feature_cluster_path(frame, y, **options)
    assert (swept.objectives <= plain.objectives * (1.0 + 1e-6)).all()
    named = cs.feature_cluster_path(
        frame, y, factors={"age": "nominal"}, **options | {"n_clusters": 9}
    )
    assert named.coefs.shape[-1] == 13 - 1 + frame["age"].nunique()


# ---- Which columns are factors


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("from_dtype", ["city", "fuel", "fleet"]),
        (["city", "fuel"], ["city", "fuel"]),
        ([1, 2, 3], ["city", "fuel", "age"]),
        (np.array([False, True, True, False, True]), ["city", "fuel", "fleet"]),
    ],
)
def test_columns_are_chosen(given, expected):
    frame, y = policies()
    model = FeatureClusterRegressor(60, categorical_features=given).fit(frame, y)
    assert [factor.name for factor in model.factors_.factors] == expected
    assert [frame.columns[j] for j in model.factors_.numeric] == [
        name for name in frame if name not in expected
    ]
    pickle.loads(pickle.dumps(clone(model)))


def test_named_columns_are_factors_as_well():
    frame, y = policies()
    model = FeatureClusterRegressor(60, factors={"age": "nominal"}).fit(frame, y)
    names = [factor.name for factor in model.factors_.factors]
    assert names == ["city", "fuel", "age", "fleet"]
    assert model.factors_.factors[2].levels == tuple(sorted(frame["age"].unique()))
    alone = FeatureClusterRegressor(60, factors={"age": "nominal"}, categorical_features=None)
    numbers = frame[["power", "age", "fleet"]]
    assert [factor.name for factor in alone.fit(numbers, y).factors_.factors] == ["age"]


@pytest.mark.parametrize("form", [pl.from_pandas, lambda frame: frame.convert_dtypes()])
def test_other_frames(form):
    frame, y = policies()
    model = FeatureClusterRegressor(7).fit(frame, y)
    other = FeatureClusterRegressor(7).fit(form(frame), y)
    assert other.factors_.weight_names[:6] == model.factors_.weight_names[:6]
    np.testing.assert_allclose(other.predict(form(frame)), model.predict(frame), atol=1e-6)
    np.testing.assert_array_equal(model.predict(form(frame)), model.predict(frame))


def test_arrays_with_named_columns():
    frame, y = policies()
    X = frame[["power", "city", "age"]].to_numpy(object)
    model = FeatureClusterRegressor(3, categorical_features=[1]).fit(X, y)
    framed = FeatureClusterRegressor(3).fit(frame[["power", "city", "age"]], y)
    np.testing.assert_array_equal(model.coef_, framed.coef_)
    np.testing.assert_array_equal(model.predict(X), framed.predict(frame[["power", "city", "age"]]))
    assert model.factors_.weight_names[0] == "x1: a"
    np.testing.assert_allclose(model.to_sklearn().predict(X), model.predict(X))
    np.testing.assert_array_equal(model.predict(X.tolist()), model.predict(X))
    codes = frame["age"].to_numpy()[:, None]
    model = FeatureClusterRegressor(3, categorical_features=[True]).fit(codes, y)
    assert model.coef_.size == np.unique(codes).size
    np.testing.assert_allclose(model.to_sklearn().predict(codes), model.predict(codes))


# ---- Kinds and bins


def test_bins_of_equal_weight_count_weights_as_repetition():
    rng = np.random.default_rng(0)
    frame, y = policies()
    weights = rng.integers(0, 4, len(frame))
    repeated = np.repeat(np.arange(len(frame)), weights)
    asked = {"age": cs.Factor(bins=5)}
    learnt = []
    for rows, w in ((np.arange(300), weights), (repeated, None)):
        model = FeatureClusterRegressor(20, factors=asked, solver="greedy")
        learnt.append(model.fit(frame.iloc[rows], y[rows], sample_weight=w).factors_.factors[2])
    np.testing.assert_array_equal(learnt[0].edges, learnt[1].edges)
    np.testing.assert_allclose(learnt[0].shares, learnt[1].shares)
    assert learnt[0].kind == "ordinal"
    ages = frame["age"].to_numpy()[repeated]
    assert learnt[0].shares.size == 5
    np.testing.assert_allclose(
        learnt[0].shares, np.bincount(np.digitize(ages, learnt[0].edges)) / ages.size
    )
    assert np.abs(learnt[0].shares - 0.2).max() < 0.05  # as even as whole years allow


def hourly(n=600, seed=0):
    """A frame with hours of the day, whose effect is high in the night and rises by day."""
    rng = np.random.default_rng(seed)
    hour = rng.integers(0, 24, n)
    effect = np.select([hour < 6, hour < 12, hour < 20], [2.0, -1.0, 0.5], 2.0)
    frame = pd.DataFrame({"hour": hour, "city": rng.choice(list(EFFECTS), n)})
    y = effect + frame["city"].map(EFFECTS).to_numpy() + 0.2 * rng.standard_normal(n)
    return frame, y


def segments(labels):
    """Number of runs of equal labels."""
    return 1 + np.count_nonzero(np.diff(labels))


@pytest.mark.parametrize(
    ("kind", "n_segments"), [("nominal", 4), ("ordinal", 4), ("cyclic", 4), ("increasing", 3)]
)
def test_kinds(kind, n_segments):
    frame, y = hourly()
    counts = {"hour": 4 if kind == "ordinal" else 3, "city": 3}
    model = FeatureClusterRegressor(counts, factors={"hour": kind}, alpha=1e-4).fit(frame, y)
    assert model.factors_.factors[0].kind == kind
    labels, weights = model.labels_[:24], model.coef_[:24]
    assert segments(labels) == n_segments  # night is at both ends
    if kind == "increasing":
        assert (np.diff(weights) >= 0.0).all()
        falling = FeatureClusterRegressor(counts, factors={"hour": "decreasing"}).fit(frame, y)
        assert (np.diff(falling.coef_[:24]) <= 0.0).all()
    else:
        expected = np.select([np.arange(24) < 6, np.arange(24) < 12, np.arange(24) < 20], [0, 1, 2])
        np.testing.assert_array_equal(np.unique(labels[:20]), np.unique(labels[[0, 6, 12]]))
        assert segments(labels[:20] * 10 + expected[:20]) == 3
    assert model.certificate_.lower_bound <= model.objective_


@pytest.mark.parametrize("n_clusters", [None, 6])
@pytest.mark.parametrize("kind", ["ordinal", "nominal"])
def test_groups_have_the_least_weight_asked_for(n_clusters, kind):
    frame, y = hourly()
    weights = np.random.default_rng(0).integers(1, 4, y.size)
    asked = {"hour": cs.Factor(kind, min_weight=200.0)}
    model = FeatureClusterRegressor(n_clusters, factors=asked, solver="pg", n_init=1)
    model.fit(frame, y, sample_weight=weights)
    labels = model.labels_[:24][frame["hour"]]
    totals = np.bincount(labels, weights)
    assert totals[totals > 0].min() >= 200.0
    assert np.unique(labels).size > 1
    assert model.factors_.total == weights.sum()


def test_missing_values_stand_outside_of_an_order():
    frame, y = hourly()
    frame["hour"] = frame["hour"].astype(float).where(frame["hour"] % 7 != 3)
    model = FeatureClusterRegressor({"hour": 3, "city": 3}, factors={"hour": "ordinal"})
    model.fit(frame, y)
    missing = model.factors_.weight_names.index("hour: missing")
    assert np.count_nonzero(model.labels_ == model.labels_[missing]) == 1
    assert np.unique(model.labels_[:missing]).size == 3


def test_a_factor_of_missing_values_alone_has_one_group():
    frame, y = hourly(200)
    frame["hour"] = np.nan
    model = FeatureClusterRegressor(4, factors={"hour": "ordinal"}).fit(frame, y)
    alone = FeatureClusterRegressor(3).fit(frame[["city"]], y)
    np.testing.assert_allclose(model.predict(frame), alone.predict(frame[["city"]]), rtol=1e-9)


@pytest.mark.parametrize("loss", ["squared", "poisson"])
def test_groups_may_go_from_a_factor_to_another_one(loss):
    """With few groups, shares of the total may be less than what a factor had at some price."""
    rng = np.random.default_rng(15)
    frame = pd.DataFrame({name: rng.choice(list("abcd"), 200) for name in ("a", "b", "c")})
    y = 3.0 * (frame["c"] > "b") + (frame["a"] > "b") + 1.2 * rng.standard_normal(200) ** 2
    model = FeatureClusterRegressor(6, alpha=1e-2, loss=loss).fit(frame, y)
    assert model.n_clusters_ == 6


def test_without_a_number_of_groups_weights_keep_their_order():
    frame, y = hourly()
    model = FeatureClusterRegressor(None, factors={"hour": "increasing"}).fit(frame, y)
    assert (np.diff(model.coef_[:24]) >= 0.0).all()
    assert model.n_clusters_ < 30


def test_values_in_an_order_are_not_relaxed():
    frame, y = hourly(200)
    search = FeatureClusterRegressorCV(
        (5, 6), alphas=(1e-1, 1e-3), cv=3, factors={"hour": "increasing"}
    ).fit(frame, y)
    assert search.relax_ == 1.0
    assert (np.diff(search.coef_[:24]) >= 0.0).all()


# ---- Prices and proofs


def test_a_search_finds_the_planted_groups_by_their_price():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.integers(0, 10, 900).astype(str) for name in "abc"})
    y = frame["a"].astype(int) // 4 + 0.4 * rng.standard_normal(900)
    search = FeatureClusterRegressorCV(random_state=0, rule="one_se").fit(frame, y)
    counts = [np.unique(search.labels_[10 * f : 10 * f + 10]).size for f in range(3)]
    assert counts == [3, 1, 1]
    assert search.best_params_.keys() == {"price", "alpha", "n_nonzero", "relax"}
    again = FeatureClusterRegressor(price=search.best_params_["price"], alpha="auto")
    np.testing.assert_array_equal(again.fit(frame, y).labels_, search.labels_)


@pytest.mark.parametrize("loss", ["squared", "poisson"])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_targets_that_do_not_vary(loss, value):
    frame, _ = policies(60)
    target = np.full(60, value)
    for model in (
        FeatureClusterRegressorCV(loss=loss, cv=2, random_state=0),
        FeatureClusterRegressor(price=0.1, alpha="auto", loss=loss),
    ):
        predicted = model.fit(frame, target).predict(frame)
        np.testing.assert_allclose(predicted, value, atol=1e-6)


def test_few_rows_and_columns_that_do_not_vary():
    frame, y = policies(5)
    frame["power"] = 1.0
    model = FeatureClusterRegressorCV(cv=2, random_state=0).fit(frame, y)
    assert np.isfinite(model.predict(frame)).all()


def test_groups_of_factors_are_proved():
    frame, y = policies(200)
    counts = {"city": 3, "fuel": 2, "fleet": 1}
    # From a poor start, so that the proof finds the groups.
    model = FeatureClusterRegressor(counts, alpha=ALPHA, prove=True, solver="greedy")
    model.fit(frame, y)
    assert model.certificate_.relative_gap == 0.0
    best = FeatureClusterRegressor(counts, alpha=ALPHA).fit(frame, y)
    assert model.objective_ <= best.objective_ * (1.0 + 1e-9)


def test_a_price_is_for_one_output():
    frame, y = policies(60)
    with pytest.raises(ValueError, match="price for each group needs"):
        FeatureClusterClassifier(price=0.1).fit(frame, targets("multinomial", y))


# ---- What fitted models can do


@pytest.mark.parametrize("case", CASES)
def test_plain_pipelines_predict_the_same_also_unknown_levels(case):
    frame, y = policies()
    kind, parameters = CASES[case]
    frame["city"] = frame["city"].astype(object)
    frame.loc[frame.index[:10], "city"] = None
    frame.loc[frame.index[10:20], "city"] = np.nan
    frame["age"] = frame["age"].where(frame["age"] > 20.0)
    frame["fleet"] = frame["fleet"].astype(object).where(frame["age"] < 55.0, None)
    model = kind(12, factors={"age": "nominal"}, **parameters).fit(frame, targets(case, y))
    plain = model.to_sklearn()
    new = frame.copy()
    new.loc[frame.index[20:40], "city"] = "nowhere"
    new.loc[frame.index[30:40], "age"] = 99.0
    for samples in (frame, new):
        if kind is FeatureClusterClassifier:
            np.testing.assert_allclose(
                plain.decision_function(samples), model.decision_function(samples), atol=1e-10
            )
        else:
            np.testing.assert_allclose(plain.predict(samples), model.predict(samples), atol=1e-10)


def test_bins_have_no_plain_pipeline():
    frame, y = policies()
    model = FeatureClusterRegressor(7).fit(frame, y)
    (first, *others) = model.factors_.factors
    binned = replace(first, edges=np.arange(5.0))
    model.factors_ = replace(model.factors_, factors=(binned, *others))
    with pytest.raises(ValueError, match="'city' has bins"):
        model.to_sklearn()


def test_copies_and_pipelines(tmp_path):
    frame, y = policies()
    model = FeatureClusterRegressor(7, factors={"city": cs.Factor(levels=list("fedcba"))})
    model.fit(frame, y)
    assert model.factors_.factors[0].levels == tuple("fedcba")
    path = tmp_path / "model.clustruct"
    cs.save(model, path)
    for copy in (pickle.loads(pickle.dumps(model)), cs.load(path), clone(model).fit(frame, y)):
        np.testing.assert_array_equal(copy.predict(frame), model.predict(frame))
        assert copy.factors["city"] == model.factors["city"]
    piped = make_pipeline(FunctionTransformer(), FeatureClusterRegressor(7)).fit(frame, y)
    assert piped.score(frame, y) > 0.9
    found = GridSearchCV(FeatureClusterRegressor(), {"n_clusters": [3, 7]}, cv=KFold(3))
    assert found.fit(frame, y).best_params_ == {"n_clusters": 7}
    # A fit to numbers forgets the factors.
    assert model.set_params(factors=None).fit(frame[["power", "age"]], y).factors_ is None
