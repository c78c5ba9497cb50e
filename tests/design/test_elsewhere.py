"""Designs whose rows live elsewhere answer as the one in memory does."""

import numpy as np
import pytest
from scipy import sparse

from clustruct.arrays import to_host
from clustruct.design import GroupedDesign, as_design

N, D = 90, 7
HEIGHTS = (40, 1, 49)


def data(dtype=np.float64):
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.6) + 3.0).astype(dtype)
    return X, rng


def in_blocks(X):
    blocks = pytest.importorskip("clustruct.design.partitioned.blocks")
    return blocks.BlockDesign(np.split(X, np.cumsum(HEIGHTS)[:-1]), HEIGHTS, D)


def in_sparse_blocks(X):
    blocks = pytest.importorskip("clustruct.design.partitioned.blocks")
    parts = [
        make(part)
        for make, part in zip(
            (sparse.csr_matrix, sparse.coo_matrix, sparse.csc_matrix),
            np.split(X, np.cumsum(HEIGHTS)[:-1]),
            strict=True,
        )
    ]
    return blocks.BlockDesign(parts, HEIGHTS, D)


def on_device(library):
    def make(X):
        from clustruct.design.device import DeviceDesign

        return DeviceDesign(pytest.importorskip(library).asarray(X))

    return make


def sparse_on_device(X):
    torch = pytest.importorskip("torch")
    from clustruct.design.device import SparseDeviceDesign, as_rows

    return SparseDeviceDesign(as_rows(torch.asarray(X).to_sparse_coo()))


MAKERS = {
    "blocks": in_blocks,
    "sparse blocks": in_sparse_blocks,
    "array_api_strict": on_device("array_api_strict"),
    "torch": on_device("torch"),
    "sparse torch": sparse_on_device,
}


def gathered(rows):
    """Rows as one array of the host."""
    return np.concatenate(rows.local) if hasattr(rows, "local") else to_host(rows)


@pytest.fixture(params=MAKERS)
def make(request, monkeypatch):
    monkeypatch.setattr("clustruct.design.device.BLOCK_BYTES", 8 * D * 25)  # several blocks
    return MAKERS[request.param]


@pytest.mark.parametrize(("dtype", "tol"), [(np.float64, 1e-12), (np.float32, 1e-5)])
def test_every_answer_is_that_of_memory(make, dtype, tol):
    X, rng = data(dtype)
    here, there = as_design(X.astype(np.float64)), make(X)
    W, R = rng.standard_normal((D, 2)), rng.standard_normal((N, 2))
    shares, means = rng.dirichlet(np.ones(N)), rng.standard_normal(D)
    labels = np.array([0, 1, -1, 1, 2, 0, 2])
    place = there.place
    assert there.shape == (N, D)

    def same(ours, expected):
        np.testing.assert_allclose(ours, expected, rtol=tol, atol=tol)

    same(gathered(there.scores(W)), here.scores(W))
    same(gathered(there.scores(0.0 * W)), np.zeros((N, 2)))
    same(there.adjoint(place(R)), here.adjoint(R))
    same(there.adjoint(place(R[:, :1])), here.adjoint(R[:, :1]))
    same(there.moments(place(shares))[0], here.moments(shares)[0])
    same(there.moments(place(shares))[1], here.moments(shares)[1])
    same(there.gram(place(shares), means), here.gram(shares, means))
    same(there.cross(place(R), means), here.cross(R, means))
    sums = there.group_sums(labels, 3)
    same(gathered(sums), here.group_sums(labels, 3))
    same(there.over(sums).adjoint(place(R)), here.group_sums(labels, 3).T @ R)
    grouped = GroupedDesign(there, labels, 3)
    same(gathered(grouped.scores(W[:3])), here.group_sums(labels, 3) @ W[:3])
    same(grouped.adjoint(place(R)), here.group_sums(labels, 3).T @ R)


def test_rows_are_mapped_folded_and_swept(make):
    X, rng = data()
    there, R, shares = make(X), rng.standard_normal((N, 2)), rng.dirichlet(np.ones(N))
    r, s = there.place(R), there.place(shares)
    doubled = there.map(lambda a: a + a, r)
    np.testing.assert_array_equal(gathered(doubled), 2.0 * R)
    total, twice = there.fold(lambda w, a: (w @ a, w @ (a + a)), s, doubled)
    np.testing.assert_allclose(total, 2.0 * shares @ R, rtol=1e-12)
    np.testing.assert_allclose(twice, 2.0 * total, rtol=1e-12)
    swept = there.sweep(lambda design, a: design.adjoint(a), r)
    np.testing.assert_allclose(swept, X.T @ R, rtol=1e-12)


def test_means_of_blocks_far_apart_lose_no_digits(make):
    X = np.random.default_rng(1).standard_normal((N, D)) + 1e6 * np.arange(N)[:, None]
    shares = np.full(N, 1 / N)
    there = make(X)
    variances = there.moments(there.place(shares))[1]
    np.testing.assert_allclose(variances, X.var(axis=0), rtol=1e-10)


def test_some_rows_and_rows_on_the_way(make):
    X, rng = data()
    here, there = as_design(X), make(X)
    W, y, shares = rng.standard_normal((D, 1)), rng.random(N), rng.dirichlet(np.ones(N))
    rows = tuple(map(there.place, (y, shares)))

    def residuals(design, y, s):
        r = y - design.scores(W)[:, 0]
        return (r, 2 * r), s @ r

    kept, total = there.sweep_keeping(residuals, *rows)
    (expected, _), sum_here = here.sweep_keeping(residuals, y, shares)
    assert float(total) == pytest.approx(float(sum_here))
    doubled = there.map(lambda pair: pair[1], kept)
    np.testing.assert_allclose(gathered(doubled), 2 * expected)

    mask = y < 0.4
    mask[:40] = False  # a whole block
    fewer, (mine,) = there.only(there.place(mask), rows[0])
    np.testing.assert_array_equal(gathered(mine), y[mask])
    np.testing.assert_allclose(gathered(fewer.scores(W)), X[mask] @ W)

    positions = rng.random(50)
    drawn = np.sort(there.locate(rows[1], positions))
    np.testing.assert_array_equal(drawn, np.sort(here.locate(shares, positions)))
    index = np.unique(drawn)
    matrix, (some,) = there.fetch(index, rows[0])
    matrix = matrix.toarray() if sparse.issparse(matrix) else matrix
    np.testing.assert_array_equal(matrix, X[index])
    np.testing.assert_array_equal(some, y[index])

    codes = there.map(lambda y: y > 0.5, rows[0])
    np.testing.assert_array_equal(np.asarray(to_host(there.hand_out(codes))), y > 0.5)
