"""scikit-learn's own checks of the estimators for clustered samples."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import clustruct as cs

# As they come, but for the seed and for the classifiers' number of experts: the checks of
# classifiers have two classes or more, and there must be fewer experts than classes, so that a
# single one is all that suits every check. More are tested on data of our own.
ESTIMATORS = [
    cs.SampleClusterRegressor(random_state=0),
    cs.SampleClusterClassifier(1, random_state=0),
    cs.SampleClusterRegressorCV((1, 2), random_state=0),
    cs.SampleClusterClassifierCV((1,), random_state=0),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
