"""Groups of numbers, and points with few distinct values."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustruct._html import table
from clustruct.results.tables import group_rows

__all__ = ["Clustering1D", "Projection"]


@dataclass(frozen=True, eq=False)
class Clustering1D:
    """Groups of numbers, as found by `kmeans_1d`.

    Attributes
    ----------
    labels : ndarray of int, shape (n,)
        Group of each number; groups are numbered in the order of their centres.
    centers : ndarray of float, shape (q,)
        Weighted mean of each group, ascending.
    sizes : ndarray of int, shape (q,)
        How many numbers each group holds; none is empty.
    inertia : float
        Weighted sum of squared distances of the numbers to their centres.

    See Also
    --------
    kmeans_1d : The function that returns it.

    Examples
    --------
    >>> import clustruct as cs
    >>> groups = cs.kmeans_1d([1.0, 9.0, 2.0, 8.0], 2)
    >>> groups.centers[groups.labels].tolist()
    [1.5, 8.5, 1.5, 8.5]
    """

    labels: NDArray[np.intp]
    centers: NDArray[np.float64]
    sizes: NDArray[np.intp]
    inertia: float

    def _repr_html_(self) -> str:
        title = f"{self.labels.size} numbers in {self.centers.size} groups, inertia"
        rows = list(group_rows(self.centers, self.sizes))
        return table(f"{title} {self.inertia:.4g}", ("group", "center", "size"), rows)


@dataclass(frozen=True, eq=False)
class Projection:
    """Nearest point of a set of clustered vectors or matrices, as found by `project_clustered`.

    Attributes
    ----------
    point : ndarray of float, shape (d,) or (d, p)
        The projection, with the shape of what was projected.
    labels : ndarray of int, shape (d,)
        Group of each entry or row, -1 for the zero group.
    centers : ndarray of float, shape (q,) or (q, p)
        Value of each group; entry ``i`` of the point is ``centers[labels[i]]``, or zero.
    sq_distance : float
        Weighted squared distance between the point and what was projected.
    exact : bool
        Whether the point is proven to be a nearest one.

    See Also
    --------
    project_clustered : The function that returns it.

    Examples
    --------
    >>> import clustruct as cs
    >>> nearest = cs.project_clustered([1.0, 0.1, 1.2], 1, n_nonzero=2)
    >>> nearest.point.tolist(), nearest.labels.tolist(), nearest.exact
    ([1.1, 0.0, 1.1], [0, -1, 0], True)
    """

    point: NDArray[Any]
    labels: NDArray[np.intp]
    centers: NDArray[Any]
    sq_distance: float
    exact: bool

    def _repr_html_(self) -> str:
        proof = "nearest point" if self.exact else "near point"
        title = f"{proof}, squared distance {self.sq_distance:.4g}"
        sizes = np.bincount(self.labels[self.labels >= 0], minlength=len(self.centers))
        rows = list(group_rows(self.centers, sizes))
        if (self.labels < 0).any():
            rows.append(("zero", 0.0, int((self.labels < 0).sum())))
        return table(title, ("group", "value", "size"), rows)
