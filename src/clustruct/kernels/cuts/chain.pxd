from clustruct.kernels.cuts.cells cimport (
    FIRST_CELLS, KNOTS, LEAST_CELLS, choose_cells, first_cells, place_slots, split_cells)
from clustruct.kernels.numbers.intervals cimport (
    ABOUT_ZERO, EXACT, FAST, INFINITY, interval_cost, layer_minima, moments_at)

cdef double NONE, TOO_MANY

cdef double find_chain(
    double[::1] values, double[::1] weights, double origin, double[:, ::1] table,
    Py_ssize_t block, Py_ssize_t n_groups, Py_ssize_t zero_group, long long middle, double gap,
    double bound, double cost_error, Py_ssize_t max_states, long long[::1] layout,
    long long[::1] spare, double[:, ::1] moments, double[::1] floats, long long[::1] integers,
    long long[::1] path, long long[::1] best) noexcept nogil
