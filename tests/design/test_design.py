"""Designs of all layouts against plain NumPy in double precision."""

import numpy as np
import pytest
from scipy import sparse

from clustruct.design import (
    CHUNK_BYTES,
    DenseDesign,
    FactorDesign,
    GroupedDesign,
    SparseDesign,
    as_design,
)

N, D = 60, 9


def sparse_matrix(rng, offset=0.0):
    """Numbers with many zeros, an empty column, an empty row, and a column without zeros."""
    X = rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.3)
    X[:, 2] = 0.0
    X[5] = 0.0
    X[:, 4] = offset + rng.standard_normal(N)
    return X


def with_long_indices(X):
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def read_only(X, folder):
    """The same array, mapped from a file that cannot be written."""
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


def read_only_sparse(X, folder):
    parts = []
    for name in ("data", "indices", "indptr"):
        np.save(folder / f"{name}.npy", getattr(X, name))
        parts.append(np.load(folder / f"{name}.npy", mmap_mode="r"))
    return type(X)(tuple(parts), shape=X.shape)


LAYOUTS = {
    "C": lambda X, folder: X,
    "F": lambda X, folder: np.asfortranarray(X),
    "strided": lambda X, folder: np.repeat(X, 2, axis=1)[:, ::2],
    "float32": lambda X, folder: X.astype(np.float32),
    "float32 F": lambda X, folder: np.asfortranarray(X, dtype=np.float32),
    "memory map": read_only,
    "csr_matrix": lambda X, folder: sparse.csr_matrix(X),
    "csc_matrix": lambda X, folder: sparse.csc_matrix(X),
    "csr_array": lambda X, folder: sparse.csr_array(X),
    "csc_array": lambda X, folder: sparse.csc_array(X),
    "csr int64": lambda X, folder: with_long_indices(sparse.csr_matrix(X)),
    "csc int64": lambda X, folder: with_long_indices(sparse.csc_array(X)),
    "csr float32": lambda X, folder: sparse.csr_matrix(X.astype(np.float32)),
    "csc float32": lambda X, folder: sparse.csc_matrix(X.astype(np.float32)),
    "csr memory map": lambda X, folder: read_only_sparse(sparse.csr_matrix(X), folder),
    "csc memory map": lambda X, folder: read_only_sparse(sparse.csc_array(X), folder),
}
# Levels of factors that make D columns with the numeric ones, and whether some rows have no level.
FACTORS = {
    "factors": ((3, 4), False),
    "factors, unknown levels": ((3, 4), True),
    "factors alone": ((2, 2, 5), True),
    "numeric columns alone": ((), False),
}
every_layout = pytest.mark.parametrize("layout", [*LAYOUTS, *FACTORS])


def contents(matrix):
    parts = (matrix.data, matrix.indices, matrix.indptr) if sparse.issparse(matrix) else (matrix,)
    return [part.tobytes() for part in parts]


def coded(n_levels, unknown):
    """A design of factors and numeric columns, and the matrix that it stands for."""
    rng = np.random.default_rng(0)
    codes = [rng.integers(0, n + unknown, N) for n in n_levels]
    expected = np.concatenate([np.empty(0), *(rng.dirichlet(np.ones(n)) for n in n_levels)])
    numeric = rng.standard_normal((N, D - sum(n_levels)))
    rows = [np.vstack([np.eye(n), np.zeros(n)]) for n in n_levels]
    if unknown:
        parts = np.split(expected, np.cumsum(n_levels)[:-1])
        rows = [np.vstack([np.eye(p.size), p]) for p in parts]
    X = np.hstack([*(row[code] for row, code in zip(rows, codes, strict=True)), numeric])
    return FactorDesign(codes, n_levels, numeric, expected if unknown else None), X


@pytest.fixture
def made(layout, tmp_path):
    """A design, the same numbers in double precision, and the relative error to expect."""
    if layout in FACTORS:
        design, X = coded(*FACTORS[layout])
        yield design, X, X, True
        return
    X = sparse_matrix(np.random.default_rng(0))
    matrix = LAYOUTS[layout](X, tmp_path)
    before = contents(matrix)
    exact = matrix.dtype == np.float64
    yield as_design(matrix), X if exact else X.astype(np.float32).astype(float), matrix, exact
    assert contents(matrix) == before  # nothing was modified


@every_layout
def test_products(made):
    design, X, _, exact = made
    rng = np.random.default_rng(1)
    tolerance = 1e-12 if exact else 1e-5
    for n_outputs in (1, 3):
        W, R = rng.standard_normal((D, n_outputs)), rng.standard_normal((N, n_outputs))
        for got, expected in ((design.scores(W), X @ W), (design.adjoint(R), X.T @ R)):
            assert got.dtype == np.float64
            assert got.shape == expected.shape
            np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)
        left, right = np.vdot(R, design.scores(W)), np.vdot(design.adjoint(R), W)
        assert left == pytest.approx(right, rel=10 * tolerance, abs=10 * tolerance)


@every_layout
def test_moments_gram_and_cross_are_exact_even_in_single_precision(made):
    design, X, _, _ = made
    shares = np.random.default_rng(2).dirichlet(np.ones(N))
    means, variances = design.moments(shares)
    np.testing.assert_allclose(means, shares @ X, atol=1e-14)
    np.testing.assert_allclose(variances, shares @ (X - shares @ X) ** 2, atol=1e-14)
    R = np.random.default_rng(3).standard_normal((N, 2))
    for shift in (np.zeros(D), means, np.random.default_rng(3).standard_normal(D)):
        centred = X - shift
        expected = centred.T @ (shares[:, None] * centred)
        np.testing.assert_allclose(design.gram(shares, shift), expected, atol=1e-13)
        np.testing.assert_allclose(design.cross(R, shift), centred.T @ R, atol=1e-12)


@every_layout
def test_group_sums(made):
    design, X, _, exact = made
    rng = np.random.default_rng(3)
    for labels in (
        rng.integers(-1, 4, D),
        np.zeros(D, dtype=int),
        np.full(D, -1),
        np.arange(D),
    ):
        for n_groups in (int(labels.max()) + 1, int(labels.max()) + 2):
            sums = design.group_sums(labels.astype(np.intp), n_groups)
            Z = (labels[:, None] == np.arange(n_groups)).astype(float)
            assert sums.shape == (N, n_groups)
            assert sums.dtype == np.float64
            np.testing.assert_allclose(sums, X @ Z, atol=1e-12 if exact else 1e-5)


@every_layout
def test_grouped_design_is_the_product_with_the_assignment(made):
    design, X, _, exact = made
    rng = np.random.default_rng(4)
    labels = rng.integers(-1, 3, D)
    Z = (labels[:, None] == np.arange(3)).astype(float)
    grouped = GroupedDesign(design, labels, 3)
    tolerance = 1e-12 if exact else 1e-5
    V, R = rng.standard_normal((3, 2)), rng.standard_normal((N, 2))
    assert grouped.shape == (N, 3)
    np.testing.assert_allclose(grouped.scores(V), X @ Z @ V, atol=tolerance)
    np.testing.assert_allclose(grouped.adjoint(R), Z.T @ X.T @ R, atol=tolerance)
    means, variances = grouped.moments(np.full(N, 1 / N))
    np.testing.assert_allclose(means, (X @ Z).mean(axis=0), atol=1e-12)
    assert (variances >= 0).all()


@every_layout
def test_rows_are_those_of_the_matrix(made):
    design, X, _, exact = made
    tolerance = 1e-12 if exact else 1e-5
    rng = np.random.default_rng(5)
    W, B, mask = rng.standard_normal((D, 2)), rng.standard_normal((N, 2)), rng.random(N) < 0.4
    index = np.flatnonzero(mask)
    some, (beside,) = design.only(mask, B)
    assert some.shape == (index.size, D)
    np.testing.assert_array_equal(beside, B[mask])
    np.testing.assert_allclose(some.scores(W), X[mask] @ W, atol=tolerance)
    np.testing.assert_allclose(
        design.rows(index[::-1]).scores(W), X[index[::-1]] @ W, atol=tolerance
    )
    fetched, (beside,) = design.fetch(index, B)
    np.testing.assert_array_equal(beside, B[mask])
    fetched = fetched.toarray() if sparse.issparse(fetched) else fetched
    np.testing.assert_allclose(fetched, X[mask], atol=tolerance)
    products = (B[:, :, None] * X[:, None, :]).reshape(N, -1)
    np.testing.assert_allclose(design.row_products(B), products, atol=tolerance)
    np.testing.assert_array_equal(design.over(B).scores(W[:2]), B @ W[:2])
    np.testing.assert_allclose(design.by_rows().scores(W), X @ W, atol=tolerance)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_size_is_told(made):
    design, _, matrix, _ = made
    assert design.shape == (N, D)
    assert design.is_sparse == sparse.issparse(matrix)
    assert design.n_entries == (matrix.nnz if sparse.issparse(matrix) else N * D)


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if not name.startswith("cs")])
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("block", [1, 7, N])
def test_gram_matrices_of_several_weightings(made, centred, block, monkeypatch):
    design, X, _, _ = made
    monkeypatch.setattr("clustruct.design.local.NEAR_BYTES", 8 * D * block)
    rng = np.random.default_rng(7)
    R = 1e6 + rng.standard_normal((N, 2))
    weights = rng.random((3, N))
    weights[1, rng.random(N) < 0.8] = 0.0  # a few rows, which are taken out
    totals, means, grams = design.weighted_grams(R, lambda rows: weights[:, rows], centred=centred)
    both = np.hstack([X, R])
    np.testing.assert_allclose(totals, weights.sum(axis=1))
    for mine, mean, gram in zip(weights, means, grams, strict=True):
        expected = mine @ both / mine.sum() if centred else np.zeros(D + 2)
        np.testing.assert_allclose(mean, expected, atol=1e-13)
        away = both - expected
        np.testing.assert_allclose(gram, away.T @ (mine[:, None] * away), rtol=1e-9, atol=1e-7)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csc_array])
def test_offsets_do_no_harm(form):
    rng = np.random.default_rng(5)
    for offset in (1e4, 1e8):
        X = sparse_matrix(rng, offset)
        # A column in which the offset is there or not: its spread is as large as its mean.
        X[:, 6] = offset * (rng.random(N) < 0.5)
        shares = rng.dirichlet(np.ones(N))
        design = as_design(form(X))
        means, variances = design.moments(shares)
        np.testing.assert_allclose(means, shares @ X, rtol=1e-14)
        centred = X - shares @ X
        np.testing.assert_allclose(variances, shares @ centred**2, rtol=1e-6)
        gram = design.gram(shares, means)
        expected = centred.T @ (shares[:, None] * centred)
        scale = np.sqrt(np.outer(np.diagonal(expected), np.diagonal(expected)))
        np.testing.assert_array_less(np.abs(gram - expected), 1e-6 * scale + 1e-300)


def test_many_blocks_of_rows(monkeypatch):
    rng = np.random.default_rng(6)
    X = 3.0 + rng.standard_normal((101, 4))
    shares = rng.dirichlet(np.ones(101))
    whole = DenseDesign(X)
    assert CHUNK_BYTES > 101 * 4 * 8  # one block
    expected = (*whole.moments(shares), whole.gram(shares, X[0]), whole.cross(X, X[0]))
    monkeypatch.setattr("clustruct.design.CHUNK_BYTES", 8 * 4 * 10)  # ten rows a block
    pieces = DenseDesign(X)
    got = (*pieces.moments(shares), pieces.gram(shares, X[0]), pieces.cross(X, X[0]))
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)


def test_repeated_entries_add_up():
    # CSR may hold a place twice; squares and counts of entries must not be fooled by it.
    data = np.array([1.0, 2.0, -1.0, 4.0, 0.5])
    X = sparse.csr_matrix((data, [0, 0, 1, 1, 0], [0, 2, 4, 5]), shape=(3, 2))
    dense, shares = X.toarray(), np.array([0.5, 0.25, 0.25])
    before = contents(X)
    design = SparseDesign(X)
    means, variances = design.moments(shares)
    np.testing.assert_allclose(means, shares @ dense)
    np.testing.assert_allclose(variances, shares @ (dense - means) ** 2)
    centred = dense - means
    np.testing.assert_allclose(
        design.gram(shares, means), centred.T @ (shares[:, None] * centred), atol=1e-15
    )
    np.testing.assert_array_equal(design.group_sums(np.zeros(2, np.intp), 1)[:, 0], dense.sum(1))
    assert contents(X) == before


def test_sparse_is_never_made_dense(monkeypatch):
    X = sparse.random(200, 50, 0.05, random_state=0, format="csr")
    gram_of = X.T @ X

    def refuse(self, *args, **kwargs):
        assert self.shape == gram_of.shape, f"a matrix of shape {self.shape} was made dense"
        return to_dense(self, *args, **kwargs)

    to_dense = sparse.csr_matrix.toarray
    for kind in (sparse.csr_matrix, sparse.csc_matrix):
        monkeypatch.setattr(kind, "toarray", refuse)
        monkeypatch.setattr(kind, "todense", refuse)
    design = as_design(X)
    shares = np.full(200, 1 / 200)
    design.moments(shares)
    design.scores(np.ones((50, 2)))
    design.adjoint(np.ones((200, 2)))
    design.cross(np.ones((200, 2)), np.ones(50))
    design.group_sums(np.zeros(50, dtype=np.intp), 1)
    GroupedDesign(design, np.zeros(50, dtype=np.intp), 1).scores(np.ones((1, 1)))


@pytest.mark.parametrize(
    ("n_levels", "kind"),
    [(1, "u1"), (255, "u1"), (256, "u2"), (65_535, "u2"), (65_536, "i4")],
)
def test_codes_take_the_smallest_type_that_has_room_for_no_level(n_levels, kind):
    codes = np.array([0, n_levels - 1, n_levels])  # the last one is of no level
    others = np.array([1, 0, 1])
    design = FactorDesign([codes, others], [n_levels, 2], np.empty((3, 0)))
    assert [mine.dtype for mine in design.codes] == [np.dtype(kind), np.uint8]
    assert design.codes[0].tolist() == codes.tolist()
    assert design.n_entries == 6
    assert design.offsets.tolist() == [0, n_levels, n_levels + 2]
    W = np.arange(1.0, n_levels + 3.0)[:, None]
    expected = [1.0 + (n_levels + 2), n_levels + (n_levels + 1.0), n_levels + 2.0]
    assert design.scores(W)[:, 0].tolist() == expected
    if n_levels < 1000:  # codes of two types
        X, shares = design.fetch(np.arange(3))[0], np.array([0.2, 0.3, 0.5])
        gram = design.gram(shares, np.zeros(n_levels + 2))
        np.testing.assert_allclose(gram, X.T @ (shares[:, None] * X), atol=1e-15)


@pytest.mark.parametrize("unknown", [False, True])
def test_small_factors_are_looked_up_together(unknown):
    rng, n_levels = np.random.default_rng(0), [4, 30, 2, 300, 2, 3, 6]
    codes = [rng.integers(0, size + unknown, 3000) for size in n_levels]
    expected = np.concatenate([rng.dirichlet(np.ones(size)) for size in n_levels])
    design = FactorDesign(codes, n_levels, rng.standard_normal((3000, 2)), expected)
    assert len(design._cells) < len(n_levels)
    assert sorted(f for cells in design._cells for f in cells.factors) == list(range(7))
    X, shares = design.fetch(np.arange(3000))[0], rng.random(3000)
    W, R = rng.standard_normal((X.shape[1], 2)), rng.standard_normal((3000, 2))
    single = [np.eye(size + 1)[code] for size, code in zip(n_levels, codes, strict=True)]
    parts = np.split(expected, np.cumsum(n_levels)[:-1])
    levels = [each[:, :-1] + each[:, -1:] * p for each, p in zip(single, parts, strict=True)]
    np.testing.assert_allclose(X, np.hstack([*levels, design.numeric]), atol=1e-12)
    np.testing.assert_allclose(design.scores(W), X @ W, atol=1e-12)
    np.testing.assert_allclose(design.adjoint(R), X.T @ R, atol=1e-10)
    for means in (np.zeros(X.shape[1]), X.mean(axis=0)):
        away = X - means
        np.testing.assert_allclose(
            design.gram(shares, means), away.T @ (shares[:, None] * away), atol=1e-10
        )


def test_products_with_factors_never_form_the_matrix(monkeypatch):
    def refuse(self):
        raise AssertionError("the matrix was formed")

    monkeypatch.setattr(FactorDesign, "_as_dense", refuse)
    rng = np.random.default_rng(0)
    design = FactorDesign([rng.integers(0, 7, 50)], [7], rng.standard_normal((50, 2)))
    shares, R = np.full(50, 0.02), rng.standard_normal((50, 2))
    design.moments(shares)
    design.gram(shares, np.zeros(9))
    design.cross(R, np.zeros(9))
    design.adjoint(R)
    design.rows(np.arange(9)).group_sums(rng.integers(-1, 3, 9), 3)
    GroupedDesign(design, np.zeros(9, dtype=np.intp), 1).scores(np.ones((1, 1)))


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1)])
def test_smallest_shapes(shape):
    X = np.arange(1.0, 6.0)[: shape[0] * shape[1]].reshape(shape)
    shares = np.full(shape[0], 1 / shape[0])
    for matrix in (X, sparse.csr_matrix(X), sparse.csc_matrix(X)):
        design = as_design(matrix)
        means, variances = design.moments(shares)
        np.testing.assert_allclose(means, X.mean(axis=0))
        np.testing.assert_allclose(variances, X.var(axis=0), atol=1e-15)
        np.testing.assert_allclose(
            design.gram(shares, means), np.cov(X.T, bias=True).reshape(shape[1], -1), atol=1e-15
        )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n_columns", [1, 2, 8, 9])
def test_products_in_stretches_are_those_at_once(dtype, order, n_columns, monkeypatch):
    monkeypatch.setattr("clustruct.design.local.NEAR_BYTES", 7 * 5 * 8)  # some rows are left over
    rng = np.random.default_rng(0)
    X = np.array(rng.standard_normal((100, 5)), dtype=dtype, order=order)
    at_once, in_stretches = DenseDesign(X), DenseDesign(X, in_stretches=True)
    W, R = rng.standard_normal((5, n_columns)), rng.standard_normal((100, n_columns))
    tol = 1e-5 if dtype == np.float32 else 1e-13
    for found, expected in (
        (in_stretches.scores(W), at_once.scores(W)),
        (in_stretches.adjoint(R), at_once.adjoint(R)),
    ):
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, expected, rtol=tol, atol=tol)
