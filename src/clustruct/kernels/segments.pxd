from clustruct.kernels.levels cimport (
    CYCLIC, FALLING, INFINITY, NOMINAL, ORDINAL, RISING, ROUNDING)
from clustruct.kernels.lines cimport Lines
