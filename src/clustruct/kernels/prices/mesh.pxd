cpdef Py_ssize_t knot_room(Py_ssize_t n_groups) noexcept nogil

cdef void lay_knots(
    double[::1] values, double origin, double[::1] mass, double[::1] first,
    long long[::1] path, Py_ssize_t n_groups, double price, int[::1] knots, int[::1] ends,
    double[::1] spreads) noexcept nogil

cdef Py_ssize_t lay_mesh(
    double[::1] values, double origin, double[::1] mass, double[::1] first,
    long long[::1] path, Py_ssize_t n_groups, double price, double grade, Py_ssize_t most,
    int[::1] knots, double[::1] spreads, int[::1] places, double[::1] discount,
    int[::1] cells) noexcept nogil

cdef Py_ssize_t refine_mesh(
    double[::1] values, double origin, double[::1] mass, double[::1] first, Py_ssize_t most,
    int[::1] knots, double[::1] spreads, int[::1] kept, Py_ssize_t n_kept, int[::1] places,
    double[::1] discount, int[::1] cells) noexcept nogil
