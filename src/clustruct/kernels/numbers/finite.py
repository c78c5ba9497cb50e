# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Whether numbers are finite, in one pass without temporary arrays or threads."""

import cython
import numpy as np


def all_finite(values: cython.const[cython.double][::1]):
    """Whether no entry is infinite or not a number."""
    if not cython.compiled:
        return bool(np.isfinite(values).all())
    n: cython.Py_ssize_t = values.shape[0]
    # Zero times a finite number is zero. Four sums, so that none has to wait for the one before.
    a: cython.double = 0.0
    b: cython.double = 0.0
    c: cython.double = 0.0
    d: cython.double = 0.0
    with cython.nogil:
        for i in range(0, n - 3, 4):
            a += 0.0 * values[i]
            b += 0.0 * values[i + 1]
            c += 0.0 * values[i + 2]
            d += 0.0 * values[i + 3]
        for i in range(n - n % 4, n):
            a += 0.0 * values[i]
    return a + b + c + d == 0.0
