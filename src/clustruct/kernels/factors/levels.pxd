cdef int NOMINAL, ORDINAL, RISING, FALLING, CYCLIC
cdef double INFINITY, ROUNDING

cdef class Levels:
    cdef Py_ssize_t n_levels, exponent, n_items, n_groups
    cdef double factor, inside
    cdef double[::1] x, w, e, value, weight, exposed
    cdef double[:, ::1] sums
    cdef Py_ssize_t[::1] place, order, segment, final

    cdef object _read(
        self, int kind, const double[::1] values, const double[::1] weights, const
        double[::1] exposures)
    cdef void _keep(self) noexcept nogil
    cdef bint _sort(self) noexcept nogil
    cdef void _merge_equal(self) noexcept nogil
    cdef void _pool(self) noexcept nogil
    cdef object _take(self, starts)
    cdef double _write(
        self, int kind, bint limited, const double[::1] values, Py_ssize_t[::1] labels,
        double[::1] centers) noexcept nogil
    cdef void _summarise(
        self, int kind, const double[::1] values, Py_ssize_t[::1] labels, double[::1]
        centers) noexcept nogil
    cdef void _number(self, int kind, const double[::1] values, double[::1] centers) noexcept nogil
    cdef Py_ssize_t _nearest(self, double value, double[::1] centers) noexcept nogil
    cdef bint _enough(self, double min_weight) noexcept nogil
