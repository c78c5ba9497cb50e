"""Projections against brute force over all groupings."""

from itertools import product

import numpy as np
import pytest

from clustruct.grouping.constraints import (
    BlockClustered,
    Clustered,
    Free,
    ScaledClustered,
    SparseClustered,
    cheapest_shares,
)
from tests import brute_force as bf

BLOCKS = (
    [0, 0, 0, 0, 1, 1, 1],
    [0, 1, 0, 1, 0, 1, 2],
    [0, 0, 0, -1, 1, 1, -1],
    [-1, -1, 0, 0, 0, 0, -1],
    [0, 1, 2, 3, 4, 4, 4],
)


def constraints(d, seed):
    """Constraints on ``d`` rows, each with all groupings that it allows."""
    rng = np.random.default_rng(seed)
    q, k = int(rng.integers(1, 4)), int(rng.integers(1, d + 1))
    blocks = np.array(BLOCKS[seed % len(BLOCKS)][:d])
    n_blocks = int(blocks.max()) + 1
    total = n_blocks + int(rng.integers(0, 3))
    each = rng.integers(1, 4, n_blocks)
    yield Clustered(q), bf.groupings(d, q)
    yield SparseClustered(q, k), bf.sparse_groupings(d, q, k)
    yield SparseClustered(None, k), bf.sparse_groupings(d, None, k)
    yield BlockClustered(blocks, total), list(bf.block_groupings(blocks, total))
    yield (
        BlockClustered(blocks, each.astype(np.intp)),
        list(bf.block_groupings(blocks, dict(enumerate(each.tolist())))),
    )
    yield Free(), [tuple(range(d))]


def draw(rng, d, n_columns, shape):
    W = rng.standard_normal((d, n_columns))
    if shape == "ties":
        W = np.round(2 * W) / 2
    elif shape == "shifted":
        W += 3.0
    return W


def check_consistent(nearest, W):
    """A projection agrees with itself, whatever was projected."""
    padded = np.vstack([nearest.centers, np.zeros((1, W.shape[1]))])
    np.testing.assert_array_equal(nearest.point, padded[nearest.labels])
    assert nearest.labels.shape == (len(W),)
    used = np.unique(nearest.labels[nearest.labels >= 0])
    assert used.tolist() == list(range(len(nearest.centers)))
    assert nearest.sq_distance == pytest.approx(np.square(W - nearest.point).sum(), abs=1e-12)


@pytest.mark.parametrize("shape", ["normal", "ties", "shifted"])
@pytest.mark.parametrize("seed", range(10))
def test_one_column_is_projected_exactly(seed, shape):
    rng = np.random.default_rng(seed)
    for constraint, choices in constraints(7, seed):
        W = draw(rng, 7, 1, shape)
        nearest = constraint.project(W)
        check_consistent(nearest, W)
        assert nearest.exact
        assert nearest.sq_distance == pytest.approx(bf.nearest(W, choices), abs=1e-12)
        # What the best subspace holds is the rest of the squared length.
        held = constraint.explained(W)
        assert held == pytest.approx(bf.most_explained(W, choices), rel=1e-12, abs=1e-12)


def as_grouping(labels):
    """The same groups, numbered as they first appear, and -1 kept."""
    numbers = {-1: -1}
    for label in labels:
        numbers.setdefault(label, len(numbers) - 1)
    return tuple(numbers[label] for label in labels)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n_columns", [2, 3])
def test_several_columns_are_feasible_and_bounded(seed, n_columns):
    rng = np.random.default_rng(seed)
    for constraint, choices in constraints(6, seed):
        W = draw(rng, 6, n_columns, ("normal", "shifted")[seed % 2])
        nearest = constraint.project(W)
        check_consistent(nearest, W)
        # Feasible: merged groups allow for it, and nothing is nearer than the nearest.
        least = bf.nearest(W, choices)
        assert nearest.sq_distance >= least - 1e-12
        if nearest.exact:
            assert nearest.sq_distance == pytest.approx(least, abs=1e-12)
        allowed = {as_grouping(labels) for labels in choices}
        assert as_grouping(nearest.labels.tolist()) in allowed or any(
            np.allclose(bf.project(nearest.point, labels), nearest.point) for labels in allowed
        )
        held = bf.most_explained(W, choices)
        assert constraint.explained(W) >= held - 1e-12
        assert constraint.explained(W) <= np.square(W).sum() + 1e-12
        if isinstance(constraint, Clustered):  # ten starts find the best of so few
            assert nearest.sq_distance == pytest.approx(least, abs=1e-9)


@pytest.mark.parametrize("n_columns", [1, 2])
@pytest.mark.parametrize("seed", range(5))
def test_projecting_twice_changes_nothing(seed, n_columns):
    rng = np.random.default_rng(seed)
    for constraint, _ in constraints(7, seed):
        once = constraint.project(draw(rng, 7, n_columns, "normal")).point
        twice = constraint.project(once)
        np.testing.assert_allclose(twice.point, once, rtol=0, atol=1e-14)
        assert twice.sq_distance <= 1e-25
        # A feasible point is held by its own subspace altogether.
        assert constraint.explained(once) == pytest.approx(np.square(once).sum(), rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_sets_hold_all_multiples_of_their_points(seed):
    rng = np.random.default_rng(seed)
    for constraint, _ in constraints(7, seed):
        W = draw(rng, 7, 1, "normal")
        for factor in (-2.0, 1e-150, 1e100):
            scaled = constraint.project(factor * W)
            np.testing.assert_allclose(
                scaled.point, factor * constraint.project(W).point, rtol=1e-12
            )


def test_zero_rows_and_a_single_row():
    for d in (1, 4):
        blocks = np.zeros(d, dtype=np.intp)
        for constraint in (Clustered(3), SparseClustered(2, 1), BlockClustered(blocks, 3), Free()):
            for W in (np.zeros((d, 1)), np.zeros((d, 2))):
                nearest = constraint.project(W)
                assert not nearest.point.any()
                assert nearest.sq_distance == 0.0
                assert constraint.explained(W) == 0.0


def test_rows_left_alone_stay():
    rng = np.random.default_rng(0)
    blocks = np.array([-1, 0, 0, 0, -1, 1, 1])
    for n_columns in (1, 2):
        W = rng.standard_normal((7, n_columns))
        nearest = BlockClustered(blocks, 2).project(W)
        np.testing.assert_array_equal(nearest.point[[0, 4]], W[[0, 4]])
        np.testing.assert_allclose(
            nearest.point[1:4], np.tile(W[1:4].mean(axis=0), (3, 1)), rtol=1e-14
        )
        assert len(nearest.centers) == 4
        alone = BlockClustered(np.full(7, -1), 1).project(W)
        np.testing.assert_array_equal(alone.point, W)
        assert alone.exact


def test_equal_values_of_different_blocks_are_not_merged():
    nearest = BlockClustered(np.array([0, 0, 1, 1, -1]), 2).project(np.ones((5, 1)))
    np.testing.assert_array_equal(nearest.labels, [1, 1, 2, 2, 0])


def test_groups_are_shared_out_where_they_help_most():
    W = np.array([0.0, 0.1, 0.2, 0.0, 5.0, 9.0])[:, None]
    blocks = np.array([0, 0, 0, 1, 1, 1])
    for total, expected in ((2, [1, 1]), (3, [1, 2]), (4, [1, 3]), (5, [2, 3]), (9, [3, 3])):
        assert BlockClustered(blocks, total).share_out(W).tolist() == expected


@pytest.mark.parametrize("seed", range(40))
def test_cheapest_shares_against_enumeration(seed):
    rng = np.random.default_rng(seed)
    costs = [
        np.sort(rng.random(rng.integers(1, 5)))[:: rng.choice([-1, 1])]
        for _ in range(rng.integers(1, 5))
    ]
    total = len(costs) + int(rng.integers(0, 5))
    shares = cheapest_shares(costs, total)
    assert shares.sum() <= total
    found = sum(block[q - 1] for block, q in zip(costs, shares, strict=True))
    least = min(
        sum(block[q - 1] for block, q in zip(costs, chosen, strict=True))
        for chosen in product(*[range(1, block.size + 1) for block in costs])
        if sum(chosen) <= total
    )
    assert found == pytest.approx(least, rel=1e-14)


def test_sparse_set_may_have_zero_beside_its_groups():
    W = np.array([1.0, 1.1, -0.1, 0.1, 5.0])[:, None]
    for n_nonzero in (3, 4, 5):
        nearest = SparseClustered(2, n_nonzero).project(W)
        assert nearest.sq_distance == pytest.approx(0.025)
        np.testing.assert_allclose(nearest.point[:, 0], [1.05, 1.05, 0, 0, 5], atol=0.1)


def test_hard_thresholding_keeps_the_largest():
    W = np.array([[3.0], [0.5], [-4.0], [0.0], [0.5]])
    nearest = SparseClustered(None, 2).project(W)
    np.testing.assert_array_equal(nearest.point[:, 0], [3.0, 0.0, -4.0, 0.0, 0.0])
    # Equal weights stay groups of their own, so that a refit may part them.
    both = SparseClustered(None, 4).project(W)
    assert np.unique(both.labels[both.labels >= 0]).size == 4
    # A zero is never kept in the place of another.
    assert SparseClustered(None, 5).project(W).labels[3] == -1


@pytest.mark.parametrize("seed", range(4))
def test_explained_bounds_every_subspace_for_many_columns(seed):
    rng = np.random.default_rng(100 + seed)
    P = rng.standard_normal((30, 3)) * [10.0, 1.0, 0.1]
    for constraint in (
        Clustered(4),
        SparseClustered(3, 10),
        SparseClustered(None, 10),
        BlockClustered(np.repeat([0, 1, -1], 10), 5),
    ):
        bound = constraint.explained(P)
        held = float(np.square(P).sum()) - constraint.project(P).sq_distance
        assert held <= bound * (1 + 1e-12)
        assert bound <= np.square(P).sum() * (1 + 1e-12)


def test_groups_may_get_any_values():
    """What `refits` promises: any values for the groups of a projection are in the set."""
    rng = np.random.default_rng(0)
    for seed in range(20):
        sets = [constraint for constraint, _ in constraints(7, seed)]
        scales = rng.uniform(0.5, 2.0, 7)
        for constraint in (*sets, Free(), ScaledClustered(2, scales)):
            assert constraint.refits
            nearest = constraint.project(rng.standard_normal((7, 1)))
            values = np.append(rng.standard_normal(nearest.centers.shape[0]), 0.0)
            W = values[nearest.labels][:, None]
            if isinstance(constraint, ScaledClustered):
                W = scales[:, None] * W
            assert constraint.project(W).sq_distance <= 1e-24
