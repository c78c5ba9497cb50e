"""How experts and groups of tasks differ, and whom a gate sends where."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import clustruct as cs
from clustruct.explanation.contrasts import contrasts_of, gate_view
from clustruct.inspection import outputs_of


@pytest.fixture(scope="module")
def houses():
    """Near town only the size counts, far from it only the rooms."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(80, 25, 400), rng.uniform(0, 10, 400), rng.normal(4, 1, 400)])
    near = X[:, 1] < 5
    y = np.where(near, 200 + 5 * X[:, 0], 50 + 30 * X[:, 2]) + rng.normal(0, 5, 400)
    return X, y, near


def fitted(houses, **options):
    X, y, _ = houses
    model = cs.SampleClusterRegressor(2, random_state=0, **options)
    return make_pipeline(StandardScaler(), model).fit(X, y)


@pytest.mark.parametrize("scaled", [True, False])
def test_weights_are_in_deviations_and_middles_answer_the_average_sample(houses, scaled):
    X, y, _ = houses
    model = fitted(houses) if scaled else cs.SampleClusterRegressor(2, random_state=0).fit(X, y)
    found = contrasts_of(model, X)
    mean, step = X.mean(axis=0), np.diag(X.std(axis=0))
    estimator = model[-1] if scaled else model
    before = model[:-1].transform if scaled else np.asarray
    middle = estimator.predict_experts(before(mean[None]))[0]
    np.testing.assert_allclose(found.middles[:, 0], middle)
    moved = estimator.predict_experts(before(mean + step)) - middle
    np.testing.assert_allclose(found.weights[:, 0], moved.T, atol=1e-8)


def test_the_widest_differences_come_first(houses):
    found = contrasts_of(fitted(houses), houses[0])
    assert found.widest(3)[0] == (0, 0)
    mine, others = found.weights[0], found.against_others(0)[0]
    np.testing.assert_allclose(others, found.weights[1])
    assert np.abs(mine - others).argmax() == 0


@pytest.mark.parametrize("gate", [True, RandomForestClassifier(n_estimators=20, random_state=0)])
def test_a_gate_sends_samples_by_what_tells_them_apart(houses, gate):
    X, _, near = houses
    model = fitted(houses, gate=gate)
    found = gate_view(model, X)
    town = int(np.argmax(np.bincount(model[-1].labels_[near])))
    assert np.abs(found.pulls).argmax(axis=1).tolist() == [1, 1]
    assert found.pulls[town, 1] < 0.0 < found.pulls[1 - town, 1]
    assert found.shares[town] == pytest.approx(near.mean(), abs=0.05)
    assert found.linear == (gate is True)


def test_a_deviation_changes_the_log_odds_of_an_expert_by_its_pull(houses):
    X = houses[0]
    model = fitted(houses, gate=True)
    found = gate_view(model, X)

    def odds(sample):
        weights = model[-1]._gate.weights(model[:-1].transform(sample))
        return np.log(weights[:, 1] / weights[:, 0])

    moved = X + np.array([0.0, X[:, 1].std(), 0.0])
    inside = np.abs(odds(X)) < 5  # probabilities next to zero are cut off
    change = (odds(moved) - odds(X))[inside & (np.abs(odds(moved)) < 5)]
    np.testing.assert_allclose(change, found.pulls[1, 1], rtol=1e-6)


def test_no_gate_has_no_view(houses):
    assert gate_view(fitted(houses), houses[0]) is None


def test_centroids_of_tasks():
    X, y, tasks = cs.datasets.make_clustered_tasks(n_tasks=9, n_clusters=3, random_state=0).rows()
    model = cs.TaskClusterRegressor(3).fit(X, y, tasks=tasks)
    found = contrasts_of(model, X, most=len(X))
    np.testing.assert_allclose(found.weights[:, 0], model.centroids_ * X.std(axis=0))
    assert found.thing == "group"


def test_scores_stand_for_classes_by_name():
    X = np.random.default_rng(0).normal(size=(90, 3))
    two = np.where(X[:, 0] > 0, "sick", "healthy")
    three = np.array(["a", "b", "c"])[X.argmax(axis=1)]
    found = outputs_of(cs.FeatureClusterClassifier(2).fit(X, two))
    assert (found.names, found.other, found.quantity) == (
        ("sick",),
        "healthy",
        "log odds of sick",
    )
    assert outputs_of(cs.FeatureClusterClassifier(2).fit(X, three)).names == ("a", "b", "c")
    squared = outputs_of(cs.FeatureClusterClassifier(2, loss="squared").fit(X, two))
    assert squared.quantity == "score of sick"
    assert outputs_of(cs.FeatureClusterRegressor(2).fit(X, X[:, 0])).quantity == "prediction"
    both = outputs_of(cs.FeatureClusterRegressor(2).fit(X, X[:, :2]))
    assert both.names == ("output 0", "output 1")
