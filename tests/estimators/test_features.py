"""Fits against other solvers, brute force and each other."""

import time

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import HuberRegressor, LinearRegression, LogisticRegression, Ridge
from threadpoolctl import threadpool_limits

import clustruct as cs
from clustruct import FeatureClusterClassifier, FeatureClusterRegressor
from tests import brute_force as bf


def noisy(seed, n, d, n_outputs=None):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + rng.standard_normal(d)
    shape = (d,) if n_outputs is None else (d, n_outputs)
    return X, X @ rng.standard_normal(shape) + rng.standard_normal((n, *shape[1:])) + 2.0


# ---- Limits.


@pytest.mark.parametrize("solver", ["auto", "greedy", "pg", "cg", "cgpg"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("n_outputs", [None, 2])
def test_as_many_groups_as_features_is_ridge(solver, intercept, n_outputs):
    X, y = noisy(0, 40, 7, n_outputs)
    ridge = Ridge(40 * 1e-2, fit_intercept=intercept).fit(X, y)
    for n_clusters in (7, 20):
        model = FeatureClusterRegressor(
            n_clusters, alpha=1e-2, fit_intercept=intercept, solver=solver
        ).fit(X, y)
        np.testing.assert_allclose(model.coef_, ridge.coef_, atol=1e-9)
        np.testing.assert_allclose(model.intercept_, ridge.intercept_, atol=1e-9)
        assert model.n_clusters_ == 7
        assert model.certificate_.relative_gap <= 1e-9


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_as_many_groups_as_features_is_ridge_without_the_gram_matrix(form):
    X, y = noisy(1, 60, 320)
    model = FeatureClusterRegressor(320, alpha=1e-2).fit(form(X), y)
    ridge = Ridge(60 * 1e-2).fit(X, y)
    np.testing.assert_allclose(model.coef_, ridge.coef_, atol=1e-6)
    np.testing.assert_allclose(model.predict(form(X)), ridge.predict(X), atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("intercept", [True, False])
def test_as_many_groups_as_features_is_logistic_regression(n_classes, intercept):
    X, score = noisy(2, 80, 5)
    y = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
    model = FeatureClusterClassifier(5, alpha=1e-2, fit_intercept=intercept).fit(X, y)
    plain = LogisticRegression(
        C=1 / (80 * 1e-2), fit_intercept=intercept, solver="newton-cg", tol=1e-10
    ).fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=1e-6)


def test_as_many_groups_as_features_is_hubers_regression():
    X, y = noisy(3, 60, 4)
    y[::10] += 50.0
    plain = HuberRegressor(epsilon=1.35, alpha=0.0, tol=1e-10, max_iter=10_000).fit(X, y)
    # There delta is a multiple of a scale that is found along with the weights.
    model = FeatureClusterRegressor(
        4, alpha=1e-12, loss="huber", huber_delta=1.35 * plain.scale_
    ).fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-4)


@pytest.mark.parametrize("solver", ["greedy", "pg", "cg", "cgpg"])
def test_one_group_is_regression_on_the_row_sum(solver):
    X, y = noisy(4, 50, 6)
    sums = X.sum(axis=1, keepdims=True)
    model = FeatureClusterRegressor(1, alpha=1e-2, solver=solver).fit(X, y)
    # Six equal weights, each with its ridge.
    ridge = Ridge(50 * 6 * 1e-2).fit(sums, y)
    np.testing.assert_allclose(model.coef_, np.full(6, ridge.coef_[0]), rtol=1e-9)
    np.testing.assert_allclose(model.cluster_values_, ridge.coef_, rtol=1e-9)
    np.testing.assert_array_equal(model.labels_, 0)
    labels = y > np.median(y)
    if solver in ("greedy", "pg"):
        classifier = FeatureClusterClassifier(1, alpha=1e-2, solver=solver).fit(X, labels)
        plain = LogisticRegression(C=1 / (50 * 6 * 1e-2), solver="newton-cg", tol=1e-10)
        plain.fit(sums, labels)
        np.testing.assert_allclose(classifier.cluster_values_, plain.coef_[0], rtol=1e-6)


def test_sparse_without_groups_is_the_best_subset():
    for seed in range(5):
        X, y = noisy(seed, 40, 8)
        model = FeatureClusterRegressor(None, n_nonzero=3, n_init=20, random_state=0).fit(X, y)
        assert np.count_nonzero(model.coef_) == 3
        assert model.n_clusters_ == 3
        assert (model.labels_ == -1).sum() == 5
        kept = np.flatnonzero(model.coef_)
        ridge = Ridge(40 * 1e-3).fit(X[:, kept], y)
        np.testing.assert_allclose(model.coef_[kept], ridge.coef_, atol=1e-9)
        least = bf.best(X, y[:, None], bf.sparse_groupings(8, None, 3), alpha=1e-3)
        assert model.certificate_.lower_bound <= least * (1 + 1e-9) <= model.objective_ * (1 + 2e-9)


def test_more_nonzero_weights_are_never_worse():
    X, y = noisy(5, 40, 6)
    y = X[:, 3:].sum(axis=1) + 0.01 * y
    values = [
        FeatureClusterRegressor(1, n_nonzero=k, n_init=10, random_state=0).fit(X, y).objective_
        for k in (3, 5, 6, 50)
    ]
    # Zero is no group, also where every weight may be nonzero.
    np.testing.assert_allclose(values, values[0], rtol=1e-9)


# ---- The best of all groupings.


@pytest.mark.parametrize("seed", range(8))
def test_certificate_against_all_groupings(seed):
    rng = np.random.default_rng(seed)
    n, d, q = 30, int(rng.integers(3, 8)), int(rng.integers(1, 4))
    X, y = noisy(seed, n, d)
    weights = rng.integers(0, 4, n) if seed % 2 else None
    intercept = bool(seed % 3)
    shares = np.ones(n) if weights is None else weights.astype(float)
    options = {"alpha": 10.0 ** -rng.integers(1, 5), "fit_intercept": intercept}
    least = bf.best(
        X,
        y[:, None],
        bf.groupings(d, q),
        alpha=options["alpha"],
        shares=shares / shares.sum(),
        intercept=intercept,
    )
    for solver in ("auto", "greedy", "pg", "cg", "cgpg"):
        model = FeatureClusterRegressor(q, solver=solver, tol=1e-5, **options)
        model.fit(X, y, sample_weight=weights)
        certificate = model.certificate_
        assert certificate.lower_bound <= least * (1 + 1e-9)
        assert certificate.gap >= 0.0
        assert certificate.gap == model.objective_ - certificate.lower_bound
        assert certificate.relative_gap == pytest.approx(certificate.gap / model.objective_)
        assert model.objective_ >= least * (1 - 1e-9)
    # Many starts find the best there is.
    best = FeatureClusterRegressor(q, solver="pg", n_init=40, random_state=0, **options)
    best.fit(X, y, sample_weight=weights)
    assert best.objective_ == pytest.approx(least, rel=1e-9)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_certificate_of_classifiers(loss):
    X, score = noisy(6, 40, 5)
    y = np.where(score > np.median(score), 1.0, -1.0)[:, None]
    model = FeatureClusterClassifier(2, loss=loss, alpha=1e-2).fit(X, y[:, 0])
    least = bf.best(
        X, y, bf.groupings(5, 2), alpha=1e-2, loss=bf.squared if loss == "squared" else bf.logistic
    )
    assert 0.0 < model.certificate_.lower_bound <= least * (1 + 1e-8)
    assert model.objective_ >= least * (1 - 1e-8)


def test_planted_groups_are_found():
    found = 0
    for seed in range(10):
        planted = cs.datasets.make_clustered_features(150, 40, 4, noise=0.5, random_state=seed)
        model = FeatureClusterRegressor(4, alpha=1e-3).fit(planted.X, planted.y)
        found += np.array_equal(model.labels_, planted.labels) or np.allclose(
            model.coef_, planted.coef, atol=0.3
        )
    assert found >= 9


# ---- What a fit says of itself.


def configurations():
    yield "regression", FeatureClusterRegressor(3), None
    yield "two outputs", FeatureClusterRegressor(3), 2
    yield "huber", FeatureClusterRegressor(3, loss="huber"), None
    yield "sparse", FeatureClusterRegressor(2, n_nonzero=5), None
    yield "sparse, two outputs", FeatureClusterRegressor(2, n_nonzero=5), 2
    yield "thresholded", FeatureClusterRegressor(None, n_nonzero=4), None
    yield "blocks", FeatureClusterRegressor(3, blocks=[0] * 4 + [1] * 3 + [-1] * 2), None
    yield "classes", FeatureClusterClassifier(2), 2
    yield "three classes", FeatureClusterClassifier(2), 3
    yield "squared classes", FeatureClusterClassifier(2, loss="squared"), 3


@pytest.mark.parametrize(
    ("model", "outputs"),
    [c[1:] for c in configurations()],
    ids=[c[0] for c in configurations()],
)
def test_attributes_agree_with_each_other(model, outputs):
    X, y = noisy(7, 60, 9, outputs if isinstance(model, FeatureClusterRegressor) else None)
    if isinstance(model, FeatureClusterClassifier):
        y = np.digitize(y, np.quantile(y, np.arange(1, outputs) / outputs))
    model.fit(X, y)
    W = np.atleast_2d(model.coef_).T
    values = model.cluster_values_.reshape(model.n_clusters_, -1)
    used = model.labels_ >= 0
    np.testing.assert_array_equal(W[used], values[model.labels_[used]])
    assert not W[~used].any()
    assert values.tolist() == sorted(values.tolist())
    np.testing.assert_array_equal(
        model.cluster_sizes_, np.bincount(model.labels_[used], minlength=model.n_clusters_)
    )
    assert model.cluster_sizes_.min() >= 1
    # transform is X Z, and predictions follow from it.
    Z = (model.labels_[:, None] == np.arange(model.n_clusters_)).astype(float)
    np.testing.assert_allclose(model.transform(X), X @ Z, atol=1e-12)
    np.testing.assert_allclose(model.fit_transform(X, y), X @ Z, atol=1e-12)
    scores = model.transform(X) @ values + model.intercept_
    if isinstance(model, FeatureClusterRegressor):
        np.testing.assert_allclose(model.predict(X), scores[:, 0] if y.ndim == 1 else scores)
        reference = bf.huber(1.35) if model.loss == "huber" else bf.squared
        target = y.reshape(60, -1)
    elif model.loss == "squared":
        reference = bf.squared
        target = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    elif outputs == 2:
        reference, target = bf.logistic, np.where(y == 1, 1.0, -1.0)[:, None]
    else:
        reference, target = bf.multinomial, y
    value = bf.objective(reference, X, target, W, model.intercept_, alpha=model.alpha)
    assert model.objective_ == pytest.approx(value, rel=1e-9)
    assert model.certificate_.objective == model.objective_
    assert model.trace_[-1].objective == model.objective_
    assert model.n_iter_ == model.status_.n_iter >= 1
    assert f"{model.objective_:.6g}" in model.status_.message
    assert model.get_feature_names_out().size == model.n_clusters_


def test_one_column_of_answers_keeps_its_shape():
    X, y = noisy(8, 30, 4, 1)
    model = FeatureClusterRegressor(2).fit(X, y)
    assert model.predict(X).shape == (30, 1)
    assert model.coef_.shape == (1, 4)
    assert model.cluster_values_.shape == (2, 1)
    assert FeatureClusterRegressor(2).fit(X, y[:, 0]).predict(X).shape == (30,)


@pytest.mark.parametrize("init", ["zeros", "auto", "greedy", "array"])
def test_starts(init):
    X, y = noisy(9, 40, 8)
    start = np.linspace(-1, 1, 8) if init == "array" else init
    model = FeatureClusterRegressor(3, solver="pg", init=start).fit(X, y)
    first = model.trace_[0].objective
    begin = {
        "zeros": np.zeros(8),
        "array": np.linspace(-1, 1, 8),
    }.get(init, Ridge(40 * 1e-3).fit(X, y).coef_)
    groups = tuple(cs.project_clustered(begin, 3).labels.tolist())
    assert first == pytest.approx(bf.ridge(X, y[:, None], groups, alpha=1e-3)[0], rel=1e-9)
    assert model.objective_ <= first


def test_starts_of_several_outputs_are_shaped_as_the_weights():
    X, y = noisy(10, 40, 6, 2)
    ridge = Ridge(40 * 1e-3).fit(X, y)
    given = FeatureClusterRegressor(2, solver="pg", init=ridge.coef_).fit(X, y)
    np.testing.assert_allclose(
        given.coef_, FeatureClusterRegressor(2, solver="pg").fit(X, y).coef_, atol=1e-9
    )


@pytest.mark.parametrize(("verbose", "steps"), [(1, False), (True, False), (2, True)])
def test_verbose_prints_the_end_and_from_2_on_every_step(capsys, verbose, steps):
    X, y = noisy(11, 40, 12)
    FeatureClusterRegressor(3, solver="pg", init="zeros").fit(X, y)
    assert capsys.readouterr().out == ""
    model = FeatureClusterRegressor(3, solver="pg", init="zeros", verbose=verbose).fit(X, y)
    *lines, message, proof = capsys.readouterr().out.splitlines()
    assert message == model.status_.message
    assert proof == model.certificate_.in_words
    for line, iteration in zip(lines, model.trace_ if steps else (), strict=True):
        assert line.split()[:2] == ["pg", str(iteration.number)]
        assert f"objective {iteration.objective:.8g}" in line


def test_budget_is_told():
    planted = cs.datasets.make_clustered_features(60, 40, 4, noise=0.5, random_state=0)
    model = FeatureClusterRegressor(
        4, solver="pg", max_iter=1, tol=0.0, init="zeros", solver_options={"refit": False}
    )
    with pytest.warns(ConvergenceWarning, match=r"max_iter=1.*Raise max_iter"):
        model.fit(planted.X, planted.y)
    assert not model.status_.converged
    assert model.n_iter_ == 1


# ---- The same bits.


def fitted_bits(model, X, y):
    model.fit(X, y)
    return b"".join(
        np.asarray(part).tobytes()
        for part in (model.coef_, model.intercept_, model.labels_, model.objective_)
    )


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("solver", ["greedy", "pg", "cgpg"])
@pytest.mark.parametrize("outputs", [None, 2])
def test_same_seed_same_bits(n_threads, solver, outputs):
    X, y = noisy(12, 80, 15, outputs)
    bits = set()
    with threadpool_limits(n_threads):
        for _ in range(2):
            model = FeatureClusterRegressor(3, solver=solver, n_init=3, random_state=5, tol=1e-3)
            bits.add(fitted_bits(model, X, y))
        generator = np.random.RandomState(5)
        model.set_params(random_state=generator)
        bits.add(fitted_bits(model, X, y))
    assert len(bits) == 1


@pytest.mark.parametrize("solver", ["greedy", "pg", "cgpg"])
def test_number_of_threads_changes_nothing_but_rounding(solver):
    X, y = noisy(13, 300, 40)
    models = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            model = FeatureClusterRegressor(4, solver=solver, n_init=2, random_state=0, tol=1e-4)
            models.append(model.fit(X, y))
    np.testing.assert_array_equal(models[0].labels_, models[1].labels_)
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, rtol=1e-10)


def test_classifier_same_seed_same_bits():
    X, score = noisy(14, 80, 10)
    y = np.digitize(score, [0.0, 3.0])
    bits = {
        fitted_bits(FeatureClusterClassifier(3, solver="pg", n_init=2, random_state=1), X, y)
        for _ in range(2)
    }
    assert len(bits) == 1


@pytest.mark.slow
def test_many_groups_take_no_quadratic_time():
    # As many groups as features: looking for the members of each among all took a minute.
    rng = np.random.default_rng(0)
    X = sparse.random(50, 300_000, 1e-4, random_state=0, format="csr")
    begin = time.perf_counter()
    model = FeatureClusterRegressor(10**6, alpha=1.0).fit(X, rng.standard_normal(50))
    assert len(model.clusters()) == model.n_clusters_ == 300_000
    assert time.perf_counter() - begin < 20.0


def test_least_squares_without_ridge():
    X, y = noisy(15, 40, 5)
    model = FeatureClusterRegressor(5, alpha=0).fit(X, y)
    np.testing.assert_allclose(model.coef_, LinearRegression().fit(X, y).coef_, atol=1e-9)
    for solver in ("greedy", "pg"):
        grouped = FeatureClusterRegressor(2, alpha=0, solver=solver).fit(X, y)
        least = bf.best(X, y[:, None], bf.groupings(5, 2), alpha=0.0)
        assert grouped.certificate_.lower_bound <= least <= grouped.objective_ * (1 + 1e-9)


@pytest.mark.parametrize(
    ("loss", "alpha", "offset"),
    [
        ("squared", 1e-12, 0.0),
        ("squared", 1e-12, 1e4),
        ("huber", 1.0, 1e8),
        ("huber", 1e-3, 1e8),
        ("huber", 1e3, 1e4),
    ],
)
def test_bounds_hold_with_tiny_ridges_and_far_targets(loss, alpha, offset):
    # Differences of large numbers had made bounds that were up to a tenth above the objective.
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((20, 12))
        y = offset + X @ rng.choice([-1.0, 0.0, 2.0], 12) + rng.choice([1e-6, 1.0])
        for n_clusters in (1, 2):
            model = FeatureClusterRegressor(n_clusters, alpha=alpha, loss=loss, solver="pg")
            certificate = model.fit(X, y).certificate_
            assert certificate.lower_bound <= model.objective_


def test_bounds_of_single_precision_are_known_to_its_rounding():
    # Bounds and objectives are as coarse as X then: a bound may be above by a millionth.
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((30, 2)).astype(np.float32)
        model = FeatureClusterClassifier(2, alpha=0.1).fit(X, rng.integers(0, 3, 30))
        assert model.certificate_.relative_gap < 0.2
