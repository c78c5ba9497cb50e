"""Weights shared inside blocks only."""

import numpy as np
import pytest

import clustruct as cs
from clustruct import FeatureClusterClassifier, FeatureClusterRegressor
from clustruct.estimators.features.grid import choose_constraint
from clustruct.grouping.constraints import BlockClustered, Clustered, Free, SparseClustered
from tests import brute_force as bf

BLOCKS = np.array([0, 0, 0, 1, 1, 1, -1, -1])


def data(seed=0, n=60):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 8))
    w = np.array([1.0, 1.0, 3.0, 1.0, -2.0, -2.0, 0.5, 7.0])
    return X, X @ w + 0.1 * rng.standard_normal(n), w


@pytest.mark.parametrize("solver", ["greedy", "pg", "cg", "cgpg"])
def test_groups_stay_in_their_blocks(solver):
    X, y, w = data()
    model = FeatureClusterRegressor(4, blocks=BLOCKS, solver=solver, alpha=1e-4, tol=1e-5)
    model.fit(X, y)
    np.testing.assert_allclose(model.coef_, w, atol=0.1)
    # Two groups in each block and two features alone; 1.0 is there twice and not merged.
    assert model.n_clusters_ == 6
    for label in range(6):
        assert np.unique(BLOCKS[model.labels_ == label]).size == 1
    assert model.labels_[6] != model.labels_[7]
    assert model.labels_[0] == model.labels_[1] != model.labels_[3]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n_clusters", [2, 3, 4, {0: 2, 1: 1}, {0: 1, 1: 3}])
def test_against_all_groupings(seed, n_clusters):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, 8))
    y = X @ rng.standard_normal(8) + rng.standard_normal(30)
    least = bf.best(X, y[:, None], list(bf.block_groupings(BLOCKS, n_clusters)), alpha=1e-2)
    model = FeatureClusterRegressor(
        n_clusters, blocks=BLOCKS, alpha=1e-2, solver="pg", n_init=20, random_state=0
    ).fit(X, y)
    assert model.objective_ == pytest.approx(least, rel=1e-9)
    relaxed = FeatureClusterRegressor(n_clusters, blocks=BLOCKS, alpha=1e-2, solver="cg", tol=1e-4)
    for fitted in (model, relaxed.fit(X, y)):
        assert fitted.certificate_.lower_bound <= least * (1 + 1e-9)


@pytest.mark.parametrize(
    "blocks",
    [
        BLOCKS.astype(float),
        BLOCKS.tolist(),
        ["a", "a", "a", "b", "b", "b", "-1", "-1"],
        ["a", "a", "a", "b", "b", "b", -1, -1],
        np.array(["a", "a", "a", "b", "b", "b", -1, -1], dtype=str),
        BLOCKS * 10 + 9 * (BLOCKS < 0),
    ],
)
@pytest.mark.parametrize("count", [4, np.int64(4), np.int32(4)])
def test_kinds_of_ids_and_numbers(blocks, count):
    X, y, _ = data()
    plain = FeatureClusterRegressor(4, blocks=BLOCKS).fit(X, y)
    model = FeatureClusterRegressor(count, blocks=blocks).fit(X, y)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    np.testing.assert_array_equal(model.coef_, plain.coef_)


def test_pandas_ids():
    pandas = pytest.importorskip("pandas")
    X, y, _ = data()
    frame = pandas.DataFrame(X, columns=[f"{b}_{j}" for j, b in enumerate(BLOCKS)])
    blocks = pandas.Series([name.split("_")[0] for name in frame.columns])
    model = FeatureClusterRegressor(4, blocks=blocks).fit(frame, y)
    np.testing.assert_array_equal(
        model.labels_, FeatureClusterRegressor(4, blocks=BLOCKS).fit(X, y).labels_
    )
    mapped = FeatureClusterRegressor({"0": 2, "1": np.int64(2)}, blocks=blocks).fit(frame, y)
    np.testing.assert_array_equal(mapped.labels_, model.labels_)


def test_one_block_is_no_block_and_all_alone_is_ridge():
    X, y, _ = data()
    one = FeatureClusterRegressor(3, blocks=np.zeros(8, int)).fit(X, y)
    np.testing.assert_allclose(one.coef_, FeatureClusterRegressor(3).fit(X, y).coef_, rtol=1e-9)
    alone = FeatureClusterRegressor(3, blocks=np.full(8, -1)).fit(X, y)
    np.testing.assert_allclose(alone.coef_, FeatureClusterRegressor(8).fit(X, y).coef_, rtol=1e-9)
    empty = FeatureClusterRegressor({}, blocks=np.full(8, -1)).fit(X, y)
    np.testing.assert_array_equal(empty.coef_, alone.coef_)


def test_more_groups_than_a_block_has_features():
    X, y, _ = data()
    for n_clusters in (100, {0: 50, 1: 50}):
        model = FeatureClusterRegressor(n_clusters, blocks=BLOCKS).fit(X, y)
        np.testing.assert_allclose(
            model.coef_, FeatureClusterRegressor(8).fit(X, y).coef_, rtol=1e-9
        )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classifier_with_blocks(n_classes):
    X, score, _ = data()
    y = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
    model = FeatureClusterClassifier(4, blocks=BLOCKS).fit(X, y)
    assert model.n_clusters_ <= 6
    for label in range(model.n_clusters_):
        assert np.unique(BLOCKS[model.labels_ == label]).size == 1
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"blocks": [0, 1]}, r"blocks has shape \(2,\), but X has 8 features"),
        ({"blocks": np.zeros((8, 1))}, r"blocks has shape \(8, 1\)"),
        ({"blocks": BLOCKS, "n_nonzero": 3}, "blocks and n_nonzero=3 cannot be combined"),
        ({"blocks": BLOCKS, "n_clusters": 1}, "n_clusters=1 is less than the number of blocks, 2"),
        ({"n_clusters": {0: 1}}, "n_clusters is a mapping, which needs blocks"),
        ({"blocks": BLOCKS, "n_clusters": {0: 1}}, r"missing: \[1\]"),
        ({"blocks": BLOCKS, "n_clusters": {0: 1, 1: 1, 5: 2}}, r"not a block \[5\]"),
        ({"blocks": BLOCKS, "n_clusters": {0: 1, 1: 0}}, "n_clusters holds 0"),
        ({"blocks": BLOCKS, "n_clusters": {0: 1, 1: 1.5}}, "n_clusters holds 1.5"),
        ({"blocks": [0, 0, 0, 1, 1, 1, np.nan, -1]}, "blocks holds missing ids"),
        ({"blocks": ["a", "a", "a", "b", "b", "b", None, None]}, "blocks holds missing ids"),
        (
            {"blocks": np.array(["a", "a", "a", 1, 1, 1, -1, -1], dtype=object)},
            "blocks holds ids of several types",
        ),
    ],
)
def test_arguments_that_do_not_go_together(options, message):
    X, y, _ = data()
    model = FeatureClusterRegressor(**{"n_clusters": 3, **options})
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((5, None, None), Clustered),
        ((8, None, None), Free),
        ((100, None, None), Free),
        ((3, 5, None), SparseClustered),
        ((3, 8, None), SparseClustered),
        ((3, 100, None), SparseClustered),
        ((5, 5, None), SparseClustered),
        ((None, 5, None), SparseClustered),
        ((None, 8, None), Free),
        ((8, 8, None), Free),
        ((3, None, BLOCKS), BlockClustered),
    ],
)
def test_choice_of_the_constraint(arguments, expected):
    constraint = choose_constraint(8, *arguments)
    assert type(constraint) is expected
    if expected is SparseClustered:
        n_clusters, n_nonzero, _ = arguments
        assert constraint.n_nonzero == min(n_nonzero, 8)
        few = n_clusters is not None and n_clusters < n_nonzero
        assert constraint.n_clusters == (n_clusters if few else None)


# ---- Rents in Munich.


@pytest.fixture(scope="module")
def rent():
    """Districts one-hot in one block, the rest alone."""
    try:
        bunch = cs.datasets.fetch_rent()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    names = list(bunch.feature_names)
    place = names.index("area")
    districts = np.unique(bunch.data[:, place])
    one_hot = bunch.data[:, place, None] == districts
    rest = np.delete(bunch.data, place, axis=1).astype(float)
    rest = (rest - rest.mean(axis=0)) / rest.std(axis=0)
    X = np.hstack([rest, one_hot])
    blocks = np.r_[np.full(rest.shape[1], -1), np.zeros(districts.size, dtype=int)]
    return X, bunch.target, blocks


@pytest.mark.parametrize("solver", ["pg", "cgpg"])
def test_districts_are_grouped(rent, solver):
    X, y, blocks = rent
    assert (blocks == 0).sum() == 25
    model = FeatureClusterRegressor(4, blocks=blocks, alpha=1e-4, solver=solver, tol=1e-5)
    model.fit(X, y)
    assert np.unique(model.labels_[blocks == 0]).size == 4
    # Features left alone are groups of one.
    alone = model.labels_[blocks == -1]
    assert np.unique(alone).size == alone.size
    assert not np.isin(alone, model.labels_[blocks == 0]).any()
    assert (model.cluster_sizes_[alone] == 1).all()
    # Four levels of districts say nearly all that 25 do.
    free = FeatureClusterRegressor(X.shape[1], alpha=1e-4).fit(X, y)
    assert model.score(X, y) > free.score(X, y) - 0.01
    assert model.objective_ >= free.objective_ * (1 - 1e-9)
    assert model.certificate_.lower_bound >= free.objective_ * (1 - 1e-6)
    assert model.certificate_.relative_gap < 0.01


def test_more_groups_of_districts_are_never_worse(rent):
    X, y, blocks = rent
    values = [
        FeatureClusterRegressor(q, blocks=blocks, alpha=1e-4).fit(X, y).objective_
        for q in (1, 2, 4, 8, 25)
    ]
    assert (np.diff(values) < 0).all()
