"""Starts that are sought on a few columns or directions."""

import numpy as np
import pytest

from clustruct.datasets import make_experts
from clustruct.design import as_design
from clustruct.losses import SquaredLoss
from clustruct.objectives.linear import Response
from clustruct.objectives.samples.objective import SampleObjective
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
    assert views(5, 3) == []


def test_views_take_turns_and_leave_features_out():
    looks = views(100, 3)
    assert looks[:4] == [("columns", 16), ("directions", 6), ("columns", 32), ("directions", 3)]
    for d in range(5, 60):
        assert all(size < d for _, size in views(d, 3))


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
    groups = screening_of(X, np.ones(60)).groups("columns", 16, 2, np.random.default_rng(0))
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
