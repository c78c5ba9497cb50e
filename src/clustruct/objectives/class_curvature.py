"""A model of the second derivative of losses of classes.

That of the mean loss, ``sum_i s_i (diag p_i - p_i p_i') (x) x_i x_i'``, has a square for every pair
of classes. The model is one Kronecker product,

    H ~ A (x) B,   B = sum_i h_i (x_i - m)(x_i - m)',   h_i = s_i tr(diag p_i - p_i p_i'),
                   A = sum_i s_i (diag p_i - p_i p_i') / sum_i h_i,

with ``m`` the mean of the rows by the weights ``h``, which leaves the intercept by itself. For two
classes the model is exact. With a ridge ``t r_j`` on the weights of column ``j``, the eigenvectors
of ``A`` and of ``B`` scaled by ``r`` solve its systems for every ``t``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from clustruct._typing import Floats

# Eigenvalues up to this part of the largest one count as zero.
FLAT = 1e-12
TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class ClassCurvature:
    """The model ``A (x) B``.

    gram (d, d): ``B``, about the means.
    means (d,): of the columns, by the weights of the model.
    classes (K, K): ``A``, of trace one.
    total: sum of the weights.
    """

    gram: Floats
    means: Floats
    classes: Floats
    total: float

    @cached_property
    def by_class(self) -> tuple[Floats, Floats]:
        """Eigenvalues and eigenvectors of ``A``; a common shift of all classes has none."""
        values, vectors = np.linalg.eigh(self.classes)
        return np.where(values > FLAT * values[-1], values, 0.0), vectors

    def grouped(self, Z: Floats) -> "ClassCurvature":
        """The model for the values of groups, whose members ``Z`` tells."""
        return ClassCurvature(Z.T @ self.gram @ Z, self.means @ Z, self.classes, self.total)

    def scaled(self, ridge: Floats) -> "Systems":
        """What solves the systems with multiples of a ridge."""
        return Systems(self, ridge)


class Systems:
    """Systems of a model with multiples of one ridge.

    ``(A (x) B + t diag(r)) V = R`` has, with ``r^-1/2 B r^-1/2 = E diag(l) E'`` and ``A = U diag(a)
    U'``, the solution ``V = r^-1/2 E [(E' r^-1/2 R U)_jm / (l_j a_m + t)] U'``.
    """

    def __init__(self, model: ClassCurvature, ridge: Floats) -> None:
        self._model = model
        roots = 1.0 / np.sqrt(ridge)
        values, vectors = np.linalg.eigh(roots[:, None] * model.gram * roots)
        self._bends = np.maximum(values, 0.0)[:, None] * model.by_class[0]
        self._sides = roots[:, None] * vectors

    def solve(self, R: Floats, factors: Sequence[float]) -> list[Floats]:
        """The solutions for each of several multiples of the ridge."""
        U = self._model.by_class[1]
        turned = self._sides.T @ R @ U
        return [self._sides @ (turned / (self._bends + factor)) @ U.T for factor in factors]

    def step(self, R: Floats, slope: Floats, factor: float) -> tuple[Floats, Floats]:
        """Solution for gradients by the weights and by the intercept, which has no ridge."""
        model = self._model
        a, U = model.by_class
        (V,) = self.solve(R - np.outer(model.means, slope), (factor,))
        bends = np.where(a > 0.0, a, np.inf) * max(model.total, FLAT)
        return V, U @ ((U.T @ slope) / bends) - model.means @ V


@dataclass(frozen=True, eq=False)
class ClassWeights:
    """What a model needs to know of the classes.

    rows (n,): the weights ``h``.
    classes (K, K): ``A``.
    centred: whether there is an intercept.
    """

    rows: Floats
    classes: Floats
    centred: bool

    @classmethod
    def of(cls, shares: Floats, chances: Floats, centred: bool) -> "ClassWeights":
        """The weights at probabilities of all classes, or of the second if there are two."""
        if chances.shape[0] == 1:
            return cls(shares * chances[0] * (1.0 - chances[0]), np.ones((1, 1)), centred)
        rows = shares * np.maximum(1.0 - np.square(chances).sum(axis=0), 0.0)
        classes = np.diag(chances @ shares) - (chances * shares) @ chances.T
        return cls(rows, classes / max(float(np.trace(classes)), TINY), centred)

    @cached_property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.rows.sum())

    def means(self, X: Floats) -> Floats:
        """Weighted means of columns, or zeros if there is no intercept."""
        if self.centred and self.total > 0.0:
            return np.asarray(self.rows @ X / self.total)
        return np.zeros(X.shape[1])

    def curvature(self, X: Floats) -> ClassCurvature:
        """The model for some columns."""
        means = self.means(X)
        away = (X - means) * np.sqrt(self.rows)[:, None]
        return ClassCurvature(away.T @ away, means, self.classes, self.total)


def chances_of(scores: Floats) -> Floats:
    """Probabilities by scores, classes first; of the second class alone if there are two."""
    if scores.shape[0] == 1:
        far = np.exp(-np.abs(scores))
        return np.where(scores >= 0.0, 1.0, far) / (1.0 + far)
    powers = np.exp(scores - scores.max(axis=0))
    powers /= powers.sum(axis=0)
    return powers
