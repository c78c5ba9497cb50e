"""The choice of groups and strengths, held against fits by hand."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold

import clustruct as cs
from clustruct.datasets import fetch_landmine, fetch_school, make_clustered_tasks
from clustruct.estimators.search.rules import Rule
from clustruct.estimators.tasks.base import Prices
from clustruct.estimators.tasks.folds import FITTED, SCORED, folds_of
from clustruct.estimators.tasks.layouts import read
from clustruct.estimators.tasks.search import SIGNIFICANT, Points

GRID = {"alpha_within": (0.3, 3.0), "alpha_between": (0.01, 0.1)}


@pytest.fixture(scope="module")
def planted():
    return make_clustered_tasks(15, 4, 18, 3, shared=False, random_state=0)


@pytest.fixture(scope="module")
def chosen(planted):
    X, y, tasks = planted.rows()
    return cs.TaskClusterRegressorCV((1, 2, 3, 4), random_state=0, **GRID).fit(X, y, tasks=tasks)


def test_planted_groups_are_found(planted, chosen):
    assert chosen.best_params_["n_clusters"] == chosen.n_clusters_ == 3
    assert chosen.cv_results_.fold_scores.shape == (4, 4, 5)
    row = next(row for row in chosen.cv_results_.rows() if row["chosen"])
    assert row["n_clusters"] == 3
    assert row["mean_score"] == pytest.approx(chosen.best_score_)
    plain = cs.TaskClusterRegressor(**chosen.best_params_, random_state=0)
    X, y, tasks = planted.rows()
    np.testing.assert_allclose(plain.fit(X, y, tasks=tasks).coef_, chosen.coef_)


def test_scores_are_those_of_fits_by_hand(planted):
    X, y, tasks = planted.rows()
    folds = list(KFold(3, shuffle=True, random_state=0).split(X))
    search = cs.TaskClusterRegressorCV(1, alpha_within=0.5, alpha_between=0.1, cv=folds)
    search.set_params(alpha_intercept=0.2).fit(X, y, tasks=tasks)
    for f, (rest, held) in enumerate(folds):
        model = cs.TaskClusterRegressor(
            1, alpha_within=0.5, alpha_between=0.1, alpha_intercept=0.2
        ).fit(X[rest], y[rest], tasks=tasks[rest])
        error = np.square(model.predict(X[held], tasks=tasks[held]) - y[held]).mean() / 2
        assert search.cv_results_.fold_scores[0, 0, f] == pytest.approx(-error, rel=1e-6)


def test_tasks_that_a_fold_lacks_get_the_mean(planted):
    X, y, tasks = planted.rows()
    rest, held = np.flatnonzero(tasks != 2), np.flatnonzero(tasks == 2)
    search = cs.TaskClusterRegressorCV(1, alpha_within=0.5, alpha_between=0.1, cv=[(rest, held)])
    search.set_params(alpha_intercept=0.2).fit(X, y, tasks=tasks)
    model = cs.TaskClusterRegressor(1, alpha_within=0.5, alpha_between=0.1, alpha_intercept=0.2)
    predicted = model.fit(X[rest], y[rest], tasks=tasks[rest]).predict(X[held], tasks=tasks[held])
    error = np.square(predicted - y[held]).mean() / 2
    assert search.best_score_ == pytest.approx(-error, rel=1e-6)


def test_hardly_ever_groups_where_there_are_none():
    # One standard error is not proof: one problem of five may get groups.
    counts = []
    for seed in range(5):
        planted = make_clustered_tasks(15, 4, 18, 1, within=0.5, shared=False, random_state=seed)
        X, y, tasks = planted.rows()
        model = cs.TaskClusterRegressorCV((1, 2, 3), random_state=0, **GRID)
        counts.append(model.fit(X, y, tasks=tasks).n_clusters_)
    assert counts.count(1) >= 4


def test_better_than_one_group_on_new_samples(planted, chosen):
    X, y, tasks = planted.rows()
    single = cs.TaskClusterRegressorCV(1, random_state=0, **GRID).fit(X, y, tasks=tasks)
    rng = np.random.default_rng(0)
    X_new = rng.standard_normal((500, 4))
    truth = X_new @ planted.coef.T
    error, before = (np.square(m.predict(X_new) - truth).mean() for m in (chosen, single))
    assert error < 0.7 * before


def test_rules():
    grid = [Prices(0.0, 1.0, 1.0, price, 0.1) for price in (1.0, 2.0)]
    scores = np.zeros((3, 2, 4))
    scores[1, 1] = [1.0, 1.2, 0.9, 1.1]  # clearly better than one group
    scores[2, 0] = [1.3, 1.1, 0.9, 1.2]  # a little better than two, on average
    points = Points(None, (1, 2, 3), tuple(grid), None)
    chosen = {
        name: points.table("x", scores, Rule(name, SIGNIFICANT)).best_index
        for name in ("best", "fewest", "one_se")
    }
    assert chosen == {"best": (2, 0), "fewest": (1, 1), "one_se": (1, 1)}


def test_folds_are_alike_in_tasks_and_classes():
    rng = np.random.default_rng(0)
    tasks, y = np.repeat(np.arange(4), 20), np.tile([0] * 15 + [1] * 5, 4)
    order = rng.permutation(80)
    X = rng.standard_normal((80, 2))
    reading = read(cs.TaskClusterClassifier(), X, y[order], tasks[order], None)
    for uses in folds_of(reading, 5, 0).each:
        held = np.flatnonzero(uses == SCORED)
        counts = np.bincount(tasks[order][held], y[order][held], minlength=4)
        assert (np.bincount(tasks[order][held]) == 4).all()
        assert (counts == 1).all()


def test_folds_keep_the_answers_to_a_row_together():
    X, Y = make_clustered_tasks(12, 3, 5, 2, missing=0.3, random_state=0).columns()
    reading = read(cs.TaskClusterRegressor(), X, Y, None, None)
    uses = np.stack(folds_of(reading, 3, 0).each)
    assert ((uses == SCORED).sum(axis=0) == 1).all()
    assert ((uses == FITTED).sum(axis=0) == 2).all()
    with pytest.raises(ValueError, match="cv=13 folds cannot be made of n_samples=12"):
        folds_of(reading, 13, None)


def test_rows_may_be_fitted_and_scored_on():
    X, Y = make_clustered_tasks(12, 3, 5, 2, random_state=0).columns()
    every = np.arange(12)
    settings = {"alpha_within": 0.5, "alpha_between": 0.1, "cv": [(every, every)]}
    model = cs.TaskClusterRegressorCV(1, **settings).fit(X, Y)
    error = np.square(model.predict(X) - Y).mean() / 2
    assert model.best_score_ == pytest.approx(-error, rel=1e-4)


def test_same_scores_whatever_n_jobs(planted, chosen):
    X, y, tasks = planted.rows()
    other = cs.TaskClusterRegressorCV((1, 2, 3, 4), n_jobs=2, random_state=0, **GRID)
    other.fit(X, y, tasks=tasks)
    np.testing.assert_array_equal(other.cv_results_.fold_scores, chosen.cv_results_.fold_scores)


def test_own_scoring():
    planted = make_clustered_tasks(40, 3, 6, 2, classification=True, shared=False, random_state=0)
    X, y, tasks = planted.rows()

    def auc(signs, scores, numbers):
        return np.mean([roc_auc_score(signs[numbers == t], scores[numbers == t]) for t in range(6)])

    model = cs.TaskClusterClassifierCV((1, 2), scoring=auc, rule="best", random_state=0, **GRID)
    model.fit(X, y, tasks=tasks)
    assert model.cv_results_.scoring == "auc"
    assert 0.5 < model.best_score_ <= 1.0


def test_classes_as_tasks():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 120)
    X = np.eye(4)[y] + 0.5 * rng.standard_normal((120, 4))
    model = cs.TaskClusterClassifierCV((1, 2), cv=3, random_state=0, **GRID).fit(X, y)
    assert model.score(X, y) > 0.7
    assert model.predict_proba(X).shape == (120, 4)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_clusters": []}, "whole numbers of groups"),
        ({"n_clusters": (1, 0)}, "whole numbers of groups"),
        ({"alpha_within": (-1.0, 1.0)}, "alpha_within.*negative"),
        ({"alpha_between": (np.inf, 1.0)}, "alpha_between"),
        ({"alpha_between": 0.1, "alpha_mean": 1.0}, "Give alpha_mean at most alpha_between"),
        ({"cv": 271}, "cv=271 folds"),
    ],
)
def test_clear_errors(planted, settings, message):
    X, y, tasks = planted.rows()
    with pytest.raises(ValueError, match=f"(?s){message}"):
        cs.TaskClusterRegressorCV(**settings).fit(X, y, tasks=tasks)


@pytest.mark.slow
def test_school_needs_one_group():
    try:
        school = fetch_school()
    except OSError as error:  # neither here nor to be downloaded
        pytest.skip(str(error))
    X, y, tasks = school.data[:, :-1], school.target, school.tasks
    rng = np.random.default_rng(0)
    train = rng.random(len(y)) < 0.75
    model = cs.TaskClusterRegressorCV(random_state=0).fit(X[train], y[train], tasks=tasks[train])
    assert model.n_clusters_ == 1
    assert model.score(X[~train], y[~train], tasks=tasks[~train]) > 0.36
    plain = cs.TaskClusterRegressor().fit(X[train], y[train], tasks=tasks[train])
    assert plain.score(X[~train], y[~train], tasks=tasks[~train]) > 0.35


@pytest.mark.slow
def test_landmines_lie_in_two_terrains():
    try:
        mines = fetch_landmine()
    except OSError as error:  # neither here nor to be downloaded
        pytest.skip(str(error))
    model = cs.TaskClusterClassifierCV((1, 2), alpha_between=1e-3, random_state=0)
    model.fit(mines.data, mines.target, tasks=mines.tasks)
    terrain = model.tasks_ < 15
    assert model.n_clusters_ == 2
    assert max((model.labels_ == terrain).sum(), (model.labels_ != terrain).sum()) >= 27
