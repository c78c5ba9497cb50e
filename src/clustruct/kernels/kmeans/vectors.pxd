from libc.math cimport ldexp, nextafter

from clustruct.kernels.numbers.groups cimport summarise
from clustruct.kernels.numbers.intervals cimport INFINITY, moments_everywhere
from clustruct.kernels.numbers.partition cimport Label, label_values
from clustruct.kernels.prices.pricing cimport plain_error, priced_partition
from clustruct.kernels.prices.proof cimport MOST_NODES
from clustruct.kernels.numbers.sorting cimport DIGIT, merge_weights, scale_distinct, sort_bits
