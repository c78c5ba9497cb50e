"""Matrices whose entries are codes of a few bits."""

from numpy.typing import ArrayLike

from clustruct._arguments import as_count
from clustruct.grouping.matrices import cluster_matrix
from clustruct.grouping.projections import as_matrix, as_weights_of_matrix
from clustruct.results import QuantizedMatrix

MOST_BITS = 8  # codes are bytes


def quantize(
    W: ArrayLike,
    bits: int = 4,
    *,
    sample_weight: ArrayLike | None = None,
    group_size: int | None = None,
    n_jobs: int | None = None,
) -> QuantizedMatrix:
    """Replace the entries of each row of a matrix by codes into a codebook of its own.

    Each codebook is the best possible one: no other ``2**bits`` values give a smaller weighted sum
    of squared differences.

    Parameters
    ----------
    W : array-like of shape (n_rows, n_columns)
        Finite numbers: a NumPy array or a tensor of torch, of half, single or double precision.
    bits : int, default=4
        Bits of a code, from 1 to 8.
    sample_weight : array-like of shape (n_columns,) or (n_rows, n_columns), default=None
        How much each entry matters, such as the diagonal of the Fisher information; not negative,
        and some above zero in every row.
    group_size : int, default=None
        So many columns of a row share a codebook; None for all of them.
    n_jobs : int, default=None
        Number of threads; None for one on each processor. The result does not depend on it.

    Returns
    -------
    QuantizedMatrix
        Codes, codebooks and errors; its ``dequantize()`` gives the matrix back, with its few
        values.

    See Also
    --------
    kmeans_1d : The same groups with their sizes.

    Examples
    --------
    >>> import numpy as np
    >>> import clustruct as cs
    >>> W = np.random.default_rng(0).standard_normal((3, 1000)).astype(np.float32)
    >>> small = cs.quantize(W, bits=4)
    >>> small.n_bytes, W.nbytes
    (1692, 12000)
    >>> error = np.square(W - small.dequantize()).sum()
    >>> bool(np.isclose(error, small.error, rtol=1e-4))
    True
    """
    n_bits = as_count(bits, "bits", 1)
    if n_bits > MOST_BITS:
        raise ValueError(f"bits must be at most {MOST_BITS}, got {bits}. Codes are bytes.")
    matrix = as_matrix(W, "W")
    (found,) = cluster_matrix(
        matrix,
        (2**n_bits,),
        weights=as_weights_of_matrix(sample_weight),
        n_jobs=n_jobs,
        group_size=group_size,
    )
    return QuantizedMatrix(found.labels, found.centers, found.inertia, n_bits, group_size)
