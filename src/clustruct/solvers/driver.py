"""The loop that runs every solver, what solvers ask of objectives, and what a fit reports.

A solver has a start and a step. `drive` asks it for steps until it reports that nothing is left to
gain, until a step gains less than the tolerance, or until the budget is spent. Budget, tolerance,
trace and status live here; solvers know nothing of them. Ctrl-C ends the loop between two steps,
see `clustruct._interrupts`.
"""

import time
import warnings
from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.exceptions import ConvergenceWarning

from clustruct._finite import NotFinite, broken_down, require_finite
from clustruct._interrupts import asked, hold
from clustruct._progress import counting
from clustruct._typing import Floats, Labels
from clustruct.grouping.constraints import Constraint
from clustruct.objectives.linear import Point
from clustruct.results import Certificate, Iteration, Projection, Status

# Called after each iteration; returns True to stop the solver.
Callback = Callable[[Iteration], bool | None]
# Relative distance from a set up to which a point counts as one of it: rounding of projections.
OUTSIDE = 1e-6


@dataclass(frozen=True, eq=False, kw_only=True)
class State:
    """A solver's iterate, as the loop sees it.

    objective: the value that falls from one iteration to the next.
    step: size of the step that led here.
    gain: relative decrease or relative gap, to compare with the tolerance.
    done: whether no step can lower the objective.
    """

    objective: float
    step: float = 1.0
    gain: float = np.inf
    done: bool = False


@dataclass(frozen=True, eq=False)
class Solution:
    """A feasible point and the group of each row, -1 for zero."""

    point: Point
    labels: Labels


S = TypeVar("S", bound=State)
T = TypeVar("T")
Goal = TypeVar("Goal")
# Values that have to be finite, by name.
_Numbers = Mapping[str, float | Floats]


class Solver(Protocol[S]):
    """An algorithm: a first iterate, a step, and the feasible point of an iterate.

    It may have `steps`, what progress calls its steps in the plural (empty if it counts by itself),
    and `remark`, a function from an iterate to what progress says of it.
    """

    name: str

    def start(self) -> S:
        """The first iterate."""

    def advance(self, state: S) -> S:
        """The next iterate, whose objective is no larger."""

    def solution(self, state: S) -> Solution:
        """The feasible point that an iterate stands for."""


@dataclass(frozen=True)
class Budget:
    """When to stop, and which callback to call.

    monitor: called with every `Iteration`; the loop ends when it returns True.
    quiet: do not warn of a solver that has not converged, as one start of many may not.
    """

    max_iter: int
    tol: float
    monitor: Callback
    quiet: bool = False


@dataclass(frozen=True, eq=False)
class Run(Generic[S]):
    """The result of one solver.

    state: the last iterate.
    stopped: whether the monitor or Ctrl-C ended the run.
    interrupted: whether it was Ctrl-C.
    """

    solver: str
    solution: Solution
    state: S
    trace: tuple[Iteration, ...]
    converged: bool
    stopped: bool = False
    interrupted: bool = False

    @property
    def message(self) -> str:
        """How the run ended, in words."""
        steps = self.trace[-1].number
        if self.converged:
            ending = "converged"
        else:
            stopper = "Ctrl-C" if self.interrupted else "the callback"
            ending = f"stopped by {stopper if self.stopped else 'max_iter'}"
        if not steps:
            return f"{self.solver}: {ending if self.stopped else 'done'} at once"
        return f"{self.solver}: {ending} after {steps} step{'s' * (steps != 1)}"


@dataclass(frozen=True, eq=False, init=False)
class Grouped(State):
    """A feasible point and its groups, as an iterate; its objective is that of the point."""

    point: Point
    labels: Labels

    def __init__(
        self,
        point: Point,
        labels: Labels,
        step: float = 1.0,
        gain: float = np.inf,
        done: bool = False,
    ) -> None:
        super().__init__(objective=point.value, step=step, gain=gain, done=done)
        object.__setattr__(self, "point", point)
        object.__setattr__(self, "labels", labels)


def gain_of(before: float, after: float) -> float:
    """Relative decrease of an objective."""
    return (before - after) / max(abs(before), float(np.finfo(np.float64).tiny))


def drive(solver: Solver[S], budget: Budget) -> Run[S]:
    """Run a solver until it converges, is stopped, or has spent its budget.

    Raises ValueError, which names the iteration, if the objective, the gradient or the solution is
    not finite, or if the solution is outside the constraint's set. Warns with ConvergenceWarning
    if the budget is spent before the tolerance is met.
    """
    begin = time.perf_counter()
    trace: list[Iteration] = []
    remark: Callable[[S], str] = getattr(solver, "remark", lambda state: "")

    def checked(act: Callable[[], T], number: int, numbers: Callable[[T], _Numbers]) -> T:
        """Call a function, check that its numbers are finite, and name the iteration in errors."""
        step = f"solver {solver.name!r}, iteration {number}"
        try:
            result = act()
        except NotFinite as error:
            raise error.at(step) from None
        except np.linalg.LinAlgError as error:
            raise broken_down(error, step) from error
        for quantity, values in numbers(result).items():
            require_finite(values, quantity, step)
        return result

    def record(number: int, state: S) -> bool:
        seconds = time.perf_counter() - begin
        trace.append(Iteration(solver.name, number, state.objective, state.step, seconds))
        hold()
        return bool(budget.monitor(trace[-1])) or asked()

    def of_state(state: S) -> _Numbers:
        return {"the objective": float(state.objective)}

    def of_solution(solution: Solution) -> _Numbers:
        return {"the objective": float(solution.point.value), "a weight": solution.point.W}

    state = checked(solver.start, 0, of_state)
    stopped = record(0, state)
    converged = state.done
    steps: str = getattr(solver, "steps", "steps")
    with counting(steps, budget.max_iter, at_most=True, measure="objective") as count:
        while not converged and not stopped and len(trace) <= budget.max_iter:
            following = checked(partial(solver.advance, state), len(trace), of_state)
            if following.objective < state.objective or not following.done:
                stopped = record(len(trace), following)
            state = following
            converged = state.done or state.gain <= budget.tol
            count.tick(state.objective, remark(state))
    stopped = stopped and not converged
    if not converged and not stopped and not budget.quiet:
        warnings.warn(
            f"Solver {solver.name!r} stopped after max_iter={budget.max_iter} steps with a "
            f"relative gain of {state.gain:.2g} in the last one, above tol={budget.tol:g}. "
            "Raise max_iter, raise tol, or scale the columns of X.",
            ConvergenceWarning,
            stacklevel=2,
        )
    solution = checked(partial(solver.solution, state), len(trace) - 1, of_solution)
    verify = getattr(solver, "verify", None)
    if verify is not None:  # raises an error if the solution is outside the constraint's set
        verify(solution)
    interrupted = stopped and asked()
    return Run(solver.name, solution, state, tuple(trace), converged, stopped, interrupted)


# ---- What solvers need of an objective and a constraint.


class Objective(Protocol):
    """A smooth function of ``W`` that can be minimised for given groups."""

    def keep(self, nearest: Projection, near: Point | None = None) -> Point:
        """The point with projected weights as they are, without a refit."""

    def rows(self, point: Point) -> Floats:
        """The rows that are grouped: the weights, or rows that stand for them."""

    def gradient(self, point: Point) -> Floats:
        """Gradient by these rows."""

    def bend(self, point: Point, direction: Floats) -> float:
        """Curvature: the second derivative along a direction of these rows."""

    def refit(
        self, labels: Labels, n_groups: int, tol: float, start: Floats | None = None
    ) -> Point:
        """The best weights for given groups."""


def may_refit(constraint: Constraint) -> bool:
    """Whether groups may take any values; True unless the constraint says otherwise."""
    return getattr(constraint, "refits", True)


def require_refits(asker: str, constraint: Constraint) -> None:
    """Raise an error if the set is not a union of subspaces, for solvers that need one."""
    if not may_refit(constraint):
        raise ValueError(
            f"{asker} gives groups their best values, which would lead out of the set of "
            f"{type(constraint).__name__} (refits = False). Choose solver='pg' without relax."
        )


def require_member(objective: Objective, constraint: Constraint, point: Point) -> None:
    """Raise an error if a point is outside the constraint's set.

    A set with ``refits = True`` is a union of subspaces and holds any values of its groups.
    """
    if getattr(constraint, "refits", False):
        return
    rows = objective.rows(point)
    size, distance = float(np.vdot(rows, rows)), constraint.project(rows).sq_distance
    if distance > OUTSIDE**2 * size:
        raise ValueError(
            f"The solution is not in the set of {type(constraint).__name__}: its distance is "
            f"{np.sqrt(distance / size):.2g} of its length. If groups must not get arbitrary "
            "values, give the class the attribute refits = False; otherwise check its `project`."
        )


def require(solver: str, owner: object, methods: tuple[str, ...]) -> None:
    """Raise an error that names the methods which a solver needs and its argument lacks."""
    missing = [name for name in methods if not hasattr(owner, name)]
    if missing:
        raise TypeError(
            f"solver {solver!r} needs {', '.join(missing)} of {type(owner).__name__}, "
            "which does not have it. Choose another solver, or add the method."
        )


def refit(objective: Objective, nearest: Projection, tol: float) -> Point:
    """The best point with the groups of a projection, whose values are the start."""
    return objective.refit(nearest.labels, nearest.centers.shape[0], tol, start=nearest.centers)


# ---- Several starts, several attempts.


@dataclass(frozen=True, eq=False)
class StartedProblem(Generic[Goal]):
    """A problem that is solved from several starts, with budget and options.

    n_starts: number of starts; None for as many as it takes.
    seed: of the random starts.
    options: options of the solver, see `OPTIONS` beside its recipe.
    """

    objective: Goal
    n_clusters: int
    budget: Budget
    n_starts: int | None
    seed: int
    n_jobs: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def rng(self, number: int) -> np.random.Generator:
        """The generator of the random start of that number."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(number,)))

    @property
    def with_more_starts(self) -> Self:
        """The same with one start more than asked for: hints take none of them away."""
        return self if self.n_starts is None else replace(self, n_starts=self.n_starts + 1)

    @property
    def quiet(self) -> Budget:
        """The budget of one start among others."""
        return replace(self.budget, quiet=True)

    def search(
        self,
        solve_from: Callable[[int], Run[Any]],
        limits: tuple[int, int],
        slack: Callable[[float], float],
    ) -> list[Run[Any]]:
        """Run a solver from several starts until the best objective was reached twice.

        Good solutions are found again, poor ones differ. Starts run in parallel, and those after
        the last one needed are dropped, so that the result does not depend on ``n_jobs``.

        solve_from: runs the solver from the start of the given number.
        limits: least and largest number of starts, if ``n_starts`` does not say it.
        slack: distance from the best objective up to which another one counts as equal.
        """
        least, most = limits
        most = most if self.n_starts is None else self.n_starts
        width = effective_n_jobs(self.n_jobs)
        found: list[Run[Any]] = []
        with counting("starts", most, at_most=True, measure="objective") as count:
            for first in range(0, most, width):
                for run in self._batch(solve_from, range(first, min(first + width, most))):
                    found.append(run)
                    count.tick(min(run.state.objective for run in found))
                    if run.stopped:
                        return found
                    enough = self.n_starts is None and len(found) >= least
                    if enough and _reached_twice(found, slack):
                        return found
        return found

    @staticmethod
    def _batch(solve_from: Callable[[int], Run[Any]], numbers: range) -> list[Run[Any]]:
        """The runs from some starts, in threads that hear of Ctrl-C as this one does."""
        if len(numbers) == 1:
            return [solve_from(numbers[0])]
        jobs = [delayed(copy_context().run)(solve_from, number) for number in numbers]
        found: list[Run[Any]] = Parallel(n_jobs=len(numbers), prefer="threads")(jobs)
        return found


def _reached_twice(found: list[Run[Any]], slack: Callable[[float], float]) -> bool:
    values = sorted(run.state.objective for run in found)
    return len(values) > 1 and values[1] - values[0] <= slack(values[0])


def best_of(found: list[Run[Any]]) -> tuple[Run[Any], str]:
    """The best of several runs, the first among equals, and a remark on the number of starts."""
    best = min(found, key=lambda run: run.state.objective)
    return best, f"best of {len(found)} start{'s' * (len(found) != 1)}"


@dataclass(frozen=True, eq=False)
class Outcome:
    """The best solution, with the trace of the solver that found it."""

    solution: Solution
    trace: tuple[Iteration, ...]
    status: Status
    certificate: Certificate

    @classmethod
    def of(
        cls,
        attempts: "list[Attempt]",
        best: "Attempt",
        bounds: Mapping[str, float],
        scale: Callable[[], float],
    ) -> "Outcome":
        """The outcome of attempts, with lower bounds by their sources; see `certify`."""
        certificate = certify(best.solution.point.value, bounds, scale)
        return cls(best.solution, best.trace, status_of(attempts, best), certificate)


@dataclass(frozen=True, eq=False)
class Attempt:
    """The runs of one recipe, the last of which counts, and its lower bound.

    remark: anything that the runs do not show, such as the number of starts.
    """

    name: str
    solutions: tuple[Run[Any], ...]
    bound: float = -np.inf
    remark: str = ""

    @property
    def solution(self) -> Solution:
        """The solution of the last run."""
        return self.solutions[-1].solution

    @property
    def trace(self) -> tuple[Iteration, ...]:
        """The iterations of all runs."""
        return tuple(iteration for run in self.solutions for iteration in run.trace)


def certify(
    objective: float, bounds: Mapping[str, float], scale: Callable[[], float]
) -> Certificate:
    """The certificate of the largest of several lower bounds, given by their sources.

    scale: size of the numbers the bounds are sums of; called only if a bound is above the
        objective, to tell rounding from an error.
    """
    for source, bound in bounds.items():
        if np.isnan(bound):
            require_finite(bound, f"the lower bound ({source})")
    source = max(bounds, key=lambda name: bounds[name])
    size = scale() if bounds[source] > objective else 0.0
    return Certificate.of(objective, bounds[source], source, scale=size)


def status_of(attempts: list[Attempt], best: Attempt) -> Status:
    """The status of a fit: the attempts, the one kept, and how it ended."""
    return Status(
        solver=best.name,
        converged=best.solutions[-1].converged,
        n_iter=max(1, sum(run.trace[-1].number for run in best.solutions)),
        objectives=tuple((a.name, a.solution.point.value) for a in attempts),
        message=_message(attempts, best),
    )


def _message(attempts: list[Attempt], best: Attempt) -> str:
    """The attempts and the one kept, in words."""
    told = "; ".join(
        f"{', then '.join(run.message for run in attempt.solutions)} "
        f"{attempt.remark and f'({attempt.remark}) '}(objective {attempt.solution.point.value:.6g})"
        for attempt in attempts
    )
    return told if len(attempts) == 1 else f"{told}. Kept {best.name}."
