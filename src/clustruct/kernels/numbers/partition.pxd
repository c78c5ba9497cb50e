ctypedef fused Label:
    unsigned char
    unsigned short
    Py_ssize_t

cdef void label_values(
    const double[::1] values, double[::1] thresholds, Label[::1] labels) noexcept nogil
