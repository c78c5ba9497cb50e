from clustruct.kernels.factors.levels cimport (
    CYCLIC, FALLING, INFINITY, NOMINAL, ORDINAL, RISING, ROUNDING)
from clustruct.kernels.factors.lines cimport Lines
