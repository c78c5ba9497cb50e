"""The relaxation for clustered samples, against its formulas written out."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from clustruct.design import as_design
from clustruct.grouping.constraints import ScaledClustered
from clustruct.losses import SquaredLoss
from clustruct.objectives.linear import Response
from clustruct.objectives.samples.objective import SampleObjective
from clustruct.relaxations import hull
from clustruct.relaxations.hull import RelaxationSettings, dual_bound
from clustruct.relaxations.samples import SampleFactor, slope_gram

N, D = 7, 2


@pytest.fixture
def objective():
    rng = np.random.default_rng(3)
    shares = rng.random(N)
    response = Response(
        rng.standard_normal((N, 1)), SquaredLoss(), 1, shares / shares.sum(), fit_intercept=False
    )
    return SampleObjective(as_design(rng.standard_normal((N, D))), response, 0.05)


def groupings(n_groups):
    for labels in itertools.product(range(n_groups), repeat=N):
        yield np.array(labels, dtype=np.intp)


def test_psi_of_a_grouping_is_its_best_value(objective):
    factor = SampleFactor(objective)
    for labels in itertools.islice(groupings(2), 1, None, 5):
        B = factor.hull(labels, 2).solve()
        value = 0.5 * float(np.vdot(factor.target, B))
        assert value == pytest.approx(objective.fit_groups(labels, 1e-12).value)


def test_negative_gradient_is_made_of_the_rows(objective):
    factor = SampleFactor(objective)
    first, second = np.array([0, 1] * 3 + [0]), np.array([0] * 4 + [1] * 3)
    toward = factor.hull(first, 2).toward(second, 2)

    def psi(share):
        return 0.5 * float(np.vdot(factor.target, toward(share).solve()))

    P = factor.adjoint(toward(0.3).solve())
    A, C = factor.grouping(first, 2).toarray(), factor.grouping(second, 2).toarray()
    change = C @ C.T - A @ A.T
    slope = -np.trace(change @ P @ P.T) / (2 * factor.alpha)
    assert (psi(0.3 + 1e-6) - psi(0.3 - 1e-6)) / 2e-6 == pytest.approx(slope, rel=1e-4)


def test_bound_is_below_the_best_grouping_and_oracle_is_bounded(objective):
    factor = SampleFactor(objective)
    best = min(objective.fit_groups(labels, 1e-12).value for labels in groupings(2))
    constraint = ScaledClustered(2, objective.roots)
    rng = np.random.default_rng(0)
    for B in [factor.target, factor.hull(np.zeros(N, dtype=np.intp), 1).solve()] + [
        rng.standard_normal((N, 1)) for _ in range(5)
    ]:
        P = factor.adjoint(B)
        held = max(np.square(factor.grouping(labels, 2).T @ P).sum() for labels in groupings(2))
        assert held <= constraint.explained(P) * (1 + 1e-9)
        nearest = constraint.project(P)
        assert np.vdot(P, P) - nearest.sq_distance <= held * (1 + 1e-9)
        assert dual_bound(factor, B, constraint.explained(P)) <= best


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_iterative_and_dense_hulls_agree(objective, fit_intercept, monkeypatch):
    response = objective.response
    other = Response(response.target, response.loss, 1, response.shares, fit_intercept)
    factor = SampleFactor(SampleObjective(objective.design, other, 0.05))
    first, second = np.array([0, 1] * 3 + [0]), np.array([0] * 4 + [1] * 3)
    dense = factor.hull(first, 2).toward(second, 2)(0.4).solve()
    monkeypatch.setattr(hull, "SETTINGS", RelaxationSettings(dense_rows=0))
    iterative = factor.hull(first, 2).toward(second, 2)(0.4).solve()
    assert iterative == pytest.approx(dense, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("n_outputs", [1, 2, 3])
def test_gram_matrix_of_slopes_is_that_of_the_rows_written_out(n_outputs):
    rng = np.random.default_rng(n_outputs)
    X, shares = rng.standard_normal((N, D)), rng.random(N)
    shares[2] = 0.0
    shares /= shares.sum()
    target = rng.standard_normal((N, n_outputs))
    response = Response(target, SquaredLoss(), n_outputs, shares, fit_intercept=False)
    # Slopes are weighted by the shares, so that a row without weight has none.
    slope = shares[:, None] * rng.standard_normal((N, n_outputs))
    kept = shares > 0.0
    scaled = slope[kept] / np.sqrt(shares[kept])[:, None]
    P = np.hstack([scaled[:, [k]] * X[kept] for k in range(n_outputs)])
    found = slope_gram(SampleObjective(as_design(X), response, 0.05), SimpleNamespace(slope=slope))
    np.testing.assert_allclose(found, P.T @ P, rtol=1e-10, atol=1e-14)
