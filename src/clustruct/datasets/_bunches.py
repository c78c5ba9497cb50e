"""Data sets in scikit-learn's form, and the documentation that loaders share."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from clustruct._docs import documented

FOLDER = """
data_home : str or path-like
    Folder to look in; None for the one that the environment variable ``CLUSTRUCT_DATA`` names, and
    the user's cache. There is no public source to download the file from.
return_X_y : bool
    Whether to return ``(data, target)`` only.
as_frame : bool
    Whether to return pandas objects, and all columns together as ``frame``.
"""
DOWNLOAD = """
data_home : str or path-like
    Folder to look in and to download to; None for the one that the environment variable
    ``CLUSTRUCT_DATA`` names, and the user's cache.
download_if_missing : bool
    Whether to download the file if it is in none of these folders.
"""

loader = documented((FOLDER,))
downloader = documented((FOLDER, DOWNLOAD))


def as_bunch(
    data: NDArray[np.float64],
    target: NDArray[Any],
    feature_names: Sequence[str],
    target_name: str,
    description: str,
    as_frame: bool,
    categorical: Sequence[str] = (),
    **others: NDArray[Any],
) -> Bunch:
    """A data set in scikit-learn's form.

    ``others`` are columns that are neither feature nor target. The features named ``categorical``
    hold integer codes; in a frame they are categorical columns.
    """
    names, frame = list(feature_names), None
    if as_frame:
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "as_frame=True needs pandas, which is not installed. Install it, for example with "
                "`pip install pandas`, or leave as_frame=False."
            ) from error
        features = pd.DataFrame(data, columns=names)
        for name in categorical:
            features[name] = features[name].astype("int64").astype("category")
        frame = features.assign(**{target_name: target}, **others)
        data, target = features, frame[target_name]
        others = {name: frame[name] for name in others}
    return Bunch(
        data=data, target=target, feature_names=names, DESCR=description, frame=frame, **others
    )
