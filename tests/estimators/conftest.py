"""Data that the tests of estimators share."""

import numpy as np
import pytest
import sklearn

import clustruct as cs
from clustruct.arrays import to_host


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


@pytest.fixture(params=("array_api_strict", "torch"))
def library(request, monkeypatch):
    """A library of arrays, which scikit-learn is told to accept."""
    module = pytest.importorskip(request.param)
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with sklearn.config_context(array_api_dispatch=True):
        yield module


@pytest.fixture
def watch_moves(monkeypatch):
    """Returns the list, to be filled, of how many entries some modules bring to the host."""

    def watch(*modules):
        moved = []

        def watched(x):
            if not isinstance(x, np.ndarray):  # which is there already
                moved.append(int(np.prod(x.shape, dtype=int)))
            return to_host(x)

        for module in modules:
            monkeypatch.setattr(f"{module}.to_host", watched)
        return moved

    return watch


@pytest.fixture(scope="session")
def shuffled_tasks():
    """Makes rows of tasks in groups, in any order, with an offset; ids are strings."""

    def make(n, d, n_tasks, n_groups):
        planted = cs.datasets.make_clustered_tasks(
            n // n_tasks, d, n_tasks, n_groups, shared=False, intercept=1.0, random_state=0
        )
        X, y, tasks = planted.rows()
        order = np.random.default_rng(0).permutation(n)
        return X[order] + 2.0, y[order], np.array([f"task {t}" for t in tasks])[order]

    return make
