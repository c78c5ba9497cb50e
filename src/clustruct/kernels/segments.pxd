from libc.math cimport sqrt

from clustruct.kernels.intervals cimport moments_at, sweep
