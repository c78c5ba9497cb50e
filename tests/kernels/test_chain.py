"""The search by bounding and refining finds the cheapest chain."""

import sys

import numpy as np
import pytest

from clustruct.kernels import COMPILED
from clustruct.kernels.cuts.chain import cheapest_chain
from clustruct.kernels.numbers.intervals import fast_cost_error, running_moments
from tests.kernels import reference
from tests.kernels.reference import SHAPES, WEIGHTINGS, cases

NO_WEIGHTS = np.empty(0)


def make(shape, weighting, n, seed):
    rng = np.random.default_rng([seed, n])
    values = SHAPES[shape](rng, n)
    values = np.unique(values / np.abs(values).max())
    weights = WEIGHTINGS[weighting](rng, len(values))
    return values, NO_WEIGHTS if weights is None else weights / weights.max()


def chain(
    values, weights, n_groups, *, zero_group=-1, middle=0, gap=0.0, bound=np.inf, block=1, most=None
):
    origin = 0.0 if zero_group >= 0 else float(values[len(values) // 2])
    table = running_moments(values, weights, origin, block)
    error = fast_cost_error(values, weights, origin, table, block)
    return cheapest_chain(
        values, weights, origin, table, block, n_groups, zero_group, middle, float(gap), bound,
        error, sys.maxsize if most is None else most,
    )  # fmt: skip


def cost_of(values, weights, boundaries, zero_group=-1):
    edges = np.concatenate([[0], boundaries, [len(values)]])
    masses = reference.ones_for(values, weights if len(weights) else None)
    cost = 0.0
    for group in range(len(edges) - 1):
        part = slice(edges[group], edges[group + 1])
        if group == zero_group:
            cost += float((masses[part] * values[part] ** 2).sum())
        else:
            cost += float(reference.exact_cost(values[part], masses[part]))
    return cost


def sizes(compiled, uncompiled):
    return compiled if COMPILED else uncompiled


@pytest.mark.parametrize("weighting", ["unweighted", "integers", "decades"])
@pytest.mark.parametrize("shape", [name for name in SHAPES if "tight" not in name])
def test_cheapest_without_a_zero_group(shape, weighting):
    for seed in cases(10):
        values, weights = make(shape, weighting, sizes((30, 90, 200)[seed % 3], 30), seed)
        masses = weights if len(weights) else None
        most = min(12, len(values))
        least = reference.dynamic_program(values, masses, most)
        floor = 2.0**-98 * (reference.ones_for(values, masses) * np.ptp(values) ** 2).sum()
        for n_groups in range(2, most + 1, 2):
            boundaries, cost = chain(values, weights, n_groups)
            assert boundaries.shape == (n_groups - 1,)
            assert (np.diff(np.concatenate([[0], boundaries, [len(values)]])) > 0).all()
            assert cost == pytest.approx(least[n_groups - 1], rel=1e-12, abs=floor)
            found = cost_of(values, weights, boundaries)
            assert found == pytest.approx(least[n_groups - 1], rel=1e-12, abs=floor)


@pytest.mark.parametrize(
    "shape", ["normal", "uniform", "t2", "cauchy", "clustered", "grid", "ties"]
)
def test_cheapest_with_a_zero_group(shape):
    for seed in cases(25):
        values, weights = make(shape, ("unweighted", "integers")[seed % 2], sizes(60, 20), seed)
        masses = weights if len(weights) else None
        n = len(values)
        middle = int(np.argmin(np.abs(values)))
        rng = np.random.default_rng(seed)
        total = float(reference.ones_for(values, masses).sum())
        n_groups = int(rng.integers(2, 7))
        for zero_group in range(n_groups):
            for gap in (0.0, total * rng.random() * 0.9):
                least = reference.chain_program(values, masses, n_groups, zero_group, middle, gap)
                if np.isinf(least):
                    continue
                boundaries, cost = chain(
                    values, weights, n_groups, zero_group=zero_group, middle=middle, gap=gap
                )
                assert cost == pytest.approx(least, rel=1e-12, abs=0)
                assert cost_of(values, weights, boundaries, zero_group) == pytest.approx(cost)
                edges = np.concatenate([[0], boundaries, [n]])
                start, stop = edges[zero_group : zero_group + 2]
                assert start <= middle < stop
                assert reference.ones_for(values, masses)[start:stop].sum() >= gap
                assert (np.diff(edges) >= 0).all()


@pytest.mark.parametrize("block", [2, 4, 5])
def test_a_coarse_table_gives_the_same_chain(block):
    for seed in cases(10):
        values, weights = make("normal", ("unweighted", "decades")[seed % 2], sizes(300, 60), seed)
        fine, coarse = (chain(values, weights, 4, block=step) for step in (1, block))
        np.testing.assert_array_equal(fine[0], coarse[0])
        assert fine[1] == pytest.approx(coarse[1], rel=1e-14)


@pytest.mark.parametrize("zero_group", [-1, 1])
def test_bound_below_the_cheapest_finds_nothing(zero_group):
    for seed in cases(10):
        values, weights = make("normal", "unweighted", sizes(300, 60), seed)
        options = {"zero_group": zero_group, "middle": int(np.argmin(np.abs(values))), "gap": 20.0}
        boundaries, cost = chain(values, weights, 4, **options)
        assert chain(values, weights, 4, bound=cost * (1 - 1e-9), **options) is None
        for bound in (cost, cost * (1 + 1e-9), 2 * cost):
            again, same = chain(values, weights, 4, bound=bound, **options)
            np.testing.assert_array_equal(again, boundaries)
            assert same == cost


def test_memory_error_where_too_many_states_are_left():
    values, weights = make("uniform", "unweighted", 200, 0)
    with pytest.raises(MemoryError):
        chain(values, weights, 5, most=20)


def test_effort_hardly_depends_on_the_number_of_values():
    # A hundred times the values must do with a few times the states.
    rng = np.random.default_rng(0)
    few, many = sizes((10_000, 1_000_000), (500, 20_000))
    for n, most in ((few, 2000), (many, 4000)):
        values = np.sort(rng.standard_normal(n))
        boundaries, _ = chain(values / np.abs(values).max(), NO_WEIGHTS, 8, block=4, most=most)
        assert (np.diff(boundaries) > 0).all()
