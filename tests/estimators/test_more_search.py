"""Settings that buy a longer search for groups, and what the status says of it."""

import re

import numpy as np
import pytest

import clustruct as cs


@pytest.fixture(scope="module")
def problem():
    return cs.datasets.make_clustered_features(60, 30, 3, random_state=0)


def fitted(problem, **parameters):
    return cs.FeatureClusterRegressor(3, random_state=0, **parameters).fit(problem.X, problem.y)


def test_status_says_how_often_and_by_which_routes(problem):
    status = fitted(problem, solver="soft").status_
    told = re.search(r"\(found by (\d) of 5 routes, (\d+) times: ([a-z, ]+)\)", status.message)
    assert told
    assert len(told[3].split(", ")) == int(told[1])
    assert int(told[2]) >= 10
    assert "time_limit" not in status.message


@pytest.mark.parametrize("solver", ["auto", "soft"])
def test_time_limit_is_told(solver):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 40)), rng.standard_normal(20)
    model = cs.FeatureClusterRegressor(
        4, solver=solver, solver_options={"time_limit": 1e-9}, random_state=0
    ).fit(X, y)
    assert "stopped by time_limit" in model.status_.message
    assert np.unique(model.coef_).size <= 4


def test_time_that_is_not_needed_changes_nothing(problem):
    plain = fitted(problem, solver="soft", n_init=20)
    limited = fitted(problem, solver="soft", n_init=20, solver_options={"time_limit": 1e6})
    assert np.array_equal(plain.coef_, limited.coef_)
    assert plain.status_ == limited.status_


def test_time_limit_must_be_positive(problem):
    with pytest.raises(ValueError, match="time_limit"):
        fitted(problem, solver_options={"time_limit": 0.0})
