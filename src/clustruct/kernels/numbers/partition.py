# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Edges of groups, and labels from thresholds."""

import cython
import numpy as np

# So many thresholds are all compared with each value, which processors do for several values at a
# time; more are bisected.
FEW = cython.declare(cython.Py_ssize_t, 8)
if not cython.compiled:
    Label = cython.fused_type(cython.uchar, cython.ushort, cython.Py_ssize_t)
INFINITY = cython.declare(cython.double, float("inf"))


def with_ends(inner: cython.longlong[::1], n: cython.longlong):
    """The inner boundaries of a partition of ``n`` values, between 0 and ``n``."""
    edges_array = np.empty(inner.shape[0] + 2, dtype=np.int64)
    edges: cython.longlong[::1] = edges_array
    edges[0] = 0
    edges[1 : inner.shape[0] + 1] = inner
    edges[inner.shape[0] + 1] = n
    return edges_array


def label_by_threshold(values: cython.const[cython.double][::1], thresholds: cython.double[::1]):
    """Number of thresholds, which ascend, at or below each value."""
    labels_array = np.empty(values.shape[0], dtype=np.intp)
    labels: cython.Py_ssize_t[::1] = labels_array
    with cython.nogil:
        label_values(values, thresholds, labels)
    return labels_array


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def label_values(
    values: cython.const[cython.double][::1], thresholds: cython.double[::1], labels: Label[::1]
) -> cython.void:
    """``label_by_threshold`` into given labels, which may be short integers."""
    if thresholds.shape[0] <= FEW:
        _compare_all(values, thresholds, labels)
    else:
        _bisect(values, thresholds, labels)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _compare_all(
    values: cython.const[cython.double][::1],
    thresholds: cython.double[::1],
    labels: Label[::1],
) -> cython.void:
    """Write the labels by comparing each value with all thresholds."""
    m: cython.Py_ssize_t = thresholds.shape[0]
    labels[:] = 0
    # Four thresholds at a time.
    for k in range(0, m, 4):
        first = thresholds[k]
        second = thresholds[k + 1] if k + 1 < m else INFINITY
        third = thresholds[k + 2] if k + 2 < m else INFINITY
        fourth = thresholds[k + 3] if k + 3 < m else INFINITY
        for i in range(values.shape[0]):
            value = values[i]
            label = labels[i]
            # Written so that compilers make it a few operations on vectors.
            label = label + 1 if first <= value else label
            label = label + 1 if second <= value else label
            label = label + 1 if third <= value else label
            label = label + 1 if fourth <= value else label
            labels[i] = label


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _bisect(
    values: cython.const[cython.double][::1],
    thresholds: cython.double[::1],
    labels: Label[::1],
) -> cython.void:
    """Write the labels by a bisection without branches, which no processor could guess."""
    most: cython.Py_ssize_t = 1
    while 2 * most <= thresholds.shape[0]:
        most *= 2
    rest = thresholds.shape[0] - most
    # The first step leaves a power of two, less one, of thresholds in question, so that all values
    # take the same steps.
    for i in range(values.shape[0]):
        value = values[i]
        base = rest + 1 if thresholds[rest] <= value else 0
        half = most // 2
        while half > 0:
            base = base + half if thresholds[base + half - 1] <= value else base
            half //= 2
        labels[i] = base
