"""Stability: firm where groups are apart, not where there are none, for all kinds of models."""

import re
from copy import copy

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import clustruct as cs
from clustruct.results.stability import ABSENT
from clustruct.trust.parts import draw_parts
from clustruct.trust.refits import ROOMS, Fitted

N = 120


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).standard_normal((N, 9))


def target(X, gap, seed=1):
    """Three groups of three features, with weights a gap apart."""
    rng = np.random.default_rng(seed)
    return X @ (gap * np.repeat([-1.0, 0.0, 1.0], 3)) + rng.standard_normal(N)


def problem(kind, gap, X):
    """An unfitted model of each kind, its targets and what else `fit` takes."""
    rng = np.random.default_rng(2)
    if kind == "features":
        return cs.FeatureClusterRegressor(3), target(X, gap), {}
    if kind == "classes":
        return cs.FeatureClusterClassifier(2), X[:, :4].sum(axis=1) * gap + target(X, 0.0) > 0, {}
    if kind == "search":
        return cs.FeatureClusterRegressorCV((2, 3), alphas=1e-3, cv=3), target(X, gap), {}
    if kind == "pipeline":
        return make_pipeline(StandardScaler(), cs.FeatureClusterRegressor(3)), target(X, gap), {}
    if kind == "samples":
        side = rng.integers(2, size=N)
        y = 5 * gap * np.where(side, X[:, 0], -X[:, 0] - 2) + 0.3 * rng.standard_normal(N)
        return cs.SampleClusterRegressor(2, random_state=0), y, {}
    tasks = np.arange(N) % 8
    y = gap * np.where(tasks < 4, X[:, 0], -X[:, 0]) + 0.5 * rng.standard_normal(N)
    return cs.TaskClusterRegressor(2, random_state=0), y, {"tasks": tasks}


KINDS = ["features", "classes", "search", "pipeline", "samples", "tasks"]


@pytest.fixture(scope="module")
def results(X):
    found = {}
    for kind in KINDS:
        model, y, given = problem(kind, 1.0, X)
        model.fit(X, y, **given)
        found[kind] = cs.stability(model, X, y, **given, n_resamples=8, random_state=0)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_groups_that_are_apart_are_firm(results, kind):
    found = results[kind]
    assert found.firm.all()
    every = "Both" if found.groups.size == 2 else f"All {found.groups.size}"
    assert found.in_words.startswith(f"{every} groups are firm")
    assert found.labels.shape == (8, found.model_labels.size)
    consensus = found.consensus_labels[:, None] == found.consensus_labels
    same = found.model_labels[:, None] == found.model_labels
    assert (consensus == same).mean() > 0.9


@pytest.mark.parametrize("kind", ["features", "tasks", "classes"])
def test_groups_of_nothing_are_not_firm(X, kind):
    model, y, given = problem(kind, 0.02, X)
    y = np.random.default_rng(3).permutation(y)
    model.fit(X, y, **given)
    found = cs.stability(model, X, y, **given, n_resamples=8, random_state=0)
    assert not found.firm.all()
    assert found.wavering().size > 0
    assert "change sides" in found.in_words


def test_the_result_does_not_depend_on_the_number_of_jobs(X):
    model, y, _ = problem("features", 0.1, X)
    model.fit(X, y)
    one, two = (cs.stability(model, X, y, n_resamples=6, random_state=0, n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(one.labels, two.labels)


def test_weights_and_repeated_rows_are_the_same_resample(X):
    """A refit by counts is the fit to rows that are repeated as often."""
    y = target(X, 0.3)
    model = cs.FeatureClusterRegressor(3).fit(X, y)
    parts = draw_parts("bootstrap", 3, np.zeros(N, dtype=int), np.ones(N, dtype=bool), 0)
    fitted = Fitted.of(model, X, y, None, None, None)
    for counts, refit in zip(parts, fitted.refits(parts, None), strict=True):
        rows = np.repeat(np.arange(N), counts)
        alone = clone(model).fit(X[rows], y[rows])
        np.testing.assert_array_equal(refit.labels, alone.labels_)
        np.testing.assert_allclose(refit.weights[:, 0], alone.coef_, atol=1e-6)


def test_refits_are_not_drawn_to_the_groups_of_the_model(X):
    """From wrong groups, refits find the right ones."""
    y = target(X, 1.0)
    model = cs.FeatureClusterRegressor(3).fit(X, y)
    wrong = np.random.default_rng(0).permutation(model.labels_)
    model._weights = model.cluster_values_[wrong][:, None]
    parts = draw_parts("subsample", 4, np.zeros(N, dtype=int), np.ones(N, dtype=bool), 0)
    for refit in Fitted.of(model, X, y, None, None, None).refits(parts, None):
        np.testing.assert_array_equal(refit.labels, model.labels_)


@pytest.mark.parametrize("n_init", ["auto", 1])
@pytest.mark.parametrize("kind", ["samples", "tasks"])
def test_refits_of_samples_and_tasks_are_not_drawn_to_the_groups_of_the_model(X, kind, n_init):
    """From wrong groups, refits find what cold fits find, also where one start is asked for."""
    model, y, given = problem(kind, 1.0, X)
    model.set_params(n_init=n_init).fit(X, y, **given)
    right = model.labels_
    wrong = copy(model)
    wrong.labels_ = np.random.default_rng(0).permutation(right)
    if kind == "samples":
        wrong._W, wrong._b = 0.1 * model._W[::-1], 5.0 + model._b
    strata = given.get("tasks", np.zeros(N, dtype=int))
    parts = draw_parts("subsample", 2, strata, np.ones(N, dtype=bool), 0)
    fitted = Fitted.of(wrong, X, y, given.get("tasks"), None, None)
    for counts, refit in zip(parts, fitted.refits(parts, None), strict=True):
        cold = fitted.fitted_to(counts)
        assert adjusted_rand_score(refit.labels, cold.labels_) > 0.99


@pytest.mark.parametrize("kind", ["samples", "tasks"])
def test_quick_refits_are_as_good_as_cold_ones_where_groups_are_close(X, kind):
    """In nearly all resamples; with the model's groups alone they would not be."""
    model, y, given = problem(kind, 0.25, X)
    model.fit(X, y, **given)
    strata = given.get("tasks", np.zeros(N, dtype=int))
    parts = draw_parts("subsample", 6, strata, np.ones(N, dtype=bool), 1)
    fitted = Fitted.of(model, X, y, given.get("tasks"), None, None)
    quick = ROOMS[kind].refitted(model, X, y, None, parts, **given)
    cold = [fitted.fitted_to(counts) for counts in parts]
    good = [a.objective_ <= b.objective_ * (1 + 1e-6) for a, b in zip(quick, cold, strict=True)]
    assert sum(good) >= 5


@pytest.mark.parametrize("kind", ["samples", "tasks", "features", "classes"])
def test_samples_without_weight_are_as_if_they_were_not_there(X, kind):
    model, y, given = problem(kind, 1.0, X)
    weights = np.ones(N)
    weights[::5] = 0.0
    few = weights > 0.0
    fewer = {name: value[few] for name, value in given.items()}
    model.fit(X[few], y[few], **fewer)
    strata = np.zeros(N, dtype=int) if kind != "tasks" else given["tasks"]
    parts = draw_parts("subsample", 2, strata, few, 0)
    all_rows = Fitted.of(model, X, y, given.get("tasks"), weights, None).refits(parts, None)
    only = Fitted.of(model, X[few], y[few], fewer.get("tasks"), None, None)
    for one, other in zip(all_rows, only.refits([c[few] for c in parts], None), strict=True):
        mine = one.labels[few] if kind == "samples" else one.labels
        np.testing.assert_array_equal(mine, other.labels)
        np.testing.assert_allclose(one.weights, other.weights, atol=1e-8)


@pytest.mark.parametrize("kind", ["features", "samples", "tasks", "prices"])
def test_a_search_may_keep_what_it_has_chosen(X, kind):
    plain, y, given = problem("features" if kind == "prices" else kind, 1.0, X)
    frame = X
    if kind == "prices":
        frame = pd.DataFrame({"c": np.random.default_rng(0).integers(6, size=N).astype(str)})
        y = y + frame["c"].isin(["0", "1", "2"]).to_numpy() * 6.0
    search = {
        "features": cs.FeatureClusterRegressorCV((2, 3, 4), alphas=(1e-3, 0.1), cv=3),
        "prices": cs.FeatureClusterRegressorCV(prices=(0.01, 0.1, 1.0), cv=3),
        "samples": cs.SampleClusterRegressorCV((1, 2, 3), random_state=0),
        "tasks": cs.TaskClusterRegressorCV((1, 2), cv=2, solver="am", random_state=0),
    }[kind].fit(frame, y, **given)
    found = cs.stability(search, frame, y, **given, n_resamples=4, search="kept", random_state=0)
    assert (found.n_clusters == search.n_clusters_).all()
    assert found.firm.all()
    if kind == "features":  # the same as the plain model with what was chosen
        chosen = search.best_params_
        plain = cs.FeatureClusterRegressor(chosen["n_clusters"], alpha=chosen["alpha"]).fit(X, y)
        other = cs.stability(plain, X, y, n_resamples=4, random_state=0)
        np.testing.assert_array_equal(found.labels, other.labels)


def test_tasks_that_the_model_does_not_know_are_told(X):
    model, y, given = problem("tasks", 1.0, X)
    model.fit(X, y, **given)
    with pytest.raises(ValueError, match="of 4 tasks, and the model knows 8"):
        cs.stability(model, X, y, tasks=given["tasks"] % 4, n_resamples=2)


def test_levels_that_a_resample_lacks_are_absent():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"c": rng.choice(list("abcd"), 80)})
    frame.loc[:1, "c"] = "rare"
    y = frame["c"].map({"a": 0.0, "b": 0.0, "c": 2.0, "d": 2.0, "rare": 5.0}).to_numpy()
    y = y + 0.1 * rng.standard_normal(80)
    parts = draw_parts("bootstrap", 20, np.zeros(80, dtype=int), np.ones(80, dtype=bool), 3)
    missing = [not counts[:2].any() for counts in parts]
    assert 0 < sum(missing) < 20
    search = cs.FeatureClusterRegressorCV(prices=0.1, alphas=1e-3, cv=2)
    for model in (cs.FeatureClusterRegressor(3), search):
        fitted = Fitted.of(model.fit(frame, y), frame, y, None, None, None)
        labels = np.stack([refit.labels for refit in fitted.refits(parts, None)])
        np.testing.assert_array_equal(labels[:, -1] == ABSENT, missing)
        assert (labels[:, :-1] != ABSENT).all()


def test_co_membership_by_definition(results):
    found = results["features"]
    whole = found.co_membership()
    for i, j in [(0, 1), (0, 4), (3, 8)]:
        expected = np.mean(found.labels[:, i] == found.labels[:, j])
        assert found.co_membership(i, j) == whole[i, j] == found.co_membership(i)[j] == expected


def test_a_search_tells_the_spread_of_its_numbers(results):
    assert set(results["search"].n_clusters) <= {2, 3}


def test_a_summary_has_no_labels(results):
    short = results["features"].summary()
    np.testing.assert_array_equal(short.firmness, results["features"].firmness)
    with pytest.raises(ValueError, match="not kept in model files"):
        short.co_membership(0, 1)


def test_a_grid_search_of_scikit_learn(X):
    y = target(X, 1.0)
    search = GridSearchCV(cs.FeatureClusterRegressor(), {"n_clusters": [2, 3]}, cv=3).fit(X, y)
    assert cs.stability(search, X, y, n_resamples=4, random_state=0).firm.all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scheme": "jackknife"}, "scheme='jackknife'"),
        ({"search": "never"}, "search='never'"),
        ({"n_resamples": 1}, "n_resamples must be at least 2"),
        ({"tasks": np.zeros(N)}, "groups features"),
    ],
)
def test_bad_arguments_are_named(X, arguments, message):
    y = target(X, 1.0)
    model = cs.FeatureClusterRegressor(3).fit(X, y)
    with pytest.raises(ValueError, match=message):
        cs.stability(model, X, y, **arguments)


def test_absent_levels_have_no_part_in_intervals():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"c": ["rare"] * 2 + list("ab" * 29)})
    y = frame["c"].map({"a": 0.0, "b": 2.0, "rare": 2.0}).to_numpy()
    y = y + 0.1 * rng.standard_normal(60)
    model = cs.FeatureClusterRegressor(2).fit(frame, y)
    found = cs.stability(model, frame, y, n_resamples=30, scheme="bootstrap", random_state=0)
    absent = found.labels == ABSENT
    assert absent.any()
    np.testing.assert_array_equal(np.isnan(found.weights[:, :, 0]), absent)
    assert np.isfinite(found.values.resampled).all()  # level b is there


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ((None, 1), "j=1 was given without i"),
        ((0, 99), "j=99 is the number of no feature"),
        ((-1,), "i=-1 is the number of no feature"),
        (("height",), "i='height' is the name of no feature"),
    ],
)
def test_items_that_are_not_there_are_named(results, items, message):
    with pytest.raises(ValueError, match=message):
        results["features"].co_membership(*items)


def test_items_may_be_named(results):
    found = results["features"]
    assert found.co_membership(found.names[3], found.names[8]) == found.co_membership(3, 8)


def test_it_is_shown_as_its_words_and_a_table_of_groups(results):
    found = results["features"]
    text = repr(found)
    assert " ".join(text.partition("\n\n")[0].split()) == found.in_words
    assert text.count("\n") < 20
    for label, firmness in zip(found.groups, found.group_firmness, strict=True):
        assert re.search(rf"^ +{label} .* {firmness:.2f} ", text, re.MULTILINE)


@pytest.mark.parametrize("use", [cs.stability, cs.compare_groups])
def test_tasks_that_are_missing_are_asked_for(use):
    rng = np.random.default_rng(0)
    X, y, tasks = rng.normal(size=(40, 2)), np.arange(40) % 2, np.repeat(np.arange(4), 10)
    model = cs.TaskClusterClassifier(2, random_state=0).fit(X, y, tasks=tasks)
    with pytest.raises(ValueError, match="tasks is missing"):
        use(model, X, y)


def test_where_most_resamples_have_one_group_so_has_the_consensus():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3))
    y = X.sum(axis=1) + rng.normal(size=60)
    model = cs.FeatureClusterRegressorCV((1, 2), random_state=0).fit(X, y)
    found = cs.stability(model, X, y, n_resamples=8, random_state=0)
    assert set(found.n_clusters) == {1, 2}
    assert np.median(found.n_clusters) == 1
    assert found.consensus_labels.tolist() == [0, 0, 0]


@pytest.mark.parametrize("kind", ["features", "samples", "tasks"])
def test_figures_of_groups_are_means_over_pairs_and_members(results, kind):
    found = results[kind]
    often = (found.labels[:, :, None] == found.labels[:, None, :]).mean(axis=0)
    members = [np.flatnonzero(found.model_labels == label) for label in found.groups]
    for row, mine in enumerate(members):
        inside = often[np.ix_(mine, mine)][~np.eye(mine.size, dtype=bool)].mean()
        others = [often[np.ix_(mine, its)].mean() for its in members if its is not mine]
        assert found.cohesion[row] == pytest.approx(inside)
        assert found.mixing[row] == pytest.approx(max(others))
        firmness = found.firmness[mine].mean()
        assert found.firmness_of(found.groups[row]) == pytest.approx(firmness)


def test_the_interval_of_a_group_is_that_of_its_resampled_values(X):
    model, y, _ = problem("features", 1.0, X)
    model.fit(X, y)
    assert cs.stability(model, X, y, n_resamples=4, random_state=0).interval_of(0) is None
    found = cs.stability(model, X, y, n_resamples=20, scheme="bootstrap", random_state=0)
    for row, label in enumerate(found.groups):
        low, high = found.interval_of(label)
        draws = found.values.resampled[:, row, 0]
        assert draws.min() - draws.std() < low < high < draws.max() + draws.std()
        assert low < model.cluster_values_[row] < high


@pytest.mark.parametrize("label", [-1, 3])
def test_unknown_groups_are_refused(results, label):
    with pytest.raises(ValueError, match=f"label={label} is no group .* labels are 0, 1, 2"):
        results["features"].firmness_of(label)
