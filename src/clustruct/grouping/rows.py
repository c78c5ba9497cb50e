"""Grouping of the rows of a matrix by k-means (eq:kmeans), with or without a zero group.

One column is grouped exactly by the kernels. With more, k-means is hard, and k-means with several
starts is used, scikit-learn's if rows are many; with a limit on the number of nonzero rows as well,
rows are exchanged until the distance stops falling.
"""

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from clustruct._finite import require_finite
from clustruct._typing import Floats, Labels
from clustruct.kernels import COMPILED
from clustruct.kernels.kmeans import kmeans1d, kmeans_rows, sparse1d
from clustruct.kernels.numbers.sorting import scale_down

# Exact k-means of numbers: from values, weights and a number of groups to labels, centres, sizes
# and inertia.
Cluster = Callable[[Floats, Floats | None, int], tuple[Labels, Floats, Labels, float]]

# Label of the zero group.
ZERO = -1
# Starts of k-means, which has local optima: of scikit-learn's, and of the quicker kernel's.
N_STARTS, N_QUICK_STARTS = 10, 16
# Entries of rows times groups up to which the kernel takes less time than scikit-learn, whose calls
# take milliseconds and whose products are faster.
FEW_PRODUCTS = 1 << 17
# Between these, weighted squares have all their digits.
SAFE_SQUARES = (1e-280, 1e300)
# Far more exchanges than it takes: each lowers the distance.
MAX_EXCHANGES = 100


class Grouping(NamedTuple):
    """Labels (-1 for zero), the row of each group, and whether it is proven to be nearest."""

    labels: Labels
    centers: Floats
    exact: bool


def group_rows(
    rows: Floats,
    weights: Floats | None,
    n_groups: int | None,
    n_kept: int | None,
    cluster: Cluster = kmeans1d.cluster_values,
    n_starts: int | None = None,
) -> Grouping:
    """Group rows so that the squared distance to the rows of their groups is least.

    At most `n_groups` groups (None: no limit) and at most `n_kept` rows outside the zero group
    (None: no limit, and no zero group). `cluster` groups the rows of a single column; for more
    columns k-means without zero group has `n_starts`, or as many as are usual.
    """
    require_finite(rows, "a weight")  # the kernels take that for granted
    counted = np.ones(rows.shape[0], dtype=bool) if weights is None else weights > 0
    if (
        weights is not None
        and np.ptp(weights[counted]) == 0
        and (counted.all() or n_kept is not None)
    ):
        weights = None
    if n_kept is not None and not counted.all():
        inner = None if weights is None else weights[counted]
        found = group_rows(rows[counted], inner, n_groups, n_kept, cluster, n_starts)
        labels = np.full(rows.shape[0], ZERO, dtype=np.intp)
        labels[counted] = found.labels
        return found._replace(labels=labels)
    if rows.shape[1] == 0:  # all of them are equal
        labels = np.full(rows.shape[0], 0 if n_kept is None else ZERO, dtype=np.intp)
        return Grouping(labels, np.empty((int(n_kept is None), 0)), exact=True)
    if rows.shape[1] == 1 and n_groups is not None and (n_kept is None or weights is None):
        return _exact(rows[:, 0], weights, n_groups, n_kept, cluster)
    if n_groups is None:
        assert n_kept is not None
        return Grouping(*_distinct(rows, _largest_rows(rows, weights, n_kept)), exact=True)
    # Scaled, squares stay in the range of doubles.
    rows, exponent = scale_down(rows, np.abs(rows).max())
    if weights is not None:
        weights, _ = scale_down(weights, weights.max())
    if n_kept is None:
        labels, centers = _cluster(rows, weights, n_groups, n_starts)
    else:
        labels, centers = _sparse(rows, weights, n_groups, n_kept)
    return Grouping(labels, np.ldexp(centers, exponent), exact=False)


def _exact(
    values: Floats,
    weights: Floats | None,
    n_groups: int,
    n_kept: int | None,
    cluster: Cluster,
) -> Grouping:
    """Grouping of one column by the exact kernels."""
    values = np.ascontiguousarray(values)
    if n_kept is None:
        labels, centers, _, _ = cluster(values, weights, n_groups)
    else:
        labels, centers = sparse1d.project_sparse(values, n_groups, n_kept)
    return Grouping(labels, centers[:, None], exact=True)


def _sparse(
    rows: Floats, weights: Floats | None, n_groups: int, n_kept: int
) -> tuple[Labels, Floats]:
    """Labels and centres with at most ``n_kept`` rows outside the zero group."""
    largest = _largest_rows(rows, weights, n_kept)
    if not largest.any():
        return _distinct(rows, largest)
    starts = (largest, np.ones(rows.shape[0], dtype=bool))
    found = [_exchange(rows, weights, n_groups, n_kept, start) for start in starts]
    labels, centers, _ = min(found, key=lambda grouping: grouping[2])
    return labels, centers


def _cluster(
    rows: Floats, weights: Floats | None, n_groups: int, n_starts: int | None = None
) -> tuple[Labels, Floats]:
    """Labels and centres of weighted k-means, the groups in the order of their centres."""
    if rows.shape[1] == 1:
        values = np.ascontiguousarray(rows[:, 0])
        labels, centers, _, _ = kmeans1d.cluster_values(values, weights, n_groups)
        return labels, centers[:, None]
    if weights is not None and not weights.all():
        counted = weights > 0
        _, centers = _cluster(rows[counted], weights[counted], n_groups, n_starts)
        return _nearest(rows, centers)[0], centers
    if np.unique(rows[:, 0]).size <= n_groups:  # quickly told of most rows
        distinct, labels = np.unique(rows, axis=0, return_inverse=True)
        if distinct.shape[0] <= n_groups:
            return labels.reshape(-1), distinct
    if COMPILED and rows.size * n_groups <= FEW_PRODUCTS:
        # As many rows are tried for each centre as scikit-learn tries.
        shape = (n_starts or N_QUICK_STARTS, n_groups, 2 + int(np.log(n_groups)))
        uniforms = np.random.default_rng(0).random(shape)
        each = np.ones(rows.shape[0]) if weights is None else np.ascontiguousarray(weights)
        labels = kmeans_rows.cluster_rows(np.ascontiguousarray(rows), each, n_groups, uniforms)
        return _in_order(rows, weights, labels)
    # Imported here: a vector needs none of it, and it is slow to load.
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    # One thread: with more, the order of the sums and so the last digits depend on their number.
    with threadpool_limits(1), warnings.catch_warnings():
        # Rows that differ by rounding only count as one, and fewer groups are as good.
        warnings.filterwarnings("ignore", "Number of distinct clusters", ConvergenceWarning)
        search = KMeans(n_groups, n_init=n_starts or N_STARTS, random_state=0)
        labels = search.fit(rows, sample_weight=weights).labels_
    return _in_order(rows, weights, labels)


def _exchange(
    rows: Floats, weights: Floats | None, n_groups: int, n_kept: int, start: NDArray[np.bool_]
) -> tuple[Labels, Floats, float]:
    """Labels, centres and cost after clustering the rows in ``start`` and exchanging rows.

    Given the centres, the best rows to keep are those that lose most by being zero; given the rows,
    the best centres are their means. Both steps lower the cost, so they end.
    """
    _, centers = _cluster(rows[start], None if weights is None else weights[start], n_groups)
    sq_norms = _sq_norms(rows, weights)
    best: tuple[Labels, Floats, float] | None = None
    for _ in range(MAX_EXCHANGES):
        nearest, sq_distances = _nearest(rows, centers)
        gains = sq_norms - (sq_distances if weights is None else weights * sq_distances)
        kept = _largest(gains, n_kept)
        labels = np.full(rows.shape[0], ZERO, dtype=np.intp)
        if not kept.any():
            return labels, centers[:0], float(sq_norms.sum())
        labels[kept], centers = _in_order(
            rows[kept], None if weights is None else weights[kept], nearest[kept]
        )
        moved = rows.copy()
        moved[kept] -= centers[labels[kept]]
        cost = float(_sq_norms(moved, weights).sum())
        if best is not None and not cost < best[2]:
            break
        best = labels, centers, cost
    assert best is not None
    return best


def _in_order(rows: Floats, weights: Floats | None, labels: Labels) -> tuple[Labels, Floats]:
    """Number the groups in use by the lexicographic order of their means; return these as well."""
    used, labels = np.unique(labels, return_inverse=True)
    totals = np.bincount(labels, weights, minlength=used.shape[0])
    columns = [column if weights is None else weights * column for column in rows.T]
    sums = np.stack([np.bincount(labels, column) for column in columns], axis=1)
    centers = sums / totals[:, None]
    order = np.lexsort(centers.T[::-1])
    return np.argsort(order)[labels], centers[order]


def _nearest(rows: Floats, centers: Floats) -> tuple[Labels, Floats]:
    """Index of the nearest centre of each row, and the squared distance to it."""
    sq_distances = np.stack([np.square(rows - center).sum(axis=1) for center in centers], axis=1)
    labels = sq_distances.argmin(axis=1)
    return labels, sq_distances[np.arange(rows.shape[0]), labels]


def _largest(scores: Floats, n_kept: int) -> NDArray[np.bool_]:
    """Mask of the ``n_kept`` largest positive scores, the first ones among equals."""
    mask = np.zeros(scores.shape[0], dtype=bool)
    mask[np.argsort(-scores, kind="stable")[:n_kept]] = True
    return mask & (scores > 0)


def _largest_rows(rows: Floats, weights: Floats | None, n_kept: int) -> NDArray[np.bool_]:
    """Mask of the ``n_kept`` rows of the largest weighted norms, but for zeros.

    Where a square may be out of range, norms are mantissas and exponents.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        plain = _sq_norms(rows, weights)
    least, largest = SAFE_SQUARES
    if plain.max() < largest and not rows[plain < least].any():
        return _largest(plain, n_kept)
    exponents: NDArray[np.integer] = np.frexp(np.abs(rows).max(axis=1))[1]
    norms = np.square(np.ldexp(rows, -exponents[:, None])).sum(axis=1)
    exponents = 2 * exponents
    if weights is not None:
        mantissas, more = np.frexp(weights)
        norms, exponents = norms * mantissas, exponents + more
    norms, more = np.frexp(norms)
    exponents = np.where(norms > 0.0, exponents + more, np.iinfo(np.int32).min)
    mask = np.zeros(rows.shape[0], dtype=bool)
    mask[np.lexsort((-norms, -exponents.astype(np.int64)))[:n_kept]] = True
    return mask & (norms > 0.0)


def _distinct(rows: Floats, kept: NDArray[np.bool_]) -> tuple[Labels, Floats]:
    """Labels that give each distinct row among the kept ones a group of its own."""
    labels = np.full(rows.shape[0], ZERO, dtype=np.intp)
    centers, inverse = np.unique(rows[kept], axis=0, return_inverse=True)
    labels[kept] = inverse.reshape(-1)
    return labels, centers


def _sq_norms(rows: Floats, weights: Floats | None) -> Floats:
    """Weighted squared norm of each row."""
    norms: Floats = np.square(rows).sum(axis=1)
    return norms if weights is None else weights * norms


def group_totals(values: Floats, labels: Labels, n_groups: int) -> Floats:
    """``Z' v``: the sum of the values of each group's members."""
    # The label -1 is counted first, and left out.
    totals = np.bincount(labels + 1, values, minlength=n_groups + 1)[1:]
    return totals.astype(np.float64, copy=False)


def spread(values: Floats, labels: Labels) -> Floats:
    """``Z V``: each row gets the values of its group, or zeros where the label is -1."""
    spread: Floats = np.concatenate([values, np.zeros((1, values.shape[1]))])[labels]
    return spread


def assignment(labels: Labels, n_groups: int) -> sparse.csr_matrix:
    """``Z``, with a row of zeros where the label is -1."""
    kept = labels >= 0
    pointers = np.concatenate([[0], np.cumsum(kept)])
    ones = np.ones(int(pointers[-1]))
    return sparse.csr_matrix((ones, labels[kept], pointers), shape=(labels.shape[0], n_groups))
