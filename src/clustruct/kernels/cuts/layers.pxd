from clustruct.kernels.numbers.intervals cimport ABOUT_ZERO, EXACT, INFINITY, layer_minima
