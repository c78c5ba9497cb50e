cdef int EXACT, FAST, ABOUT_ZERO, N_MOMENTS
cdef double INFINITY

cdef void moments_at(
    double[::1] values, double[::1] weights, double origin, double[:, ::1] table,
    Py_ssize_t block, long long[::1] positions, double[:, ::1] out) noexcept nogil

cdef void moments_everywhere(
    double[::1] values, double[::1] weights, double origin, Py_ssize_t block,
    double[:, ::1] table, double[::1] mass, double[::1] first, double[::1] second) noexcept nogil

cdef void own_moments(
    double[::1] values, double[::1] weights, double about, Py_ssize_t first, Py_ssize_t last,
    double[:, ::1] out) noexcept nogil

cdef double interval_mean(
    double[:, ::1] table, Py_ssize_t i, Py_ssize_t j, double origin) noexcept nogil

cdef double product_error(double a, double b, double product) noexcept nogil

cdef double sum_error(double a, double b, double rounded) noexcept nogil

cdef double interval_cost(double[:, ::1] table, Py_ssize_t i, Py_ssize_t j) noexcept nogil

cdef void layer_minima(
    double[:, ::1] table, long long[::1] positions, long long[::1] slots, double[::1] base,
    Py_ssize_t row_first, Py_ssize_t row_last, Py_ssize_t column_first, Py_ssize_t column_last,
    bint forward, int measure, double noise, double gap,
    double[::1] best, long long[::1] best_column) noexcept nogil

cdef void sweep(
    double[:, ::1] table, double price, double noise, Py_ssize_t start, Py_ssize_t stop,
    double[:, ::1] best, int[::1] previous, int[::1] queue, int[::1] since) noexcept nogil

cdef Py_ssize_t place_of_origin(double[::1] values, double origin) noexcept nogil

cdef double error_of_costs(
    double[::1] values, double origin, double mass, double first, double second) noexcept nogil
