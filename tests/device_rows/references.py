"""What k-means of rows is compared with: the kernel of the host, row by row."""

import numpy as np

from clustruct.arrays import to_host
from clustruct.kernels.kmeans.kmeans1d import cluster_values


def numbers(array):
    """Doubles of the host."""
    if str(array.dtype) == "torch.bfloat16":
        array = array.float()
    return np.ascontiguousarray(to_host(array), dtype=np.float64)


def solve_on_host(x, weights, n_clusters):
    """Labels, centres, sizes and inertia of each row."""
    if weights is None:
        return [cluster_values(values, None, n_clusters) for values in x]
    own = np.ascontiguousarray(np.broadcast_to(weights, x.shape))
    return [cluster_values(*row, n_clusters) for row in zip(x, own, strict=True)]


def check(result, x, weights, n_clusters, *, excess=1e-14, same_labels=True):
    """The result has the groups of the host, or others that cost as much up to `excess`."""
    x, weights = numbers(x), None if weights is None else numbers(weights)
    labels, centers, sizes, n_found, inertia = map(to_host, result)
    assert labels.shape == x.shape
    assert labels.dtype == (np.uint8 if n_clusters <= 256 else np.int32)
    references = solve_on_host(x, weights, n_clusters)
    for row, (labels_there, centers_there, sizes_there, least) in enumerate(references):
        q = len(centers_there)
        assert n_found[row] == q
        assert np.isnan(centers[row, q:]).all()
        assert not sizes[row, q:].any()
        np.testing.assert_array_equal(sizes[row, :q], np.bincount(labels[row], minlength=q))
        assert inertia[row] == least or abs(inertia[row] - least) <= excess * least
        if same_labels:
            np.testing.assert_array_equal(labels[row], labels_there)
            np.testing.assert_array_equal(sizes[row, :q], sizes_there)
            tiny = 1e-14 * np.abs(x[row]).max()
            np.testing.assert_allclose(centers[row, :q], centers_there, rtol=1e-13, atol=tiny)
        own = None if weights is None else np.broadcast_to(weights, x.shape)[row]
        with np.errstate(over="ignore", under="ignore"):
            apart = (x[row] - centers[row, labels[row]]) ** 2
            total = np.sum(apart if own is None else own * apart)
        assert total == inertia[row] or abs(total - inertia[row]) <= 1e-9 * total
