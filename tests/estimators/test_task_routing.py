"""Models of tasks in scikit-learn's cross-validation and searches, with tasks as metadata."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import log_loss, make_scorer, mean_squared_error, r2_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import clustruct as cs
from tests.releases import SCIKIT_LEARN

STRENGTHS = {"alpha_within": 1.0, "alpha_between": 0.03, "cv": 2, "random_state": 0}
MODELS = {
    "regressor": cs.TaskClusterRegressor(2, random_state=0),
    "regressor, search": cs.TaskClusterRegressorCV((1, 2), **STRENGTHS),
    "classifier": cs.TaskClusterClassifier(2, random_state=0),
    "classifier, search": cs.TaskClusterClassifierCV((1, 2), **STRENGTHS),
}
PROBLEMS = {
    "regressor": cs.datasets.make_clustered_tasks(20, 4, 6, 2, random_state=0).rows(),
    "classifier": cs.datasets.make_clustered_tasks(
        40, 4, 6, 2, classification=True, random_state=0
    ).rows(),
}
FOLDS = KFold(2, shuffle=True, random_state=0)


@pytest.fixture(autouse=True)
def routing():
    with config_context(enable_metadata_routing=True):
        yield


@pytest.fixture(params=MODELS)
def case(request):
    """A model that requests tasks, and rows with ids that are strings."""
    model = clone(MODELS[request.param])
    for name in ("fit", "predict", "predict_proba", "decision_function", "score"):
        if hasattr(model, f"set_{name}_request"):
            getattr(model, f"set_{name}_request")(tasks=True)
    X, y, tasks = PROBLEMS[request.param.split(",")[0]]
    return model, X, y, np.array([f"task {t}" for t in tasks])


@pytest.fixture(params=["alone", "in a pipeline"])
def placed(request, case):
    model, *data = case
    if request.param == "alone":
        return model, "", *data
    return make_pipeline(StandardScaler(), model), f"{type(model).__name__.lower()}__", *data


def by_hand(model, X, y, tasks, score):
    """Scores on the folds without scikit-learn's help."""
    scores = []
    for rest, held in FOLDS.split(X):
        fitted = clone(model).fit(X[rest], y[rest], tasks=tasks[rest])
        scores.append(score(fitted, X[held], y[held], tasks[held]))
    return scores


def skip_before_1_8(prefix):
    """The score of a model in a pipeline gets tasks from scikit-learn 1.8 on."""
    if prefix and SCIKIT_LEARN < (1, 8):
        pytest.skip("scikit-learn before 1.8 asks only the model itself for what its score needs")


def test_the_score_of_a_model_gets_the_tasks(placed):
    model, prefix, X, y, tasks = placed
    skip_before_1_8(prefix)
    expected = by_hand(model, X, y, tasks, lambda m, *held: m.score(*held[:2], tasks=held[2]))
    scores = cross_val_score(model, X, y, cv=FOLDS, params={"tasks": tasks}, error_score="raise")
    np.testing.assert_allclose(scores, expected)
    found = cross_validate(
        model, X, y, cv=FOLDS, params={"tasks": tasks}, error_score="raise", return_train_score=True
    )
    np.testing.assert_allclose(found["test_score"], expected)
    assert (found["train_score"] > found["test_score"].min()).all()


def test_scores_by_name_answer_for_the_task_of_each_row(placed):
    model, _, X, y, tasks = placed
    if hasattr(model, "predict_proba"):
        metrics = {
            "neg_log_loss": lambda m, X, y, t: -log_loss(y, m.predict_proba(X, tasks=t)),
            "roc_auc": lambda m, X, y, t: roc_auc_score(y, m.decision_function(X, tasks=t)),
            "accuracy": lambda m, X, y, t: np.mean(m.predict(X, tasks=t) == y),
        }
    else:
        metrics = {
            "r2": lambda m, X, y, t: r2_score(y, m.predict(X, tasks=t)),
            "neg_mean_squared_error": lambda m, X, y, t: -np.mean((y - m.predict(X, tasks=t)) ** 2),
        }
    found = cross_validate(
        model,
        X,
        y,
        cv=FOLDS,
        scoring={name: cs.task_scorer(name) for name in metrics},
        params={"tasks": tasks},
        error_score="raise",
    )
    expected = by_hand(model, X, y, tasks, lambda *held: [f(*held) for f in metrics.values()])
    for name, scores in zip(metrics, np.transpose(expected), strict=True):
        np.testing.assert_allclose(found[f"test_{name}"], scores, err_msg=name)


@pytest.mark.parametrize("scored", [False, True])
def test_grid_searches_get_the_tasks(placed, scored):
    model, prefix, X, y, tasks = placed
    options = {}
    if scored:
        error = make_scorer(mean_squared_error, greater_is_better=False)
        options["scoring"] = cs.task_scorer(error)
    else:
        skip_before_1_8(prefix)
    grid = {f"{prefix}alpha": [0.0, 100.0]}
    search = GridSearchCV(model, grid, cv=FOLDS, error_score="raise", **options)
    search.fit(X, y, tasks=tasks)
    assert search.best_params_ == {f"{prefix}alpha": 0.0}
    best = search.best_estimator_
    predicted = best.predict(X, tasks=tasks)
    assert predicted.shape == y.shape
    score = search.score(X, y, tasks=tasks)
    if scored:
        assert score == pytest.approx(-mean_squared_error(y, predicted))
    else:
        assert score == best.score(X, y, tasks=tasks)


def test_a_scorer_without_tasks_says_what_to_do():
    X, y, tasks = PROBLEMS["regressor"]
    model = cs.TaskClusterRegressor(2).fit(X, y, tasks=tasks)
    assert repr(cs.task_scorer("r2")).startswith("task_scorer(")
    with pytest.raises(ValueError, match="given no tasks"):
        cs.task_scorer("r2")(model, X, y)
