"""Conditional gradient on the convex relaxation (algo:condGrad).

    M_{t+1} = M_t + share * (oracle - M_t),    oracle = argmin over N of <N, grad psi(M_t)>.

An iterate is a convex combination of groupings. The oracle (eq:oracle) is k-means of the rows of
``P`` (eq:kmeans), exact for one output. Every oracle yields a lower bound of the original problem.
The solution is the better of two roundings: the groups of the last oracle, as in the paper, and
those of the relaxed weights ``M P / alpha``, which are mostly better.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace

import numpy as np
from scipy.optimize import minimize_scalar

from clustruct._typing import Floats
from clustruct.grouping.constraints import Constraint
from clustruct.relaxations.hull import Hull, Relaxation, dual_bound
from clustruct.results import Projection
from clustruct.solvers.driver import Objective, Solution, State, refit, require, require_refits

ROOT_TOL = 5e-3


@dataclass(frozen=True, eq=False)
class Relaxed(State):
    """An iterate: a mixture of groupings; its objective is ``psi``, that of the relaxation.

    number: of groupings that were mixed in.
    oracle: the grouping that minimises the linear model of ``psi``.
    bound: the best lower bound so far.
    """

    number: int
    hull: Hull
    oracle: Projection
    bound: float


@dataclass(eq=False)
class ConditionalGradient:
    """Mixes in the grouping that minimises the linear model, step by step.

    factor: the relaxation of the objective: ``R`` and ``t`` for features, say.
    begin: rows that the first grouping is made of; weights without constraint are a good choice.
    step: the best share of the new grouping, or ``2 / (t + 2)`` as in the paper. Where the classic
        step would raise the objective, the best share is taken.
    tol: precision of the rounded solution's refit.
    """

    name = "cg"

    objective: Objective
    constraint: Constraint
    factor: Relaxation
    begin: Floats
    _: KW_ONLY
    step: str = "line_search"
    tol: float = 1e-10

    def __post_init__(self) -> None:
        require(self.name, self.objective, ("refit",))
        require(self.name, self.constraint, ("project", "explained"))
        require_refits(f"solver={self.name!r}", self.constraint)

    def start(self) -> Relaxed:
        """The grouping of the start."""
        nearest = self.constraint.project(self.begin)
        hull = self.factor.hull(nearest.labels, nearest.centers.shape[0])
        return self._relaxed(1, hull, 1.0, None)

    def advance(self, state: Relaxed) -> Relaxed:
        """Mix in the oracle's grouping."""
        toward = state.hull.toward(state.oracle.labels, state.oracle.centers.shape[0])
        if self.step == "classic":
            share = 2.0 / (state.number + 2.0)
            trial = self._relaxed(state.number + 1, toward(share), share, state)
            if trial.objective < state.objective:
                return trial
        share = self._best_share(toward)
        trial = self._relaxed(state.number + 1, toward(share), share, state)
        return trial if trial.objective < state.objective else replace(state, gain=0.0, done=True)

    def solution(self, state: Relaxed) -> Solution:
        """The groups of the last oracle, or those of the relaxed weights if they are better."""
        P = self.factor.adjoint(state.hull.solve())
        relaxed_weights = state.hull.project(P) / self.factor.alpha
        roundings = (state.oracle, self.constraint.project(relaxed_weights))
        solutions = [
            Solution(refit(self.objective, nearest, self.tol), nearest.labels)
            for nearest in roundings
        ]
        return min(solutions, key=lambda solution: solution.point.value)

    def _best_share(self, toward: Callable[[float], Hull]) -> float:
        """The share that minimises the convex ``psi``; shares get small, so search its root."""
        target = self.factor.target
        search = minimize_scalar(
            lambda root: float(np.vdot(target, toward(root**2).solve())),
            bounds=(0.0, 1.0),
            method="bounded",
            options={"xatol": ROOT_TOL},
        )
        return float(search.x) ** 2

    def _relaxed(self, number: int, hull: Hull, step: float, before: Relaxed | None) -> Relaxed:
        B = hull.solve()
        P = self.factor.adjoint(B)
        value = 0.5 * float(np.vdot(self.factor.target, B)) + self.factor.rest
        oracle = self.constraint.project(P)
        explained = (
            float(np.vdot(oracle.point, oracle.point))
            if oracle.exact
            else self.constraint.explained(P)
        )
        bound = dual_bound(self.factor, B, explained)
        gain = np.inf
        if before is not None:
            bound = max(bound, before.bound)
            gain = (before.objective - value) / max(value, np.finfo(float).tiny)
        return Relaxed(number, hull, oracle, bound, objective=value, step=step, gain=gain)
