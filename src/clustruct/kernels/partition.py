# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Labels from thresholds."""

import cython
import numpy as np


def label_by_threshold(values: cython.const[cython.double][::1], thresholds: cython.double[::1]):
    """Number of thresholds at or below each value, and how many values have each number.

    Parameters
    ----------
    values : ndarray of float64, shape (n,)
    thresholds : ndarray of float64, shape (m,)
        Ascending.

    Returns
    -------
    labels : ndarray of intp, shape (n,)
    sizes : ndarray of intp, shape (m + 1,)
    """
    labels_array = np.empty(values.shape[0], dtype=np.intp)
    sizes_array = np.zeros(thresholds.shape[0] + 1, dtype=np.intp)
    labels: cython.Py_ssize_t[::1] = labels_array
    sizes: cython.Py_ssize_t[::1] = sizes_array
    n_thresholds: cython.Py_ssize_t = thresholds.shape[0]
    i: cython.Py_ssize_t
    base: cython.Py_ssize_t
    left: cython.Py_ssize_t
    half: cython.Py_ssize_t
    value: cython.double
    with cython.nogil:
        for i in range(values.shape[0]):
            value = values[i]
            base = 0
            left = n_thresholds
            # A bisection without branches: the processor cannot guess them for random values.
            while left > 0:
                half = (left + 1) // 2
                base = base + half if thresholds[base + half - 1] <= value else base
                left -= half
            labels[i] = base
            sizes[base] += 1
    return labels_array, sizes_array
