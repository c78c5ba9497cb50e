"""Kinds of factor: which levels may share a value, and the best groups of them.

A factor's levels have values ``x`` (what a solver would give each of them alone) and weights ``w``.
Their best groups have the values ``v`` that minimise

    1/2 sum_l w_l (x_l - v_g(l))^2 + price * (groups - 1)

over what the kind allows. Solvers that group the levels of one factor again and again take
`clustruct.kernels.factors.segments.Segmenter`, which keeps its work space from call to call.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from clustruct._typing import Floats, Labels
from clustruct.grouping.rows import group_rows
from clustruct.kernels.factors.segments import KINDS, NONE, Segmenter


class Levels(NamedTuple):
    """Groups of levels: labels, value of each, ``1/2 sum w (x - v)^2``, whether proved best."""

    labels: Labels
    centers: Floats
    cost: float
    exact: bool


class Factor:
    """A kind of factor. Groups are segments of a sequence, see `kernels.factors.segments`.

    Values have shape (levels,), or (levels, outputs) where a kind takes several outputs. Weights of
    None stand for ones, exposures of None for the weights. A group needs an exposure of
    ``min_weight``, unless it is the only one.

    refits: whether the groups found may get any values.
    moves: whether each level may be in any group, so that searches can move single levels.
    """

    refits: ClassVar[bool] = True
    moves: ClassVar[bool] = False

    @property
    def kind(self) -> str:
        """The name of the sequence among ``KINDS``."""
        return type(self).__name__.lower()

    def group(
        self,
        values: Floats,
        weights: Floats | None = None,
        n_groups: int | None = None,
        price: float = 0.0,
        exposure: Floats | None = None,
        min_weight: float = 0.0,
    ) -> Levels:
        """The best groups, at most ``n_groups`` of them (None: no limit)."""
        n = values.shape[0]
        labels, centers = np.empty(n, dtype=np.intp), np.empty(n)
        count, cost, exact = Segmenter(n).group(
            KINDS[self.kind],
            self._column(values),
            NONE if weights is None else weights,
            NONE if exposure is None else exposure,
            n if n_groups is None else n_groups,
            price,
            min_weight,
            labels,
            centers,
        )
        return Levels(labels, centers[:count].reshape(-1, *values.shape[1:]), cost, exact)

    def costs(
        self,
        values: Floats,
        weights: Floats | None,
        most: int,
        exposure: Floats | None = None,
        min_weight: float = 0.0,
    ) -> Floats:
        """``1/2 sum w (x - v)^2`` of the best groups, at most 1, 2, ..., ``most`` of them.

        The list is shorter if more groups do not help.
        """
        weights = NONE if weights is None else weights
        exposure = NONE if exposure is None else exposure
        column = self._column(values)
        segmenter = Segmenter(column.shape[0])
        return segmenter.costs(KINDS[self.kind], column, weights, exposure, most, min_weight)

    def _column(self, values: Floats) -> Floats:
        """The values of a single output; more are an error."""
        if values.size != values.shape[0]:
            raise ValueError(
                f"values has shape {values.shape}: groups that are {self.kind}, priced or of a "
                "least exposure are found for one output. Give one column, or use nominal factors "
                "with a number of groups only."
            )
        return np.ascontiguousarray(values).reshape(-1)


@dataclass(frozen=True)
class Nominal(Factor):
    """Any levels may share a value."""

    moves: ClassVar[bool] = True

    def group(
        self,
        values: Floats,
        weights: Floats | None = None,
        n_groups: int | None = None,
        price: float = 0.0,
        exposure: Floats | None = None,
        min_weight: float = 0.0,
    ) -> Levels:
        """By k-means, unless there is a price or a least exposure."""
        weightless = weights is not None and not weights.any()
        if price > 0.0 or min_weight > 0.0 or weightless:
            return super().group(values, weights, n_groups, price, exposure, min_weight)
        rows = values.reshape(values.shape[0], -1)
        most = rows.shape[0] if n_groups is None else n_groups
        grouping = group_rows(rows, weights, most, None)
        apart = np.square(rows - grouping.centers[grouping.labels])
        cost = 0.5 * float((apart if weights is None else weights[:, None] * apart).sum())
        centers = grouping.centers.reshape(-1, *values.shape[1:])
        return Levels(grouping.labels, centers, cost, grouping.exact)

    def costs(
        self,
        values: Floats,
        weights: Floats | None,
        most: int,
        exposure: Floats | None = None,
        min_weight: float = 0.0,
    ) -> Floats:
        """``1/2 sum w (x - v)^2`` of the best groups, at most 1, 2, ..., ``most`` of them."""
        if min_weight > 0.0:
            return super().costs(values, weights, most, exposure, min_weight)
        found: list[float] = []
        while len(found) < most and (not found or found[-1] > 0.0):
            found.append(self.group(values, weights, len(found) + 1).cost)
        return np.array(found)


@dataclass(frozen=True)
class Ordinal(Factor):
    """Only neighbours share a value: groups are segments of the order of the levels."""


@dataclass(frozen=True)
class Cyclic(Factor):
    """Groups are segments of a circle: the last level is a neighbour of the first."""


@dataclass(frozen=True)
class Monotone(Factor):
    """Groups are segments of the order, and their values do not decrease (or do not increase)."""

    decreasing: bool = False
    # Other values for the same groups may be out of order.
    refits: ClassVar[bool] = False

    @property
    def kind(self) -> str:
        """Falling or rising."""
        return "falling" if self.decreasing else "rising"
