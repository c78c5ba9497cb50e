"""The objective without constraint: mean loss of a linear model plus ridge (eq:gen_form).

    minimise (1/S) sum_i s_i loss(y_i, x_i' W + b) + 1/2 sum_j penalty_j ||W_j||^2   over W (d x K),

with the intercept ``b`` always at its best for ``W``. A value takes one product with ``X``, a
gradient one more.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import minimize_scalar

from clustruct._typing import Floats, Labels
from clustruct.arrays import beside, namespace, row_dots
from clustruct.design import Operator, Rows
from clustruct.losses import Contrasts, Loss, best_intercept, least_mean, mean_hessian
from clustruct.objectives.few_weights import class_problem
from clustruct.objectives.newton import Expansion, Line, minimise
from clustruct.results import Projection

# A hundred times the rounding of a number, in units of what `Certificate.of` takes for rounding.
ROUNDED = 2e-6
# The same for ``X`` of single precision is this many times coarser.
SINGLE = 1e3
# Relative differences of a value up to this may be rounding.
ROUNDING = 1e-12
# Tolerance of a fit at which intercepts are the best ones, too.
SHARP = 1e-9
# A multiple of the slopes just below all of them, and the precision of the best multiple: bounds
# change by its square.
NEARLY, COARSE = 0.999, 1e-3
# Second derivatives up to this size count as zero.
FLAT = 1e-100


@dataclass(frozen=True, eq=False)
class Point:
    """Weights, the objective there, and the derivative of the loss.

    Shapes: W (d, K).
    intercept (K,): the best one for these weights.
    slope: derivative of the loss: by the scores (``n x K``, weighted), or by the weights
        (``d x K``) if only the Gram matrix is known.
    """

    W: Floats
    value: float
    intercept: Floats
    slope: Floats


@dataclass(frozen=True, eq=False)
class Response:
    """Target, loss and weights.

    Shapes: target (n, K) or (n,).
    n_outputs: ``K``, the number of columns of the scores.
    shares (n,): weights of the rows, which sum to one.
    """

    target: Rows
    loss: Loss
    n_outputs: int
    shares: Rows
    fit_intercept: bool

    @cached_property
    def contrasts(self) -> Contrasts | None:
        """What scores tell of classes, if the loss is of nothing else."""
        ask = getattr(self.loss, "contrasts", None)  # losses that users wrote may lack it
        found: Contrasts | None = None if ask is None else ask(self.n_outputs)
        return found

    @cached_property
    def class_codes(self) -> Labels:
        """Class of each row, for losses with contrasts and rows of the host."""
        return self.loss.class_codes(self.target)

    @cached_property
    def base_intercept(self) -> Floats:
        """The best intercept without weights, for the same."""
        totals = np.bincount(self.class_codes, self.shares, minlength=max(2, self.n_outputs))
        if (totals > 0.0).all():
            logs = np.log(totals)
            return logs[1:] - logs[:1] if self.n_outputs == 1 else logs - logs.mean()
        return best_intercept(
            self.loss,
            self.target,
            np.zeros((self.shares.shape[0], self.n_outputs)),
            self.shares,
            np.zeros(self.n_outputs),
        )


class LinearObjective:
    """Mean loss plus ridge, by products with ``X``.

    penalties (d,): strength of the ridge on each row of ``W``: alpha, or alpha times the size of a
        group.
    """

    def __init__(self, design: Operator, response: Response, penalties: Floats) -> None:
        self.design = design
        self.response = response
        self.penalties = penalties
        self.shape = (design.shape[1], response.n_outputs)
        self.quadratic = response.loss.quadratic
        self._moments: tuple[Floats, Floats] | None = None

    @cached_property
    def least(self) -> float:
        """A lower bound of the objective for any weights: the least mean loss of any scores."""
        response, fold = self.response, self.design.fold
        return least_mean(response.loss, response.target, response.n_outputs, response.shares, fold)

    @property
    def scale(self) -> float:
        """Size of the numbers that values and bounds are sums of, for `Certificate.of`.

        The objective at zero weights, and more if targets are far from zero: residuals of targets
        ``y`` are rounded in proportion to ``|y|``, their squares to ``|r| |y|``.
        """
        n_outputs, rows = self.shape[1], (self.response.target, self.response.shares)
        loss = self.response.loss
        scores = self.design.map(
            lambda s: namespace(s).stack([0.0 * s] * n_outputs, axis=1), self.response.shares
        )
        offset = self.design.fold(lambda y, s, z: s @ loss.value(y, z), *rows, scores)
        around = abs(self.at_scores(np.zeros(self.shape), scores, np.zeros(n_outputs)).value)
        size = max(around, ROUNDED * float(np.sqrt(abs(float(offset)) * around)))
        return SINGLE * size if self.design.single else size

    def at(self, W: Floats, near: Point | None = None) -> Point:
        """The point at ``W``; the search for its intercept starts from that of a near point."""
        intercept = np.zeros(self.shape[1]) if near is None else near.intercept
        return self.at_scores(W, self.design.scores(W), intercept)

    def at_scores(self, W: Floats, scores: Rows, intercept: Floats) -> Point:
        """The point at ``W``, given its scores and a start for the intercept."""
        response, loss = self.response, self.response.loss
        if response.fit_intercept:
            intercept = best_intercept(
                loss, response.target, scores, response.shares, intercept, self.design.fold
            )
        scores = self.shift(scores, intercept)
        rows = (response.target, scores, response.shares)
        mean = float(self.design.fold(lambda y, z, s: s @ loss.value(y, z), *rows))
        slope = self.design.map(lambda y, z, s: s[:, None] * loss.gradient(y, z), *rows)
        return Point(W, mean + self.ridge(W), intercept, slope)

    def ridge(self, W: Floats) -> float:
        """The ridge penalty of the weights."""
        return 0.5 * float(self.penalties @ np.square(W).sum(axis=1))

    def shift(self, scores: Rows, intercept: Floats) -> Rows:
        """Scores with the intercept."""
        return self.design.map(lambda z: z + beside(intercept, z), scores)

    def gradient(self, point: Point) -> Floats:
        """``X' slope + penalty W``; the best intercept contributes nothing."""
        return self.loss_gradient(point) + self.penalties[:, None] * point.W

    def loss_gradient(self, point: Point) -> Floats:
        """Gradient of the mean loss alone."""
        return self.design.adjoint(point.slope)

    def around(self, W: Floats, near: Point) -> Expansion:
        """Second-order expansion at ``W`` and the intercept of a point."""
        return RowsExpansion(self, W, near.intercept, self.design.scores(W))

    def bend(self, point: Point, direction: Floats) -> float:
        """Curvature along a direction, in one pass over ``X``."""
        design, loss, n_outputs = self.design, self.response.loss, self.shape[1]
        both = design.scores(np.hstack([point.W, direction]))
        scores = self.shift(design.map(lambda b: b[:, :n_outputs], both), point.intercept)
        moved = design.map(lambda b: b[:, n_outputs:], both)
        rows = (self.response.target, scores, self.response.shares)
        if self.response.fit_intercept:
            slopes, bends = design.fold(
                lambda m, y, z, s: (
                    s @ loss.hessian_product(y, z, m),
                    mean_hessian(loss, y, z, s),
                ),
                moved,
                *rows,
            )
            moved = self.shift(moved, -(inverse(bends) @ slopes))
        curved = design.fold(
            lambda m, y, z, s: s @ row_dots(m, loss.hessian_product(y, z, m)), moved, *rows
        )
        return float(curved) + float(self.penalties @ np.square(direction).sum(axis=1))

    def keep(self, nearest: Projection, near: Point | None = None) -> Point:
        """The point with projected weights as they are, without a refit."""
        return self.at(nearest.point, near)

    def rows(self, point: Point) -> Floats:
        """The rows that are grouped: the weights."""
        return point.W

    def curvatures(self) -> Floats:
        """Upper bounds of the diagonal of the second derivative."""
        means, variances = self._column_moments()
        squares = variances if self.response.fit_intercept else variances + means**2
        return self.response.loss.curvature * squares + self.penalties

    def _column_moments(self) -> tuple[Floats, Floats]:
        """Mean and variance of each column, computed once."""
        if self._moments is None:
            self._moments = self.design.moments(self.response.shares)
        return self._moments

    def dual_bound(self, point: Point, explained: float) -> float:
        """A lower bound of the objective on a union of subspaces, by Fenchel duality.

        With ``g`` the derivative of the loss by the scores at the point, every ``W`` of the union
        has

            f(W) >= -sum_i share_i loss*(tau g_i) - tau^2 explained / (2 alpha)

        for ``0 <= tau <= 1``, where ``explained`` is the most that a subspace holds of
        ``||X' g||^2`` (weighted). The best intercept makes the slopes sum to zero, as it must be;
        what rounding leaves of that sum counts at the intercept, not at zero, which may be far.
        """
        response = self.response
        alpha, loss = float(self.penalties.min()), response.loss
        # Without ridge the dual has no feasible point but zero.
        if alpha <= 0.0 or not getattr(loss, "has_conjugate", True):
            return self.least
        slope = self.design.map(_per_share, point.slope, response.shares)
        rows = (response.target, slope, response.shares)

        left = 0.0
        if response.fit_intercept:
            left = float(
                self.design.fold(lambda g: namespace(g).sum(g, axis=0), point.slope)
                @ point.intercept
            )

        def bound(tau: float) -> float:
            conjugate = self.design.fold(lambda y, g, s: s @ loss.conjugate(y, tau * g), *rows)
            return tau * left - float(conjugate) - 0.5 * tau**2 * explained / alpha

        longest, whole = getattr(loss, "stretch", 1.0), bound(1.0)
        if longest == 1.0 and whole >= bound(NEARLY):
            return max(self.least, whole)  # concave, so that it rises up to there
        best = minimize_scalar(
            lambda tau: -bound(float(tau)),
            bounds=(0.0, longest),
            method="bounded",
            options={"xatol": COARSE},
        )
        return max(self.least, -float(best.fun), whole)

    def minimum(self, tol: float, start: Floats | None = None, near: Point | None = None) -> Point:
        """The unconstrained minimum, by Newton's method from given weights or a point."""
        if start is None:
            start = np.zeros(self.shape) if near is None else near.W
        few, found = class_problem(self.design, self.response), None
        if few is not None:
            intercept = None if near is None else near.intercept
            found = few.minima([self.penalties], tol, start, intercept)
        if found is None:
            return minimise(self, start, near, tol=tol)
        # Bounds need the best intercept.
        return found[0] if tol <= SHARP else self.at(found[0].W, near=found[0])


class RowsExpansion(Expansion):
    """Second-order expansion by products with ``X``, see `newton`.

    With ``r`` and ``H`` its derivatives by the scores, ``u = 1'r``, ``T = 1'H 1`` and
    ``C_k = X'H e_k``, which need not be formed.

    Shapes: W (d, K), intercept (K,).
    scores (n, K): without intercept.
    """

    def __init__(
        self, objective: LinearObjective, W: Floats, intercept: Floats, scores: Rows
    ) -> None:
        response, loss = objective.response, objective.response.loss
        self._objective = objective
        self._W = W
        self._intercept = intercept
        self._scores = scores
        shifted = objective.shift(scores, intercept)
        self._rows = (response.target, shifted, response.shares)
        n_outputs = W.shape[1]
        self._slope, self._inner = np.zeros(n_outputs), np.zeros((n_outputs, n_outputs))
        if response.fit_intercept:
            mean, self._slope, bends = objective.design.fold(
                lambda y, z, s: (
                    s @ loss.value(y, z),
                    s @ loss.gradient(y, z),
                    mean_hessian(loss, y, z, s),
                ),
                *self._rows,
            )
            self._inner = inverse(bends)
        else:
            mean = objective.design.fold(lambda y, z, s: s @ loss.value(y, z), *self._rows)
        self.value = float(mean) + objective.ridge(W)

    @cached_property
    def gradient(self) -> Floats:  # type: ignore[override]
        """``X'(r - H 1 T^-1 u) + penalty W``."""
        objective, loss = self._objective, self._objective.response.loss
        behind = self._inner @ self._slope

        def slope(y: Rows, z: Rows, s: Rows) -> Rows:
            slopes = loss.gradient(y, z)
            if behind.any():
                direction = namespace(z).broadcast_to(beside(behind, z), z.shape)
                slopes = slopes - loss.hessian_product(y, z, direction)
            return s[:, None] * slopes

        slopes = objective.design.map(slope, *self._rows)
        return objective.design.adjoint(slopes) + objective.penalties[:, None] * self._W

    def product(self, direction: Floats) -> Floats:
        """``X'(H - H 1 T^-1 1'H) X D + penalty D``."""
        objective, loss = self._objective, self._objective.response.loss
        moved = objective.design.scores(direction)
        moved = objective.shift(moved, -(self._inner @ self._tilt(moved)))
        bent = objective.design.map(
            lambda m, y, z, s: s[:, None] * loss.hessian_product(y, z, m), moved, *self._rows
        )
        return objective.design.adjoint(bent) + objective.penalties[:, None] * direction

    def along(self, move: Floats) -> Line:
        """The line along a move: its points take no further product with ``X``."""
        objective, design = self._objective, self._objective.design
        moved = design.scores(move)
        behind = self._inner @ self._slope
        shift = -behind - self._inner @ self._tilt(moved)

        def at(length: float) -> RowsExpansion:
            scores = design.map(lambda z, m: z + length * m, self._scores, moved)
            intercept = self._intercept + length * shift
            return RowsExpansion(objective, self._W + length * move, intercept, scores)

        return Line(float(np.vdot(self.gradient, move)) - float(self._slope @ behind), at)

    def settled(self) -> Point:
        """The point with the best intercept, by the scores alone."""
        return self._objective.at_scores(self._W, self._scores, self._intercept)

    def _tilt(self, moved: Rows) -> Floats:
        """``C'D``, by the scores of a direction."""
        if not self._inner.any():
            return np.zeros(self._inner.shape[0])
        loss = self._objective.response.loss
        tilt: Floats = self._objective.design.fold(
            lambda m, y, z, s: s @ loss.hessian_product(y, z, m), moved, *self._rows
        )
        return tilt


def inverse(bends: Floats) -> Floats:
    """Pseudo-inverse of the second derivative by the intercept.

    A common shift of all classes has no curvature, and what rounding leaves of it must not be
    inverted; nor what is left of a loss if all predictions are all but certain.
    """
    if not np.abs(bends).max(initial=0.0) > FLAT:
        return np.zeros_like(bends)
    return np.asarray(np.linalg.pinv(bends, rcond=ROUNDING), dtype=np.float64)


def _per_share(slope: Rows, shares: Rows) -> Rows:
    """Slopes over the shares; zero, whose conjugate is finite, for rows without weight."""
    xp = namespace(slope)
    weighed = shares[:, None] > 0.0
    divisor = xp.where(weighed, shares[:, None], 1.0)
    return xp.where(weighed, slope / divisor, 0.0)
