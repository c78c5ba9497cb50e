"""Minima without constraint for classes where rows or weights are many: a quasi-Newton method.

The second derivative of the mean loss of classes, ``sum_i s_i (diag p_i - p_i p_i') (x) x_i x_i'``,
has a square for every pair of classes. Here it is modelled by one Kronecker product,

    H ~ A (x) B,   B = sum_i h_i (x_i - m)(x_i - m)',   h_i = s_i tr(diag p_i - p_i p_i'),
                   A = sum_i s_i (diag p_i - p_i p_i') / sum_i h_i,

with ``m`` the mean of the rows by the weights ``h``, which leaves the intercept by itself. For two
classes the model is exact. With a ridge ``t r_j`` on the weights of column ``j``, the eigenvectors
of ``A`` and of ``B`` scaled by ``r`` solve its systems for every ``t``. The model is the first
guess of the inverse in the limited-memory BFGS method, which learns the rest from gradients.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from clustruct._typing import Floats, Labels

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
# Eigenvalues up to this part of the largest one count as zero.
FLAT = 1e-12


@dataclass(frozen=True, eq=False)
class ClassCurvature:
    """The model ``A (x) B`` of the second derivative; shapes as in `ManyRows`.

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

    def solve(self, R: Floats, factors: "Sequence[float]") -> list[Floats]:
        """The solutions for each of several multiples of the ridge."""
        U = self._model.by_class[1]
        turned = self._sides.T @ R @ U
        return [self._sides @ (turned / (self._bends + factor)) @ U.T for factor in factors]

    def step(self, R: Floats, slope: Floats, factor: float) -> tuple[Floats, Floats]:
        """Solution for gradients by the weights and by the intercept, which has no ridge."""
        model = self._model
        a, U = model.by_class
        (V,) = self.solve(R - np.outer(model.means, slope), (factor,))
        bends = np.where(a > 0.0, a, np.inf) * model.total
        return V, U @ ((U.T @ slope) / bends) - model.means @ V


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
        """Where a fit begins: at no weights if given ones are worse than equal probabilities."""
        none = np.zeros((self.rows.shape[1], self._n_outputs))
        if b is None:
            logs = np.log(self._totals)
            b = logs[1:] - logs[:1] if self._n_outputs == 1 else logs - logs.mean()
        b = b if self._fit_intercept else np.zeros(self._n_outputs)
        here = self._at(none if W is None else W, b)
        worse = not self._with_ridge(here, ridge)[1] <= np.log(self._totals.size)
        return self._at(none, b) if worse and W is not None else here

    def curvature(self, W: Floats, b: Floats) -> ClassCurvature:
        """The model of the second derivative at some weights."""
        rows, shares = self._thin.rows, self._thin._shares
        chances = self._chances(self._scores(rows, W, b))
        if self._n_outputs == 1:
            weights = shares * chances[0] * (1.0 - chances[0])
            classes = np.ones((1, 1))
        else:
            weights = shares * (1.0 - np.square(chances).sum(axis=0))
            classes = np.diag(chances @ shares) - (chances * shares) @ chances.T
        weights = np.maximum(weights, 0.0)
        total = float(weights.sum())
        means = weights @ rows / total if self._fit_intercept and total > 0.0 else 0.0 * rows[0]
        away = (rows - means) * np.sqrt(weights)[:, None]
        return ClassCurvature(
            away.T @ away, means, classes / max(float(np.trace(classes)), 1e-300), total
        )

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

    def _chances(self, scores: Floats) -> Floats:
        """Probabilities; of the second class alone if there are two."""
        if self._signs is not None:
            far = np.exp(-np.abs(scores))
            return np.where(scores >= 0.0, 1.0, far) / (1.0 + far)
        powers = np.exp(scores - scores.max(axis=0))
        powers /= powers.sum(axis=0)
        return powers


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
