"""Minima without constraint for classes where rows or weights are many: a quasi-Newton method.

Limited-memory BFGS, with the model of `clustruct.objectives.class_curvature` as the first guess of
the inverse: it learns the rest from gradients.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from clustruct._typing import Floats, Labels
from clustruct.objectives.class_curvature import ClassCurvature, ClassWeights, Systems, chances_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clustruct.objectives.linear import Point

# Rows, evenly spaced, that a model is made of: its error is far below that of the model itself.
MODEL_ROWS = 4096
# Pairs of steps and changes of the gradient that are kept.
MEMORY = 8
MAX_STEPS = 500
# The model is renewed where the decrement, relative as the tolerance, is first below this: it is
# then near enough to the end to serve until then.
RENEW = 0.03
# Without a start, that many times the rows of a model are first fitted by those rows alone, to this
# tolerance, which is about their noise.
MANY, THIN_TOL = 4, 0.03
MAX_HALVINGS = 30
# Part of the decrease that the slope promises which a step has to gain.
SUFFICIENT = 1e-4
# Decrements below this part of the objective are hidden by rounding.
ROUNDING = 1e-12


class ManyRows:
    """The problem of classes of rows in memory: see `few_weights.few_weights`.

    Arrays with an entry for each class and row have the classes first, so that sums over classes
    run along rows.
    """

    def __init__(
        self, rows: Floats, codes: Labels, shares: Floats, n_outputs: int, fit_intercept: bool
    ) -> None:
        self.rows, self._codes, self._shares = rows, codes, shares
        self._n_outputs, self._fit_intercept = n_outputs, fit_intercept
        self._each = np.arange(rows.shape[0])
        # 1 for the second of two classes and -1 for the first.
        self._signs = 2.0 * codes - 1.0 if n_outputs == 1 else None

    @cached_property
    def _totals(self) -> Floats:
        """Shares of the classes."""
        counts = np.bincount(self._codes, self._shares, minlength=max(2, self._n_outputs))
        return counts.astype(np.float64, copy=False)

    @cached_property
    def _entropy(self) -> float:
        """The mean loss without weights."""
        return -float(self._totals @ np.log(self._totals))

    @cached_property
    def _thin(self) -> "ManyRows":
        """The problem of evenly spaced rows."""
        step = self.rows.shape[0] // MODEL_ROWS
        shares = self._shares[::step] if step > 1 else self._shares
        if step <= 1 or not shares.sum() > 0.0:
            return self
        rows = np.ascontiguousarray(self.rows[::step])
        shares = shares / shares.sum()
        return ManyRows(rows, self._codes[::step], shares, self._n_outputs, self._fit_intercept)

    def minima(
        self,
        ridges: "Sequence[Floats]",
        tol: float,
        start: Floats | None = None,
        intercept: Floats | None = None,
    ) -> "list[Point] | None":
        """The minimum for each of several ridges, or None where another method has to find them.

        As `FewWeights.minima`: fits end when the squared decrement, by the model, is below
        ``tol^2`` times the loss without weights.
        """
        from clustruct.objectives.linear import Point

        together = np.array(ridges, dtype=np.float64)
        if not ((together > 0.0).all() and (self._totals > 0.0).all()):
            return None
        W, b = start, intercept
        if start is None and self.rows.shape[0] >= MANY * MODEL_ROWS:
            begun = self._thin.minima(ridges[:1], THIN_TOL, None, intercept)
            if begun is not None:
                W, b = begun[0].W, begun[0].intercept
        here = self._begin(W, b, together[0])
        if not np.isfinite(here.loss):
            return None
        found = []
        for ridge in together:
            done = self._minimise(here, ridge, tol)
            if done is None:
                return None
            here = done
            _, value = self._with_ridge(here, ridge)
            found.append(Point(here.W, value, here.b, here.slopes.T))
        return found

    def _begin(self, W: Floats | None, b: Floats | None, ridge: Floats) -> "_State":
        """Where a fit begins: without weights, or where that is no better."""
        logs, none = np.log(self._totals), np.zeros((self.rows.shape[1], self._n_outputs))
        base = logs[1:] - logs[:1] if self._n_outputs == 1 else logs - logs.mean()
        base = base if self._fit_intercept else np.zeros(self._n_outputs)
        if W is None:
            return self._at(none, base)
        here = self._at(W, base if b is None or not self._fit_intercept else b)
        better = self._with_ridge(here, ridge)[1] <= self._entropy
        return here if better else self._at(none, base)

    def curvature(self, W: Floats, b: Floats) -> ClassCurvature:
        """The model of the second derivative at some weights."""
        thin = self._thin
        chances = chances_of(self._scores(thin.rows, W, b))
        weights = ClassWeights.of(thin._shares, chances, self._fit_intercept)
        return weights.curvature(thin.rows)

    # ---- The method.

    def _minimise(self, here: "_State", ridge: Floats, tol: float) -> "_State | None":
        """Limited-memory BFGS; None where it does not converge."""
        systems = self.curvature(here.W, here.b).scaled(ridge)
        history: list[tuple[Floats, Floats, Floats, Floats, float]] = []
        gradient, value = self._with_ridge(here, ridge)
        renewed = False
        for number in range(MAX_STEPS):
            move, shift = _two_loops(history, systems, gradient, here.slope)
            decrement = float(np.vdot(gradient, move) + here.slope @ shift)
            if decrement <= tol * tol * self._entropy:
                return here
            if not renewed and decrement <= RENEW**2 * self._entropy:
                renewed = True
                if number:
                    systems, history = self.curvature(here.W, here.b).scaled(ridge), []
                    continue
            there, length = None, 1.0
            for _ in range(MAX_HALVINGS):
                trial = self._at(here.W - length * move, here.b - length * shift)
                trial_gradient, trial_value = self._with_ridge(trial, ridge)
                if trial_value <= value - SUFFICIENT * length * decrement:
                    there = trial
                    break
                if decrement <= ROUNDING * value:
                    # So close that rounding hides the gain: nothing is left but that.
                    return trial if trial_value <= value else here
                length *= 0.5
            if there is None:
                if not history:
                    return None
                history = []
                continue
            changes = (there.W - here.W, there.b - here.b, trial_gradient - gradient)
            turned = there.slope - here.slope
            along = float(np.vdot(changes[0], changes[2]) + changes[1] @ turned)
            if along > 0.0:
                history = [*history[1 - MEMORY :], (*changes, turned, 1.0 / along)]
            here, gradient, value = there, trial_gradient, trial_value
        return None

    def _with_ridge(self, here: "_State", ridge: Floats) -> tuple[Floats, float]:
        """Gradient and value with the ridge."""
        value = here.loss + 0.5 * float(ridge @ np.square(here.W).sum(axis=1))
        return here.gradient + ridge[:, None] * here.W, value

    # ---- The loss.

    def _at(self, W: Floats, b: Floats) -> "_State":
        """Loss and gradients at some weights."""
        loss, slopes = self._loss(self._scores(self.rows, W, b))
        slope = slopes.sum(axis=1) if self._fit_intercept else np.zeros(self._n_outputs)
        return _State(W, b, loss, (slopes @ self.rows).T, slope, slopes)

    def _scores(self, rows: Floats, W: Floats, b: Floats) -> Floats:
        scores = W.T @ rows.T
        scores += b[:, None]
        return scores

    def _loss(self, scores: Floats) -> tuple[float, Floats]:
        """Mean loss, and its derivative by the scores."""
        if self._signs is not None:
            margins = self._signs * scores[0]
            far = np.exp(-np.abs(margins))
            wrong = np.where(margins >= 0.0, far, 1.0) / (1.0 + far)
            loss = float(self._shares @ (np.log1p(far) + np.maximum(-margins, 0.0)))
            return loss, (-self._signs * self._shares * wrong)[None]
        scores = scores - scores.max(axis=0)
        own = scores[self._codes, self._each]
        powers = np.exp(scores, out=scores)
        sums = powers.sum(axis=0)
        powers /= sums
        powers[self._codes, self._each] -= 1.0
        powers *= self._shares
        return float(self._shares @ (np.log(sums) - own)), powers


@dataclass(frozen=True, eq=False)
class _State:
    """Weights and intercept, the loss there, its gradients, and its derivative by the scores."""

    W: Floats
    b: Floats
    loss: float
    gradient: Floats
    slope: Floats
    slopes: Floats


def _two_loops(
    history: list[tuple[Floats, Floats, Floats, Floats, float]],
    systems: Systems,
    gradient: Floats,
    slope: Floats,
) -> tuple[Floats, Floats]:
    """The inverse of the second derivative, as far as it is known, times a gradient."""
    R, r = gradient.copy(), slope.copy()
    parts = []
    for step, shift, change, turn, scale in reversed(history):
        part = scale * float(np.vdot(step, R) + shift @ r)
        R -= part * change
        r -= part * turn
        parts.append(part)
    V, v = systems.step(R, r, 1.0)
    for (step, shift, change, turn, scale), part in zip(history, reversed(parts), strict=True):
        other = scale * float(np.vdot(change, V) + turn @ v)
        V += (part - other) * step
        v += (part - other) * shift
    return V, v
