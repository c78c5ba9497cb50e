"""Sums of the columns of each group, against a product with the assignment."""

import numpy as np
import pytest
from scipy import sparse

from clustruct.kernels.fits.group_sums import sum_columns_by_column, sum_columns_by_row

KERNELS = {"csr": sum_columns_by_row, "csc": sum_columns_by_column}


@pytest.mark.parametrize("form", KERNELS)
@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_against_a_dense_product(form, real, index):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        n, d, q = int(rng.integers(1, 12)), int(rng.integers(1, 12)), int(rng.integers(1, 5))
        X = sparse.random(n, d, 0.4, format=form, random_state=seed, dtype=real)
        labels = rng.integers(-1, q, d).astype(np.intp)
        parts = [X.data, X.indices.astype(index), X.indptr.astype(index), labels]
        for part in parts:
            part.flags.writeable = False
        sums = np.ones((n, q))
        KERNELS[form](*parts, sums)
        Z = (labels[:, None] == np.arange(q)).astype(float)
        # Sums are kept in double precision, and what was there is added to.
        np.testing.assert_allclose(sums, 1.0 + X.toarray().astype(float) @ Z, rtol=1e-14)


@pytest.mark.parametrize("form", KERNELS)
def test_no_groups_and_no_entries(form):
    for shape in ((3, 4), (1, 1)):
        X = sparse.csr_matrix(shape).asformat(form)
        for q in (0, 2):
            sums = np.zeros((shape[0], q))
            labels = np.full(shape[1], -1, dtype=np.intp)
            KERNELS[form](X.data, X.indices, X.indptr, labels, sums)
            assert not sums.any()


@pytest.mark.parametrize("form", KERNELS)
def test_unsorted_and_repeated_entries(form):
    X = sparse.csr_matrix(([1.0, 2.0, 4.0, 8.0], [2, 0, 2, 1], [0, 3, 4]), shape=(2, 3))
    if form == "csc":
        X = sparse.csc_matrix(([1.0, 2.0, 4.0, 8.0], [1, 0, 1, 0], [0, 2, 4, 4]), shape=(2, 3))
    sums = np.zeros((2, 2))
    KERNELS[form](X.data, X.indices, X.indptr, np.array([0, 1, 0]), sums)
    np.testing.assert_array_equal(sums, X.toarray() @ [[1, 0], [0, 1], [1, 0]])
