"""Linear models with grouped features that choose the number of groups and the ridge."""

from typing import Any, ClassVar

from clustruct._docs import documented
from clustruct.estimators import descriptions as tables
from clustruct.estimators.common import fields_are_parameters
from clustruct.estimators.features.models import FeatureClusterClassifier, FeatureClusterRegressor
from clustruct.estimators.features.search import Search


@documented(
    (tables.ALL, tables.FEATURES, tables.SEARCH, tables.FEATURE_SEARCH),
    (tables.OF_RIDGE, tables.OF_NUMBERS, tables.SEARCHED, tables.FITTED, tables.OF_FEATURES),
    (tables.ARGUMENTS,),
)
@fields_are_parameters
class FeatureClusterRegressorCV(Search, FeatureClusterRegressor):
    """Linear regression with grouped features that chooses the number of groups and the ridge.

    `FeatureClusterRegressor` with a search over all combinations of the number of groups, alpha and
    the number of nonzero weights, then fitted to all samples with the best of them.

    See Also
    --------
    FeatureClusterRegressor : The same for a given number of groups and ridge.
    feature_cluster_path : The fits on a grid, without scores.

    Notes
    -----
    **Relaxed values.** The ridge has two tasks: it keeps the search for groups from following the
    noise, and it shrinks the values. A few values need much less shrinking than a weight for every
    feature. So groups are found with alpha and their values then fitted with each fraction of it in
    `relax`, as in the relaxed lasso; this costs next to nothing. ``relax=1.0`` gives the fits of
    `FeatureClusterRegressor` as they are. `cv_results_` holds, for each point of the grid, the
    scores with the fraction that was best for it.

    **The search is quicker than the final fit.** Hundreds of fits are only scored. With
    ``search_solver="auto"`` they take fewer trials and end at small gains; where a trial takes a
    pass over ``X``, they group the weights without constraint and refit the groups, but do not
    improve the groups step by step. The final fit does, which lowers the objective by a fraction of
    a percent and hardly changes the scores. Set `search_solver` to the name of `solver` to score
    just what is fitted in the end. Weights without constraint are found once for each alpha and
    fold, starting from those of the next larger alpha.

    **The rule "fewest"** compares points on the same folds. A number of groups, at its best alpha,
    is clearly worse than the best point if the mean difference of their scores is more than one
    standard error, corrected for what the folds have in common, or more than three hundredths of
    the best score. Of the others the smallest number is taken.

    **BIC** counts the values of the groups and the intercept as degrees of freedom. It does not
    count what the ridge shrinks, so that it tends to the smallest alpha. Nor does it count the
    choice of the groups among all partitions, which is far from free: to split a group of many
    features along the noise in their weights lowers the loss by more than the price of a parameter,
    so that BIC takes too many groups unless these are small. The extended BIC adds that price,
    twice the logarithm of the number of partitions into as many groups; where the signal is weak,
    it takes too few groups. Cross-validation does neither.

    Samples of weight zero are removed before the folds are made. Integer weights are the same as
    repeated samples if the copies of a sample stay in one fold (`groups`).

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_clustered_features(200, 20, 3, random_state=0)
    >>> model = cs.FeatureClusterRegressorCV(range(1, 7), rule="one_se", random_state=0)
    >>> model.fit(problem.X, problem.y).best_params_["n_clusters"]
    3
    >>> bool((model.labels_ == problem.labels).all())
    True
    """

    _plain: ClassVar[Any] = FeatureClusterRegressor


@documented(
    (tables.ALL, tables.FEATURES, tables.CLASSES, tables.SEARCH, tables.FEATURE_SEARCH),
    (tables.OF_RIDGE, tables.OF_CLASS_WEIGHTS, tables.SEARCHED, tables.FITTED, tables.OF_FEATURES),
    (tables.ARGUMENTS, tables.CLASS_ARGUMENTS),
)
@fields_are_parameters
class FeatureClusterClassifierCV(Search, FeatureClusterClassifier):
    """Linear classification with grouped features that chooses the number of groups and the ridge.

    `FeatureClusterClassifier` with a search over all combinations of the number of groups, alpha
    and the number of nonzero weights, then fitted to all samples with the best of them.

    See Also
    --------
    FeatureClusterClassifier : The same for a given number of groups and ridge.
    FeatureClusterRegressorCV : The same for numbers; its notes describe the search.

    Notes
    -----
    **Most points are scored without a fit.** With ``search_solver="auto"``, a logistic loss,
    positive alphas and samples in memory, all points are first scored on the held-out samples with
    values of their groups by a quadratic model of the loss, made at the weights without constraint
    of each fold and alpha. The best points are then fitted on all folds, and more of them until no
    other could be chosen, as far as the errors of the model that were seen tell.
    ``cv_results_.exact`` says which points were fitted. The point chosen always is, and so is the
    best one beside it where it is at an end of the grid. Scores of the other points are those of
    the model, which may be off either way, most where few samples are all but separated.
    ``search_solver="greedy"`` fits every point.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_clustered_features(
    ...     300, 12, 2, low=-2, high=2, classification=True, random_state=1
    ... )
    >>> model = cs.FeatureClusterClassifierCV((1, 2, 3), alphas=(1e-1, 1e-2), random_state=0)
    >>> model.fit(problem.X, problem.y).best_params_["n_clusters"]
    2
    """

    _plain: ClassVar[Any] = FeatureClusterClassifier
