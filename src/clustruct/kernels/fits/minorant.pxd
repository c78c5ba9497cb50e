from libc.math cimport sqrt
