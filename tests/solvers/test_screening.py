"""Starts that are sought on a few columns or directions."""

import numpy as np
import pytest

from clustruct.datasets import make_experts
from clustruct.design import as_design
from clustruct.kernels.fits.weighted_fits import Follower
from clustruct.losses import SquaredLoss
from clustruct.objectives.linear import Response
from clustruct.objectives.samples.objective import SampleObjective
from clustruct.solvers.experts.sequential import _Follower, groups_in_turn
from clustruct.solvers.experts.starts import Screening, views


def screening_of(X, y):
    n = X.shape[0]
    response = Response(y[:, None], SquaredLoss(), 1, np.full(n, 1 / n), True)
    return Screening(SampleObjective(as_design(X), response, 1e-4), float(n))


def agreement(groups, truth):
    """Share of the samples in the group that most of their true group are in."""
    together = np.zeros((groups.max() + 1, truth.max() + 1))
    np.add.at(together, (groups, truth), 1)
    return together.max(axis=0).sum() / truth.size


def rotated(X, seed):
    square = np.random.default_rng(seed).standard_normal((X.shape[1], X.shape[1]))
    return X @ np.linalg.qr(square)[0]


def test_few_features_are_all_looked_at():
    assert views(5, 3, 1e6) == []


def test_views_take_turns_and_leave_features_out():
    looks = views(100, 3, 1000.0)
    assert looks[:4] == [("columns", 16), ("directions", 6), ("columns", 32), ("directions", 3)]
    for d in range(5, 60):
        assert all(size < d for _, size in views(d, 3, 1000.0))


def test_experts_are_sought_in_turn_if_there_are_enough_samples():
    assert views(100, 3, 1600.0) == [("in turn", 0), ("in turn", 1), *views(100, 3, 1000.0)]


def test_steps_by_blas_are_those_of_the_kernel():
    rng = np.random.default_rng(0)
    features, target = rng.standard_normal((60, 4)), rng.standard_normal((60, 1))
    shares, factors = rng.random(60), rng.uniform(1.0, 1.5, 60)
    experts = [np.full((4, 1), 0.1), np.full((4, 1), 0.1)]
    told = [
        kind(features, target, factors, 1e-8).follow(shares, expert, 1.0, 1e-3)
        for kind, expert in zip((_Follower, Follower), experts, strict=True)
    ]
    np.testing.assert_allclose(*experts, rtol=2e-3)  # the kernel leaves out weights below 1e-4
    np.testing.assert_allclose(*told, rtol=2e-3)


def unequal_experts(seed, shares, n, d):
    """Samples of experts with these shares, weights that all matter, and little noise."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(len(shares), n, p=shares)
    X, experts = rng.standard_normal((n, d)), rng.standard_normal((len(shares), d))
    return X, (X * experts[labels]).sum(axis=1) + 0.01 * rng.standard_normal(n), labels


@pytest.mark.parametrize("shares", [(0.7, 0.2, 0.1), (0.4, 0.3, 0.2, 0.1)])
@pytest.mark.parametrize("tilted", [0, 1])
def test_experts_of_unequal_size_are_found_in_turn(shares, tilted):
    X, y, labels = unequal_experts(0, shares, 600, 20)
    screening = screening_of(X, y)
    groups = screening.groups("in turn", tilted, len(shares), np.random.default_rng(0))
    assert agreement(groups, labels) > 0.95


def test_experts_in_turn_do_not_depend_on_order_or_repetition():
    X, y, _ = unequal_experts(1, (0.8, 0.2), 200, 4)
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 4, 200)
    rows = rng.permutation(np.repeat(np.arange(200), counts))
    problem = X, y[:, None], counts / counts.sum(), float(counts.sum()), 2
    repeated = X[rows], y[rows, None], np.full(rows.size, 1 / rows.size), float(rows.size), 2
    for seed in (None, 3):
        weighted, again = (
            groups_in_turn(*given, None if seed is None else np.random.default_rng(seed))
            for given in (problem, repeated)
        )
        assert (weighted[rows] == again).all()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_columns_are_found_among_twenty_times_as_many(seed):
    data = make_experts(1000, noise_share=0.95, random_state=seed)
    groups = screening_of(data.X, data.y).groups("columns", 16, 3, np.random.default_rng(0))
    assert agreement(groups, data.labels) > 0.8


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_directions_do_not_ask_for_axes(seed):
    data = make_experts(1000, noise_share=0.75, random_state=seed)
    X = rotated(data.X, seed)
    groups = screening_of(X, data.y).groups("directions", 6, 3, np.random.default_rng(0))
    assert agreement(groups, data.labels) > 0.55  # a third by chance


def test_constant_columns_and_answers_do_no_harm():
    X = np.random.default_rng(0).standard_normal((60, 40))
    X[:, ::4] = 1.0
    for view in (("columns", 16), ("in turn", 0), ("in turn", 1)):
        groups = screening_of(X, np.ones(60)).groups(*view, 2, np.random.default_rng(0))
        assert groups.shape == (60,)
        assert np.isfinite(groups).all()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_mixtures_in_few_directions_start_near_the_experts(seed):
    data = make_experts(3000, 30, 4, random_state=seed)
    X = rotated(data.X, seed)
    screening = screening_of(X, data.y)
    W, intercept = screening.mixed_experts(8, 4, np.random.default_rng(0))
    scores = np.einsum("nd,qdk->nq", X, W) + intercept[:, 0]
    groups = np.square(data.y[:, None] - scores).argmin(axis=1)
    assert agreement(groups, data.labels) > 0.6  # a quarter by chance
