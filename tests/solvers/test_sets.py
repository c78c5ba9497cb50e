"""Sets that are not unions of subspaces: nothing is refitted out of them."""

import numpy as np
import pytest

from clustruct.design import as_design
from clustruct.grouping.constraints import Clustered
from clustruct.losses import HuberLoss, LogisticLoss, SquaredLoss
from clustruct.objectives.features.objective import FeatureObjective
from clustruct.objectives.linear import Response
from clustruct.objectives.quadratic import quadratic_objective
from clustruct.results import Projection
from clustruct.solvers.driver import Budget, drive
from clustruct.solvers.features import FeatureProblem, relaxed, solve
from clustruct.solvers.greedy import Greedy
from clustruct.solvers.projected_gradient import ProjectedGradient

N, D, Q, ALPHA = 60, 10, 3, 1e-2
LOSSES = (SquaredLoss(), HuberLoss(1.0), LogisticLoss())


class NonNegative:
    """At most so many distinct weights, none of them negative: exact for one output."""

    refits = False

    def __init__(self, n_clusters):
        self.n_clusters = n_clusters

    def project(self, W):
        """One group, that of the smallest weights, may be zero; all sizes of it are tried."""
        order = np.argsort(W[:, 0], kind="stable")
        found = [self._with_zeros(W, order, count) for count in range(len(W) + 1)]
        return min((f for f in found if f is not None), key=lambda nearest: nearest.sq_distance)

    def _with_zeros(self, W, order, n_zeros):
        n_groups = self.n_clusters - (n_zeros > 0)
        labels, centers = np.empty(len(W), dtype=np.intp), np.zeros((0, 1))
        if n_zeros < len(W):
            if n_groups == 0:
                return None
            rest = Clustered(n_groups).project(W[order[n_zeros:]])
            centers, labels[order[n_zeros:]] = np.maximum(rest.centers, 0.0), rest.labels
        if n_zeros:
            labels[order[:n_zeros]] = len(centers)
            centers = np.concatenate([centers, np.zeros((1, 1))])
        point = centers[labels]
        return Projection(point, labels, centers, float(np.square(W - point).sum()), exact=True)

    def explained(self, P):
        """No more than without the sign."""
        return Clustered(self.n_clusters).explained(P)


class Undeclared(NonNegative):
    """The same, without a word on refits."""

    def __getattribute__(self, name):
        if name == "refits":
            raise AttributeError(name)
        return super().__getattribute__(name)


def problem(seed, shift=0.0):
    """An objective of each kind in turn, and a bound of its second derivative."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D)) + 0.5 * rng.standard_normal((N, 1))
    y = X @ (rng.standard_normal(D) + shift) + 0.5 * rng.standard_normal(N)
    loss = LOSSES[seed % 3]
    y = np.sign(y) if isinstance(loss, LogisticLoss) else y
    response = Response(y[:, None], loss, 1, np.full(N, 1 / N), fit_intercept=True)
    curvature = loss.curvature * np.linalg.eigvalsh(np.cov(X.T, bias=True))[-1] + ALPHA
    if seed % 6 == 0:
        return quadratic_objective(as_design(X), response, np.full(D, ALPHA)), curvature
    return FeatureObjective(as_design(X), response, ALPHA), curvature


def budget(tol=1e-8):
    return Budget(1000, tol, lambda iteration: None)


def is_member(W):
    return W.min() >= 0.0 and np.unique(W).size <= Q


@pytest.mark.parametrize("seed", range(60))
def test_non_negative_groups(seed):
    objective, curvature = problem(seed)
    constraint = NonNegative(Q)
    start = objective.minimum(1e-8).W
    run = drive(ProjectedGradient(objective, constraint, start), budget())
    point = run.solution.point
    assert run.converged
    assert is_member(point.W)
    np.testing.assert_array_equal(constraint.project(point.W).sq_distance, 0.0)
    assert point.value <= objective.at(constraint.project(start).point).value
    # A gradient step that is projected leads back: the gradient mapping is zero, nearly.
    step = constraint.project(point.W - objective.gradient(point) / curvature).point
    assert np.linalg.norm(step - point.W) <= 1e-4 * max(np.linalg.norm(point.W), 1.0)
    # What holds for all groups holds for those without a negative value.
    explained = constraint.explained(objective.loss_gradient(point))
    assert objective.dual_bound(point, explained) <= point.value


def test_answers_outside_the_set_are_an_error():
    refused = 0
    for seed in range(20):
        objective, _ = problem(seed, shift=1.0)
        start = objective.minimum(1e-8).W
        plain = drive(ProjectedGradient(objective, Clustered(Q), start), budget())
        try:
            kept = drive(ProjectedGradient(objective, Undeclared(Q), start), budget())
        except ValueError as error:
            refused += "not in the set of Undeclared" in str(error) and "refits" in str(error)
            continue
        assert is_member(kept.solution.point.W)
        assert (
            is_member(plain.solution.point.W)
            or kept.solution.point.value > plain.solution.point.value
        )
    assert 0 < refused < 20


def test_greedy_does_not_refit():
    for seed in range(6):
        objective, _ = problem(seed)
        minimum = objective.minimum(1e-8)
        run = drive(Greedy(objective, NonNegative(Q), minimum), budget())
        assert is_member(run.solution.point.W)


class Searchable(NonNegative):
    """With the places that searches ask for."""

    def places(self, W):
        raise AssertionError("a set that cannot be refitted is not searched")


def solved(solver, **options):
    objective, _ = problem(0)
    return solve(
        FeatureProblem(
            objective=objective,
            constraint=Searchable(Q),
            budget=budget(),
            start=None,
            n_starts=3,
            rng=np.random.default_rng(0),
            options=options,
        ),
        solver,
    )


def test_recipes_respect_the_set():
    for solver in ("pg", "auto", "greedy"):
        outcome = solved(solver)
        assert is_member(outcome.solution.point.W)
        assert outcome.certificate.lower_bound <= outcome.solution.point.value
        with pytest.raises(ValueError, match=r"relax=0\.5 gives groups .*refits = False"):
            relaxed(outcome, 0.5)
    for solver in ("soft", "cg", "cgpg"):
        with pytest.raises(ValueError, match=r"solver='\w+' gives groups .* Choose solver='pg'"):
            solved(solver)
