from clustruct.kernels.numbers.intervals cimport error_of_costs, place_of_origin
from clustruct.kernels.prices.mesh cimport knot_room
from clustruct.kernels.prices.mesh_proof cimport (
    gather, mesh_size, proof_margin, prove_on_meshes, trace,
)
from clustruct.kernels.prices.price_search cimport (
    OVERSHOOT, SAMPLE_OVERSHOOT, dense_price, sample_positions, search_price,
)
from clustruct.kernels.prices.proof cimport MOST_NODES, OPEN, PROVEN, prove

cdef bint priced_partition(
    double[::1] values, double[::1] weights, double origin, double[:, ::1] table,
    Py_ssize_t block, double[::1] mass, double[::1] first, double[::1] second,
    Py_ssize_t n_groups, double hint, double[::1] floats, int[::1] integers,
    double[:, ::1] rows, long long[::1] path) noexcept nogil

cdef double plain_error(
    double[::1] values, double[::1] weights, double origin, double[::1] mass, double[::1] first,
    double[::1] second) noexcept nogil
