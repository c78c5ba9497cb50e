from libc.math cimport cbrt, log, sqrt

from clustruct.kernels.numbers.intervals cimport INFINITY
from clustruct.kernels.prices.least_costs cimport least_costs

cdef double OVERSHOOT
cdef double SAMPLE_OVERSHOOT

cdef Py_ssize_t sample_positions(
    double[::1] values, Py_ssize_t size, int[::1] places) noexcept nogil

cdef double dense_price(
    double[::1] values, double[::1] mass, int[::1] places, Py_ssize_t n_places,
    Py_ssize_t n_groups) noexcept nogil

cdef bint search_price(
    double[::1] mass, double[::1] first, double[::1] second, Py_ssize_t n, Py_ssize_t n_groups,
    double price, double overshoot, double noise, double[::1] best, int[::1] previous,
    double[::1] leads, double[::1] costs, double[::1] outcome) noexcept nogil

cdef Py_ssize_t count_groups(int[::1] previous, Py_ssize_t n) noexcept nogil
