from libc.math cimport exp
