"""Results of one-dimensional k-means, of segments and of projections."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from clustruct._docs import documented_fields
from clustruct._html import table
from clustruct._typing import Floats, Labels
from clustruct.results.tables import shown_weight


@documented_fields
@dataclass(frozen=True, eq=False)
class Clustering1D:
    """Groups of numbers, as found by `kmeans_1d`.

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

    labels: Annotated[Labels, "Group of each number; groups are in the order of their centres."]
    centers: Annotated[Floats, "Weighted mean of each group, ascending."]
    sizes: Annotated[Labels, "How many numbers each group holds; none is empty."]
    inertia: Annotated[float, "Weighted sum of squared distances to the centres."]

    def _repr_html_(self) -> str:
        return _clustering_table(self, "groups")


@documented_fields
@dataclass(frozen=True, eq=False)
class Segmentation1D:
    """Segments of a sequence of numbers, as found by `segment_1d`.

    See Also
    --------
    segment_1d : The function that returns it.

    Examples
    --------
    >>> import clustruct as cs
    >>> steps = cs.segment_1d([1.0, 2.0, 9.0, 8.0], 2)
    >>> steps.centers[steps.labels].tolist()
    [1.5, 1.5, 8.5, 8.5]
    """

    labels: Annotated[Labels, "Segment of each number; segments are numbered along the sequence."]
    centers: Annotated[Floats, "Weighted mean of each segment."]
    sizes: Annotated[Labels, "How many numbers each segment holds; none is empty."]
    inertia: Annotated[float, "Weighted sum of squared distances to the centres."]

    def _repr_html_(self) -> str:
        return _clustering_table(self, "segments")


@documented_fields
@dataclass(frozen=True, eq=False)
class Projection:
    """Nearest point of a set of clustered vectors or matrices, as found by `project_clustered`.

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

    point: Annotated[NDArray[Any], "The projection, with the shape of the input."]
    labels: Annotated[Labels, "Group of each entry or row, -1 for the zero group."]
    centers: Annotated[
        NDArray[Any], "Value of each group: ``point[i]`` is ``centers[labels[i]]``, or zero."
    ]
    sq_distance: Annotated[float, "Weighted squared distance between the point and the input."]
    exact: Annotated[bool, "Whether the point is proven to be nearest."]

    def _repr_html_(self) -> str:
        proof = "nearest point" if self.exact else "near point"
        title = f"{proof}, squared distance {self.sq_distance:.4g}"
        sizes = np.bincount(self.labels[self.labels >= 0], minlength=len(self.centers))
        rows = _group_rows(self.centers, sizes)
        if (self.labels < 0).any():
            rows.append(("zero", 0.0, int((self.labels < 0).sum())))
        return table(title, ("group", "value", "size"), rows)


def _clustering_table(found: Clustering1D | Segmentation1D, groups: str) -> str:
    """Centre and size of each group, under what they are groups of."""
    title = f"{found.labels.size} numbers in {found.centers.size} {groups}, inertia"
    rows = _group_rows(found.centers, found.sizes)
    return table(f"{title} {found.inertia:.4g}", ("group", "center", "size"), rows)


def _group_rows(values: NDArray[Any], sizes: Labels) -> list[tuple[object, ...]]:
    """Number, value and size of each group."""
    numbered = enumerate(zip(values, sizes, strict=True))
    return [(q, shown_weight(value), int(size)) for q, (value, size) in numbered]
