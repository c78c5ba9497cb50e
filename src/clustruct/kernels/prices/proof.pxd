from clustruct.kernels.numbers.intervals cimport INFINITY, interval_cost, moments_at

cdef int MOST_NODES
cdef int TIED
cdef int OPEN
cdef int PROVEN

cdef int prove(
    double[::1] values, double[::1] weights, double origin, double[:, ::1] table,
    Py_ssize_t block, double[::1] mass, double[::1] first, double[::1] second, Py_ssize_t n,
    Py_ssize_t n_groups, double price, double margin, double[::1] best, int[::1] previous,
    int[::1] places, double[::1] discount, double[:, ::1] rows, double[::1] spare, int[::1] nodes,
    long long[::1] path) noexcept nogil
