"""The form in which loaders return data: scikit-learn's."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

__all__ = ["as_bunch"]


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
    hold integer codes, and in a frame they are marked as such.
    """
    names = list(feature_names)
    if not as_frame:
        return Bunch(
            data=data, target=target, feature_names=names, DESCR=description, frame=None, **others
        )
    frame = _frame(data, names, categorical)
    features = frame.copy()
    for name, column in {target_name: target, **others}.items():
        frame[name] = column
    return Bunch(
        data=features,
        target=frame[target_name],
        feature_names=names,
        DESCR=description,
        frame=frame,
        **{name: frame[name] for name in others},
    )


def _frame(data: NDArray[np.float64], names: list[str], categorical: Sequence[str]) -> Any:
    """The features as a pandas frame; pandas is needed by no one else, so it is imported here."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            "as_frame=True needs pandas, which is not installed. Install it, for example with "
            "`pip install pandas`, or leave as_frame=False."
        ) from error
    frame = pd.DataFrame(data, columns=names)
    for name in categorical:
        frame[name] = frame[name].astype("int64").astype("category")
    return frame
