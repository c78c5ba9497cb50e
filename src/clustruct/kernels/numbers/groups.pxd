from clustruct.kernels.numbers.intervals cimport (
    N_MOMENTS, interval_cost, interval_mean, moments_at, own_moments, product_error, sum_error)

cdef void summarise(
    double[::1] values, double[::1] weights, double origin, double[:, ::1] table,
    Py_ssize_t block, long long[::1] edges, double[:, ::1] rows, double[::1] means,
    double[::1] costs) noexcept nogil
