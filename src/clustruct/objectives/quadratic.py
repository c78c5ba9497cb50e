"""The squared loss by its Gram matrix: ``X`` is read once.

`Moments` are weighted sums over rows. Those of folds are joined or subtracted, which saves reading
``X`` again.
"""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import cast as cast_to

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from clustruct._finite import require_finite
from clustruct._typing import Floats, Labels
from clustruct.arrays import beside, cast, column_dots, namespace
from clustruct.design import DenseDesign, Design, LocalDesign, Rows, assignment, one_by_one
from clustruct.kernels.kmeans.kmeans1d import cluster_values
from clustruct.objectives.linear import Point, Response
from clustruct.results import Projection

# Up to this many columns the Gram matrix is always cheaper than products with X; up to the second
# number it is if there are at least as many rows as columns.
GRAM_ALWAYS, GRAM_IF_TALL = 300, 2000
# Subtraction is trusted where a column keeps this share of its sum of squares: four digits of
# sixteen are lost at most.
LEAST_SHARE = 1e-4
# Sums about a centre this many deviations from zero have lost as many digits already.
FARTHEST = 1e4
# Sums of squares about zero of columns this many ranges from it have lost six digits.
FARTHEST_RANGES = 1e3
# A value that is less than its terms by this factor has six digits left.
MOST_CANCELLED = 1e9
# Weights whose sum is this near to one are those of all rows.
SAME_TOTAL = 1e-9
# The fields of `Moments` that are sums over rows, besides their weight.
SUMS = ("x_sum", "y_sum", "gram", "moment", "squares")


@dataclass(frozen=True, eq=False)
class Moments:
    """Weighted sums over rows about a centre: all that squared loss needs of them.

    Shapes: x_center (d,), y_center (K,), y_sum (K,).
    weight: sum of the weights.
    x_sum (d,): sum of ``x - x_center``.
    gram (d, d): sum of ``(x - x_center)(x - x_center)'``.
    moment (d, K): the same of ``x`` and ``y``.
    squares (K,): the same of each output.
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
            total = 1.0  # not the rounded sum
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
        """Moments of the rows that are not in a part, about the same centres."""
        left = {name: getattr(self, name) - getattr(part, name) for name in ("weight", *SUMS)}
        return replace(self, **left)

    def squared_errors(self, W: Floats, intercept: Floats) -> Floats:
        """Weighted sum of squared residuals of each output, at given weights."""
        apart = self.y_center - self.x_center @ W - intercept
        squares = self.squares + np.einsum("ik,ik->k", W, self.gram @ W - 2.0 * self.moment)
        return squares + apart * (2.0 * (self.y_sum - self.x_sum @ W) + self.weight * apart)

    def averaged(self) -> "Moments":
        """The same with weights that sum to one."""
        means = {name: getattr(self, name) / self.weight for name in SUMS}
        return replace(self, weight=1.0, **means)

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
        """Whether a difference from the whole is accurate in every column."""
        mine = np.concatenate([np.diagonal(self.gram), self.squares])
        theirs = np.concatenate([np.diagonal(whole.gram), whole.squares]) / whole.weight
        centers = np.concatenate([whole.x_center, whole.y_center])
        near = np.abs(centers) <= FARTHEST * np.sqrt(theirs)
        return bool(((mine >= LEAST_SHARE * theirs) & (near | (centers == 0.0))).all())


def moments_of_parts(
    design: Design, target: Rows, weights: Rows, counts: NDArray[np.integer], *, centred: bool
) -> list[Moments]:
    """Moments of several parts of the rows, in one pass over ``X``.

    Shapes: target (n, K), weights (n,).
    counts (n, n_parts): how often each part has each row.
    centred: about the means of each part, or about zero.
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
    """Moments of the same rows with several weightings, each scaled to sum to one.

    Shapes: target (n, K).
    weigh: the weights of some rows, ``Q x m``.
    centred: about the means of each weighting, or about zero.
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
    """The rows of a part; on a device all rows, the others with weight zero."""
    weights = w * cast(counts, w.dtype)
    if not X.on_host:
        return X, y, weights
    index = np.flatnonzero(counts)
    return cast_to(LocalDesign, X).rows(index), y[index], weights[index]


class QuadraticObjective:
    """Squared loss plus ridge (eq:feat) by the Gram matrix.

    ``f(W) = 1/2 tr W'(G + alpha) W - tr C'W + constant``

    Shapes: penalties (d,), y_means (K,).
    gram (d, d): ``G``, weighted by shares and centred if there is an intercept.
    moment (d, K): ``C``, the same of ``X'y``.
    constant: half the mean square of the (centred) targets.
    x_means (d,): means of the columns of ``X``, zeros without intercept.
    """

    quadratic = True
    least = 0.0  # no squared loss is negative
    cluster = staticmethod(cluster_values)
    side_by_side = staticmethod(one_by_one)

    def __init__(
        self,
        gram: Floats,
        moment: Floats,
        constant: float,
        *,
        penalties: Floats,
        x_means: Floats,
        y_means: Floats,
    ) -> None:
        self.gram = gram
        self.moment = moment
        self.constant = constant
        self.penalties = penalties
        self.x_means = x_means
        self.y_means = y_means
        self.shape: tuple[int, int] = moment.shape

    @property
    def alpha(self) -> float:
        """The ridge, where all rows have the same."""
        return float(self.penalties[0])

    def with_alpha(self, alpha: float) -> "QuadraticObjective":
        """The same loss with another alpha."""
        return self.with_penalties(np.full(self.shape[0], alpha))

    def with_penalties(self, penalties: Floats) -> "QuadraticObjective":
        """The same loss with another ridge for each row of ``W``."""
        other = copy(self)
        other.penalties = penalties
        return other

    @property
    def scale(self) -> float:
        """The objective at zero weights, whose rounding all others share."""
        return self.constant

    def at(self, W: Floats, near: Point | None = None) -> Point:
        """The point at ``W``."""
        slope = self.gram @ W - self.moment
        ridge = 0.5 * float(self.penalties @ np.square(W).sum(axis=1))
        value = self.constant + 0.5 * float(np.vdot(W, slope - self.moment)) + ridge
        return Point(W, max(value, ridge), self.y_means - self.x_means @ W, slope)

    def resolves(self, point: Point) -> bool:
        """Whether the value at a point is not the small difference of large terms."""
        reach = np.sqrt(np.maximum(np.diagonal(self.gram), 0.0)) @ np.abs(point.W)
        return bool(np.square(reach).sum() <= MOST_CANCELLED * point.value)

    def gradient(self, point: Point) -> Floats:
        """``(G + alpha) W - C``."""
        return self.loss_gradient(point) + self.penalties[:, None] * point.W

    def loss_gradient(self, point: Point) -> Floats:
        """``G W - C``."""
        return point.slope

    def bend(self, point: Point, direction: Floats) -> float:
        """Curvature along a direction."""
        bent = self.gram @ direction + self.penalties[:, None] * direction
        return float(np.vdot(direction, bent))

    def curvatures(self) -> Floats:
        """The diagonal of the second derivative."""
        return np.diagonal(self.gram) + self.penalties

    def quadratic_model(self, point: Point) -> "QuadraticObjective":
        """The objective itself."""
        return self

    def keep(self, nearest: Projection, near: Point | None = None) -> Point:
        """The point with projected weights as they are, without a refit."""
        return self.at(nearest.point, near)

    def rows(self, point: Point) -> Floats:
        """The rows that are grouped: the weights."""
        return point.W

    def dual_bound(self, point: Point, explained: float) -> float:
        """A lower bound on a union of subspaces; see `LinearObjective.dual_bound`.

        With the residual ``b`` of the point the bound is
        ``tau <y, b> - tau^2/2 (||b||^2 + explained / alpha)``, and the best ``tau`` is known.
        """
        alpha = float(self.penalties.min())
        if alpha <= 0.0:
            return self.minimum(0.0).value
        along = 2.0 * self.constant - float(np.vdot(self.moment, point.W))
        ridge = 0.5 * float(self.penalties @ np.square(point.W).sum(axis=1))
        spread = 2.0 * max(0.0, point.value - ridge) + explained / alpha
        return 0.5 * along * (along / spread) if spread > 0.0 else 0.0

    def minimum(self, tol: float, start: Floats | None = None, near: Point | None = None) -> Point:
        """The unconstrained minimum, by a factorisation."""
        return self.at(_solve_positive(self.gram + np.diag(self.penalties), self.moment))

    def refit(
        self, labels: Labels, n_groups: int, tol: float, start: Floats | None = None
    ) -> Point:
        """The best weights with the given groups: ``Z'(G + alpha)Z V = Z'C``."""
        return self.refits(labels, n_groups, tol, (1.0,), start)[0]

    def refits(
        self,
        labels: Labels,
        n_groups: int,
        tol: float,
        factors: Sequence[float],
        start: Floats | None = None,
        intercept: Floats | None = None,
    ) -> list[Point]:
        """The same with each of several multiples of the ridge; no start is needed."""
        Z = assignment(labels, n_groups)
        grouped, sizes, moment = Z.T @ (Z.T @ self.gram).T, Z.T @ self.penalties, Z.T @ self.moment
        return [
            self.with_penalties(factor * self.penalties).at(
                Z @ _solve_positive(grouped + factor * np.diag(sizes), moment)
            )
            for factor in factors
        ]


def quadratic_objective(
    design: Design, response: Response, penalties: Floats
) -> QuadraticObjective:
    """The squared loss of a design, by its Gram matrix."""
    moments = Moments.about_mean if response.fit_intercept else Moments.about_zero
    about = design.sweep(moments, response.target, response.shares, combine=Moments.joined)
    return objective_of(about, penalties)


def objective_of(mean: Moments, penalties: Floats) -> QuadraticObjective:
    """The squared loss of rows whose weights sum to one, about their means or zero."""
    require_finite(mean.gram, "a sum of products of columns of X")
    require_finite(mean.moment, "a sum of products of a column of X with y")
    require_finite(mean.squares, "the sum of the squared targets")
    return QuadraticObjective(
        mean.gram,
        mean.moment,
        0.5 * float(mean.squares.sum()),
        penalties=penalties,
        x_means=mean.x_center,
        y_means=mean.y_center,
    )


def remaining_objective(
    whole: Moments, part: Moments, fit_intercept: bool, penalties: Floats
) -> QuadraticObjective | None:
    """The squared loss of the rows that are not in a part, or None if that would be inaccurate."""
    rest = whole.without(part)
    mean = rest.centred() if fit_intercept else rest.averaged()
    return objective_of(mean, penalties) if mean.reliable(whole) else None


def gram_pays(n_samples: int, n_features: int, n_parts: int = 1) -> bool:
    """Whether Gram matrices, one for each part of the rows, are cheaper than products with X."""
    tall = n_features * n_parts <= n_samples
    return n_features <= GRAM_ALWAYS or (n_features <= GRAM_IF_TALL and tall)


def sums_tell(design: Design, fit_intercept: bool) -> bool:
    """Whether sums of squares keep the digits of scores.

    About means they do; about zero they lose twice as many as columns lie ranges from it.
    """
    return fit_intercept or next(design.far_columns(FARTHEST_RANGES), None) is None


def inverse_roots(diagonal: Floats) -> Floats:
    """Factors that scale a diagonal to ones; one where it is zero."""
    return 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))


def _solve_positive(matrix: Floats, right: Floats) -> Floats:
    """Solve a positive semi-definite system; the shortest solution if there are many."""
    # Scaled to a diagonal of ones, so that columns in small units are not taken for dependent ones.
    scale = inverse_roots(np.diagonal(matrix))
    try:
        # The sums of products have been checked to be finite.
        factor = linalg.cho_factor(scale[:, None] * matrix * scale, check_finite=False)
        if np.abs(np.diagonal(factor[0])).min(initial=np.inf) > 1e-7:
            return scale[:, None] * linalg.cho_solve(factor, scale[:, None] * right)
    except linalg.LinAlgError:
        pass
    values, vectors = linalg.eigh(matrix)
    kept = values > values.size * np.finfo(np.float64).eps * values.max(initial=0.0)
    inverse = np.divide(1.0, values, where=kept, out=np.zeros_like(values))
    return vectors @ (inverse[:, None] * (vectors.T @ right))
