# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Losses of rows with several classifiers: minus the logarithm of the own class's probability."""

import cython
import numpy as np

if cython.compiled:
    from cython.cimports.libc.math import exp, log1p
else:
    from math import exp, log1p


def class_losses(
    rows: cython.const[cython.double][:, ::1],
    codes: cython.const[cython.Py_ssize_t][::1],
    weights: cython.const[cython.double][:, :, ::1],
    intercepts: cython.const[cython.double][:, ::1],
    losses: cython.double[::1, :],
):
    """Fill `losses` (n, Q) with ``log sum_k exp(z_k) - z_own``, ``z = w_k' x + b_k``.

    Parameters
    ----------
    rows : ndarray of float64, shape (n, d)
    codes : ndarray of intp, shape (n,)
        Class of each row.
    weights : ndarray of float64, shape (Q, K, d)
    intercepts : ndarray of float64, shape (Q, K)
    losses : ndarray of float64, shape (n, Q), column by column
    """
    n_columns = rows.shape[1]
    n_classes = weights.shape[1]
    scores: cython.double[::1] = np.empty(n_classes)
    with cython.nogil:
        for q in range(weights.shape[0]):
            for i in range(rows.shape[0]):
                top: cython.Py_ssize_t = 0
                for k in range(n_classes):
                    # Two sums, as one addition has to wait for the other.
                    even: cython.double = intercepts[q, k]
                    odd: cython.double = 0.0
                    for half in range(n_columns // 2):
                        even += weights[q, k, 2 * half] * rows[i, 2 * half]
                        odd += weights[q, k, 2 * half + 1] * rows[i, 2 * half + 1]
                    if n_columns % 2:
                        even += weights[q, k, n_columns - 1] * rows[i, n_columns - 1]
                    scores[k] = even + odd
                    if scores[k] > scores[top]:
                        top = k
                others: cython.double = 0.0
                for k in range(n_classes):
                    if k != top:
                        others += exp(scores[k] - scores[top])
                losses[i, q] = log1p(others) + scores[top] - scores[codes[i]]
