"""The loop, with a solver that does as it is told."""

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from clustruct.design import as_design
from clustruct.grouping.constraints import Clustered
from clustruct.losses import SquaredLoss
from clustruct.objectives.features.objective import FeatureObjective
from clustruct.objectives.linear import Point, Response
from clustruct.solvers.driver import Budget, Solution, drive, require
from clustruct.solvers.projected_gradient import ProjectedGradient


@dataclass(frozen=True)
class Step:
    objective: float
    gain: float = 1.0
    done: bool = False
    step: float = 0.5


class Scripted:
    """Takes the given steps, one after the other."""

    name = "scripted"

    def __init__(self, *steps):
        self.steps = list(steps)
        self.taken = 0

    def start(self):
        return self.steps[0]

    def advance(self, state):
        assert state is self.steps[self.taken]
        self.taken += 1
        return self.steps[self.taken]

    def solution(self, state):
        W = np.full((1, 1), state.objective)
        return Solution(Point(W, state.objective, np.zeros(1), W), np.zeros(1, dtype=int))


def budget(max_iter=10, tol=1e-3, seen=None):
    return Budget(max_iter, tol, (lambda i: None) if seen is None else seen.append)


def test_stops_when_a_step_gains_less_than_the_tolerance():
    solver = Scripted(Step(3.0, np.inf), Step(2.0, 0.5), Step(1.999, 1e-3), Step(0.0))
    run = drive(solver, budget())
    assert solver.taken == 2
    assert run.converged
    assert [i.objective for i in run.trace] == [3.0, 2.0, 1.999]
    assert [i.number for i in run.trace] == [0, 1, 2]
    assert run.solution.point.value == 1.999
    assert run.message == "scripted: converged after 2 steps"


def test_stops_when_the_solver_is_done():
    solver = Scripted(Step(3.0), Step(2.0), Step(2.0, 0.0, done=True), Step(0.0))
    run = drive(solver, budget())
    assert run.converged
    # The last one was no step: nothing changed.
    assert [i.objective for i in run.trace] == [3.0, 2.0]
    assert run.message == "scripted: converged after 1 step"


def test_a_last_step_that_lowers_the_objective_is_recorded():
    run = drive(Scripted(Step(3.0), Step(2.0, done=True)), budget())
    assert [i.objective for i in run.trace] == [3.0, 2.0]


def test_done_at_the_start():
    solver = Scripted(Step(3.0, done=True))
    run = drive(solver, budget())
    assert solver.taken == 0
    assert run.converged
    assert len(run.trace) == 1
    assert run.message == "scripted: done at once"


@pytest.mark.parametrize("max_iter", [1, 3])
def test_warns_when_the_budget_is_spent(max_iter):
    solver = Scripted(*[Step(1.0 / (k + 1), 0.25) for k in range(9)])
    with pytest.warns(ConvergenceWarning) as caught:
        run = drive(solver, budget(max_iter))
    assert solver.taken == max_iter
    assert not run.converged
    assert len(run.trace) == max_iter + 1
    (warning,) = caught
    message = str(warning.message)
    assert f"'scripted' stopped after max_iter={max_iter} steps" in message
    assert "relative gain of 0.25" in message
    assert "tol=0.001" in message
    assert "Raise max_iter" in message
    assert run.message.startswith("scripted: stopped by max_iter after")


def test_convergence_in_the_last_step_of_the_budget_is_no_reason_to_warn():
    run = drive(Scripted(Step(3.0), Step(2.0), Step(1.9, 1e-6)), budget(2))
    assert run.converged


def test_monitor_sees_every_step_as_it_is_taken():
    seen = []
    solver = Scripted(Step(3.0), Step(2.0, step=0.25), Step(1.0, 0.0))

    def watch(iteration):
        assert iteration.number == solver.taken
        seen.append(iteration)

    run = drive(solver, Budget(10, 1e-3, watch))
    assert tuple(seen) == run.trace
    assert [i.step for i in seen] == [0.5, 0.25, 0.5]
    assert {i.solver for i in seen} == {"scripted"}
    assert (np.diff([i.seconds for i in seen]) >= 0).all()


@pytest.mark.parametrize(("at", "ending"), [(0, "at once"), (1, "after 1 step")])
def test_monitor_can_end_it_without_a_warning(at, ending):
    solver = Scripted(Step(3.0), Step(2.0), Step(1.0), Step(0.0))
    run = drive(solver, Budget(10, 1e-3, lambda iteration: iteration.number == at))
    assert solver.taken == at
    assert run.stopped
    assert not run.converged
    assert run.solution.point.value == 3.0 - at
    assert run.message == f"scripted: stopped by the callback {ending}"


def test_monitor_that_speaks_up_at_the_end_changes_nothing():
    run = drive(Scripted(Step(3.0), Step(2.0, done=True)), Budget(9, 0.0, lambda i: i.number))
    assert run.converged
    assert not run.stopped


def test_what_is_missing_is_named():
    class Bare:
        def at(self): ...

    require("pg", Bare(), ("at",))
    with pytest.raises(TypeError, match="solver 'pg' needs gradient, refit of Bare") as error:
        require("pg", Bare(), ("at", "gradient", "refit"))
    assert "Choose another solver" in str(error.value)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("done", [False, True])
def test_an_objective_that_is_not_finite_names_the_step(value, done):
    message = rf"'scripted', iteration {{}}\): the objective is {value}\. .*Scale the columns"
    with pytest.raises(ValueError, match=message.format(0)):
        drive(Scripted(Step(value, done=done)), budget())
    with pytest.raises(ValueError, match=message.format(2)):
        drive(Scripted(Step(3.0), Step(2.0), Step(value, done=done)), budget())


def test_an_answer_that_is_not_finite_names_the_step():
    class Broken(Scripted):
        def solution(self, state):
            W = np.full((1, 1), np.nan)
            return Solution(Point(W, state.objective, np.zeros(1), W), np.zeros(1, dtype=int))

    with pytest.raises(ValueError, match=r"solver 'scripted', iteration 1\): a weight is nan"):
        drive(Broken(Step(3.0), Step(2.0, done=True)), budget())


def test_errors_of_linear_algebra_name_the_step():
    class Singular(Scripted):
        def advance(self, state):
            raise np.linalg.LinAlgError("Singular matrix")

    with pytest.raises(ValueError, match=r"iteration 1\): Singular matrix\. .*Scale the columns"):
        drive(Singular(Step(3.0)), budget())


class SteepLoss(SquaredLoss):
    """The squared loss until scores are large, then not a number: in value, or in gradient."""

    quadratic = False

    def __init__(self, what):
        self._what = what

    def _break(self, name, scores, values):
        return np.full_like(values, np.nan) if self._what == name and scores.any() else values

    def value(self, target, scores):
        return self._break("objective", scores, super().value(target, scores))

    def gradient(self, target, scores):
        return self._break("gradient", scores, super().gradient(target, scores))


@pytest.mark.parametrize("what", ["objective", "gradient"])
def test_gradients_that_are_not_finite_name_the_step(what):
    rng = np.random.default_rng(0)
    X, shares = rng.standard_normal((20, 4)), np.full(20, 0.05)
    response = Response(X[:, :1] - 1.0, SteepLoss(what), 1, shares, fit_intercept=False)
    objective = FeatureObjective(as_design(X), response, 1e-3)
    with pytest.raises(ValueError, match=rf"Newton's method, iteration \d+\): the {what} is nan"):
        objective.minimum(1e-8, np.ones((4, 1)))
    steps = ProjectedGradient(objective, Clustered(2), np.ones((4, 1)), refit=False)
    with pytest.raises(ValueError, match=rf"solver 'pg', iteration \d\): the {what}"):
        drive(steps, budget())
