"""Constraints of users in the estimators of features."""

import numpy as np
import pytest
from sklearn.base import clone

import clustruct as cs
from clustruct.grouping.constraints import Clustered
from clustruct.results import Projection

PROBLEM = cs.datasets.make_clustered_features(150, 8, 2, noise=0.5, random_state=0)
X, Y = PROBLEM.X, PROBLEM.y


class Paired:
    """Neighbouring features share a weight: one subspace, without a search for groups."""

    refits = True

    def project(self, W):
        means = W.reshape(-1, 2, W.shape[1]).mean(axis=1)
        point = np.repeat(means, 2, axis=0)
        labels = np.arange(len(W)) // 2
        return Projection(point, labels, means, float(np.sum((W - point) ** 2)), exact=True)

    def explained(self, P):
        return float(np.square(self.project(P).point).sum())


class Positive(Paired):
    """The same without negative weights."""

    refits = False

    def project(self, W):
        near = super().project(W)
        point = np.maximum(near.point, 0.0)
        centers = np.maximum(near.centers, 0.0)
        return Projection(point, near.labels, centers, float(np.sum((W - point) ** 2)), exact=True)


@pytest.mark.parametrize("solver", ["auto", "pg", "greedy"])
def test_the_best_weights_of_a_subspace_are_found(solver):
    model = cs.FeatureClusterRegressor(constraint=Paired(), alpha=1e-2, solver=solver).fit(X, Y)
    sums = X.reshape(150, 4, 2).sum(axis=2)
    # A weight that two features share has twice the ridge.
    centred, n = sums - sums.mean(axis=0), len(Y)
    values = np.linalg.solve(centred.T @ centred / n + 2e-2 * np.eye(4), centred.T @ Y / n)
    np.testing.assert_allclose(model.coef_, np.repeat(values, 2), rtol=1e-6)
    assert model.n_clusters_ == 4
    assert model.certificate_.relative_gap < 1e-6


def test_one_of_ours_is_what_the_numbers_make():
    named = cs.FeatureClusterRegressor(2, random_state=0).fit(X, Y)
    given = clone(cs.FeatureClusterRegressor(constraint=Clustered(2), random_state=0)).fit(X, Y)
    np.testing.assert_array_equal(given.coef_, named.coef_)
    assert given.certificate_ == named.certificate_


@pytest.mark.parametrize("constraint", [Paired(), Positive()])
@pytest.mark.parametrize("criterion", ["cv", "bic"])
def test_searches_vary_alpha(constraint, criterion):
    search = cs.FeatureClusterRegressorCV(
        alphas=(1e-3, 1e-1), constraint=constraint, criterion=criterion, random_state=0
    ).fit(X, Y)
    assert len(search.cv_results_["mean_test_score"]) == 2
    plain = cs.FeatureClusterRegressor(
        constraint=constraint, alpha=search.relax_ * search.alpha_
    ).fit(X, Y)
    np.testing.assert_allclose(search.coef_, plain.coef_, rtol=1e-4)
    nearest = constraint.project(search.coef_[:, None]).point[:, 0]
    np.testing.assert_allclose(search.coef_, nearest, atol=1e-12)


def test_paths_and_classes():
    path = cs.feature_cluster_path(X, Y, n_clusters=None, alphas=(1e-1, 1e-3), constraint=Paired())
    assert path.coefs.shape == (1, 2, 1, 8)
    np.testing.assert_array_equal(path.coefs[..., ::2], path.coefs[..., 1::2])
    model = cs.FeatureClusterClassifier(constraint=Paired()).fit(X, Y > 0.0)
    np.testing.assert_array_equal(model.coef_[:, ::2], model.coef_[:, 1::2])


def test_what_cannot_be_done_is_said(tmp_path):
    for kind in (cs.FeatureClusterRegressor, cs.FeatureClusterRegressorCV):
        with pytest.raises(ValueError, match="'constraint' parameter"):
            kind(constraint="positive").fit(X, Y)
    with pytest.raises(ValueError, match="no method places"):
        cs.FeatureClusterRegressor(constraint=Paired(), solver="soft").fit(X, Y)
    model = cs.FeatureClusterRegressor(constraint=Paired()).fit(X, Y)
    with pytest.raises(
        ValueError, match=r"constraint is a .*Paired, which model files do not hold"
    ):
        cs.save(model, tmp_path / "model.clustruct")
