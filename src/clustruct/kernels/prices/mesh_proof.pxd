from libc.math cimport log

from clustruct.kernels.numbers.intervals cimport INFINITY
from clustruct.kernels.prices.least_costs cimport least_costs
from clustruct.kernels.prices.mesh cimport knot_room, lay_knots, lay_mesh, refine_mesh
from clustruct.kernels.prices.price_search cimport SAMPLE_OVERSHOOT, count_groups, search_price
from clustruct.kernels.prices.proof cimport OPEN, TIED, prove

cdef int prove_on_meshes(
    double[::1] values, double[::1] weights, double origin, double[:, ::1] table,
    Py_ssize_t block, double[::1] mass, double[::1] first, double[::1] second,
    Py_ssize_t n_groups, double price, double noise, double[::1] best, double[::1] spare,
    int[::1] previous, double[::1] leads, double[::1] costs, int[::1] places, int[::1] cells,
    int[::1] nodes, double[:, ::1] rows, long long[::1] path, double[::1] outcome) noexcept nogil

cdef double mesh_size(Py_ssize_t n, Py_ssize_t n_groups) noexcept nogil

cdef double proof_margin(
    Py_ssize_t n_groups, double price, double noise, double least) noexcept nogil

cdef void gather(
    double[::1] mass, double[::1] first, double[::1] second, int[::1] places,
    Py_ssize_t n_places, double[::1] moments) noexcept nogil

cdef void trace(
    int[::1] previous, int[::1] places, Py_ssize_t last, Py_ssize_t n_groups,
    long long[::1] path) noexcept nogil
