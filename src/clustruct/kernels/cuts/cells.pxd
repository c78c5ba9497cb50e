from libc.math cimport ceil, sqrt

cdef int FIRST_CELLS, LEAST_CELLS, KNOTS

cdef Py_ssize_t first_cells(
    double[::1] values, Py_ssize_t n_groups, Py_ssize_t zero_group, long long middle,
    Py_ssize_t most, double[::1] need, long long[::1] knots, long long[::1] cuts,
    long long[::1] layout) noexcept nogil

cdef void place_slots(
    long long[::1] low, long long[::1] high, Py_ssize_t n, long long[::1] first_slot,
    long long[::1] positions) noexcept nogil

cdef Py_ssize_t choose_cells(
    long long[::1] low, long long[::1] high, long long[::1] owner, long long[::1] starts,
    double[::1] discount, double[::1] ahead, double[::1] behind, double limit,
    double[::1] worst, long long[::1] first_child) noexcept nogil

cdef void split_cells(
    long long[::1] low, long long[::1] high, long long[::1] owner, long long[::1] starts,
    long long[::1] first_child, long long[::1] layout) noexcept nogil
