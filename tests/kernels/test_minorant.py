"""The largest diagonal matrix below a positive semidefinite one."""

import numpy as np
import pytest

from clustruct.kernels.fits.minorant import balance


def solved(matrix, values, n_sweeps=2000):
    m = len(values)
    vectors = np.random.default_rng(0).standard_normal((m, m))
    vectors *= np.sqrt(values / np.square(vectors).sum(axis=1))[:, None]
    return balance(matrix, vectors, values, n_sweeps), vectors


@pytest.mark.parametrize("seed", range(10))
def test_it_is_below_and_no_other_is_larger(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 12))
    x = rng.standard_normal((m + 3, m))
    matrix, values = x.T @ x, rng.uniform(0.01, 2.0, m)
    diagonal, vectors = solved(matrix, values)
    assert diagonal.min() >= -1e-12
    assert np.linalg.eigvalsh(matrix - np.diag(diagonal)).min() > -1e-6 * np.trace(matrix)
    # Duality: every feasible X bounds the objective of every feasible d from above.
    X = vectors @ vectors.T
    assert (np.diagonal(X) >= values * (1.0 - 1e-9)).all()
    assert values @ diagonal == pytest.approx(np.vdot(matrix, X), rel=1e-5)


def test_a_diagonal_matrix_is_its_own_minorant():
    diagonal, _ = solved(np.diag([1.0, 2.0, 0.5]), np.ones(3), 3)
    np.testing.assert_allclose(diagonal, [1.0, 2.0, 0.5])


def test_two_by_two():
    # d1 + d2 is largest where (a - d1)(a - d2) = b^2 with equal d: d = a - |b|.
    diagonal, _ = solved(np.array([[2.0, -0.5], [-0.5, 2.0]]), np.ones(2))
    np.testing.assert_allclose(diagonal, [1.5, 1.5], atol=1e-9)
