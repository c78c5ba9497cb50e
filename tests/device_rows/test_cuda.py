"""K-means of rows on a GPU, of torch and CuPy."""

import numpy as np
import pytest

from clustruct.grouping.cuda import lies_on_gpu
from clustruct.grouping.device_rows import cluster_rows
from tests.device_rows.references import check

SHAPES = [
    (1, 2),
    (128, 16),
    (4096, 16),
    (4096, 256),
    (11008, 16),
    (14336, 16),
    (50000, 3),
    (400, 300),
]


def on_gpu(library, values, dtype="float64"):
    kind = getattr(library, dtype)
    if library.__name__ == "cupy":
        return library.asarray(values, dtype=kind)
    return library.asarray(values, dtype=kind, device="cuda")


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize(("n", "n_clusters"), SHAPES)
def test_rows_have_the_groups_of_the_host(n, n_clusters, dtype, cuda):
    if not hasattr(cuda, dtype):
        pytest.skip(f"{cuda.__name__} has no {dtype}")
    rng = np.random.default_rng(n + n_clusters)
    x = on_gpu(cuda, rng.standard_normal((4, n)), dtype)
    assert lies_on_gpu(x)
    for shape in (None, n, (4, n)):
        weights = None if shape is None else on_gpu(cuda, rng.exponential(size=shape), "float32")
        result = cluster_rows(x, weights, n_clusters)
        assert all(lies_on_gpu(array) for array in result)
        # Many equal values make partitions that cost exactly the same.
        is_rounded = weights is None and dtype in ("float16", "bfloat16")
        check(result, x, weights, n_clusters, same_labels=not is_rounded)


@pytest.mark.parametrize("decades", [4.0, 12.0])
def test_weights_of_all_sizes_keep_the_promise(decades, cuda):
    rng = np.random.default_rng(0)
    x = on_gpu(cuda, rng.standard_normal((8, 3000)))
    weights = on_gpu(cuda, np.exp(decades * rng.standard_normal((8, 3000))))
    check(cluster_rows(x, weights, 9), x, weights, 9, excess=1e-6, same_labels=False)


@pytest.mark.parametrize("scale", [1e-310, 1e300, 1e-9])
def test_values_of_all_sizes(scale, cuda):
    values = scale * np.random.default_rng(0).standard_normal((3, 500))
    if scale == 1e-9:
        values[1, 0] = 1.0  # this row is solved on the host
    x = on_gpu(cuda, values)
    check(cluster_rows(x, None, 5), x, None, 5)


def test_strides(cuda):
    block = on_gpu(cuda, np.random.default_rng(0).standard_normal((90, 6)), "float32")
    for x in (block.T, block[::3], block[:, 1:4]):
        check(cluster_rows(x, None, 3), x, None, 3)


def test_bad_rows_are_named(cuda):
    x = on_gpu(cuda, np.arange(15.0).reshape(3, 5), "float32")
    x[1, 3] = float("nan")
    with pytest.raises(ValueError, match=r"x\[1, 3\] is nan; all entries must be finite"):
        cluster_rows(x, None, 2)


def test_cupy_compiles_for_an_old_torch(monkeypatch):
    torch, cupy = pytest.importorskip("torch"), pytest.importorskip("cupy")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA GPU here")
    monkeypatch.delattr(torch.cuda, "_compile_kernel", raising=False)
    assert cupy.cuda.runtime.getDeviceCount()
    x = on_gpu(torch, np.random.default_rng(0).standard_normal((4, 900)))
    with torch.cuda.stream(torch.cuda.Stream()):
        check(cluster_rows(x, None, 9), x, None, 9)
