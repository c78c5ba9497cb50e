"""Folds of squared loss: sums over their rows, taken in one pass over ``X``."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from clustruct.design import Design
from clustruct.estimators.features.fold_scores import Ledger, Plan
from clustruct.objectives.linear import Point, Response
from clustruct.objectives.quadratic import (
    Moments,
    QuadraticObjective,
    moments_of_parts,
    objective_of,
)

__all__ = ["Counts", "FoldSums", "SummedFold", "objective_of_sums", "sums_of_folds"]

# How often each row of X is in a part of them.
Counts = NDArray[np.integer]

# Bytes of Gram matrices that one pass adds up for each piece of X.
MOST_SUMS = 1 << 28


@dataclass(frozen=True, eq=False)
class FoldSums:
    """Sums over all rows, and over those that each fold fits and scores on."""

    whole: Moments
    train: list[Moments]
    test: list[Moments]


def sums_of_folds(
    design: Design, response: Response, train: Sequence[Counts], test: Sequence[Counts]
) -> FoldSums:
    """One pass over ``X``; a few where there are many columns and folds.

    Parameters
    ----------
    design : Design
    response : Response
    train, test : sequence of ndarray of int, shape (n,)
        How often each fold has each row, to fit on and to score on.

    Returns
    -------
    FoldSums
    """
    if _is_partition(train, test):
        # What is fitted on is in the other folds: sums are joined, and nothing is subtracted.
        found = _moments(design, response, test)
        others = [found[:f] + found[f + 1 :] for f in range(len(found))]
        joined = [reduce(Moments.joined, mine) for mine in others]
        return FoldSums(reduce(Moments.joined, found), joined, found)
    all_rows = np.ones(design.shape[0], dtype=np.uint8)
    whole, *found = _moments(design, response, [all_rows, *train, *test])
    return FoldSums(whole, found[: len(train)], found[len(train) :])


def _is_partition(train: Sequence[Counts], test: Sequence[Counts]) -> bool:
    """Whether all rows in use are scored on once, and fitted on in every other fold."""
    scored = np.zeros(test[0].shape, dtype=np.intp)
    for counts in test:
        scored += counts
    return bool(scored.max() == 1) and all(
        np.array_equal(mine + theirs, scored) for mine, theirs in zip(train, test, strict=True)
    )


def _moments(design: Design, response: Response, parts: Sequence[Counts]) -> list[Moments]:
    """Sums over the rows of each part."""
    together = max(1, MOST_SUMS // (8 * design.shape[1] ** 2))
    found: list[Moments] = []
    for first in range(0, len(parts), together):
        counts = np.stack(parts[first : first + together], axis=1)
        found += moments_of_parts(
            design, response.target, response.shares, counts, centred=response.fit_intercept
        )
    return found


def objective_of_sums(sums: Moments) -> QuadraticObjective:
    """The squared loss of some rows."""
    return objective_of(sums.averaged(), np.zeros(sums.x_center.size))


@dataclass(frozen=True, eq=False)
class SummedFold:
    """A fold whose fits and mean squared errors follow from sums over its rows."""

    travels: ClassVar[bool] = True

    number: int
    train: Moments
    test: Moments

    def objective(self, plan: Plan) -> QuadraticObjective:
        """The problem to solve on the fold, with some alpha."""
        return objective_of_sums(self.train)

    def ledger(self, plan: Plan) -> Ledger:
        """What scores the solutions."""
        return Ledger(plan.shape, lambda found: [self._score(s.point) for s in found])

    def _score(self, point: Point) -> float:
        errors = self.test.squared_errors(point.W, point.intercept)
        return -float(errors.mean()) / self.test.weight
