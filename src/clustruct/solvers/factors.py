"""Block coordinate descent for factors, along a path of prices for each group.

The problem is that of clustered features with a one-hot column for each level, in which levels share
weights inside their factor only:

    minimise (1/S) sum_i s_i loss(y_i, z_i) + 1/2 sum_j alpha_j ||theta_j||^2 + price (groups - F)

with scores ``z_i = b + sum_j theta_j[c_ij] + x_i' beta`` over ``F`` factors. Sweeps over the factors
(`kernels.sweeps`) choose groups on a quadratic model of the loss, whose weights and residuals are
those of Newton's method; for given groups all values, the numeric columns and the intercept are then
fitted together. Both lower the same objective, so that their alternation ends.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from clustruct._typing import Floats, Labels
from clustruct.design.factors import FactorDesign
from clustruct.kernels.sweeps import Levels, sweep
from clustruct.objectives.linear import Response


@dataclass(frozen=True)
class SweepSettings:
    """Limits of the alternation."""

    # Sweeps in a row before values are fitted together, and rounds of both.
    n_sweeps: int = 4
    n_rounds: int = 30
    # Newton steps, and how often a step that raises the objective is shortened.
    n_newton: int = 30
    n_shortened: int = 8
    # Relative decrease of the objective below which a fit has ended.
    tol: float = 1e-7
    # Curvature of a row below this share of the mean one counts as that much.
    least_curvature: float = 1e-6
    # Iterations of empirical Bayes, and the change of a strength that ends them.
    n_strengths: int = 50
    strengths_tol: float = 1e-2
    # The strength of a factor is not larger than this many times the mean curvature of a level.
    strongest: float = 1e3


SETTINGS = SweepSettings()


@dataclass(frozen=True, eq=False)
class FactorState:
    """Groups and values of all factors, numeric weights and the intercept.

    Shapes: values (levels of all factors,), labels the same, numeric (p,).
    groups: number of groups of each factor.
    value: the objective, without the price.
    """

    values: Floats
    labels: Labels
    groups: Labels
    numeric: Floats
    intercept: float
    value: float


class FactorSweeps:
    """The problem, with the state of its factors."""

    def __init__(
        self,
        design: FactorDesign,
        response: Response,
        alphas: Floats,
        numeric_alpha: float,
        kinds: Sequence[int],
        most: Sequence[int],
        min_weights: Sequence[float],
        settings: SweepSettings = SETTINGS,
    ) -> None:
        self.design, self.response, self.settings = design, response, settings
        self.alphas, self.numeric_alpha = alphas, numeric_alpha
        self.loss, self.target = response.loss, response.target
        self.shares = np.ascontiguousarray(response.shares)
        self.numeric = np.zeros(design.numeric.shape[1])
        self.intercept = 0.0
        self._tallies = [np.bincount(c, self.shares, minlength=n) for c, n in zip(design.codes, design.n_levels)]
        about = zip(design.codes, design.n_levels, kinds, most, self._tallies, min_weights, strict=True)
        self.factors = [
            Levels(codes, n, kind, count, tally, float(least))
            for codes, n, kind, count, tally, least in about
        ]
        self.scores = np.zeros(design.shape[0])
        if response.fit_intercept:
            self._settle_intercept()
        self._model()

    # ---- The quadratic model.

    def _settle_intercept(self) -> None:
        from clustruct.losses import best_intercept

        found = best_intercept(
            self.loss, self.target, self.scores[:, None], self.shares, np.zeros(1)
        )
        self.intercept += float(found[0])
        self.scores += found[0]

    def _model(self, stiffness: float = 1.0) -> None:
        """Newton's weights and residuals at the scores."""
        scores = self.scores[:, None]
        slope = self.loss.gradient(self.target, scores)[:, 0]
        self.rows = -self.shares * slope
        if self.loss.quadratic:
            self.weights = self.shares
        else:
            bend = self.loss.hessian_product(self.target, scores, np.ones_like(scores))[:, 0]
            least = self.settings.least_curvature * float(self.shares @ bend)
            self.weights = stiffness * self.shares * np.maximum(bend, least)
        self.total = float(self.weights.sum())
        for factor in self.factors:
            factor.weigh(self.weights)

    def objective(self) -> float:
        """Mean loss and ridge."""
        loss = float(self.shares @ self.loss.value(self.target, self.scores[:, None]))
        ridges = (a * float(np.square(f.array("values")).sum()) for a, f in zip(self.alphas, self.factors))
        return loss + 0.5 * (sum(ridges) + self.numeric_alpha * float(self.numeric @ self.numeric))

    def state(self) -> FactorState:
        """What has been found."""
        return FactorState(
            np.concatenate([f.array("values") for f in self.factors]),
            np.concatenate([f.array("labels") for f in self.factors]),
            np.array([f.count() for f in self.factors]),
            self.numeric.copy(),
            self.intercept,
            self.objective(),
        )

    # ---- Solving.

    def solve(self, price: float) -> FactorState:
        """Descend at a price, from where the last one has ended."""
        if self.loss.quadratic:
            self._alternate(price)
            self._rescore()
            return self.state()
        best = self.objective() + price * self._extra()
        stiffness = 1.0
        for _ in range(self.settings.n_newton):
            before = [(f.array("values").copy(), f.array("labels").copy(), f.count()) for f in self.factors]
            kept = self.numeric.copy(), self.intercept, self.scores.copy()
            self._alternate(price)
            self._rescore()
            value = self.objective() + price * self._extra()
            if not value <= best:
                for f, (values, labels, _) in zip(self.factors, before):
                    f.array("values")[:], f.array("labels")[:] = values, labels
                self.numeric, self.intercept, self.scores = kept
                stiffness *= 2.0
                if stiffness > 2.0**self.settings.n_shortened:
                    break
                self._model(stiffness)
                continue
            gained, best = best - value, value
            self._model(stiffness)
            if gained <= self.settings.tol * abs(best):
                break
        return self.state()

    def _extra(self) -> int:
        return sum(f.count() - 1 for f in self.factors)

    def _rescore(self) -> None:
        W = np.concatenate([*(f.array("values") for f in self.factors), self.numeric])[:, None]
        self.scores = self.design.scores(W)[:, 0] + self.intercept

    def _alternate(self, price: float) -> None:
        """Sweeps and joint fits on the quadratic model until no label changes."""
        for _ in range(self.settings.n_rounds):
            for _ in range(self.settings.n_sweeps):
                moved, shift, _ = sweep(
                    self.factors, self.rows, self.weights, self.alphas, price, self.total
                )
                self.intercept += shift
                if not moved:
                    break
            self._refit()
            if not moved:
                break

    def _refit(self) -> None:
        """Fit the values of all groups, the numeric weights and the intercept together."""
        active = [f for f in self.factors if f.count() > 1]
        p, counts = self.numeric.size, [f.count() for f in active]
        ends = np.cumsum([0, *counts, p])
        size = int(ends[-1])
        if size == 0:
            return
        matrix, sums, mass, ridge, held = np.zeros((size, size)), np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size)
        ridges = [a for a, f in zip(self.alphas, self.factors) if f.count() > 1]
        X = self.design.numeric
        for i, f in enumerate(active):
            mine = slice(ends[i], ends[i + 1])
            labels = f.array("labels")
            mass[mine] = np.bincount(labels, f.array("weights"), minlength=counts[i])
            ridge[mine] = ridges[i] * np.bincount(labels, minlength=counts[i])
            held[mine][labels] = f.array("values")
            f.add_up(self.rows)
            sums[mine] = np.bincount(labels, f.array("sums"), minlength=counts[i])
            matrix[mine, mine] = np.diag(mass[mine])
            for k in range(i + 1, len(active)):
                other = slice(ends[k], ends[k + 1])
                table = np.zeros((counts[i], counts[k]))
                f.table(active[k], self.weights, table)
                matrix[mine, other], matrix[other, mine] = table, table.T
        if p:
            own = slice(ends[-2], size)
            weighed = self.weights[:, None] * X
            mass[own], sums[own], ridge[own], held[own] = weighed.sum(axis=0), X.T @ self.rows, self.numeric_alpha, self.numeric
            matrix[own, own] = X.T @ weighed
            for i, f in enumerate(active):
                mine = slice(ends[i], ends[i + 1])
                for column in range(p):
                    f.add_up(np.ascontiguousarray(weighed[:, column]))
                    cross = np.bincount(f.array("labels"), f.array("sums"), minlength=counts[i])
                    matrix[mine, ends[-2] + column] = matrix[ends[-2] + column, mine] = cross
        left = float(self.rows.sum())
        if self.response.fit_intercept:
            matrix -= np.outer(mass, mass) / self.total
            sums = sums - mass * (left / self.total)
        matrix[np.diag_indices(size)] += ridge
        matrix[np.diag_indices(size)] += 1e-12 * np.trace(matrix) / size
        move = cho_solve(cho_factor(matrix, lower=True), sums - ridge * held)
        shift = (left - float(mass @ move)) / self.total if self.response.fit_intercept else 0.0
        self.intercept += shift
        for i, f in enumerate(active):
            mine = move[ends[i] : ends[i + 1]][f.array("labels")]
            f.array("values")[:] += mine
            f.shift(self.rows, self.weights, np.ascontiguousarray(mine + (shift if i == 0 else 0.0)))
        if p:
            self.numeric = self.numeric + move[ends[-2] :]
            self.rows -= self.weights * (X @ move[ends[-2] :] + (0.0 if active else shift))

    def path(self, prices: Floats) -> Iterator[FactorState]:
        """Solve at each price, from the largest to the smallest."""
        for price in np.sort(prices)[::-1]:
            yield self.solve(float(price))


def strengths(sweeps: FactorSweeps, n_samples: float, unit: bool) -> Floats:
    """The ridge of each factor by empirical Bayes: ``alpha_j = nu / tau_j^2``.

    Effects of levels are normal with variance ``tau_j^2``, noise has the variance ``nu`` for a share
    of one. Mean-field iterations: with the other factors held, levels have the posterior variance
    ``nu / (N_l + alpha_j)``, ``tau_j^2`` is the mean of squared effects and variances, and ``nu`` that
    of squared residuals and what is not known of the scores.
    """
    rows, weights, total = sweeps.rows.copy(), sweeps.weights, sweeps.total
    n = float(n_samples)
    safe = np.where(weights > 0.0, weights, 1.0)
    spread = float(np.sum(np.square(rows) / safe)) / n
    nu = 1.0 / n if unit else 0.5 * spread
    effects = [np.zeros(f.array("values").size) for f in sweeps.factors]
    tau = np.full(len(effects), max(spread * n / total / max(len(effects), 1), 1e-300))
    for _ in range(sweeps.settings.n_strengths):
        before, unknown = tau.copy(), 0.0
        for j, f in enumerate(sweeps.factors):
            f.add_up(rows)
            mass = f.array("weights")
            sums = f.array("sums") + mass * effects[j]
            mean = float(sums.sum()) / total
            alpha = nu / tau[j]
            new = (sums - mass * mean) / (mass + alpha)
            f.shift(rows, weights, mean + new - effects[j])
            effects[j] = new
            variances = nu / (mass + alpha)
            tau[j] = float(np.mean(np.square(new) + variances))
            unknown += float(mass @ variances)
        if not unit:
            nu = (float(np.sum(np.square(rows) / safe)) + unknown) / n
        if np.abs(np.log(tau / before)).max() < sweeps.settings.strengths_tol:
            break
    return np.minimum(nu / tau, sweeps.settings.strongest * total)
