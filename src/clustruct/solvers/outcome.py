"""What recipes hand back: attempts, the one that is kept, and what to tell of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from clustruct._finite import require_finite
from clustruct.results import Certificate, Iteration, Status
from clustruct.solvers.driver import Run, Solution

__all__ = ["Attempt", "Outcome", "certify", "status_of"]


@dataclass(frozen=True, eq=False)
class Outcome:
    """The best solution, and how it was found.

    Attributes
    ----------
    solution : Solution
    trace : tuple of Iteration
        Of the solver whose solution was kept.
    status : Status
    certificate : Certificate
    """

    solution: Solution
    trace: tuple[Iteration, ...]
    status: Status
    certificate: Certificate


@dataclass(frozen=True, eq=False)
class Attempt:
    """What one recipe did: its solutions, the last of which counts, and its lower bound.

    A remark says what the solutions do not tell, such as how many starts there were.
    """

    name: str
    solutions: tuple[Run[Any], ...]
    bound: float = -np.inf
    remark: str = ""

    @property
    def solution(self) -> Solution:
        """Of the last solver."""
        return self.solutions[-1].solution

    @property
    def trace(self) -> tuple[Iteration, ...]:
        """Of all its solvers."""
        return tuple(iteration for run in self.solutions for iteration in run.trace)


def certify(
    objective: float, bounds: Mapping[str, float], scale: Callable[[], float]
) -> Certificate:
    """The certificate of the largest of several lower bounds.

    Parameters
    ----------
    objective : float
    bounds : mapping from str to float
        Where each of them came from.
    scale : callable
        Size of what they were computed from; asked for only where a bound is above the objective.

    Returns
    -------
    Certificate
    """
    for source, bound in bounds.items():
        if np.isnan(bound):
            require_finite(bound, f"the lower bound ({source})")
    source = max(bounds, key=lambda name: bounds[name])
    size = scale() if bounds[source] > objective else 0.0
    return Certificate.of(objective, bounds[source], source, scale=size)


def status_of(attempts: list[Attempt], best: Attempt) -> Status:
    """What was tried and kept, and how it ended."""
    return Status(
        solver=best.name,
        converged=best.solutions[-1].converged,
        n_iter=max(1, sum(run.trace[-1].number for run in best.solutions)),
        objectives=tuple((a.name, a.solution.point.value) for a in attempts),
        message=_message(attempts, best),
    )


def _message(attempts: list[Attempt], best: Attempt) -> str:
    """What was tried and kept, in words."""
    told = "; ".join(
        f"{', then '.join(run.message for run in attempt.solutions)} "
        f"{attempt.remark and f'({attempt.remark}) '}(objective {attempt.solution.point.value:.6g})"
        for attempt in attempts
    )
    return told if len(attempts) == 1 else f"{told}. Kept {best.name}."
