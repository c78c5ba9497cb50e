# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The largest diagonal matrix below a positive semidefinite one.

Maximise ``sum v_i d_i`` over ``d >= 0`` with ``A - diag(d)`` positive semidefinite. The dual
problem is to minimise ``tr(A X)`` over positive semidefinite ``X`` with ``X_ii >= v_i``. With
``X = V V'`` and few columns of ``V`` it is solved one row of ``V`` at a time: given the others, and
with ``g_i = sum_(j != i) A_ij V_j``, the best row is ``-g_i`` scaled to the length
``max(sqrt(v_i), |g_i| / A_ii)``. Where all rows are at rest, ``A V = diag(d) V`` with

    d_i = A_ii - |g_i| / |V_i|,

and these are the solution (Burer and Monteiro; Wang, Chang and Kolter's mixing method). Rows that
are not yet at rest leave ``A - diag(d)`` slightly indefinite: callers have to correct ``d``.
"""

import cython
import numpy as np

if not cython.compiled:
    from math import sqrt


def balance(
    matrix: cython.double[:, ::1],
    vectors: cython.double[:, ::1],
    values: cython.double[::1],
    n_sweeps: cython.Py_ssize_t,
):
    """Sweep over the rows of ``V`` a number of times.

    Parameters
    ----------
    matrix : ndarray of float64, shape (m, m)
        ``A``, symmetric with a positive diagonal.
    vectors : ndarray of float64, shape (m, r)
        ``V``; changed in place.
    values : ndarray of float64, shape (m,)
        ``v > 0``.
    n_sweeps : int
        Number of sweeps.

    Returns
    -------
    ndarray of float64, shape (m,)
        ``d`` of the last sweep.
    """
    diagonal_array = np.zeros(matrix.shape[0])
    diagonal: cython.double[::1] = diagonal_array
    pull: cython.double[::1] = np.empty(vectors.shape[1])
    size: cython.double
    weight: cython.double
    with cython.nogil:
        for _ in range(n_sweeps):
            for i in range(matrix.shape[0]):
                pull[:] = 0.0
                for j in range(matrix.shape[0]):
                    weight = matrix[i, j] if j != i else 0.0
                    for c in range(vectors.shape[1]):
                        pull[c] += weight * vectors[j, c]
                size = 0.0
                for c in range(vectors.shape[1]):
                    size += pull[c] * pull[c]
                size = sqrt(size)
                length = max(sqrt(values[i]), size / matrix[i, i])
                diagonal[i] = matrix[i, i] - size / length
                if size > 0.0:
                    for c in range(vectors.shape[1]):
                        vectors[i, c] = -pull[c] * (length / size)
    return diagonal_array
