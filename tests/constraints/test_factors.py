"""Groups inside factors of several kinds, against brute force over all of them."""

from itertools import product

import numpy as np
import pytest

from clustruct.grouping.constraints import FactorClustered
from clustruct.grouping.factors import Cyclic, Monotone, Nominal, Ordinal
from tests.kernels.level_groups import least_costs

KINDS = {
    "nominal": Nominal(),
    "ordinal": Ordinal(),
    "rising": Monotone(),
    "falling": Monotone(decreasing=True),
    "cyclic": Cyclic(),
}
# Rows of the factors; rows 3 and 8 are left alone, and levels need not be in the order of rows.
ROWS = (np.array([0, 1, 2, 4]), np.array([9, 7, 6, 5]), np.array([10, 11, 12]))
N_ROWS = 13


def draw(seed):
    """Kinds of three factors, and a column of values."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice(list(KINDS), 3).tolist()
    W = rng.standard_normal((N_ROWS, 1))
    return rng, kinds, np.round(2 * W) / 2 if seed % 3 == 0 else W


def factors(kinds):
    return [(KINDS[kind], rows) for kind, rows in zip(kinds, ROWS, strict=True)]


def least_of_each(kinds, W, exposure, min_weight):
    """Least cost of each factor with exactly 1, 2, ... groups."""
    return [
        least_costs(kind, W[rows, 0], np.ones(len(rows)), exposure[rows], min_weight)
        for kind, rows in zip(kinds, ROWS, strict=True)
    ]


def check(nearest, W, cost):
    np.testing.assert_array_equal(nearest.point, nearest.centers[nearest.labels])
    np.testing.assert_array_equal(nearest.point[[3, 8]], W[[3, 8]])
    assert nearest.sq_distance == pytest.approx(2 * cost, abs=1e-12)


@pytest.mark.parametrize("min_weight", [0.0, 2.0])
@pytest.mark.parametrize("seed", range(20))
def test_a_total_is_shared_out_as_is_best(seed, min_weight):
    rng, kinds, W = draw(seed)
    exposure = rng.integers(0, 3, N_ROWS).astype(float)
    least = least_of_each(kinds, W, exposure, min_weight)
    for total in range(3, 11):
        constraint = FactorClustered(
            factors(kinds), N_ROWS, total, exposure=exposure, min_weight=min_weight
        )
        best = min(
            sum(costs[q] for costs, q in zip(least, chosen, strict=True))
            for chosen in product(range(4), range(4), range(3))
            if sum(chosen) + 3 <= total
        )
        nearest = constraint.project(W)
        if nearest.exact:
            check(nearest, W, best)
            # A monotone set holds multiples with one sign only, and the bound is for both.
            signs = (1.0,) if constraint.refits else (1.0, -1.0)
            held = max(np.square(constraint.project(sign * W).point).sum() for sign in signs)
            assert constraint.explained(W) == pytest.approx(held)
        else:
            assert "nominal" in kinds
            assert min_weight > 0
            assert nearest.sq_distance >= 2 * best - 1e-12
        # Whatever is found, the bound is one: of the squared length, the best leaves this much.
        held = np.square(W).sum() - 2 * best
        assert constraint.explained(W) >= held - 1e-12
        assert (constraint.share_out(W) >= 1).all()
        assert constraint.share_out(W).sum() <= total


@pytest.mark.parametrize("seed", range(20))
def test_a_number_for_each_factor(seed):
    rng, kinds, W = draw(seed)
    each = rng.integers(1, 4, 3)
    constraint = FactorClustered(factors(kinds), N_ROWS, each)
    least = least_of_each(kinds, W, np.ones(N_ROWS), 0.0)
    best = sum(costs[:q].min() for costs, q in zip(least, each, strict=True))
    nearest = constraint.project(W)
    check(nearest, W, best)
    assert nearest.exact
    again = constraint.project(nearest.point)
    np.testing.assert_allclose(again.point, nearest.point, atol=1e-14)


@pytest.mark.parametrize("seed", range(20))
def test_a_price_for_each_group(seed):
    rng, kinds, W = draw(seed)
    price = 10 ** rng.uniform(-2, 0.5)
    constraint = FactorClustered(factors(kinds), N_ROWS, None, price=price)
    nearest = constraint.project(W)
    least = least_of_each(kinds, W, np.ones(N_ROWS), 0.0)
    best = sum((costs + price * np.arange(len(costs))).min() for costs in least)
    n_groups = len(nearest.centers) - 2 - 3
    assert nearest.sq_distance / 2 + price * n_groups == pytest.approx(best, abs=1e-12)
    assert constraint.explained(W) == pytest.approx(np.square(W).sum())


def test_refits_are_for_sets_without_order():
    for kinds in product(KINDS, repeat=3):
        constraint = FactorClustered(factors(kinds), N_ROWS, 6)
        assert constraint.refits == ("rising" not in kinds and "falling" not in kinds)


def test_single_rows_move_in_nominal_factors_only():
    _, _, W = draw(1)
    places = FactorClustered(factors(["ordinal", "nominal", "cyclic"]), N_ROWS, 7).places(W)
    labels = FactorClustered(factors(["ordinal", "nominal", "cyclic"]), N_ROWS, 7).project(W).labels
    np.testing.assert_array_equal(places.labels, labels)
    stay = np.setdiff1d(np.arange(N_ROWS), ROWS[1])
    np.testing.assert_array_equal(places.first[stay], labels[stay])
    np.testing.assert_array_equal(places.last[stay], labels[stay] + 1)
    assert (places.first[ROWS[1]] == labels[ROWS[1]].min()).all()
    assert (places.last[ROWS[1]] == labels[ROWS[1]].max() + 1).all()
    assert places.n_groups == labels.max() + 1
    assert FactorClustered(factors(["ordinal", "rising", "cyclic"]), N_ROWS, 7).places(W) is None
    limited = FactorClustered(factors(["nominal"] * 3), N_ROWS, 7, min_weight=2.0)
    assert limited.places(W) is None


def test_several_outputs_are_for_nominal_factors():
    W = np.random.default_rng(0).standard_normal((N_ROWS, 2))
    assert FactorClustered(factors(["nominal"] * 3), N_ROWS, 6).project(W).point.shape == W.shape
    with pytest.raises(ValueError, match=r"shape \(4, 2\).*ordinal.*one output.*one column"):
        FactorClustered(factors(["ordinal"] * 3), N_ROWS, 6).project(W)
    with pytest.raises(ValueError, match="one output"):
        FactorClustered(factors(["nominal"] * 3), N_ROWS, None, price=1.0).project(W)


@pytest.mark.parametrize(("n_clusters", "price"), [(None, 0.0), (4, 1.0)])
def test_either_a_number_or_a_price(n_clusters, price):
    with pytest.raises(ValueError, match=r"n_clusters=.* and price=.*either"):
        FactorClustered(factors(["nominal"] * 3), N_ROWS, n_clusters, price=price)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_of_levels(kind):
    rng = np.random.default_rng(0)
    values, weights = rng.standard_normal(6), rng.random(6)
    least = least_costs(kind, values, weights, weights, 0.0)
    for n_groups in (1, 2, 4, None):
        found = KINDS[kind].group(values, weights, n_groups)
        assert found.cost == pytest.approx(least[:n_groups].min(), abs=1e-12)
        assert found.centers.shape == (found.labels.max() + 1,)
    costs = KINDS[kind].costs(values, weights, 4)
    np.testing.assert_allclose(costs, np.minimum.accumulate(least)[: len(costs)], atol=1e-12)
