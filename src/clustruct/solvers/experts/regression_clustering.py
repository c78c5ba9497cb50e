"""Regression clustering with K-harmonic means (Zhang, 2003), the paper's baseline.

The cost of a sample is the harmonic mean of its costs with all experts instead of the least one:

    minimise sum_i s_i Q / sum_q 1 / c_iq,    c_iq = loss(y_i, V_q' x_i + b_q) + alpha/2 ||V_q||^2.

It is smooth where the least cost has kinks, which makes it less dependent on the start. The
harmonic mean is concave in the costs, so that it lies below its tangent: experts that are refitted
with the tangent's slopes as weights cannot raise it.
"""

from dataclasses import dataclass

import numpy as np

from clustruct._typing import Floats
from clustruct.objectives.samples.objective import SampleObjective
from clustruct.solvers.driver import Solution, State, require

ROUNDING = 1e-12
# A sample that an expert predicts without error would take all of that expert's weight.
SMALLEST_COST = 1e-10


@dataclass(frozen=True, eq=False)
class Soft(State):
    """An iterate: experts, and the costs of every sample with each of them.

    Shapes: W (Q, d, K), intercept (Q, K), costs (n, Q).
    """

    W: Floats
    intercept: Floats
    costs: Floats


class RegressionClustering:
    """The solver: refit the experts with weights from the harmonic mean of their costs.

    Shapes: intercept (Q, K).
    W (Q, d, K): weights of the experts to start from.
    tol: precision of the experts' fits.
    """

    name = "rc"

    def __init__(
        self, objective: SampleObjective, W: Floats, intercept: Floats, *, tol: float = 1e-4
    ) -> None:
        require(self.name, objective, ("fit_and_cost", "costs", "panel"))
        self._objective = objective
        self._begin = W, intercept
        self._tol = tol
        self._floor = float(np.finfo(float).tiny)

    def start(self) -> Soft:
        """The given experts."""
        W, intercept = self._begin
        costs = self._objective.costs(W, intercept)
        self._floor = max(SMALLEST_COST * float(costs.mean()), self._floor)
        return self._soft(W, intercept, costs, None)

    def advance(self, state: Soft) -> Soft:
        """One refit with the weights of the current costs."""
        inverse = 1.0 / np.maximum(state.costs, self._floor)
        # Slope of the harmonic mean by each cost, up to the factor Q.
        slopes = np.square(inverse / inverse.sum(axis=1, keepdims=True))
        weights = self._objective.response.shares[:, None] * slopes
        fitted = self._objective.fit_and_cost(weights, self._tol, state.W)
        following = self._soft(*fitted, state)
        if following.gain <= ROUNDING:
            return self._soft(state.W, state.intercept, state.costs, state)
        return following

    def solution(self, state: Soft) -> Solution:
        """The experts, each with the samples for which its cost is least."""
        panel = self._objective.panel(state.W, state.intercept)
        return Solution(panel, panel.labels)

    def _soft(self, W: Floats, intercept: Floats, costs: Floats, before: Soft | None) -> Soft:
        inverse = 1.0 / np.maximum(costs, self._floor)
        means = costs.shape[1] / inverse.sum(axis=1)
        value = float(self._objective.response.shares @ means)
        gain = np.inf if before is None else (before.objective - value) / before.objective
        return Soft(W, intercept, costs, objective=value, gain=gain, done=gain == 0.0)
