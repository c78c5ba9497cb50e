"""The sets that constrain the weights, each with its projection.

Every set here is a union of subspaces (eq:union), one for each grouping of the rows of ``W``, so
that it contains all multiples of its points. Lower bounds rest on `explained`: the largest share of
a matrix's squared length that any of these subspaces holds. A set may also be a part of such a
union, and then has ``refits = False``.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from clustruct._typing import Floats, Labels
from clustruct.grouping.rows import ZERO, Cluster, group_rows
from clustruct.kernels import kmeans1d
from clustruct.results import Projection


@dataclass(frozen=True, eq=False)
class Places:
    """The groups that each row may be in, for searches that move single rows.

    labels (d,): a grouping to begin with, -1 for zero.
    first, last (d,): a row may be in the groups ``first <= q < last``; None for all groups.
    n_nonzero: how many rows may be outside the zero group; None if there is no zero group.
    """

    labels: Labels
    n_groups: int
    first: Labels | None = None
    last: Labels | None = None
    n_nonzero: int | None = None


@dataclass(frozen=True, eq=False)
class Limits:
    """How many groups there may be, for proofs that go through all groupings.

    blocks (d,): block of each row, 0 to B - 1, inside of which rows may share; -1 for rows alone.
    most (B,): groups of each block.
    total: groups of all blocks together.
    """

    blocks: Labels
    most: Labels
    total: int


class Constraint(Protocol):
    """A set of matrices with a few distinct rows.

    refits: whether the set is a union of subspaces, one for each grouping, so that groups may get
        any values without leaving it. If not, as for weights with a sign, solvers do not refit
        groups but keep projected points as they are. Where it is missing, groups are refitted and
        the solution is projected once more, to check that it is in the set.
    """

    refits: bool

    def project(self, W: Floats) -> Projection:
        """The nearest matrix of the set (or a near one, if ``exact`` is False)."""

    def explained(self, P: Floats) -> float:
        """An upper bound of ``max ||proj P||^2`` over the subspaces; sharp for one column."""


class FeatureConstraint(Constraint, Protocol):
    """A set in which single rows can be moved from group to group."""

    def places(self, W: Floats) -> Places | None:
        """The groups of a feasible matrix and those its rows may move to; None if not limited."""


class Free:
    """No constraint: every row is a group of its own."""

    refits = True

    def project(self, W: Floats) -> Projection:
        """The matrix itself."""
        return Projection(W, np.arange(W.shape[0]), W, 0.0, exact=True)

    def explained(self, P: Floats) -> float:
        """The whole squared length."""
        return float(np.vdot(P, P))

    def places(self, W: Floats) -> None:
        """None: no row can be moved."""
        return None


class Clustered:
    """At most ``n_clusters`` distinct rows.

    cluster: the fastest exact k-means for the place of the numbers.
    """

    refits = True

    def __init__(self, n_clusters: int, cluster: Cluster = kmeans1d.cluster_values) -> None:
        self.n_clusters = n_clusters
        self._cluster = cluster

    def project(self, W: Floats) -> Projection:
        """By exact k-means for one column, k-means++ for more."""
        return _projection(W, *group_rows(W, None, self.n_clusters, None, self._cluster))

    def explained(self, P: Floats) -> float:
        """Each column grouped by itself, or the leading eigenvalues, whichever bound is smaller.

        Equal rows are in every subspace, so that the eigenvalues are those about the mean.
        """
        # By the groups' means: a difference of squared lengths would leave only rounding.
        by_column = 0.0
        for column in np.ascontiguousarray(P.T):
            _, centers, sizes, _ = self._cluster(column, None, self.n_clusters)
            by_column += float(sizes @ np.square(centers))
        mean = P.mean(axis=0)
        away, common = P - mean, P.shape[0] * float(mean @ mean)
        return min(by_column, common + leading_sum(away.T @ away, self.n_clusters - 1))

    def places(self, W: Floats) -> Places:
        """Every row may be in every group."""
        return Places(self.project(W).labels, self.n_clusters)

    def limits(self, n_rows: int) -> Limits:
        """All rows are in one block."""
        most = min(self.n_clusters, n_rows)
        return Limits(np.zeros(n_rows, dtype=np.intp), np.array([most], dtype=np.intp), most)


class ScaledClustered:
    """Rows that are a given scale times one of ``n_clusters`` distinct rows.

    Weighted samples live here: with the root of a sample's weight as its number, plain distances
    are weighted ones.

    scales (n,): positive.
    """

    refits = True

    def __init__(self, n_clusters: int, scales: Floats) -> None:
        self.n_clusters = n_clusters
        self._scales = scales[:, None]
        self._weights = np.square(scales)

    def project(self, W: Floats) -> Projection:
        """By weighted k-means of the rows over their scales."""
        grouping = group_rows(W / self._scales, self._weights, self.n_clusters, None)
        point = self._scales * grouping.centers[grouping.labels]
        distance = float(np.square(W - point).sum())
        return Projection(point, grouping.labels, grouping.centers, distance, grouping.exact)

    def explained(self, P: Floats) -> float:
        """The sum of the largest eigenvalues, as many as there are groups."""
        gram = P.T @ P if P.shape[1] <= P.shape[0] else P @ P.T
        return leading_sum(gram, self.n_clusters)


class SparseClustered:
    """At most ``n_nonzero`` rows that are not zero, with at most ``n_clusters`` distinct ones.

    n_clusters: none sets no limit: plain sparsity.
    """

    refits = True

    def __init__(self, n_clusters: int | None, n_nonzero: int) -> None:
        self.n_clusters = n_clusters
        self.n_nonzero = n_nonzero

    def project(self, W: Floats) -> Projection:
        """By the exact search for eq:k_sparse_Q_clust for one column, by exchanges for more."""
        grouping = group_rows(W, None, self.n_clusters, self.n_nonzero)
        if self.n_clusters is None:
            return _thresholded(W, grouping.labels >= 0)
        return _projection(W, *grouping)

    def explained(self, P: Floats) -> float:
        """The squared length of the projection for one column; column by column for more."""
        columns = np.ascontiguousarray(P.T)
        held = sum(float(np.square(self.project(c[:, None]).point).sum()) for c in columns)
        if self.n_clusters is None:
            sizes = np.sort(np.square(P).sum(axis=1))
            return float(sizes[sizes.size - min(self.n_nonzero, sizes.size) :].sum())
        return min(held, leading_sum(P.T @ P, self.n_clusters))

    def places(self, W: Floats) -> Places | None:
        """Every row may be in every group, or zero."""
        if self.n_clusters is None:
            return None
        return Places(self.project(W).labels, self.n_clusters, n_nonzero=self.n_nonzero)


class BlockClustered:
    """Rows share weights only inside their block; rows outside all blocks are left alone.

    blocks (d,): block of each row, 0 to B - 1, or -1 for rows left alone.
    n_clusters (B,): groups in all blocks together, shared out as is best, or for each block.
    """

    refits = True

    def __init__(self, blocks: Labels, n_clusters: int | Labels) -> None:
        self.n_clusters = n_clusters
        self._alone = np.flatnonzero(blocks < 0)
        self._members = [
            np.flatnonzero(blocks == b) for b in range(int(blocks.max(initial=-1)) + 1)
        ]

    def project(self, W: Floats) -> Projection:
        """Each block by itself, with its best number of groups."""
        labels = np.empty(W.shape[0], dtype=np.intp)
        labels[self._alone] = np.arange(self._alone.size)
        centers = [W[self._alone]]
        n_groups, exact = self._alone.size, True
        for rows, count in zip(self._members, self.share_out(W), strict=True):
            grouping = group_rows(W[rows], None, int(count), None)
            labels[rows] = grouping.labels + n_groups
            centers.append(grouping.centers)
            n_groups += grouping.centers.shape[0]
            exact = exact and grouping.exact
        return _projection(W, labels, np.concatenate(centers), exact)

    def share_out(self, W: Floats) -> Labels:
        """Number of groups of each block, for the least squared distance in all."""
        if not isinstance(self.n_clusters, int):
            return self.n_clusters
        spare = self.n_clusters - len(self._members)
        costs = [_costs(W[rows], 1 + min(spare, rows.size - 1)) for rows in self._members]
        return cheapest_shares(costs, self.n_clusters)

    def places(self, W: Floats) -> Places:
        """A row may be in its block's groups, as many as the block has for this matrix."""
        first = np.empty(W.shape[0], dtype=np.intp)
        first[self._alone] = np.arange(self._alone.size)
        last, labels = first + 1, first.copy()
        n_groups = self._alone.size
        for rows, count in zip(self._members, self.share_out(W), strict=True):
            labels[rows] = n_groups + group_rows(W[rows], None, int(count), None).labels
            first[rows], last[rows] = n_groups, n_groups + count
            n_groups += int(count)
        return Places(labels, n_groups, first, last)

    def limits(self, n_rows: int) -> Limits:
        """The number of groups in all blocks, or in each."""
        blocks = np.full(n_rows, -1, dtype=np.intp)
        for block, rows in enumerate(self._members):
            blocks[rows] = block
        sizes = np.array([rows.size for rows in self._members], dtype=np.intp)
        if not isinstance(self.n_clusters, int):
            most = np.minimum(self.n_clusters, sizes)
            return Limits(blocks, most, int(most.sum()))
        most = np.minimum(self.n_clusters - sizes.size + 1, sizes)
        return Limits(blocks, most, min(self.n_clusters, int(sizes.sum())))

    def explained(self, P: Floats) -> float:
        """Column by column, the squared length of the projection."""
        columns = np.ascontiguousarray(P.T)
        return sum(float(np.square(self.project(c[:, None]).point).sum()) for c in columns)


def cheapest_shares(costs: list[Floats], total: int) -> Labels:
    """Share out at most ``total`` groups, at least one to each block, at the least total cost.

    ``best[b][q]`` is the least cost of the first ``b`` blocks with ``q`` groups at most; a block
    takes from 1 to as many groups as its list is long.

    costs: ``costs[b][q - 1]`` is the cost of block ``b`` with ``q`` groups.
    """
    best = np.zeros(total + 1)
    choices = []
    for block in costs:
        extended = np.full((block.size, total + 1), np.inf)
        for count in range(1, min(block.size, total) + 1):
            extended[count - 1, count:] = best[: total + 1 - count] + block[count - 1]
        choices.append(extended.argmin(axis=0) + 1)
        best = extended.min(axis=0)
    shares = np.empty(len(costs), dtype=np.intp)
    left = total
    for b in range(len(costs) - 1, -1, -1):
        shares[b] = choices[b][left]
        left -= shares[b]
    return shares


def _costs(rows: Floats, most: int) -> Floats:
    """Squared distance of the rows to their groups, for 1 to ``most`` groups."""
    found = []
    for count in range(1, most + 1):
        grouping = group_rows(rows, None, count, None)
        found.append(float(np.square(rows - grouping.centers[grouping.labels]).sum()))
        if found[-1] == 0.0:
            break
    return np.array(found)


def _projection(W: Floats, labels: Labels, centers: Floats, exact: bool) -> Projection:
    """The projection with the given groups."""
    padded = np.concatenate([centers, np.zeros((1, W.shape[1]))])  # label -1 finds the last row
    point = padded[labels]
    return Projection(point, labels, centers, float(np.square(W - point).sum()), exact)


def _thresholded(W: Floats, kept: NDArray[np.bool_]) -> Projection:
    """The rows kept, each of them a group of its own."""
    labels = np.full(W.shape[0], ZERO, dtype=np.intp)
    labels[kept] = np.arange(int(kept.sum()))
    return _projection(W, labels, W[kept], exact=True)


def leading_sum(gram: Floats, n_clusters: int) -> float:
    """Sum of the largest eigenvalues, as many as there are groups."""
    values = np.linalg.eigvalsh(gram)
    return float(np.maximum(values, 0.0)[max(0, values.size - n_clusters) :].sum())
