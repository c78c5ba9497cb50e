"""Mixture of regressions by expectation and maximisation, cooled down from a high temperature.

The ridge counts as loss, as it does for the other solvers: with the costs ``c_iq`` of sample ``i``
at expert ``q``, proportions ``pi_q`` and noise of scale ``T``,

    minimise J = -sum_i s_i log sum_q pi_q exp(-c_iq / T) + log Z(T).

As ``T`` goes to zero that becomes the least cost of each sample. No step raises ``J``. First come a
few steps of cooling in which ``T`` is multiplied by a factor that falls to one: samples are
assigned slowly, by large differences of the costs before small ones.
"""

from dataclasses import KW_ONLY, dataclass, replace

import numpy as np

from clustruct._typing import Floats
from clustruct.losses import Noise
from clustruct.objectives.samples.objective import Panel, SampleObjective
from clustruct.solvers.driver import Solution, State, require

# Temperature to begin with, and the factor by which it falls. Hotter or slower, experts become one.
HEAT, COOLING = 4.0, 0.8
# Experts with a smaller share have lost their samples.
SMALLEST_SHARE = 1e-6
# Steps at most until proportions and scale have settled.
MAX_SETTLING = 200


@dataclass(frozen=True, eq=False)
class Blend(State):
    """An iterate: experts, their proportions and the scale of the noise. Its objective is ``J``.

    Shapes: W (Q, d, K), intercept (Q, K), costs (n, Q), proportions (Q,).
    weights (n, Q): responsibilities.
    """

    W: Floats
    intercept: Floats
    costs: Floats
    proportions: Floats
    scale: float
    weights: Floats


@dataclass(eq=False)
class MixtureEM:
    """Expectation and maximisation with the ridge of the objective.

    Shapes: intercept (Q, K).
    W (Q, d, K): weights of the experts to start from.
    heat: temperature to begin with; 1 leaves the cooling out.
    tol: precision of the experts' fits.
    """

    name = "em"

    objective: SampleObjective
    noise: Noise
    W: Floats
    intercept: Floats
    _: KW_ONLY
    heat: float = HEAT
    tol: float = 1e-4

    def __post_init__(self) -> None:
        require(self.name, self.objective, ("fit_and_cost", "panel"))
        self.objective = self.objective.private()

    def start(self) -> Blend:
        """The experts after the steps of cooling."""
        W, intercept = self.W, self.intercept
        costs = self.objective.costs(W, intercept)
        even = np.full(W.shape[0], 1.0 / W.shape[0])
        scale = self.noise.scale(float(self.objective.response.shares @ costs.min(axis=1)))
        state = self._blend(W, intercept, costs, even, scale)
        for factor in cooling_factors(self.heat):
            state = self._maximise(state, factor)
        return state

    def advance(self, state: Blend) -> Blend:
        """One step of expectation and maximisation; done when it does not lower ``J``."""
        following = self._maximise(state, 1.0)
        if following.objective < state.objective:
            return following
        return replace(state, gain=0.0, done=True)

    def solution(self, state: Blend) -> Solution:
        """The experts, each with the samples for which its cost is least."""
        panel = self.objective.panel(state.W, state.intercept)
        return Solution(panel, panel.labels)

    def _maximise(self, state: Blend, factor: float) -> Blend:
        """The best experts, proportions and scale for the responsibilities at this temperature."""
        shares = self.objective.response.shares
        weights = state.weights
        if factor != 1.0:
            weights, _ = responsibilities(state.costs, state.proportions, factor * state.scale)
        weights = shares[:, None] * weights
        proportions = weights.sum(axis=0)
        alive = proportions > SMALLEST_SHARE
        weights, proportions = weights[:, alive], proportions[alive]
        W, intercept, costs = self.objective.fit_and_cost(weights, self.tol, state.W[alive])
        scale = self.noise.scale(float(np.vdot(weights, costs)))
        following = self._blend(W, intercept, costs, proportions / proportions.sum(), scale)
        return replace(following, gain=state.objective - following.objective)

    def _blend(
        self,
        W: Floats,
        intercept: Floats,
        costs: Floats,
        proportions: Floats,
        scale: float,
    ) -> Blend:
        weights, densities = responsibilities(costs, proportions, scale)
        likelihood = float(self.objective.response.shares @ densities)
        value = self.noise.log_partition(scale) - likelihood
        return Blend(W, intercept, costs, proportions, scale, weights, objective=value)


def cooling_factors(heat: float) -> list[float]:
    """Temperatures from ``heat`` down to, but without, one."""
    factors = []
    while heat > 1.0:
        factors.append(heat)
        heat *= COOLING
    return factors


def log_likelihood(costs: Floats, proportions: Floats, scale: float, shares: Floats) -> float:
    """Mean log-likelihood of the samples, without the normalisation ``log Z(T)``."""
    return float(shares @ responsibilities(costs, proportions, scale)[1])


def responsibilities(costs: Floats, proportions: Floats, scale: float) -> tuple[Floats, Floats]:
    """Responsibilities of the experts for the samples (n, Q), and log densities (n,)."""
    weights: Floats = np.log(proportions) - costs / scale
    return weights, soften(weights)


def soften(weights: Floats) -> Floats:
    """Make responsibilities of log densities (n, Q) in place; returns those of the samples (n,)."""
    largest = weights.max(axis=1)
    weights -= largest[:, None]
    np.exp(weights, out=weights)
    sums = weights.sum(axis=1)
    weights /= sums[:, None]
    return np.log(sums) + largest


def settle(costs: Floats, noise: Noise, shares: Floats) -> tuple[Floats, float, Floats]:
    """The most likely proportions and scale for given experts, and their responsibilities.

    Shapes: costs (n, Q), shares (n,).

    Returns proportions (Q,), scale, and responsibilities (n, Q).
    """
    proportions = np.full(costs.shape[1], 1.0 / costs.shape[1])
    scale = noise.scale(float(shares @ costs.min(axis=1)))
    before = np.inf
    for _ in range(MAX_SETTLING):
        weights, _ = responsibilities(costs, proportions, scale)
        proportions = np.maximum(shares @ weights, SMALLEST_SHARE)
        proportions = proportions / proportions.sum()
        scale = noise.scale(float(shares @ (weights * costs).sum(axis=1)))
        value = noise.log_partition(scale) - log_likelihood(costs, proportions, scale, shares)
        if before - value < 1e-8:
            break
        before = value
    return proportions, scale, weights


def bic(objective: SampleObjective, noise: Noise, panel: Panel, total: float) -> float:
    """Bayesian information criterion of the mixture that the experts make; smaller is better."""
    shares = objective.response.shares
    ridge = 0.5 * objective.alpha * np.square(panel.W).sum(axis=(1, 2))
    losses = objective.costs(panel.W, panel.intercept) - ridge
    proportions, scale, _ = settle(losses, noise, shares)
    likelihood = log_likelihood(losses, proportions, scale, shares) - noise.log_partition(scale)
    weights = n_weights(panel.W, panel.intercept, objective.response.fit_intercept)
    price = weights + panel.W.shape[0] - 1 + noise.n_parameters
    return -2.0 * total * likelihood + price * float(np.log(max(total, 1.0)))


def n_weights(W: Floats, intercept: Floats, fit_intercept: bool) -> int:
    """Weights that are not zero, and intercepts."""
    return int(np.count_nonzero(W)) + (intercept.size if fit_intercept else 0)
