# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Look-ups and sums by the levels of a factor, without its one-hot matrix.

A factor is an array of integer codes, one for each row. Codes are trusted: they are at least zero
and less than the number of rows of the table.
"""

import cython

Code = cython.fused_type(cython.uchar, cython.ushort, cython.int)


def add_by_level(
    codes: cython.const[Code][::1],
    table: cython.const[cython.double][:, ::1],
    sums: cython.double[:, ::1],
):
    """Add to each row of ``sums`` the row of the table that its code names."""
    with cython.nogil:
        if sums.shape[1] == 1:
            for i in range(codes.shape[0]):
                sums[i, 0] += table[codes[i], 0]
        else:
            for i in range(codes.shape[0]):
                for k in range(sums.shape[1]):
                    sums[i, k] += table[codes[i], k]


def sum_by_level(
    codes: cython.const[Code][::1],
    rows: cython.const[cython.double][:, ::1],
    sums: cython.double[:, ::1],
):
    """Add each row to the row of ``sums`` that its code names."""
    with cython.nogil:
        if sums.shape[1] == 1:
            for i in range(codes.shape[0]):
                sums[codes[i], 0] += rows[i, 0]
        else:
            for i in range(codes.shape[0]):
                for k in range(sums.shape[1]):
                    sums[codes[i], k] += rows[i, k]


def sum_by_pair(
    codes: cython.const[Code][::1],
    others: cython.const[Code][::1],
    weights: cython.const[cython.double][::1],
    table: cython.double[:, ::1],
):
    """Add the weight of each row to the cell of the table that its two codes name."""
    with cython.nogil:
        for i in range(codes.shape[0]):
            table[codes[i], others[i]] += weights[i]
