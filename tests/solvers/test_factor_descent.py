"""Block coordinate descent over factors, against brute force and dense algebra."""

from itertools import pairwise, product

import numpy as np
import pytest

from clustruct.design import FactorDesign
from clustruct.grouping.constraints import FactorClustered
from clustruct.grouping.factors import Cyclic, Monotone, Nominal, Ordinal
from clustruct.losses import HuberLoss, LogisticLoss, PoissonLoss, SquaredLoss
from clustruct.objectives.features.factors import FactorObjective
from clustruct.objectives.linear import Response
from clustruct.solvers import factors as descent
from clustruct.solvers.driver import Budget
from clustruct.solvers.factors import FactorModel, fit_factors, with_strengths
from clustruct.solvers.residuals import ByColumns, ByRows, residuals_of
from tests.brute_force import groupings

BUDGET = Budget(500, 1e-10, lambda iteration: None)


def problem(n, levels, *, loss=None, kinds=None, alpha=1e-3, seed=0, numeric=0, noise=0.5):
    """An objective and the parts of its constraint, with effects of three values."""
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, size, n).astype(np.uint8) for size in levels]
    X = rng.standard_normal((n, numeric))
    effects = [np.sort(rng.choice([-1.0, 0.0, 1.5], size)) for size in levels]
    scores = sum(mine[code] for mine, code in zip(effects, codes, strict=True)) + X @ np.ones(
        numeric
    )
    y = scores + noise * rng.standard_normal(n)
    loss = SquaredLoss() if loss is None else loss
    if loss.coded or isinstance(loss, LogisticLoss):
        y = np.where(y > np.median(y), 1.0, -1.0)
    shares = rng.random(n) + 0.5
    response = Response(y[:, None], loss, 1, shares / shares.sum(), True)
    objective = FactorObjective(FactorDesign(codes, levels, X), response, alpha)
    kinds = [Nominal()] * len(levels) if kinds is None else kinds
    ends = np.cumsum([0, *levels])
    places = [np.arange(first, last) for first, last in pairwise(ends)]
    return objective, list(zip(kinds, places, strict=True)), effects


def constraint(objective, factors, n_clusters=None, **more):
    return FactorClustered(factors, objective.shape[0], n_clusters, **more)


def value(objective, labels, price, n_factors, n_alone=0):
    """The objective of a grouping, refitted, with its price."""
    names, labels = np.unique(labels, return_inverse=True)
    point = objective.refit(labels, names.size, 1e-12)
    return point.value + price * (names.size - n_alone - n_factors)


def test_one_factor_without_ridge_is_solved_exactly():
    for seed in range(20):
        objective, factors, _ = problem(60, [6], alpha=0.0, seed=seed)
        price = 0.02
        run = fit_factors(objective, constraint(objective, factors, price=price), BUDGET)
        found = value(objective, run.solution.labels, price, 1)
        best = min(value(objective, np.array(g), price, 1) for g in groupings(6, 6))
        assert found == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("limits", [{"price": 0.02}, {"n_clusters": 3}, {"n_clusters": [3]}])
def test_one_factor_does_not_depend_on_descents_at_other_prices(limits, monkeypatch):
    for seed, kind in enumerate([Nominal(), Ordinal(), Cyclic(), Monotone()]):
        objective, factors, _ = problem(60, [8], alpha=0.05, seed=seed, kinds=[kind])
        found = []
        for alone in (True, False):
            with monkeypatch.context() as patched:
                if not alone:
                    patched.setattr(descent, "_is_exact", lambda model: False)
                run = fit_factors(objective, constraint(objective, factors, **limits), BUDGET)
            found.append(run.solution)
        np.testing.assert_array_equal(found[0].labels, found[1].labels)
        np.testing.assert_allclose(found[0].point.W, found[1].point.W, atol=1e-12)


@pytest.mark.parametrize("loss", [SquaredLoss(), HuberLoss(1.0), LogisticLoss()])
def test_values_are_the_best_for_the_groups(loss):
    objective, factors, _ = problem(300, [5, 7, 4], loss=loss, numeric=2)
    run = fit_factors(objective, constraint(objective, factors, price=0.01), BUDGET)
    labels = run.solution.labels
    point = objective.refit(labels, int(labels.max()) + 1, 1e-12)
    assert run.solution.point.value == pytest.approx(point.value, rel=1e-6)
    assert np.unique(labels[-2:]).size == 2  # numeric columns are left alone


def test_no_other_grouping_of_a_single_factor_is_better():
    price = 0.01
    for seed in range(6):
        objective, factors, _ = problem(80, [5, 4, 4], seed=seed, alpha=1e-6)
        run = fit_factors(objective, constraint(objective, factors, price=price), BUDGET)
        labels = run.solution.labels
        found = value(objective, labels, price, 3)
        for _, rows in factors:
            for other in groupings(rows.size, rows.size):
                changed = labels.copy()
                changed[rows] = 100 + np.array(other)
                # Values of the others may move as well, so that this is more than a sweep asks.
                assert found <= value(objective, changed, price, 3) + 1e-3 * found


def test_small_problems_end_at_the_optimum_mostly():
    price, hits = 0.02, 0
    for seed in range(12):
        objective, factors, _ = problem(50, [4, 4], seed=seed, alpha=1e-4)
        run = fit_factors(objective, constraint(objective, factors, price=price), BUDGET)
        each = [np.array(g) for g in groupings(4, 4)]
        best = min(
            value(objective, np.concatenate([a, 10 + b]), price, 2) for a, b in product(each, each)
        )
        found = value(objective, run.solution.labels, price, 2)
        assert found >= best - 1e-9
        hits += found <= best + 1e-6
    assert hits >= 11


def test_limits_hold_in_all_and_for_each_factor():
    objective, factors, _ = problem(400, [8, 9, 10])
    run = fit_factors(objective, constraint(objective, factors, 7), BUDGET)
    assert np.unique(run.solution.labels).size <= 7
    each = np.array([1, 3, 2])
    run = fit_factors(objective, constraint(objective, factors, each), BUDGET)
    counts = [np.unique(run.solution.labels[rows]).size for _, rows in factors]
    assert (np.array(counts) <= each).all()


def test_planted_groups_are_found():
    objective, factors, effects = problem(2000, [12, 9], noise=0.3)
    run = fit_factors(objective, constraint(objective, factors, price=0.005), BUDGET)
    for (_, rows), truth in zip(factors, effects, strict=True):
        pairs = {(a, b) for a, b in zip(run.solution.labels[rows], truth, strict=True)}
        assert len(pairs) == np.unique(truth).size == len({a for a, _ in pairs})


@pytest.mark.parametrize("decreasing", [False, True])
def test_ordered_factors_keep_their_order(decreasing):
    kinds = [Monotone(decreasing=decreasing), Ordinal(), Cyclic()]
    objective, factors, _ = problem(300, [10, 8, 12], kinds=kinds, seed=3)
    run = fit_factors(objective, constraint(objective, factors, price=0.002), BUDGET)
    W, labels = run.solution.point.W[:, 0], run.solution.labels
    steps = np.diff(W[factors[0][1]])
    assert (steps <= 1e-12).all() if decreasing else (steps >= -1e-12).all()
    segments = labels[factors[1][1]]
    assert np.count_nonzero(np.diff(segments)) == np.unique(segments).size - 1
    circle = labels[factors[2][1]]
    changes = np.count_nonzero(circle != np.roll(circle, 1))
    assert changes == (0 if np.unique(circle).size == 1 else np.unique(circle).size)


def test_groups_have_the_least_weight():
    objective, factors, _ = problem(200, [15])
    exposure = objective.data.adjoint(objective.response.shares[:, None])[:, 0]
    about = {"price": 1e-4, "exposure": exposure, "min_weight": 0.2}
    run = fit_factors(objective, constraint(objective, factors, **about), BUDGET)
    weights = np.bincount(run.solution.labels, exposure)
    assert weights.size > 1
    assert weights.min() >= 0.2 - 1e-12


def test_a_price_above_all_gains_keeps_every_factor_out():
    objective, factors, _ = problem(200, [5, 6])
    run = fit_factors(objective, constraint(objective, factors, price=100.0), BUDGET)
    assert np.unique(run.solution.labels).size == 2
    assert np.abs(run.solution.point.W).max() == 0.0


def test_a_warm_model_continues_a_path():
    objective, factors, _ = problem(500, [8, 8, 8])
    model = FactorModel(objective, constraint(objective, factors, price=1.0))
    counts = []
    for price in (1.0, 0.1, 0.01, 0.001):
        run = fit_factors(objective, constraint(objective, factors, price=price), BUDGET, model)
        counts.append(np.unique(run.solution.labels).size)
    assert counts == sorted(counts)


def test_empirical_bayes_tells_factors_with_effects_from_those_without():
    rng = np.random.default_rng(0)
    n, levels, deviations = 4000, [30, 30, 30], [1.0, 0.3, 0.0]
    codes = [rng.integers(0, 30, n).astype(np.uint8) for _ in levels]
    y = rng.standard_normal(n)
    for code, deviation in zip(codes, deviations, strict=True):
        y += (deviation * rng.standard_normal(30))[code]
    response = Response(y[:, None], SquaredLoss(), 1, np.full(n, 1 / n), True)
    objective = FactorObjective(FactorDesign(codes, levels, np.empty((n, 0))), response, 0.0)
    places = [np.arange(30 * j, 30 * j + 30) for j in range(3)]
    factors = [(Nominal(), rows) for rows in places]
    found = with_strengths(objective, constraint(objective, factors, price=1.0))
    strong, weak, none = (found.penalties[rows[0]] for rows in places)
    assert strong == pytest.approx(1.0 / n, rel=0.5)
    assert weak == pytest.approx(1.0 / 0.09 / n, rel=0.6)
    assert none > 20 * weak


def test_the_same_bits_whatever_the_codes_are_stored_in():
    objective, factors, _ = problem(200, [5, 6])
    wide = FactorDesign(
        [codes.astype(np.int32) for codes in objective.data.codes], [5, 6], objective.data.numeric
    )
    other = FactorObjective(wide, objective.response, objective.alpha)
    solutions = [
        fit_factors(each, constraint(each, factors, price=0.01), BUDGET).solution.point.W
        for each in (objective, other)
    ]
    assert np.array_equal(*solutions)


# ---- Residuals by rows, and by columns with a Gram matrix


@pytest.mark.parametrize("loss", [SquaredLoss(), LogisticLoss()])
def test_sums_by_columns_equal_those_of_rows(loss, monkeypatch):
    objective, factors, _ = problem(400, [5, 3, 7], loss=loss, numeric=2)
    models = []
    for way in (ByRows, ByColumns):
        monkeypatch.setattr(descent, "residuals_of", way)
        models.append(FactorModel(objective, constraint(objective, factors, price=1.0)))
    rng = np.random.default_rng(0)
    labels = [np.array([0, 1, 1, 0, 2]), np.zeros(3, dtype=np.intp), np.arange(7) % 2]
    steps, numeric, shift = [rng.standard_normal(n) for n in (5, 3, 7)], rng.standard_normal(2), 0.3
    found = []
    for model in models:
        for factor, mine, step in zip(model.factors, labels, steps, strict=True):
            factor.array("labels")[:], factor.n_groups = mine, int(mine.max()) + 1
            model.residuals.shift(factor, step, 0.1)
        model.residuals.move_numeric(numeric, shift)
        sums = [model.residuals.level_sums(factor).copy() for factor in model.factors]
        goals = [model.residuals.aim(f, 0.2, model.total)[0].copy() for f in model.factors]
        masses = [factor.array("weights") for factor in model.factors]
        parts = [slice(0, 3), slice(3, 5), slice(5, 7)]
        equations = [np.ravel(e) for e in model.residuals.normal_equations([0, 2], parts)]
        moved = np.concatenate([*steps, numeric])
        gained = model.residuals.gained(moved, 0.3 + shift)
        found.append(np.concatenate([*sums, *goals, *masses, *equations, [gained]]))
    assert np.allclose(*found, rtol=1e-11, atol=1e-13)


def test_the_fall_of_the_model_is_that_of_a_squared_loss():
    objective, factors, _ = problem(300, [5, 6], numeric=1)
    model = FactorModel(objective, constraint(objective, factors, price=1.0))
    assert isinstance(model.residuals, ByColumns)
    start, place, price = model.value(0.01), (model.W(), model.intercept), 0.01
    penalty = model.penalty(price)
    model.descend(price, np.array([5, 6]))
    fall = model.gained(*place) + penalty - model.penalty(price)
    assert fall == pytest.approx(start - model.value(price), rel=1e-10)
    assert fall > 0.1 * start


@pytest.mark.parametrize("loss", [SquaredLoss(), LogisticLoss(), PoissonLoss()])
def test_both_ways_take_the_same_path(loss, monkeypatch):
    kinds = [Nominal(), Ordinal(), Monotone(), Cyclic()]
    objective, factors, _ = problem(600, [6, 9, 8, 7], loss=loss, kinds=kinds, numeric=1)
    paths = []
    for way in (ByRows, ByColumns):
        monkeypatch.setattr(descent, "residuals_of", way)
        model = FactorModel(objective, constraint(objective, factors, price=1.0))
        for price in (0.1, 0.03, 0.01, 0.003):
            run = fit_factors(objective, constraint(objective, factors, price=price), BUDGET, model)
            paths.append((run.solution.labels, run.solution.point.W))
    for (labels, W), (others, other) in zip(paths[:4], paths[4:], strict=True):
        assert np.array_equal(labels, others)
        assert np.allclose(W, other, rtol=1e-9, atol=1e-9 if loss.quadratic else 1e-5)


def test_empirical_bayes_is_the_same_both_ways(monkeypatch):
    objective, factors, _ = problem(500, [6, 9, 8])
    found = []
    for way in (ByRows, ByColumns):
        monkeypatch.setattr(descent, "residuals_of", way)
        each = with_strengths(objective, constraint(objective, factors, price=1.0))
        found.append(each.penalties)
    assert np.allclose(*found, rtol=1e-9)


def test_columns_are_for_many_rows_and_few_levels():
    for n, levels, way in ((2000, [9, 9, 9], ByColumns), (50, [20] * 9, ByRows)):
        objective, _, _ = problem(n, levels)
        assert isinstance(residuals_of(objective.data, [None] * len(levels)), way)


def test_a_path_has_one_gram_matrix_for_the_squared_loss_and_all_ridges(monkeypatch):
    objective, factors, _ = problem(3000, [8, 9, 7])
    counted, gram = [], FactorDesign.gram
    monkeypatch.setattr(FactorDesign, "gram", lambda *a: counted.append(0) or gram(*a))
    limits = [constraint(objective, factors, price=price) for price in np.geomspace(0.02, 5e-4, 5)]
    start = FactorModel(objective, limits[0])
    for alpha in (1e-2, 1e-4):
        here = objective.with_alpha(alpha)
        model = FactorModel(here, limits[0], start)
        shared = [fit_factors(here, each, BUDGET, model).state.objective for each in limits]
        assert len(counted) == 1
    alone = FactorModel(here, limits[0])
    assert shared == [fit_factors(here, each, BUDGET, alone).state.objective for each in limits]
