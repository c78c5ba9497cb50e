from clustruct.kernels.intervals cimport (
    ABOUT_ZERO, EXACT, FAST, INFINITY, interval_cost, layer_minima, moments_at)
from libc.math cimport ceil, sqrt
