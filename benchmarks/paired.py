"""Differences on the same rows, in words."""

import numpy as np


def differences(ours: np.ndarray, theirs: np.ndarray) -> str:
    """Mean of paired differences with its standard error, and how often ours is larger."""
    apart = np.asarray(ours, dtype=float) - np.asarray(theirs, dtype=float)
    if apart.size < 2:
        return f"{apart.mean():+.3g}"
    error = apart.std(ddof=1) / np.sqrt(apart.size)
    return f"{apart.mean():+.3g} +- {error:.2g} (above on {(apart > 0).sum()} of {apart.size})"
