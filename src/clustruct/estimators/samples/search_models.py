"""Several linear models, as many as the data call for."""

from collections.abc import Callable
from typing import Any

import numpy as np

from clustruct._docs import documented
from clustruct._typing import Floats
from clustruct.estimators import descriptions as tables
from clustruct.estimators.common import fields_are_parameters
from clustruct.estimators.intake import place_matrix
from clustruct.estimators.samples.models import SampleClusterClassifier, SampleClusterRegressor
from clustruct.estimators.samples.search import CountSearch, offset_loss


@documented(
    (tables.ALL, tables.SAMPLES, tables.SEARCH, tables.SAMPLE_SEARCH),
    (tables.SEARCHED, tables.FITTED, tables.OF_SAMPLES),
)
@fields_are_parameters
class SampleClusterRegressorCV(CountSearch, SampleClusterRegressor):
    """Several linear regressions, as many as the data call for.

    Attributes
    ----------
    selection_ : CountSelection
        The criterion for every number of experts.

    See Also
    --------
    SampleClusterRegressor : The model with a given number of experts.

    Notes
    -----
    The mixture that ``"bic"`` and ``"icl"`` judge gives every expert noise of its own, and spreads
    a share of the samples evenly: else experts would be added to make up for samples that follow
    one rule more closely than another, or none. Noise that is skewed, or grows with a feature,
    still looks like two or three experts to ``"bic"``. These overlap, and ``"icl"`` takes them for
    one; but it also joins experts that overlap in part. So ``"bic+icl"`` asks the mean of the two
    whether there is more than one expert, and ``"bic"`` how many. `selection_` and `status_` say
    what the others would choose.

    The loss of the best expert falls with every expert, even where there is none to find. With
    ``criterion="cv"`` its logarithm is compared with that of as many offsets, placed as well as
    can be, for normal noise around a single regression; the smallest number of experts within one
    standard error of the best is chosen.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_experts(400, 3, 3, random_state=0)
    >>> model = cs.SampleClusterRegressorCV((1, 2, 3, 4), random_state=0)
    >>> model.fit(problem.X, problem.y).n_clusters_
    3
    """

    _plain = SampleClusterRegressor

    @staticmethod
    def _compared(
        model: Any,
        single: Callable[[], Any],
        X: Any,
        y: Any,
        weights: Floats,
        offset: Floats | None,
    ) -> float:
        """Logarithm of the best-of-Q loss, less that of as many offsets for normal noise."""
        loss = max(model.best_loss(X, y, weights, offset), np.finfo(np.float64).tiny)
        return float(np.log(loss) - np.log(offset_loss(model.n_clusters_)))


@documented(
    (tables.ALL, tables.SAMPLES, tables.CLASSES, tables.SEARCH, tables.SAMPLE_SEARCH),
    (tables.SEARCHED, tables.OF_CLASSES, tables.FITTED, tables.OF_SAMPLES),
)
@fields_are_parameters
class SampleClusterClassifierCV(CountSearch, SampleClusterClassifier):  # type: ignore[misc]
    """Several linear classifiers, as many as the data call for.

    Attributes
    ----------
    selection_ : CountSelection
        The criterion for every number of experts.

    See Also
    --------
    SampleClusterClassifier : The model with a given number of experts.

    Notes
    -----
    With ``criterion="cv"`` the share of samples whose class no expert predicts is compared with
    that of a single classifier's first choices, as many as there are experts; the smallest number
    of experts within one standard error of the best is chosen.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_experts(
    ...     200, 3, 2, n_outputs=3, noise=0.1, classification=True, random_state=0
    ... )
    >>> model = cs.SampleClusterClassifierCV((1, 2), n_init=1, random_state=0)
    >>> model.fit(problem.X, problem.y).selection_.n_clusters.tolist()
    [1, 2]
    """

    _plain = SampleClusterClassifier

    @staticmethod
    def _compared(
        model: Any,
        single: Callable[[], Any],
        X: Any,
        y: Any,
        weights: Floats,
        offset: Floats | None,
    ) -> float:
        """Error of the experts' predictions, less that of a single classifier's first choices."""
        one = single()
        order = np.argsort(-one._weighted(place_matrix(one, X), offset), axis=1, kind="stable")
        choices = one.classes_[order[:, : model.n_clusters_]]
        missed = (choices != np.asarray(y)[:, None]).all(axis=1)
        mine = model.best_error(X, y, weights, offset)
        return mine - float(np.average(missed, weights=weights))
