# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Sums of the columns of each group, for compressed sparse matrices."""

import cython

Real = cython.fused_type(cython.float, cython.double)
Index = cython.fused_type(cython.int, cython.longlong)


def sum_columns_by_row(
    data: cython.const[Real][::1],
    indices: cython.const[Index][::1],
    pointers: cython.const[Index][::1],
    labels: cython.const[cython.Py_ssize_t][::1],
    sums: cython.double[:, ::1],
):
    """Add to ``sums[i, q]`` the entries of row ``i`` whose column has label ``q``.

    The matrix is in compressed rows; the label -1 is for no group.
    """
    place: cython.Py_ssize_t
    with cython.nogil:
        for i in range(sums.shape[0]):
            for place in range(pointers[i], pointers[i + 1]):
                label = labels[indices[place]]
                if label >= 0:
                    sums[i, label] += data[place]


def sum_columns_by_column(
    data: cython.const[Real][::1],
    indices: cython.const[Index][::1],
    pointers: cython.const[Index][::1],
    labels: cython.const[cython.Py_ssize_t][::1],
    sums: cython.double[:, ::1],
):
    """Do the same for a matrix in compressed columns."""
    place: cython.Py_ssize_t
    with cython.nogil:
        for j in range(labels.shape[0]):
            label = labels[j]
            if label >= 0:
                for place in range(pointers[j], pointers[j + 1]):
                    sums[indices[place], label] += data[place]
