"""Moments and costs of intervals, and the searches built on them, against exact arithmetic."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from clustruct.kernels import COMPILED
from clustruct.kernels.numbers.groups import group_summaries, partition_cost
from clustruct.kernels.numbers.intervals import (
    fast_cost_error,
    priced_sweep,
    running_moments,
    traced_path,
)
from tests.kernels import reference
from tests.kernels.reference import SHAPES, WEIGHTINGS

N = 60 if COMPILED else 20
# All moments of one table carry an error of about this share of the last one: costs that are
# smaller still have no digits left.
RESOLUTION = 2.0**-98


@pytest.fixture(params=SHAPES)
def shape(request):
    return request.param


@pytest.fixture(params=["unweighted", "decades", "integers"])
def weighting(request):
    return request.param


class Sorted:
    """Sorted values of at most 1 in size, their weights and their moments."""

    def __init__(self, shape, weighting, n=N, seed=0, block=1):
        rng = np.random.default_rng(seed)
        values = SHAPES[shape](rng, n)
        values = np.unique(values / np.abs(values).max())
        weights = WEIGHTINGS[weighting](rng, len(values))
        self.values, self.n = values, len(values)
        self.weights = np.empty(0) if weights is None else weights / weights.max()
        self.masses = reference.ones_for(values, None if weights is None else self.weights)
        self.origin = float(values[self.n // 2])
        self.table = running_moments(values, self.weights, self.origin, block)
        self.block = block
        self.noise = fast_cost_error(values, self.weights, self.origin, self.table, block)
        self.floor = RESOLUTION * float(self.table[-1, 4])

    def costs(self):
        return reference.interval_costs(self.values, self.masses)


def exact_moments(data, stop):
    pairs = zip(data.values[:stop].tolist(), data.masses[:stop].tolist(), strict=True)
    pairs = [(Fraction(x) - Fraction(data.origin), Fraction(w)) for x, w in pairs]
    return [sum((w * x**power for x, w in pairs), Fraction(0)) for power in range(3)]


def test_moments_have_twice_the_digits_of_a_double(shape, weighting):
    data = Sorted(shape, weighting)
    for row in range(data.n + 1):
        sizes = [
            float((data.masses[:row] * np.abs(data.values[:row] - data.origin) ** power).sum())
            for power in range(3)
        ]
        for power, exact in enumerate(exact_moments(data, row)):
            high, low = data.table[row, 2 * power : 2 * power + 2].tolist()
            error = Fraction(high) + Fraction(low) - exact
            assert abs(error) <= 2.0**-98 * sizes[power]
            # The second of a pair is what rounding took from the first.
            assert high == high + low


@pytest.mark.parametrize("block", [2, 4, 7])
def test_a_coarse_table_holds_rows_of_the_fine_one(shape, weighting, block):
    fine, coarse = (Sorted(shape, weighting, block=step) for step in (1, block))
    assert coarse.table.shape == (fine.n // block + 1, 6)
    sums = [table[:, ::2] + table[:, 1::2] for table in (fine.table[::block], coarse.table)]
    np.testing.assert_allclose(*sums, rtol=1e-15, atol=0)


@pytest.mark.parametrize("block", [1, 4])
def test_means_and_costs_of_groups(shape, weighting, block):
    data = Sorted(shape, weighting, block=block)
    rng = np.random.default_rng(1)
    inner = np.sort(rng.choice(np.arange(1, data.n), min(5, data.n - 1), replace=False))
    edges = np.concatenate([[0], inner, [data.n]])
    means, costs = group_summaries(data.values, data.weights, data.origin, data.table, block, edges)
    for group, (i, j) in enumerate(pairwise(edges)):
        members, masses = data.values[i:j], data.masses[i:j]
        mean = reference.exact_means(members, masses, np.zeros(j - i, dtype=int))[0]
        assert means[group] == pytest.approx(mean, rel=4e-16, abs=4e-16 * abs(data.origin))
        assert members[0] <= means[group] <= members[-1]
        cost = float(reference.exact_cost(members, masses))
        assert costs[group] == pytest.approx(cost, rel=1e-13, abs=data.floor)


def test_cost_of_a_single_value_is_zero():
    values = np.array([-1.0, -0.3, 0.1, 0.7])
    weights = np.array([0.1, 1.0, 1e-7, 0.3])
    edges = np.arange(5)
    for masses in (np.empty(0), weights):
        table = running_moments(values, masses, -0.3, 1)
        means, costs = group_summaries(values, masses, -0.3, table, 1, edges)
        np.testing.assert_array_equal(means, values)
        assert not costs.any()


def test_cost_of_a_partition(shape, weighting):
    data = Sorted(shape, weighting)
    costs = data.costs()
    rng = np.random.default_rng(2)
    for number in {0, 1, data.n // 3, data.n - 1}:
        inner = np.sort(rng.choice(np.arange(1, data.n), number, replace=False)).astype(np.int64)
        edges = np.concatenate([[0], inner, [data.n]])
        expected = costs[edges[:-1], edges[1:]].sum()
        found = partition_cost(data.table, inner)
        assert found == pytest.approx(expected, rel=1e-13, abs=(number + 1) * data.floor)


def test_error_of_plain_double_precision_is_bounded(shape, weighting):
    data = Sorted(shape, weighting)
    weight, first, second = (data.table[:, column] for column in (0, 2, 4))
    i, j = np.triu_indices(data.n + 1, 1)
    s = first[j] - first[i]
    fast = (second[j] - second[i]) - s * s / (weight[j] - weight[i])
    assert np.abs(fast - data.costs()[i, j]).max() <= data.noise


def swept(data, price, start, stop, begin_cost):
    """Best costs of all positions, and the way to the last one, by a sweep."""
    best = np.zeros((2, data.n + 1))
    best[0] = begin_cost
    previous, *queue = np.empty((3, data.n + 1), dtype=np.int32)
    priced_sweep(data.table, price, data.noise, start, stop, best, previous, *queue)
    return best.sum(axis=0), traced_path(previous, stop)


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("share", [1e-9, 1e-5, 1e-3, 0.03, 0.3, 2.0])
def test_sweep_finds_the_cheapest_partition(shape, weighting, share, forward):
    data = Sorted(shape, weighting)
    price = share * partition_cost(data.table, np.empty(0, dtype=np.int64))
    start, stop = (0, data.n) if forward else (data.n, 0)
    _, path = swept(data, price, start, stop, np.where(np.arange(data.n + 1) == start, 0, np.inf))
    edges = np.sort(path)
    assert (np.diff(edges) > 0).all()
    assert (path[-1], path[0]) == (start, stop)
    found = data.costs()[edges[:-1], edges[1:]].sum() + price * (len(path) - 1)
    least = reference.penalised_program(data.values, data.masses, price)
    assert found == pytest.approx(least, rel=1e-13, abs=data.n * data.floor)


@pytest.mark.parametrize("forward", [True, False])
def test_sweep_may_begin_at_any_position(shape, forward):
    data = Sorted(shape, "unweighted")
    rng = np.random.default_rng(1)
    total = partition_cost(data.table, np.empty(0, dtype=np.int64))
    costs = data.costs()
    for share in (1e-3, 0.1):
        begin = total * rng.random(data.n + 1)
        start, stop = (3, data.n) if forward else (data.n - 3, 0)
        found, path = swept(data, share * total, start, stop, begin)
        step = 1 if forward else -1
        places = np.arange(start, stop + step, step)
        best = begin.copy()
        for k, j in enumerate(places):
            ways = [best[i] + costs[min(i, j), max(i, j)] + share * total for i in places[:k]]
            best[j] = min([best[j], *ways])
        np.testing.assert_allclose(found[places], best[places], rtol=1e-13)
        edges = np.sort(path)
        cost = begin[path[-1]] + costs[edges[:-1], edges[1:]].sum()
        cost += share * total * (len(path) - 1)
        assert cost == pytest.approx(best[stop], rel=1e-13)
