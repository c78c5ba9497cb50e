"""Counts, amounts and quantiles are compared by their own deviance, with rivals of their family."""

import numpy as np
import pytest
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import mean_pinball_loss, mean_tweedie_deviance
from sklearn.model_selection import GridSearchCV, KFold

import clustruct as cs
from clustruct.losses import GammaLoss, HuberLoss, PoissonLoss, QuantileLoss, TweedieLoss
from clustruct.reporting.comparing.comparison import compare
from clustruct.reporting.comparing.rivals import fit_family
from clustruct.reporting.comparing.samples import Data
from clustruct.reporting.verdict import verdict_on

FAMILIES = [PoissonLoss(), GammaLoss(), TweedieLoss(1.4)]
N, HELD = 400, 150


def drawn(loss, rng, n=N + HELD, offset=0.0):
    """Features with a planted logarithm of the mean, and targets of the family."""
    X = rng.standard_normal((n, 6))
    mean = np.exp(X @ np.repeat([0.5, -0.5], 3) + offset)
    if loss.power == 1.0:
        return X, rng.poisson(mean) * 1.0
    y = rng.gamma(2.0, mean / 2.0)
    return X, y if loss.power == 2.0 else y * (rng.random(n) < 0.8)


@pytest.mark.parametrize("loss", FAMILIES)
def test_an_offset_makes_rates_with_weights(loss, rng):
    """``loss(y, z + o) = w loss(y / e, z)``, up to a term without z."""
    y, offset = drawn(loss, rng, 50)[1][:, None], rng.standard_normal((50, 1))
    rates, weights = loss.as_rates(y, offset)
    for _ in range(3):
        scores = rng.standard_normal((50, 1))
        mine = loss.value(y, scores + offset)
        np.testing.assert_allclose(mine, weights[:, 0] * loss.value(rates, scores), atol=1e-12)


def test_an_offset_of_an_identity_link_is_taken_from_the_targets(rng):
    y, offset = rng.standard_normal((2, 20, 1))
    for loss in (QuantileLoss(0.8), HuberLoss(0.5)):
        target, weights = loss.as_rates(y, offset)
        np.testing.assert_allclose(loss.value(y, 0.3 + offset), loss.value(target, 0.3 + 0 * y))
        np.testing.assert_array_equal(weights, 1.0)


@pytest.mark.parametrize("loss", FAMILIES)
def test_the_ridge_is_that_of_scikit_learn_with_the_best_strength(loss, rng):
    X, y = drawn(loss, rng, 300)
    cv = KFold(3, shuffle=True, random_state=0)
    found = fit_family(loss, Data(X, y), 10.0 ** np.arange(1.0, -5.0, -1.0), cv)
    unit = loss.with_targets(y[:, None], np.full(300, 1 / 300)).start_curvature(
        y[:, None], np.full(300, 1 / 300)
    )
    alphas = unit * 10.0 ** np.arange(1.0, -5.0, -1.0)
    plain = loss.ridge.set_params(tol=1e-9, max_iter=1000)
    deviance = lambda m, X, y: -mean_tweedie_deviance(y, m.predict(X), power=loss.power)  # noqa: E731
    search = GridSearchCV(plain, {"alpha": alphas}, cv=cv, scoring=deviance).fit(X, y)
    assert found.alpha == pytest.approx(search.best_params_["alpha"])
    np.testing.assert_allclose(found.coef_, search.best_estimator_.coef_, atol=1e-4)


def test_quantiles_have_a_rival_that_is_as_good_as_scikit_learns(rng):
    X = rng.standard_normal((300, 3))
    y = X @ [1.0, 1.0, -1.0] + rng.standard_normal(300) * np.exp(0.3 * X[:, 0])
    loss, cv = QuantileLoss(0.8), KFold(3, shuffle=True, random_state=0)
    found = fit_family(loss, Data(X, y), 10.0 ** np.array([-1.0, -3.0]), cv)
    plain = QuantileRegressor(quantile=0.8, alpha=0.0).fit(X, y)
    lost = [mean_pinball_loss(y, m.predict(X), alpha=0.8) for m in (found, plain)]
    assert lost[0] == pytest.approx(lost[1], rel=0.01)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", FAMILIES)
def test_models_are_compared_by_the_deviance(loss, weighted, rng, monkeypatch):
    monkeypatch.setattr("clustruct.reporting.comparing.rivals.MOST_TUNED", 0)
    offset = rng.choice([-1.0, 0.0, 0.7], N + HELD)
    X, y = drawn(loss, rng, offset=offset)
    weights = rng.integers(1, 4, N + HELD) * 1.0 if weighted else np.ones(N + HELD)
    parts = [
        Data(X[p], y[p], weights=weights[p] if weighted else None, offset=offset[p])
        for p in (slice(N), slice(N, None))
    ]
    model = cs.FeatureClusterRegressor(2, loss=loss).fit(X[:N], y[:N], offset=offset[:N])
    found = compare(model, *parts, seed=0)
    assert [one.role for one in found.entries] == ["constant", "linear", "boosting", "ours"]
    name = f"{loss.name.capitalize()} deviance"
    assert found.metrics == (name, "Gini")
    for one in found.entries:
        expected = mean_tweedie_deviance(
            parts[1].y, one.predicted, power=loss.power, sample_weight=weights[N:]
        )
        assert one.scores[name] == pytest.approx(expected, rel=1e-9)
    constant, rival = found.constant, found.rival
    # The constant is a rate, and the rival is of the family: both know the exposure.
    np.testing.assert_allclose(np.ptp(constant.predicted / np.exp(offset[N:])), 0.0, atol=1e-12)
    assert constant.scores["Gini"] == pytest.approx(0.0, abs=1e-9)
    assert rival.name.startswith(f"{loss.name.capitalize()} regression")
    assert rival.scores["Gini"] > 0.2
    assert rival.loss < 0.9 * constant.loss
    assert found.mine.loss < 1.05 * rival.loss
    assert verdict_on(model, found).headline.startswith(("As good", "Better"))


def test_little_deviance_is_left_to_remove_so_that_less_is_negligible(rng):
    """Rare claims: a model that finds a signal of 3 % of the deviance is not called nothing."""
    n = 20_000
    X = rng.standard_normal((2 * n, 4))
    y = rng.poisson(0.1 * np.exp(X @ [0.2, 0.2, -0.2, 0.0])) * 1.0
    train, test = Data(X[:n], y[:n]), Data(X[n:], y[n:])
    good = cs.FeatureClusterRegressor(3, loss="poisson").fit(train.X, train.y)
    found = compare(good, train, test, seed=0, n_fitted=n + 1)  # without boosting
    assert found.against(found.constant).gain < 0.04
    assert found.against(found.constant).better
    one = cs.FeatureClusterRegressor(1, loss="poisson").fit(train.X, train.y)
    bad = compare(one, train, test, seed=0)
    assert bad.rival.loss < bad.mine.loss < bad.constant.loss
    assert bad.against(bad.rival).negligible < 0.002
    assert bad.against(bad.rival).worse
    assert verdict_on(one, bad).headline.startswith("Worse than Poisson regression")


def test_quantiles_are_compared_by_the_pinball_loss(rng, monkeypatch):
    monkeypatch.setattr("clustruct.reporting.comparing.rivals.MOST_TUNED", 0)
    X = rng.standard_normal((300, 4))
    y = X @ [1.0, 1.0, -1.0, -1.0] + rng.standard_normal(300)
    train, test = Data(X[:200], y[:200]), Data(X[200:], y[200:])
    model = cs.FeatureClusterRegressor(2, loss="quantile", quantile_level=0.9).fit(*_xy(train))
    found = compare(model, train, test, seed=0)
    assert found.metrics == ("Pinball loss",)
    for one in found.entries:
        expected = mean_pinball_loss(test.y, one.predicted, alpha=0.9)
        assert one.scores["Pinball loss"] == pytest.approx(expected)
    assert found.constant.name == "Always the 0.9 quantile"
    assert found.constant.predicted[0] == pytest.approx(np.quantile(train.y, 0.9), abs=0.2)
    assert found.rival.loss < 0.5 * found.constant.loss


def _xy(data):
    return data.X, data.y


@pytest.mark.parametrize("use_offset", [False, True])
@pytest.mark.parametrize("kind", ["samples", "tasks", "columns"])
@pytest.mark.parametrize("loss", ["poisson", "gamma", "tweedie", "quantile"])
def test_experts_and_tasks_of_all_families_have_a_page(read, loss, kind, use_offset, rng):
    """Lines of experts are drawn where targets are on the scale of scores, and nowhere else."""
    X, offset = rng.standard_normal((60, 2)), rng.choice([-0.5, 0.5], 60)
    tasks = np.arange(60) % 4
    y = rng.gamma(2.0, np.exp(X[:, 0] * np.where(tasks % 2, 1.0, -1.0)) / 2.0)
    y = np.round(y) if loss == "poisson" else y
    routed = {"offset": offset} if use_offset else {}
    if kind == "samples":
        model = cs.SampleClusterRegressor(2, loss=loss, random_state=0)
    else:
        model = cs.TaskClusterRegressor(2, loss=loss, random_state=0)
        routed |= {"tasks": tasks} if kind == "tasks" else {}
        y = y if kind == "tasks" else np.where(rng.random((60, 2)) < 0.1, np.nan, y[:, None])
    text = read(model.fit(X, y, **routed), X, y, test_size=0, **routed)
    drawn = "Experts and their samples" in text
    assert drawn == (kind == "samples" and loss == "quantile" and model.n_clusters_ > 1)


@pytest.mark.parametrize("kind", ["samples", "tasks"])
def test_rivals_of_experts_and_tasks_are_of_the_family(kind, rng, monkeypatch):
    monkeypatch.setattr("clustruct.reporting.comparing.rivals.MOST_BOOSTED", 0)
    X, tasks = rng.standard_normal((200, 2)), np.arange(200) % 4
    y = rng.poisson(np.exp(X[:, 0] * np.where(tasks % 2, 1.0, -1.0))) * 1.0
    y[tasks == 3] = 0.0  # a task without claims has no regression of its own
    if kind == "samples":
        model = cs.SampleClusterRegressor(2, loss="poisson", random_state=0).fit(X, y)
        tasks = None
    else:
        model = cs.TaskClusterRegressor(2, loss="poisson", random_state=0).fit(X, y, tasks=tasks)
    parts = [
        Data(X[p], y[p], None if tasks is None else tasks[p]) for p in (slice(140), slice(140, 200))
    ]
    found = compare(model, *parts, seed=0)
    names = [one.name for one in found.entries]
    assert "Poisson deviance" in found.metrics
    assert all(np.isfinite(one.loss) for one in found.entries)
    if kind == "tasks":
        assert "A Poisson regression for each task" in names
    else:
        best = next(one for one in found.entries if one.role == "oracle")
        assert best.loss < found.mine.loss
        assert "Gini" not in best.scores  # it has seen the targets
