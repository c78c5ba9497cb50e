"""K-means of numbers on a device has the answer of the host."""

import numpy as np
import pytest

from clustruct.grouping.device_kmeans import cluster_on_device
from clustruct.kernels.kmeans.kmeans1d import cluster_values

N = 3000


def normal(rng):
    return rng.standard_normal(N)


def far_away(rng):
    """Tight beside their distance from zero: moments about zero would lose all digits."""
    return 1e9 + rng.standard_normal(N)


VALUES = {
    "normal": normal,
    "far away": far_away,
    "heavy tails": lambda rng: rng.standard_cauchy(N),
    "many sizes": lambda rng: rng.exponential(size=N) ** 12,
    "many equal": lambda rng: np.round(rng.standard_normal(N), 1),
    "single precision": lambda rng: rng.standard_normal(N).astype(np.float32).astype(np.float64),
    "all equal": lambda rng: np.full(N, 0.1),
    "tiny": lambda rng: rng.standard_normal(N) * 1e-310,
    "huge": lambda rng: rng.standard_normal(N) * 1e300,
    "few": lambda rng: rng.standard_normal(5),
}


@pytest.fixture(params=("array_api_strict", "torch"))
def library(request):
    """A library of arrays."""
    return pytest.importorskip(request.param)


@pytest.mark.parametrize("n_clusters", [1, 2, 7, 130])
@pytest.mark.parametrize("kind", VALUES)
def test_labels_and_centers_are_those_of_the_host(kind, n_clusters, library):
    values = VALUES[kind](np.random.default_rng(0))
    labels, centers, sizes, inertia = cluster_values(values, None, n_clusters)
    there = cluster_on_device(library.asarray(values), n_clusters)
    np.testing.assert_array_equal(there[0], labels)
    np.testing.assert_allclose(there[1], centers, rtol=1e-15)
    np.testing.assert_array_equal(there[2], sizes)
    assert there[3] == inertia or there[3] == pytest.approx(inertia, rel=1e-13)
