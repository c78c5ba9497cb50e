"""The ordered Lorenz curve of predictions: Gini and lift against sums over rows and pairs."""

import numpy as np
import pytest

from clustruct.reporting.comparing.scores import lorenz


@pytest.fixture
def rows(rng):
    """Targets, predictions with ties, exposures and weights."""
    n = 120
    exposure = rng.choice([0.25, 0.5, 1.0, 2.0], n)
    rates = rng.choice([0.1, 0.2, 0.3, 0.7, 1.5], n)
    return rng.poisson(rates * exposure) * 1.0, rates * exposure, exposure, rng.integers(0, 4, n)


def gini_of_pairs(target, predicted, exposure):
    """``2 cov`` form over pairs: of two random units, the one that is predicted higher has more.

    With densities ``f = e / sum e`` and ``l = y / sum y`` over rows, the area between the diagonal
    and the curve is half of ``sum_ij f_i l_j sign(r_j - r_i)``.
    """
    rates = np.round(predicted / exposure, 9)
    f, share = exposure / exposure.sum(), target / target.sum()
    return float(f @ np.sign(rates[None, :] - rates[:, None]) @ share)


def test_gini_is_the_mean_over_pairs(rows):
    target, predicted, exposure, _ = rows
    found = lorenz(target, predicted, exposure, None).gini
    assert found == pytest.approx(gini_of_pairs(target, predicted, exposure), abs=1e-12)
    assert found > 0.1
    worse = lorenz(target, exposure**2 / predicted, exposure, None).gini  # the reverse order
    assert worse == pytest.approx(-found, abs=1e-12)


def test_a_constant_ranks_nothing_and_no_targets_have_no_gini(rows):
    target, _, exposure, _ = rows
    assert lorenz(target, 0.3 * exposure, exposure, None).gini == pytest.approx(0.0, abs=1e-12)
    assert np.isnan(lorenz(0.0 * target, exposure, exposure, None).gini)


def test_weights_equal_repetition_and_the_order_of_rows_does_not_matter(rows, rng):
    target, predicted, exposure, times = rows
    weighted = lorenz(target, predicted, exposure, times * 1.0)
    mixed = np.repeat(np.arange(target.size), times)
    rng.shuffle(mixed)
    repeated = lorenz(target[mixed], predicted[mixed], exposure[mixed], None)
    assert weighted.gini == pytest.approx(repeated.gini, abs=1e-12)
    for mine, other in zip(weighted.lift(), repeated.lift(), strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-12)


def test_lift_is_the_means_of_tenths(rng):
    """Without ties, and with exposures that tenths do not cut, tenths are means of rows."""
    target, predicted = rng.poisson(0.5, 200) * 1.0, rng.random(200)
    observed, said = lorenz(target, predicted, np.ones(200), None).lift()
    parts = np.array_split(np.argsort(predicted), 10)
    np.testing.assert_allclose(observed, [target[part].mean() for part in parts])
    np.testing.assert_allclose(said, [predicted[part].mean() for part in parts])


def test_a_row_between_two_tenths_is_shared_out():
    """Twenty copies of three rows, cut by hand."""
    target, rates = np.array([0.0, 1.0, 3.0]), np.array([0.5, 1.0, 2.0])
    observed, predicted = lorenz(target, rates, np.ones(3), None).lift(2)
    np.testing.assert_allclose(observed, [(0.0 + 0.5) / 1.5, (0.5 + 3.0) / 1.5])
    np.testing.assert_allclose(predicted, [(0.5 + 0.5) / 1.5, (0.5 + 2.0) / 1.5])


def test_lift_keeps_the_totals(rows):
    target, predicted, exposure, times = rows
    observed, said = lorenz(target, predicted, exposure, times * 1.0).lift()
    assert observed.mean() == pytest.approx((times @ target) / (times @ exposure))
    assert said.mean() == pytest.approx((times @ predicted) / (times @ exposure))
    assert (np.diff(said) >= -1e-12).all()
