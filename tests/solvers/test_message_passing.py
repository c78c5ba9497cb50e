"""Message passing finds planted partitions, and keeps to what is permitted."""

import numpy as np
import pytest

from clustruct.datasets import make_clustered_features
from clustruct.solvers.search.message_passing import MessagePassing
from tests.solvers.problems import permitted, planted, quadratic, weights_of


def test_it_often_lands_on_the_planted_partition():
    problem, weights, _ = planted(1, n=100)
    labels = MessagePassing(problem).draw(64, np.random.default_rng(0))
    problem.descend(labels)
    errors = [np.linalg.norm(weights_of(problem, row)[:, 0] - weights) for row in labels]
    assert np.mean(np.array(errors) < 1.0) > 0.1


def test_levels_are_learned_slowly():
    """Where the first messages replace the levels, at most three of these starts succeed."""
    drawn = make_clustered_features(60, random_state=10018)
    problem = quadratic(drawn.X, drawn.y, 5)
    labels = MessagePassing(problem).draw(128, np.random.default_rng(0))
    problem.descend(labels)
    errors = [np.linalg.norm(weights_of(problem, row)[:, 0] - drawn.coef) for row in labels]
    assert np.count_nonzero(np.array(errors) < 1.0) >= 5


def test_several_outputs_tell_more():
    rng = np.random.default_rng(0)
    levels, labels = rng.standard_normal((5, 3)), rng.integers(0, 5, 60)
    x = rng.standard_normal((40, 60))
    y = x @ levels[labels] + 0.05 * rng.standard_normal((40, 3))
    problem = quadratic(x, y, 5)
    found = MessagePassing(problem).draw(64, rng)
    problem.descend(found)
    errors = [np.abs(weights_of(problem, row) - levels[labels]).max() for row in found]
    assert min(errors) < 0.1


def test_mean_weights_far_from_zero():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 60)
    x = rng.standard_normal((60, 60))
    weights = np.array([19.0, 20.0, 21.0])[labels]
    problem = quadratic(x, x @ weights + 0.1 * rng.standard_normal(60), 3)
    found = MessagePassing(problem).draw(32, rng)
    problem.descend(found)
    assert min(np.abs(weights_of(problem, row)[:, 0] - weights).max() for row in found) < 0.2


def test_crossing_keeps_what_partitions_agree_on():
    rng = np.random.default_rng(0)
    problem, weights, _ = planted(1, n=75)
    # A third of the weights is wrong in each of three parents, not the same third.
    wrong = rng.random((16, 3, 100)) < 0.3
    parents = np.where(wrong, rng.choice(weights, (16, 3, 100)), weights)[..., None]
    levels = np.broadcast_to(np.unique(weights)[:, None], (16, 5, 1))
    labels = MessagePassing(problem).cross(parents, levels, rng)
    problem.descend(labels)
    errors = [np.linalg.norm(weights_of(problem, row)[:, 0] - weights) for row in labels]
    assert np.mean(np.array(errors) < 1.0) > 0.6


@pytest.mark.parametrize("n_nonzero", [None, 7])
def test_labels_of_crossed_partitions_are_permitted(n_nonzero):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((10, 12)), rng.standard_normal((10, 2))
    first, last = np.repeat([0, 3, 4], 4), np.repeat([3, 4, 8], 4)
    problem = quadratic(x, y, 8, first=first, last=last, n_nonzero=n_nonzero)
    parents, levels = rng.standard_normal((20, 2, 12, 2)), rng.standard_normal((20, 8, 2))
    parents[:5, 1] = parents[:5, 0]  # without any variance
    labels = MessagePassing(problem).cross(parents, levels, rng)
    assert all(permitted(problem, row) for row in labels)


@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("n_nonzero", [None, 0, 1, 7, 12, 99])
def test_labels_are_permitted(n_outputs, n_nonzero):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((10, 12)), rng.standard_normal((10, n_outputs))
    first, last = np.repeat([0, 3, 4], 4), np.repeat([3, 4, 8], 4)
    problem = quadratic(x, y, 8, first=first, last=last, n_nonzero=n_nonzero)
    labels = MessagePassing(problem).draw(40, rng)
    assert labels.shape == (40, 12)
    assert all(permitted(problem, row) for row in labels)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (np.ones((4, 3)), np.arange(4.0)),
        (np.eye(4)[:, :3] * [1e-8, 1.0, 1e8], np.arange(4.0)),
        (np.array([[1.0, 0.0, 0.0]]), np.array([2.0])),
        (1e-60 * np.eye(3), 1e60 * np.arange(3.0)),
        (np.eye(5), np.ones(5)),
        (np.ones((6, 1)), np.arange(6.0)),
    ],
    ids=["copies", "scales", "one sample", "extreme units", "no noise", "one feature"],
)
@pytest.mark.parametrize("n_clusters", [1, 2, 9])
def test_degenerate_data(x, y, n_clusters):
    problem = quadratic(x, y, n_clusters)
    labels = MessagePassing(problem).draw(20, np.random.default_rng(0))
    assert all(permitted(problem, row) for row in labels)
