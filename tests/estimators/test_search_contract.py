"""All six searches have one face: attributes, scores, rules, criteria, jobs, seeds, progress."""

import inspect
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import make_scorer, mean_absolute_error, roc_auc_score

import clustruct as cs
from clustruct.estimators.search.progress import reporting_to

FEATURES = cs.datasets.make_clustered_features(60, 6, 2, random_state=0)
EXPERTS = cs.datasets.make_experts(90, 2, 2, random_state=0)
CLASSES = cs.datasets.make_experts(90, 2, 2, n_outputs=3, classification=True, random_state=0)
TASKS = cs.datasets.make_clustered_tasks(12, 3, 6, 2, shared=False, random_state=0)
BINARY = cs.datasets.make_clustered_tasks(
    30, 3, 4, 2, classification=True, shared=False, random_state=0
)
GRID = {"alphas": (1e-1, 1e-2), "cv": 3, "random_state": 0}
COUNTS = {"criterion": "cv", "cv": 3, "n_init": 1, "random_state": 0}
STRENGTHS = {"alpha_within": (0.3, 3.0), "alpha_between": 0.03, "cv": 3, "random_state": 0}


def rows(problem):
    X, y, tasks = problem.rows()
    return SimpleNamespace(X=X, y=y, more={"tasks": tasks})


def plain(X, y):
    return SimpleNamespace(X=X, y=y, more={})


# Each search with its samples, and the names of two scores for them.
NUMBERS, LABELS = ("neg_mean_squared_error", "r2"), ("accuracy", "balanced_accuracy")
SEARCHES = {
    "features": (cs.FeatureClusterRegressorCV((1, 2), **GRID), plain(FEATURES.X, FEATURES.y)),
    "features, classes": (
        cs.FeatureClusterClassifierCV((1, 2), **GRID),
        plain(FEATURES.X, FEATURES.y > 0.0),
    ),
    "samples": (cs.SampleClusterRegressorCV((1, 2), **COUNTS), plain(EXPERTS.X, EXPERTS.y)),
    "samples, classes": (
        cs.SampleClusterClassifierCV((1, 2), **COUNTS),
        plain(CLASSES.X, CLASSES.y),
    ),
    "tasks": (cs.TaskClusterRegressorCV((1, 2), **STRENGTHS), rows(TASKS)),
    "tasks, classes": (cs.TaskClusterClassifierCV((1, 2), **STRENGTHS), rows(BINARY)),
}
each = pytest.mark.parametrize("name", SEARCHES)


def fitted(name, **parameters):
    model, data = SEARCHES[name]
    return clone(model).set_params(**parameters).fit(data.X, data.y, **data.more)


def columns(model, ending="_test_score"):
    found = model.cv_results_
    return np.array([found[key] for key in found if key.endswith(ending)])


@each
def test_attributes_are_those_of_a_grid_search(name):
    model = fitted(name)
    found = model.cv_results_
    assert isinstance(found, dict)
    frame = pd.DataFrame(found)
    expected = {f"split{f}_test_score" for f in range(3)}
    expected |= {"params", "mean_test_score", "std_test_score", "rank_test_score"}
    assert expected == {key for key in frame if not key.startswith("param_")}
    assert {key.removeprefix("param_") for key in frame if key.startswith("param_")} == set(
        model.best_params_
    )
    assert isinstance(model.best_index_, int)
    assert found["params"][model.best_index_] == model.best_params_
    assert model.best_score_ == pytest.approx(found["mean_test_score"][model.best_index_])


@each
def test_parameters_have_the_same_names(name):
    accepted = set(inspect.signature(type(SEARCHES[name][0])).parameters)
    assert {"cv", "scoring", "rule", "criterion", "n_jobs", "random_state", "verbose"} <= accepted


@each
def test_scores_by_name_and_by_function(name):
    metric, other = LABELS if "classes" in name else NUMBERS
    by_name = fitted(name, scoring=metric)
    names = {"accuracy": "accuracy_score", "neg_mean_squared_error": "mean_squared_error"}
    function = getattr(__import__("sklearn.metrics").metrics, names[metric])
    made = make_scorer(function, greater_is_better=metric == "accuracy")
    np.testing.assert_allclose(columns(fitted(name, scoring=made)), columns(by_name), rtol=1e-8)
    assert not np.allclose(columns(fitted(name, scoring=other)), columns(by_name))
    with pytest.raises(ValueError, match="nonsense"):
        fitted(name, scoring="nonsense")


def test_a_function_of_model_and_samples():
    def worst(model, X, y):
        return -np.abs(model.predict(X) - y).max()

    for name in ("features", "samples"):
        assert fitted(name, scoring=worst).best_score_ < 0.0


def test_a_function_of_targets_scores_and_tasks():
    def absolute(y, scores, tasks):
        assert set(tasks) <= set(range(6))
        return -mean_absolute_error(y, scores)

    by_function, by_name = (
        fitted("tasks", scoring=scoring) for scoring in (absolute, "neg_mean_absolute_error")
    )
    np.testing.assert_allclose(columns(by_function), columns(by_name))


def test_scores_of_tasks_are_pooled_with_each_predicted_by_its_own():
    X, y, tasks = BINARY.rows()
    folds = [(np.arange(0, len(y), 2), np.arange(1, len(y), 2))]
    settings = {"alpha_within": 0.5, "alpha_between": 0.1, "alpha_intercept": 0.2}
    (rest, held) = folds[0]
    model = cs.TaskClusterClassifier(1, **settings, random_state=0)
    model.fit(X[rest], y[rest], tasks=tasks[rest])
    scores = model.decision_function(X[held], tasks=tasks[held])
    expected = roc_auc_score(y[held], scores)
    for scoring in ("roc_auc", cs.task_scorer("roc_auc")):
        search = cs.TaskClusterClassifierCV(1, **settings, cv=folds, scoring=scoring)
        assert search.fit(X, y, tasks=tasks).best_score_ == pytest.approx(expected, abs=1e-3)


def test_names_of_scores_need_folds():
    with pytest.raises(ValueError, match=r"criterion='bic' does not go with .*scoring='r2'"):
        fitted("samples", criterion="bic", scoring="r2")


@each
def test_rules(name):
    number = {
        rule: fitted(name, rule=rule).best_params_["n_clusters"]
        for rule in ("best", "fewest", "one_se")
    }
    best = fitted(name, rule="best")
    assert best.best_score_ == pytest.approx(best.cv_results_["mean_test_score"].max())
    assert max(number["fewest"], number["one_se"]) <= number["best"]


@each
def test_the_default_rule_and_criterion(name):
    model = type(SEARCHES[name][0])()
    assert model.rule == ("best" if "features" in name else "fewest")
    assert model.criterion == ("bic+icl" if "samples" in name else "cv")


@each
def test_standard_errors_need_folds(name):
    message = "not defined for tasks" if "tasks" in name else "does not go with rule='one_se'"
    with pytest.raises(ValueError, match=f"criterion='bic' (is )?{message}"):
        fitted(name, criterion="bic", rule="one_se")


@each
@pytest.mark.parametrize("criterion", ["cv", "bic"])
def test_any_number_of_jobs_gives_the_same_bits(name, criterion):
    if "tasks" in name and criterion == "bic":
        pytest.skip("not defined for tasks")
    rule = {"rule": "best"} if criterion == "bic" else {}
    one, two = (fitted(name, criterion=criterion, n_jobs=n_jobs, **rule) for n_jobs in (None, 2))
    np.testing.assert_array_equal(columns(one), columns(two))
    data = SEARCHES[name][1]
    np.testing.assert_array_equal(*(m.predict(data.X, **data.more) for m in (one, two)))


@each
def test_the_same_seed_gives_the_same_bits(name):
    np.testing.assert_array_equal(columns(fitted(name)), columns(fitted(name)))


def test_tasks_have_random_folds_without_a_seed():
    one, two = (columns(fitted("tasks", random_state=None)) for _ in range(2))
    assert not np.array_equal(one, two)


@each
def test_progress_is_told_to_a_function(name, capsys):
    seen = []
    with reporting_to(lambda done, total: seen.append((done, total))):
        fitted(name)
    assert seen == [(done, 3) for done in range(4)]
    assert capsys.readouterr().err == ""
    fitted(name, verbose=1)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1  # a short search has one line, at its end
    assert lines[0].startswith("clustruct: 3 of 3 folds, best score ")
    assert seen == [(done, 3) for done in range(4)]  # nobody listens any more


@pytest.mark.parametrize("name", ["features", "samples"])
def test_fits_of_a_criterion_are_counted(name):
    seen = []
    with reporting_to(lambda done, total: seen.append((done, total))):
        model = fitted(name, criterion="bic", rule="best")
    total = len(model.cv_results_["params"])
    assert seen == [(done, total) for done in range(total + 1)]


@each
def test_one_warning_for_all_fits_of_the_search(name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        fitted(name, max_iter=1, tol=0.0)
    told = [str(warning.message) for warning in caught if "on the grid" in str(warning.message)]
    assert len(told) <= 1
    for message in told:
        assert "were stopped by max_iter=1" in message


@each
def test_folds_that_cannot_be_made(name):
    n = len(SEARCHES[name][1].y)
    with pytest.raises(ValueError, match=f"cv={n + 1} folds cannot be made of n_samples={n}"):
        fitted(name, cv=n + 1)
    with pytest.raises(ValueError, match="1 lack samples"):
        fitted(name, cv=[(np.arange(5), np.arange(0))])
