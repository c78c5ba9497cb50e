"""Data that the tests of estimators share."""

import numpy as np
import pytest

import clustruct as cs


@pytest.fixture
def regression():
    """Features in three groups: matrix, answers, and the problem with its truth."""
    planted = cs.datasets.make_clustered_features(120, 12, 3, noise=0.3, random_state=0)
    return planted.X, planted.y, planted


@pytest.fixture
def classes():
    """The same with three classes of names."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 8))
    scores = X @ rng.standard_normal((2, 3))[np.arange(8) % 2] + rng.gumbel(size=(150, 3))
    return X, np.array(["ash", "oak", "yew"])[scores.argmax(axis=1)]
