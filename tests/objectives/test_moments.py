"""Moments of rows in parts."""

from functools import reduce

import numpy as np
import pytest
from scipy import sparse

from clustruct.design import as_design
from clustruct.objectives.quadratic import Moments, moments_of_parts


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_moments_of_parts_join_to_those_of_all_rows(offset):
    rng = np.random.default_rng(0)
    # Sorted by the first column, so that the means of the parts are far apart.
    X = np.sort(rng.standard_normal((90, 4)), axis=0) + offset
    y, shares = rng.standard_normal((90, 2)), rng.dirichlet(np.ones(90))
    whole = Moments.about_mean(as_design(X), y, shares)
    parts = [
        Moments.about_mean(as_design(X[part]), y[part], shares[part])
        for part in (slice(0, 10), slice(10, 55), slice(55, 90))
    ]
    joined = reduce(Moments.joined, parts)
    assert joined.weight == pytest.approx(1.0)
    for name in ("x_center", "y_center", "gram", "moment", "squares"):
        np.testing.assert_allclose(
            getattr(joined, name), getattr(whole, name), rtol=1e-9, atol=1e-10, err_msg=name
        )


def test_moments_about_zero_add_up():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((30, 3)), rng.standard_normal((30, 1))
    shares = np.full(30, 1 / 30)
    whole = Moments.about_zero(as_design(X), y, shares)
    parts = [
        Moments.about_zero(as_design(X[part]), y[part], shares[part])
        for part in (slice(0, 7), slice(7, 30))
    ]
    np.testing.assert_allclose(parts[0].joined(parts[1]).gram, whole.gram, rtol=1e-12)


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_parts_are_gathered_in_one_reading(centred, make):
    rng = np.random.default_rng(2)
    X, y, shares = rng.standard_normal((40, 3)), rng.standard_normal((40, 2)), rng.random(40)
    counts = rng.integers(0, 3, (40, 2)).astype(np.uint8)
    found = moments_of_parts(as_design(make(X)), y, shares, counts, centred=centred)
    about = Moments.about_mean if centred else Moments.about_zero
    for part, mine in zip(counts.T, found, strict=True):
        rows = np.repeat(np.arange(40), part)  # as often as the part has them
        expected = about(as_design(X[rows]), y[rows], shares[rows])
        for name, value in vars(expected).items():
            np.testing.assert_allclose(getattr(mine, name), value, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("centred", [True, False])
def test_sums_tell_squared_errors(centred):
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((30, 4)) + 2.0, rng.standard_normal((30, 2)) - 1.0
    shares, W, intercept = rng.random(30), rng.standard_normal((4, 2)), rng.standard_normal(2)
    about = Moments.about_mean if centred else Moments.about_zero
    found = about(as_design(X), y, shares).squared_errors(W, intercept)
    np.testing.assert_allclose(found, shares @ np.square(y - X @ W - intercept), rtol=1e-10)
