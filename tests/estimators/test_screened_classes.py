"""Searches of classes that fit only what may be chosen, against those that fit everything."""

import numpy as np
import pytest
from scipy import sparse

import clustruct as cs
from clustruct.estimators.features import screening
from clustruct.results.searched import edges

COUNTS, ALPHAS = (1, 2, 3, 4, 6), tuple(np.geomspace(1.0, 1e-3, 6))


def planted(n, d, n_classes, seed):
    """Samples of classes whose features fall into three groups."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    V = 2.0 * rng.standard_normal((3, n_classes))
    scores = X @ V[rng.integers(3, size=d)] / np.sqrt(d)
    return X, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)


def searched(X, y, **parameters):
    model = cs.FeatureClusterClassifierCV(COUNTS, alphas=ALPHAS, cv=3, random_state=0, **parameters)
    return model.fit(X, y)


@pytest.fixture(scope="module", params=[2, 3], ids=["two classes", "three classes"])
def both(request):
    """A search with the model, and one that fits every point."""
    X, y = planted(150, 12, request.param, seed=request.param)
    return searched(X, y), searched(X, y, search_solver="greedy")


def test_scores_of_fitted_points_are_those_of_the_full_search(both):
    screened, full = both
    exact = screened.cv_results_.exact
    assert exact[screened.cv_results_.best_index]
    assert full.cv_results_.exact is None
    # k-means of several columns has fewer starts here: the groups of a point may differ.
    same = (
        exact
        if screened.coef_.shape[0] == 1
        else exact
        & np.isclose(screened.cv_results_.mean_scores, full.cv_results_.mean_scores, atol=1e-3)
    )
    assert same.sum() >= 3
    np.testing.assert_allclose(
        screened.cv_results_.fold_scores[same], full.cv_results_.fold_scores[same], atol=1e-3
    )


def test_most_points_are_left_to_the_model(both):
    screened, full = both
    exact = screened.cv_results_.exact
    assert exact.sum() <= 0.5 * exact.size
    assert np.abs(screened.cv_results_.mean_scores - full.cv_results_.mean_scores).max() > 1e-5


@pytest.mark.parametrize("seed", range(4))
def test_the_choice_is_as_good_as_that_of_the_full_search(seed):
    X, y = planted(120, 10, 2 + seed % 2, seed=10 + seed)
    full = searched(X, y, search_solver="greedy").cv_results_
    found = searched(X, y).cv_results_
    error = full.standard_errors[full.best_index]
    assert found.mean_scores[found.best_index] >= full.mean_scores.max() - 0.1 * error


@pytest.mark.parametrize("rule", ["fewest", "one_se"])
def test_what_a_rule_chooses_is_fitted(rule):
    X, y = planted(150, 12, 2, seed=5)
    found = searched(X, y, rule=rule).cv_results_
    best = np.unravel_index(
        np.where(found.exact, found.mean_scores, -np.inf).argmax(), found.exact.shape
    )
    assert found.exact[found.best_index]
    # No point of the model is ahead of the best one that was fitted.
    assert found.mean_scores[best] == found.mean_scores.max()
    full = searched(X, y, rule=rule, search_solver="greedy").cv_results_
    assert found.n_clusters[found.best_index[0]] == full.n_clusters[full.best_index[0]]


def test_sparse_samples_have_the_scores_of_dense_ones():
    X, y = planted(120, 15, 2, seed=7)
    X[np.abs(X) < 1.0] = 0.0
    dense, thin = searched(X, y).cv_results_, searched(sparse.csr_array(X), y).cv_results_
    assert thin.exact.sum() <= 0.5 * thin.exact.size
    assert dense.best_index == thin.best_index
    fitted = dense.exact & thin.exact
    np.testing.assert_allclose(dense.fold_scores[fitted], thin.fold_scores[fitted], atol=1e-3)
    # Weights without constraint are rough, so that a point may have other groups.
    assert np.median(np.abs(dense.mean_scores - thin.mean_scores)) < 1e-3


def test_doubts_of_the_model_lead_to_more_fits(monkeypatch):
    X, y = planted(100, 10, 3, seed=3)
    few = searched(X, y).cv_results_.exact
    monkeypatch.setattr(screening, "SETTINGS", screening.ScreeningSettings(doubt=1e6))
    assert searched(X, y).cv_results_.exact.sum() > few.sum()


def test_points_beside_an_end_of_the_grid_are_fitted():
    hoped = np.arange(12.0).reshape(3, 4, 1)
    beside = list(screening._beside_ends(hoped, (2, 3, 0)))
    assert beside == [(1, 3, 0), (2, 2, 0)]
    assert list(screening._beside_ends(hoped, (1, 1, 0))) == []


def test_ends_of_the_grid_are_told_by_fitted_points_only():
    scores = np.array([-0.5, -0.4, -0.1])[:, None] + 1e-3 * np.arange(3)
    table = cs.SearchResult(
        n_clusters=(2, 3, 4),
        alphas=np.array([0.1]),
        n_nonzero=(None,),
        relax=np.ones((3, 1, 1)),
        fold_scores=scores.reshape(3, 1, 1, 3),
        criterion="cv",
        scoring="x",
        rule="best",
        best_index=(2, 0, 0),
        exact=np.array([True, True, True]).reshape(3, 1, 1),
    )
    assert [edge.name for edge in edges(table)] == ["n_clusters"]
    table.exact[1] = False
    assert edges(table) == []


@pytest.mark.parametrize("seed", range(3))
def test_moves_under_the_model_are_better_than_projected_gradient(seed):
    X, y = planted(200, 20, 4, seed=20 + seed)
    found = [
        cs.FeatureClusterClassifier(3, alpha=1e-3, solver=solver, random_state=0).fit(X, y)
        for solver in ("auto", "pg")
    ]
    ours, theirs = (model.certificate_.objective for model in found)
    assert ours < theirs * (1.0 + 1e-9)
    assert found[0].status_.solver == "soft"
