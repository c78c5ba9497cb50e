"""scikit-learn's own checks of the estimators for clustered tasks."""

from sklearn.utils.estimator_checks import parametrize_with_checks

import clustruct as cs

STRENGTHS = {"alpha_within": (0.3, 3.0), "alpha_between": 0.03, "cv": 2}
ESTIMATORS = [
    cs.TaskClusterRegressor(),
    cs.TaskClusterRegressor(2, loss="huber", alpha_within=1.0, solver="pg"),
    cs.TaskClusterRegressor(2, alpha_within=float("inf"), fit_intercept=False),
    cs.TaskClusterClassifier(),
    cs.TaskClusterClassifier(2, loss="squared", class_weight="balanced"),
    cs.TaskClusterRegressorCV((1, 2), **STRENGTHS),
    cs.TaskClusterClassifierCV((1, 2), **STRENGTHS),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
