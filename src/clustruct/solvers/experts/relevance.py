"""Mixture of regressions with a relevance prior that the experts share, for squared loss.

The weights of feature ``j`` are normal with precision ``a_j`` in all experts, and ``a_j`` is fitted
along: features that matter to no expert lose their weight in all of them. Each expert has a normal
posterior with mean ``v_q`` and covariance ``C_q``; with the expected costs

    c_iq = 1/2 |y_i - v_q' x_i|^2 + K/2 x_i' C_q x_i

and ``n`` the weight of all samples together, every step lowers the free energy

    F = -sum_i s_i log sum_q pi_q exp(-c_iq / T) + K/2 log(2 pi T) + sum_q KL_q / n,

where ``KL_q`` is the divergence of the posterior from the prior. The ridge of the objective has no
part in it: the prior takes its place.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from clustruct._finite import require_finite
from clustruct._typing import Floats
from clustruct.design import DenseDesign
from clustruct.losses import Noise
from clustruct.objectives.samples.objective import SampleObjective, without_negligible
from clustruct.solvers.driver import Solution, State, require
from clustruct.solvers.experts.mixture import (
    SMALLEST_SHARE,
    cooling_factors,
    log_likelihood,
    responsibilities,
)


@dataclass(frozen=True)
class RelevanceSettings:
    """Constants of the relevance prior."""

    # Temperature of the first step.
    heat: float = 2.0
    # Steps before the loop; from `first_drop` on, features without relevance are dropped.
    burn_in: int = 20
    first_drop: int = 10
    # A feature is dropped when its precision is this many times that of the most relevant ones:
    # early on, and later, when that hardly changes the free energy any more.
    dropped: float = 1e3
    negligible: float = 1e6
    n_most_relevant: int = 5
    # Entries of the samples whose costs are computed at once.
    block_entries: int = 1 << 16
    # Precision of the intercept, in units of the targets' variance: next to none.
    flat: float = 1e-8


SETTINGS = RelevanceSettings()


@dataclass(frozen=True, eq=False)
class Posterior(State):
    """An iterate: the posterior of the experts. Its objective is ``F``.

    Shapes: costs (n, Q), proportions (Q,).
    kept: features that have not been dropped.
    means (Q, D, K): posterior means, the intercept last.
    precisions (D,): ``a_j``.
    divergence: ``sum_q KL_q``.
    """

    kept: NDArray[np.intp]
    means: Floats
    precisions: Floats
    costs: Floats
    proportions: Floats
    scale: float
    divergence: float


class RelevanceEM:
    """Expectation and maximisation with a relevance prior.

    Shapes: intercept (Q, K).
    objective: with squared loss; its design is made dense.
    total: weight of all samples together: how much there is to learn from.
    W (Q, d, K): weights of the experts to start from.
    """

    name = "em, relevance prior"

    def __init__(
        self, objective: SampleObjective, noise: Noise, total: float, W: Floats, intercept: Floats
    ) -> None:
        require(self.name, objective, ("design", "panel"))
        self._objective = objective
        self._noise = noise
        self._total = total
        response = objective.response
        self._shares = response.shares
        self._target = np.asarray(response.target, dtype=np.float64)
        # Standard columns, so that precisions can be compared.
        self._flat = objective.standard.flat
        self._X = objective.standard.features
        self._begin = objective.standard.standard(W, intercept)

    def start(self) -> Posterior:
        """The posterior after cooling, without the features that have no relevance by then."""
        means = self._begin
        costs = self._expected_costs(self._X, means, [])
        scale = self._noise.scale(float(self._shares @ costs.min(axis=1)))
        d = self._X.shape[1] - self._flat
        spread = float(self._shares @ np.square(self._target).sum(axis=1)) / means.shape[2]
        precisions = np.full(d + self._flat, d / max(spread, np.finfo(float).tiny))
        precisions[d:] *= SETTINGS.flat
        even = np.full(means.shape[0], 1.0 / means.shape[0])
        kept = np.arange(d + self._flat)
        state = Posterior(kept, means, precisions, costs, even, scale, 0.0, objective=np.inf)
        heats = cooling_factors(SETTINGS.heat)
        for step in range(SETTINGS.burn_in):
            state = self._maximise(state, heats[step] if step < len(heats) else 1.0)
            if step >= SETTINGS.first_drop:
                state = self._drop(state, SETTINGS.dropped)
        return state

    def advance(self, state: Posterior) -> Posterior:
        """One step; done when it does not lower the free energy."""
        following = self._maximise(self._drop(state, SETTINGS.negligible), 1.0)
        if following.objective < state.objective:
            return following
        return replace(state, gain=0.0, done=True)

    def solution(self, state: Posterior) -> Solution:
        """The posterior means, each with the samples for which its cost is least."""
        full = np.zeros((state.means.shape[0], self._X.shape[1], state.means.shape[2]))
        full[:, state.kept] = state.means
        panel = self._objective.panel(*self._objective.standard.original(full))
        return Solution(panel, panel.labels)

    def _maximise(self, state: Posterior, factor: float) -> Posterior:
        """The best posteriors, precisions, proportions and scale for the responsibilities."""
        X = self._columns(state.kept)
        weights, _ = responsibilities(state.costs, state.proportions, factor * state.scale)
        weights *= self._shares[:, None]
        proportions = np.maximum(weights.sum(axis=0), SMALLEST_SHARE)
        n_outputs = self._target.shape[1]
        means, inverses, energies = [], [], np.zeros(state.kept.size)
        log_determinants = 0.0
        for gram, moment in self._sums(X, weights.T, self._total / state.scale):
            mean, inverse = _posterior(gram, moment, state.precisions)
            energies += np.square(mean).sum(axis=1) + n_outputs * np.square(inverse).sum(axis=0)
            log_determinants -= 2.0 * n_outputs * float(np.log(np.diagonal(inverse)).sum())
            means.append(mean)
            inverses.append(inverse)
        precisions = state.precisions.copy()
        d = state.kept.size - self._flat
        precisions[:d] = weights.shape[1] * n_outputs / energies[:d]
        # sum_q KL_q, with KL_q = sum_j 1/2 (a_j <v_j^2> - 1 - log a_j) - 1/2 log det C_q.
        constants = weights.shape[1] * n_outputs * float(np.sum(1.0 + np.log(precisions)))
        divergence = 0.5 * (float(precisions @ energies) + log_determinants - constants)
        costs = self._expected_costs(X, np.stack(means), inverses)
        following = replace(
            state,
            means=np.stack(means),
            precisions=precisions,
            costs=costs,
            proportions=proportions / proportions.sum(),
            scale=self._noise.scale(float(np.vdot(weights, costs))),
            divergence=divergence,
        )
        energy = self._free_energy(following)
        return replace(following, objective=energy, gain=state.objective - energy)

    def _columns(self, kept: NDArray[np.intp]) -> Floats:
        """The columns that are left; no copy if all are."""
        everything = kept.size == self._X.shape[1]
        return self._X if everything else self._X.take(kept, axis=1)

    def _sums(self, X: Floats, weights: Floats, factor: float) -> Iterator[tuple[Floats, Floats]]:
        """``X' D X`` and ``X' D y`` for each expert, ``D`` being its weights times a factor."""
        each, d = without_negligible(weights), X.shape[1]
        _, _, grams = DenseDesign(X).weighted_grams(
            self._target, lambda rows: each[:, rows], centred=False
        )
        for gram in grams:
            yield factor * gram[:d, :d], factor * gram[:d, d:]

    def _expected_costs(self, X: Floats, means: Floats, inverses: list[Floats]) -> Floats:
        """``c_iq``, by blocks of samples that stay in the cache for all experts."""
        costs = np.empty((X.shape[0], means.shape[0]), order="F")
        height = max(1, SETTINGS.block_entries // X.shape[1])
        for first in range(0, X.shape[0], height):
            block, target = X[first : first + height], self._target[first : first + height]
            for q, mean in enumerate(means):
                residual = target - block @ mean
                cost = 0.5 * np.square(residual).sum(axis=1)
                if inverses:
                    whitened = block @ inverses[q].T
                    cost += 0.5 * residual.shape[1] * np.einsum("ij,ij->i", whitened, whitened)
                costs[first : first + height, q] = cost
        return costs

    def _free_energy(self, state: Posterior) -> float:
        likelihood = log_likelihood(state.costs, state.proportions, state.scale, self._shares)
        normal = self._noise.log_partition(state.scale)
        return normal - likelihood + state.divergence / self._total

    def _drop(self, state: Posterior, ratio: float) -> Posterior:
        """Without the features whose precision is ``ratio`` times that of the most relevant."""
        d = state.kept.size - self._flat
        few = np.sort(state.precisions[:d])[: SETTINGS.n_most_relevant]
        kept = np.append(
            state.precisions[:d] < ratio * np.median(few), np.ones(self._flat, dtype=bool)
        )
        if kept.all():
            return state
        return replace(
            state,
            kept=state.kept[kept],
            means=state.means[:, kept],
            precisions=state.precisions[kept],
        )


def _posterior(gram: Floats, moment: Floats, precisions: Floats) -> tuple[Floats, Floats]:
    """Mean of an expert, and the inverse of the lower Cholesky factor of its precision."""
    require_finite(moment, "a sum of products of a column of X with y")
    precision = gram
    precision[np.diag_indices_from(precision)] += precisions
    factor = linalg.cholesky(precision, lower=True, overwrite_a=True, check_finite=False)
    mean = linalg.cho_solve((factor, True), moment)
    unit = np.eye(precisions.size)
    return mean, linalg.solve_triangular(factor, unit, lower=True, check_finite=False)
