"""``solver="em"``: mixtures over tasks as models, and as candidates of searches."""

from types import SimpleNamespace

import dask.array as da
import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score, roc_auc_score

import clustruct as cs
from clustruct.datasets import make_clustered_tasks
from clustruct.estimators.search.rules import Rule
from clustruct.estimators.tasks.base import Prices
from clustruct.estimators.tasks.search import Points
from tests.losses.targets import NEWER, name_of, suited


@pytest.fixture(scope="module")
def planted():
    return make_clustered_tasks(15, 4, 24, 3, within=0.2, shared=False, random_state=0)


@pytest.fixture(scope="module")
def fitted(planted):
    return em().fit(*planted.rows())


def em(n_clusters=5, **settings):
    return cs.TaskClusterRegressor(n_clusters, solver="em", random_state=0, **settings)


def error(model, planted):
    return float(np.square(model.coef_ - planted.coef).sum(axis=1).mean())


def test_groups_by_evidence(planted, fitted):
    assert fitted.n_clusters_ == 3
    assert adjusted_rand_score(fitted.labels_, planted.labels) == 1.0
    assert fitted.responsibilities_.shape == (24, 3)
    assert (fitted.responsibilities_.argmax(axis=1) == fitted.labels_).all()
    assert fitted.noise_ == pytest.approx(0.25, rel=0.3)
    assert fitted.spreads_.mean() == pytest.approx(0.2, rel=0.5)
    plain = cs.TaskClusterRegressor(3, random_state=0).fit(*planted.rows())
    assert error(fitted, planted) < 0.7 * error(plain, planted)
    assert not np.isfinite(fitted.certificate_.lower_bound)


def test_units_of_columns_do_not_matter(planted, fitted):
    X, y, tasks = planted.rows()
    scales = np.array([1e-3, 1.0, 50.0, 7.0])
    other = em().fit(X * scales, 100 * y + 5, tasks)
    np.testing.assert_allclose(other.coef_ * scales / 100, fitted.coef_, rtol=1e-4, atol=1e-5)


def test_weights_equal_repetition(planted):
    X, y, tasks = planted.rows()
    counts = np.random.default_rng(0).integers(1, 3, len(y))
    weighted = em(3).fit(X, y, tasks, sample_weight=counts)
    repeated = em(3).fit(*(np.repeat(values, counts, axis=0) for values in (X, y, tasks)))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-6, atol=1e-8)
    assert weighted.evidence_ == pytest.approx(repeated.evidence_)


def test_offset_of_squared_loss_is_a_shift(planted):
    X, y, tasks = planted.rows()
    offset = np.random.default_rng(0).standard_normal(len(y))
    shifted = em(3).fit(X, y + offset, tasks, offset=offset)
    plain = em(3).fit(X, y, tasks)
    np.testing.assert_allclose(shifted.coef_, plain.coef_, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("loss", NEWER, ids=name_of)
def test_other_losses_shrink_towards_the_group(loss):
    planted = make_clustered_tasks(12, 2, 10, 1, within=0.1, shared=False, random_state=0)
    X, y, tasks = planted.rows()
    y = suited(loss, 0.3 * y)
    model = em(1, loss=loss).fit(X, y, tasks, offset=np.full(len(y), 0.3))
    alone = cs.TaskClusterRegressor(1, loss=loss, alpha_within=1e-3, random_state=0)
    alone.fit(X, y, tasks, offset=np.full(len(y), 0.3))
    assert np.isfinite(model.evidence_)
    assert model.coef_.std(axis=0).sum() < 0.7 * alone.coef_.std(axis=0).sum()


def test_classes():
    planted = make_clustered_tasks(
        40, 3, 16, 2, shared=False, classification=True, noise=1.0, random_state=1
    )
    X, y, tasks = planted.rows()
    model = cs.TaskClusterClassifier(4, solver="em", random_state=0).fit(X, y, tasks)
    assert adjusted_rand_score(model.labels_, planted.labels) == 1.0
    assert model.noise_ == 1.0
    assert roc_auc_score(y, model.decision_function(X, tasks)) > 0.8


def test_new_tasks_get_their_posterior(planted, fitted):
    X, y, tasks = planted.rows()
    kept = tasks < 20
    model = em(3).fit(X[kept], y[kept], tasks[kept])
    wiser = model.adapt(X[~kept], y[~kept], tasks[~kept])
    np.testing.assert_allclose(wiser.coef_[:20], model.coef_)
    np.testing.assert_allclose(wiser.coef_[20:], fitted.coef_[20:], atol=0.1)
    np.testing.assert_allclose(wiser.responsibilities_.sum(axis=1), 1.0)
    # By hand: the posterior of a task, given its group for certain.
    t = 20 + int(wiser.responsibilities_[20:].max(axis=1).argmax())
    q, mine = wiser.labels_[t], tasks == t
    center = X[kept].mean(axis=0)
    Z = np.column_stack([X[mine] - center, np.ones(mine.sum())])
    level = model.centroid_intercepts_[q] + model.centroids_[q] @ center
    spread = np.append(model.spreads_[q], model.spread_intercepts_[q]) ** 2
    residual = y[mine] - Z @ np.append(model.centroids_[q], level)
    gain = np.linalg.solve(Z.T @ Z / model.noise_ + np.diag(1 / spread), Z.T @ residual)
    expected = model.centroids_[q] + (gain / model.noise_)[:-1]
    np.testing.assert_allclose(wiser.coef_[t], expected, atol=1e-3)


def test_model_files(planted, fitted, tmp_path):
    X, _, tasks = planted.rows()
    cs.save(fitted, tmp_path / "tasks.clustruct")
    fitted_again = cs.load(tmp_path / "tasks.clustruct")
    assert (fitted_again.predict(X, tasks) == fitted.predict(X, tasks)).all()
    assert (fitted_again.responsibilities_ == fitted.responsibilities_).all()


def test_sums_of_pieces_are_enough(planted, fitted):
    X, y, tasks = planted.rows()
    pieces = [da.from_array(values, chunks=100) for values in (X, y, tasks)]
    other = em().fit(*pieces)
    np.testing.assert_allclose(other.coef_, fitted.coef_, rtol=1e-5, atol=1e-7)


# ---- Inputs


@pytest.fixture(scope="module")
def silent():
    """Groups that 4 rows of a task cannot tell, and the mean of many inputs can."""
    rng = np.random.default_rng(0)
    labels = np.arange(20) % 2
    weights = np.array([[1.0, 0.0], [-1.0, 0.0]])[labels]

    def rows(n):
        tasks = np.repeat(np.arange(20), n)
        X = rng.standard_normal((20 * n, 2)) + 1.5 * (labels[tasks] == 1)[:, None] * [0, 1]
        return X, (X * weights[tasks]).sum(axis=1) + 2 * rng.standard_normal(20 * n), tasks

    return labels, rows(4), rows(50)


def test_unlabelled_rows_tell_groups_apart(silent):
    labels, (X, y, tasks), (more, _, their) = silent
    blind = em(3).fit(X, y, tasks)
    model = em(3, use_inputs=True).fit(X, y, tasks, unlabelled=(more, their))
    assert adjusted_rand_score(model.labels_, labels) == 1.0
    assert adjusted_rand_score(blind.labels_, labels) < 0.5
    search = cs.TaskClusterRegressorCV((1, 2), solver="em", random_state=0, cv=3)
    search.fit(X, y, tasks, unlabelled=(more, their))
    assert {inputs for inputs, _ in search.cv_results_.mixtures} == {False, True}


@pytest.mark.parametrize(
    ("settings", "given", "message"),
    [
        ({"use_inputs": True}, lambda X, t: (X,), "must be a pair"),
        ({"use_inputs": True}, lambda X, t: (X, t + 1), "the task 20, which has no labelled row"),
        ({}, lambda X, t: (X, t), "use_inputs=False"),
    ],
)
def test_unlabelled_rows_that_are_refused(silent, settings, given, message):
    _, (X, y, tasks), (more, _, their) = silent
    with pytest.raises(ValueError, match=message):
        em(2, **settings).fit(X, y, tasks, unlabelled=given(more, their))


# ---- What it does not take


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"solver": "em", "alpha_within": 1.0}, "alpha_within=1.0 was given.*learns all"),
        ({"solver": "em", "alpha": 0.1}, "alpha=0.1 was given"),
        ({"use_inputs": True}, "needs solver='em', got solver='auto'"),
    ],
)
def test_settings_that_are_refused(planted, settings, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        cs.TaskClusterRegressor(2, **settings).fit(*planted.rows())


def test_data_that_are_refused(planted):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 40)), rng.standard_normal(30)
    with pytest.raises(ValueError, match="no more features than rows"):
        em(2).fit(X, y, np.arange(30) % 3)
    X, y, tasks = planted.rows()
    pieces = [da.from_array(values, chunks=100) for values in (X, y, tasks)]
    with pytest.raises(ValueError, match=r"not in memory\. Choose loss='squared'"):
        em(2, loss="huber").fit(*pieces)


# ---- Searches


def test_search_takes_the_mixture_where_it_is_better(planted, fitted):
    X, y, tasks = planted.rows()
    search = cs.TaskClusterRegressorCV(use_inputs=False, random_state=0).fit(X, y, tasks)
    assert search.best_params_["solver"] == "em"
    assert search.best_params_["n_clusters"] == search.n_clusters_
    assert search.n_clusters_ == 3
    np.testing.assert_allclose(search.coef_, fitted.coef_, rtol=1e-3, atol=1e-4)
    again = cs.TaskClusterRegressor(**search.best_params_, random_state=0).fit(X, y, tasks)
    np.testing.assert_allclose(search.coef_, again.coef_, rtol=1e-3, atol=1e-4)
    penalties = cs.TaskClusterRegressorCV(solver="am", random_state=0).fit(X, y, tasks)
    assert "solver" not in penalties.best_params_
    assert error(search, planted) < error(penalties, planted)


def test_margin_of_the_evidence():
    # Two groups of which 8 rows of a task tell little: the evidence hardly changes.
    rng = np.random.default_rng(2)
    tasks, X = np.repeat(np.arange(16), 8), rng.standard_normal((128, 4))
    weights = np.array([[0.6, 0.6, 0, 0], [-0.6, -0.6, 0, 0]])[np.arange(16) % 2]
    y = (X * weights[tasks]).sum(axis=1) + 1.5 * rng.standard_normal(128)
    counts = [em(2, solver_options={"margin": m}).fit(X, y, tasks).n_clusters_ for m in (30, -30)]
    assert counts == [1, 2]
    search = cs.TaskClusterRegressorCV((1, 2), solver="em", cv=3, use_inputs=False)
    search.set_params(solver_options={"margin": -30.0}).fit(X, y, tasks)
    assert search.cv_results_.mixtures == ((False, -30.0),)
    assert search.best_params_["solver_options"] == {"margin": -30.0}


def test_scores_of_a_mixture_are_those_of_fits_by_hand(planted):
    X, y, tasks = planted.rows()
    rows = np.random.default_rng(0).permutation(len(y))
    rest, held = rows[:300], rows[300:]
    search = cs.TaskClusterRegressorCV((1, 3), solver="em", cv=[(rest, held)], use_inputs=False)
    search.fit(X, y, tasks)
    for c, count in enumerate((1, 3)):
        model = em(count).fit(X[rest], y[rest], tasks[rest])
        loss = np.square(model.predict(X[held], tasks[held]) - y[held]).mean() / 2
        assert search.cv_results_.fold_scores[c, 0, 0] == pytest.approx(-loss, rel=1e-2)


def test_search_keeps_the_penalty_where_it_is_clearly_ahead():
    penalty = Prices(0.0, 1.0, 1.0, 1.0, 0.1)
    mixture = Prices(0.0, 1.0, 1.0, 1.0, 0.1, learned=True, margin=3.0)
    points = Points(None, (1, 2), (penalty, mixture), None, {mixture: SimpleNamespace(n_groups=2)})
    scores = np.zeros((2, 2, 4))
    scores[:, 1] = [0.01, -0.01, 0.02, -0.02]
    scores[1, 1] = [0.02, 0.03, 0.02, 0.03]
    rule = Rule("fewest", 2.0)
    assert points.table("x", scores, rule).best_index == (1, 1)
    scores[0, 0] = [1.0, 1.1, 0.9, 1.0]
    assert points.table("x", scores, rule).best_index == (0, 0)


def test_never_far_behind_pooled_and_mean_regularised():
    # Tasks that are all alike, and tasks that differ in the intercept alone.
    for within, shifts in ((0.0, 0.0), (0.0, 1.0)):
        rng = np.random.default_rng(0)
        shift = shifts * rng.standard_normal(20)
        planted = make_clustered_tasks(
            8, 4, 20, 1, within=within, noise=2.0, intercept=shift, shared=False, random_state=1
        )
        X, y, tasks = planted.rows()
        search = cs.TaskClusterRegressorCV((1, 2), random_state=0).fit(X, y, tasks)
        pooled = np.linalg.lstsq(X - X.mean(axis=0), y - y.mean(), rcond=None)[0]
        assert (
            error(search, planted) < 1.1 * float(np.square(pooled - planted.coef[0]).sum()) + 0.02
        )


@pytest.mark.parametrize("shared", [True, False])
def test_search_uses_inputs_that_share_groups_with_labels(shared):
    # Inputs lie in two groups: those of the weights, or others.
    rng = np.random.default_rng(0)
    labels, tasks = np.arange(24) % 2, np.repeat(np.arange(24), 6)
    W = 1.2 * np.where(labels, 1.0, -1.0)[:, None] * [1.0, -1.0] + 0.1 * rng.standard_normal(
        (24, 2)
    )
    places = labels if shared else np.arange(24) // 2 % 2
    X = 1.5 * places[tasks, None] + rng.standard_normal((tasks.size, 2))
    y = (X * W[tasks]).sum(axis=1) + 2.0 * rng.standard_normal(tasks.size)
    search = cs.TaskClusterRegressorCV((1, 2, 3), cv=3, random_state=0).fit(X, y, tasks)
    assert search.best_params_["solver"] == "em"
    assert search.best_params_["use_inputs"] is shared
    if shared:
        assert adjusted_rand_score(search.labels_, labels) > 0.7
