"""The fuzzer finds what it is there to find: faults, errors, crashes, hangs and memory."""

import itertools
import os
import signal
import time
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from fuzz import driver, exact, shrinking
from fuzz.cases import (
    OUT_OF_MEMORY,
    Failure,
    Fault,
    Target,
    draw_case,
    keep_failure,
    load_target,
    read_failure,
    run_case,
)
from fuzz.known import Known, reason_for
from fuzz.messages import is_useless
from tests.kernels.reference import brute_force, sparse_brute_force


def check(recipe):
    """Fails in the way that the largest number of a recipe asks for."""
    worst = max(recipe["numbers"], default=0)
    if worst == 90:
        raise Fault("a promise", "details")
    if worst == 91:
        raise TypeError("not foreseen")
    if worst == 92:
        os.kill(os.getpid(), signal.SIGSEGV)
    if worst == 93:
        while True:
            pass
    if worst == 94:
        np.ones((1 << 30,))
    if worst == 95:
        os._exit(3)
    return "fine"


def draw(rng):
    return {"numbers": [int(number) for number in rng.integers(0, 96, 2)]}


def smaller(recipe):
    for numbers in shrinking.without_parts(recipe["numbers"]):
        yield {"numbers": numbers}


# A child has to write its coverage as well, where that is measured.
TARGET = Target("made up", draw, check, smaller, share=1.0, short=1, seconds=0.5, memory=256 << 20)
KINDS = {
    90: "a promise",
    91: "TypeError in test_driver.check",
    92: "ends the process by SIGSEGV",
    93: driver.STUCK,
    94: OUT_OF_MEMORY,
    95: "ends the process with status 3",
}


def test_every_kind_of_failure_is_found_and_the_run_goes_on():
    tally = driver.run_target(TARGET, 0, driver.Budget(cases=120), jobs=2)
    expected = {}
    for index in range(120):
        worst = max(draw_case(TARGET, 0, index)["numbers"])
        if worst in KINDS:
            expected.setdefault(KINDS[worst], []).append(index)
    assert set(tally.failures) == set(expected) == set(KINDS.values())
    assert tally.outcomes["failed"] == sum(map(len, expected.values()))
    for what, failure in tally.failures.items():
        assert failure.index in expected[what]
        assert failure.recipe == draw_case(TARGET, 0, failure.index)


@pytest.mark.parametrize("number", KINDS)
def test_a_failure_is_made_smaller_and_kept(number, tmp_path):
    recipe = {"numbers": [3, 5, number, 7, 0, 11, 2]}
    failure = Failure("made up", 4, recipe, KINDS[number], "")
    small = shrinking.minimised(TARGET, failure)
    assert small.recipe == {"numbers": [number]}
    assert read_failure(keep_failure(small, 7, tmp_path)) == small


def test_time_ends_a_run():
    idle = replace(TARGET, check=lambda recipe: time.sleep(0.01) or "fine")
    tally = driver.run_target(idle, 0, driver.Budget(seconds=0.3), jobs=1)
    assert 0.3 <= tally.seconds < 5.0
    assert 2 < tally.outcomes["fine"] < 100


def test_known_faults_are_counted_apart(monkeypatch):
    known = (Known("made up", "^a promise", "it is old"),)
    monkeypatch.setattr("fuzz.known.KNOWN", known)
    assert reason_for(Failure("made up", 0, {}, "a promise", "")) == "it is old"
    assert reason_for(Failure("other", 0, {}, "a promise", "")) is None
    tally = driver.Tally("made up")
    tally.add(Failure("made up", 0, {}, "a promise", ""))
    assert tally.failures == {}
    assert tally.known == {"it is old": 1}


def test_the_same_seed_draws_the_same_cases():
    for name in ("kernels", "fits"):
        target = load_target(name)
        first, again = (draw_case(target, 3, index=5) for _ in range(2))
        assert repr(first) == repr(again)
        assert repr(first) != repr(draw_case(target, 4, index=5))
        assert repr(first) != repr(draw_case(target, 3, index=6))


def test_messages():
    assert is_useless("Found input variables with inconsistent numbers: [3, 2]", ["X", "y"])
    assert not is_useless("y has three entries", ["X", "y"])
    assert not is_useless("this cannot be. Remove the column", ["X", "y"])
    assert is_useless("only 0-dimensional arrays can be converted", ["X"])


@pytest.mark.parametrize("seed", range(20))
def test_exact_costs_are_those_of_fractions(seed):
    rng = np.random.default_rng(seed)
    values = np.sort(rng.standard_normal(6) * 10.0 ** rng.integers(-20, 20))
    weights = 10.0 ** rng.uniform(-9.0, 9.0, 6)
    sequence = exact.Sequenced(values.tolist(), weights.tolist())
    least = exact.least_costs(sequence, 4)
    for n_groups, cost in enumerate(least, start=1):
        right = brute_force(values, weights, n_groups)
        assert abs(sequence.fraction(cost) - right) <= right * Fraction(1, 10**40)
    cuts = exact.cuts_of_a_line(6)
    assert len(set(cuts)) == 32
    assert exact.best_cut(sequence, cuts, 3, 0, Fraction(0), 0) == least[2]


@pytest.mark.parametrize("seed", range(10))
def test_exact_sparse_costs_are_those_of_all_assignments(seed):
    rng = np.random.default_rng(seed)
    values = rng.integers(-5, 6, 6) * 1.0
    least = sparse_brute_force(values)
    sequence = exact.Sequenced(sorted(values.tolist()), None)
    for n_groups, n_nonzero in itertools.product((1, 2, 3), (0, 2, 4, 6)):
        cost = exact.least_sparse_cost(sequence, n_groups, n_nonzero)
        assert abs(sequence.fraction(cost) - least[n_nonzero, n_groups]) < Fraction(1, 10**9)


@pytest.mark.parametrize(
    ("recipe", "what"),
    [
        ({"x": [0.0, 1.0, 9.0], "labels": [0, 1, 1]}, "kmeans_1d: the groups are not the best"),
        ({"x": [0.0, 1.0, 9.0], "labels": [0, 0, 1]}, ""),
        ({"x": [0.0, 1.0, 9.0], "labels": [0, 0, 2]}, "kmeans_1d: labels and centres differ"),
        ({"x": [0.0, 9.0, 1.0], "labels": [0, 0, 1]}, "kmeans_1d: groups are no intervals"),
    ],
)
def test_a_wrong_answer_of_a_kernel_is_told(recipe, what, monkeypatch):
    from fuzz import kernels

    labels = np.array(recipe["labels"])
    x = np.array(recipe["x"])
    groups = [x[labels == q] for q in np.unique(labels)]
    inertia = sum(float(np.square(group - group.mean()).sum()) for group in groups)
    answer = kernels.cs.Clustering1D(
        labels, np.array([g.mean() for g in groups]), np.bincount(labels), inertia
    )
    monkeypatch.setattr(kernels.cs, "kmeans_1d", lambda *args, **kwargs: answer)
    case = {"subject": "kmeans_1d", "x": x.tolist(), "w": None, "n_clusters": 2, "form": "array"}
    assert run_case(kernels.TARGET, case)[1].startswith(what)
    assert bool(run_case(kernels.TARGET, case)[1]) == bool(what)
