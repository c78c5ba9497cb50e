"""Blocks of features, made from the columns that they came from."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.validation import check_is_fitted

from clustruct.estimators.features.grid import ALONE


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
    counts = encoder._n_features_outs
    names = getattr(step, "feature_names_in_", None)
    if names is None or len(names) != len(counts):
        names = [f"{part}__{j}" for j in range(len(counts))]
    names = [f"{part}__{name}" if name in taken else str(name) for name in names]
    return [name for name, count in zip(names, counts, strict=True) for _ in range(count)]
