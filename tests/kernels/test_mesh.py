"""Meshes: a bound from below for every partition, and proofs that the slower searches confirm."""

import numpy as np
import pytest

from clustruct.kernels import COMPILED
from clustruct.kernels.kmeans.kmeans1d import ldexp, resolve_groups
from clustruct.kernels.kmeans.vectors import cluster_vector
from clustruct.kernels.prices import least_costs, mesh, mesh_proof
from tests.kernels.reference import cases

DRAWS = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "even": lambda rng, n: rng.random(n),
    "skew": lambda rng, n: rng.exponential(size=n),
    "heavy tails": lambda rng, n: rng.standard_t(3, size=n),
    "far from zero": lambda rng, n: 1e6 + rng.standard_normal(n),
    "clumps": lambda rng, n: rng.normal(10.0 * rng.integers(0, 9, n), 1.0),
    "one clump is tight": lambda rng, n: np.where(
        rng.random(n) < 0.5, rng.standard_normal(n), rng.normal(50.0, 1e-3, n)
    ),
}
WEIGHTS = {
    "none": lambda rng, n: None,
    "even": lambda rng, n: 0.1 + rng.random(n),
    "decades": lambda rng, n: np.exp(2.0 * rng.standard_normal(n)),
    "some zero": lambda rng, n: rng.random(n) * (rng.random(n) < 0.7),
}


@pytest.mark.skipif(not COMPILED, reason="many values: too slow uncompiled")
@pytest.mark.parametrize("weighting", WEIGHTS)
@pytest.mark.parametrize("shape", DRAWS)
def test_partitions_proven_on_a_mesh_are_those_of_the_slower_searches(shape, weighting):
    n_undecided = 0
    for seed in cases(8):
        rng = np.random.default_rng([seed, 51])
        n = int(rng.integers(500, 6000))
        n_clusters = int(rng.integers(2, int((n / 12) ** 0.5)))
        values, weights = DRAWS[shape](rng, n), WEIGHTS[weighting](rng, n)
        found = cluster_vector(values, weights, n_clusters)
        if found is None:
            n_undecided += 1
            continue
        labels, centers, _, inertia = resolve_groups(values, weights, n_clusters)
        np.testing.assert_array_equal(found[0], labels)
        np.testing.assert_array_equal(found[1], centers)
        assert ldexp(*found[3:]) == inertia
    assert n_undecided <= 1


@pytest.mark.skipif(not COMPILED, reason="many values: too slow uncompiled")
def test_long_vectors_are_proven_where_comparing_all_positions_leaves_doubts():
    values = np.random.default_rng(0).standard_normal(100_000)
    found = cluster_vector(values, None, 40)
    np.testing.assert_array_equal(found[0], resolve_groups(values, None, 40)[0])


def group_cost(values, weights):
    return weights @ (values - np.average(values, weights=weights)) ** 2


def priced_minimum(values, weights, positions, price, discount):
    """Least costs of partitions that end at each of some positions, by all predecessors."""
    best = np.zeros(len(positions))
    for j in range(1, len(positions)):
        totals = []
        for i in range(j):
            group = slice(positions[i], positions[j])
            totals.append(best[i] + group_cost(values[group], weights[group]))
        best[j] = min(totals) + price - discount[j]
    return best


class Problem:
    """Values and a partition of them, good or bad, with a mesh about it at any price."""

    def __init__(self, shape, weighted, seed):
        self.rng = rng = np.random.default_rng([seed, 52])
        n, n_groups = 60, int(rng.integers(2, 7))
        values = np.sort(DRAWS[shape](rng, n))
        values /= 1.01 * np.abs(values).max()
        weights = np.exp(rng.standard_normal(n)) if weighted else np.ones(n)
        origin = float(rng.choice([0.0, values[n // 2]]))
        self.n, self.n_groups, self.values, self.weights = n, n_groups, values, weights
        sums = [np.cumsum(weights * (values - origin) ** power) for power in range(3)]
        self.moments = [np.concatenate([[0.0], one]) for one in sums]
        self.sorted = values, origin, *self.moments[:2]
        self.inner = np.sort(rng.choice(np.arange(1, n), n_groups - 1, replace=False))
        path = np.concatenate([[0], self.inner, [n]])
        self.price = float(np.exp(rng.uniform(-6.0, 1.0)) * np.var(values) * weights.sum())
        self.price /= n_groups
        room = mesh.knot_room(n_groups)
        self.knots = np.zeros((2, room), dtype=np.int32)
        self.spreads = np.zeros(room)
        self.places, self.discount = np.zeros(n + 2, dtype=np.int32), np.zeros(n + 2)
        self.cells = np.zeros(2 * n + 4, dtype=np.int32)
        grade = float(rng.uniform(0.2, 0.9))
        knot_price = self.price * float(rng.uniform(1.0, 1.2))
        mesh.lay_knots(*self.sorted, path, n_groups, knot_price, *self.knots, self.spreads)
        self.last = mesh.lay_mesh(
            *self.sorted, path, n_groups, self.price, grade, n, self.knots[0], self.spreads,
            self.places, self.discount, self.cells,
        )  # fmt: skip

    def least(self, places, discount):
        return priced_minimum(self.values, self.weights, places, self.price, discount)

    def bound(self):
        return self.least(self.places[: self.last + 1], self.discount)[-1]

    def least_of_all(self):
        return self.least(np.arange(self.n + 1), np.zeros(self.n + 1))

    def best_boundaries(self):
        """Inner boundaries of the best partition at the price."""
        best, found, t = self.least_of_all(), [], self.n
        while t > 0:
            values, weights = self.values[:t], self.weights[:t]
            totals = [best[i] + group_cost(values[i:], weights[i:]) for i in range(t)]
            t = int(np.argmin(totals))
            found.append(t)
        return found[:-1]

    def keep(self, limit):
        """The cells that the search keeps, as their ends."""
        last, stride = self.last, self.last + 8
        moments = np.zeros(3 * stride)
        before, after, leads, costs = np.zeros((4, self.n + 8))
        previous, kept = np.zeros(self.n + 8, dtype=np.int32), np.zeros_like(self.cells)
        mesh_proof.gather(*self.moments, self.places, last, moments)
        discount = self.discount.copy()
        least_costs.least_costs(
            moments, moments[stride:], moments[2 * stride :], last, self.price, 1e-14,
            discount[: last + 1], before, previous, leads, costs,
        )  # fmt: skip
        count = mesh_proof._keep_cells(
            moments, last, self.price, 1e-14, discount, before, previous, leads, costs, after,
            limit, self.cells, kept,
        )  # fmt: skip
        return kept, count


meshes = pytest.mark.skipif(COMPILED, reason="calls functions without a Python interface")


@meshes
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", ["normal", "skew", "heavy tails", "clumps"])
def test_no_partition_costs_less_than_the_mesh_says(shape, weighted):
    n_coarse = 0
    for seed in range(25):
        problem = Problem(shape, weighted, seed)
        places, last = problem.places, problem.last
        assert places[0] == 0
        assert places[last] == problem.n
        assert (np.diff(places[: last + 1]) > 0).all()
        assert set(problem.inner) <= set(places[: last + 1][problem.discount[: last + 1] == 0.0])
        assert problem.bound() <= problem.least_of_all()[-1] * (1.0 + 1e-12)
        n_coarse += last < problem.n
    assert n_coarse > 10  # or nothing was tested


@meshes
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", ["normal", "skew", "heavy tails", "clumps"])
def test_cells_left_out_hold_no_boundary_of_a_better_partition(shape, weighted):
    n_left_out = n_finer = 0
    for seed in range(25):
        problem = Problem(shape, weighted, seed)
        least = problem.least_of_all()[-1]
        limit = least * (1.0 + problem.rng.choice([1e-9, 0.01, 0.3]))
        kept, count = problem.keep(limit)
        held = np.zeros(problem.n + 1, dtype=bool)
        for low, high in kept[: 2 * count].reshape(-1, 2):
            held[low:high] = True
        assert held[problem.best_boundaries()].all()
        n_left_out += not held[1:-1].all()
        if count == 0:
            continue
        coarse, problem.last = problem.last, mesh.refine_mesh(
            *problem.sorted, problem.n, problem.knots[0], problem.spreads, kept, count,
            problem.places, problem.discount, problem.cells,
        )  # fmt: skip
        divided = problem.cells[2 : 2 * problem.last].reshape(-1, 2)
        assert set(np.flatnonzero(held)) == {t for cell in divided for t in range(*cell)}
        places = problem.places[1 : problem.last]
        assert ((divided[:, 0] <= places) & (places < divided[:, 1])).all()
        assert problem.bound() <= least * (1.0 + 1e-12)
        n_finer += problem.last > coarse or not problem.discount[: problem.last].any()
    assert n_left_out > 5
    assert n_finer > 5
