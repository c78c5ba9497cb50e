# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Sorting of values together with their weights.

The exact one-dimensional kernels need sorted values but never the permutation that sorts them, so
the values are sorted directly (the weights travelling along) by a radix sort on their bit patterns.
It makes no indirect access, and beats a comparison ``argsort`` several times over.
"""

import math

import cython
import numpy as np

# Below this size the histograms cost more than NumPy's comparison sort does.
SMALL = 2048

# A 64-bit key has six digits of eleven bits, the last of nine. The leading ones, three for arrays
# shorter than LONG and four for others, tell most values apart, and an insertion sort settles the
# few that they do not.
N_DIGITS = 6
NO_LOADS = np.empty(0)
LONG = cython.declare(cython.Py_ssize_t, 1 << 17)


def sort_values(values, weights=None):
    """Return fresh arrays: the values in ascending order and their weights (or None).

    Parameters
    ----------
    values : ndarray of float64, shape (n,)
        Finite values; left as they are.
    weights : ndarray of float64, shape (n,), or None
        Weights that follow their values.

    Returns
    -------
    sorted_values : ndarray of float64, shape (n,)
    sorted_weights : ndarray of float64, shape (n,), or None
    """
    n = values.shape[0]
    if not cython.compiled or n < SMALL:
        if weights is None:
            return np.sort(values), None
        order = np.argsort(values, kind="stable")
        return values[order], weights[order]
    sorted_values, sorted_weights = np.empty(n), np.empty(0 if weights is None else n)
    radix_sort(
        values.view(np.uint64),
        NO_LOADS if weights is None else weights,
        sorted_values.view(np.uint64),
        sorted_weights,
    )
    return sorted_values, (None if weights is None else sorted_weights)


def radix_sort(
    values: cython.const[cython.ulonglong][::1],
    weights: cython.const[cython.double][::1],
    sorted_values: cython.ulonglong[::1],
    sorted_weights: cython.double[::1],
):
    """Sort the bit patterns of doubles with their weights, if there are any."""
    n: cython.Py_ssize_t = values.shape[0]
    side: cython.Py_ssize_t
    first_leading: cython.Py_ssize_t = 3 if n < LONG else 2
    keys: cython.ulonglong[:, ::1] = np.empty((2, n), dtype=np.uint64)
    loads: cython.double[:, ::1] = np.empty((2, weights.shape[0]))
    counts: cython.longlong[:, ::1] = np.zeros((N_DIGITS, 2048), dtype=np.int64)
    with cython.nogil:
        _to_keys(values, keys)
        loads[0, :] = weights
        _count_leading(keys, counts)
        side = _sort_by_digits(keys, loads, counts, 0, first_leading)
        if not _insertion_sort(keys, loads, side):
            # The leading digits say too little: start again from the last one.
            counts[:, :] = 0
            if side == 1:
                keys[0, :] = keys[1, :]
                loads[0, :] = loads[1, :]
            _count_leading(keys, counts)
            _count_trailing(keys, counts)
            side = _sort_by_digits(keys, loads, counts, 0, 0)
        _from_keys(keys[side], sorted_values)
        sorted_weights[:] = loads[side]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _to_keys(
    values: cython.const[cython.ulonglong][::1], keys: cython.ulonglong[:, ::1]
) -> cython.void:
    """Turn the bit patterns of doubles into keys that sort like the doubles."""
    i: cython.Py_ssize_t
    sign: cython.ulonglong = 1
    sign <<= 63
    for i in range(values.shape[0]):
        # Negative numbers sort in reverse of their bits, and before the positive ones.
        keys[0, i] = ~values[i] if values[i] & sign else values[i] | sign


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _count_leading(keys: cython.ulonglong[:, ::1], counts: cython.longlong[:, ::1]) -> cython.void:
    """Count the values of the four leading digits."""
    i: cython.Py_ssize_t
    key: cython.ulonglong
    for i in range(keys.shape[1]):
        key = keys[0, i]
        counts[2, (key >> 22) & 2047] += 1
        counts[3, (key >> 33) & 2047] += 1
        counts[4, (key >> 44) & 2047] += 1
        counts[5, key >> 55] += 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _count_trailing(keys: cython.ulonglong[:, ::1], counts: cython.longlong[:, ::1]) -> cython.void:
    """Count the values of the two trailing digits."""
    i: cython.Py_ssize_t
    for i in range(keys.shape[1]):
        counts[0, keys[0, i] & 2047] += 1
        counts[1, (keys[0, i] >> 11) & 2047] += 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _sort_by_digits(
    keys: cython.ulonglong[:, ::1],
    loads: cython.double[:, ::1],
    counts: cython.longlong[:, ::1],
    side: cython.Py_ssize_t,
    first_digit: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Stable passes over the digits from ``first_digit`` up; returns the row of the result."""
    n: cython.Py_ssize_t = keys.shape[1]
    loaded: cython.bint = loads.shape[1] > 0
    digit: cython.Py_ssize_t
    value: cython.Py_ssize_t
    i: cython.Py_ssize_t
    place: cython.longlong
    count: cython.longlong
    shift: cython.int
    key: cython.ulonglong
    for digit in range(first_digit, counts.shape[0]):
        shift = 11 * digit
        if counts[digit, (keys[side, 0] >> shift) & 2047] == n:
            continue  # all keys share this digit
        place = 0
        for value in range(counts.shape[1]):
            count = counts[digit, value]
            counts[digit, value] = place
            place += count
        for i in range(n):
            key = keys[side, i]
            value = (key >> shift) & 2047
            place = counts[digit, value]
            counts[digit, value] = place + 1
            keys[1 - side, place] = key
            if loaded:
                loads[1 - side, place] = loads[side, i]
        side = 1 - side
    return side


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _insertion_sort(
    keys: cython.ulonglong[:, ::1], loads: cython.double[:, ::1], side: cython.Py_ssize_t
) -> cython.bint:
    """Finish nearly sorted keys; False, with all keys still there, if that takes too many moves."""
    n: cython.Py_ssize_t = keys.shape[1]
    loaded: cython.bint = loads.shape[1] > 0
    moves_left: cython.Py_ssize_t = 2 * n
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    key: cython.ulonglong
    load: cython.double = 0.0
    for i in range(1, n):
        if keys[side, i - 1] <= keys[side, i]:
            continue
        key = keys[side, i]
        if loaded:
            load = loads[side, i]
        j = i
        while j > 0 and keys[side, j - 1] > key:
            keys[side, j] = keys[side, j - 1]
            if loaded:
                loads[side, j] = loads[side, j - 1]
            j -= 1
        keys[side, j] = key
        if loaded:
            loads[side, j] = load
        moves_left -= i - j
        if moves_left < 0:
            return False
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _from_keys(keys: cython.ulonglong[::1], values: cython.ulonglong[::1]) -> cython.void:
    """Turn keys back into the bit patterns of doubles."""
    i: cython.Py_ssize_t
    sign: cython.ulonglong = 1
    sign <<= 63
    for i in range(keys.shape[0]):
        values[i] = keys[i] ^ sign if keys[i] & sign else ~keys[i]


def merge_ties(values: cython.double[::1], weights: cython.double[::1]):
    """Distinct ones of sorted values, with the sums of their weights.

    Empty ``weights`` stand for weights of one; they stay empty when all values are distinct.
    """
    n: cython.Py_ssize_t = values.shape[0]
    weighted: cython.bint = weights.shape[0] > 0
    n_distinct: cython.Py_ssize_t = 1
    i: cython.Py_ssize_t
    last: cython.Py_ssize_t = 0
    with cython.nogil:
        for i in range(1, n):
            n_distinct += values[i] != values[i - 1]
    if n_distinct == n:
        return np.asarray(values), np.asarray(weights)
    distinct: cython.double[::1] = np.empty(n_distinct)
    sums: cython.double[::1] = np.empty(n_distinct)
    with cython.nogil:
        distinct[0] = values[0]
        sums[0] = weights[0] if weighted else 1.0
        for i in range(1, n):
            if values[i] != values[i - 1]:
                last += 1
                distinct[last] = values[i]
                sums[last] = 0.0
            sums[last] += weights[i] if weighted else 1.0
    return np.asarray(distinct), np.asarray(sums)


def scale_down(array, largest):
    """The array over the power of two just above ``largest``, and the exponent of that power."""
    exponent = math.frexp(largest)[1]
    # In two steps, because the power itself may be out of range.
    scaled = array * math.ldexp(1.0, -(exponent // 2))
    scaled *= math.ldexp(1.0, exponent // 2 - exponent)
    return scaled, exponent
