"""Offsets in models of samples and of tasks, against shifted targets, weights and SciPy."""

import dask.array as da
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import accuracy_score, log_loss, r2_score
from sklearn.model_selection import KFold, cross_val_score

import clustruct as cs
from clustruct.arrays import to_host
from tests import brute_force
from tests.losses.users import Poisson

FOLDS = KFold(2, shuffle=True, random_state=0)


# ---- Samples


@pytest.fixture(scope="module")
def experts():
    """Samples of two experts, with counts, numbers and classes that an offset has moved."""
    rng = np.random.default_rng(0)
    n = 240
    X = rng.standard_normal((n, 3))
    labels = rng.random(n) < 0.4
    weights = np.array([[1.0, -0.5, 0.3], [-1.0, 0.5, 0.8]])[labels.astype(int)]
    scores = (X * weights).sum(axis=1) + np.where(labels, 1.0, -1.0)
    offset = 3.0 * rng.standard_normal(n)
    of_classes = 2.0 * rng.standard_normal((n, 4))
    each = X @ rng.standard_normal((3, 4))
    each[labels] = each[labels][:, ::-1]
    return {
        "X": X,
        "labels": labels.astype(int),
        "numbers": (scores + offset + 0.05 * rng.standard_normal(n), offset),
        "counts": (rng.poisson(np.exp(scores + 3.0 + 0.3 * offset)).astype(float), 0.3 * offset),
        "classes": (np.array(list("abcd"))[(3 * each + of_classes).argmax(axis=1)], of_classes),
    }


SAMPLES = {
    "squared": ("numbers", cs.SampleClusterRegressor(2, random_state=0)),
    "huber": ("numbers", cs.SampleClusterRegressor(2, loss="huber", random_state=0)),
    "poisson": ("counts", cs.SampleClusterRegressor(2, loss=Poisson(), random_state=0)),
    "multinomial": (
        "classes",
        cs.SampleClusterClassifier(2, alpha=0.1, n_init=1, solver="am", random_state=0),
    ),
    "classes by squares": (
        "classes",
        cs.SampleClusterClassifier(2, loss="squared", n_init=1, solver="am", random_state=0),
    ),
}
every_model = pytest.mark.parametrize("name", SAMPLES)


def loss_of_experts(model, X, y, offset):
    """The objective at the experts of a model, by the definition."""
    W = model.experts_.reshape(model.n_clusters_, -1, X.shape[1])
    b = model.intercepts_.reshape(model.n_clusters_, -1)
    z = np.einsum("qkd,id->iqk", W, X) + b + offset.reshape(len(X), 1, -1)
    if hasattr(model, "classes_"):
        codes = np.searchsorted(model.classes_, y)
        if model.loss == "squared":
            signs = np.where(codes[:, None] == np.arange(4), 1.0, -1.0)
            losses = 0.5 * np.square(z - signs[:, None]).sum(axis=2)
        else:
            tops = np.log(np.exp(z).sum(axis=2))
            losses = tops - z[np.arange(len(X)), :, codes]
    elif model.loss == "squared":
        losses = 0.5 * np.square(z[:, :, 0] - y[:, None])
    elif model.loss == "huber":
        r = np.abs(z[:, :, 0] - y[:, None])
        losses = np.where(r > 1.35, 1.35 * r - 0.5 * 1.35**2, 0.5 * r**2)
    else:
        logs = np.log(np.maximum(y, 1.0))[:, None] * (y > 0)[:, None]
        losses = np.exp(z[:, :, 0]) - y[:, None] + y[:, None] * (logs - z[:, :, 0])
    costs = losses + 0.5 * model.alpha * np.square(W).sum(axis=(1, 2))
    return costs.min(axis=1).mean(), losses.min(axis=1).mean(), costs.argmin(axis=1)


@every_model
def test_experts_are_fitted_and_judged_with_the_offset(name, experts):
    what, model = SAMPLES[name]
    X, (y, offset) = experts["X"], experts[what]
    model = clone(model).fit(X, y, offset=offset)
    objective, _, choices = loss_of_experts(model, X, y, offset)
    assert model.objective_ == pytest.approx(objective, rel=1e-6)
    np.testing.assert_array_equal(model.labels_, choices)
    np.testing.assert_array_equal(model.assign(X, y, offset), choices)
    assert model.certificate_.lower_bound <= objective * (1 + 1e-9)
    without = clone(model).fit(X, y)
    assert loss_of_experts(without, X, y, offset)[0] > 1.05 * objective


@pytest.mark.parametrize("name", ["squared", "huber", "poisson"])
def test_planted_experts_are_hidden_without_the_offset(name, experts):
    what, model = SAMPLES[name]
    X, (y, offset), labels = experts["X"], experts[what], experts["labels"]

    def share(fitted):
        same = np.mean(fitted.labels_ == labels)
        return max(same, 1.0 - same)

    assert share(clone(model).fit(X, y, offset=offset)) > 0.9
    assert share(clone(model).fit(X, y)) < 0.8


def test_squared_loss_of_experts_is_that_of_shifted_targets(experts):
    X, (y, offset) = experts["X"], experts["numbers"]
    for model in (
        cs.SampleClusterRegressor(2, random_state=0),
        cs.SampleClusterRegressor(2, gate=True, random_state=0),
        cs.SampleClusterRegressorCV((1, 2), random_state=0),
        cs.SampleClusterRegressorCV((1, 2), criterion="cv", cv=2, random_state=0),
    ):
        one, other = clone(model).fit(X, y, offset=offset), clone(model).fit(X, y - offset)
        np.testing.assert_array_equal(one.experts_, other.experts_)
        np.testing.assert_array_equal(one.labels_, other.labels_)
        np.testing.assert_array_equal(one.predict(X), other.predict(X))
        np.testing.assert_allclose(one.predict(X, offset), other.predict(X) + offset)
        each = other.predict_experts(X) + offset[:, None]
        np.testing.assert_allclose(one.predict_experts(X, offset), each)
        r2 = r2_score(y, other.predict(X) + offset)
        assert one.score(X, y, offset=offset) == pytest.approx(r2)
        assert one.best_loss(X, y, None, offset) == pytest.approx(other.best_loss(X, y - offset))


def test_log_exposure_of_experts_is_that_of_weighted_rates(experts):
    X, (y, offset) = experts["X"], experts["counts"]
    exposure, model = np.exp(offset), SAMPLES["poisson"][1]
    one = clone(model).set_params(alpha=0.0).fit(X, y, offset=offset)
    other = clone(model).set_params(alpha=0.0).fit(X, y / exposure, sample_weight=exposure)
    np.testing.assert_allclose(one.experts_, other.experts_, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(one.predict(X, offset), exposure * one.predict(X))


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_classes_of_experts(loss, experts):
    X, (y, offset) = experts["X"], experts["classes"]
    model = cs.SampleClusterClassifier(2, loss=loss, alpha=0.01, n_init=1, random_state=0)
    model.fit(X, y, offset=offset)
    z = np.einsum("qkd,id->iqk", model.experts_, X) + model.intercepts_ + offset[:, None]
    shares = np.exp(z) / np.exp(z).sum(axis=2, keepdims=True) if loss == "logistic" else z
    mixed = np.einsum("q,iqk->ik", model.weights_, shares)
    np.testing.assert_array_equal(model.predict(X, offset), model.classes_[mixed.argmax(axis=1)])
    first = model.classes_[shares[:, 0].argmax(axis=1)]
    np.testing.assert_array_equal(model.predict_experts(X, offset)[:, 0], first)
    missed = (model.predict_experts(X, offset) != y[:, None]).all(axis=1).mean()
    assert model.best_error(X, y, None, offset) == pytest.approx(missed)
    if loss == "logistic":
        np.testing.assert_allclose(model.predict_proba(X, offset), mixed)


def test_searches_for_experts_score_with_the_offset(experts):
    X, (y, offset) = experts["X"], experts["counts"]
    settings = {"loss": Poisson(), "random_state": 0, "n_init": 1}
    search = cs.SampleClusterRegressorCV(
        (1, 2), criterion="cv", cv=FOLDS, scoring="neg_mean_poisson_deviance", **settings
    ).fit(X, y, offset=offset)
    seed = search.selection_.best and np.random.RandomState(0).randint(2**31)
    for place, count in enumerate((1, 2)):
        deviances = []
        for rest, held in FOLDS.split(X):
            model = cs.SampleClusterRegressor(count, **{**settings, "random_state": seed})
            model.fit(X[rest], y[rest], offset=offset[rest])
            predicted, truth = model.predict(X[held], offset[held]), y[held]
            logs = np.where(truth > 0, truth * np.log(np.maximum(truth, 1) / predicted), 0.0)
            deviances.append(2.0 * np.mean(logs - truth + predicted))
        np.testing.assert_allclose(search.selection_.values[place], np.mean(deviances))
    chosen = cs.SampleClusterRegressorCV((1, 2), **settings).fit(X, y, offset=offset)
    assert chosen.n_clusters_ == 2
    y, offset = experts["classes"]
    search = cs.SampleClusterClassifierCV(
        (1, 2), criterion="cv", cv=2, alpha=0.1, n_init=1, solver="am", random_state=0
    ).fit(X, y, offset=offset)
    assert search.has_offset_


def test_a_gate_is_judged_with_the_offset():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((400, 2))
    right = X[:, 0] > 0
    offset = 2.0 * rng.standard_normal(400)
    rate = np.where(right, X[:, 1], -X[:, 1]) + 1.0
    y = rng.poisson(np.exp(rate + 0.5 * offset)).astype(float)
    model = cs.SampleClusterRegressor(2, loss=Poisson(), gate=True, random_state=0)
    model.fit(X, y, offset=0.5 * offset)
    assert model.gate_score_.helps
    assert model.score(X, y, offset=0.5 * offset) > model.score(X, y)


@every_model
def test_experts_of_pieces(name, experts):
    what, model = SAMPLES[name]
    model = clone(model).set_params(n_init=1, solver="am")
    X, (y, offset) = experts["X"], experts[what]
    here = clone(model).fit(X, y, offset=offset)
    pieces = da.from_array(X, chunks=(70, 3)), y, da.from_array(offset, chunks=50)
    there = clone(model).fit(*pieces[:2], offset=pieces[2])
    np.testing.assert_allclose(there.experts_, here.experts_, atol=1e-6)
    np.testing.assert_array_equal(there.labels_.compute(), here.labels_)
    np.testing.assert_array_equal(there.assign(*pieces).compute(), here.labels_)
    assert there.best_loss(*pieces[:2], offset=pieces[2]) == pytest.approx(
        loss_of_experts(here, X, y, offset)[1], rel=1e-5
    )
    answers = there.predict(pieces[0], pieces[2]).compute()
    expected = here.predict(X, offset)
    if y.dtype.kind == "f":
        np.testing.assert_allclose(answers, expected, rtol=1e-5, atol=1e-5)
    else:
        assert np.mean(answers == expected) > 0.99


@pytest.mark.parametrize("name", [name for name in SAMPLES if name != "poisson"])
def test_experts_of_other_libraries(name, library, experts):
    what, model = SAMPLES[name]
    model = clone(model).set_params(n_init=1, solver="am")
    X, (y, offset) = experts["X"], experts[what]
    here = clone(model).fit(X, y, offset=offset)
    there_X, there_o = library.asarray(X), library.asarray(offset)
    there = clone(model).fit(there_X, y, offset=there_o)
    np.testing.assert_allclose(to_host(there.experts_), here.experts_, atol=1e-6)
    each = to_host(there.predict_experts(there_X, there_o))
    if y.dtype.kind == "f":
        np.testing.assert_allclose(each, here.predict_experts(X, offset), atol=1e-5)
    else:
        assert np.mean(each == here.predict_experts(X, offset)) > 0.99


def test_a_search_elsewhere_draws_offsets_with_samples(experts):
    X, (y, offset) = experts["X"], experts["numbers"]
    settings = {"n_clusters": (1, 2), "random_state": 0}
    there = cs.SampleClusterRegressorCV(**settings).fit(
        da.from_array(X, chunks=(80, 3)), y, offset=offset
    )
    assert there.n_clusters_ == 2
    assert there.has_offset_


# ---- Tasks


@pytest.fixture(scope="module")
def tasks():
    """Rows of tasks in two groups, with an offset that moves numbers, counts and classes."""
    rng = np.random.default_rng(0)
    n_tasks, each, d = 8, 20, 3
    ids = np.repeat(np.arange(n_tasks), each)
    X = rng.standard_normal((ids.size, d))
    centres = np.array([[1.0, -1.0, 0.5], [-1.0, 0.5, 1.0]])
    scores = (X * centres[ids % 2]).sum(axis=1) + 0.5
    offset = (X * np.array([-2.0, 1.0, 1.0])).sum(axis=1) * (ids % 3) + rng.standard_normal(
        ids.size
    )
    return {
        "X": X,
        "tasks": ids,
        "offset": offset,
        "numbers": scores + offset + 0.3 * rng.standard_normal(ids.size),
        "counts": rng.poisson(np.exp(scores + 0.3 * offset)).astype(float),
        "classes": np.where(scores + offset + rng.logistic(size=ids.size) > 0, "yes", "no"),
    }


def test_squared_loss_of_tasks_is_that_of_shifted_targets(tasks):
    X, y, ids, offset = (tasks[name] for name in ("X", "numbers", "tasks", "offset"))
    pieces = da.from_array(X, chunks=(50, 3))
    for model in (
        cs.TaskClusterRegressor(2, random_state=0),
        cs.TaskClusterRegressorCV((1, 2), cv=2, random_state=0),
    ):
        other = clone(model).fit(X, y - offset, tasks=ids)
        for there, own in ((X, offset), (pieces, da.from_array(offset, chunks=70))):
            one = clone(model).fit(there, y, tasks=ids, offset=own)
            np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-8)
            np.testing.assert_allclose(one.intercept_, other.intercept_, atol=1e-8)
            predicted = np.asarray(one.predict(there, tasks=ids, offset=own))
            np.testing.assert_allclose(predicted, other.predict(X, tasks=ids) + offset, atol=1e-8)
        if hasattr(other, "cv_results_"):
            scores = one.cv_results_.fold_scores, other.cv_results_.fold_scores
            np.testing.assert_allclose(*scores, atol=1e-8)
    r2 = r2_score(y, other.predict(X, tasks=ids) + offset)
    assert one.score(X, y, tasks=ids, offset=offset) == pytest.approx(r2)


@pytest.mark.parametrize("what", ["numbers", "counts", "classes"])
def test_groups_of_tasks_are_hidden_without_the_offset(what, tasks):
    X, y, ids, offset = (tasks[name] for name in ("X", what, "tasks", "offset"))
    offset = 0.3 * offset if what == "counts" else offset
    model = {
        "numbers": cs.TaskClusterRegressor(2, loss="huber", random_state=0),
        "counts": cs.TaskClusterRegressor(2, loss=Poisson(), random_state=0),
        "classes": cs.TaskClusterClassifier(2, random_state=0),
    }[what]
    found = clone(model).fit(X, y, tasks=ids, offset=offset)
    truth = np.arange(8) % 2
    without = clone(model).fit(X, y, tasks=ids)
    right, wrong = (abs(np.mean(m.labels_ == truth) - 0.5) for m in (found, without))
    assert right >= 0.375  # at most one of eight tasks is in the wrong group
    assert wrong < right
    assert found.certificate_.lower_bound <= found.objective_
    adapted = found.adapt(X[:20], y[:20], ["new"] * 20, offset=offset[:20])
    np.testing.assert_allclose(adapted.coef_[-1], found.coef_[0], atol=0.2)
    pieces = da.from_array(X, chunks=(50, 3))
    there = clone(model).fit(pieces, y, tasks=ids, offset=offset)
    np.testing.assert_allclose(there.coef_, found.coef_, atol=1e-5)
    np.testing.assert_array_equal(there.labels_, found.labels_)


def test_one_task_with_an_offset_is_logistic_regression_with_it(tasks):
    X, y, offset = (tasks[name] for name in ("X", "classes", "offset"))
    model = cs.TaskClusterClassifier(
        1, alpha=0.1, alpha_mean=0.0, alpha_between=0.0, alpha_within=0.0, tol=1e-10
    ).fit(X, y, offset=offset)
    signs = np.where(y == "yes", 1.0, -1.0)

    def objective(v):
        z = X @ v[:3] + v[3] + offset
        return np.logaddexp(0.0, -signs * z).mean() + 0.05 * v[:3] @ v[:3]

    best = minimize(objective, np.zeros(4), options={"gtol": 1e-9})
    np.testing.assert_allclose(model.coef_[0], best.x[:3], atol=1e-4)
    np.testing.assert_allclose(model.intercept_[0], best.x[3], atol=1e-3)
    chances = expit(X @ model.coef_[0] + model.intercept_[0] + offset)
    np.testing.assert_allclose(model.predict_proba(X, offset=offset)[:, 1], chances)
    np.testing.assert_allclose(expit(model.decision_function(X, offset=offset)), chances)
    right = accuracy_score(y, model.classes_[(chances > 0.5).astype(int)])
    assert model.score(X, y, offset=offset) == pytest.approx(right)


@pytest.mark.parametrize("loss", ["logistic", "huber"])
def test_no_bound_of_tasks_is_above_the_best_of_all_groupings(loss):
    rng = np.random.default_rng(5)
    ids = np.repeat(np.arange(4), 8)
    X, offset = rng.standard_normal((32, 2)), rng.standard_normal(32)
    signs = np.where(X @ [1.0, -1.0] * np.where(ids % 2, 1, -1) + offset > 0, 1.0, -1.0)
    model = cs.TaskClusterClassifier(
        2,
        loss=loss,
        huber_delta=0.5,
        alpha=0.05,
        alpha_mean=0.1,
        alpha_between=0.2,
        alpha_within=1.0,
        fit_intercept=False,
        tol=1e-10,
        random_state=0,
    ).fit(X, signs, tasks=ids, offset=offset)

    def objective(numbers, labels):
        W, V = np.split(numbers.reshape(-1, 2), [4])
        z = (X * W[ids]).sum(axis=1) + offset
        r = np.abs(z - signs)
        losses = np.where(r > 0.5, 0.5 * r - 0.125, 0.5 * r**2)
        losses = np.logaddexp(0.0, -signs * z) if loss == "logistic" else losses
        mean = V[labels].mean(axis=0)
        apart = 0.05 * W**2 + 1.0 * (W - V[labels]) ** 2 + 0.2 * (V[labels] - mean) ** 2
        return losses.mean() + 0.5 * apart.sum() / 4 + 0.05 * mean @ mean

    best = min(
        minimize(objective, np.zeros(12), args=(np.array(labels),), options={"gtol": 1e-8}).fun
        for labels in brute_force.groupings(4, 2)
    )
    assert model.objective_ == pytest.approx(best, rel=1e-5)
    assert 0.5 * best < model.certificate_.lower_bound <= best * (1 + 1e-7)


def test_columns_of_tasks_and_of_classes_have_offsets_of_their_own(tasks):
    rng = np.random.default_rng(3)
    X = tasks["X"][:60]
    offset = rng.standard_normal((60, 4))
    Y = X @ rng.standard_normal((3, 4)) + offset
    Y[::7, 1] = np.nan
    model = cs.TaskClusterRegressor(2, random_state=0)
    one, other = clone(model).fit(X, Y, offset=offset), clone(model).fit(X, Y - offset)
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-9)
    np.testing.assert_allclose(one.predict(X, offset=offset), other.predict(X) + offset)
    huber = cs.TaskClusterRegressor(2, loss="huber", random_state=0)
    same = clone(huber).fit(X, Y, offset=offset[:, 0]), clone(huber).fit(X, Y - offset[:, :1])
    np.testing.assert_allclose(same[0].coef_, same[1].coef_, atol=1e-5)
    names = np.array(list("abcd"))[(X @ rng.standard_normal((3, 4)) + offset).argmax(axis=1)]
    classifier = cs.TaskClusterClassifier(2, random_state=0).fit(X, names, offset=offset)
    scores = X @ classifier.coef_.T + classifier.intercept_ + offset
    np.testing.assert_allclose(classifier.decision_function(X, offset=offset), scores)
    signs = np.where(names[:, None] == classifier.classes_, 1.0, -1.0)
    assert np.logaddexp(0.0, -signs * scores).mean() < 0.6
    with pytest.raises(ValueError, match=r"offset has shape \(60, 3\), but a sample has 4 scores"):
        clone(model).fit(X, Y, offset=offset[:, :3])


@pytest.mark.parametrize("scoring", [None, "neg_log_loss"])
def test_searches_for_groups_of_tasks_score_with_the_offset(scoring, tasks):
    X, y, ids, offset = (tasks[name] for name in ("X", "classes", "tasks", "offset"))
    fixed = {"alpha_within": 1.0, "alpha_between": 0.1, "random_state": 0}
    search = cs.TaskClusterClassifierCV((1,), cv=FOLDS, scoring=scoring, **fixed)
    search.fit(X, y, tasks=ids, offset=offset)
    own = search.alpha_intercept_
    found = []
    for rest, held in FOLDS.split(X):
        model = cs.TaskClusterClassifier(1, alpha_intercept=own, **fixed)
        model.fit(X[rest], y[rest], tasks=ids[rest], offset=offset[rest])
        chances = model.predict_proba(X[held], tasks=ids[held], offset=offset[held])
        found.append(-log_loss(y[held], chances))
    np.testing.assert_allclose(search.cv_results_.fold_scores.ravel(), found, rtol=1e-3)
    for there in (X, da.from_array(X, chunks=(50, 3))):
        again = clone(search).fit(there, y, tasks=ids, offset=offset)
        scores = again.cv_results_.fold_scores.ravel()
        np.testing.assert_allclose(scores, search.cv_results_.fold_scores.ravel(), rtol=1e-4)


def test_scorers_of_tasks_take_an_offset(tasks):
    X, y, ids, offset = (tasks[name] for name in ("X", "classes", "tasks", "offset"))
    model = cs.TaskClusterClassifier(2, random_state=0)
    with config_context(enable_metadata_routing=True):
        model = model.set_fit_request(tasks=True, offset=True)
        given = {"cv": FOLDS, "scoring": cs.task_scorer("neg_log_loss")}
        params = {"tasks": ids, "offset": offset}
        found = cross_val_score(model, X, y, params=params, **given)
        model = model.set_fit_request(tasks=True, offset=False)
        without = cross_val_score(model, X, y, params={"tasks": ids}, **given)
    expected = []
    for rest, held in FOLDS.split(X):
        fitted = clone(model).fit(X[rest], y[rest], tasks=ids[rest], offset=offset[rest])
        chances = fitted.predict_proba(X[held], tasks=ids[held], offset=offset[held])
        expected.append(-log_loss(y[held], chances))
    np.testing.assert_allclose(found, expected)
    assert (found > without).all()


def test_tasks_of_other_libraries(library, tasks):
    X, y, ids, offset = (tasks[name] for name in ("X", "classes", "tasks", "offset"))
    here = cs.TaskClusterClassifier(2, random_state=0).fit(X, y, tasks=ids, offset=offset)
    there_X, there_o = library.asarray(X), library.asarray(offset)
    there = clone(here).fit(there_X, y, tasks=ids, offset=there_o)
    np.testing.assert_allclose(to_host(there.coef_), here.coef_, atol=1e-6)
    chances = there.predict_proba(there_X, tasks=ids, offset=there_o)
    expected = here.predict_proba(X, tasks=ids, offset=offset)
    np.testing.assert_allclose(to_host(chances), expected, atol=1e-6)
