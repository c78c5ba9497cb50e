"""k-means of every row of a matrix: the bits of single vectors, whatever the layout and threads."""

import sys
import types

import numpy as np
import pytest

import clustruct as cs
from clustruct.grouping import row_groups

NUMBERS = (2, 5, 12)


@pytest.fixture(scope="module")
def matrix():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((7, 60))
    x[2] = x[2].round()
    x[4] = np.arange(60.0)  # many best partitions
    x[5] = 3.0
    return x


def assert_rows_are_vectors(rows, x, n_clusters, weights=None):
    for i, row in enumerate(x):
        alone = None if weights is None else np.broadcast_to(weights, x.shape)[i]
        one = cs.kmeans_1d(row, n_clusters, sample_weight=alone)
        n_found = rows.n_found[i]
        np.testing.assert_array_equal(rows.labels[i], one.labels)
        np.testing.assert_array_equal(rows.centers[i, :n_found], one.centers.astype(x.dtype))
        np.testing.assert_array_equal(rows.sizes[i, :n_found], one.sizes)
        assert rows.inertia[i] == one.inertia
        assert np.isnan(rows.centers[i, n_found:]).all()
        assert (rows.sizes[i, n_found:] == 0).all()
        assert rows.centers.shape[1] == n_clusters


@pytest.mark.parametrize("weighting", ["none", "shared", "own"])
@pytest.mark.parametrize("n_clusters", [1, 3, 16, 100])
def test_each_row_is_clustered_like_a_vector(matrix, n_clusters, weighting):
    rng = np.random.default_rng(1)
    weights = rng.random(matrix.shape) * (rng.random(matrix.shape) < 0.8)
    weights = {"none": None, "shared": weights[0], "own": weights}[weighting]
    rows = cs.kmeans_1d(matrix, n_clusters, sample_weight=weights)
    assert rows.labels.dtype == np.uint8
    assert_rows_are_vectors(rows, matrix, n_clusters, weights)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int16])
def test_precisions(matrix, dtype):
    x = (10 * matrix).astype(dtype)
    rows = cs.kmeans_1d(x, 4)
    assert rows.centers.dtype == (np.float64 if dtype is np.int16 else dtype)
    assert_rows_are_vectors(rows, x if dtype is not np.int16 else x.astype(float), 4)


def test_layouts_and_read_only_input_change_nothing(matrix):
    expected = cs.kmeans_1d(matrix, 5)
    wide = np.zeros((14, 120))
    wide[::2, ::2] = matrix
    fixed = matrix.copy()
    fixed.flags.writeable = False
    for x in (np.asfortranarray(matrix), wide[::2, ::2], fixed, matrix.tolist()):
        found = cs.kmeans_1d(x, 5)
        np.testing.assert_array_equal(found.labels, expected.labels)
        np.testing.assert_array_equal(found.centers, expected.centers)
    turned = cs.kmeans_1d(matrix.T, 5, axis=0)
    np.testing.assert_array_equal(turned.labels, expected.labels.T)
    np.testing.assert_array_equal(turned.centers, expected.centers)


def test_threads_and_blocks_give_the_same_bits(matrix, monkeypatch):
    x = np.tile(matrix, (5, 1)) + np.arange(35)[:, None]
    weights = np.random.default_rng(0).random(x.shape)
    expected = cs.kmeans_1d(x, 5, sample_weight=weights, n_jobs=1)
    for size, n_jobs in ((60, 4), (200, 2), (200, None), (200, -1)):
        monkeypatch.setattr(row_groups, "BLOCK_SIZE", size)
        found = cs.kmeans_1d(x, 5, sample_weight=weights, n_jobs=n_jobs)
        for name in ("labels", "centers", "sizes", "n_found", "inertia"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_several_numbers_of_groups_are_those_of_single_calls(matrix):
    for x in (matrix, matrix[0]):
        found = cs.kmeans_1d(x, NUMBERS)
        for number, groups in zip(NUMBERS, found, strict=True):
            alone = cs.kmeans_1d(x, number)
            for name in ("labels", "centers", "sizes", "inertia"):
                np.testing.assert_array_equal(getattr(groups, name), getattr(alone, name))


def test_groups_of_columns_are_rows_of_their_own(matrix):
    weights = np.random.default_rng(0).random(60)
    for given in (None, weights, np.tile(weights, (7, 1))):
        found = cs.kmeans_1d(matrix, 3, sample_weight=given, group_size=20)
        alone = cs.kmeans_1d(
            matrix.reshape(21, 20),
            3,
            sample_weight=None if given is None else np.tile(weights, (7, 1)).reshape(21, 20),
        )
        assert found.labels.shape == (7, 60)
        assert found.centers.shape == (7, 3, 3)
        assert found.inertia.shape == (7, 3)
        np.testing.assert_array_equal(found.labels.reshape(21, 20), alone.labels)
        np.testing.assert_array_equal(found.centers.reshape(21, 3), alone.centers)


def test_long_rows_and_many_groups(monkeypatch):
    monkeypatch.setattr(row_groups, "LONGEST", 50)
    x = np.random.default_rng(0).standard_normal((2, 400))
    assert_rows_are_vectors(cs.kmeans_1d(x, 4), x, 4)
    rows = cs.kmeans_1d(x, 300)
    assert rows.labels.dtype == np.uint16
    assert_rows_are_vectors(rows, x, 300)


def test_types_of_labels(matrix):
    assert cs.kmeans_1d(matrix, 3, label_dtype=np.int32).labels.dtype == np.int32
    assert cs.kmeans_1d(matrix[0], 3, label_dtype=np.int8).labels.dtype == np.int8
    assert cs.kmeans_1d(matrix[0], 3).labels.dtype == np.intp


def test_a_matrix_without_rows():
    rows = cs.kmeans_1d(np.empty((0, 5)), 2)
    assert rows.labels.shape == (0, 5)
    assert rows.centers.shape == (0, 2)
    assert rows.inertia.shape == rows.n_found.shape == (0,)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_entries_that_are_not_finite_are_named_by_row(matrix, bad, monkeypatch):
    monkeypatch.setattr(row_groups, "BLOCK_SIZE", 120)
    x = matrix.copy()
    x[5, 41] = bad
    with pytest.raises(ValueError, match=r"x\[5, 41\] is -?(nan|inf)"):
        cs.kmeans_1d(x, 2)
    with pytest.raises(ValueError, match=r"x\[5, 41\] is"):
        cs.kmeans_1d(x, 2, group_size=10)
    with pytest.raises(ValueError, match=r"x\.T\[5, 41\] is"):
        cs.kmeans_1d(x.T, 2, axis=0)
    with pytest.raises(ValueError, match=r"sample_weight\[5, 41\] is"):
        cs.kmeans_1d(matrix, 2, sample_weight=np.abs(x))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sample_weight": np.full((7, 60), -1.0)}, r"sample_weight\[0, 0\] is -1.0"),
        ({"sample_weight": np.zeros(60)}, "is zero for all of the row"),
        ({"sample_weight": np.ones(7)}, r"shape \(7,\)"),
        ({"group_size": 7}, "does not divide the 60 columns"),
        ({"axis": 2}, "axis must be"),
        ({"n_jobs": 0}, "n_jobs must be at least 1"),
        ({"n_clusters": (4, 2)}, "must ascend"),
        ({"n_clusters": 0}, "n_clusters must be at least 1"),
        ({"presorted": True}, r"presorted=True, but x\[0, \d+\] is less"),
        ({"label_dtype": float}, "label_dtype=.* does not hold labels"),
        ({"x": np.arange(300.0), "n_clusters": 200, "label_dtype": "i1"}, "labels up to 199"),
        ({"x": np.empty((3, 0))}, "empty"),
        ({"x": np.zeros((2, 3, 4))}, "must be one-dimensional"),
        ({"x": np.zeros(4), "group_size": 2}, "group_size needs a matrix"),
        ({"x": np.array([1.0, 0.0]), "presorted": True}, "x does not ascend"),
    ],
)
def test_errors_say_what_is_wrong(matrix, change, message):
    arguments = {"x": matrix, "n_clusters": 2} | change
    with pytest.raises(ValueError, match=message):
        cs.kmeans_1d(arguments.pop("x"), arguments.pop("n_clusters"), **arguments)


def test_presorted_rows(matrix):
    x = np.sort(matrix, axis=1)
    assert_rows_are_vectors(cs.kmeans_1d(x, 4, presorted=True), x, 4)


class FakeTensor:
    """As much of a tensor of torch as is used."""

    is_cuda = False

    def __init__(self, array, kind="torch.float32"):
        self.array, self.dtype = array, types.SimpleNamespace(is_floating_point=True)
        self.dtype = type("dtype", (), {"is_floating_point": True, "__str__": lambda _: kind})()

    shape = property(lambda self: self.array.shape)
    ndim = property(lambda self: self.array.ndim)

    def detach(self):
        return self

    def reshape(self, *shape):
        return FakeTensor(self.array.reshape(*shape), str(self.dtype))

    def view(self, dtype):
        return FakeTensor(self.array.view(dtype))

    def numpy(self):
        return self.array

    def to(self, dtype):
        return FakeTensor(self.array, str(dtype))


FakeTensor.__module__ = "torch"


def test_tensors_of_torch_and_bfloat16_without_torch(matrix, monkeypatch):
    torch = types.SimpleNamespace(int16=np.int16, from_numpy=FakeTensor)
    monkeypatch.setitem(sys.modules, "torch", torch)
    bits = (matrix.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    rounded = (bits.astype(np.uint32) << 16).view(np.float32)
    expected = cs.kmeans_1d(rounded, 4)
    for tensor in (FakeTensor(rounded), FakeTensor(bits, "torch.bfloat16")):
        found = cs.kmeans_1d(tensor, 4)
        np.testing.assert_array_equal(found.labels.numpy(), expected.labels)
        np.testing.assert_array_equal(found.centers.numpy().astype(np.float32), expected.centers)
        assert str(found.centers.dtype) == str(tensor.dtype)


def test_tensors_of_torch(matrix):
    torch = pytest.importorskip("torch")
    expected = cs.kmeans_1d(matrix.astype(np.float32), 4)
    found = cs.kmeans_1d(torch.from_numpy(matrix.astype(np.float32)), 4)
    assert found.centers.dtype == torch.float32
    np.testing.assert_array_equal(found.labels.numpy(), expected.labels)
    np.testing.assert_array_equal(found.centers.numpy(), expected.centers)


@pytest.mark.parametrize("group_size", [None, 15])
@pytest.mark.parametrize("bits", [1, 3, 8])
def test_quantized_matrices_have_the_error_they_say(matrix, bits, group_size):
    weights = np.random.default_rng(0).random(matrix.shape)
    small = cs.quantize(matrix, bits, sample_weight=weights, group_size=group_size)
    restored = small.dequantize()
    assert small.codes.dtype == np.uint8
    assert small.codes.max() < 2**bits
    assert small.error == pytest.approx((weights * (matrix - restored) ** 2).sum(), rel=1e-9)
    n_books = 7 if group_size is None else 28
    assert small.n_bytes == -(-420 * bits // 8) + n_books * 2**bits * 8
    one = cs.kmeans_1d(matrix[0, :group_size], 2**bits, sample_weight=weights[0, :group_size])
    np.testing.assert_array_equal(restored[0, :group_size], one.centers[one.labels])


def test_bits_of_codes():
    with pytest.raises(ValueError, match="bits must be at most 8"):
        cs.quantize(np.eye(3), 9)
