"""K-means of rows by the CUDA kernel, run on the host thread by thread."""

from itertools import combinations

import numpy as np
import pytest

from clustruct.grouping import device_rows
from clustruct.grouping.cuda import OLD_TORCH, TorchGpu, lies_on_gpu
from clustruct.grouping.device_rows import BOARD, solve
from tests.device_rows.host import HostGpu
from tests.device_rows.references import check


@pytest.fixture
def gpu(host_library):
    return HostGpu(host_library)


def brute_force(values, weights, n_clusters):
    """The least cost of all partitions of the sorted values."""
    order = np.argsort(values)
    x, w = values[order], weights[order]
    costs = []
    for inner in combinations(range(1, len(x)), n_clusters - 1):
        parts = np.split(np.arange(len(x)), inner)
        means = [np.average(x[part], weights=w[part]) for part in parts]
        costs.append(sum(w[p] @ (x[p] - m) ** 2 for p, m in zip(parts, means, strict=True)))
    return min(costs)


@pytest.mark.parametrize("n_clusters", [1, 2, 3, 4, 6])
def test_no_partition_costs_less(n_clusters, gpu):
    rng = np.random.default_rng(n_clusters)
    x, weights = rng.standard_normal((12, 9)), rng.exponential(size=(12, 9))
    inertia = solve(gpu, x, weights, n_clusters)[4]
    least = [brute_force(*row, n_clusters) for row in zip(x, weights, strict=True)]
    np.testing.assert_allclose(inertia, least, rtol=1e-12)


@pytest.mark.parametrize("weighted", ["none", "shared", "own"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize(("n", "n_clusters"), [(1, 2), (33, 5), (150, 2), (300, 9)])
def test_rows_have_the_groups_of_the_host(n, n_clusters, dtype, weighted, gpu):
    rng = np.random.default_rng(n)
    x = rng.standard_normal((2, n)).astype(dtype)
    shape = {"none": None, "shared": n, "own": (2, n)}[weighted]
    weights = None if shape is None else rng.exponential(size=shape).astype(np.float32)
    check(solve(gpu, x, weights, n_clusters), x, weights, n_clusters)


@pytest.mark.parametrize(("shared", "in_shared"), [(20000, 3), (17000, 2), (12000, 1), (4096, 0)])
def test_arrays_lie_where_there_is_room(shared, in_shared, host_library):
    rng = np.random.default_rng(0)
    x, weights = rng.standard_normal((3, 600)).astype(np.float32), rng.exponential(size=600)
    results = []
    for descending in (False, True):
        gpu = HostGpu(host_library, shared=shared, descending=descending)
        results.append(solve(gpu, x, weights, 6))
        (launch,) = gpu.launches
        assert launch.source.startswith(f"#define IN_SHARED {in_shared}\n")
    check(results[0], x, weights, 6)
    # No thread depends on which of the others ran before it since the last barrier.
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_few_blocks_share_many_rows(host_library):
    x = np.random.default_rng(0).standard_normal((40, 12))
    gpu = HostGpu(host_library, shared=4096, processors=1)
    check(solve(gpu, x, None, 3), x, None, 3)
    assert gpu.launches[0].blocks < 40


def test_long_rows_go_tile_by_tile(host_library):
    """64 threads would hold 1088 choices; here are twice as many positions, and more choices."""
    x = np.random.default_rng(0).standard_normal((1, 2200)).astype(np.float32)
    gpu = HostGpu(host_library, shared=8192)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device_rows, "MOST_THREADS", 64)
        check(solve(gpu, x, None, 5), x, None, 5)


def test_more_labels_than_eight_bits_hold(gpu):
    x = np.random.default_rng(0).standard_normal((1, 260))
    check(solve(gpu, x, None, 300), x, None, 300)


VALUES = {
    "far away": lambda rng: 1e9 + rng.standard_normal(200),
    "heavy tails": lambda rng: rng.standard_cauchy(200),
    "many equal": lambda rng: np.round(rng.standard_normal(200), 1),
    "all equal": lambda rng: np.full(200, 0.1),
    "few distinct": lambda rng: rng.integers(0, 4, 200) * 1.5,
    "both zeros": lambda rng: np.where(rng.random(200) < 0.5, -0.0, rng.integers(0, 9, 200)),
    "tiny": lambda rng: rng.standard_normal(200) * 1e-310,
    "huge": lambda rng: rng.standard_normal(200) * 1e300,
}


@pytest.mark.parametrize("kind", VALUES)
def test_values_of_all_kinds(kind, gpu):
    x = VALUES[kind](np.random.default_rng(1))[None]
    check(solve(gpu, x, None, 5), x, None, 5)


def test_values_without_weight_go_to_the_nearest_centre(gpu):
    rng = np.random.default_rng(2)
    x, weights = rng.standard_normal((2, 100)), rng.exponential(size=(2, 100))
    weights[rng.random((2, 100)) < 0.4] = 0.0
    result = solve(gpu, x, weights, 4)
    check(result, x, weights, 4)
    nearest = np.abs(x[:, :, None] - result[1][:, None, :]).argmin(axis=2)
    np.testing.assert_array_equal(result[0][weights == 0], nearest[weights == 0])


@pytest.mark.parametrize("decades", [4.0, 12.0, 40.0])
def test_weights_of_all_sizes_keep_the_promise(decades, gpu):
    rng = np.random.default_rng(3)
    x, weights = rng.standard_normal((2, 300)), np.exp(decades * rng.standard_normal((2, 300)))
    check(solve(gpu, x, weights, 7), x, weights, 7, excess=1e-6, same_labels=False)


def test_outliers_ties_and_weights_of_all_sizes_keep_the_promise(gpu):
    """Some of these rows go to the host; many of the others are decided by the last digits."""
    rng = np.random.default_rng(6)
    for n_clusters in (2, 4, 6):
        x = 10.0 ** rng.uniform(-5, 0, (40, 1)) * rng.standard_normal((40, 60))
        x += (rng.random((40, 60)) < 0.05) * rng.standard_normal((40, 60))
        x[::2] = np.round(x[::2], 3)
        weights = np.exp(rng.uniform(0, 15, (40, 1)) * rng.standard_normal((40, 60)))
        result = solve(gpu, x, weights, n_clusters)
        check(result, x, weights, n_clusters, excess=1e-6, same_labels=False)


def test_the_heaviest_value_in_the_middle_does_not_hide_the_others(gpu):
    """About it the first moments are tiny; the rounding of the weights' sums is not."""
    values = [-0.228, -0.182, -0.117, -0.089, 0.0, 0.039, 0.048, 0.057, 0.069, 0.228]
    shares = [3.6e-12, 1.1e-17, 2.2e-14, 1.9e-21, 1.0, 1.9e-20, 2.5e-18, 2.1e-23, 2e-14, 2.1e-20]
    x, weights = np.array([values]), np.array(shares)
    check(solve(gpu, x, weights, 6), x, weights, 6, excess=1e-6, same_labels=False)


def test_rows_that_need_more_digits_are_solved_on_the_host(gpu, monkeypatch):
    rng = np.random.default_rng(4)
    x = rng.standard_normal((3, 120))
    x[1] *= 1e-9
    x[1, 0] = 1.0  # beside its square doubles do not see the costs of the others
    solved = []

    def watch(values, weights, n_clusters):
        solved.append(values[0])
        return cluster_values(values, weights, n_clusters)

    cluster_values = device_rows.cluster_values
    monkeypatch.setattr(device_rows, "cluster_values", watch)
    result = solve(gpu, x, None, 4)
    assert solved == [1.0]
    check(result, x, None, 4)


def test_any_strides_and_memory_that_is_read_only(gpu):
    rng = np.random.default_rng(5)
    block = rng.standard_normal((90, 6))
    block.flags.writeable = False
    for x in (block.T, block[::3], block[:, 1:4]):
        check(solve(gpu, x, None, 3), x, None, 3)
    check(solve(gpu, block.T, block[:, 0] ** 2, 3), block.T, block[:, 0] ** 2, 3)


def test_no_rows(gpu):
    labels, centers, *_ = solve(gpu, np.empty((0, 7)), None, 2)
    assert labels.shape == (0, 7)
    assert centers.shape == (0, 2)
    assert not gpu.launches


BAD = [
    ({"x": (1, 3, np.nan)}, r"x\[1, 3\] is nan; all entries must be finite"),
    ({"x": (2, 0, -np.inf)}, r"x\[2, 0\] is -inf; all entries must be finite"),
    ({"weights": (1, 4, -0.5)}, r"sample_weight\[1, 4\] is -0.5; weights must not be negative"),
    ({"weights": (0, 1, np.inf)}, r"sample_weight\[0, 1\] is inf; all entries must be finite"),
    ({"weights": (2, slice(None), 0.0)}, "sample_weight of row 2 is zero throughout"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_bad_rows_are_named(change, message, gpu):
    arrays = {"x": np.arange(15.0).reshape(3, 5), "weights": np.ones((3, 5))}
    for name, (row, column, value) in change.items():
        arrays[name][row, column] = value
    with pytest.raises(ValueError, match=message):
        solve(gpu, arrays["x"], arrays["weights"], 2)


def test_a_bad_weight_of_all_rows_is_named(gpu):
    with pytest.raises(ValueError, match=r"sample_weight\[2\] is -1.0"):
        solve(gpu, np.ones((3, 4)), np.array([1.0, 1.0, -1.0, 1.0]), 2)


def test_a_precision_without_a_kernel_is_named(gpu):
    with pytest.raises(ValueError, match="no kernel for int64; give one of float64"):
        solve(gpu, np.ones((3, 4), dtype=np.int64), None, 2)


def test_the_size_of_the_board_is_known(host_library):
    assert host_library.board_bytes() == BOARD


def test_arrays_of_the_host_lie_on_no_gpu():
    assert not lies_on_gpu(np.ones(3))


class Nothing:
    """A torch too old to compile kernels, on a machine without CuPy."""

    device = int64 = version = None

    def tensor(self, *args, **options):
        return None

    class cuda:
        @staticmethod
        def device(device):
            return pytest.MonkeyPatch.context()


def test_old_torch_without_cupy_is_told(monkeypatch):
    def importing(name):
        if name == "torch":
            return Nothing()
        raise ImportError(name)

    monkeypatch.setattr("clustruct.grouping.cuda.import_module", importing)
    gpu = TorchGpu(Nothing())
    with pytest.raises(ImportError, match=OLD_TORCH[:60]):
        gpu.run(None, ())
