"""Losses that are read from pieces, against the same losses by products with the whole matrix."""

import numpy as np
import pytest

from clustruct.design.local import DenseDesign
from clustruct.losses import HuberLoss, LogisticLoss, MultinomialLoss, SquaredLoss
from clustruct.objectives import streamed
from clustruct.objectives.linear import LinearObjective, Response
from clustruct.objectives.newton import minimise
from tests.losses.targets import NEWER, suited

da = pytest.importorskip("dask.array")
from clustruct.design.partitioned.blocks import block_design  # noqa: E402

N, D = 120, 7
LOSSES = {
    "squared": (SquaredLoss(), 2),
    "huber": (HuberLoss(1.0), 1),
    "logistic": (LogisticLoss(), 1),
    "multinomial": (MultinomialLoss(), 3),
    **{loss.name: (loss, 1) for loss in NEWER},
}


@pytest.fixture(params=LOSSES)
def loss(request):
    return request.param


@pytest.fixture(params=[True, False], ids=["intercept", "none"])
def fit_intercept(request):
    return request.param


def both(name, fit_intercept):
    """The same problem from memory and from pieces."""
    loss, n_outputs = LOSSES[name]
    rng = np.random.default_rng(0)
    X = 2.0 + rng.standard_normal((N, D))
    scores = X @ rng.standard_normal((D, n_outputs)) + rng.standard_normal((N, n_outputs))
    target = {"logistic": np.sign(scores - 1.0), "multinomial": scores.argmax(axis=1)}
    y, shares = target.get(name, suited(loss, 0.3 * scores)), rng.dirichlet(np.ones(N))
    penalties = np.full(D, 0.01)
    pieces = block_design(da.from_array(X, chunks=(50, D)))
    placed = Response(pieces.place(y), loss, n_outputs, pieces.place(shares), fit_intercept)
    return (
        LinearObjective(
            DenseDesign(X), Response(y, loss, n_outputs, shares, fit_intercept), penalties
        ),
        streamed.ReadingObjective(pieces, placed, penalties),
    )


@pytest.mark.parametrize("formed", [True, False])
def test_a_pass_tells_what_products_do(loss, fit_intercept, formed, monkeypatch):
    if not formed:
        monkeypatch.setattr(streamed, "FORMED", 0)
    whole, pieces = both(loss, fit_intercept)
    W, move = np.random.default_rng(1).standard_normal((2, *whole.shape)) / 4.0
    near = whole.at(np.zeros_like(W))
    expected, found = whole.around(W, near), pieces.around(W, near)  # not the best intercept
    assert found.value == pytest.approx(expected.value, rel=1e-13)
    np.testing.assert_allclose(found.gradient, expected.gradient, atol=1e-12)
    np.testing.assert_allclose(found.product(move), expected.product(move), atol=1e-12)
    ahead, there = (expansion.along(move) for expansion in (expected, found))
    assert there.slope == pytest.approx(ahead.slope, rel=1e-11)
    np.testing.assert_allclose(there.at(0.5).gradient, ahead.at(0.5).gradient, atol=1e-12)
    point, read = expected.settled(), found.settled()
    assert read.value == pytest.approx(point.value, rel=1e-13)
    np.testing.assert_allclose(read.intercept, point.intercept, atol=1e-9)


def test_models_are_right_to_second_order(loss, fit_intercept):
    # With the intercept where the model wants it, whatever it was.
    whole, _ = both(loss, fit_intercept)
    W, move = np.random.default_rng(1).standard_normal((2, *whole.shape)) / 4.0
    here = whole.around(W, whole.at(np.zeros_like(W)))
    line, step = here.along(move), 1e-4
    change = (line.at(step).value - line.at(-step).value) / (2 * step)
    assert change == pytest.approx(line.slope, rel=1e-5)
    if loss != "huber":  # whose second derivative jumps
        settled = whole.at(W)
        around = whole.around(W, settled)
        ahead, behind = (whole.gradient(whole.at(W + s * step * move)) for s in (1, -1))
        np.testing.assert_allclose(around.gradient, whole.gradient(settled), atol=1e-9)
        # Intercepts are known to about 1e-9, which the step magnifies.
        np.testing.assert_allclose(
            around.product(move), (ahead - behind) / (2 * step), rtol=1e-4, atol=5e-6
        )


def test_minima_agree_for_a_pass_a_step(loss, fit_intercept):
    whole, pieces = both(loss, fit_intercept)
    expected = whole.minimum(1e-10)
    pieces.curvatures()
    before = pieces.design.n_passes
    steps = []
    read = pieces.read
    pieces.read = lambda *args: steps.append(args) or read(*args)
    found = pieces.minimum(1e-10)
    np.testing.assert_allclose(found.W, expected.W, atol=1e-10)
    assert found.value == pytest.approx(expected.value, rel=1e-13)
    if found.W.shape[1] == 1:
        assert pieces.design.n_passes - before == len(steps)


def test_another_ridge_begins_without_a_pass(fit_intercept):
    _, pieces = both("logistic", fit_intercept)
    found = pieces.minimum(1e-10)
    before = pieces.design.n_passes
    again = minimise(pieces, found.W, found, tol=1e-10)
    np.testing.assert_array_equal(again.W, found.W)
    assert pieces.design.n_passes == before


def test_flat_losses_let_the_intercept_follow():
    # So far off that no row bends the loss: the derivatives tell nothing of the intercept.
    rng = np.random.default_rng(0)
    X, shares = rng.standard_normal((N, 2)), np.full(N, 1.0 / N)
    y = 1e4 + X @ np.ones((2, 1)) + rng.standard_normal((N, 1))
    form = LinearObjective(
        DenseDesign(X), Response(y, HuberLoss(1.0), 1, shares, True), np.full(2, 1e-3)
    )
    start = np.full((2, 1), 5e3)
    found = minimise(form, start, tol=1e-10)
    np.testing.assert_allclose(found.W, form.minimum(1e-10).W, atol=1e-8)
    assert found.intercept == pytest.approx(1e4, abs=1.0)
