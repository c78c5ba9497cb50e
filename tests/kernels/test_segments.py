"""Groups of the levels of a factor, against all partitions."""

import numpy as np
import pytest

from clustruct.kernels.factors.rising import RisingSegments
from clustruct.kernels.factors.segments import KINDS, NONE, Segmenter
from clustruct.kernels.kmeans import kmeans1d
from tests.kernels.level_groups import allowed, least_costs
from tests.kernels.reference import cases

VALUES = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "ties": lambda rng, n: rng.integers(-2, 3, n) / 2.0,
    "equal": lambda rng, n: np.full(n, 1.7),
    "decades": lambda rng, n: rng.standard_normal(n) * 10.0 ** rng.integers(-4, 5, n),
    "offset": lambda rng, n: 1e6 + rng.standard_normal(n),
}
WEIGHTS = {
    "ones": lambda rng, n: np.ones(n),
    "uniform": lambda rng, n: rng.random(n),
    "zeros": lambda rng, n: rng.random(n) * (rng.random(n) < 0.6),
    "decades": lambda rng, n: 10.0 ** rng.uniform(-4.0, 4.0, n),
    "integers": lambda rng, n: rng.integers(0, 3, n).astype(float),
}


def group(kind, values, weights, most=None, price=0.0, exposure=None, min_weight=0.0, made=None):
    """Labels, centres, cost and proof, from a kernel that is made unless given."""
    n = len(values)
    labels, centers = np.full(n, -7), np.full(n, np.nan)
    count, cost, exact = (made or Segmenter(n)).group(
        KINDS[kind],
        values,
        weights,
        NONE if exposure is None else exposure,
        n if most is None else most,
        price,
        min_weight,
        labels,
        centers,
    )
    return labels, centers[:count], cost, exact


def spread(values, weights):
    """Sum of weights times the largest squared distance from the mean: what rounding is of."""
    return weights.sum() * np.square(values - np.average(values, weights=weights)).max()


def draw(rng, least=1, most=7):
    """Values and weights of a few levels, not all of weight zero."""
    n = int(rng.integers(least, most + 1))
    values = rng.choice(list(VALUES.values()))(rng, n)
    weights = rng.choice(list(WEIGHTS.values()))(rng, n)
    weights[rng.integers(n)] += 0.5
    return values, weights


def check_groups(kind, values, weights, exposure, min_weight, found):
    """The groups are of the kind and agree with their values and cost."""
    labels, centers, cost, _ = found
    assert allowed(kind, labels.tolist())
    assert np.unique(labels).tolist() == list(range(len(centers)))
    if kind == "nominal":
        assert (np.diff(centers) > 0).all()
    elif kind in ("rising", "falling"):
        assert ((np.diff(centers) > 0) == (kind == "rising")).all()
    if len(centers) > 1:
        assert (np.bincount(labels, exposure) >= min_weight - 1e-9).all()
    masses = np.bincount(labels, weights)
    means = np.bincount(labels, weights * values) / masses
    np.testing.assert_allclose(centers, means, rtol=1e-12, atol=1e-12 * np.abs(values).max())
    direct = 0.5 * weights @ np.square(values - centers[labels])
    assert cost == pytest.approx(direct, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("limit", ["none", "exposure"])
@pytest.mark.parametrize("kind", KINDS)
def test_against_all_partitions(kind, limit):
    n_inexact = 0
    for seed in cases(240):
        rng = np.random.default_rng([seed, len(kind), len(limit)])
        values, weights = draw(rng)
        n = len(values)
        exposure = [weights, np.ones(n), rng.random(n), rng.integers(0, 4, n) + 0.0][seed % 4]
        min_weight = exposure.sum() * rng.uniform(0.0, 0.6) if limit == "exposure" else 0.0
        least = least_costs(kind, values, weights, exposure, min_weight)
        tolerance = 1e-13 * spread(values, weights)
        made = Segmenter(n)
        for most in range(1, n + 1):
            for price in (0.0, least[0] * 10 ** rng.uniform(-4.0, 0.5)):
                found = group(kind, values, weights, most, price, exposure, min_weight, made)
                check_groups(kind, values, weights, exposure, min_weight, found)
                _, centers, cost, exact = found
                assert len(centers) <= most
                excess = cost + price * (len(centers) - 1)
                excess -= (least[:most] + price * np.arange(most)).min()
                assert excess >= -tolerance
                assert excess <= tolerance or not exact
                n_inexact += not exact
        costs = made.costs(KINDS[kind], values, weights, exposure, n, min_weight)
        costs = np.append(costs, np.full(n - len(costs), costs[-1]))
        expected = np.minimum.accumulate(least)
        assert (costs >= expected - tolerance).all()
        if kind != "nominal" or limit == "none":
            np.testing.assert_allclose(costs, expected, rtol=0, atol=tolerance)
    # Only unordered groups with a least exposure lack a proof.
    assert n_inexact == 0 or (kind == "nominal" and limit == "exposure")


def test_nominal_groups_with_a_least_exposure_need_not_be_intervals():
    values, weights = np.array([0.0, 1.0, 2.0]), np.array([1.0, 10.0, 9.0])
    labels, _, cost, exact = group("nominal", values, weights, 2, min_weight=10.0)
    assert labels.tolist() == [0, 0, 0]
    assert not exact
    assert cost == pytest.approx(3.4)
    assert least_costs("nominal", values, weights, weights, 10.0)[1] == pytest.approx(1.8)
    # With equal weights and exposures they are, and where the limit does not matter.
    assert group("nominal", values, np.ones(3), 2, min_weight=2.0)[3]
    assert group("nominal", values, weights, 2, min_weight=1.0)[3]


def test_monotone_groups_with_a_least_exposure_may_cut_isotonic_blocks():
    values = np.array([0.0, 1.0, 0.9, 2.0])
    labels, centers, _, exact = group("rising", values, np.ones(4), min_weight=2.0)
    assert labels.tolist() == [0, 0, 1, 1]
    np.testing.assert_allclose(centers, [0.5, 1.45])
    assert exact
    mirrored = group("falling", values[::-1].copy(), np.ones(4), min_weight=2.0)
    np.testing.assert_array_equal(mirrored[0], labels)


@pytest.mark.parametrize("kind", KINDS)
def test_prices_find_the_lower_convex_hull(kind):
    """Between the slopes at a corner of the hull of all costs, its number of groups is best."""
    for seed in cases(20):
        rng = np.random.default_rng(seed)
        values, weights = rng.standard_normal(30).cumsum(), rng.random(30) + 0.1
        costs = Segmenter(30).costs(KINDS[kind], values, weights, NONE, 30, 0.0)
        counts = np.arange(1, len(costs) + 1)
        for k in counts[1:-1]:
            upper = min((costs[: k - 1] - costs[k - 1]) / (k - counts[: k - 1]))
            lower = max((costs[k - 1] - costs[k:]) / (counts[k:] - k))
            found = group(kind, values, weights, price=0.5 * (lower + upper))
            if lower < upper * (1 - 1e-9):
                assert len(found[1]) == k
                assert found[2] == pytest.approx(costs[k - 1], abs=1e-11)


def plain_program(values, weights, price):
    """Optimal partitioning in its plainest form: least priced cost of segments of the order."""
    best = [-price]
    for j in range(1, len(values) + 1):
        rivals = []
        for i in range(j):
            x, w = values[i:j], weights[i:j]
            rivals.append(best[i] + 0.5 * w @ np.square(x - np.average(x, weights=w)) + price)
        best.append(min(rivals))
    return best[-1]


@pytest.mark.parametrize("shape", ["noise", "walk", "steps", "ramp"])
def test_pruned_search_finds_what_the_plain_one_does(shape):
    rng = np.random.default_rng(len(shape))
    values = {
        "noise": rng.standard_normal(90),
        "walk": rng.standard_normal(90).cumsum(),
        "steps": np.repeat(rng.standard_normal(6), 15) + 0.2 * rng.standard_normal(90),
        "ramp": np.linspace(0.0, 5.0, 90),
    }[shape]
    weights = rng.random(90) + 0.1
    for price in (1e-3, 0.1, 1.0, 30.0):
        _, centers, cost, _ = group("ordinal", values, weights, price=price)
        total = cost + price * (len(centers) - 1)
        assert total == pytest.approx(plain_program(values, weights, price), rel=1e-11)
        # A circle is the best of its lines.
        _, centers, cost, _ = group("cyclic", values, weights, price=price)
        lines = []
        for s in range(90):
            line = group("ordinal", np.roll(values, -s), np.roll(weights, -s), price=price)
            lines.append(line[2] + price * (len(line[1]) - 1))
        assert cost + price * (len(centers) - 1) == pytest.approx(min(lines), rel=1e-11)


@pytest.mark.parametrize("min_weight", [0.0, 3.0])
def test_circles_with_a_number_of_groups_are_the_best_of_their_lines(min_weight):
    for seed in cases(10):
        rng = np.random.default_rng(seed)
        values, weights = rng.standard_normal(25), rng.random(25) + 0.5
        for most in (1, 2, 4, 9):
            cost = group("cyclic", values, weights, most, min_weight=min_weight)[2]
            lines = [
                group(
                    "ordinal", np.roll(values, -s), np.roll(weights, -s), most,
                    min_weight=min_weight,
                )[2]
                for s in range(25)
            ]  # fmt: skip
            assert cost == pytest.approx(min(lines), rel=1e-11)


@pytest.mark.parametrize("most", [2, 5, 17])
def test_nominal_groups_are_those_of_kmeans(most):
    rng = np.random.default_rng(most)
    values, weights = rng.standard_normal(80), rng.random(80)
    labels, centers, _, inertia = kmeans1d.cluster_values(values, weights, most)
    found = group("nominal", values, weights, most)
    np.testing.assert_array_equal(found[0], labels)
    np.testing.assert_allclose(found[1], centers, rtol=1e-12)
    assert 2 * found[2] == pytest.approx(inertia)


@pytest.mark.parametrize("kind", KINDS)
def test_a_call_does_not_depend_on_the_calls_before(kind):
    rng = np.random.default_rng(0)
    made = Segmenter(40)
    for _ in range(30):
        values, weights = rng.integers(0, 9, 40) / 3.0, rng.random(40)
        most, price = int(rng.choice([3, 40])), float(rng.choice([0.0, 0.3]))
        min_weight = float(rng.choice([0.0, 2.0]))
        fresh = group(kind, values, weights, most, price, min_weight=min_weight)
        again = group(kind, values, weights, most, price, min_weight=min_weight, made=made)
        for one, other in zip(fresh, again, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1e-150, 1e-3, 1e100])
def test_scales_of_values_and_weights_do_not_matter(kind, scale):
    rng = np.random.default_rng(1)
    values, weights = rng.standard_normal(30).cumsum(), rng.random(30)
    plain = group(kind, values, weights, price=0.7)
    scaled = group(kind, scale * values, weights / scale, price=0.7 * scale)
    np.testing.assert_array_equal(plain[0], scaled[0])
    np.testing.assert_allclose(scaled[1], scale * plain[1], rtol=1e-12)
    assert scaled[2] == pytest.approx(scale * plain[2], rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_levels_without_weight(kind):
    values, weights = np.array([0.0, 9.0, 0.1, 5.0, 5.1, 4.0]), np.array([1.0, 0, 1, 1, 1, 0])
    labels, centers, _, _ = group(kind, values, weights, price=0.1)
    alone = np.average(values, weights=weights)
    expected = [alone] if kind == "falling" else [0.05, 5.05]
    np.testing.assert_allclose(centers, expected)
    if kind == "nominal":  # to the nearest
        assert labels.tolist() == [0, 1, 0, 1, 1, 1]
    labels, centers, cost, _ = group(kind, values, np.zeros(6))
    assert labels.tolist() == [0] * 6
    assert centers == pytest.approx([values.mean()])
    assert cost == 0.0


def test_zero_and_huge_prices():
    values = np.array([1.0, 1.0, 2.0, 1.0])
    assert group("ordinal", values, NONE)[0].tolist() == [0, 0, 1, 2]
    assert group("cyclic", values, NONE)[0].tolist() == [0, 0, 1, 0]
    assert group("nominal", values, NONE)[0].tolist() == [0, 0, 1, 0]
    for kind in KINDS:
        assert group(kind, values, NONE, price=1e308)[0].tolist() == [0, 0, 0, 0]
        assert group(kind, 1e-200 * values, NONE, price=1.0)[0].tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("kind", ["ordinal", "rising", "cyclic"])
def test_planted_steps_are_recovered(kind):
    n_found = 0
    for seed in cases(20):
        rng = np.random.default_rng(seed)
        truth = np.repeat([0, 1, 2, 3], [20, 35, 15, 30])
        labels = truth
        if kind == "cyclic":
            truth = np.roll(truth, 10)
            labels = (truth + 1) % 4  # the first level is in the first group
        levels = np.array([0.0, 2.0, 3.5, 5.0])
        values = levels[truth] + 0.2 * rng.standard_normal(100)
        found = group(kind, values, np.ones(100), price=2.0)
        n_found += np.array_equal(found[0], labels)
        np.testing.assert_array_equal(group(kind, values, np.ones(100), 4)[0], found[0])
    assert n_found == len(cases(20))


def test_rising_segments_name_their_layers():
    values, ones = np.array([0.0, 1.0, 5.0, 4.0]), np.ones(4)
    segments = RisingSegments(values, ones, ones, 1.0, 3, 0.0, False)
    np.testing.assert_allclose(segments.costs, [17.0, 1.0, 0.5])
    assert segments.starts() == [0, 1, 2]
    segments.price = 1.0
    assert segments.starts() == [0, 2]
