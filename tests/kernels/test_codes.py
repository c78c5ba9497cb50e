"""Look-ups and sums by level, against products with the one-hot matrix."""

import numpy as np
import pytest

from clustruct.kernels.factors.codes import add_by_level, sum_by_level, sum_by_pair


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.int32])
@pytest.mark.parametrize("n_columns", [1, 3])
def test_against_one_hot_products(kind, n_columns):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        n, here, there = (int(number) for number in rng.integers(1, 12, 3))
        codes, others = (rng.integers(0, top, n).astype(kind) for top in (here, there))
        table, rows = rng.standard_normal((here, n_columns)), rng.standard_normal((n, n_columns))
        weights = rng.random(n)
        for part in (codes, others, table, rows, weights):
            part.flags.writeable = False
        X, Z = np.eye(here)[codes], np.eye(there)[others]
        scores, sums, pairs = (
            np.ones(shape) for shape in ((n, n_columns), (here, n_columns), (here, there))
        )
        # What was there is added to.
        add_by_level(codes, table, scores)
        np.testing.assert_allclose(scores, 1.0 + X @ table, rtol=1e-14)
        sum_by_level(codes, rows, sums)
        np.testing.assert_allclose(sums, 1.0 + X.T @ rows, rtol=1e-13, atol=1e-14)
        sum_by_pair(codes, others, weights, pairs)
        np.testing.assert_allclose(pairs, 1.0 + (X.T * weights) @ Z, rtol=1e-14)


def test_no_rows():
    codes, sums = np.empty(0, dtype=np.uint8), np.zeros((2, 1))
    sum_by_level(codes, np.empty((0, 1)), sums)
    sum_by_pair(codes, codes, np.empty(0), sums)
    add_by_level(codes, sums, np.empty((0, 1)))
    assert not sums.any()
