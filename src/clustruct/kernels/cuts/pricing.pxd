from libc.math cimport cbrt, log, sqrt

from clustruct.kernels.numbers.intervals cimport INFINITY, error_of_costs, place_of_origin
from clustruct.kernels.cuts.least_costs cimport least_costs
from clustruct.kernels.cuts.mesh cimport knot_room, lay_mesh
from clustruct.kernels.cuts.polish cimport partition_cost, polish
from clustruct.kernels.cuts.proof cimport MOST_NODES, OPEN, PROVEN, TIED, prove

cdef bint priced_partition(
    double[::1] values, double[::1] weights, double origin, double[:, ::1] table,
    Py_ssize_t block, double[::1] mass, double[::1] first, double[::1] second,
    Py_ssize_t n_groups, double hint, double[::1] floats, int[::1] integers,
    double[:, ::1] rows, long long[::1] path) noexcept nogil

cdef double plain_error(
    double[::1] values, double[::1] weights, double origin, double[::1] mass, double[::1] first,
    double[::1] second) noexcept nogil
