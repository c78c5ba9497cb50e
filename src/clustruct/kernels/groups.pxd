from clustruct.kernels.intervals cimport N_MOMENTS, interval_cost, moments_at
