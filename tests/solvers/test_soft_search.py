"""The search finds the best partition where all can be tried, and planted ones where not."""

import itertools

import numpy as np
import pytest

from clustruct.solvers.search import soft
from clustruct.solvers.search.soft import Effort, search
from tests.solvers.problems import (
    permitted,
    planted,
    planted_blocks,
    quadratic,
    value_of,
    weights_of,
)

QUICK = Effort(n_turns=1, n_starts=32, n_annealed=8, n_sweeps=50, n_crossed=16)


def best_value(problem):
    """Least value over all permitted partitions."""
    zero = [] if problem.n_nonzero is None else [-1]
    choices = [[*zero, *range(a, b)] for a, b in zip(*problem.ranges, strict=True)]
    partitions = (np.array(labels) for labels in itertools.product(*choices))
    return min(value_of(problem, labels) for labels in partitions if permitted(problem, labels))


LIMITS = {
    "plain": {},
    "zero group": {"n_nonzero": 3},
    "blocks": {"first": np.array([0, 0, 0, 2, 2, 2]), "last": np.array([2, 2, 2, 4, 4, 4])},
    "alone": {"first": np.array([0, 1, 2, 3, 3, 3]), "last": np.array([1, 2, 3, 5, 5, 5])},
    "both": {
        "first": np.array([0, 0, 0, 2, 2, 2]),
        "last": np.array([2, 2, 2, 3, 3, 3]),
        "n_nonzero": 4,
    },
}


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("n_samples", [4, 15])
def test_best_of_all_partitions(limits, n_outputs, n_samples):
    rng = np.random.default_rng([n_outputs, n_samples])
    x, y = rng.standard_normal((n_samples, 6)), rng.standard_normal((n_samples, n_outputs))
    n_clusters = int(limits["last"].max()) if "last" in limits else 3
    problem = quadratic(x, y, n_clusters, alpha=1e-3, **limits)
    found = search(problem, rng, effort=QUICK)
    assert permitted(problem, found.labels)
    assert found.value == pytest.approx(value_of(problem, found.labels), rel=1e-9)
    assert found.value == pytest.approx(best_value(problem), rel=1e-9)


@pytest.mark.parametrize("alpha", [1e-6, 1e-2])
@pytest.mark.parametrize("correlation", [0.0, 0.7])
def test_planted_partition_from_as_many_samples_as_features(correlation, alpha):
    problem, weights, labels = planted(1, n=100, correlation=correlation, alpha=alpha)
    found = search(problem, np.random.default_rng(0), effort=Effort(n_turns=1))
    assert np.linalg.norm(weights_of(problem, found.labels)[:, 0] - weights) < 1.0
    assert found.value <= value_of(problem, labels) * (1 + 1e-9)


def test_planted_partition_of_strongly_correlated_features():
    # Message passing with little damping and moves of single features alone miss it.
    problem, _, labels = planted(2, n=75, correlation=0.9)
    found = search(problem, np.random.default_rng(0))
    assert found.value <= value_of(problem, labels) * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("correlation", "share"), [(0.7, 0.9), (0.9, 0.6)])
def test_planted_partitions_of_correlated_features(correlation, share):
    found = []
    for seed in range(20):
        problem, _, labels = planted(seed, n=75, correlation=correlation)
        best = search(problem, np.random.default_rng(seed)).value
        found.append(best <= value_of(problem, labels) * (1 + 1e-9))
    assert np.mean(found) >= share


@pytest.mark.slow
def test_planted_partitions_of_features_in_correlated_blocks():
    found = []
    for seed in range(20):
        problem, _, labels = planted_blocks(seed)
        best = search(problem, np.random.default_rng(seed)).value
        found.append(best <= value_of(problem, labels) * (1 + 1e-9))
    assert np.mean(found) >= 0.6


@pytest.mark.slow
@pytest.mark.parametrize(("n", "share"), [(90, 0.95), (75, 0.8), (60, 0.35)])
def test_planted_partitions_from_fewer_samples_than_features(n, share):
    recovered = []
    for seed in range(40):
        problem, weights, _ = planted(seed, n=n)
        labels = search(problem, np.random.default_rng(seed)).labels
        recovered.append(np.linalg.norm(weights_of(problem, labels)[:, 0] - weights) < 1.0)
    assert np.mean(recovered) >= share


def test_planted_sparse_partition():
    rng = np.random.default_rng(3)
    weights = np.zeros(80)
    weights[rng.permutation(80)[:30]] = rng.choice([-4.0, 3.0, 8.0], 30)
    x = rng.standard_normal((60, 80))
    problem = quadratic(x, x @ weights + 0.2 * rng.standard_normal(60), 3, n_nonzero=30)
    found = search(problem, rng)
    assert np.array_equal(found.labels == -1, weights == 0)
    assert weights_of(problem, found.labels)[:, 0] == pytest.approx(weights, abs=0.3)


def test_same_seed_same_answer_on_any_number_of_threads(run_python):
    code = """
import sys
import numpy as np
from threadpoolctl import threadpool_limits
from clustruct.solvers.search.partition_problem import PartitionProblem
from clustruct.solvers.search.soft import Effort, search

rng = np.random.default_rng(0)
x = rng.standard_normal((60, 120))
x[:, 1:] += x[:, :-1]  # correlated columns move in pairs
y = x @ rng.choice([-5.0, 1.0, 2.0, 7.0], 120)[:, None] + 0.5 * rng.standard_normal((60, 1))
problem = PartitionProblem(x.T @ x / 60, x.T @ y / 60, float(np.sum(y**2) / 60), 1e-3, 4)
effort = Effort(n_turns=1, n_starts=64, n_annealed=4, n_sweeps=30)
found = search(problem, np.random.default_rng(1), effort=effort)
print(found.value.hex(), found.labels.tolist())
"""
    printed = set()
    for threads in ("1", "2", "2"):
        done = run_python(code, env={"OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads})
        assert done.returncode == 0, done.stderr
        printed.add(done.stdout)
    assert len(printed) == 1


def test_starts_are_improved_on():
    problem, _, labels = planted(5, n=50, d=80)
    nothing = Effort(n_turns=1, n_starts=1, n_annealed=1, n_sweeps=1)
    found = search(problem, np.random.default_rng(0), effort=nothing, starts=labels[None])
    assert found.value <= value_of(problem, labels) * (1 + 1e-9)


def test_starts_are_left_as_they_are():
    problem, _, _ = planted(5, n=50, d=20)
    starts = np.zeros((2, 20), dtype=np.intp)
    search(problem, np.random.default_rng(0), effort=QUICK, starts=starts)
    assert not starts.any()


@pytest.mark.parametrize("n_nonzero", [None, 0, 2])
@pytest.mark.parametrize("n_clusters", [1, 2, 7])
@pytest.mark.parametrize(
    ("x", "y"),
    [
        (np.zeros((4, 3)), np.arange(4.0)),
        (np.arange(12.0).reshape(4, 3), np.zeros(4)),
        (np.zeros((4, 3)), np.zeros(4)),
        (np.ones((4, 3)), np.arange(4.0)),
        (np.eye(3), np.array([1.0, 1.0, 2.0])),
        (np.ones((4, 1)), np.arange(4.0)),
        (np.eye(4)[:, :3] * [1e-3, 1.0, 1e3], np.arange(4.0)),
    ],
    ids=["no data", "no output", "nothing", "copies", "no noise", "one feature", "scales"],
)
def test_degenerate_data(x, y, n_clusters, n_nonzero):
    problem = quadratic(x, y, n_clusters, alpha=0.0, n_nonzero=n_nonzero)
    found = search(problem, np.random.default_rng(0), effort=QUICK)
    assert permitted(problem, found.labels)
    scale = max(problem.constant, 1.0)
    assert found.value == pytest.approx(value_of(problem, found.labels), abs=1e-6 * scale)
    assert found.value == pytest.approx(best_value(problem), abs=1e-6 * scale)


def test_easy_problems_take_few_starts(monkeypatch):
    drawn = []
    from clustruct.solvers.search.message_passing import MessagePassing

    draw = MessagePassing.draw
    monkeypatch.setattr(
        MessagePassing, "draw", lambda self, n, rng: drawn.append(n) or draw(self, n, rng)
    )
    problem, _, _ = planted(1, n=200, n_clusters=3)
    search(problem, np.random.default_rng(0))
    assert len(drawn) == 1


def test_a_feature_with_a_weight_of_its_own():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 200)
    labels[70] = 3
    x = rng.standard_normal((150, 200))
    weights = np.array([-9.0, 2.0, 7.0, 4.5])[labels]
    problem = quadratic(x, x @ weights + 0.5 * rng.standard_normal(150), 4)
    # Joined to its nearest group, which single moves cannot undo: another group is split in two.
    start = np.where(labels == 3, 1, labels)
    start[np.flatnonzero(labels == 0)[::2]] = 3
    effort = Effort(n_turns=1, n_starts=1, n_annealed=1, n_sweeps=1, n_crossed=0)
    found = search(problem, rng, effort=effort, starts=start[None])
    assert weights_of(problem, found.labels)[:, 0] == pytest.approx(weights, abs=1.0)


def clock(monkeypatch):
    """Replace the clock of the search by one on which every look takes a second."""
    seconds = itertools.count()
    monkeypatch.setattr(soft.time, "perf_counter", lambda: float(next(seconds)))


@pytest.mark.parametrize(("limit", "n_looks"), [(0.5, 1), (20.5, 21)])
def test_time_limit_ends_the_search_and_goes_on_until_then(monkeypatch, limit, n_looks):
    rng = np.random.default_rng(0)
    problem = quadratic(rng.standard_normal((10, 30)), rng.standard_normal(10), 3)
    added = []
    monkeypatch.setattr(
        soft._Pool,
        "add",
        lambda self, *new, add=soft._Pool.add: added.append(new) or add(self, *new),
    )
    clock(monkeypatch)
    effort = Effort(n_turns=1, n_starts=8, n_annealed=2, n_sweeps=2, time_limit=limit)
    found = search(problem, rng, effort=effort)
    assert len(added) == n_looks
    assert found.timed_out
    assert found.in_words.endswith("stopped by time_limit")


def test_time_that_is_left_changes_nothing(monkeypatch):
    problem, _, _ = planted(1, n=100, n_clusters=3)
    without = search(problem, np.random.default_rng(0))
    limited = search(problem, np.random.default_rng(0), effort=Effort(time_limit=1e6))
    assert limited.value == without.value
    assert limited.routes == without.routes
    assert limited.in_words.startswith(f"found by {len(without.routes)} of 5 routes, ")
    assert not limited.timed_out


def test_often_is_not_enough_by_one_route_among_equals():
    problem, _, _ = planted(1, n=50, d=20)
    pool = soft._Pool(problem, Effort(n_repeats=3))
    # Partitions that explain about the same, the best of them by one route only.
    explained = 0.5 * problem.constant - np.array([1.0, 1.0, 1.0, 1.1, 1.2])
    pool._keep(np.arange(100).reshape(5, 20) % 5, explained, np.inf, soft.PASSING)
    assert not pool.is_settled
    pool._keep(np.zeros((3, 20), dtype=np.intp), explained[:3], np.inf, soft.CROSSING)
    assert not pool.is_settled
    pool._keep(np.zeros((3, 20), dtype=np.intp), explained[:3], np.inf, soft.ANNEALING)
    assert pool.is_settled
    # A new best one is counted from the beginning, and stands out here.
    better = 0.5 * problem.constant - np.array([0.1, 0.1])
    pool._keep(np.zeros((2, 20), dtype=np.intp), better, np.inf, soft.PASSING)
    assert not pool.is_settled
    pool._keep(np.zeros((2, 20), dtype=np.intp), better, np.inf, soft.PASSING)
    assert pool.is_settled
