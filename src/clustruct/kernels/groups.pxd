from clustruct.kernels.intervals cimport (
    N_MOMENTS, interval_cost, interval_mean, moments_at, own_moments)
