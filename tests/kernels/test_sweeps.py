"""Sums by level and by group, and shifts of residuals, against NumPy."""

import numpy as np
import pytest

from clustruct.kernels.factors.sweeps import CodedFactor, ColumnResiduals, RowResiduals, sweep

N_ROWS = 60
TYPES = [np.uint8, np.uint16, np.intc]


def made(dtype, n_levels=5, first=0, n_shared=None):
    codes = np.random.default_rng(n_levels).integers(0, n_levels, N_ROWS).astype(dtype)
    n_shared = n_levels if n_shared is None else n_shared
    return codes, CodedFactor(codes, n_levels, n_shared, 0, np.ones(n_levels), 0.0, first)


@pytest.fixture
def shares():
    return np.random.default_rng(1).uniform(0.5, 2.0, N_ROWS)


@pytest.fixture
def rows():
    return np.random.default_rng(2).standard_normal(N_ROWS)


@pytest.mark.parametrize("dtype", TYPES)
def test_shares_and_residuals_are_added_up_by_level(dtype, shares, rows):
    codes, factor = made(dtype)
    factor.weigh(shares)
    np.testing.assert_allclose(factor.array("weights"), np.bincount(codes, shares), rtol=1e-13)
    residuals = RowResiduals()
    residuals.hold(rows, shares)
    sums = np.bincount(codes, rows)
    np.testing.assert_allclose(residuals.level_sums(factor), sums, rtol=1e-12, atol=1e-13)
    goals, heavy = residuals.aim(factor, 0.5, np.inf)  # no intercept
    np.testing.assert_allclose(heavy, np.bincount(codes, shares) + 0.5, rtol=1e-13)
    np.testing.assert_allclose(goals * heavy, sums, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("dtype", TYPES)
def test_rows_are_shifted_by_the_step_of_their_level(dtype, shares, rows):
    codes, factor = made(dtype)
    residuals, before, steps = RowResiduals(), rows.copy(), np.array([0.0, 1.0, -2.0, 0.5, 3.0])
    residuals.hold(rows, shares)
    residuals.shift(factor, np.zeros(5), 0.0)
    np.testing.assert_array_equal(rows, before)
    residuals.shift(factor, steps, 0.25)
    np.testing.assert_allclose(rows, before - shares * (0.25 + steps[codes]), rtol=1e-13)


@pytest.mark.parametrize("dtype", TYPES)
def test_shares_are_added_up_by_cells_of_groups(dtype, shares):
    (codes, factor), (codes_too, other) = made(dtype), made(np.uint8, 3)
    factor.array("labels")[:] = [0, 1, 0, 1, 2]
    other.array("labels")[:] = [1, 0, 1]
    mine, theirs = np.array([0, 1, 0, 1, 2])[codes], np.array([1, 0, 1])[codes_too]
    cells, alone = np.zeros((3, 2)), np.zeros((3, 1))
    factor.tabulate(other, shares, cells)
    factor.tabulate(None, shares, alone)
    expected = np.zeros((3, 2))
    np.add.at(expected, (mine, theirs), shares)
    np.testing.assert_allclose(cells, expected, rtol=1e-13)
    np.testing.assert_allclose(alone[:, 0], np.bincount(mine, shares), rtol=1e-13)


@pytest.mark.parametrize("n_shared", [5, 3])
@pytest.mark.parametrize("total", ["shares", "infinite"])
def test_residuals_by_columns_and_by_rows_agree(shares, rows, n_shared, total):
    """Both give the same groups and values; residuals by rows stay those of the values."""
    shares /= shares.sum()
    rows *= shares
    found = []
    for by_columns in (False, True):
        codes, factor = made(np.uint16, 5, 0, n_shared)
        codes_too, other = made(np.intc, 3, 5)
        factors, left = [factor, other], rows.copy()
        for each in factors:
            each.weigh(shares)
        dummies = np.hstack([np.eye(5)[codes], np.eye(3)[codes_too]])
        if by_columns:
            residuals = ColumnResiduals()
            gram = dummies.T @ (shares[:, None] * dummies)
            residuals.hold(dummies.T @ left, gram, dummies.T @ shares)
        else:
            residuals = RowResiduals()
            residuals.hold(left, shares)
        limits, ridges = np.array([5, 3]), np.array([0.01, 0.02])
        sums = shares.sum() if total == "shares" else np.inf
        intercept = 0.0
        for _ in range(20):
            _, step = sweep(factors, residuals, ridges, limits, 1e-3, sums)
            intercept += step
        values = np.concatenate([each.array("values") for each in factors])
        if not by_columns:
            np.testing.assert_allclose(
                left, rows - shares * (intercept + dummies @ values), rtol=1e-10, atol=1e-12
            )
        labels = [each.array("labels").tolist() for each in factors]
        assert len(set(labels[0][n_shared:])) == 5 - n_shared
        found.append((values, intercept, labels))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-9, atol=1e-12)
    assert found[0][1] == pytest.approx(found[1][1], rel=1e-9, abs=1e-12)
    assert found[0][2] == found[1][2]
