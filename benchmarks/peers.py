"""Other packages for the same problem, each called in its fastest way, and a common judge."""

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Peer(NamedTuple):
    """A package, the call that is timed, how to read its labels, and how its time grows with n."""

    package: str
    call: Callable[[Floats, int], Any]
    labels: Callable[[Floats, Any], Any]
    growth: int = 1
    default: bool = True  # whether the call leaves the settings as they are


def _ckwrap(**settings: str) -> Callable[[Floats, int], Any]:
    return lambda x, q: import_module("ckwrap").ckmeans(x, q, **settings)


def _ckmeans_1d_dp(**settings: str) -> Callable[[Floats, int], Any]:
    return lambda x, q: import_module("ckmeans_1d_dp").ckmeans(x, q, **settings)


# "loglinear" is not the default of ckwrap and ckmeans-1d-dp, but often the faster setting.
# kmeans1d reads a list faster than an array; the conversion is part of its time.
# jenkspy returns the largest value of each group; the labels are made outside its time.
PEERS = {
    "ckwrap": Peer("ckwrap", _ckwrap(), lambda x, result: result.labels),
    "ckwrap, loglinear": Peer(
        "ckwrap", _ckwrap(method="loglinear"), lambda x, result: result.labels, default=False
    ),
    "ckmeans-1d-dp": Peer("ckmeans_1d_dp", _ckmeans_1d_dp(), lambda x, result: result.cluster),
    "ckmeans-1d-dp, loglinear": Peer(
        "ckmeans_1d_dp",
        _ckmeans_1d_dp(method="loglinear"),
        lambda x, result: result.cluster,
        default=False,
    ),
    "kmeans1d": Peer(
        "kmeans1d",
        lambda x, q: import_module("kmeans1d").cluster(x.tolist(), q),
        lambda x, result: result.clusters,
    ),
    "jenkspy": Peer(
        "jenkspy",
        lambda x, q: import_module("jenkspy").jenks_breaks(x, q),
        lambda x, breaks: np.searchsorted(breaks[1:-1], x),
        growth=2,
    ),
}


def inertia(x: Floats, labels: Any, n_clusters: int) -> float:
    """Sum of squared distances to the group means, by our own account and whatever was claimed."""
    labels = np.asarray(labels)
    if labels.shape != x.shape:
        raise ValueError(f"{labels.size} labels for {x.size} values")
    order = np.argsort(labels, kind="stable")
    cuts = np.flatnonzero(np.diff(labels[order])) + 1
    if cuts.size >= n_clusters:
        raise ValueError(f"{cuts.size + 1} groups where {n_clusters} were asked for")
    return math.fsum(_scatter(group) for group in np.split(x[order], cuts))


def _scatter(group: Floats) -> float:
    """Sum of squared deviations; the mean is taken near the group, so that no digits are lost."""
    apart = group - group[group.size // 2]
    apart -= apart.mean()
    apart -= apart.mean()
    return float(np.square(apart).sum())
