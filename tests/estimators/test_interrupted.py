"""Fits and searches that Ctrl-C ends early: what is kept, and what is said of it."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import clustruct as cs
from clustruct import _interrupts
from clustruct._progress import telling
from clustruct.estimators.features import screening

FEATURES = cs.datasets.make_clustered_features(60, 12, 3, noise=1.0, random_state=0)
NOISE = np.random.default_rng(0).standard_normal((60, 13))
EXPERTS = cs.datasets.make_experts(120, 3, 2, random_state=0)
TASKS = cs.datasets.make_clustered_tasks(random_state=0)


def press():
    signal.raise_signal(signal.SIGINT)


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    monkeypatch.setattr(_interrupts, "PATIENCE", 0.0)
    monkeypatch.setattr("clustruct._progress.OFTEN", -1.0)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def pressing(things, done, times=1):
    """A listener that presses Ctrl-C once so many of some things are done."""
    left = [times]

    def tell(progress):
        if progress.things == things and progress.done >= done and left[0]:
            left[0] -= 1
            press()

    return telling(tell)


def data_of(name):
    if name.startswith("tasks"):
        return TASKS.columns()
    if name.endswith("proof"):
        return NOISE[:, 1:], NOISE[:, 0]
    data = EXPERTS if name.startswith("samples") else FEATURES
    return data.X, data.y


# A model, the things of which one is done when Ctrl-C comes.
FITS = {
    "features, pg": (
        cs.FeatureClusterRegressor(3, solver="pg", init="zeros", tol=0.0, n_init=4),
        "starts",
    ),
    "features, soft": (
        cs.FeatureClusterRegressor(
            3, solver="soft", solver_options={"time_limit": 600.0, "n_repeats": 10**9}
        ),
        "seconds",
    ),
    "features, proof": (cs.FeatureClusterRegressor(3, prove=True), "nodes"),
    "samples": (cs.SampleClusterRegressor(2, solver="em"), "starts"),
    "samples, elemental": (cs.SampleClusterRegressor(2), "elemental starts"),
    "tasks": (cs.TaskClusterRegressor(3), "starts"),
    "tasks, mixture": (cs.TaskClusterRegressor(3, solver="em"), "numbers of groups"),
}


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("name", FITS)
def test_a_fit_keeps_the_best_so_far(name, n_jobs):
    model, things = FITS[name]
    model.set_params(random_state=0)
    if not name.startswith("features"):
        model.set_params(n_jobs=n_jobs)
    elif n_jobs > 1:
        pytest.skip("has no parallel starts")
    given = data_of(name)
    with pressing(things, 1), pytest.warns(ConvergenceWarning, match="best so far"):
        model.fit(*given)
    status = model.status_
    assert status.interrupted
    assert not status.converged
    assert "Ctrl-C" in status.message
    assert np.isfinite(model.objective_)
    assert np.isfinite(model.predict(given[0])).all()
    assert model.certificate_.lower_bound <= model.objective_
    assert not model.fit(*given).status_.interrupted if name != "features, soft" else True


def test_a_proof_keeps_its_gap():
    model = cs.FeatureClusterRegressor(3, prove=True, random_state=0)
    with pressing("nodes", 2), pytest.warns(ConvergenceWarning):
        model.fit(*data_of("features, proof"))
    assert "% left" in model.status_.message
    assert model.certificate_.source == "proof"
    assert 0.0 < model.certificate_.relative_gap < 1.0


@pytest.mark.parametrize("name", ["features, pg", "samples", "tasks"])
def test_the_second_one_ends_at_once(name):
    model, things = FITS[name]
    with pressing(things, 1, times=2), pytest.raises(KeyboardInterrupt):
        model.fit(*data_of(name))


def test_before_the_first_point_there_is_nothing_to_keep(monkeypatch):
    monkeypatch.setattr(
        "clustruct.estimators.features.base.choose_objective", lambda *given: press()
    )
    with pytest.raises(KeyboardInterrupt):
        cs.FeatureClusterRegressor(3).fit(*data_of("features"))


def test_a_loop_of_short_fits_ends(monkeypatch):
    monkeypatch.setattr(_interrupts, "PATIENCE", 60.0)
    model, n_fits = FITS["tasks"][0], 0
    with pytest.raises(KeyboardInterrupt), pressing("starts", 1):  # noqa: PT012
        for _ in range(3):
            n_fits += 1
            model.fit(*data_of("tasks"))
    assert n_fits == 1


# ---- Searches.

GRID = {"n_clusters": (1, 2, 3), "cv": 4}
SEARCHES = {
    "features": cs.FeatureClusterRegressorCV(**GRID, alphas=(1e-1, 1e-3), relax=1.0),
    "features, classes": cs.FeatureClusterClassifierCV(**GRID, alphas=(1e-1, 1e-3)),
    "samples": cs.SampleClusterRegressorCV(**GRID, criterion="cv"),
    "tasks": cs.TaskClusterRegressorCV(**GRID),
}


def search_data(name):
    if name == "features, classes":
        return NOISE[:, 1:], NOISE[:, 0] > 0.0
    return data_of(name)


@pytest.mark.parametrize("name", ["features", "samples", "tasks"])
def test_a_search_chooses_by_the_folds_that_are_done(name):
    model = SEARCHES[name].set_params(random_state=0)
    given = search_data(name)
    with pressing("folds", 2), pytest.warns(ConvergenceWarning, match="after 2 of 4 folds"):
        model.fit(*given)
    assert model.status_.interrupted
    assert model.status_.converged  # the final fit was made in full
    assert "split1_test_score" in model.cv_results_
    assert "split2_test_score" not in model.cv_results_
    early = {f: model.cv_results_[f"split{f}_test_score"] for f in (0, 1)}
    assert np.isfinite(model.best_score_)
    assert np.isfinite(model.predict(given[0])).all()
    chosen = model.best_params_["n_clusters"]
    model.fit(*given)
    assert not model.status_.interrupted
    assert "split3_test_score" in model.cv_results_
    for f, scores in early.items():
        np.testing.assert_array_equal(scores, model.cv_results_[f"split{f}_test_score"])
    assert chosen in GRID["n_clusters"]


def test_a_search_of_classes_chooses_among_exact_fits(monkeypatch):
    """Points that only the model has scored are no candidates."""
    model = SEARCHES["features, classes"].set_params(random_state=0)
    original, n_calls = screening.fit_exactly, []

    def pressed(*given):
        n_calls.append(given)
        if len(n_calls) == 5:  # the first fold of the second round
            press()
        return original(*given)

    monkeypatch.setattr(screening, "fit_exactly", pressed)
    monkeypatch.setattr(screening, "SETTINGS", screening.ScreeningSettings(first=1, more=1))
    with pytest.warns(ConvergenceWarning, match="Ctrl-C ended the search"):
        model.fit(*search_data("features, classes"))
    found = model.cv_results_
    assert model.status_.interrupted
    reached = ~np.isnan(found["mean_test_score"])
    assert 0 < reached.sum() < reached.size
    assert reached[model.best_index_]
    assert found["rank_test_score"][reached].max() < found["rank_test_score"][~reached].min()
    np.testing.assert_array_equal(found.exact.reshape(-1), reached)


@pytest.mark.parametrize("name", ["features", "samples"])
def test_a_criterion_chooses_among_the_fits_that_are_done(name):
    model = type(SEARCHES[name])(n_clusters=(1, 2, 3), criterion="bic", rule="best")
    given = search_data(name)
    with pressing("fits", 2), pytest.warns(ConvergenceWarning, match="after 2 of"):
        model.fit(*given)
    scores = model.cv_results_["mean_test_score"]
    assert model.status_.interrupted
    assert (~np.isnan(scores)).sum() == 2
    assert scores[model.best_index_] == np.nanmax(scores) == model.best_score_
    assert np.isfinite(model.predict(given[0])).all()


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_without_a_complete_fold_keeps_nothing(name):
    with pressing("folds", 0), pytest.raises(KeyboardInterrupt):
        SEARCHES[name].fit(*search_data(name))


@pytest.mark.parametrize("name", ["features", "samples", "tasks"])
def test_a_second_one_ends_the_final_fit(name):
    model, pressed = clone(SEARCHES[name]), []
    if name == "tasks":
        model.set_params(solver="am")  # a mixture has been fitted by then

    def tell(progress):
        scored = progress.things == "folds"
        if len(pressed) < 2 and scored is not bool(pressed) and progress.done >= scored:
            pressed.append(progress.things)
            press()

    told, ended = pytest.warns(ConvergenceWarning), pytest.raises(KeyboardInterrupt)
    with telling(tell), told, ended:
        model.fit(*search_data(name))
    assert len(pressed) == 2


def test_the_final_fit_of_a_search_keeps_its_best():
    model = cs.FeatureClusterRegressorCV((3,), alphas=1e-2, cv=2, prove=True, random_state=0)
    with pressing("nodes", 1), pytest.warns(ConvergenceWarning, match="best so far"):
        model.fit(*data_of("features"))
    assert model.status_.interrupted
    assert "split1_test_score" in model.cv_results_


def test_saved_models_know_that_they_were_interrupted(tmp_path):
    model = SEARCHES["features"]
    with pressing("folds", 1), pytest.warns(ConvergenceWarning):
        model.fit(*search_data("features"))
    cs.save(model, tmp_path / "model")
    loaded = cs.load(tmp_path / "model")
    assert loaded.status_ == model.status_
    assert loaded.status_.interrupted


# ---- Resamples.


@pytest.mark.parametrize("search", ["anew", "kept"])
def test_resamples_that_are_done_are_kept(search):
    given = data_of("features")
    model = cs.FeatureClusterRegressorCV((2, 3), alphas=1e-2, cv=2, random_state=0).fit(*given)
    settings = {"search": search, "random_state": 0}
    with pressing("resamples", 11), pytest.warns(ConvergenceWarning, match="11 of 20 resamples"):
        found = cs.stability(model, *given, n_resamples=20, **settings)
    assert found.n_resamples == 11
    assert found.interrupted
    assert model.stability_.interrupted
    assert "Ctrl-C" in found.in_words
    whole = cs.stability(model, *given, n_resamples=20, **settings)
    assert not whole.interrupted
    np.testing.assert_array_equal(found.labels, whole.labels[:11])


def test_a_few_resamples_are_not_kept():
    given = data_of("features")
    model = cs.FeatureClusterRegressor(3).fit(*given)
    with pressing("resamples", 5), pytest.raises(KeyboardInterrupt):
        cs.stability(model, *given, n_resamples=20)
    assert model.stability_ is None


# ---- Other processes.

WITH_PROCESSES = textwrap.dedent("""\
    import os, signal, sys, threading, warnings
    import numpy as np
    import clustruct as cs
    from clustruct import _interrupts
    from clustruct._progress import telling

    def slow(model, X, y):
        import time
        time.sleep(600.0 if y[0] > N - 2.5 else 0.0)
        return 1.0

    _interrupts.PATIENCE = 0.0
    signal.signal(signal.SIGINT, signal.default_int_handler)
    warnings.simplefilter("always")
    N = 60
    X, y = np.random.default_rng(0).standard_normal((N, 4)), np.arange(60.0)
    folds = [(np.r_[:i, i + 1:N], np.array([i])) for i in (0, 1, 2, 59)]

    def tell(progress):
        if progress.done == 3 and not progress.over:
            # As a terminal does: to all processes of the group.
            threading.Timer(0.5, os.killpg, (os.getpgid(0), signal.SIGINT)).start()

    model = cs.FeatureClusterRegressorCV((1, 2), alphas=1.0, cv=folds, scoring=slow, n_jobs=2)
    with telling(tell):
        model.fit(X, y)
    print(model.status_.interrupted, len(model.cv_results_.fold_scores[0, 0, 0]))
    from joblib.externals.loky import get_reusable_executor
    get_reusable_executor().shutdown()
""")


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal as a Unix terminal does")
def test_processes_end_without_a_word():
    """The last fold takes ten minutes: nobody waits for it."""
    process = subprocess.Popen(
        [sys.executable, "-c", WITH_PROCESSES],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONWARNINGS": "default"},
    )
    out, err = process.communicate(timeout=300)
    assert out.split() == ["True", "3"], err
    assert process.returncode == 0
    assert "Traceback" not in err
    assert "after 3 of 4 folds" in err
    for _ in range(300):  # they end, and are forgotten, a moment later
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.1)
    else:
        pytest.fail("a process is left behind")
