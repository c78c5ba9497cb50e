"""Results of searches in scikit-learn's form: dictionaries that pandas takes."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold

import clustruct as cs

FEATURES = cs.datasets.make_clustered_features(60, 6, 2, random_state=0)
EXPERTS = cs.datasets.make_experts(90, 2, 2, random_state=0)
CLASSES = cs.datasets.make_experts(90, 2, 2, n_outputs=3, classification=True, random_state=0)
TASKS = cs.datasets.make_clustered_tasks(12, 4, 6, 2, random_state=0)
GRID = {"alphas": (1e-1, 1e-2), "n_nonzero": (None, 4), "cv": 3}
STRENGTHS = {"alpha_within": (0.3, 3.0), "alpha_between": 0.03, "cv": 2, "random_state": 0}
ONE = {"n_init": 1, "random_state": 0}
X_TASKS, Y_TASKS = TASKS.columns()
# Each with the number of points that it tries, and of folds.
SEARCHES = {
    "features": (cs.FeatureClusterRegressorCV((1, 2), **GRID).fit(FEATURES.X, FEATURES.y), 8, 3),
    "features, classes": (
        cs.FeatureClusterClassifierCV((1, 2), **GRID).fit(FEATURES.X, FEATURES.y > 0.0),
        8,
        3,
    ),
    "features, bic": (
        cs.FeatureClusterRegressorCV((1, 2), criterion="bic").fit(FEATURES.X, FEATURES.y),
        20,
        1,
    ),
    "samples": (cs.SampleClusterRegressorCV((1, 2), **ONE).fit(EXPERTS.X, EXPERTS.y), 2, 1),
    "samples, folds": (
        cs.SampleClusterRegressorCV((1, 2), criterion="cv", cv=3, **ONE).fit(EXPERTS.X, EXPERTS.y),
        2,
        3,
    ),
    "samples, classes": (
        cs.SampleClusterClassifierCV((1, 2), criterion="icl", **ONE).fit(CLASSES.X, CLASSES.y),
        2,
        1,
    ),
    "tasks": (cs.TaskClusterRegressorCV((1, 2), **STRENGTHS).fit(X_TASKS, Y_TASKS), 4, 2),
    "tasks, classes": (
        cs.TaskClusterClassifierCV((1, 2), **STRENGTHS).fit(X_TASKS, 1.0 * (Y_TASKS > 0)),
        4,
        2,
    ),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_results_make_a_data_frame(name):
    model, n_points, n_folds = SEARCHES[name]
    frame = pd.DataFrame(model.cv_results_)
    assert len(frame) == n_points
    splits = [f"split{f}_test_score" for f in range(n_folds)]
    assert [column for column in frame if column.startswith("split")] == splits
    np.testing.assert_allclose(frame[splits].mean(axis=1), frame["mean_test_score"])
    np.testing.assert_allclose(frame[splits].std(axis=1, ddof=0), frame["std_test_score"])
    expected = frame["mean_test_score"].rank(ascending=False, method="min")
    np.testing.assert_array_equal(frame["rank_test_score"], expected)
    for name, value in frame["params"][model.best_index_].items():
        tried = model.cv_results_[f"param_{name}"]
        assert tried[model.best_index_] == value
        assert len(tried.data) == n_points  # a masked array, as scikit-learn's


@pytest.mark.parametrize("name", SEARCHES)
def test_the_best_point_is_that_of_a_grid_search(name):
    model = SEARCHES[name][0]
    found = model.cv_results_
    assert isinstance(model.best_index_, int)
    assert found["params"][model.best_index_] == model.best_params_
    assert found["mean_test_score"][model.best_index_] == pytest.approx(model.best_score_)
    assert model.n_clusters_ <= model.best_params_["n_clusters"]


def test_columns_have_the_names_and_types_of_a_grid_search():
    theirs = GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=KFold(3)).fit(FEATURES.X, FEATURES.y)
    ours = SEARCHES["features"][0].cv_results_
    for name, column in theirs.cv_results_.items():
        if "time" not in name:
            assert type(ours[name]) is type(column), name
            assert getattr(ours[name], "dtype", None) == getattr(column, "dtype", None), name
    assert set(ours) - set(theirs.cv_results_) == {
        "param_n_clusters",
        "param_n_nonzero",
        "param_relax",
    }


def test_attributes_and_columns_are_the_same_numbers():
    found = SEARCHES["features"][0].cv_results_
    np.testing.assert_array_equal(found.mean_scores.ravel(), found["mean_test_score"])
    assert [row["alpha"] for row in found.rows()] == found["param_alpha"].tolist()
    assert found == found
    assert found != copy.copy(found)  # arrays have no one truth value to compare by
    assert len({found, found}) == 1


def test_results_are_copied_with_attributes_and_columns():
    found = SEARCHES["tasks"][0].cv_results_
    for again in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert again.best_index == found.best_index
        np.testing.assert_array_equal(again["mean_test_score"], found["mean_test_score"])
