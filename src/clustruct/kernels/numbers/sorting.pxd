cdef int DIGIT

cdef void sort_bits(
    const long long[::1] bits, const double[::1] loads, double[::1] sorted_values,
    long long[::1] sorted_bits, double[::1] sorted_loads, long long[::1] spare_bits,
    double[::1] spare_loads, long long[::1] counts) noexcept nogil

cdef Py_ssize_t scale_distinct(
    double[::1] values, double factor, double factor_too, double[::1] distinct) noexcept nogil

cdef void merge_weights(
    double[::1] values, double[::1] weights, double factor, double factor_too,
    double[::1] distinct, double[::1] sums, long long[::1] starts) noexcept nogil
