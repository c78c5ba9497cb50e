"""The model refitted on the consensus: the best values given its groups, and a model like any."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import clustruct as cs
from clustruct.trust.refits import Fitted

N = 90


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).standard_normal((N, 6)) + 0.5


@pytest.fixture(scope="module")
def y(X):
    rng = np.random.default_rng(1)
    return X @ np.repeat([-1.0, 0.2, 0.5], 2) + 2.0 + rng.standard_normal(N)


@pytest.fixture(scope="module")
def weights():
    return np.random.default_rng(2).uniform(0.0, 2.0, N).round(1)


def with_consensus(model, labels, X, y, tasks=None, sample_weight=None):
    """The model for a consensus of our own, so that no resample has to be made."""
    return Fitted.of(model, X, y, tasks, sample_weight, None).regrouped(np.asarray(labels))


def same_groups(a, b):
    """Whether two lists of labels are the same up to a renumbering."""
    return np.array_equal(np.equal.outer(a, a), np.equal.outer(b, b))


def sums(X, labels):
    return np.stack([X[:, labels == q].sum(axis=1) for q in range(labels.max() + 1)], axis=1)


@pytest.mark.parametrize("labels", [[0, 1, 0, 2, 2, 1], [0, 0, 0, 0, 1, 1]])
def test_features_are_a_ridge_on_the_sums_of_the_groups(X, y, weights, labels):
    """In units of the sums, a weight v of a group of m has the ridge m alpha v^2."""
    labels = np.array(labels)
    model = cs.FeatureClusterRegressor(3, alpha=0.3).fit(X, y, sample_weight=weights)
    found = with_consensus(model, labels, X, y, sample_weight=weights)
    sizes = np.sqrt(np.bincount(labels))
    peer = Ridge(0.3 * weights.sum()).fit(sums(X, labels) / sizes, y, sample_weight=weights)
    np.testing.assert_allclose(found.coef_, (peer.coef_ / sizes)[labels], atol=1e-8)
    assert found.intercept_ == pytest.approx(peer.intercept_)
    assert same_groups(found.labels_, labels)
    residuals = y - found.predict(X)
    value = 0.5 * np.average(residuals**2, weights=weights) + 0.15 * found.coef_ @ found.coef_
    assert found.objective_ == pytest.approx(value, rel=1e-10)
    assert found.get_params() == model.get_params()
    assert found.stability_ is None  # it was about other groups
    assert model.n_clusters_ == 3
    assert not same_groups(model.labels_, labels)


def test_the_certificate_is_about_all_groupings(X, y):
    """A poor grouping is not called optimal because its values are."""
    model = cs.FeatureClusterRegressor(2).fit(X, y)
    poor = with_consensus(model, [0, 1, 0, 1, 0, 1], X, y)
    assert poor.certificate_.lower_bound <= model.objective_ + 1e-10 < poor.objective_


def test_features_without_weight_keep_none(X, y):
    model = cs.FeatureClusterRegressor(2, n_nonzero=4, alpha=0.01).fit(X, y)
    found = with_consensus(model, [0, 0, -1, -1, 1, -1], X, y)
    np.testing.assert_array_equal(found.coef_[[2, 3, 5]], 0.0)
    np.testing.assert_array_equal(found.labels_ < 0, [False, False, True, True, False, True])
    peer = Ridge(0.01 * N).fit(np.c_[X[:, :2].sum(axis=1) / np.sqrt(2), X[:, 4]], y)
    np.testing.assert_allclose(found.coef_[[0, 4]], peer.coef_ / [np.sqrt(2), 1.0], atol=1e-8)


def test_classes_have_no_gradient_along_the_groups(X, y):
    labels = np.array([0, 1, 0, 1, 1, 0])
    model = cs.FeatureClusterClassifier(3, alpha=0.1).fit(X, y > 2.0)
    found = with_consensus(model, labels, X, y > 2.0)
    S, target = sums(X, labels), np.where(y > 2.0, 1.0, -1.0)

    def value(v):
        loss = np.logaddexp(0.0, -target * (S @ v[:2] + v[2])).mean()
        return loss + 0.05 * np.bincount(labels) @ v[:2] ** 2

    best = minimize(value, np.zeros(3), tol=1e-12)
    assert found.objective_ == pytest.approx(best.fun, rel=1e-7)
    np.testing.assert_allclose(found.coef_[0], best.x[labels], atol=1e-4)


def test_a_search_keeps_its_ridge_and_its_table(X, y):
    search = cs.FeatureClusterRegressorCV((2, 3), alphas=(0.1, 1.0), relax=(0.5,), cv=3).fit(X, y)
    labels = np.array([0, 1, 0, 2, 2, 1])
    found = with_consensus(search, labels, X, y)
    sizes = np.sqrt(np.bincount(labels))
    peer = Ridge(0.5 * search.alpha_ * N).fit(sums(X, labels) / sizes, y)
    np.testing.assert_allclose(found.coef_, (peer.coef_ / sizes)[labels], atol=1e-8)
    assert found.cv_results_ is search.cv_results_
    assert found.get_params() == search.get_params()


@pytest.fixture(scope="module")
def tariff():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "zone": rng.choice(list("abcde"), 200),
            "age": rng.integers(0, 5, 200),
            "size": rng.standard_normal(200),
        }
    )
    effects = frame["zone"].map(dict(zip("abcde", [0, 0, 1, 1, 2], strict=True)))
    y = effects.to_numpy(float) + 0.3 * frame["age"] + 0.5 * frame["size"]
    return frame, (y + 0.2 * rng.standard_normal(200)).to_numpy()


@pytest.mark.parametrize("kind", ["nominal", "ordinal", "increasing", "cyclic"])
def test_levels_are_a_regression_on_indicators_of_the_groups(tariff, kind):
    """Also where the groups of an order are not neighbours; values out of order are joined."""
    frame, y = tariff
    model = cs.FeatureClusterRegressor(6, alpha=0.0, factors={"age": kind}).fit(frame, y)
    labels = np.array([0, 0, 1, 1, 2, 3, 4, 3, 4, 4, 5])
    found = with_consensus(model, labels, frame, y)
    expected = labels.copy()
    if kind == "increasing":  # level 2 is of the group of level 0, and level 1 of that of level 3
        expected[expected == 4] = 3
    assert same_groups(found.labels_, expected)
    zone, age = frame["zone"].map(dict(zip("abcde", expected[:5], strict=True))), frame["age"]
    columns = [zone == q for q in np.unique(expected[:5])]
    columns += [age.map(lambda a: expected[5 + a]) == q for q in np.unique(expected[5:10])]
    A = np.column_stack([*columns, frame["size"]]).astype(float)
    fitted = A @ np.linalg.lstsq(A, y, rcond=None)[0]
    np.testing.assert_allclose(found.predict(frame), fitted, atol=1e-6)


def test_a_search_over_prices_keeps_its_price_and_strengths(tariff):
    frame, y = tariff
    search = cs.FeatureClusterRegressorCV(prices=(0.003, 0.03), cv=2).fit(frame, y)
    again = with_consensus(search, search.labels_, frame, y)
    np.testing.assert_allclose(again.coef_, search.coef_, atol=1e-6)
    assert again.objective_ == pytest.approx(search.objective_, rel=1e-8)
    assert len(again.relativities()) == 7


def test_consensus_never_mixes_factors(tariff):
    frame, y = tariff
    model = cs.FeatureClusterRegressor(4).fit(frame, np.random.default_rng(0).permutation(y))
    found = cs.stability(model, frame, y, n_resamples=6, random_state=0)
    parts = [found.consensus_labels[:5], found.consensus_labels[5:6], found.consensus_labels[6:]]
    for k, one in enumerate(parts):
        assert not any(set(one) & set(other) for other in parts[k + 1 :])
    assert same_groups(found.consensus_model().labels_, found.consensus_labels)


def test_experts_are_ridges_of_their_samples(X, y, weights):
    labels = np.arange(N) % 3
    model = cs.SampleClusterRegressor(2, alpha=0.2, random_state=0).fit(X, y, sample_weight=weights)
    found = with_consensus(model, labels, X, y, sample_weight=weights)
    assert found.n_clusters_ == 3
    assert same_groups(found.labels_, labels)
    value = 0.0
    for q in range(3):
        mine = found.labels_ == q
        share = weights[mine].sum()
        peer = Ridge(0.2 * share).fit(X[mine], y[mine], sample_weight=weights[mine])
        np.testing.assert_allclose(found.experts_[q], peer.coef_, atol=1e-8)
        loss = weights[mine] @ np.square(y[mine] - peer.predict(X[mine]))
        value += 0.5 * loss + 0.1 * share * peer.coef_ @ peer.coef_
    assert found.objective_ == pytest.approx(value / weights.sum(), rel=1e-9)
    np.testing.assert_allclose(found.weights_.sum(), 1.0)
    assert np.all(np.diff(found.weights_) <= 0.0)


def test_groups_of_samples_without_weight_are_no_experts(X, y):
    weights, labels = np.ones(N), np.arange(N) % 2
    weights[:4], labels[:4] = 0.0, 5
    model = cs.SampleClusterRegressor(2, random_state=0).fit(X, y, sample_weight=weights)
    found = with_consensus(model, labels, X, y, sample_weight=weights)
    assert same_groups(found.labels_[4:], labels[4:])
    np.testing.assert_array_equal(found.labels_[:4], found.assign(X[:4], y[:4]))


def test_tasks_are_the_minimum_given_their_groups(X, y):
    """The normal equations of weights, centroids and their mean, by an independent minimiser."""
    tasks, labels = np.arange(N) % 4, np.array([0, 1, 1, 0])
    prices = {"alpha_mean": 0.05, "alpha_between": 0.2, "alpha_within": 0.7}
    model = cs.TaskClusterRegressor(2, fit_intercept=False, random_state=0, **prices)
    model.fit(X, y, tasks=tasks)
    found = with_consensus(model, labels, X, y, tasks=tasks)
    assert same_groups(found.labels_, labels)

    def value(flat):
        W, V = flat[:24].reshape(4, 6), flat[24:].reshape(2, 6)
        mine = V[labels]
        mean = mine.mean(axis=0)
        loss = 0.5 * np.square(y - (X * W[tasks]).sum(axis=1)).mean()
        penalty = 0.7 * np.square(W - mine).sum() + 0.2 * np.square(mine - mean).sum()
        return loss + 0.125 * penalty + 0.025 * mean @ mean

    best = minimize(value, np.zeros(36), method="BFGS", options={"gtol": 1e-9})
    assert found.objective_ == pytest.approx(best.fun, rel=1e-7)
    np.testing.assert_allclose(found.coef_, best.x[:24].reshape(4, 6), atol=1e-4)


def test_a_mixture_over_tasks_keeps_the_groups(X, y):
    tasks, labels = np.arange(N) % 6, np.array([0, 1, 1, 0, 0, 0])
    model = cs.TaskClusterRegressor(3, solver="em", random_state=0).fit(X, y, tasks=tasks)
    found = with_consensus(model, labels, X, y, tasks=tasks)
    assert same_groups(found.labels_, labels)
    np.testing.assert_array_equal(np.sort(found.responsibilities_, axis=1)[:, 0], 0.0)
    assert found.predict(X, tasks=tasks).shape == (N,)


@pytest.mark.parametrize("wrap", ["pipeline", "grid search"])
def test_a_pipeline_comes_back(X, y, wrap):
    model = make_pipeline(StandardScaler(), cs.FeatureClusterRegressor(3))
    if wrap == "grid search":
        grid = {"featureclusterregressor__n_clusters": [2, 3]}
        model = GridSearchCV(model, grid, cv=2)
    model.fit(X, y)
    found = with_consensus(model, [0, 1, 0, 2, 2, 1], X, y)
    assert isinstance(found, Pipeline)
    expected = found[-1].predict(StandardScaler().fit_transform(X))
    np.testing.assert_allclose(found.predict(X), expected)
    before = getattr(model, "best_estimator_", model)
    assert found[-1] is not before[-1]
    assert found[0] is before[0]


@pytest.mark.parametrize("kind", ["features", "samples", "tasks"])
def test_it_is_a_model_like_any(X, y, kind, tmp_path):
    """Predictions, scores, tables, model files and a report."""
    kinds = {
        "features": (cs.FeatureClusterRegressorCV((2, 3), alphas=0.01, cv=2), {}),
        "samples": (cs.SampleClusterRegressor(2, gate=True, random_state=0), {}),
        "tasks": (cs.TaskClusterRegressor(2, random_state=0), {"tasks": np.arange(N) % 5}),
    }
    model, given = kinds[kind]
    model.fit(X, y, **given)
    found = cs.stability(model, X, y, n_resamples=4, search="kept", random_state=0, **given)
    agreed = found.consensus_model()
    assert type(agreed) is type(model)
    assert same_groups(agreed.labels_, found.consensus_labels)
    assert np.isfinite(agreed.score(X, y, **given))
    assert len(agreed.clusters()) == agreed.n_clusters_
    assert "given groups" in agreed.status_.message
    cs.save(agreed, tmp_path / "model.clustruct")
    loaded = cs.load(tmp_path / "model.clustruct")
    np.testing.assert_array_equal(loaded.predict(X, **given), agreed.predict(X, **given))
    cs.report(agreed, X, y, path=tmp_path / "page.html", **given)


def test_samples_are_not_kept_in_files_and_pickles(X, y):
    model = cs.FeatureClusterRegressor(2).fit(X, y)
    found = cs.stability(model, X, y, n_resamples=2, random_state=0)
    for short in (found.summary(), pickle.loads(pickle.dumps(found)), model.stability_):
        assert short.fitted is None
        with pytest.raises(ValueError, match="not kept in model files and pickles"):
            short.consensus_model()


def test_groups_outside_of_a_constraint_of_the_users_own_are_refused(X, y):
    class Positive:
        refits = False

        def project(self, W):
            point = np.full_like(W, max(0.0, W.mean()))
            distance = float(np.square(W - point).sum())
            return cs.Projection(point, np.zeros(len(W), int), point[:1], distance, True)

        def explained(self, P):
            return float(np.vdot(P, P))

    model = cs.FeatureClusterRegressor(constraint=Positive(), solver="pg").fit(X, -X.sum(axis=1))
    with pytest.raises(ValueError, match="not in the set of Positive"):
        with_consensus(model, [0, 0, 0, 1, 1, 1], X, y)
