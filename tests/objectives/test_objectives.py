"""Objectives against finite differences, other solvers and each other."""

import numpy as np
import pytest
from scipy import optimize
from sklearn.linear_model import LogisticRegression, Ridge

from clustruct.design import as_design
from clustruct.grouping.constraints import BlockClustered, Clustered, Free, SparseClustered
from clustruct.losses import HuberLoss
from clustruct.objectives.features import objective as features
from clustruct.objectives.features.objective import FeatureObjective
from clustruct.objectives.linear import Response
from tests import brute_force as bf
from tests.objectives.problems import KINDS, QUADRATIC, problem

every_kind = pytest.mark.parametrize("kind", KINDS)
with_and_without_intercept = pytest.mark.parametrize("intercept", [True, False])


def weights(made, seed=1, scale=0.5):
    rng = np.random.default_rng(seed)
    return scale * rng.standard_normal((made.X.shape[1], made.n_outputs))


def around(form, W):
    return form.around(W, form.at(W))


@every_kind
@with_and_without_intercept
def test_value_is_the_documented_one_at_the_best_intercept(kind, intercept):
    made = problem(kind, intercept=intercept)
    W = weights(made)
    for form in made.forms:
        point = form.at(W)
        assert point.value == pytest.approx(made.value(W, point.intercept), rel=1e-12)
        if intercept:
            found = optimize.minimize(lambda b: made.value(W, b), point.intercept, tol=1e-12)
            assert point.value <= found.fun + 1e-12
        else:
            assert not point.intercept.any()


@every_kind
@with_and_without_intercept
def test_gradient_is_the_slope_of_the_value(kind, intercept):
    made = problem(kind, intercept=intercept)
    W, h = weights(made), 1e-5
    for form in made.forms:
        gradient = form.gradient(form.at(W))
        expected = np.empty_like(W)
        for place in np.ndindex(W.shape):
            step = np.zeros_like(W)
            step[place] = h
            expected[place] = (form.at(W + step).value - form.at(W - step).value) / (2 * h)
        np.testing.assert_allclose(gradient, expected, atol=2e-6 if "huber" in kind else 1e-8)
        ridge = made.alpha * W
        np.testing.assert_allclose(form.loss_gradient(form.at(W)) + ridge, gradient, atol=1e-15)


@every_kind
@with_and_without_intercept
def test_hessian_is_the_slope_of_the_gradient(kind, intercept):
    made = problem(kind, intercept=intercept)
    W, way, h = weights(made), weights(made, 2, 1.0), 1e-6
    form = made.by_rows
    product = around(form, W).product(way)
    assert form.bend(form.at(W), way) == pytest.approx(np.vdot(way, product), rel=1e-9)
    ahead, behind = (form.gradient(form.at(W + s * h * way)) for s in (1, -1))
    np.testing.assert_allclose(product, (ahead - behind) / (2 * h), atol=1e-6)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind[0] in "shlm"])  # with a bound
@with_and_without_intercept
def test_curvatures_bound_the_diagonal(kind, intercept):
    made = problem(kind, intercept=intercept)
    for form in (made.by_rows, made.by_sparse_rows):
        hessian = around(form, weights(made)).product
        units = np.eye(made.X.shape[1])
        for output in range(made.n_outputs):
            for j, unit in enumerate(units):
                way = np.zeros((made.X.shape[1], made.n_outputs))
                way[:, output] = unit
                assert np.vdot(way, hessian(way)) <= form.curvatures()[j] * (1 + 1e-12)


@pytest.mark.parametrize("kind", QUADRATIC)
@with_and_without_intercept
@pytest.mark.parametrize("alpha", [0.0, 1e-2])
def test_gram_form_equals_loss_form(kind, intercept, alpha):
    made = problem(kind, intercept=intercept, alpha=alpha, shift=100.0)
    W = weights(made)
    by_rows, by_gram = made.by_rows, made.by_gram
    a, b = by_rows.at(W), by_gram.at(W)
    assert a.value == pytest.approx(b.value, rel=1e-10)
    np.testing.assert_allclose(a.intercept, b.intercept, rtol=1e-10)
    np.testing.assert_allclose(by_rows.gradient(a), by_gram.gradient(b), rtol=1e-8, atol=1e-8)
    way = W[::-1]
    bent = float(np.vdot(way, around(by_rows, W).product(way)))
    assert by_gram.bend(b, way) == pytest.approx(bent, rel=1e-8)
    explained = float(np.square(by_gram.loss_gradient(b)).sum())
    assert by_gram.dual_bound(b, explained) >= by_rows.dual_bound(a, explained) - 1e-10


# ---- Minima.


@every_kind
@with_and_without_intercept
def test_minimum_has_no_slope_and_is_that_of_scipy(kind, intercept):
    made = problem(kind, intercept=intercept)
    least, W, b = made.least(tuple(range(made.X.shape[1])))
    for form in made.forms:
        point = form.minimum(1e-10)
        assert np.abs(form.gradient(point)).max() <= 1e-7
        assert point.value == pytest.approx(least, rel=1e-9)
        np.testing.assert_allclose(point.W, W, atol=1e-5)
        if kind != "multinomial":
            np.testing.assert_allclose(point.intercept, b, atol=1e-5)


@pytest.mark.parametrize("far", [1e3, 1e6, 1e9])
def test_minimum_of_a_nearly_linear_loss_is_reached_however_far_it_is(far):
    # At zero weights the only curvature is that of the first sample.
    rng = np.random.default_rng(0)
    X, shares = rng.standard_normal((27, 2)), np.full(27, 1 / 27)
    target = far * X.sum(axis=1, keepdims=True) + rng.standard_normal((27, 1))
    target[0] = 0.5
    response = Response(target, HuberLoss(1.0), 1, shares, fit_intercept=False)
    form = FeatureObjective(as_design(X), response, 0.0)
    point = form.minimum(1e-9)
    assert np.abs(form.gradient(point)).max() < 1e-8 + 1e-15 * far
    assert point.value <= form.at(np.full((2, 1), far)).value


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("alpha", [1e-4, 1e-1])
def test_minimum_is_ridge(intercept, alpha):
    made = problem("squared, two outputs", intercept=intercept, alpha=alpha)
    ridge = Ridge(alpha, fit_intercept=intercept).fit(
        made.X, made.target, sample_weight=made.shares
    )
    for form in made.forms:
        point = form.minimum(1e-12)
        np.testing.assert_allclose(point.W, ridge.coef_.T, atol=1e-9)
        np.testing.assert_allclose(point.intercept, ridge.intercept_, atol=1e-9)


@pytest.mark.parametrize("kind", ["logistic", "multinomial"])
@pytest.mark.parametrize("intercept", [True, False])
def test_minimum_is_logistic_regression(kind, intercept):
    made = problem(kind, intercept=intercept, weighted=False, n=60)
    y = made.target[:, 0] if kind == "logistic" else made.target
    plain = LogisticRegression(
        C=1 / (60 * made.alpha), fit_intercept=intercept, solver="newton-cg", tol=1e-10
    ).fit(made.X, y)
    for form in made.forms:
        point = form.minimum(1e-10)
        np.testing.assert_allclose(point.W, plain.coef_.T, atol=1e-6)


@every_kind
@with_and_without_intercept
@pytest.mark.parametrize("applied", [False, True], ids=["formed", "applied"])
def test_refit_is_a_fit_of_group_sums(kind, intercept, applied, monkeypatch):
    if applied:
        monkeypatch.setattr(features, "SMALL", 0)
    made = problem(kind, intercept=intercept)
    for labels in ((0, 1, 0, 1, 1, 0), (0, 0, 0, 0, 0, 0), (1, -1, 0, 0, -1, 2)):
        least, W, _ = made.least(labels)
        n_groups = max(labels) + 1
        for form in made.forms:
            point = form.refit(np.array(labels), n_groups, 1e-10)
            assert point.value == pytest.approx(least, rel=1e-9)
            np.testing.assert_allclose(point.W, W, atol=1e-5)
            # What it returns is the same as what is found at these weights.
            again = form.at(point.W)
            assert point.value == pytest.approx(again.value, rel=1e-10)
            np.testing.assert_allclose(form.gradient(point), form.gradient(again), atol=1e-8)
            started = form.refit(
                np.array(labels), n_groups, 1e-10, start=np.ones((n_groups, made.n_outputs))
            )
            assert started.value == pytest.approx(least, rel=1e-9)


@every_kind
@pytest.mark.parametrize("applied", [False, True], ids=["formed", "applied"])
def test_refit_of_no_group(kind, applied, monkeypatch):
    if applied:
        monkeypatch.setattr(features, "SMALL", -1)
    made = problem(kind)
    W = np.zeros((made.X.shape[1], made.n_outputs))
    for form in made.forms:
        point = form.refit(np.full(made.X.shape[1], -1), 0, 1e-10)
        np.testing.assert_array_equal(point.W, W)
        assert point.value == pytest.approx(form.at(W).value, rel=1e-12)
        np.testing.assert_allclose(point.intercept, form.at(W).intercept, atol=1e-9)


@every_kind
@pytest.mark.parametrize("alpha", [0.0, 1e-2])
def test_zero_and_duplicate_columns(kind, alpha):
    made = problem(kind, alpha=alpha, n=60)
    made.X[:, 1] = 0.0
    made.X[:, 3] = made.X[:, 2]
    for form in made.forms:
        point = form.minimum(1e-9)
        assert np.isfinite(point.W).all()
        assert np.abs(form.gradient(point)).max() <= 1e-6
        if alpha or kind not in ("logistic", "multinomial"):
            np.testing.assert_allclose(point.W[1], 0.0, atol=1e-9)
            np.testing.assert_allclose(point.W[2], point.W[3], atol=1e-5)
        refitted = form.refit(np.array([0, 1, 2, 3, 4, 5]), 6, 1e-9)
        assert refitted.value == pytest.approx(point.value, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind[0] in "sh"])
def test_constant_targets_leave_no_weights(kind):
    made = problem(kind)
    made.target[:] = 4.0
    for form in made.forms:
        for point in (
            form.minimum(1e-10),
            form.minimum(1e-10, np.ones((made.X.shape[1], made.n_outputs))),
            form.refit(np.zeros(6, dtype=int), 1, 1e-10, start=np.ones((1, made.n_outputs))),
        ):
            np.testing.assert_allclose(point.W, 0.0, atol=1e-9)
            np.testing.assert_allclose(point.intercept, 4.0, rtol=1e-9)
            assert point.value <= 1e-18


def test_columns_in_small_units_are_not_taken_for_dependent_ones():
    # The scales are 14 decades apart, and the targets depend on the small columns alone.
    made = problem("squared", alpha=1e-4, d=4)
    made.X *= [1e6, 1e6, 1e-1, 1e-1]
    made.target[:] = 10 * (made.X[:, 2:3] - made.X[:, 3:4])
    labels = (0, 1, 2, 3)
    least, W, _ = made.least(labels)
    for point in (made.by_gram.minimum(0.0), made.by_gram.refit(np.array(labels), 4, 0.0)):
        assert point.value == pytest.approx(least, rel=1e-6)
        np.testing.assert_allclose(point.W, W, rtol=1e-6, atol=1e-9)


def test_single_precision_is_as_good_as_double_in_the_gram_form():
    made = problem("squared", n=30, d=50, alpha=1e-5, shift=100.0)
    made.X = made.X.astype(np.float32)
    single = made.by_gram
    made.X = made.X.astype(float)
    double = made.by_gram
    assert single.minimum(0.0).value == pytest.approx(double.minimum(0.0).value, rel=1e-12)
    W = single.minimum(0.0).W
    assert single.at(W).value == pytest.approx(made.by_rows.at(W).value, rel=1e-6)


# ---- Lower bounds.


@pytest.mark.parametrize(
    ("kind", "seed"),
    [(kind, seed) for kind in KINDS for seed in range(3 if kind in QUADRATIC else 1)],
)
@with_and_without_intercept
def test_dual_bound_is_never_above_the_best_of_all_groupings(kind, intercept, seed):
    d = 5 if kind in QUADRATIC else 4
    made = problem(kind, seed, d=d, intercept=intercept, alpha=10.0 ** -(1 + seed))
    blocks = np.array([0, 0, 1, 1, -1])[:d]
    for constraint, choices in (
        (Clustered(2), bf.groupings(d, 2)),
        (SparseClustered(1, 2), bf.sparse_groupings(d, 1, 2)),
        (SparseClustered(None, 2), bf.sparse_groupings(d, None, 2)),
        (BlockClustered(blocks, 2), list(bf.block_groupings(blocks, 2))),
        (Free(), [tuple(range(d))]),
    ):
        least = made.best(choices)
        for form in made.forms:
            for point in (
                form.minimum(1e-8),
                form.at(constraint.project(form.minimum(1e-3).W).point),
                form.at(weights(made, seed)),
                form.at(np.zeros((d, made.n_outputs))),
            ):
                explained = constraint.explained(form.loss_gradient(point))
                bound = form.dual_bound(point, explained)
                assert 0.0 <= bound <= least * (1 + 1e-9)
            if isinstance(constraint, Free):  # without constraint the bound is sharp
                point = form.minimum(1e-10)
                explained = constraint.explained(form.loss_gradient(point))
                assert form.dual_bound(point, explained) == pytest.approx(least, rel=1e-6)


@every_kind
def test_without_ridge_the_bound_is_trivial_or_that_of_least_squares(kind):
    made = problem(kind, alpha=0.0)
    least = made.least(tuple(range(6)))[0]
    for form in made.forms:
        point = form.minimum(1e-9)
        bound = form.dual_bound(point, 1.0)
        assert 0.0 <= bound <= least * (1 + 1e-9)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in QUADRATIC])
def test_rows_without_weight_have_no_say_in_the_bound(kind):
    made = problem(kind)
    made.shares[:3] = 0.0
    made.shares /= made.shares.sum()
    point = made.by_rows.minimum(1e-9)
    whole = made.by_rows.dual_bound(point, 0.1)
    made.X, made.target, made.shares = made.X[3:], made.target[3:], made.shares[3:]
    made.response = type(made.response)(
        made.target, made.response.loss, made.n_outputs, made.shares, True
    )
    rest = made.by_rows.dual_bound(made.by_rows.at(point.W), 0.1)
    assert whole == pytest.approx(rest, rel=1e-6)


def test_bounds_hold_their_scale():
    # Squares of these targets are in the range of doubles, squares of their squares are not.
    for scale in (1e-120, 1e120):
        made = problem("squared")
        made.target *= scale
        for constraint in (Free(), Clustered(2)):
            point = made.by_gram.minimum(0.0)
            explained = constraint.explained(made.by_gram.loss_gradient(point))
            bound = made.by_gram.dual_bound(point, explained)
            assert 0.0 < bound <= point.value * (1 + 1e-9) or isinstance(constraint, Clustered)
            assert np.isfinite(bound)
