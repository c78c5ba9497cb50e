"""Counts, amounts and quantiles: against scikit-learn and brute force, and on planted groups."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import (
    GammaRegressor,
    PoissonRegressor,
    QuantileRegressor,
    TweedieRegressor,
)
from sklearn.metrics import mean_pinball_loss, mean_tweedie_deviance
from sklearn.model_selection import KFold
from sklearn.multioutput import MultiOutputRegressor

import clustruct as cs
from clustruct.losses import PoissonLoss, QuantileLoss, TweedieLoss
from tests import brute_force as bf
from tests.losses.users import Poisson

N, D = 400, 12
LABELS = np.arange(D) % 3
WEIGHTS = np.array([-0.4, 0.1, 0.5])[LABELS]
POWERS = {"poisson": 1.0, "gamma": 2.0, "tweedie": 1.5}
NAMES = [*POWERS, "quantile"]
PEERS = {
    "poisson": PoissonRegressor,
    "gamma": GammaRegressor,
    "tweedie": TweedieRegressor,
    "quantile": QuantileRegressor,
}


def draw(name, scores, rng):
    """Targets of a family, whose mean or median has these scores."""
    means = np.exp(scores)
    if name == "poisson":
        return rng.poisson(means).astype(float)
    if name == "gamma":
        return rng.gamma(2.0, means / 2.0)
    if name == "tweedie":  # a gamma amount for each of some events
        return np.array([rng.gamma(2.0, 0.5, size=count).sum() for count in rng.poisson(means)])
    return 3.0 * scores + rng.standard_t(3, scores.size)


@pytest.fixture(scope="module")
def planted():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    return X, {name: draw(name, 0.5 + X @ WEIGHTS, rng) for name in NAMES}


def together(labels):
    return np.equal.outer(labels, labels)


# ---- Without groups: scikit-learn's models.


@pytest.mark.parametrize("name", ["squared", *POWERS])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_without_groups_it_is_scikit_learns(planted, name, weighted, fit_intercept):
    X, targets = planted
    y = targets.get(name, targets["quantile"])
    weights = np.random.default_rng(1).random(N) if weighted else None
    power = POWERS.get(name, 0.0)
    peer = TweedieRegressor(
        power=power,
        alpha=1e-2,
        fit_intercept=fit_intercept,
        link="log" if power else "identity",
        solver="newton-cholesky",
        tol=1e-12,
    ).fit(X, y, sample_weight=weights)
    for count in (None, D):
        mine = cs.FeatureClusterRegressor(
            count, alpha=1e-2, loss=name, fit_intercept=fit_intercept
        ).fit(X, y, sample_weight=weights)
        np.testing.assert_allclose(mine.coef_, peer.coef_, atol=1e-6)
        np.testing.assert_allclose(mine.intercept_, peer.intercept_, atol=1e-6)
        assert mine.certificate_.relative_gap < 1e-6


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_little_smoothing_is_quantile_regression(planted, level):
    X, y = planted[0][:, :4], planted[1]["quantile"]
    peer = QuantileRegressor(quantile=level, alpha=0.0).fit(X, y)
    best = mean_pinball_loss(y, peer.predict(X), alpha=level)
    losses = []
    for smoothing in (0.05, 0.01, 0.002):
        mine = cs.FeatureClusterRegressor(
            None, alpha=0.0, loss="quantile", quantile_level=level, quantile_smoothing=smoothing
        ).fit(X, y)
        losses.append(mean_pinball_loss(y, mine.predict(X), alpha=level) / best - 1.0)
        assert np.mean(y <= mine.predict(X)) == pytest.approx(level, abs=0.02)
    assert losses == sorted(losses, reverse=True)
    assert -1e-9 < losses[-1] < 2e-4


@pytest.mark.parametrize("name", NAMES)
def test_to_sklearn_predicts_the_same(planted, name):
    X, targets = planted
    model = cs.FeatureClusterRegressor(3, loss=name).fit(X, targets[name])
    plain = model.to_sklearn()
    assert isinstance(plain, PEERS[name])
    assert plain.get_params().get("power", 1.5) == 1.5
    np.testing.assert_allclose(plain.predict(X), model.predict(X), rtol=1e-12)
    several = np.column_stack([targets[name], 2.0 * targets[name]])
    model = cs.FeatureClusterRegressor(3, loss=name).fit(X, several)
    plain = model.to_sklearn()
    assert isinstance(plain, MultiOutputRegressor if name in POWERS else QuantileRegressor)
    np.testing.assert_allclose(plain.predict(X), model.predict(X), rtol=1e-12)


# ---- Groups and certificates.


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("solver", ["auto", "pg", "greedy", "soft"])
def test_planted_groups_are_found(planted, name, solver):
    X, targets = planted
    model = cs.FeatureClusterRegressor(3, loss=name, solver=solver, random_state=0)
    model.fit(X, targets[name])
    assert model.labels_.tolist() == LABELS.tolist()
    assert model.certificate_.relative_gap < 0.05
    assert model.status_.converged


def test_conditional_gradient_is_for_squared_loss(planted):
    X, targets = planted
    with pytest.raises(ValueError, match="squared loss only"):
        cs.FeatureClusterRegressor(3, loss="poisson", solver="cg").fit(X, targets["poisson"])


@pytest.mark.parametrize("seed", range(2))
def test_rare_counts_heavy_tails_and_correlated_columns(seed):
    rng = np.random.default_rng(seed)
    w = np.array([-0.6, 0.0, 0.6])[LABELS]
    X = rng.standard_normal((8000, D))
    few = np.full((D, D), 0.7) + 0.3 * np.eye(D)
    tied = rng.multivariate_normal(np.zeros(D), few, 1000)
    cases = [
        ("poisson", X, rng.poisson(0.05 * np.exp(X @ w - 0.5 * w @ w)).astype(float), 1e-4),
        ("gamma", X[:2000], np.exp(X[:2000] @ w) * rng.gamma(0.3, 1.0, 2000), 1e-3),
        *((name, tied, draw(name, tied @ w, rng), 1e-3) for name in NAMES),
    ]
    assert 0.04 < cases[0][2].mean() < 0.06
    for name, matrix, y, alpha in cases:
        model = cs.FeatureClusterRegressor(3, loss=name, alpha=alpha, random_state=0)
        np.testing.assert_array_equal(together(model.fit(matrix, y).labels_), together(LABELS))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_certificates_are_below_all_groupings(name, fit_intercept):
    rng = np.random.default_rng(3)
    X, weights = rng.standard_normal((25, 7)) + 0.3, rng.random(25)
    y = draw(name, X @ rng.standard_normal(7) / 2, rng)
    model = cs.FeatureClusterRegressor(
        2, alpha=0.05, loss=name, fit_intercept=fit_intercept, random_state=0
    ).fit(X, y, sample_weight=weights)
    width = QuantileLoss(0.5).with_targets(y[:, None], weights / weights.sum()).width
    loss = bf.tweedie(POWERS[name]) if name in POWERS else bf.quantile(0.5, width)
    least = bf.best(
        X,
        y[:, None],
        bf.groupings(7, 2),
        alpha=0.05,
        loss=loss,
        shares=weights / weights.sum(),
        intercept=fit_intercept,
    )
    assert 0.0 < model.certificate_.lower_bound <= least * (1 + 1e-8)
    assert model.objective_ >= least * (1 - 1e-8)


def test_the_loss_is_that_of_its_definition(planted):
    X, y = planted[0], planted[1]["poisson"]
    mine, users = (
        cs.FeatureClusterRegressor(3, loss=loss, random_state=0).fit(X, y)
        for loss in ("poisson", Poisson())
    )
    np.testing.assert_allclose(mine.coef_, users.coef_, atol=1e-6)
    assert mine.objective_ == pytest.approx(users.objective_, rel=1e-9)
    bounds = [model.certificate_.lower_bound for model in (mine, users)]
    assert bounds[0] == pytest.approx(bounds[1], rel=1e-6)


# ---- Units, and what has no minimum.


@pytest.mark.parametrize(
    ("name", "unit"), [("poisson", 1e-9), ("gamma", 1e6), ("tweedie", 1e6), ("quantile", 1e-9)]
)
def test_units_of_the_targets_change_nothing(planted, name, unit):
    X, y = planted[0], planted[1][name]
    # The loss is multiplied by this, and the weights of the quantile loss by the unit.
    factor = unit ** (2.0 - POWERS[name]) if name in POWERS else 1.0 / unit
    plain = cs.FeatureClusterRegressor(3, loss=name, random_state=0).fit(X, y)
    other = cs.FeatureClusterRegressor(3, loss=name, alpha=1e-3 * factor, random_state=0)
    other.fit(X, unit * y)
    np.testing.assert_array_equal(other.labels_, plain.labels_)
    np.testing.assert_allclose(
        other.predict(X), unit * plain.predict(X), rtol=1e-5, atol=0.1 * unit
    )
    search, its = (
        cs.FeatureClusterRegressorCV(2, loss=name, criterion="bic").fit(X, targets)
        for targets in (y, unit * y)
    )
    np.testing.assert_allclose(
        its.cv_results_["param_alpha"], search.cv_results_["param_alpha"] * factor
    )


def test_counts_that_are_all_zero_have_no_weights():
    X = np.random.default_rng(0).standard_normal((60, 6))
    for name in ("poisson", "tweedie"):
        model = cs.FeatureClusterRegressor(2, loss=name).fit(X, np.zeros(60))
        assert np.abs(model.coef_).max() < 1e-6
        assert 0.0 < model.predict(X).max() < 1e-20
    experts = cs.SampleClusterRegressor(2, loss="poisson", random_state=0).fit(X, np.zeros(60))
    assert experts.predict(X).max() < 1e-6
    tasks = np.arange(60) % 3
    many = cs.TaskClusterRegressor(2, loss="poisson", random_state=0)
    assert many.fit(X, np.zeros(60), tasks=tasks).predict(X, tasks=tasks).max() < 1e-3


@pytest.mark.parametrize("name", NAMES)
def test_constant_targets_are_predicted(name):
    X = np.random.default_rng(0).standard_normal((60, 6))
    model = cs.FeatureClusterRegressor(2, loss=name).fit(X, np.full(60, 3.0))
    np.testing.assert_allclose(model.predict(X), 3.0, rtol=1e-5)


def test_a_single_event_and_no_ridge_ends():
    X, y = np.random.default_rng(0).standard_normal((60, 6)), np.zeros(60)
    y[3] = 1.0
    for solver in ("auto", "pg", "greedy", "soft"):
        model = cs.FeatureClusterRegressor(2, loss="poisson", alpha=0.0, solver=solver).fit(X, y)
        assert 0.0 <= model.objective_ < 0.09  # that of a constant
        assert np.isfinite(model.predict(1e4 * X)).all()


@pytest.mark.parametrize(
    ("name", "bad", "words"),
    [
        ("poisson", -1.0, "at least 0"),
        ("tweedie", -0.5, "at least 0"),
        ("gamma", 0.0, "numbers above 0"),
    ],
)
@pytest.mark.parametrize("kind", [cs.FeatureClusterRegressor, cs.SampleClusterRegressor])
def test_targets_outside_the_domain_are_named(planted, kind, name, bad, words):
    y = planted[1][name].copy()
    y[[3, 17]] = bad
    with pytest.raises(ValueError, match=rf"2 targets that loss=.*rows 3, 17 .*{words}"):
        kind(2, loss=name).fit(planted[0], y)


@pytest.mark.parametrize(
    ("loss", "value"),
    [("tweedie_power", 2.0), ("quantile_level", 1.0), ("quantile_smoothing", 0.0)],
)
def test_parameters_outside_their_range_are_refused(planted, loss, value):
    for kind in (cs.FeatureClusterRegressorCV, cs.SampleClusterRegressor, cs.TaskClusterRegressor):
        with pytest.raises(ValueError, match=f"'{loss}' parameter"):
            kind(2, **{loss: value}).fit(planted[0], planted[1]["tweedie"])
    for made in (
        lambda: TweedieLoss(2.0),
        lambda: QuantileLoss(1.0),
        lambda: QuantileLoss(0.5, 0.0),
    ):
        with pytest.raises(ValueError, match="Give"):
            made()


def test_they_are_not_for_classes(planted):
    X, y = planted[0], planted[1]["poisson"] > 1
    for kind in (cs.FeatureClusterClassifier, cs.TaskClusterClassifier):
        for loss in ("poisson", PoissonLoss()):
            with pytest.raises(ValueError, match=r"'loss' parameter|not for classes"):
                kind(2, loss=loss).fit(X, y)


# ---- Scores and criteria.


@pytest.mark.parametrize("name", NAMES)
def test_folds_are_scored_by_the_deviance(planted, name):
    X, y = planted[0], planted[1][name]
    search = cs.FeatureClusterRegressorCV(
        (1, 3), alphas=1e-3, relax=1.0, cv=KFold(3), loss=name, random_state=0
    ).fit(X, y)
    assert search.best_params_["n_clusters"] == 3
    plain = cs.FeatureClusterRegressor(3, alpha=1e-3, loss=name, solver="greedy")

    def score(train, test):
        predicted = clone(plain).fit(X[train], y[train]).predict(X[test])
        if name == "quantile":
            return -mean_pinball_loss(y[test], predicted)
        return -mean_tweedie_deviance(y[test], predicted, power=POWERS[name])

    by_hand = np.mean([score(*fold) for fold in KFold(3).split(X)])
    assert search.best_score_ == pytest.approx(by_hand, rel=1e-3)
    what = "pinball_loss" if name == "quantile" else f"{name}_deviance"
    assert search.cv_results_.scoring == f"neg_mean_{what}"


@pytest.mark.parametrize("name", NAMES)
def test_criteria_go_by_the_likelihood(planted, name):
    X, y = planted[0], planted[1][name]
    search = cs.FeatureClusterRegressorCV(
        (1, 2, 3),
        alphas=1e-6,
        criterion="bic",
        loss=name,
        quantile_smoothing=0.01,  # which lifts the loss a little
        random_state=0,
    ).fit(X, y)
    assert search.best_params_["n_clusters"] == 3
    predicted = search.predict(X)
    if name == "quantile":
        scale = mean_pinball_loss(y, predicted)
        fit = 2 * N * (1.0 + np.log(scale / 0.25))
    else:
        deviance = mean_tweedie_deviance(y, predicted, power=POWERS[name])
        fit = N * deviance if name == "poisson" else N * (1.0 + np.log(2 * np.pi * deviance))
    assert -search.best_score_ == pytest.approx(fit + 4 * np.log(N), rel=1e-2)
    more = clone(search).set_params(criterion="ebic", n_clusters=(2, 3, 4), quantile_smoothing=0.05)
    more.fit(X, y)
    assert more.best_params_["n_clusters"] == 3


@pytest.mark.parametrize("name", NAMES)
def test_models_are_saved_and_loaded(planted, name, tmp_path):
    X, y = planted[0], planted[1][name]
    tasks = np.arange(N) % 4
    for model, more in (
        (cs.FeatureClusterRegressor(3, loss=name), {}),
        (cs.TaskClusterRegressor(1, loss=name), {"tasks": tasks}),
    ):
        model.fit(X, y, **more)
        cs.save(model, tmp_path / "model.clustruct")
        loaded = cs.load(tmp_path / "model.clustruct")
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    again = [m.adapt(X[:9], y[:9], np.full(9, 99)).coef_ for m in (model, loaded)]
    np.testing.assert_array_equal(*again)


def test_path_takes_parameters_of_losses(planted):
    X, targets = planted
    path = cs.feature_cluster_path(
        X, targets["tweedie"], n_clusters=3, alphas=1e-3, loss="tweedie", tweedie_power=1.2
    )
    model = cs.FeatureClusterRegressor(3, loss=TweedieLoss(1.2)).fit(X, targets["tweedie"])
    np.testing.assert_allclose(path.coefs.ravel(), model.coef_, atol=1e-5)


# ---- Experts and tasks.


@pytest.mark.parametrize("name", NAMES)
def test_planted_experts(name):
    rng = np.random.default_rng(2)
    X, expert = rng.standard_normal((800, 3)), rng.integers(2, size=800)
    W = np.array([[0.8, -0.5, 0.0], [-0.8, 0.5, 0.3]])
    y = draw(name, 2.0 + (X * W[expert]).sum(axis=1), rng)
    if name in ("gamma", "tweedie"):  # less noise: a mean of five
        y = np.mean([y, *(draw(name, 2.0 + (X * W[expert]).sum(axis=1), rng) for _ in range(4))], 0)
    model = cs.SampleClusterRegressor(2, alpha=1e-4, loss=name, random_state=0).fit(X, y)
    found = model.experts_[np.argsort(-model.experts_[:, 0])]
    np.testing.assert_allclose(found, W * (3.0 if name == "quantile" else 1.0), atol=0.3)
    counts = cs.SampleClusterRegressorCV((1, 2), loss=name, random_state=0).fit(X, y)
    assert counts.n_clusters_ == 2


def test_experts_of_rare_counts_by_their_likelihood():
    rng = np.random.default_rng(0)
    X, expert = rng.standard_normal((3000, 3)), rng.integers(2, size=3000)
    W = np.array([[0.8, -0.5, 0.0], [-0.8, 0.5, 0.3]])
    y = draw("poisson", -0.5 + (X * W[expert]).sum(axis=1), rng)
    model = cs.SampleClusterRegressor(
        2, loss="poisson", solver="em", solver_options={"refine": False}, random_state=0
    ).fit(X, y)
    found = model.experts_[np.argsort(-model.experts_[:, 0])]
    np.testing.assert_allclose(found, W, atol=0.2)


@pytest.mark.parametrize("level", [-0.5, 1.0, 8.0])
@pytest.mark.parametrize("name", NAMES)
def test_planted_tasks(name, level):
    rng = np.random.default_rng(0)
    labels, tasks = np.arange(16) % 2, np.repeat(np.arange(16), 60)
    V = 0.6 * rng.standard_normal((2, 5))
    X = rng.standard_normal((tasks.size, 5))
    y = draw(name, level + (X * V[labels][tasks]).sum(axis=1), rng)
    model = cs.TaskClusterRegressor(2, loss=name, random_state=0).fit(X, y, tasks=tasks)
    np.testing.assert_array_equal(together(model.labels_), together(labels))
    assert 0.0 < model.certificate_.lower_bound <= model.objective_
    if level != 1.0 or name in ("gamma", "tweedie"):
        return
    search = cs.TaskClusterRegressorCV(
        (1, 2), alpha_within=3.0, alpha_between=0.1, loss=name, cv=2, random_state=0
    ).fit(X, y, tasks=tasks)
    assert search.cv_results_.scoring == f"neg_{name}_loss"
