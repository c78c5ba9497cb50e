"""Mixture of regressions by expectation and maximisation, cooled down from a high temperature.

The ridge counts as loss, as it does for the other solvers: with the costs ``c_iq`` of sample ``i``
at expert ``q``, proportions ``pi_q`` and noise of scale ``T``,

    minimise J = -sum_i s_i log sum_q pi_q exp(-c_iq / T) + log Z(T).

As ``T`` goes to zero that becomes the least cost of each sample. No step raises ``J``. Before them
come a few steps in which ``T`` is multiplied by a factor that falls to one: what an expert is best
at is decided slowly, from large differences to small ones.
"""

from dataclasses import dataclass, replace

import numpy as np

from clustruct._typing import Floats
from clustruct.losses import Noise
from clustruct.objectives.samples.objective import SampleObjective
from clustruct.solvers.driver import Solution
from clustruct.solvers.protocols import require

__all__ = [
    "HEAT",
    "Blend",
    "MixtureEM",
    "cooling_factors",
    "log_likelihood",
    "responsibilities",
    "settle",
]


# Temperature to begin with, and the factor by which it falls. Hotter or slower, experts become one.
HEAT, COOLING = 4.0, 0.8
# Experts with a smaller share have lost their samples.
SMALLEST_SHARE = 1e-6
MAX_SETTLING = 200


@dataclass(frozen=True, eq=False)
class Blend:
    """Experts, their proportions and the noise, as an iterate.

    Attributes
    ----------
    W : ndarray of shape (Q, d, K)
    intercept : ndarray of shape (Q, K)
    costs : ndarray of shape (n, Q)
    proportions : ndarray of shape (Q,)
    scale : float
    objective : float
        ``J``, in nats a sample.
    """

    W: Floats
    intercept: Floats
    costs: Floats
    proportions: Floats
    scale: float
    objective: float
    step: float
    gain: float
    done: bool


class MixtureEM:
    """Expectation and maximisation with the ridge of the objective.

    Parameters
    ----------
    objective : SampleObjective
    noise : Noise
    W : ndarray of shape (Q, d, K)
        Weights of the experts to start from.
    intercept : ndarray of shape (Q, K)
    heat : float
        Temperature to begin with; 1 leaves the cooling out.
    tol : float
        Precision of the experts' fits.
    """

    name = "em"

    def __init__(
        self,
        objective: SampleObjective,
        noise: Noise,
        W: Floats,
        intercept: Floats,
        *,
        heat: float = HEAT,
        tol: float = 1e-4,
    ) -> None:
        require(self.name, objective, ("fit_experts", "costs", "panel"))
        self._objective = objective
        self._noise = noise
        self._begin = W, intercept
        self._heat = heat
        self._tol = tol

    def start(self) -> Blend:
        """The experts after cooling down."""
        W, intercept = self._begin
        costs = self._objective.costs(W, intercept)
        even = np.full(W.shape[0], 1.0 / W.shape[0])
        scale = self._noise.scale(float(self._objective.response.shares @ costs.min(axis=1)))
        state = self._blend(W, intercept, costs, even, scale)
        for factor in cooling_factors(self._heat):
            state = self._maximise(state, factor)
        return state

    def advance(self, state: Blend) -> Blend:
        """One step; done where it does not lower ``J``."""
        following = self._maximise(state, 1.0)
        if following.objective < state.objective:
            return following
        return replace(state, gain=0.0, done=True)

    def solution(self, state: Blend) -> Solution:
        """The experts, each with the samples it solutions best."""
        panel = self._objective.panel(state.W, state.intercept)
        return Solution(panel, panel.labels)

    def _maximise(self, state: Blend, factor: float) -> Blend:
        """The best experts, proportions and scale for the samples' shares in the experts."""
        shares = self._objective.response.shares
        weights, _ = responsibilities(state.costs, state.proportions, factor * state.scale)
        weights *= shares[:, None]
        proportions = weights.sum(axis=0)
        alive = proportions > SMALLEST_SHARE
        weights, proportions = weights[:, alive], proportions[alive]
        W, intercept = self._objective.fit_experts(weights.T, self._tol, state.W[alive])
        costs = self._objective.costs(W, intercept)
        scale = self._noise.scale(float(np.vdot(weights, costs)))
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
        value = self._noise.log_partition(scale) - log_likelihood(
            costs, proportions, scale, self._objective.response.shares
        )
        return Blend(W, intercept, costs, proportions, scale, value, 1.0, np.inf, done=False)


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
    """Shares of the samples in the experts (n, Q), and the logarithms of their densities (n,)."""
    weights: Floats = np.log(proportions) - costs / scale
    largest = weights.max(axis=1)
    weights -= largest[:, None]
    np.exp(weights, out=weights)
    sums = weights.sum(axis=1)
    weights /= sums[:, None]
    return weights, np.log(sums) + largest


def settle(costs: Floats, noise: Noise, shares: Floats) -> tuple[Floats, float, Floats]:
    """The most likely proportions and scale for given experts, and the samples' shares in them.

    Parameters
    ----------
    costs : ndarray of shape (n, Q)
    noise : Noise
    shares : ndarray of shape (n,)

    Returns
    -------
    tuple
        Proportions (Q,), scale, and responsibilities (n, Q).
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
