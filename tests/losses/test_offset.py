"""Losses of scores with an offset, against the losses themselves at shifted scores."""

import pickle

import numpy as np
import pytest

from clustruct.arrays import to_host
from clustruct.losses import best_intercept, join_offset, with_offset
from clustruct.losses.intercept import at_once
from tests.losses.test_losses import directions, draw, every_loss
from tests.losses.users import Bare, Poisson


def joined(case, n=50, seed=0):
    """A loss and one with an offset, targets for each, scores and offset."""
    loss, target, scores, _ = draw(case, n, seed)
    offset = np.random.default_rng(seed + 1).standard_normal(scores.shape)
    return loss, with_offset(loss), target, join_offset(loss, target, offset), scores, offset


@every_loss
def test_value_and_derivatives_are_those_at_shifted_scores(case):
    loss, shifted, y, both, z, o = joined(case)
    way = directions(z)
    np.testing.assert_allclose(shifted.value(both, z), loss.value(y, z + o))
    np.testing.assert_allclose(shifted.gradient(both, z), loss.gradient(y, z + o), atol=1e-14)
    np.testing.assert_allclose(
        shifted.hessian_product(both, z, way), loss.hessian_product(y, z + o, way)
    )
    np.testing.assert_allclose(shifted.deviance(both, z), loss.deviance(y, z + o))


@every_loss
def test_the_conjugate_obeys_fenchel_and_young(case):
    _, shifted, _, both, z, _ = joined(case)
    slope = shifted.gradient(both, z)
    tight = (slope * z).sum(axis=1) - shifted.value(both, z)
    np.testing.assert_allclose(shifted.conjugate(both, slope), tight, atol=1e-9)
    other = z + np.random.default_rng(7).standard_normal(z.shape)
    below = (slope * other).sum(axis=1) - shifted.value(both, other)
    assert (below <= shifted.conjugate(both, slope) + 1e-9).all()


@every_loss
def test_scores_of_models_see_the_offset(case):
    loss, shifted, y, both, z, o = joined(case)
    for scoring in ("neg_mean_squared_error", "neg_log_loss", "accuracy"):
        for which in ("measure", "class_measure"):
            plain, mine = getattr(loss, which)(scoring), getattr(shifted, which)(scoring)
            if mine is not None and (loss.takes_numbers or which == "class_measure"):
                np.testing.assert_allclose(mine(both, z), plain(y, z + o))
    if loss.quadratic:
        assert shifted.class_measure("accuracy") is None  # a shifted target hides the class


@pytest.mark.parametrize("loss", [Poisson(), Bare()])
def test_losses_of_users(loss):
    rng = np.random.default_rng(0)
    y, z, o = rng.poisson(2.0, (30, 1)) * 1.0, rng.standard_normal((30, 1)), np.ones((30, 1))
    shifted, both = with_offset(loss), join_offset(loss, y, o)
    np.testing.assert_allclose(shifted.value(both, z), loss.value(y, z + 1.0))
    np.testing.assert_allclose(shifted.residuals(both, z), y - z - 1.0)
    assert shifted.has_conjugate == loss.has_conjugate
    assert shifted.scoring == loss.scoring
    shares = np.full(30, 1 / 30)
    # At the best constant the derivative of the mean loss vanishes, and its curvature is taken.
    weights = np.exp(o[:, 0])
    if loss.scoring.endswith("poisson_deviance"):
        rate = y.sum() / weights.sum()  # sum of exp(b + o) equals that of y
        assert shifted.start_curvature(both, shares) == pytest.approx((rate * weights).mean())


def test_a_closed_form_of_the_intercept_is_taken_with_the_offset():
    class Closed(Poisson):
        def closed_intercept(self, target, scores, shares, fold=at_once):
            sums = fold(lambda y, z, s: (s @ y, s @ np.exp(z)), target, scores, shares)
            return np.log(sums[0]) - np.log(sums[1])

    rng = np.random.default_rng(0)
    y, z, o = rng.poisson(2.0, (30, 1)) * 1.0, rng.standard_normal((30, 1)), rng.random((30, 1))
    loss, shares = with_offset(Closed()), np.full(30, 1 / 30)
    both = join_offset(Closed(), y, o)
    found = loss.closed_intercept(both, z, shares)
    np.testing.assert_allclose(shares @ loss.gradient(both, z + found), 0.0, atol=1e-14)
    np.testing.assert_allclose(found, best_intercept(loss, both, z, shares, np.zeros(1)))
    assert with_offset(Bare()).closed_intercept(both, z, shares) is None


def test_predictions_are_mixed_with_the_offset_added():
    class Logit(Poisson):
        """A link that is not additive in the offset."""

        def predictions(self, scores):
            return 1.0 / (1.0 + np.exp(-scores))

        def link(self, predictions):
            return np.log(predictions / (1.0 - predictions))

    loss, rng = Logit(), np.random.default_rng(0)
    scores, o, weights = rng.standard_normal((20, 3, 1)), rng.standard_normal((20, 1)), np.ones(3)
    y, weights = np.ones((20, 1)), np.tile(weights / 3, (20, 1))
    mean = loss.predictions(scores + o[:, None]).mean(axis=1)
    found = with_offset(loss).mixed_value(join_offset(loss, y, o), weights, scores)
    np.testing.assert_allclose(found, loss.value(y, loss.link(mean)))


@every_loss
def test_copies_and_other_libraries(case):
    strict = pytest.importorskip("array_api_strict")
    _, shifted, _, both, z, _ = joined(case)
    again = pickle.loads(pickle.dumps(shifted))
    np.testing.assert_array_equal(again.value(both, z), shifted.value(both, z))
    there = shifted.gradient(strict.asarray(both), strict.asarray(z))
    np.testing.assert_allclose(to_host(there), shifted.gradient(both, z), atol=1e-14)


def test_classes_are_numbered_anew_with_their_offsets():
    loss, shifted, y, both, z, o = joined("multinomial")
    kept = np.flatnonzero(y != 1)
    present, codes = np.array([0, 2, 3]), np.array([0, 0, 1, 2])
    fewer = shifted.recoded(both[kept], codes, present)
    np.testing.assert_array_equal(shifted.codes(both), y)
    expected = loss.value(codes[y[kept]], (z + o)[kept][:, present])
    np.testing.assert_allclose(shifted.value(fewer, z[kept][:, present]), expected)
