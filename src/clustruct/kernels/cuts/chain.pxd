from clustruct.kernels.cuts.cells cimport (
    FIRST_CELLS, KNOTS, LEAST_CELLS, choose_cells, first_cells, place_slots, split_cells)
from clustruct.kernels.numbers.intervals cimport (
    ABOUT_ZERO, EXACT, FAST, INFINITY, interval_cost, layer_minima, moments_at)

cdef double NONE, TOO_MANY
