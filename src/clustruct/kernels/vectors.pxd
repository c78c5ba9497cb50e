from libc.math cimport ldexp, nextafter

from clustruct.kernels.chain cimport find_chain
from clustruct.kernels.groups cimport summarise
from clustruct.kernels.intervals cimport INFINITY, moments_everywhere
from clustruct.kernels.partition cimport Label, label_values
from clustruct.kernels.pricing cimport MOST_NODES, plain_error, priced_partition
from clustruct.kernels.sorting cimport DIGIT, merge_weights, scale_distinct, sort_bits
