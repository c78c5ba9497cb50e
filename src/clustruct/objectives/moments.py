"""Sums over rows, and the same of some rows or without them: the Gram matrices of folds."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast as cast_to

import numpy as np
from numpy.typing import NDArray

from clustruct._typing import Floats
from clustruct.arrays import beside, cast, column_dots, namespace
from clustruct.design import DenseDesign, Design, LocalDesign, Rows

__all__ = ["Moments", "moments_of_parts", "moments_of_weightings"]


# Subtraction is trusted where a column keeps this share of its sum of squares: four digits of
# sixteen are lost at most.
LEAST_SHARE = 1e-4
# About a centre this many deviations from zero, sums have lost as many digits already.
FARTHEST = 1e4
# Weights of all rows sum to one, but for rounding.
SAME_TOTAL = 1e-9


@dataclass(frozen=True, eq=False)
class Moments:
    """Weighted sums about a centre: all that squared loss needs to know of some rows.

    Attributes
    ----------
    weight : float
        Sum of the weights.
    x_center : ndarray of shape (d,)
    y_center : ndarray of shape (K,)
    x_sum : ndarray of shape (d,)
        Sum of ``x - x_center``.
    y_sum : ndarray of shape (K,)
    gram : ndarray of shape (d, d)
        Sum of ``(x - x_center)(x - x_center)'``.
    moment : ndarray of shape (d, K)
        The same of ``x`` and ``y``.
    squares : ndarray of shape (K,)
        The same of each output.
    """

    weight: float
    x_center: Floats
    y_center: Floats
    x_sum: Floats
    y_sum: Floats
    gram: Floats
    moment: Floats
    squares: Floats

    @classmethod
    def of(
        cls, design: Design, target: Rows, weights: Rows, x_center: Floats, y_center: Floats
    ) -> "Moments":
        """Moments of weighted rows about given centres."""

        def weigh(y: Rows, w: Rows) -> Rows:
            return w[:, None] * (y - beside(y_center, y))

        def sums(y: Rows, w: Rows, weighted: Rows) -> tuple[Rows, Rows, Rows]:
            xp = namespace(w)
            squares = column_dots(weighted, y - beside(y_center, y))
            return xp.sum(w), xp.sum(weighted, axis=0), squares

        weighted = design.map(weigh, target, weights)
        weight, y_sum, squares = design.fold(sums, target, weights, weighted)
        column = design.map(lambda w: w[:, None], weights)
        return cls(
            weight=float(weight),
            x_center=x_center,
            y_center=y_center,
            x_sum=design.cross(column, x_center)[:, 0],
            y_sum=y_sum,
            gram=design.gram(weights, x_center),
            moment=design.cross(weighted, x_center),
            squares=squares,
        )

    @classmethod
    def about_zero(cls, design: Design, target: Rows, weights: Rows) -> "Moments":
        """Moments of weighted rows about zero."""
        return cls.of(design, target, weights, np.zeros(design.shape[1]), np.zeros(target.shape[1]))

    @classmethod
    def about_mean(cls, design: Design, target: Rows, weights: Rows) -> "Moments":
        """Moments of weighted rows about their means."""
        total = float(design.fold(lambda w: namespace(w).sum(w), weights))
        if total <= 0.0:
            return cls.about_zero(design, target, weights)
        if abs(total - 1.0) < SAME_TOTAL:
            total = 1.0  # all rows together, but for rounding
        x_sums = total * design.moments(design.map(lambda w: w / total, weights))[0]
        y_sums = design.fold(lambda y, w: w @ y, target, weights)
        return cls.of(design, target, weights, x_sums / total, y_sums / total)

    def joined(self, other: "Moments") -> "Moments":
        """Moments of two sets of rows, each about its means, about the means of both."""
        weight = self.weight + other.weight
        share = other.weight / weight if weight > 0.0 else 0.0
        x_apart, y_apart = other.x_center - self.x_center, other.y_center - self.y_center
        apart = self.weight * share
        return Moments(
            weight=weight,
            x_center=self.x_center + share * x_apart,
            y_center=self.y_center + share * y_apart,
            x_sum=self.x_sum + other.x_sum,
            y_sum=self.y_sum + other.y_sum,
            gram=self.gram + other.gram + apart * np.outer(x_apart, x_apart),
            moment=self.moment + other.moment + apart * np.outer(x_apart, y_apart),
            squares=self.squares + other.squares + apart * y_apart**2,
        )

    def without(self, part: "Moments") -> "Moments":
        """Moments of the other rows, about the same centres."""
        return Moments(
            weight=self.weight - part.weight,
            x_center=self.x_center,
            y_center=self.y_center,
            x_sum=self.x_sum - part.x_sum,
            y_sum=self.y_sum - part.y_sum,
            gram=self.gram - part.gram,
            moment=self.moment - part.moment,
            squares=self.squares - part.squares,
        )

    def squared_errors(self, W: Floats, intercept: Floats) -> Floats:
        """Weighted sum of squared residuals of each output, at given weights."""
        apart = self.y_center - self.x_center @ W - intercept
        squares = self.squares + np.einsum("ik,ik->k", W, self.gram @ W - 2.0 * self.moment)
        return squares + apart * (2.0 * (self.y_sum - self.x_sum @ W) + self.weight * apart)

    def averaged(self) -> "Moments":
        """The same with weights that sum to one."""
        return Moments(
            1.0,
            self.x_center,
            self.y_center,
            self.x_sum / self.weight,
            self.y_sum / self.weight,
            self.gram / self.weight,
            self.moment / self.weight,
            self.squares / self.weight,
        )

    def centred(self) -> "Moments":
        """The same about the means of the rows."""
        mean = self.averaged()
        return Moments(
            1.0,
            mean.x_center + mean.x_sum,
            mean.y_center + mean.y_sum,
            np.zeros_like(mean.x_sum),
            np.zeros_like(mean.y_sum),
            mean.gram - np.outer(mean.x_sum, mean.x_sum),
            mean.moment - np.outer(mean.x_sum, mean.y_sum),
            mean.squares - mean.y_sum**2,
        )

    def reliable(self, whole: "Moments") -> bool:
        """Whether enough of the whole is left in every column for a difference to be accurate."""
        mine = np.concatenate([np.diagonal(self.gram), self.squares])
        theirs = np.concatenate([np.diagonal(whole.gram), whole.squares]) / whole.weight
        centers = np.concatenate([whole.x_center, whole.y_center])
        near = np.abs(centers) <= FARTHEST * np.sqrt(theirs)
        return bool(((mine >= LEAST_SHARE * theirs) & (near | (centers == 0.0))).all())


def moments_of_parts(
    design: Design, target: Rows, weights: Rows, counts: NDArray[np.integer], *, centred: bool
) -> list[Moments]:
    """Moments of several parts of the rows, for one reading of ``X``.

    Parameters
    ----------
    design : Design
    target : rows of shape (n, K)
    weights : rows of shape (n,)
    counts : ndarray of int, shape (n, n_parts)
        How often each part has each row.
    centred : bool
        Whether those of each part are about its means, or about zero.

    Returns
    -------
    list of Moments
        They can be joined.
    """
    about = Moments.about_mean if centred else Moments.about_zero

    def of_all(X: Design, y: Rows, w: Rows, c: Rows) -> tuple[Moments, ...]:
        return tuple(about(*_part(X, y, w, c[:, part])) for part in range(c.shape[1]))

    def join(a: tuple[Moments, ...], b: tuple[Moments, ...]) -> tuple[Moments, ...]:
        return tuple(mine.joined(yours) for mine, yours in zip(a, b, strict=True))

    found = design.sweep(of_all, target, weights, design.place(counts), combine=join)
    return list(found)


def moments_of_weightings(
    design: DenseDesign, target: Floats, weigh: Callable[[slice], Floats], *, centred: bool
) -> list[Moments]:
    """Moments of the same rows by several weightings, each as if its weights summed to one.

    Parameters
    ----------
    design : DenseDesign
    target : ndarray of shape (n, K)
    weigh : callable
        The weights of some rows, ``Q x m``.
    centred : bool
        Whether they are about the means of each weighting, or about zero.

    Returns
    -------
    list of Moments
    """
    totals, means, grams = design.weighted_grams(target, weigh, centred=centred)
    grams /= totals[:, None, None]
    d, n_outputs = design.shape[1], target.shape[1]
    return [
        Moments(
            weight=1.0,
            x_center=mean[:d],
            y_center=mean[d:],
            x_sum=np.zeros(d),
            y_sum=np.zeros(n_outputs),
            gram=gram[:d, :d],
            moment=gram[:d, d:],
            squares=np.diagonal(gram)[d:],
        )
        for mean, gram in zip(means, grams, strict=True)
    ]


def _part(X: Design, y: Rows, w: Rows, counts: Rows) -> tuple[Design, Rows, Rows]:
    """The rows that a part has; on a device all rows, with no weight for the others."""
    weights = w * cast(counts, w.dtype)
    if not X.on_host:
        return X, y, weights
    index = np.flatnonzero(counts)
    return cast_to(LocalDesign, X).rows(index), y[index], weights[index]
