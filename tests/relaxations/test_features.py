"""The relaxation of clustered features: psi, its gradient, both hulls, and the bound."""

import numpy as np
import pytest

from clustruct.relaxations import hull as relaxations
from clustruct.relaxations.features import factor_of
from clustruct.relaxations.hull import RelaxationSettings, dual_bound
from tests import brute_force as bf
from tests.objectives.problems import QUADRATIC, problem

every_kind = pytest.mark.parametrize("kind", QUADRATIC)
every_form = pytest.mark.parametrize("form", ["by_gram", "by_rows", "by_sparse_rows"])
LABELS = ((0, 1, 0, 1, 1, 0), (0, 0, 0, 0, 0, 0), (2, -1, 0, 0, -1, 1), (-1,) * 6)


def psi(factor, hull):
    return 0.5 * float(np.vdot(factor.target, hull.solve())) + factor.rest


def projector(labels):
    Z = bf.indicator(labels)
    return Z @ np.diag(1 / Z.sum(axis=0)) @ Z.T


@pytest.fixture(params=["dense", "iterative"])
def hull_kind(request, monkeypatch):
    """Both ways to solve, whatever the number of rows."""
    most = 10**9 if request.param == "dense" else -1
    monkeypatch.setattr(relaxations, "SETTINGS", RelaxationSettings(dense_rows=most))
    return request.param


@every_kind
@every_form
@pytest.mark.parametrize("intercept", [True, False])
def test_factor_is_a_root_of_the_problem(kind, form, intercept):
    made = problem(kind, intercept=intercept, shift=10.0)
    objective = getattr(made, form)
    factor = factor_of(objective)
    rng = np.random.default_rng(0)
    for _ in range(3):
        W = rng.standard_normal(objective.shape)
        ridge = 0.5 * made.alpha * np.square(W).sum()
        value = 0.5 * np.square(factor.target - factor.scores(W)).sum() + ridge + factor.rest
        assert value == pytest.approx(objective.at(W).value, rel=1e-9)
        B = rng.standard_normal(factor.target.shape)
        assert np.vdot(factor.scores(W), B) == pytest.approx(np.vdot(W, factor.adjoint(B)))
    for labels in LABELS:
        Z = bf.indicator(labels)
        sums = factor.group_sums(np.array(labels), Z.shape[1])
        np.testing.assert_allclose(sums, factor.scores(Z) if Z.size else sums, atol=1e-10)
        assert sums.shape == (len(factor.target), Z.shape[1])


@every_kind
@every_form
@pytest.mark.parametrize("intercept", [True, False])
def test_psi_at_a_grouping_is_the_value_of_its_refit(kind, form, intercept, hull_kind):
    made = problem(kind, intercept=intercept)
    objective = getattr(made, form)
    factor = factor_of(objective)
    for labels in LABELS:
        hull = factor.hull(np.array(labels), max(labels) + 1)
        assert (hull.matrix is None) == (hull_kind == "iterative")
        assert psi(factor, hull) == pytest.approx(made.least(labels)[0], rel=1e-7)


@every_form
def test_solve_is_that_of_the_full_matrices(form, hull_kind):
    made = problem("squared, two outputs")
    factor = factor_of(getattr(made, form))
    R = factor.scores(np.eye(6))
    first, second, third = (np.array(labels) for labels in LABELS[:3])
    hull = factor.hull(first, 2).toward(second, 1)(0.3).toward(third, 3)(0.6)
    M = 0.4 * (0.7 * projector(first) + 0.3 * projector(second)) + 0.6 * projector(third)
    expected = np.linalg.solve(np.eye(len(R)) + R @ M @ R.T / made.alpha, factor.target)
    np.testing.assert_allclose(hull.solve(), expected, atol=1e-6)
    np.testing.assert_allclose(hull.project(np.eye(6)), M, atol=1e-14)
    assert hull.shares.sum() == pytest.approx(1.0)


@every_kind
@every_form
def test_gradient_along_segments(kind, form, hull_kind):
    made = problem(kind)
    factor = factor_of(getattr(made, form))
    first, other = np.array(LABELS[0]), np.array(LABELS[2])
    toward = factor.hull(first, 2).toward(other, 3)
    share, h = 0.4, 1e-4
    P = factor.adjoint(toward(share).solve())
    way = projector(other) - projector(first)
    slope = -0.5 / made.alpha * np.vdot(P, way @ P)
    ahead, behind = (psi(factor, toward(share + s * h)) for s in (1, -1))
    assert (ahead - behind) / (2 * h) == pytest.approx(slope, rel=1e-4)
    # Convex along the segment.
    values = [psi(factor, toward(s)) for s in np.linspace(0, 1, 11)]
    assert (np.diff(values, 2) >= -1e-9).all()


@every_kind
@pytest.mark.parametrize("seed", range(4))
def test_any_b_gives_a_bound(kind, seed):
    made = problem(kind, seed, alpha=10.0 ** -(seed + 1), intercept=seed % 2 == 0)
    choices = bf.groupings(6, 2)
    least = made.best(choices)
    for form in (made.by_gram, made.by_rows):
        factor = factor_of(form)
        rng = np.random.default_rng(seed)
        solved = factor.hull(np.array(LABELS[0]), 2).solve()
        for B in (solved, 3 * solved, factor.target, rng.standard_normal(factor.target.shape)):
            explained = bf.most_explained(factor.adjoint(B), choices)
            assert dual_bound(factor, B, explained) <= least * (1 + 1e-10)
        assert dual_bound(factor, 0 * solved, 0.0) == factor.rest


def test_columns_in_small_units_are_part_of_the_root():
    made = problem("squared", alpha=1e-4, d=4)
    made.X *= [1e6, 1e6, 1e-1, 1e-1]
    made.target[:] = 10 * (made.X[:, 2:3] - made.X[:, 3:4])
    factor = factor_of(made.by_gram)
    least, W, _ = made.least((0, 1, 2, 3))
    value = 0.5 * np.square(factor.target - factor.scores(W)).sum() + factor.rest
    value += 0.5 * made.alpha * np.square(W).sum()
    assert value == pytest.approx(least, rel=1e-3)
    # No warning of ill-conditioned systems, and a bound that is one.
    B = factor.hull(np.array([0, 0, 1, 2]), 3).solve()
    choices = bf.groupings(4, 3)
    explained = bf.most_explained(factor.adjoint(B), choices)
    assert dual_bound(factor, B, explained) <= made.best(choices) * (1 + 1e-6)


def test_mixture_holds_many_groups():
    factor = factor_of(problem("squared").by_gram)
    # Labels are kept in few bytes; these numbers of groups are where one byte more is needed.
    for n_groups in (1, 127, 128, 129, 300):
        labels = np.arange(2 * n_groups) % n_groups
        grouping = factor.grouping(labels, n_groups)
        P = np.random.default_rng(0).standard_normal((2 * n_groups, 1))
        expected = 0.5 * (P[:n_groups] + P[n_groups:])
        projected = factor.project(grouping, P)
        np.testing.assert_allclose(projected, np.vstack([expected, expected]), rtol=1e-14)


def test_zero_targets_have_a_bound_of_zero():
    made = problem("squared")
    made.target[:] = 2.0
    for form in (made.by_gram, made.by_rows):
        factor = factor_of(form)
        B = factor.hull(np.array(LABELS[0]), 2).solve()
        assert dual_bound(factor, B, 0.0) <= 1e-25
