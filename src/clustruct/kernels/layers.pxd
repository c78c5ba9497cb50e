from clustruct.kernels.intervals cimport ABOUT_ZERO, EXACT, INFINITY, layer_minima
