"""The quasi-Newton method for classes, against Newton's method by products with ``X``."""

import numpy as np
import pytest

from clustruct.design.local import DenseDesign
from clustruct.losses.logistic import LogisticLoss, MultinomialLoss
from clustruct.objectives import many_rows
from clustruct.objectives.features.objective import FeatureObjective
from clustruct.objectives.few_weights import class_rows
from clustruct.objectives.linear import Response
from clustruct.objectives.many_rows import ManyRows
from clustruct.objectives.newton import minimise


def problem(n, d, n_classes, *, fit_intercept=True, weighted=False, seed=0):
    """An objective of classes with some signal, and columns that are not centred."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + rng.standard_normal(d)
    scores = X @ rng.standard_normal((d, n_classes)) / np.sqrt(d) + rng.gumbel(size=(n, n_classes))
    codes = scores.argmax(axis=1)
    shares = rng.random(n) if weighted else np.ones(n)
    shares /= shares.sum()
    if n_classes == 2:
        target, loss, n_outputs = 2.0 * codes[:, None] - 1.0, LogisticLoss(), 1
    else:
        target, loss, n_outputs = codes.astype(np.intp), MultinomialLoss(), n_classes
    response = Response(target, loss, n_outputs, shares, fit_intercept)
    return FeatureObjective(DenseDesign(X), response, 0.01)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_minima_are_those_of_newtons_method(n_classes, fit_intercept, weighted):
    objective = problem(120, 7, n_classes, fit_intercept=fit_intercept, weighted=weighted)
    rows = class_rows(objective.design, objective.response)
    ridges = [np.full(7, alpha) for alpha in (0.3, 0.01)]
    for found, alpha in zip(rows.minima(ridges, 1e-10), (0.3, 0.01), strict=True):
        there = objective.with_alpha(alpha)
        wanted = minimise(there, np.zeros(there.shape), tol=1e-10)
        assert found.value == pytest.approx(wanted.value, rel=1e-12)
        np.testing.assert_allclose(found.W, wanted.W, atol=1e-7)
        np.testing.assert_allclose(found.intercept, wanted.intercept, atol=1e-7)
        np.testing.assert_allclose(found.slope, wanted.slope, atol=1e-9)


def test_ridges_may_differ_by_column():
    objective = problem(90, 5, 3)
    rows = class_rows(objective.design, objective.response)
    ridge = np.array([0.01, 0.1, 1.0, 0.02, 0.5])
    (found,) = rows.minima([ridge], 1e-10)
    slope = objective.design.adjoint(found.slope) + ridge[:, None] * found.W
    np.testing.assert_allclose(slope, 0.0, atol=1e-8)


def test_many_rows_begin_with_a_few_of_them(monkeypatch):
    objective = problem(400, 4, 3, weighted=True)
    plain = class_rows(objective.design, objective.response)
    (wanted,) = plain.minima([objective.penalties], 1e-10)
    monkeypatch.setattr(many_rows, "MODEL_ROWS", 50)
    thin = class_rows(objective.design, objective.response)
    passes = []
    begun = ManyRows._begin
    monkeypatch.setattr(
        ManyRows,
        "_begin",
        lambda self, *args: passes.append(self.rows.shape[0]) or begun(self, *args),
    )
    (found,) = thin.minima([objective.penalties], 1e-10)
    assert passes == [50, 400]
    np.testing.assert_allclose(found.W, wanted.W, atol=1e-7)


def test_a_far_start_does_no_harm():
    objective = problem(80, 4, 2)
    rows = class_rows(objective.design, objective.response)
    (wanted,) = rows.minima([objective.penalties], 1e-10)
    (found,) = rows.minima([objective.penalties], 1e-10, 1e4 * np.ones((4, 1)), np.array([1e5]))
    np.testing.assert_allclose(found.W, wanted.W, atol=1e-7)


def test_what_has_no_minimum_is_left_to_others():
    objective = problem(80, 4, 3)
    rows = class_rows(objective.design, objective.response)
    assert rows.minima([np.zeros(4)], 1e-6) is None
    codes = np.zeros(80, dtype=np.intp)  # one class of three
    shares = np.full(80, 1 / 80)
    assert ManyRows(rows.rows, codes, shares, 3, True).minima([np.ones(4)], 1e-6) is None
