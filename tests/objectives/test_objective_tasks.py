"""The objective of clustered tasks, against general minimisers and finite differences."""

import numpy as np
import pytest
from scipy.optimize import minimize

from clustruct.design import as_design
from clustruct.losses import HuberLoss, LogisticLoss, SquaredLoss
from clustruct.objectives.tasks.blocks import solve
from clustruct.objectives.tasks.data import OwnRows, Part, SharedRows
from clustruct.results import Projection
from tests.losses.targets import NEWER, suited
from tests.objectives.task_problems import make

LOSSES = [SquaredLoss(), HuberLoss(0.5), LogisticLoss(), *NEWER]
LABELS = np.array([0, 1, 0, 1, 1])


def named(loss):
    return type(loss).__name__


def full_value(objective, W, V, labels):
    return objective.data.losses(W).sum() + objective.strengths.penalties(W, V, labels)


@pytest.mark.parametrize("loss", LOSSES, ids=named)
@pytest.mark.parametrize("within", [0.7, np.inf, 0.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_refit_is_the_minimum(loss, within, fit_intercept):
    objective = make(loss, within=within, fit_intercept=fit_intercept)
    point = objective.refit(LABELS, 2, 1e-12)
    K, width = objective.shape
    held = ~np.isfinite(objective.strengths.within)

    def value(z):
        W, V = z[: K * width].reshape(K, width), z[K * width :].reshape(2, width)
        return full_value(objective, np.where(held, V[LABELS], W), V, LABELS)

    found = minimize(value, np.zeros((K + 2) * width), options={"gtol": 1e-9})
    assert point.value == pytest.approx(full_value(objective, point.W, point.V, LABELS))
    assert point.value == pytest.approx(found.fun, rel=1e-8)
    assert point.value <= found.fun + 1e-10


@pytest.mark.parametrize("loss", LOSSES, ids=named)
def test_models_are_derivatives(loss):
    objective = make(loss, sizes=(3, 8))
    rng = np.random.default_rng(1)
    W, direction = rng.standard_normal((2, *objective.shape))
    model, h = objective.data.models(W), 1e-6
    up, down = (objective.data.losses(W + s * h * direction) for s in (1, -1))
    slopes = np.einsum("ti,ti->t", model.slopes(W), direction)
    np.testing.assert_allclose((up - down) / (2 * h), slopes, rtol=1e-5, atol=1e-9)
    ahead, behind = (
        objective.data.models(W + s * h * direction).slopes(W + s * h * direction) for s in (1, -1)
    )
    bent = np.einsum("tij,tj->ti", model.G, direction)
    np.testing.assert_allclose((ahead - behind) / (2 * h), bent, rtol=1e-4, atol=1e-7)


def test_costs_are_exact_for_squared_loss():
    objective = make()
    point = objective.refit(LABELS, 2, 1e-12)
    labels, W = objective.place(point.V, point.rows.mean(axis=0))
    costs = objective.costs(point)
    assert (costs.argmin(axis=1) == labels).all()
    # The cost of all tasks where they are, less what the mean costs, is the objective.
    mine = costs[np.arange(5), LABELS].sum()
    strengths, mean = objective.strengths, point.rows.mean(axis=0)
    drawn = strengths.pull * mean
    price = strengths.between * strengths.mean / (strengths.between - strengths.mean)
    assert mine + 0.5 * 5 * (price @ drawn**2) == pytest.approx(point.value)
    assert W.shape == objective.shape


@pytest.mark.parametrize("loss", LOSSES[1:], ids=named)
def test_costs_are_never_too_small(loss):
    objective = make(loss, sizes=(3, 8))
    point = objective.refit(LABELS, 2, 1e-12)
    rows = [np.tile(v, (5, 1)) for v in point.V]
    exact = []
    for v, tiled in zip(point.V, rows, strict=True):
        nearest = Projection(tiled, np.zeros(5, dtype=np.intp), v[None], 0.0, exact=False)
        W = objective.keep(nearest).W
        exact.append(objective.data.losses(W) + objective._prices(W, tiled))
    centroids = objective._centroid_costs(point.V, point.rows.mean(axis=0))
    assert (objective.costs(point) >= np.stack(exact, axis=1) + centroids - 1e-9).all()


@pytest.mark.parametrize("within", [0.7, np.inf])
def test_gains_of_moves(within):
    # Centroids are drawn to zero only, so that moves change nothing but the two groups.
    objective = make(n_tasks=6, mean=0.2, between=0.2, within=within, fit_intercept=False)
    labels = np.array([0, 0, 1, 1, 2, 2])
    point = objective.refit(labels, 3, 1e-12)
    tasks, groups = np.array([0, 2, 4, 5]), np.array([1, 2, 0, 3])
    gains = objective.move_gains(point, tasks, groups)
    for task, group, gain in zip(tasks, groups, gains, strict=True):
        moved = labels.copy()
        moved[task] = group
        after = objective.refit(moved, 4, 1e-12).value
        assert point.value - after == pytest.approx(gain, abs=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=named)
@pytest.mark.parametrize("within", [0.7, np.inf])
def test_gradient_and_curvature_of_the_profile(loss, within):
    objective = make(loss, within=within, sizes=(4, 9), seed=2)
    rng = np.random.default_rng(0)
    rows = rng.standard_normal(objective.shape)

    def at(rows):
        labels = np.arange(rows.shape[0])
        return objective.keep(Projection(rows, labels, rows, 0.0, exact=True))

    gradient = objective.gradient(at(rows))
    direction = rng.standard_normal(rows.shape)
    h = 1e-4
    slope = (at(rows + h * direction).value - at(rows - h * direction).value) / (2 * h)
    assert slope == pytest.approx(float(np.vdot(gradient, direction)), rel=1e-3, abs=1e-6)
    if isinstance(loss, SquaredLoss):
        best = np.vdot(gradient, gradient) / objective.bend(at(rows), gradient)
        values = {f: at(rows - f * best * gradient).value for f in (0.9, 1.0, 1.1)}
        assert values[1.0] < min(values[0.9], values[1.1])


@pytest.mark.parametrize("loss", LOSSES, ids=named)
def test_rows_in_common_or_not(loss):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((6, 3)), np.sign(rng.standard_normal((4, 6)))
    Y, shares = suited(loss, Y), np.full(24, 1 / 24)
    Y[0, 3], shares[3] = 0.0, 0.0  # a missing target
    design, means = as_design(X), X.mean(axis=0)
    common = Part(SharedRows(design, 4), Y.reshape(-1), shares, loss, means, True)
    own = Part(OwnRows.of([design] * 4), Y.reshape(-1), shares, loss, means, True)
    W = rng.standard_normal((4, 4))
    one, other = common.expand(W), own.expand(W)
    np.testing.assert_allclose(one.values, other.values)
    np.testing.assert_allclose(common.losses(W), other.values)
    np.testing.assert_allclose(one.G, other.G, atol=1e-14)
    np.testing.assert_allclose(one.h, other.h, atol=1e-14)
    taus = np.array([0.0, 0.5, 1.0])
    assert np.isfinite(common.dual_losses(W, taus)).all()
    np.testing.assert_allclose(common.dual_losses(W, taus), own.dual_losses(W, taus))


@pytest.mark.parametrize("loss", LOSSES, ids=named)
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_few_columns_and_many_have_the_same_models(loss, fit_intercept, monkeypatch):
    rng = np.random.default_rng(1)
    designs = [as_design(rng.standard_normal((n, 3))) for n in (1, 4, 7)]
    y, shares = suited(loss, np.sign(rng.standard_normal(12))), np.full(12, 1 / 12)
    means = rng.standard_normal(3) * fit_intercept
    W = rng.standard_normal((3, 3 + fit_intercept))

    def expanded():
        return Part(OwnRows.of(designs), y, shares, loss, means, fit_intercept).expand(W)

    few = expanded()
    monkeypatch.setattr("clustruct.objectives.tasks.data.NARROW", 0)
    many = expanded()
    for name in ("values", "G", "h"):
        np.testing.assert_allclose(getattr(few, name), getattr(many, name), atol=1e-13)


def test_singular_systems_have_the_shortest_solution():
    A = np.array([[[2.0, 0.0], [0.0, 0.0]]])
    np.testing.assert_allclose(solve(A, np.array([[4.0, 0.0]])), [[2.0, 0.0]], atol=1e-12)


def test_nothing_is_eliminated_twice():
    objective = make()
    other = objective.with_strengths(
        type(objective.strengths)(
            5 * objective.strengths.ridge,
            5 * objective.strengths.mean,
            10 * objective.strengths.between,
            5 * objective.strengths.within,
        )
    )
    W = np.zeros(objective.shape)
    again = objective.with_strengths(objective.strengths.scaled(5.0))
    assert other.profile(W) is not objective.profile(W)
    assert objective.with_strengths(objective.strengths.scaled(5.0)).profile(
        W
    ) is objective.profile(W)
    np.testing.assert_allclose(again.profile(W).H, objective.profile(W).H)
