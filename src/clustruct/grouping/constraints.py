"""The sets that constrain the weights, each with its projection.

Every set here is a union of subspaces (eq:union), one for each grouping of the rows of ``W``, so
that it contains all multiples of its points. Lower bounds rest on `explained`: the largest share of
a matrix's squared length that any of these subspaces holds. A set may also be a part of such a
union, and then has ``refits = False``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from clustruct._typing import Floats, Indices, Labels
from clustruct.grouping.factors import Factor, Levels, Nominal
from clustruct.grouping.rows import ZERO, Cluster, group_rows
from clustruct.kernels.kmeans import kmeans1d
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
    n_starts: starts of k-means for several columns; None for as many as are usual.
    """

    refits = True

    def __init__(
        self,
        n_clusters: int,
        cluster: Cluster = kmeans1d.cluster_values,
        n_starts: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self._cluster = cluster
        self._n_starts = n_starts

    def project(self, W: Floats) -> Projection:
        """By exact k-means for one column, k-means++ for more."""
        grouping = group_rows(W, None, self.n_clusters, None, self._cluster, self._n_starts)
        return _projection(W, *grouping)

    def quickly(self, n_starts: int) -> "Clustered":
        """The same with fewer starts of k-means."""
        return Clustered(self.n_clusters, self._cluster, n_starts)

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


class FactorClustered:
    """Rows share weights only with rows of their factor; rows outside all factors are left alone.

    factors: kind of each factor, and its rows in the order of its levels.
    n_rows: number of rows, those left alone included.
    n_clusters (B,): groups in all factors together, shared out as is best, or for each factor; None
        for a price.
    price: what each group costs beside half the squared distance; the set is then of all groupings,
        and a projection gives the groups that are worth their price.
    exposure (d,): of each row; None for ones. A group needs ``min_weight`` of it, unless it is the
        only one of its factor.
    """

    def __init__(
        self,
        factors: Sequence[tuple[Factor, Indices]],
        n_rows: int,
        n_clusters: int | Labels | None,
        *,
        price: float = 0.0,
        exposure: Floats | None = None,
        min_weight: float = 0.0,
    ) -> None:
        if (n_clusters is None) != (price > 0.0):
            raise ValueError(
                f"n_clusters={n_clusters!r} and price={price!r}: give either a number of groups, "
                "or n_clusters=None and a positive price for each."
            )
        self.n_clusters = n_clusters
        self.price = price
        self.min_weight = min_weight
        self.refits = all(factor.refits for factor, _ in factors)
        self._factors = factors
        self._exposure = np.ones(n_rows) if exposure is None else exposure
        alone = np.ones(n_rows, dtype=bool)
        for _, rows in factors:
            alone[rows] = False
        self._alone = np.flatnonzero(alone)

    @property
    def kinds(self) -> list[str]:
        """Kind of each factor, as kernels call it."""
        return [factor.kind for factor, _ in self._factors]

    def surcharge(self, labels: Labels) -> float:
        """Price of the groups after the first of each factor."""
        n_groups = np.unique(labels).size - self._alone.size - len(self._factors)
        return self.price * n_groups

    def levels(self) -> list[tuple[Indices, Floats]]:
        """Rows of each factor, with the exposure of each."""
        return [(rows, self._exposure[rows]) for _, rows in self._factors]

    def project(self, W: Floats) -> Projection:
        """Each factor by itself, with its best number of groups."""
        return self._project(W, self.min_weight)

    def share_out(self, W: Floats) -> Labels:
        """Largest number of groups of each factor, for the least squared distance in all."""
        return self._share_out(W, self.min_weight)

    def places(self, W: Floats) -> Places | None:
        """A row may be in its factor's groups, as many as the factor has for this matrix.

        Rows of an order, or with a least exposure, stay in their group; None if all of them do.
        """
        if not any(self._moves(factor) for factor, _ in self._factors):
            return None
        first = np.empty(W.shape[0], dtype=np.intp)
        first[self._alone] = np.arange(self._alone.size)
        last, labels = first + 1, first.copy()
        n_groups = self._alone.size
        for factor, rows, count, levels in self._groups(W, self.min_weight):
            labels[rows] = n_groups + levels.labels
            count = count if self.price == 0.0 else levels.centers.shape[0]
            moves = self._moves(factor)
            first[rows] = n_groups if moves else labels[rows]
            last[rows] = n_groups + count if moves else labels[rows] + 1
            n_groups += count
        return Places(labels, n_groups, first, last)

    def limits(self, n_rows: int) -> Limits | None:
        """The number of groups in all factors, or in each; None if there is more to keep to."""
        nominal = all(self._moves(factor) for factor, _ in self._factors)
        if not nominal or self.n_clusters is None:
            return None
        blocks = np.full(n_rows, -1, dtype=np.intp)
        for block, (_, rows) in enumerate(self._factors):
            blocks[rows] = block
        sizes = np.array([rows.size for _, rows in self._factors], dtype=np.intp)
        if not isinstance(self.n_clusters, int):
            most = np.minimum(self.n_clusters, sizes)
            return Limits(blocks, most, int(most.sum()))
        most = np.minimum(self.n_clusters - sizes.size + 1, sizes)
        return Limits(blocks, most, min(self.n_clusters, int(sizes.sum())))

    def explained(self, P: Floats) -> float:
        """Column by column, the squared length of the projection.

        All of it for a price, and without the least exposure where that has no exact projection.
        """
        if self.price > 0.0:
            return float(np.vdot(P, P))
        held = 0.0
        both = (P, -P) if not self.refits else (P,)
        for columns in both:
            mine = 0.0
            for column in np.ascontiguousarray(columns.T):
                nearest = self.project(column[:, None])
                if not nearest.exact:
                    nearest = self._project(column[:, None], 0.0)
                mine += float(np.square(nearest.point).sum())
            held = max(held, mine)
        return held

    def _moves(self, factor: Factor) -> bool:
        """Whether single rows of a factor may be moved from group to group."""
        return factor.moves and self.min_weight == 0.0

    def _groups(
        self, W: Floats, min_weight: float
    ) -> Iterator[tuple[Factor, Indices, int, Levels]]:
        """Each factor with its rows, its share of groups, and the best groups."""
        shares = self._share_out(W, min_weight).tolist()
        for (factor, rows), count in zip(self._factors, shares, strict=True):
            exposure = self._exposure[rows]
            levels = factor.group(W[rows], None, count, self.price, exposure, min_weight)
            yield factor, rows, count, levels

    def _project(self, W: Floats, min_weight: float) -> Projection:
        """The projection for some least exposure."""
        labels = np.empty(W.shape[0], dtype=np.intp)
        labels[self._alone] = np.arange(self._alone.size)
        centers = [W[self._alone]]
        n_groups, exact = self._alone.size, True
        for factor, rows, _, levels in self._groups(W, min_weight):
            labels[rows] = levels.labels + n_groups
            centers.append(levels.centers)
            n_groups += levels.centers.shape[0]
            # Shares of a total are best if the costs of all shares are.
            shared = isinstance(self.n_clusters, int) and min_weight > 0.0 and factor.moves
            exact = exact and levels.exact and not shared
        return _projection(W, labels, np.concatenate(centers), exact)

    def _share_out(self, W: Floats, min_weight: float) -> Labels:
        """Largest number of groups of each factor, for some least exposure."""
        if self.n_clusters is None:
            return np.array([rows.size for _, rows in self._factors], dtype=np.intp)
        if not isinstance(self.n_clusters, int):
            return self.n_clusters
        spare = self.n_clusters - len(self._factors)
        costs = [
            factor.costs(
                W[rows], None, 1 + min(spare, rows.size - 1), self._exposure[rows], min_weight
            )
            for factor, rows in self._factors
        ]
        return cheapest_shares(costs, self.n_clusters)


class BlockClustered(FactorClustered):
    """Rows share weights only inside their block; rows outside all blocks are left alone.

    blocks (d,): block of each row, 0 to B - 1, or -1 for rows left alone.
    n_clusters (B,): groups in all blocks together, shared out as is best, or for each block.
    """

    def __init__(self, blocks: Labels, n_clusters: int | Labels) -> None:
        n_blocks = int(blocks.max(initial=-1)) + 1
        factors = [(Nominal(), np.flatnonzero(blocks == b)) for b in range(n_blocks)]
        super().__init__(factors, blocks.size, n_clusters)


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
    """Sum of the largest eigenvalues, as many as there are groups; infinity if some overflow."""
    if not np.isfinite(gram).all():
        return np.inf
    values = np.linalg.eigvalsh(gram)
    return float(np.maximum(values, 0.0)[max(0, values.size - n_clusters) :].sum())
