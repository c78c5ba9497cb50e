"""scikit-learn's own checks of the estimators for clustered samples."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import clustruct as cs

# The checks of classifiers have two classes or more, and there must be fewer experts than classes:
# a single expert is all that suits every one of them. More are tested on data of our own. One check
# has fewer samples than features, which two experts with little ridge fit perfectly in many ways,
# so that rounding decides among them: hence the ridge.
ESTIMATORS = [
    cs.SampleClusterRegressor(2, alpha=1.0, random_state=0),
    cs.SampleClusterClassifier(1, random_state=0),
    cs.SampleClusterRegressorCV((1, 2), alpha=1.0, random_state=0),
    cs.SampleClusterClassifierCV((1,), random_state=0),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
