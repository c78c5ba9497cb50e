"""Losses against finite differences, their definitions and a general minimiser."""

from copy import copy

import numpy as np
import pytest
from scipy import optimize

from clustruct.losses import (
    GammaLoss,
    HuberLoss,
    LogisticLoss,
    MultinomialLoss,
    PoissonLoss,
    QuantileLoss,
    SquaredLoss,
    TweedieLoss,
    best_intercept,
    least_mean,
    mean_hessian,
)
from clustruct.losses.base import Loss
from tests import brute_force

# Loss, number of outputs, targets, and the same loss written independently.
CASES = {
    "squared": (SquaredLoss(), 1, "real", brute_force.squared),
    "squared, two outputs": (SquaredLoss(), 2, "real", brute_force.squared),
    "huber": (HuberLoss(0.7), 1, "real", brute_force.huber(0.7)),
    "huber, two outputs": (HuberLoss(1.5), 2, "real", brute_force.huber(1.5)),
    "logistic": (LogisticLoss(), 1, "sign", brute_force.logistic),
    "multinomial": (MultinomialLoss(), 4, "code", brute_force.multinomial),
    "poisson": (PoissonLoss(), 1, "count", brute_force.tweedie(1.0)),
    "poisson, two outputs": (PoissonLoss(), 2, "count", brute_force.tweedie(1.0)),
    "gamma": (GammaLoss(), 1, "amount", brute_force.tweedie(2.0)),
    "tweedie, nearly counts": (TweedieLoss(1.1), 1, "claims", brute_force.tweedie(1.1)),
    "tweedie": (TweedieLoss(1.5), 2, "claims", brute_force.tweedie(1.5)),
    "tweedie, nearly gamma": (TweedieLoss(1.95), 1, "claims", brute_force.tweedie(1.95)),
    "quantile": (
        QuantileLoss(0.3, width=0.4, curvature=0.25 / 0.4),
        1,
        "real",
        brute_force.quantile(0.3, 0.4),
    ),
    "quantile, two outputs": (
        QuantileLoss(0.9, width=0.1, curvature=2.5),
        2,
        "real",
        brute_force.quantile(0.9, 0.1),
    ),
}
LOG_LINK = [case for case, (loss, *_) in CASES.items() if not loss.has_identity_link]
BOUNDED = [case for case in CASES if case not in LOG_LINK]
every_loss = pytest.mark.parametrize("case", CASES)


def draw(case, n, seed, scale=2.0):
    """Loss, targets, scores and the reference."""
    loss, n_outputs, kind, reference = CASES[case]
    rng = np.random.default_rng(seed)
    target = {
        "real": lambda: rng.standard_normal((n, n_outputs)),
        "sign": lambda: rng.choice([-1.0, 1.0], (n, 1)),
        "code": lambda: rng.integers(0, n_outputs, n),
        "count": lambda: rng.poisson(1.5, (n, n_outputs)).astype(float),
        "amount": lambda: rng.gamma(1.0, 2.0, (n, n_outputs)),
        "claims": lambda: rng.gamma(1.0, 2.0, (n, n_outputs)) * rng.integers(0, 2, (n, n_outputs)),
    }[kind]()
    if case in LOG_LINK:
        scale = scale / 4  # scores are logarithms
    return loss, target, scale * rng.standard_normal((n, n_outputs)), reference


def directions(scores, seed=1):
    """Random directions of unit length, one a row."""
    rows = np.random.default_rng(seed).standard_normal(scores.shape)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@every_loss
def test_value_and_gradient_are_those_of_the_definition(case):
    loss, target, scores, reference = draw(case, 200, 0)
    values, slopes = reference(target, scores)
    np.testing.assert_allclose(loss.value(target, scores), values, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(loss.gradient(target, scores), slopes, rtol=1e-12, atol=1e-14)
    assert loss.value(target, scores).shape == (200,)


@every_loss
def test_gradient_is_the_slope_of_the_value(case):
    loss, target, scores, _ = draw(case, 200, 1)
    way, h = directions(scores), 1e-5
    ahead, behind = (loss.value(target, scores + s * h * way) for s in (1, -1))
    slope = (loss.gradient(target, scores) * way).sum(axis=1)
    np.testing.assert_allclose((ahead - behind) / (2 * h), slope, atol=1e-8 + h)
    # The bound h is for the kinks of the Huber loss's slope: all but a few are far closer.
    assert np.median(np.abs((ahead - behind) / (2 * h) - slope)) < 1e-9


@every_loss
def test_losses_that_say_so_are_not_negative(case):
    for scale in (1e-3, 2.0, 1e3):
        loss, target, scores, _ = draw(case, 500, 7, scale)
        assert loss.nonnegative == bool(loss.value(target, scores).min() >= 0.0)
        # The conjugate knows the least loss as well: what is claimed and what is proved agree.
        shares = np.full(500, 1 / 500)
        same = copy(loss)
        unsaid = type("Unsaid", (type(loss),), {"nonnegative": False})
        object.__setattr__(same, "__class__", unsaid)
        assert least_mean(loss, target, scores.shape[1], shares) == 0.0
        least = 0.0
        if isinstance(loss, QuantileLoss):  # smoothing lifts the loss at the target above zero
            shift = loss.width * np.log(loss.level / (1.0 - loss.level))
            least = shares @ loss.value(target, target + shift)
        assert least_mean(same, target, scores.shape[1], shares) == pytest.approx(least, abs=1e-15)


@every_loss
def test_hessian_product_is_the_slope_of_the_gradient(case):
    loss, target, scores, _ = draw(case, 200, 2)
    way, h = directions(scores), 1e-5
    ahead, behind = (loss.gradient(target, scores + s * h * way) for s in (1, -1))
    product = loss.hessian_product(target, scores, way)
    off = np.abs((ahead - behind) / (2 * h) - product).max(axis=1)
    assert np.count_nonzero(off > 1e-8) <= (2 if isinstance(loss, HuberLoss) else 0)


@every_loss
def test_hessian_is_symmetric_and_between_zero_and_the_curvature(case):
    loss, target, scores, _ = draw(case, 300, 3, scale=1.0)
    a, b = directions(scores, 1), directions(scores, 2)
    left = (a * loss.hessian_product(target, scores, b)).sum(axis=1)
    right = (b * loss.hessian_product(target, scores, a)).sum(axis=1)
    np.testing.assert_allclose(left, right, atol=1e-14)
    bend = (a * loss.hessian_product(target, scores, a)).sum(axis=1)
    assert bend.min() >= -1e-15
    if case in BOUNDED:
        assert bend.max() <= loss.curvature + 1e-15


def test_curvatures_are_attained():
    assert (
        LogisticLoss().hessian_product(np.ones((1, 1)), np.zeros((1, 1)), np.ones((1, 1))) == 0.25
    )
    way = np.array([[1.0, -1.0]]) / np.sqrt(2)
    bend = MultinomialLoss().hessian_product(np.array([0]), np.zeros((1, 2)), way)
    assert float((bend * way).sum()) == pytest.approx(0.5)


@every_loss
def test_convex(case):
    loss, target, scores, _ = draw(case, 300, 4)
    other = draw(case, 300, 5)[2]
    for share in (0.1, 0.5, 0.8):
        between = loss.value(target, share * scores + (1 - share) * other)
        chord = share * loss.value(target, scores) + (1 - share) * loss.value(target, other)
        assert (between <= chord + 1e-12).all()


@every_loss
def test_conjugate_is_attained_at_the_gradient_and_bounds_elsewhere(case):
    loss, target, scores, _ = draw(case, 300, 6)
    slope = loss.gradient(target, scores)
    conjugate = loss.conjugate(target, slope)
    at_scores = (slope * scores).sum(axis=1) - loss.value(target, scores)
    np.testing.assert_allclose(conjugate, at_scores, atol=1e-12)
    for seed in range(7, 12):
        other = draw(case, 300, seed, scale=5.0)[2]
        assert ((slope * other).sum(axis=1) - loss.value(target, other) <= conjugate + 1e-12).all()


@every_loss
@pytest.mark.parametrize("stretch", [0.0, 0.3, 0.9])
def test_conjugate_of_shortened_slopes_is_the_largest_difference(case, stretch):
    loss, target, scores, reference = draw(case, 6, 13)
    slope = stretch * loss.gradient(target, scores)
    for i in range(6):
        found = optimize.minimize(
            lambda z, i=i: float(reference(target[i : i + 1], z[None])[0][0] - slope[i] @ z),
            np.zeros(scores.shape[1]),
            jac=lambda z, i=i: reference(target[i : i + 1], z[None])[1][0] - slope[i],
            method="BFGS",
            options={"gtol": 1e-8},  # with target zero, the loss goes to zero far away
        )
        assert loss.conjugate(target, slope)[i] == pytest.approx(-found.fun, abs=1e-5)


@every_loss
def test_extreme_scores_do_not_overflow(case):
    loss, target, scores, reference = draw(case, 100, 14)
    for factor in (1e3, 1e8):
        far = factor * scores
        for array in (
            loss.value(target, far),
            loss.gradient(target, far),
            loss.hessian_product(target, far, scores),
            loss.conjugate(target, loss.gradient(target, far)),
        ):
            assert np.isfinite(array).all()
        np.testing.assert_allclose(
            loss.value(target, far), reference(target, far)[0], rtol=1e-12, atol=1e-12
        )


def test_conjugate_at_the_ends_of_its_domain():
    sign = np.array([[1.0], [-1.0]])
    np.testing.assert_array_equal(LogisticLoss().conjugate(sign, -sign), 0.0)
    np.testing.assert_array_equal(LogisticLoss().conjugate(sign, 0.0 * sign), 0.0)
    codes, slopes = np.array([0, 2]), np.array([[-1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(MultinomialLoss().conjugate(codes, slopes), 0.0)


# ---- The best intercept.


def mean_loss(reference, target, scores, shares):
    """The mean loss by the shift of all scores, and its slope."""

    def value_and_slope(shift):
        values, slopes = reference(target, scores + shift)
        return float(shares @ values), shares @ slopes

    return value_and_slope


@every_loss
@pytest.mark.parametrize("scale", [0.1, 3.0, 1e3])
def test_best_intercept_is_the_minimum(case, scale):
    for seed in range(6):
        if case in LOG_LINK:
            scale = min(scale, 200.0)  # predictions up to 1e60
        loss, target, scores, reference = draw(case, 40, seed, scale)
        rng = np.random.default_rng(seed)
        shares = rng.random(40)
        shares /= shares.sum()
        start = 10 * rng.standard_normal(scores.shape[1])
        intercept = best_intercept(loss, target, scores, shares, start)
        f = mean_loss(reference, target, scores, shares)
        value, slope = f(intercept)
        sizes = shares @ np.abs(reference(target, scores + intercept)[1])
        assert (np.abs(slope) <= 1e-8 * np.maximum(1.0, sizes)).all()
        found = optimize.minimize(f, np.zeros(scores.shape[1]), jac=True, method="BFGS")
        assert value <= found.fun + 1e-12 * max(1.0, abs(found.fun))


@every_loss
def test_best_intercept_stays_where_it_is(case):
    loss, target, scores, _ = draw(case, 40, 0)
    shares = np.full(40, 1 / 40)
    first = best_intercept(loss, target, scores, shares, np.zeros(scores.shape[1]))
    again = best_intercept(loss, target, scores, shares, first)
    np.testing.assert_allclose(again, first, rtol=0, atol=1e-12)


@pytest.mark.parametrize("start", [0.0, 1e12, -1e17, 3e17])
@pytest.mark.parametrize("target", [[0.0, 1e17, 1e17], [0.0, 0.0, 1e17]])
def test_huber_intercept_finds_a_camp_that_is_far_away(start, target):
    """From anywhere, though the gain of a step is far below the rounding of the values."""
    column, shares = np.array(target)[:, None], np.full(3, 1 / 3)
    (found,) = best_intercept(HuberLoss(1.0), column, 0.0 * column, shares, np.array([start]))
    assert found == pytest.approx(np.median(target), abs=0.5)


@pytest.mark.parametrize("loss", [HuberLoss(1.0), HuberLoss(1e-3), QuantileLoss(0.3, width=0.1)])
def test_intercept_for_residuals_of_all_sizes(loss):
    """The slope changes its sign within a few units in the last place of the intercept found."""
    rng = np.random.default_rng(5)
    for _ in range(200):
        sizes = 10.0 ** rng.integers(-8, 18, size=(rng.integers(1, 12), 2))
        target = np.round(rng.standard_normal(sizes.shape), 1) * sizes
        shares = rng.dirichlet(np.ones(target.shape[0]))
        start = rng.choice([0.0, 3.0, 1e9, -1e17], 2)
        found = best_intercept(loss, target, 0.0 * target, shares, start)
        near = 4.0 * np.spacing(np.abs(found)) + 1e-11
        rounding = 1e-12 * (shares @ np.abs(loss.gradient(target, 0.0 * target + found)))
        assert (shares @ loss.gradient(target, 0.0 * target + found - near) <= rounding).all()
        assert (shares @ loss.gradient(target, 0.0 * target + found + near) >= -rounding).all()


@pytest.mark.parametrize("start", [-1e6, -3.0, 0.0, 4.0, 1e6])
def test_huber_intercept_where_the_loss_is_flat(start):
    # Two far apart camps of equal weight: every shift between them is as good as any other.
    target = np.repeat([[0.0], [100.0]], 5, axis=0)
    shares = np.full(10, 0.1)
    loss = HuberLoss(1.0)
    (intercept,) = best_intercept(loss, target, np.zeros((10, 1)), shares, np.array([start]))
    assert 1.0 - 1e-9 <= intercept <= 99.0 + 1e-9
    # With one more on one side the minimum is a point: there the camp pulls 1/6 of a delta each.
    target = np.repeat([[0.0], [100.0]], [6, 5], axis=0)
    shares = np.full(11, 1 / 11)
    (intercept,) = best_intercept(loss, target, np.zeros((11, 1)), shares, np.array([start]))
    assert intercept == pytest.approx(5 / 6, abs=1e-9)


def test_logistic_intercept_of_separated_classes():
    # All scores say the right thing with certainty; only the balance of the classes is left.
    for gap in (30.0, 300.0, 1e4):
        target = np.repeat([[-1.0], [1.0]], [3, 1], axis=0)
        scores = gap * target
        shares = np.full(4, 0.25)
        (intercept,) = best_intercept(LogisticLoss(), target, scores, shares, np.zeros(1))
        assert np.isfinite(intercept)
        slope = shares @ LogisticLoss().gradient(target, scores + intercept)
        assert np.abs(slope).max() <= 1e-12
        assert (
            float(shares @ LogisticLoss().value(target, scores + intercept))
            <= np.exp(-gap) + 1e-300
        )


@pytest.mark.parametrize("scale", [1.0, 50.0, 1e3])
def test_multinomial_intercepts_sum_to_zero(scale):
    for seed in range(5):
        loss, target, scores, _ = draw("multinomial", 60, seed, scale)
        shares = np.full(60, 1 / 60)
        intercept = best_intercept(loss, target, scores, shares, np.zeros(4))
        assert abs(intercept.sum()) <= 1e-12 * max(1.0, np.abs(intercept).max())


def test_intercept_is_found_in_few_evaluations():
    # Where rounding hides what is left to gain, trying on would change nothing.
    calls = 0

    class Counted(MultinomialLoss):
        def value(self, target, scores):
            nonlocal calls
            calls += 1
            return super().value(target, scores)

    codes = np.arange(30) % 3
    scores = 45.0 * (codes[:, None] == np.arange(3)) + 0.1 * np.arange(3)
    best_intercept(Counted(), codes, scores, np.full(30, 1 / 30), np.zeros(3))
    assert calls <= 100


@every_loss
def test_mean_hessian(case):
    loss, target, scores, _ = draw(case, 50, 0)
    shares = np.random.default_rng(0).dirichlet(np.ones(50))
    h = 1e-6
    K = scores.shape[1]
    columns = [
        shares @ (loss.gradient(target, scores + h * e) - loss.gradient(target, scores - h * e))
        for e in np.eye(K)
    ]
    np.testing.assert_allclose(
        mean_hessian(loss, target, scores, shares), np.stack(columns, axis=1) / (2 * h), atol=1e-8
    )


# ---- What a fit takes from its targets.


@pytest.mark.parametrize("case", LOG_LINK)
def test_typical_curvature_is_that_of_the_mean(case):
    loss, target, scores, _ = draw(case, 60, 0)
    shares = np.random.default_rng(0).dirichlet(np.ones(60))
    ready = loss.with_targets(target, shares)
    best = best_intercept(loss, target, 0.0 * scores, shares, np.zeros(scores.shape[1]))
    np.testing.assert_allclose(best, np.log(shares @ target))
    bends = mean_hessian(loss, target, 0.0 * scores + best, shares)
    assert ready.curvature == pytest.approx(np.trace(bends) / scores.shape[1])
    assert repr(ready) == repr(loss)
    if scores.shape[1] == 1:
        assert ready.start_curvature(target, shares) == pytest.approx(ready.curvature)


@pytest.mark.parametrize("unit", [1e-8, 1.0, 1e6])
def test_width_of_the_quantile_loss_follows_the_targets(unit):
    rng = np.random.default_rng(0)
    y, shares = unit * rng.standard_cauchy(999)[:, None], np.full(999, 1 / 999)
    loss = QuantileLoss(0.3, 0.1).with_targets(y, shares)
    assert loss.width == pytest.approx(0.1 * np.subtract(*np.percentile(y, [75, 25])), rel=1e-2)
    best = best_intercept(loss, y, 0.0 * y, shares, np.zeros(1))
    assert np.mean(y <= best) == pytest.approx(0.3, abs=0.01)
    bends = mean_hessian(loss, y, 0.0 * y + best, shares)
    assert loss.curvature == pytest.approx(float(bends[0, 0]), rel=1e-6)


def test_width_counts_weights_as_repetitions():
    rng = np.random.default_rng(0)
    y, weights = np.sort(rng.standard_normal(40))[:, None], rng.integers(0, 4, 40)
    weights[:4] += 40 - int(weights.sum()) % 40  # the quartiles are between two targets
    often = np.repeat(y, weights, axis=0)
    once = QuantileLoss().with_targets(y, weights / weights.sum())
    repeated = QuantileLoss().with_targets(often, np.full(len(often), 1 / len(often)))
    assert once.width == pytest.approx(repeated.width, rel=1e-12)


@pytest.mark.parametrize(("value", "width"), [(0.0, 0.05), (3.0, 0.15), (-2e9, 1e8)])
def test_width_for_constants(value, width):
    loss = QuantileLoss().with_targets(np.full((60, 1), value), np.full(60, 1 / 60))
    assert loss.width == pytest.approx(width)
    mostly = np.zeros((60, 1))
    mostly[:9] = 4.0
    loss = QuantileLoss().with_targets(mostly, np.full(60, 1 / 60))
    assert loss.width == pytest.approx(0.05 * mostly.std())


@pytest.mark.parametrize("score", [-1000.0, 1000.0])
@pytest.mark.parametrize("case", CASES)
def test_far_scores_are_finite_and_lead_back(case, score):
    loss, target, scores, _ = draw(case, 60, 0)
    far = np.full_like(scores, score)
    predicted = loss.predictions(far)
    assert np.isfinite(predicted).all()
    np.testing.assert_array_equal(np.isfinite(loss.link(predicted)), True)
    if case in LOG_LINK:  # where the loss is continued, one Newton step leads back
        slope = loss.gradient(target, far)
        bend = loss.hessian_product(target, far, np.ones_like(far))
        steep = np.abs(slope) > 1e5
        back = (far - slope / np.where(steep, bend, 1.0))[steep]
        assert (np.abs(back) <= 302.0).all()
        assert steep.any() == ((loss.power < 2.0) if score > 0.0 else (loss.power > 1.0))


class Fourth(Loss):
    """A loss of one's own with no more than it needs: half the fourth powers of residuals."""

    def __init__(self, unit=1.0):
        self.unit = unit

    def value(self, target, scores):
        return 0.5 * (((scores - target) / self.unit) ** 4).sum(axis=1)

    def gradient(self, target, scores):
        return 2.0 * (scores - target) ** 3 / self.unit**4

    def hessian_product(self, target, scores, direction):
        return 6.0 * (scores - target) ** 2 / self.unit**4 * direction


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda loss, z: loss.conjugate(z, z), "has no conjugate. Define one for a certificate"),
        (lambda loss, z: loss.probabilities(z), "gives no probabilities. Choose the logistic loss"),
        (lambda loss, z: loss.log_probabilities(z), "gives no probabilities"),
        (lambda loss, z: loss.class_codes(z), "has no contrasts"),
    ],
)
def test_what_a_loss_does_not_define_is_told_by_its_name(call, message):
    with pytest.raises(ValueError, match=rf"Fourth\(unit=2\.0\) {message}"):
        call(Fourth(2.0), np.zeros((3, 1)))


def test_a_loss_of_ones_own_is_for_all_numbers_and_has_a_name():
    assert Fourth().valid(np.array([[-1.0], [0.0]])).tolist() == [True, True]
    assert Fourth.name == "fourth"


@pytest.mark.parametrize("width", [0.0, 0.5])
def test_the_quantile_loss_shows_what_makes_it_anew(width):
    loss = QuantileLoss(0.9, smoothing=0.2, width=width)
    assert eval(repr(loss), {"QuantileLoss": QuantileLoss}) == loss
    assert ("width" in repr(loss)) is (width > 0.0)
