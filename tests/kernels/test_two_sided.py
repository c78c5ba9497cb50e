"""Groups on both sides of a zero group, through a price or, where there is none, layers."""

import numpy as np
import pytest

from clustruct.kernels import COMPILED
from clustruct.kernels.cuts import two_sided
from clustruct.kernels.cuts.layers import best_zero_group
from clustruct.kernels.cuts.penalised import work_space
from clustruct.kernels.numbers.intervals import fast_cost_error, running_moments
from tests.kernels import reference
from tests.kernels.reference import cases

N = 40 if COMPILED else 14

SHAPES = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "cauchy": lambda rng, n: rng.standard_cauchy(n),
    "grid": lambda rng, n: np.arange(n) - n // 3 + 0.5,
    "integers": lambda rng, n: rng.integers(-9, 10, n) + 0.0,
    "clusters": lambda rng, n: rng.choice([-2.0, -1.0, 1.0, 3.0], n) + 0.05 * rng.random(n),
    "positive": lambda rng, n: rng.random(n),
    "negative": lambda rng, n: -rng.exponential(size=n),
}


@pytest.fixture(params=SHAPES)
def shape(request):
    return request.param


def problem(shape, n, seed):
    """Distinct values, one of them zero, and how often each occurs."""
    rng = np.random.default_rng([seed, n])
    values = np.append(SHAPES[shape](rng, n), 0.0)
    items, counts = np.unique(values / np.abs(values).max(), return_counts=True)
    return rng, items, counts.astype(float)


def cost_of(items, counts, gap, left, right):
    """Exact cost of the groups with these edges, after a look at the edges."""
    assert left[0] == 0
    assert right[-1] == len(items)
    assert (np.diff(left) > 0).all()
    assert (np.diff(right) > 0).all()
    assert items[left[-1] : right[0]].searchsorted(0.0) < right[0] - left[-1]
    assert counts[left[-1] : right[0]].sum() >= gap
    labels = np.full(len(items), -1)
    for first, edges in ((0, left), (len(left), right)):
        for group in range(len(edges) - 1):
            labels[edges[group] : edges[group + 1]] = first + group
    return float(reference.exact_cost_of_labels(items, counts, labels, zero=-1))


def solved(shape, seed):
    """Problems of a shape with the least cost of some numbers of groups."""
    rng, items, counts = problem(shape, N, seed)
    for gap in {1, *rng.integers(1, counts.sum(), 3).tolist()}:
        for n_groups in (1, 2, 3, 5, 8, 13):
            if n_groups < counts.sum() - gap:
                least = reference.two_sided_program(items, counts, n_groups, gap)
                yield items, counts, gap, n_groups, least


def test_chain_is_the_cheapest(shape):
    for seed in cases(6):
        for items, counts, gap, n_groups, least in solved(shape, seed):
            found = two_sided.best_two_sided(items, counts, float(gap), n_groups)
            assert sum(len(edges) - 1 for edges in found) <= n_groups
            assert cost_of(items, counts, gap, *found) <= least * (1 + 1e-12)


@pytest.mark.parametrize("excess", [1e-12, 0.01, 10.0])
@pytest.mark.parametrize("price", [1e-4, 0.01, 1.0])
def test_windows_hold_the_cheapest_chain(shape, price, excess):
    for seed in cases(3):
        for items, counts, gap, n_groups, least in solved(shape, seed):
            sides = with_work_space(items, counts, gap)
            found = sides._by_layers(
                price, n_groups, least * (1 + excess) + 1e-12, sides._all_zero()
            )
            assert sum(len(edges) - 1 for edges in found) <= n_groups
            assert cost_of(items, counts, gap, *found) <= least * (1 + 1e-12) + 1e-30


def with_work_space(items, counts, gap):
    sides = two_sided._TwoSided(items, counts, float(gap))
    sides.inward, sides.previous, *sides.queue = work_space(len(items))
    return sides


def test_there_are_numbers_of_groups_that_no_price_gives(monkeypatch):
    passed_over = []
    between = two_sided._TwoSided._between

    def recorded(self, few, many, price, n_groups):
        passed_over.append((few.count, n_groups, many.count))
        return between(self, few, many, price, n_groups)

    monkeypatch.setattr(two_sided._TwoSided, "_between", recorded)
    for shape in ("integers", "normal"):
        for seed in range(20):
            rng, items, counts = problem(shape, 40, seed)
            gap = int(rng.integers(20, 36))
            least = reference.two_sided_program(items, counts, 3, gap)
            found = two_sided.best_two_sided(items, counts, float(gap), 3)
            assert cost_of(items, counts, gap, *found) <= least * (1 + 1e-12)
    assert passed_over
    assert all(few < n_groups < many for few, n_groups, many in passed_over)


def test_few_positions_are_left_of_thousands(monkeypatch):
    windows = two_sided._windows
    sizes = []

    def recorded(*args):
        low, high = windows(*args)
        sizes.append(float(np.maximum(high - low + 1, 0).mean()))
        return low, high

    monkeypatch.setattr(two_sided, "_windows", recorded)
    for seed in cases(3):
        _, items, counts = problem("normal", 3000 if COMPILED else 400, seed)
        gap, n_groups = float(len(items) // 2), 30 if COMPILED else 10
        sides = two_sided._TwoSided(items, counts, gap)
        best = sides._trial([np.asarray(edges) for edges in sides.best_edges(n_groups)])
        price, _ = sides._guess(best.path, n_groups)
        found = sides._by_layers(price, n_groups, best.cost * (1 + 1e-12), sides._all_zero())
        assert cost_of(items, counts, gap, *found) <= best.cost * (1 + 1e-12)
    assert max(sizes) < n_groups / 4


def test_layers_without_windows_are_the_dynamic_program(shape):
    for seed in cases(6):
        rng, items, counts = problem(shape, N, seed)
        n, middle = len(items), int(np.searchsorted(items, 0.0))
        table = running_moments(items, counts, 0.0, 1)
        noise = fast_cost_error(items, counts, 0.0, table, 1)
        for n_groups in (1, 2, 5):
            gap = int(rng.integers(1, counts.sum()))
            low = np.zeros(n + 1, dtype=np.int32)
            cost, begin, end, n_before = best_zero_group(
                table, np.arange(n + 1), low, low + n_groups, middle + 1, gap, n_groups, noise
            )
            least = reference.two_sided_program(items, counts, n_groups, gap)
            assert cost == pytest.approx(least, rel=1e-12, abs=1e-30)
            assert begin <= middle < end
            assert 0 <= n_before <= n_groups


def test_no_chain_within_the_windows():
    items = np.array([-1.0, -0.5, 0.0, 0.25, 1.0])
    table = running_moments(items, np.empty(0), 0.0, 1)
    low = np.full(6, 2, dtype=np.int32)
    cost, *_ = best_zero_group(table, np.arange(6), low, low, 3, 1.0, 1, 1e-15)
    assert cost == np.inf
