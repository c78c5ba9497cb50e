"""The loop: budget, tolerance, trace and status of every solver live here, and only here.

A solver has a start and a step. It is asked for steps until it says that nothing is left to gain,
until a step gains less than the tolerance, or until the budget is spent. It knows nothing of the
rest.
"""

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from clustruct._finite import REMEDY, NotFinite, require_finite
from clustruct.objectives.point import Point
from clustruct.results import Iteration

__all__ = ["Solution", "Budget", "Callback", "Run", "Solver", "State", "drive"]

# Is told of a step, and says True where no further one is wanted.
Callback = Callable[[Iteration], bool | None]


class State(Protocol):
    """What the loop sees of a solver's iterate."""

    @property
    def objective(self) -> float:
        """The value that falls from step to step."""
        ...

    @property
    def step(self) -> float:
        """Size of the step that led here."""
        ...

    @property
    def gain(self) -> float:
        """What is compared with the tolerance: a relative decrease, or a relative gap."""
        ...

    @property
    def done(self) -> bool:
        """Whether no step can lower the objective."""
        ...


@dataclass(frozen=True, eq=False)
class Solution:
    """A feasible point and the group of each row, -1 for zero."""

    point: Point
    labels: NDArray[np.intp]


S = TypeVar("S", bound=State)
T = TypeVar("T")
# What has to be finite, by name.
_Numbers = Mapping[str, float | NDArray[np.float64]]


class Solver(Protocol[S]):
    """A start, a step, and the feasible point that an iterate stands for."""

    name: str

    def start(self) -> S:
        """The first iterate."""
        ...

    def advance(self, state: S) -> S:
        """The next iterate, whose objective is no larger."""
        ...

    def solution(self, state: S) -> Solution:
        """The feasible point."""
        ...


@runtime_checkable
class Constrained(Protocol):
    """A solver whose solutions can be checked."""

    def verify(self, solution: Solution) -> None:
        """Raise an error where the solution is not in the set that it should be in."""
        ...


@dataclass(frozen=True)
class Budget:
    """When to stop, and whom to tell.

    Attributes
    ----------
    max_iter : int
    tol : float
    monitor : callable
        Called with every `Iteration`; the loop ends where it returns True.
    quiet : bool
        Whether the caller sees to solvers that did not converge, as where there are hundreds.
    """

    max_iter: int
    tol: float
    monitor: Callback
    quiet: bool = False


@dataclass(frozen=True, eq=False)
class Run(Generic[S]):
    """The solution of one solver.

    Attributes
    ----------
    solver : str
    solution : Solution
    state : State
        The last iterate.
    trace : tuple of Iteration
    converged : bool
    stopped : bool
        Whether the monitor ended it.
    """

    solver: str
    solution: Solution
    state: S
    trace: tuple[Iteration, ...]
    converged: bool
    stopped: bool = False

    @property
    def message(self) -> str:
        """How it ended, in words."""
        steps = self.trace[-1].number
        if self.converged:
            ending = "converged"
        else:
            ending = f"stopped by {'the callback' if self.stopped else 'max_iter'}"
        if not steps:
            return f"{self.solver}: {ending if self.stopped else 'done'} at once"
        return f"{self.solver}: {ending} after {steps} step{'s' * (steps != 1)}"


def drive(solver: Solver[S], budget: Budget) -> Run[S]:
    """Run a solver to its end.

    Parameters
    ----------
    solver : Solver
    budget : Budget

    Returns
    -------
    Run

    Raises
    ------
    ValueError
        Where an objective, a gradient or an solution is not finite, which names the step, or where
        the solution is not in the solver's set.

    Warns
    -----
    ConvergenceWarning
        Where the budget is spent before the tolerance is met.
    """
    begin = time.perf_counter()
    trace: list[Iteration] = []

    def checked(act: Callable[[], T], number: int, numbers: Callable[[T], _Numbers]) -> T:
        """What an action returns, if its numbers are finite; errors name the step."""
        step = f"solver {solver.name!r}, iteration {number}"
        try:
            result = act()
        except NotFinite as error:
            raise error.at(step) from None
        except np.linalg.LinAlgError as error:
            raise ValueError(f"The fit broke down ({step}): {error}. {REMEDY}") from error
        for quantity, values in numbers(result).items():
            require_finite(values, quantity, step)
        return result

    def record(number: int, state: S) -> bool:
        seconds = time.perf_counter() - begin
        trace.append(Iteration(solver.name, number, state.objective, state.step, seconds))
        return bool(budget.monitor(trace[-1]))

    state = checked(solver.start, 0, _numbers_of_state)
    stopped = record(0, state)
    converged = state.done
    while not converged and not stopped and len(trace) <= budget.max_iter:
        following = checked(partial(solver.advance, state), len(trace), _numbers_of_state)
        if following.objective < state.objective or not following.done:
            stopped = record(len(trace), following)
        state = following
        converged = state.done or state.gain <= budget.tol
    stopped = stopped and not converged
    if not converged and not stopped and not budget.quiet:
        warnings.warn(
            f"Solver {solver.name!r} stopped after max_iter={budget.max_iter} steps with a "
            f"relative gain of {state.gain:.2g} in the last one, above tol={budget.tol:g}. "
            "Raise max_iter, raise tol, or scale the columns of X.",
            ConvergenceWarning,
            stacklevel=2,
        )
    solution = checked(partial(solver.solution, state), len(trace) - 1, _numbers_of_solution)
    if isinstance(solver, Constrained):
        solver.verify(solution)
    return Run(solver.name, solution, state, tuple(trace), converged, stopped)


def _numbers_of_state(state: State) -> _Numbers:
    """What has to be finite in an iterate."""
    return {"the objective": float(state.objective)}


def _numbers_of_solution(solution: Solution) -> _Numbers:
    """What has to be finite in an solution."""
    return {"the objective": float(solution.point.value), "a weight": solution.point.W}
