"""Tests of differences between groups of tasks: their level, their power, and what they rest on."""

import numpy as np
import pytest
from scipy.stats import kstest, ttest_ind

import clustruct as cs
from clustruct.trust.given import response_of
from clustruct.trust.told import Told


def planted(seed, gap=0.0, n_rows=24, n_tasks=8):
    """Tasks of unequal noise, the first half apart from the others by `gap` standard errors.

    That of one weight of one task, on all its rows.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_tasks * n_rows, 3))
    tasks = np.repeat(np.arange(n_tasks), n_rows)
    noise = np.exp(rng.uniform(np.log(0.3), np.log(3.0), n_tasks))
    apart = gap * np.sqrt(np.mean(noise**2) / n_rows)
    weights = np.tile([1.0, -0.5, 0.2], (n_tasks, 1))
    weights[:, 0] += np.where(np.arange(n_tasks) < n_tasks // 2, 0.5, -0.5) * apart
    y = (X * weights[tasks]).sum(axis=1) + noise[tasks] * rng.standard_normal(tasks.size)
    return X, y, tasks


def p_values(n_problems, gap=0.0, first=0):
    found = []
    for seed in range(first, first + n_problems):
        X, y, tasks = planted(seed, gap)
        model = cs.TaskClusterRegressor(2).fit(X, y, tasks=tasks)
        (test,) = cs.compare_groups(model, X, y, tasks=tasks, random_state=seed)
        found.append(test.p_value)
    return np.array(found)


def test_p_values_are_uniform_where_nothing_differs():
    found = p_values(40)
    assert kstest(found, "uniform").pvalue > 0.01
    # A plain test on the rows that the groups were found on calls nearly all of them different.
    assert (found < 0.05).mean() < 0.15


@pytest.mark.slow
def test_p_values_are_uniform_over_many_problems():
    found = p_values(2000)
    assert kstest(found, "uniform").pvalue > 0.01
    assert (found < 0.01).mean() < 0.02


def test_power_where_groups_are_apart():
    assert (p_values(8, gap=8.0) < 0.05).mean() > 0.8


def test_a_group_is_told_by_rows_that_did_not_find_it(monkeypatch):
    """Other targets in the second half change the test, and not the groups."""
    X, y, tasks = planted(0, gap=20.0)
    model = cs.TaskClusterRegressor(2).fit(X, y, tasks=tasks)
    seen = []
    of = cs.TaskClusterRegressor.fit

    def fit(self, *args, **named):
        seen.append(np.flatnonzero(named["sample_weight"]))
        return of(self, *args, **named)

    with monkeypatch.context() as patched:
        patched.setattr(cs.TaskClusterRegressor, "fit", fit)
        (test,) = cs.compare_groups(model, X, y, tasks=tasks, random_state=0)
    (finding,) = seen
    assert np.bincount(tasks[finding]).tolist() == [12] * 8
    other = y.copy()
    telling = np.setdiff1d(np.arange(y.size), finding)
    other[telling] = np.random.default_rng(1).standard_normal(telling.size)
    (nothing,) = cs.compare_groups(model, X, other, tasks=tasks, random_state=0)
    assert nothing.names == test.names
    assert test.p_value < 1e-6
    assert nothing.p_value > 1e-3
    # The difference is the root mean square of that of the scores.
    true = np.abs(np.diff([y[tasks < 4] @ X[tasks < 4], y[tasks >= 4] @ X[tasks >= 4]], axis=0))
    assert test.difference == pytest.approx(true[0, 0] / 96, abs=4 * test.std_error)


def test_the_only_row_of_a_task_tells_nothing():
    X, y, tasks = planted(0, gap=20.0)
    tasks[:4] = [100, 101, 102, 103]
    y[:4] = 1e3
    model = cs.TaskClusterRegressor(2).fit(X, y, tasks=tasks)
    (test,) = cs.compare_groups(model, X, y, tasks=tasks, random_state=0)
    assert np.isnan(test.p_value) or abs(test.difference) < 100.0


def test_columns_are_compared_by_whole_rows():
    """Each row of targets twice in a task says no more than once."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    Y = X @ np.array([[1.0, 0.0], [-1.0, 0.0]]).repeat(2, axis=0).T + rng.standard_normal((60, 4))
    tests = {}
    for name, columns in {"once": [0, 1, 2, 3], "twice": [0, 0, 1, 1, 2, 2, 3, 3]}.items():
        model = cs.TaskClusterRegressor(2).fit(X, Y[:, columns])
        (tests[name],) = cs.compare_groups(model, X, Y[:, columns], random_state=0)
    assert tests["twice"].difference == pytest.approx(tests["once"].difference, rel=0.05)
    assert tests["twice"].std_error == pytest.approx(tests["once"].std_error, rel=0.05)


@pytest.mark.parametrize("layout", ["rows", "classes"])
def test_classes(layout):
    rng = np.random.default_rng(0)
    X, tasks = rng.standard_normal((400, 3)), np.arange(400) % 4
    scores = 2.0 * X[:, 0] * np.where(tasks < 2, 1.0, -1.0) + rng.logistic(size=400)
    y, given = (scores > 0.0).astype(int), {"tasks": tasks}
    if layout == "classes":
        y, given = (np.digitize(2.0 * X[:, 0] + rng.logistic(size=400), [-1.0, 0.0, 1.0])), {}
    model = cs.TaskClusterClassifier(2).fit(X, y, **given)
    (test,) = cs.compare_groups(model, X, y, random_state=0, **given)
    assert test.p_value < 1e-4


def test_counts_with_an_offset():
    rng = np.random.default_rng(0)
    X, tasks, offset = rng.standard_normal((300, 2)), np.arange(300) % 6, rng.uniform(0, 1, 300)
    y = rng.poisson(np.exp(0.5 * X[:, 0] * np.where(tasks < 3, 1.0, -1.0) + offset))
    model = cs.TaskClusterRegressor(2, loss="poisson").fit(X, y, tasks=tasks, offset=offset)
    (test,) = cs.compare_groups(model, X, y, tasks=tasks, offset=offset, random_state=0)
    assert test.p_value < 1e-6
    assert test.difference == pytest.approx(1.0, abs=4 * test.std_error)


def test_neighbours():
    """Four groups on a line: neighbours are compared, in whatever order the groups are."""
    rng = np.random.default_rng(0)
    X, tasks = rng.standard_normal((960, 2)), np.arange(960) % 12
    slopes = np.repeat([0.0, 6.0, 2.0, 4.0], 3)
    y = X[:, 0] * slopes[tasks] + 0.5 * rng.standard_normal(960)
    model = cs.TaskClusterRegressor(4).fit(X, y, tasks=tasks)
    tests = cs.compare_groups(model, X, y, tasks=tasks, random_state=0)
    assert len(tests) == 3
    np.testing.assert_allclose([test.difference for test in tests], 2.0, atol=0.3)
    assert len(cs.compare_groups(model, X, y, tasks=tasks, pairs="all", random_state=0)) == 6


def test_a_search_chooses_on_one_half():
    X, y, tasks = planted(0, gap=30.0, n_rows=16, n_tasks=4)
    search = cs.TaskClusterRegressorCV([1, 2], cv=3).fit(X, y, tasks=tasks)
    (test,) = cs.compare_groups(search, X, y, tasks=tasks, random_state=0)
    assert test.p_value < 1e-6


def test_what_cannot_be_had_is_said():
    X, y, tasks = planted(0)
    model = cs.TaskClusterRegressor(2).fit(X, y, tasks=tasks)
    with pytest.raises(ValueError, match=r"models of features.*method='split'"):
        cs.compare_groups(model, X, y, tasks=tasks, method="selective")
    one = cs.TaskClusterRegressor(1).fit(X, y, tasks=tasks)
    assert len(cs.compare_groups(one, X, y, tasks=tasks, random_state=0)) == 0


# ---- The test of a contrast


def told(inputs, y, units=None):
    model = cs.FeatureClusterRegressor(None, alpha=0.0).fit(inputs, y)
    rows, response = response_of(model, inputs, y, None, None)
    return Told(rows, response, np.vstack([model._weights, model._offset]), units)


@pytest.mark.parametrize("sizes", [(5, 5), (3, 20)])
def test_two_means_are_those_of_welch(sizes):
    """A dummy variable: HC2 is Welch's standard error.

    With groups of one size the degrees of freedom are those of equal variances, as in the test.
    """
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(n) for n in sizes)
    inputs = np.repeat([1.0, 0.0], sizes)[:, None]
    difference, error, p = told(inputs, np.concatenate([a, b])).test(np.array([1.0, 0.0]))
    assert difference == pytest.approx(a.mean() - b.mean())
    assert error**2 == pytest.approx(a.var(ddof=1) / a.size + b.var(ddof=1) / b.size)
    if sizes[0] == sizes[1]:
        assert p == pytest.approx(ttest_ind(a, b).pvalue)
    else:  # nearly all of the variance is that of three numbers
        assert p > ttest_ind(a, b, equal_var=False).pvalue * 0.5


def test_repeated_samples_of_one_unit_say_no_more():
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((40, 2))
    y = inputs[:, 0] + rng.standard_normal(40)
    contrast = np.array([1.0, 0.0, 0.0])
    once = told(inputs, y).test(contrast)
    twice = told(np.vstack([inputs] * 2), np.tile(y, 2), np.tile(np.arange(40), 2)).test(contrast)
    assert twice[0] == pytest.approx(once[0])
    assert twice[1] == pytest.approx(once[1], rel=0.1)  # leverages differ


def test_what_rows_do_not_tell_is_not_known():
    rng = np.random.default_rng(0)
    inputs = np.column_stack([rng.standard_normal(20), np.zeros(20), np.eye(20)[0]])
    y = rng.standard_normal(20)
    model = told(inputs, y)
    for column in (1, 2):  # a group without rows, and one of a single row
        contrast = np.zeros(4)
        contrast[[0, column]] = 1.0, -1.0
        assert np.isnan(model.test(contrast)).all()
    assert np.isfinite(model.test(np.array([1.0, 0.0, 0.0, 0.0]))).all()
