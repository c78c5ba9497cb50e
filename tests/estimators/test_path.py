"""Paths are the fits of the plain estimators, for less work."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import clustruct as cs
from clustruct.design import as_design
from clustruct.estimators.features.grid import check_alphas, choose_objective
from clustruct.losses import SquaredLoss
from clustruct.objectives.linear import LinearObjective, Response


@pytest.fixture(scope="module")
def problem():
    return cs.datasets.make_clustered_features(100, 8, 3, random_state=0)


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_path_is_the_plain_fits(problem, loss):
    weights = np.linspace(0.0, 1.0, 100)
    common = {"loss": loss, "solver": "pg", "random_state": 0}
    grid = {"n_clusters": (3, 1), "alphas": (1e-3, 1e-1), "n_nonzero": (None, 5)}
    path = cs.feature_cluster_path(problem.X, problem.y, sample_weight=weights, **grid, **common)
    assert path.coefs.shape == (2, 2, 2, 8)
    for q, a, k in np.ndindex(2, 2, 2):
        plain = cs.FeatureClusterRegressor(
            grid["n_clusters"][q],
            alpha=grid["alphas"][a],
            n_nonzero=grid["n_nonzero"][k],
            **common,
        ).fit(problem.X, problem.y, sample_weight=weights)
        np.testing.assert_allclose(path.coefs[q, a, k], plain.coef_, rtol=1e-6, atol=1e-9)
        np.testing.assert_array_equal(path.labels[q, a, k], plain.labels_)
        assert path.intercepts[q, a, k] == pytest.approx(plain.intercept_, rel=1e-5, abs=1e-8)
        assert path.objectives[q, a, k] == pytest.approx(plain.objective_, rel=1e-8)
        assert path.lower_bounds[q, a, k] <= path.objectives[q, a, k] * (1 + 1e-12)
    assert path.converged.all()
    assert (path.relative_gaps >= 0.0).all()


def test_bounds_are_below_those_of_the_certificates(problem):
    """Paths have bounds by duality; certificates of single fits may also have the best tangent."""
    path = cs.feature_cluster_path(problem.X, problem.y, n_clusters=2, alphas=1e-2)
    plain = cs.FeatureClusterRegressor(2, alpha=1e-2).fit(problem.X, problem.y)
    certificate = plain.certificate_
    assert 0.9 * certificate.lower_bound <= path.lower_bounds[0, 0, 0] <= certificate.lower_bound
    assert path.relative_gaps[0, 0, 0] >= certificate.relative_gap


def test_classes_and_outputs(problem):
    y = np.where(problem.y > 0, "up", "down")
    path = cs.feature_cluster_path(
        problem.X, y, n_clusters=(2, 3), alphas=(1e-1, 1e-2), loss="logistic"
    )
    plain = cs.FeatureClusterClassifier(3, alpha=1e-2).fit(problem.X, y)
    np.testing.assert_allclose(path.coefs[1, 1, 0], plain.coef_[0], rtol=1e-2, atol=1e-2)
    Y = np.stack([problem.y, -problem.y], axis=1)
    many = cs.feature_cluster_path(problem.X, Y, n_clusters=(2, 3), alphas=1e-2)
    assert many.coefs.shape == (2, 1, 1, 2, 8)
    assert many.intercepts.shape == (2, 1, 1, 2)


def test_sparse_path_finds_the_weights_without_constraint_once_for_each_alpha(monkeypatch):
    rng = np.random.default_rng(0)
    X = sparse.csr_array(rng.random((400, 350)) * (rng.random((400, 350)) < 0.05))
    y = X @ np.repeat([1.0, -1.0], 175)
    starts = []
    original = LinearObjective.minimum

    def counted(self, tol, start=None, near=None):
        if self.shape[0] == 350:
            starts.append(near)
        return original(self, tol, start, near)

    monkeypatch.setattr(LinearObjective, "minimum", counted)
    path = cs.feature_cluster_path(
        X[:300], y[:300], n_clusters=(2, 3, 4), alphas=(1e-3, 1e-1), solver="greedy"
    )
    assert path.objectives.shape == (3, 2, 1)
    assert [start is None for start in starts] == [True, False]  # warm from the larger alpha
    assert (np.diff(path.objectives[:, :, 0], axis=1) > 0).all()  # in the order given


def test_rows_for_a_data_frame(problem):
    path = cs.feature_cluster_path(
        problem.X, problem.y, n_clusters=(1, 3), alphas=(1e-1, 1e-3), n_nonzero=(None, 4)
    )
    frame = pd.DataFrame(path.rows())
    assert len(frame) == 8
    assert frame.loc[0, ["n_clusters", "alpha"]].tolist() == [1, 0.1]
    assert (frame.n_clusters_in_use <= frame.n_clusters).all()


def test_alphas_follow_the_scale_of_the_data(problem):
    def alphas(scale):
        response = Response(problem.y[:, None], SquaredLoss(), 1, np.full(100, 0.01), True)
        objective = choose_objective(as_design(scale * problem.X), response, 0.0)
        return check_alphas("auto", objective)

    found = alphas(1.0)
    assert found.size == 10
    np.testing.assert_allclose(alphas(10.0), 100 * found)
    assert found[0] == pytest.approx(10 * problem.X.var(axis=0).mean())


def test_alphas_where_all_columns_are_constant():
    path = cs.feature_cluster_path(np.ones((5, 3)), np.arange(5.0), n_clusters=2)
    assert (path.alphas > 0).all()
    np.testing.assert_allclose(path.coefs, 0.0)


def test_one_warning_for_all_fits(problem):
    with pytest.warns(ConvergenceWarning, match="2 of 2 fits on the grid were stopped"):
        cs.feature_cluster_path(
            problem.X,
            problem.y,
            n_clusters=3,
            alphas=(1e-9, 1e-8),
            solver="pg",
            init="zeros",
            max_iter=1,
            tol=0,
        )


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_clusters": 0}, "n_clusters holds 0"),
        ({"n_clusters": 2.5}, "n_clusters holds 2.5"),
        ({"n_clusters": True}, "n_clusters holds True"),
        ({"n_clusters": {"a": 1}}, "n_clusters is a mapping, which needs blocks"),
        ({"alphas": ()}, "alphas is empty"),
        ({"alphas": -1}, "alphas holds -1"),
        ({"alphas": [np.nan]}, "alphas holds nan"),
        ({"alphas": "some"}, "alphas='some' is no grid"),
        ({"n_nonzero": [0]}, "n_nonzero holds 0"),
        ({"loss": "absolute"}, "'loss' parameter"),
        ({"solver": "cg", "loss": "huber"}, "work with squared loss only"),
    ],
)
def test_bad_parameters_are_refused(problem, parameters, message):
    with pytest.raises(ValueError, match=message):
        cs.feature_cluster_path(problem.X, problem.y, **{"n_clusters": 2, **parameters})


# ---- Prices


@pytest.fixture(scope="module")
def tariff():
    """Three factors whose effects differ in size, one without any, and missing values."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.choice(list("abcd"), 400) for name in ("a", "b", "c", "d")})
    frame["hour"] = np.where(rng.random(400) < 0.1, np.nan, rng.integers(0, 6, 400))
    y = 3.0 * (frame["c"] > "b") + 1.0 * (frame["a"] > "b") + 2.0 * (frame["hour"] > 2)
    return frame, (y + 0.1 * rng.standard_normal(400)).to_numpy()


def test_a_path_of_prices_tells_in_which_order_factors_come_in(tariff):
    frame, y = tariff
    prices = (1.0, 0.3, 0.2, 0.05, 0.01)
    path = cs.feature_cluster_path(
        frame, y, prices=prices[::-1], alphas=1e-4, factors={"hour": "ordinal"}
    )
    order = path.factor_order()
    assert [name for name, _ in order] == ["c", "hour", "a"]
    assert path.factors == ("a", "b", "c", "d", "hour")
    for other in prices:  # by single fits
        plain = cs.FeatureClusterRegressor(price=other, alpha=1e-4, factors={"hour": "ordinal"})
        names = plain.fit(frame, y).factors_.weight_names
        for name, price in order:
            mine = [j for j, each in enumerate(names) if each.startswith(f"{name}: ")]
            mine = [j for j in mine if not names[j].endswith("missing")]
            assert (np.unique(plain.labels_[mine]).size > 1) == (other <= price)
    assert [row["price"] for row in path.rows()] == list(prices[::-1])


def test_paths_of_numbers_of_groups_have_an_order_too(tariff):
    frame, y = tariff
    path = cs.feature_cluster_path(
        frame[["a", "b", "c"]], y, n_clusters=(3, 4, 5), alphas=(1e-2, 1e-4)
    )
    assert path.factor_order(1) == [("c", 4), ("a", 5)]


def test_searches_tell_in_which_order_factors_come_in(tariff):
    frame, y = tariff
    search = cs.FeatureClusterRegressorCV(
        prices=(1.0, 0.3, 0.2, 0.05, 0.01, 1e-6), cv=2, factors={"hour": "ordinal"}, random_state=0
    ).fit(frame, y)
    assert [name for name, _ in search.factor_order_] == ["c", "hour", "a"]
    assert min(price for _, price in search.factor_order_) >= search.best_params_["price"]
    search.set_params(prices=None, n_clusters=(5, 6), alphas=(1e-2,), factors=None)
    search.fit(frame[["a", "b", "c"]], y)
    assert search.factor_order_ is None


def test_prices_go_with_factors_alone(tariff):
    frame, y = tariff
    with pytest.raises(ValueError, match="prices and n_clusters were given"):
        cs.feature_cluster_path(frame[["a"]], y, prices=0.1, n_clusters=3)
    with pytest.raises(ValueError, match="prices need columns of categories"):
        cs.feature_cluster_path(np.eye(4), np.arange(4.0), prices="auto")
    path = cs.feature_cluster_path(np.eye(4), np.arange(4.0), n_clusters=2, alphas=1e-2)
    with pytest.raises(ValueError, match="This path has no factors"):
        path.factor_order()
