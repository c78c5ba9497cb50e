"""Models of clustered tasks: limits with closed forms, layouts, new tasks, contracts."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import HuberRegressor, LogisticRegression, Ridge
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import clustruct as cs
from clustruct.datasets import make_clustered_tasks
from clustruct.inspection import curve_of


@pytest.fixture(scope="module")
def planted():
    return make_clustered_tasks(20, 5, 12, 2, shared=False, intercept=1.0, random_state=0)


@pytest.fixture(scope="module")
def rows(planted):
    return planted.rows()


@pytest.fixture(scope="module")
def model(rows):
    X, y, tasks = rows
    return cs.TaskClusterRegressor(2, random_state=0).fit(X, y, tasks=tasks)


@pytest.fixture(scope="module")
def classes():
    planted = make_clustered_tasks(
        40, 4, 8, 2, between=2.0, shared=False, classification=True, random_state=0
    )
    return planted.rows()


# ---- Limits


def test_independent_tasks_are_ridge_regressions(rows):
    X, y, tasks = rows
    model = cs.TaskClusterRegressor(
        3, alpha=0.3, alpha_within=0.0, alpha_between=0.0, alpha_intercept=0.0, random_state=0
    ).fit(X, y, tasks=tasks)
    for t in range(12):
        mine = tasks == t
        # The mean over tasks of the ridge, against the mean over all samples of the loss.
        ridge = Ridge(0.3 * len(y) / 12).fit(X[mine], y[mine])
        np.testing.assert_allclose(model.coef_[t], ridge.coef_, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(model.intercept_[t], ridge.intercept_, rtol=1e-5)


def test_one_shared_model_is_pooled_ridge(rows):
    X, y, tasks = rows
    model = cs.TaskClusterRegressor(
        1, alpha_within=np.inf, alpha_between=0.4, alpha_intercept=1e6, random_state=0
    ).fit(X, y, tasks=tasks)
    ridge = Ridge(0.4 * len(y)).fit(X, y)
    np.testing.assert_allclose(model.coef_, np.tile(ridge.coef_, (12, 1)), rtol=1e-5)
    np.testing.assert_allclose(model.predict(X, tasks=tasks), ridge.predict(X), rtol=1e-4)


def test_shared_weights_with_free_intercepts_are_fixed_effects(rows):
    X, y, tasks = rows
    model = cs.TaskClusterRegressor(
        1, alpha_within=np.inf, alpha_between=0.4, alpha_intercept=0.0, random_state=0
    ).fit(X, y, tasks=tasks)
    means = np.stack([X[tasks == t].mean(axis=0) for t in range(12)])
    levels = np.array([y[tasks == t].mean() for t in range(12)])
    ridge = Ridge(0.4 * len(y), fit_intercept=False).fit(X - means[tasks], y - levels[tasks])
    np.testing.assert_allclose(model.coef_[0], ridge.coef_, rtol=1e-5)
    np.testing.assert_allclose(model.intercept_, levels - means @ ridge.coef_, rtol=1e-4, atol=1e-5)


def test_hard_groups_are_ridge_regressions_of_their_rows(rows):
    X, y, tasks = rows
    model = cs.TaskClusterRegressor(
        2, alpha_within=np.inf, alpha_between=0.2, fit_intercept=False, random_state=0
    ).fit(X, y - 1.0, tasks=tasks)
    for q in range(2):
        mine = model.labels_[tasks] == q
        strength = 0.2 * len(y) * model.cluster_sizes_[q] / 12
        ridge = Ridge(strength, fit_intercept=False).fit(X[mine], y[mine] - 1.0)
        np.testing.assert_allclose(model.centroids_[q], ridge.coef_, rtol=1e-8)
    np.testing.assert_allclose(model.coef_, model.centroids_[model.labels_])


def test_one_group_is_mean_regularised(rows):
    # Evgeniou and Pontil: ridge with the kernel x'z (1/mean + [same task] K/within).
    X, y, tasks = rows
    model = cs.TaskClusterRegressor(
        1, alpha_mean=0.1, alpha_between=0.1, alpha_within=0.5, fit_intercept=False, random_state=0
    ).fit(X, y, tasks=tasks)
    same = tasks[:, None] == tasks
    kernel = X @ X.T * (1 / 0.1 + same * 12 / 0.5) / len(y)
    dual = np.linalg.solve(kernel + np.eye(len(y)), y)
    np.testing.assert_allclose(model.predict(X, tasks=tasks), kernel @ dual, rtol=1e-8)


def test_independent_classifiers_are_logistic_regressions(classes):
    X, y, tasks = classes
    model = cs.TaskClusterClassifier(
        2, alpha=0.05, alpha_within=0.0, alpha_between=0.0, fit_intercept=False, random_state=0
    ).fit(X, y, tasks=tasks)
    for t in range(8):
        mine = tasks == t
        single = LogisticRegression(
            C=8 / (0.05 * len(y)), fit_intercept=False, tol=1e-10, max_iter=10000
        ).fit(X[mine], y[mine])
        np.testing.assert_allclose(model.coef_[t], single.coef_[0], rtol=1e-4)


def test_pooled_classifier_is_logistic_regression(classes):
    X, y, tasks = classes
    model = cs.TaskClusterClassifier(
        1, alpha_within=np.inf, alpha_between=0.05, alpha_intercept=1e6, random_state=0
    ).fit(X, y, tasks=tasks)
    pooled = LogisticRegression(C=1 / (0.05 * len(y)), tol=1e-10, max_iter=10000).fit(X, y)
    np.testing.assert_allclose(model.mean_coef_, pooled.coef_[0], rtol=1e-4)
    np.testing.assert_allclose(model.mean_intercept_, pooled.intercept_[0], rtol=1e-3, atol=1e-5)


def test_huber_is_hubers_regression(rows):
    X, y, tasks = rows
    y = y + 30.0 * (np.arange(len(y)) % 17 == 0)
    peer = HuberRegressor(alpha=1e-6, tol=1e-9, max_iter=10000).fit(X, y)
    model = cs.TaskClusterRegressor(
        1,
        loss="huber",
        huber_delta=peer.epsilon * peer.scale_,
        alpha_within=np.inf,
        alpha_between=0.0,
        alpha_intercept=1e6,
        random_state=0,
    ).fit(X, y, tasks=tasks)
    np.testing.assert_allclose(model.mean_coef_, peer.coef_, rtol=1e-3, atol=1e-3)


# ---- Layouts


def test_the_two_layouts_agree():
    planted = make_clustered_tasks(15, 4, 9, 3, missing=0.3, random_state=1)
    X, Y = planted.columns()
    by_column = cs.TaskClusterRegressor(3, random_state=0).fit(X, Y)
    X_rows, y, tasks = planted.rows()
    by_row = cs.TaskClusterRegressor(3, random_state=0).fit(X_rows, y, tasks=tasks)
    np.testing.assert_allclose(by_column.coef_, by_row.coef_, rtol=1e-8)
    np.testing.assert_allclose(by_column.intercept_, by_row.intercept_, rtol=1e-8)
    assert by_column.predict(X).shape == Y.shape
    np.testing.assert_allclose(
        by_column.predict(X)[planted.samples, planted.tasks], by_row.predict(X_rows, tasks=tasks)
    )
    assert by_column.score(X, Y) == pytest.approx(by_row.score(X_rows, y, tasks=tasks))


def test_order_of_rows_and_tasks_does_not_matter(rows, model):
    X, y, tasks = rows
    order = np.random.default_rng(0).permutation(len(y))
    shuffled = clone(model).fit(X[order], y[order], tasks=tasks[order])
    np.testing.assert_allclose(shuffled.coef_, model.coef_, rtol=1e-8)
    renamed = clone(model).fit(X, y, tasks=11 - tasks)
    np.testing.assert_allclose(renamed.coef_[::-1], model.coef_, rtol=1e-8)
    assert (renamed.labels_[::-1] == model.labels_).all()


@pytest.mark.parametrize(
    "rename",
    [
        lambda t: [f"school {i:02d}" for i in t],
        lambda t: [(int(i), "b") for i in t],
        lambda t: pd.Series([f"{i:02d}" for i in t], dtype="category"),
        lambda t: [f"{i:02d}" if i % 2 else int(i) for i in t],
        lambda t: t.astype(float),
    ],
    ids=["str", "tuple", "category", "mixed", "float"],
)
def test_any_hashable_names_a_task(rows, model, rename):
    X, y, tasks = rows
    ids = rename(tasks)
    other = clone(model).fit(X, y, tasks=ids)
    assert other.tasks_.size == 12
    np.testing.assert_allclose(
        other.predict(X, tasks=ids), model.predict(X, tasks=tasks), rtol=1e-6
    )


def test_names_of_columns():
    X, Y = make_clustered_tasks(15, 4, 3, 1, random_state=1).columns()
    frame = pd.DataFrame(Y, columns=["a", "b", "c"])
    model = cs.TaskClusterRegressor(1, random_state=0).fit(X, frame)
    assert model.tasks_.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(
        model.predict(X[:2], tasks=["c", "a"]), model.predict(X[:2])[[0, 1], [2, 0]]
    )


@pytest.mark.parametrize("convert", [sparse.csr_matrix, sparse.csc_matrix, np.float32])
def test_other_kinds_of_matrices(rows, model, convert):
    X, y, tasks = rows
    other = X.astype(np.float32) if convert is np.float32 else convert(X)
    fitted = clone(model).fit(other, y, tasks=tasks)
    np.testing.assert_allclose(fitted.coef_, model.coef_, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        fitted.predict(other, tasks=tasks), model.predict(X, tasks=tasks), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_more_features_than_samples(convert, fit_intercept):
    rng = np.random.default_rng(0)
    X, tasks = rng.standard_normal((18, 40)), np.repeat(np.arange(6), 3)
    y = rng.standard_normal(18)
    settings = {"alpha": 0.1, "fit_intercept": fit_intercept, "alpha_within": 1.0}
    settings |= {"alpha_between": 0.5, "alpha_intercept": 0.1}
    model = cs.TaskClusterRegressor(1, **settings).fit(convert(X), y, tasks=tasks)
    # The same problem with rows of no weight, in as many coordinates as there are columns.
    padded = np.vstack([X, np.eye(40)])
    weights = np.concatenate([np.ones(18), np.full(40, 1e-12)])
    ids = np.concatenate([tasks, np.zeros(40, dtype=int)])
    plain = cs.TaskClusterRegressor(1, **settings)
    plain.fit(padded, np.concatenate([y, np.zeros(40)]), tasks=ids, sample_weight=weights)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-6)
    np.testing.assert_allclose(model.intercept_, plain.intercept_, atol=1e-6)
    joined = model.adapt(X[:2], y[:2], tasks=["new", "new"])
    assert joined.coef_.shape == (7, 40)


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_weights_equal_repetition(rows, loss):
    X, y, tasks = rows
    counts = np.random.default_rng(0).integers(0, 4, len(y))
    settings = {"loss": loss, "alpha_within": 1.0, "alpha_between": 0.1, "random_state": 0}
    weighted = cs.TaskClusterRegressor(2, **settings).fit(X, y, tasks=tasks, sample_weight=counts)
    repeated = cs.TaskClusterRegressor(2, **settings).fit(
        np.repeat(X, counts, axis=0), np.repeat(y, counts), tasks=np.repeat(tasks, counts)
    )
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-6, atol=1e-9)


# ---- Answers


def test_attributes_agree(rows, model, planted):
    X, y, tasks = rows
    assert adjusted_rand_score(model.labels_, planted.labels) == 1.0
    own = np.einsum("ij,ij->i", X, model.coef_[tasks]) + model.intercept_[tasks]
    np.testing.assert_allclose(model.predict(X, tasks=tasks), own)
    np.testing.assert_allclose(model.predict(X)[np.arange(len(y)), tasks], own)
    assert (np.diff(model.cluster_sizes_) <= 0).all()
    np.testing.assert_allclose(
        model.mean_coef_, np.average(model.centroids_, axis=0, weights=model.cluster_sizes_)
    )
    groups = model.clusters()
    assert sorted(task for group in groups for task in group.tasks) == list(range(12))
    assert model.certificate_.lower_bound <= model.objective_
    assert "am" in model.status_.message


def test_unknown_tasks_get_the_mean_predictor(rows, model):
    X, _, tasks = rows
    mean = X[:3] @ model.mean_coef_ + model.mean_intercept_
    np.testing.assert_allclose(model.predict(X[:3], tasks=["new", 99, "x"]), mean)
    mixed = model.predict(X[:2], tasks=np.array([tasks[0], 77]))
    np.testing.assert_allclose(mixed, [model.predict(X[:1], tasks=tasks[:1])[0], mean[1]])


def test_adapt_finds_the_group(planted, model):
    rng = np.random.default_rng(5)
    for q in range(2):
        X = rng.standard_normal((8, 5))
        y = X @ planted.centers[q] + 1.0 + 0.3 * rng.standard_normal(8)
        joined = model.adapt(X, y, tasks=["new"] * 8)
        true = model.labels_[planted.labels == q][0]
        assert joined.labels_[-1] == true
        assert joined.tasks_[-1] == "new"
        X_new = rng.standard_normal((50, 5))
        answers = X_new @ planted.centers[q] + 1.0
        near = joined.predict(X_new, tasks=["new"] * 50)
        unknown = model.predict(X_new, tasks=["new"] * 50)
        assert np.square(near - answers).mean() < 0.6 * np.square(unknown - answers).mean()
    assert model.tasks_.size == 12  # adapt leaves the model alone
    np.testing.assert_array_equal(joined.coef_[:12], model.coef_)


def test_adapt_to_a_task_of_the_fit_changes_nothing(rows):
    X, y, tasks = rows
    model = cs.TaskClusterRegressor(2, random_state=0).fit(X, y, tasks=tasks)
    joined = model.adapt(X[tasks == 3], y[tasks == 3], tasks=["three"] * 20)
    np.testing.assert_allclose(joined.coef_[-1], model.coef_[3], rtol=1e-6)
    np.testing.assert_allclose(joined.intercept_[-1], model.intercept_[3], rtol=1e-6)
    assert joined.labels_[-1] == model.labels_[3]


def test_classes(classes):
    X, y, tasks = classes
    names = np.array(["clear", "mine"])[y]
    model = cs.TaskClusterClassifier(2, random_state=0).fit(X, names, tasks=tasks)
    scores = model.decision_function(X, tasks=tasks)
    assert (model.predict(X, tasks=tasks) == model.classes_[(scores > 0).astype(int)]).all()
    proba = model.predict_proba(X, tasks=tasks)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert model.score(X, names, tasks=tasks) > 0.85
    assert model.predict(X).shape == model.predict_proba(X).shape == (320, 8)
    joined = model.adapt(X[:5], names[:5], tasks=["new"] * 5)
    assert joined.predict(X[:5], tasks=["new"] * 5).shape == (5,)
    balanced = cs.TaskClusterClassifier(2, class_weight="balanced", random_state=0).fit(
        X, names, tasks=tasks
    )
    assert balanced.score(X, names, tasks=tasks) > 0.85


@pytest.mark.parametrize("loss", ["logistic", "squared", "huber"])
def test_one_classifier_a_class(loss):
    rng = np.random.default_rng(0)
    centers = np.array([[4, 0], [4, 1], [-4, 0], [-4, 1]])
    y = np.repeat(np.array(["ash", "oak", "yew", "elm"]), 30)
    X = np.repeat(centers, 30, axis=0) + 0.3 * rng.standard_normal((120, 2))
    model = cs.TaskClusterClassifier(
        2, loss=loss, alpha_within=0.01, alpha_between=0.001, random_state=0
    ).fit(X, y)
    assert model.tasks_.tolist() == model.classes_.tolist() == ["ash", "elm", "oak", "yew"]
    assert model.coef_.shape == (4, 2)
    assert (model.predict(X) == y).mean() > 0.7
    assert hasattr(model, "predict_proba") == (loss == "logistic")
    if loss == "logistic":
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    with pytest.raises(ValueError, match="called without tasks"):
        model.predict(X, tasks=["ash"] * 120)


def test_columns_of_classes():
    X, Y = make_clustered_tasks(
        30, 3, 5, 2, missing=0.2, classification=True, random_state=0
    ).columns()
    numbers = cs.TaskClusterClassifier(2, random_state=0).fit(X, Y)
    words = np.where(np.isnan(Y), None, np.where(Y == 1, "yes", "no"))
    named = cs.TaskClusterClassifier(2, random_state=0).fit(X, words)
    np.testing.assert_allclose(named.coef_, numbers.coef_)
    assert set(named.predict(X).reshape(-1)) == {"yes", "no"}
    assert named.score(X, words) == pytest.approx(numbers.score(X, Y))


# ---- Tasks of very unequal size


def test_tasks_with_one_row_or_one_class_do_no_harm(classes):
    X, y, tasks = classes
    rng = np.random.default_rng(0)
    plain = cs.TaskClusterClassifier(2, random_state=0).fit(X, y, tasks=tasks)
    extra = rng.standard_normal((13, 4))
    more = np.vstack([X, extra])
    # One row in task 8, twelve rows of the same class in task 9.
    answers, ids = np.append(y, np.zeros(13, int)), np.append(tasks, [8] + [9] * 12)
    model = cs.TaskClusterClassifier(2, random_state=0).fit(more, answers, tasks=ids)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_).all()
    assert (model.predict(X, tasks=tasks) == plain.predict(X, tasks=tasks)).mean() > 0.97
    near = model.centroids_[model.labels_[8]]
    assert np.linalg.norm(model.coef_[8] - near) < 0.1 * np.linalg.norm(near)


def test_a_task_with_one_row_stays_near_its_group(rows):
    X, y, tasks = rows
    kept = (tasks != 5) | (np.cumsum(tasks == 5) == 1)
    model = cs.TaskClusterRegressor(2, random_state=0).fit(X[kept], y[kept], tasks=tasks[kept])
    full = cs.TaskClusterRegressor(2, random_state=0).fit(
        X[tasks != 5], y[tasks != 5], tasks=tasks[tasks != 5]
    )
    others = np.delete(np.arange(12), 5)
    np.testing.assert_allclose(model.coef_[others], full.coef_, atol=0.1)


def test_constant_answers():
    X = np.arange(24.0).reshape(12, 2)
    model = cs.TaskClusterRegressor(2, random_state=0).fit(
        X, np.ones(12), tasks=np.repeat([0, 1, 2], 4)
    )
    np.testing.assert_allclose(model.predict(X), 1.0)


# ---- Contracts


def test_same_fit_whatever_n_jobs(rows, model):
    X, y, tasks = rows
    other = clone(model).set_params(n_jobs=2, verbose=1).fit(X, y, tasks=tasks)
    assert (other.coef_ == model.coef_).all()


def test_pickle_and_clone(rows, model):
    X, y, tasks = rows
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(X, tasks=tasks) == model.predict(X, tasks=tasks)).all()
    assert not hasattr(clone(model), "coef_")
    assert (clone(model).fit(X, y, tasks=tasks).coef_ == model.coef_).all()


def test_model_files(rows, model, tmp_path):
    X, y, tasks = rows
    joined = model.adapt(X[:3], y[:3], tasks=["new"] * 3)
    searched = cs.TaskClusterRegressorCV(
        (1, 2), cv=2, alpha_within=1.0, alpha_between=0.1, random_state=0
    )
    for fitted in (model, joined, searched.fit(X, y, tasks=tasks)):
        cs.save(fitted, tmp_path / "model")
        again = cs.load(tmp_path / "model")
        assert (again.predict(X, tasks=tasks) == fitted.predict(X, tasks=tasks)).all()
        more = again.adapt(X[:3], y[:3], tasks=["newer"] * 3)
        np.testing.assert_allclose(more.coef_[:-1], fitted.coef_)


def test_callback_ends_the_fit(rows):
    X, y, tasks = rows
    told = []
    cs.TaskClusterRegressor(2, callback=lambda step: told.append(step) or True, random_state=0).fit(
        X, y, tasks=tasks
    )
    assert len(told) == 1


def test_tables_and_curves(rows, model):
    X, y, tasks = rows
    assert "12 tasks in 2 groups" in model.clusters()._repr_html_()
    searched = cs.TaskClusterRegressorCV(
        (1, 2), cv=2, alpha_within=1.0, alpha_between=0.1, random_state=0
    )
    found = searched.fit(X, y, tasks=tasks).cv_results_
    assert "neg_squared_loss" in found._repr_html_()
    curve = curve_of(searched)
    assert curve.counts == ("1", "2")
    assert curve.chosen == found.best_index[0]
    np.testing.assert_allclose(curve.values, -found.mean_scores[:, 0])


def test_metadata_routing(rows):
    X, y, tasks = rows
    with config_context(enable_metadata_routing=True):
        model = cs.TaskClusterRegressor(2, random_state=0).set_fit_request(tasks=True)
        model.set_predict_request(tasks=True).set_score_request(tasks=True)
        pipeline = make_pipeline(StandardScaler(), model).fit(X, y, tasks=tasks)
        assert pipeline.score(X, y, tasks=tasks) > 0.85
        assert pipeline.predict(X, tasks=tasks).shape == y.shape


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tasks": [0] * 3}, r"tasks has shape \(3,\), but X has 240 samples"),
        ({"tasks": [None, *[1] * 239]}, r"tasks\[0\] is missing"),
        ({"tasks": [[1]] * 240}, "cannot be compared"),
        ({"tasks": 7}, "one id for each sample"),
        ({"y": np.zeros((240, 2))}, "y has 2 columns.*leave out tasks"),
        ({"y": np.full(240, np.nan)}, "NaN"),
        ({"sample_weight": np.zeros(240)}, "zero"),
    ],
)
def test_clear_errors(rows, change, message):
    X, y, tasks = rows
    passed = {"y": y, "tasks": tasks, **change}
    with pytest.raises(ValueError, match=message):
        cs.TaskClusterRegressor(2, random_state=0).fit(X, **passed)


def test_clear_errors_of_columns():
    X, Y = make_clustered_tasks(6, 2, 3, 1, random_state=0).columns()
    empty = Y.copy()
    empty[:, 1] = np.nan
    with pytest.raises(ValueError, match=r"Task 1 has no target.*Leave such tasks out"):
        cs.TaskClusterRegressor(1, random_state=0).fit(X, empty)
    with pytest.raises(ValueError, match="infinity"):
        cs.TaskClusterRegressor(1, random_state=0).fit(X, np.where(Y > 0, np.inf, Y))
    with pytest.raises(ValueError, match="no target"):
        cs.TaskClusterRegressor(1, random_state=0).fit(X, np.full_like(Y, np.nan))


def test_clear_errors_of_strengths_and_solvers(rows):
    X, y, tasks = rows
    with pytest.raises(ValueError, match="alpha_mean=2 is more than alpha_between=1"):
        cs.TaskClusterRegressor(2, alpha_mean=2.0, alpha_between=1.0, random_state=0).fit(
            X, y, tasks=tasks
        )
    with pytest.raises(ValueError, match="alpha_within"):
        cs.TaskClusterRegressor(2, alpha_within=-1.0, random_state=0).fit(X, y, tasks=tasks)
    with pytest.raises(ValueError, match="does not know"):
        cs.TaskClusterRegressor(2, solver="pg", solver_options={"step": 1}, random_state=0).fit(
            X, y, tasks=tasks
        )
    with pytest.raises(ValueError, match="squared loss and positive"):
        cs.TaskClusterRegressor(2, solver="cg", loss="huber", random_state=0).fit(X, y, tasks=tasks)


def test_clear_errors_of_classes(classes):
    X, y, tasks = classes
    with pytest.raises(ValueError, match="one class only"):
        cs.TaskClusterClassifier(2, random_state=0).fit(X, np.zeros(320, int), tasks=tasks)
    with pytest.raises(ValueError, match="3 classes, but each task tells two apart"):
        cs.TaskClusterClassifier(2, random_state=0).fit(X, np.arange(320) % 3, tasks=tasks)
    model = cs.TaskClusterClassifier(2, random_state=0).fit(X, y, tasks=tasks)
    with pytest.raises(ValueError, match="class 5, which was not in `fit`"):
        model.adapt(X[:2], [5, 1], tasks=["a", "a"])
    with pytest.raises(ValueError, match="known from `fit`"):
        model.adapt(X[:2], [0, 1], tasks=[0, 0])
    with pytest.raises(ValueError, match="Give tasks"):
        model.score(X, y)


def test_a_failed_fit_leaves_nothing_behind(rows):
    X, y, tasks = rows
    model = cs.TaskClusterRegressor(2, alpha_mean=2.0, alpha_between=1.0, random_state=0)
    with pytest.raises(ValueError):
        model.fit(X, y, tasks=tasks)
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize("kind", [cs.TaskClusterRegressor, cs.TaskClusterRegressorCV])
def test_a_vector_of_numbers_needs_tasks(kind):
    problem = cs.datasets.make_clustered_tasks(n_tasks=4, n_clusters=2, random_state=0)
    X, y, _ = problem.rows()
    with pytest.raises(ValueError, match=r"Give tasks, .* one column\s+for each task"):
        kind(1).fit(X, y)
    assert kind(1).fit(X, y.reshape(-1, 1)).predict(X).shape == (y.size, 1)


def test_a_vector_of_classes_needs_no_tasks():
    X, _ = cs.datasets.make_clustered_tasks(n_tasks=4, n_clusters=2, random_state=0).columns()
    names = np.array(["a", "b", "c"])[np.digitize(X[:, 0], (-0.5, 0.5))]
    assert cs.TaskClusterClassifier(2, random_state=0).fit(X, names).tasks_.tolist() == [
        "a",
        "b",
        "c",
    ]
    assert (
        cs.TaskClusterClassifier(2, random_state=0).fit(X, names == "a").predict(X).shape
        == names.shape
    )
