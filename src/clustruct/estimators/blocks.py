"""From the arguments of an estimator to the constraint they stand for."""

from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clustruct.constraints import (
    BlockClustered,
    Clustered,
    FeatureConstraint,
    Free,
    SparseClustered,
)
from clustruct.kernels.kmeans1d import cluster_values
from clustruct.rows import Cluster

__all__ = ["choose_constraint"]

Labels = NDArray[np.intp]

ALONE = -1


def choose_constraint(
    n_features: int,
    n_clusters: int | Mapping[Any, int] | None,
    n_nonzero: int | None,
    blocks: ArrayLike | None,
    cluster: Cluster = cluster_values,
) -> FeatureConstraint:
    """The set that the weights are kept in.

    Parameters
    ----------
    n_features : int
    n_clusters : int, mapping or None
        None lets every feature have a weight of its own.
    n_nonzero : int or None
    blocks : array-like of shape (n_features,) or None
    cluster : callable
        Exact k-means of numbers, where that is fastest.

    Returns
    -------
    FeatureConstraint

    Raises
    ------
    ValueError
        If the arguments do not go together.
    """
    if blocks is not None:
        if n_nonzero is not None:
            raise ValueError(
                f"blocks and n_nonzero={n_nonzero} cannot be combined: no exact projection is "
                "known for both. Leave one of them None."
            )
        return _block_constraint(n_features, n_clusters, blocks)
    if isinstance(n_clusters, Mapping):
        raise ValueError(
            "n_clusters is a mapping, which needs blocks: one id for each feature. "
            "Give blocks, or an integer for n_clusters."
        )
    n_kept = n_features if n_nonzero is None else min(n_nonzero, n_features)
    if n_clusters is None or n_clusters >= n_kept:  # every weight may have a value of its own
        return Free() if n_kept == n_features else SparseClustered(None, n_kept)
    # Zero is no group: even where all weights may be nonzero, some may be zero as well.
    if n_nonzero is None:
        return Clustered(n_clusters, cluster)
    return SparseClustered(n_clusters, n_kept)


def _block_constraint(
    n_features: int, n_clusters: int | Mapping[Any, int] | None, blocks: ArrayLike
) -> FeatureConstraint:
    """Groups inside blocks, as many as asked for in all or for each."""
    ids = np.asarray(blocks)
    if ids.shape != (n_features,):
        raise ValueError(
            f"blocks has shape {ids.shape}, but X has {n_features} features. "
            "Give one id for each feature, -1 for those to be left alone."
        )
    if any(name is None or name != name for name in ids.tolist()):  # NaN differs from itself
        raise ValueError(
            "blocks holds missing ids (None or NaN). Give every feature an id, -1 for those to be "
            "left alone."
        )
    try:
        names, codes = np.unique(ids, return_inverse=True)
    except TypeError as error:
        raise ValueError(
            "blocks holds ids of several types, which cannot be sorted. Give all ids as integers "
            "or all as strings."
        ) from error
    if n_clusters is None:
        return Free()
    alone = np.array([name == ALONE or str(name) == str(ALONE) for name in names.tolist()])
    # Blocks in the order of their names, numbered without those left alone.
    numbers = np.where(alone, ALONE, np.cumsum(~alone) - 1)
    return BlockClustered(
        numbers[codes.reshape(-1)].astype(np.intp), _counts(names[~alone].tolist(), n_clusters)
    )


def _counts(names: list[Any], n_clusters: int | Mapping[Any, int]) -> int | Labels:
    """Groups in all, or for each block in the order of their names."""
    if not isinstance(n_clusters, Mapping):
        if n_clusters < len(names):
            raise ValueError(
                f"n_clusters={n_clusters} is less than the number of blocks, {len(names)}, and "
                "each block needs a group. Give a larger n_clusters, or fewer blocks."
            )
        return int(n_clusters)
    missing = [name for name in names if name not in n_clusters]
    unknown = [name for name in n_clusters if name not in names]
    if missing or unknown:
        raise ValueError(
            f"n_clusters must have one entry for each block {names!r:.80}; missing: "
            f"{missing!r:.80}, not a block {unknown!r:.80}. Mend the mapping."
        )
    counts: list[Any] = [n_clusters[name] for name in names]
    wrong = [c for c in counts if not isinstance(c, Integral) or c < 1]
    if wrong:
        raise ValueError(
            f"n_clusters holds {wrong[0]!r}; give each block an integer of at least 1."
        )
    return np.array(counts, dtype=np.intp)
