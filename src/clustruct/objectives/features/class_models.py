"""Values of groups under a model of the loss of classes at the weights without constraint.

With the model ``A (x) B`` of the second derivative at weights ``W``, where the gradient of the loss
is ``-alpha W``, groups ``Z`` have the values

    Z'B Z V A + t alpha Z'Z V = Z'B W A + alpha Z'W

for every fraction ``t`` of the ridge, and the intercept that keeps the mean of the scores by the
weights of the model. ``Z'B Z`` follows from ``B``, without a pass over the rows, or, where features
are many, from the sums of the columns of each group.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from clustruct._typing import Floats, Labels
from clustruct.grouping.rows import spread
from clustruct.objectives.class_curvature import ClassCurvature, ClassWeights, chances_of
from clustruct.objectives.linear import Point


class ClassModel(Protocol):
    """The model at the weights without constraint."""

    def values(
        self, labels: Labels, n_groups: int, factors: Sequence[float]
    ) -> list[tuple[Floats, Floats]]:
        """Values of groups and intercepts for several fractions of the ridge."""


def _solved(
    model: ClassCurvature, right: Floats, ridge: Floats, mean: Floats, factors: Sequence[float]
) -> list[tuple[Floats, Floats]]:
    """Values and intercepts, which give scores the mean that they had."""
    values = model.scaled(ridge).solve(right, factors)
    return [(V, mean - model.means @ V) for V in values]


class GramModel:
    """The model by its Gram matrix of all columns."""

    def __init__(self, curvature: ClassCurvature, minimum: Point, alpha: float) -> None:
        self._curvature, self._alpha = curvature, alpha
        bent = curvature.gram @ minimum.W @ curvature.classes
        self._right = bent + alpha * minimum.W
        self._mean = minimum.intercept + curvature.means @ minimum.W

    def values(
        self, labels: Labels, n_groups: int, factors: Sequence[float]
    ) -> list[tuple[Floats, Floats]]:
        """See `ClassModel`."""
        Z = spread(np.eye(n_groups), labels)
        ridge = self._alpha * np.maximum(Z.sum(axis=0), 1.0)  # a group may be empty
        return _solved(self._curvature.grouped(Z), Z.T @ self._right, ridge, self._mean, factors)


class SumsModel:
    """The model by the sums of the columns of each group.

    scores (n, K): those of the weights, without intercept.
    sums: a function from groups to the sums, an ``n x Q`` array.
    """

    def __init__(
        self,
        minimum: Point,
        alpha: float,
        scores: Floats,
        shares: Floats,
        centred: bool,
        sums: Callable[[Labels, int], Floats],
    ) -> None:
        self._alpha, self._W, self._sums = alpha, minimum.W, sums
        self._weights = ClassWeights.of(shares, chances_of((scores + minimum.intercept).T), centred)
        means = self._weights.means(scores)
        self._mean = minimum.intercept + means
        away = self._weights.rows[:, None] * (scores - means)
        self._bent = away @ self._weights.classes

    def values(
        self, labels: Labels, n_groups: int, factors: Sequence[float]
    ) -> list[tuple[Floats, Floats]]:
        """See `ClassModel`."""
        columns = self._sums(labels, n_groups)
        Z = spread(np.eye(n_groups), labels)
        right = columns.T @ self._bent + self._alpha * (Z.T @ self._W)
        ridge = self._alpha * np.maximum(Z.sum(axis=0), 1.0)
        return _solved(self._weights.curvature(columns), right, ridge, self._mean, factors)
