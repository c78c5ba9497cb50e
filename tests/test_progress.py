"""Progress of long work: counts, lines now and then, and results that do not depend on them."""

import io
import sys

import numpy as np
import pytest

import clustruct as cs
from clustruct import _progress
from clustruct._progress import Lines, Progress, counting, in_time, shown, telling


class Clock:
    """A clock that is set by hand."""

    now = 0.0

    def __call__(self):
        return self.now


def test_lines_come_now_and_then(capsys):
    clock = Clock()
    tell = Lines(clock=clock)
    times, lines = [], []
    for clock.now in np.arange(0.0, 600.0, 0.5):
        tell(Progress("fits", int(clock.now), 600, seconds=clock.now, best=1.0, measure="score"))
        if told := capsys.readouterr().err:
            times.append(float(clock.now))
            lines += told.splitlines()
    tell(Progress("fits", 600, 600, seconds=600.0, over=True))
    lines += capsys.readouterr().err.splitlines()
    assert times[:4] == [5.0, 15.0, 35.0, 65.0]
    assert (np.diff(times[3:]) == 30.0).all()
    assert len(lines) == len(times) + 1
    assert lines[1] == "clustruct: 15 of 600 fits, about 10 min left, best score 1 (15 s)"
    assert lines[-1] == "clustruct: 600 of 600 fits (10 min)"
    assert all(line.isprintable() for line in lines)  # no control characters


@pytest.mark.parametrize(("always", "n_lines"), [(False, 0), (True, 1)])
def test_short_work_has_a_line_only_if_asked_for(capsys, always, n_lines):
    with telling(Lines(always=always)), counting("folds", 2) as count:
        count.tick()
        count.tick()
    assert len(capsys.readouterr().err.splitlines()) == n_lines


def test_nothing_is_said_of_short_starts(capsys):
    with shown(True), counting("starts", 2, at_most=True) as count:
        count.tick()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("stream", [None, "closed"])
def test_standard_error_may_be_missing(monkeypatch, stream):
    if stream == "closed":
        stream = io.StringIO()
        stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    Lines(always=True)(Progress("folds", 1, 1, over=True))


def test_counts_inside_of_others_are_parts(monkeypatch):
    monkeypatch.setattr(_progress, "OFTEN", -1.0)
    seen = []
    with telling(seen.append), counting("folds", 2) as folds:
        with counting("fits", 4, at_most=True) as fits:
            fits.tick()
            with counting("steps", 2) as steps:
                steps.tick()
        folds.tick()
    assert [(p.things, p.done + p.part) for p in seen] == [
        ("folds", at) for at in (0, 0, 0.25, 0.25, 0.375, 1, 1)
    ]
    assert [p.over for p in seen] == [False] * 6 + [True]


def test_time_left_is_told_where_the_number_is_known():
    known = Progress("folds", 1, 5, part=0.5, seconds=30.0)
    assert known.left == pytest.approx(70.0)
    assert known.in_words == "1 of 5 folds, about 70 s left"
    unknown = Progress("starts", 3, 12, at_most=True, seconds=30.0, measure="objective", best=0.5)
    assert unknown.left is None
    assert unknown.in_words == "3 of at most 12 starts, best objective 0.5"


def test_durations():
    told = [in_time(seconds) for seconds in (0.04, 9.96, 50.0, 3000.0, 3e4)]
    assert told == ["0.0 s", "10.0 s", "50 s", "50 min", "8.3 h"]


def test_nobody_is_told_after_the_block():
    seen = []
    with telling(seen.append):
        pass
    with counting("folds", 2) as count:
        count.tick()
    assert not seen


FEATURES = cs.datasets.make_clustered_features(60, 12, 3, noise=1.0, random_state=0)
EXPERTS = cs.datasets.make_experts(120, 3, 2, random_state=0)
TASKS = cs.datasets.make_clustered_tasks(random_state=0)
# A model, what it is fitted to, and what it counts.
WORK = {
    "features, soft": (cs.FeatureClusterRegressor(3, solver="soft"), FEATURES, {"turns"}),
    "features, proof": (cs.FeatureClusterRegressor(3, prove=True), FEATURES, {"nodes"}),
    "features, starts": (
        cs.FeatureClusterRegressor(3, solver="pg", n_init=3),
        FEATURES,
        {"starts"},
    ),
    "samples": (cs.SampleClusterRegressor(2), EXPERTS, {"starts", "elemental starts"}),
    "tasks": (cs.TaskClusterRegressor(3), TASKS, {"starts"}),
    "tasks, mixture": (cs.TaskClusterRegressor(3, solver="em"), TASKS, {"numbers of groups"}),
}


def fitted(model, data, **parameters):
    model = type(model)(**{**model.get_params(), "random_state": 0, **parameters})
    given = data.columns() if hasattr(data, "columns") else (data.X, data.y)
    return model.fit(*given)


@pytest.mark.parametrize("name", WORK)
def test_single_fits_tell_what_they_count(name):
    model, data, expected = WORK[name]
    seen = []
    with telling(seen.append):
        fitted(model, data)
    told = {progress.things for progress in seen}
    assert expected <= told
    best = [p.best for p in seen if p.things in expected and p.over]
    assert np.isfinite(best).all()


@pytest.mark.parametrize("name", WORK)
def test_results_do_not_depend_on_who_listens(name, capsys, monkeypatch):
    monkeypatch.setattr(_progress, "OFTEN", -1.0)
    monkeypatch.setattr(_progress, "FIRST", -1.0)
    model, data, _ = WORK[name]
    quiet, loud = fitted(model, data), fitted(model, data, verbose=1)
    assert capsys.readouterr().err  # lines
    weights = "experts_" if "samples" in name else "coef_"
    np.testing.assert_array_equal(getattr(quiet, weights), getattr(loud, weights))
    assert quiet.status_ == loud.status_
    assert [i.objective for i in quiet.trace_] == [i.objective for i in loud.trace_]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_resamples_and_paths_are_counted(capsys, n_jobs):
    model = cs.FeatureClusterRegressor(3).fit(FEATURES.X, FEATURES.y)
    given = FEATURES.X, FEATURES.y
    settings = {"n_resamples": 6, "random_state": 0, "n_jobs": n_jobs}
    found = cs.stability(model, *given, **settings, verbose=1)
    assert capsys.readouterr().err.splitlines()[-1].startswith("clustruct: 6 of 6 resamples (")
    again = cs.stability(model, *given, **settings)
    assert capsys.readouterr().err == ""
    np.testing.assert_array_equal(found.labels, again.labels)
    cs.feature_cluster_path(*given, n_clusters=(1, 2), alphas=(0.1, 0.01), verbose=1)
    assert capsys.readouterr().err.splitlines()[-1].startswith("clustruct: 4 of 4 fits (")


def test_steps_are_printed_from_the_second_level_on(capsys):
    fitted(*WORK["tasks"][:2], verbose=1)
    assert "objective" in capsys.readouterr().out  # of the status
    fitted(*WORK["tasks"][:2], verbose=2)
    assert "    am     0  objective" in capsys.readouterr().out
