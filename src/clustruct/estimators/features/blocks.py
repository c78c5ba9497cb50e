"""Blocks of features: made from the columns they came from, and turned into a constraint."""

from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.validation import check_is_fitted

from clustruct._typing import Labels
from clustruct.grouping.constraints import (
    BlockClustered,
    Clustered,
    FeatureConstraint,
    Free,
    SparseClustered,
)
from clustruct.grouping.rows import Cluster
from clustruct.kernels.kmeans1d import cluster_values

__all__ = ["choose_constraint", "column_blocks"]


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


# ---- From columns


def column_blocks(
    transformer: ColumnTransformer,
    *,
    together: str | Iterable[str] = (),
    alone: str | Iterable[str] = (),
) -> NDArray[np.object_]:
    """The block of each column that a fitted ``ColumnTransformer`` makes.

    Every part of the transformer is a block under its name; of a ``OneHotEncoder`` for several
    columns, each of these is a block under its own name.

    Parameters
    ----------
    transformer : ColumnTransformer
        Fitted. Its parts may be pipelines.
    together : str or iterable of str, default=()
        Names of parts that form one block, named after the first of them.
    alone : str or iterable of str, default=()
        Names of parts whose columns share no weights: each keeps its own.

    Returns
    -------
    ndarray of str, shape (n_columns,)
        For the parameter `blocks` of `FeatureClusterRegressor` and the like.

    Raises
    ------
    ValueError
        If it is no ``ColumnTransformer``, or has no part of a name that was given.

    See Also
    --------
    FeatureClusterRegressor : Groups features inside blocks.

    Examples
    --------
    >>> import clustruct as cs
    >>> from sklearn.compose import make_column_transformer
    >>> from sklearn.preprocessing import OneHotEncoder, StandardScaler
    >>> rows = [[1.0, "red", "S"], [2.0, "blue", "M"], [4.0, "red", "L"]]
    >>> columns = make_column_transformer((StandardScaler(), [0]), (OneHotEncoder(), [1, 2]))
    >>> cs.column_blocks(columns.fit(rows), alone=["standardscaler"]).tolist()
    ['-1', 'onehotencoder__0', 'onehotencoder__0', 'onehotencoder__1', ...]
    """
    if not isinstance(transformer, ColumnTransformer):
        raise ValueError(
            f"transformer must be a fitted ColumnTransformer, got {type(transformer).__name__}. "
            "Give the step of the pipeline that makes the columns."
        )
    check_is_fitted(transformer)
    joined, lonely = ([x] if isinstance(x, str) else list(x) for x in (together, alone))
    parts = transformer.output_indices_
    unknown = [name for name in (*joined, *lonely) if name not in parts]
    if unknown:
        raise ValueError(
            f"together and alone hold {unknown[0]!r}, which is no part of the transformer. Give "
            f"some of {list(parts)!r:.200}."
        )
    blocks = np.empty(max(place.stop for place in parts.values()), dtype=object)
    for name, place in parts.items():
        if name in lonely:
            blocks[place] = str(ALONE)
        elif name in joined:
            blocks[place] = joined[0]
        else:
            sources = _sources(name, transformer.named_transformers_.get(name), parts)
            blocks[place] = sources if len(sources) == place.stop - place.start else name
    return blocks


def _sources(part: str, step: Any, taken: Iterable[str]) -> list[str]:
    """For each column of one-hot encoded columns the one it came from; nothing for other parts."""
    encoder = step[-1] if isinstance(step, Pipeline) and len(step) else step
    if not isinstance(encoder, OneHotEncoder) or len(encoder.categories_) < 2:
        return []
    counts = [len(levels) for levels in encoder.categories_]
    if getattr(encoder, "infrequent_categories_", None) is not None:
        rare = [0 if levels is None else len(levels) for levels in encoder.infrequent_categories_]
        counts = [n - max(0, few - 1) for n, few in zip(counts, rare, strict=True)]
    if encoder.drop_idx_ is not None:
        dropped = [int(level is not None) for level in encoder.drop_idx_]
        counts = [n - gone for n, gone in zip(counts, dropped, strict=True)]
    names = getattr(step, "feature_names_in_", None)
    if names is None or len(names) != len(counts):
        names = [f"{part}__{j}" for j in range(len(counts))]
    names = [f"{part}__{name}" if name in taken else str(name) for name in names]
    return [name for name, count in zip(names, counts, strict=True) for _ in range(count)]
