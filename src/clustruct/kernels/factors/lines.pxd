from libc.math cimport sqrt

from clustruct.kernels.numbers.intervals cimport moments_at, sweep
from clustruct.kernels.factors.levels cimport INFINITY, ROUNDING, Levels

cdef class Lines(Levels):
    cdef Py_ssize_t n_positions, n_rows
    cdef double[::1] mass, first, second, exposure, vertex, bottom, least
    cdef double[:, ::1] best, low, high, zeros, moments, pair
    cdef Py_ssize_t[::1] reach
    cdef Py_ssize_t[:, ::1] source, start
    cdef long long[::1] positions
    cdef int[::1] previous, queue, since

    cdef object _allow(self, Py_ssize_t n_rows)
    cdef void _add_up(self, Py_ssize_t laps) noexcept nogil
    cdef double _cost(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil
    cdef void _solve(
        self, Py_ssize_t first, Py_ssize_t last, double price, double min_weight, bint
        exempt, bint ascending) noexcept nogil
    cdef void _fill_layers(
        self, Py_ssize_t first, Py_ssize_t last, Py_ssize_t most, double min_weight,
        bint exempt, bint ascending) noexcept nogil
    cdef void _admit(self, Py_ssize_t first, Py_ssize_t last, double min_weight) noexcept nogil
    cdef void _fill_layer(
        self, Py_ssize_t base, Py_ssize_t row, Py_ssize_t first, Py_ssize_t last, double
        price, bint exempt, bint ascending) noexcept nogil
    cdef void _sweep(self, double price) noexcept nogil
    cdef bint _prune(self, Py_ssize_t first, Py_ssize_t last, double price) noexcept nogil
    cdef Py_ssize_t _compete(
        self, Py_ssize_t now, Py_ssize_t n, Py_ssize_t j, double level) noexcept nogil
    cdef Py_ssize_t _append(
        self, Py_ssize_t side, Py_ssize_t n, double low, double high, Py_ssize_t start) noexcept nogil
    cdef Py_ssize_t _cheapest(self, Py_ssize_t most, double price) noexcept nogil
    cdef void _trace(self, Py_ssize_t first, Py_ssize_t last, Py_ssize_t row) noexcept nogil
