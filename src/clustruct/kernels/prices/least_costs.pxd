from clustruct.kernels.numbers.intervals cimport INFINITY

cdef void least_costs(
    double[::1] mass, double[::1] first, double[::1] second, Py_ssize_t n, double price,
    double noise, double[::1] discount, double[::1] best, int[::1] previous, double[::1] leads,
    double[::1] costs) noexcept nogil
