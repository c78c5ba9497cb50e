cdef double polish(
    double[::1] values, double origin, double[::1] mass, double[::1] first, double[::1] second,
    long long[::1] path, long long[::1] found, Py_ssize_t n_groups, double[::1] spare) noexcept nogil

cdef double partition_cost(
    double[::1] mass, double[::1] first, double[::1] second, long long[::1] path,
    Py_ssize_t n_groups) noexcept nogil
