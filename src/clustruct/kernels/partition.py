# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Labels from thresholds."""

import cython
import numpy as np

# So many thresholds are all compared with each value, which processors do for several values at a
# time; more are bisected.
FEW = cython.declare(cython.Py_ssize_t, 6)


def label_by_threshold(values: cython.const[cython.double][::1], thresholds: cython.double[::1]):
    """Number of thresholds at or below each value.

    Parameters
    ----------
    values : ndarray of float64, shape (n,)
    thresholds : ndarray of float64, shape (m,)
        Ascending.

    Returns
    -------
    labels : ndarray of intp, shape (n,)
    """
    labels_array = np.empty(values.shape[0], dtype=np.intp)
    labels: cython.Py_ssize_t[::1] = labels_array
    with cython.nogil:
        if thresholds.shape[0] <= FEW:
            _compare_all(values, thresholds, labels)
        else:
            _bisect(values, thresholds, labels)
    return labels_array


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _compare_all(
    values: cython.const[cython.double][::1],
    thresholds: cython.double[::1],
    labels: cython.Py_ssize_t[::1],
) -> cython.void:
    """Write the labels by comparing each value with all thresholds."""
    n: cython.Py_ssize_t = values.shape[0]
    first: cython.Py_ssize_t
    last: cython.Py_ssize_t
    k: cython.Py_ssize_t
    i: cython.Py_ssize_t
    threshold: cython.double
    # In pieces that stay in the first-level cache.
    for first in range(0, n, 1024):
        last = min(n, first + 1024)
        labels[first:last] = 0
        for k in range(thresholds.shape[0]):
            threshold = thresholds[k]
            for i in range(first, last):
                labels[i] += threshold <= values[i]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _bisect(
    values: cython.const[cython.double][::1],
    thresholds: cython.double[::1],
    labels: cython.Py_ssize_t[::1],
) -> cython.void:
    """Write the labels by a bisection without branches, which no processor could guess."""
    i: cython.Py_ssize_t
    base: cython.Py_ssize_t
    left: cython.Py_ssize_t
    half: cython.Py_ssize_t
    value: cython.double
    for i in range(values.shape[0]):
        value = values[i]
        base = 0
        left = thresholds.shape[0]
        while left > 0:
            half = (left + 1) // 2
            base = base + half if thresholds[base + half - 1] <= value else base
            left -= half
        labels[i] = base
