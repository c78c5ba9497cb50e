"""Meshes: a bound from below for every partition, and proofs that the slower searches confirm."""

import numpy as np
import pytest

from clustruct.kernels import COMPILED
from clustruct.kernels.cuts import mesh
from clustruct.kernels.kmeans.kmeans1d import ldexp, resolve_groups
from clustruct.kernels.kmeans.vectors import cluster_vector
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
        n = int(rng.integers(2048, 6000))
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


def priced_minimum(values, weights, positions, price, discount):
    """The least cost of a partition with boundaries at some positions, by all predecessors."""
    best = np.zeros(len(positions))
    for j in range(1, len(positions)):
        totals = []
        for i in range(j):
            x = values[positions[i] : positions[j]]
            w = weights[positions[i] : positions[j]]
            totals.append(best[i] + w @ (x - np.average(x, weights=w)) ** 2)
        best[j] = min(totals) + price - discount[j]
    return best[-1]


@pytest.mark.skipif(COMPILED, reason="calls a function without a Python interface")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", ["normal", "skew", "heavy tails", "clumps"])
def test_no_partition_costs_less_than_the_mesh_says(shape, weighted):
    n_coarse = 0
    for seed in range(25):
        rng = np.random.default_rng([seed, 52])
        n, n_groups = 60, int(rng.integers(2, 7))
        values = np.sort(DRAWS[shape](rng, n))
        values /= 1.01 * np.abs(values).max()
        weights = np.exp(rng.standard_normal(n)) if weighted else np.ones(n)
        origin = float(rng.choice([0.0, values[n // 2]]))
        mass = np.concatenate([[0.0], np.cumsum(weights)])
        first = np.concatenate([[0.0], np.cumsum(weights * (values - origin))])
        # About any partition, good or bad, at any price.
        inner = np.sort(rng.choice(np.arange(1, n), n_groups - 1, replace=False))
        path = np.concatenate([[0], inner, [n]])
        price = float(np.exp(rng.uniform(-6.0, 1.0)) * np.var(values) * mass[-1] / n_groups)
        room = mesh.knot_room(n_groups)
        knots, ends = np.zeros(room, dtype=np.int32), np.zeros(room, dtype=np.int32)
        places, discount = np.zeros(n + 2, dtype=np.int32), np.zeros(n + 2)
        grade = float(rng.uniform(0.2, 0.9))
        last = mesh.lay_mesh(
            values, origin, mass, first, path, n_groups, price, grade, n, knots, ends,
            np.zeros(room), places, discount,
        )  # fmt: skip
        assert places[0] == 0
        assert places[last] == n
        assert (np.diff(places[: last + 1]) > 0).all()
        assert set(inner) <= set(places[: last + 1][discount[: last + 1] == 0.0])
        bound = priced_minimum(values, weights, places[: last + 1], price, discount)
        least = priced_minimum(values, weights, np.arange(n + 1), price, np.zeros(n + 1))
        assert bound <= least * (1.0 + 1e-12)
        n_coarse += last < n
    assert n_coarse > 10  # or nothing was tested
