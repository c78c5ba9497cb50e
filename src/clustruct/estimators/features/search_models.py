"""Linear models with grouped features that choose the number of groups and the ridge."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from clustruct.estimators.features.grid import (
    Count,
)
from clustruct.estimators.features.models import (
    FeatureClusterClassifier,
    FeatureClusterRegressor,
)
from clustruct.estimators.features.search import Search, constraints_of
from clustruct.estimators.search.engine import set_parameters
from clustruct.grouping.constraints import Constraint
from clustruct.losses import Loss
from clustruct.solvers.driver import Callback

__all__ = ["FeatureClusterClassifierCV", "FeatureClusterRegressorCV"]

N_CLUSTERS = tuple(range(2, 16))
RELAX = (1.0, 0.5, 0.25, 0.125)


class FeatureClusterRegressorCV(Search, FeatureClusterRegressor):
    """Linear regression with grouped features that chooses the number of groups and the ridge.

    `FeatureClusterRegressor` with a search over all combinations of the number of groups, alpha and
    the number of nonzero weights, then fitted to all samples with the best of them.

    Parameters
    ----------
    n_clusters : int or sequence, default=(2, 3, ..., 15)
        Numbers of groups to try; with `blocks`, each an integer or a mapping. None is a weight for
        every feature, without groups.
    alphas : "auto", float or sequence of float, default="auto"
        Strengths of the ridge to try. "auto" takes ten, half a decade apart, on the scale of the
        loss: from ten times its mean curvature (for squared loss the mean variance of the
        columns) down.
    n_nonzero : int, None or sequence, default=None
        Largest numbers of nonzero weights to try; None for no limit.
    relax : float or sequence of float, default=(1.0, 0.5, 0.25, 0.125)
        Fractions of alpha to try for the values of the groups, see Notes.
    cv : int, splitter or iterable, default=5
        Number of folds, a splitter of scikit-learn, or pairs of indices. An
        integer makes shuffled folds where `random_state` is given, and folds in the order of the
        samples otherwise.
    scoring : str or callable, default=None
        Score to maximise, a name that scikit-learn knows or a function of model, samples and
        targets. None takes ``"neg_mean_squared_error"``.
        It is weighted by `sample_weight` where it takes weights.
    rule : {"best", "fewest", "one_se"}, default="best"
        The point with the best mean score; the best one with the fewest groups that are not clearly
        worse, see Notes; or the simplest one within a standard error of the best: with the fewest
        groups, then the fewest nonzero weights, then the largest alpha.
    criterion : {"cv", "bic", "ebic"}, default="cv"
        Cross-validation, or the plain or extended Bayesian information criterion of fits to all
        samples, which is quicker, see Notes.
    search_solver : str, default="auto"
        Solver of the fits that are scored. "auto" takes `solver`; where that is "auto" or "soft",
        it takes "pg" with few trials if the Gram matrix is at hand, and "greedy" otherwise; see
        Notes.
    n_jobs : int, default=None
        Folds that are worked on at the same time, as in joblib. The result is the same to the last
        bit.
    loss : {"squared", "huber"} or Loss, default="squared"
        Half the squared residual, or linear beyond `huber_delta`, or your own.
    huber_delta : float, default=1.35
        Residual at which the Huber loss turns linear, in the units of ``y``.
    blocks : array-like of shape (n_features,), default=None
        A block for each feature: weights are shared only inside a block. -1 leaves a feature alone.
    constraint : object, default=None
        A set of weights with its projection, see "Extending". It replaces the one that
        `n_clusters`, `n_nonzero` and `blocks` make; a search then varies alpha only.
    fit_intercept : bool, default=True
        Whether to add an intercept, which is neither penalised nor clustered.
    solver : {"auto", "greedy", "pg", "cg", "cgpg", "soft"}, default="auto"
        How the groups are found in the final fit, as in `FeatureClusterRegressor`.
    init : {"auto", "greedy", "zeros"} or array-like, default="auto"
        Where ``"pg"`` begins.
    n_init : "auto" or int, default="auto"
        Number of starts of ``"pg"`` and ``"soft"``.
    max_iter : int, default=500
        Largest number of steps of a solver.
    tol : float, default=1e-6
        A solver stops when a step gains less than this fraction of the objective.
    solver_options : dict, default=None
        Options of the solver.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds and of the random starts.
    verbose : int or bool, default=0
        1 writes a line to standard error for each fold that is done, with the time spent and left;
        2 also prints each step of the final fit.
    callback : callable, default=None
        Called with each `Iteration` of a fit to all samples; returning True ends that fit.

    Attributes
    ----------
    best_params_ : dict
        What was chosen: ``n_clusters``, ``alpha``, ``n_nonzero`` and ``relax``.
    best_score_ : float
        Mean score of it over the folds, or its negative BIC.
    best_index_ : int
        Its index into the columns of `cv_results_`.
    alpha_ : float
        The ridge chosen; the values of the groups are fitted with ``relax_ * alpha_``.
    relax_ : float
        The fraction chosen.
    cv_results_ : SearchResult
        All scores, ``pandas.DataFrame(model.cv_results_)``.
    coef_ : ndarray of shape (n_features,) or (n_outputs, n_features)
        Weights.
    intercept_ : float or ndarray of shape (n_outputs,)
        Intercept.
    labels_ : ndarray of shape (n_features,)
        Group of each feature, -1 for weight zero by `n_nonzero`.
    cluster_values_ : ndarray of shape (n_groups,) or (n_groups, n_outputs)
        Weight of each group, ascending.
    cluster_sizes_ : ndarray of shape (n_groups,)
        Number of features in each group.
    n_clusters_ : int
        Groups in use.
    objective_ : float
        Objective at the weights, with the ridge ``relax_ * alpha_``.
    certificate_ : Certificate
        A proven lower bound of the best possible value of it, and the gap.
    n_iter_ : int
        Steps of the solver in the final fit.
    status_ : Status
        What was done in the final fit and how it ended.
    trace_ : tuple of Iteration
        Objective, step and time of each step of the final fit, before values are relaxed.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if they are strings.

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
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = constraints_of(FeatureClusterRegressor)

    def __init__(
        self,
        n_clusters: Count | Sequence[Count] = N_CLUSTERS,
        *,
        alphas: str | float | Sequence[float] = "auto",
        n_nonzero: int | Sequence[int | None] | None = None,
        relax: float | Sequence[float] = RELAX,
        cv: int | Iterable[Any] | Any = 5,
        scoring: str | Callable[..., float] | None = None,
        rule: str = "best",
        criterion: str = "cv",
        search_solver: str = "auto",
        n_jobs: int | None = None,
        loss: str | Loss = "squared",
        huber_delta: float = 1.35,
        blocks: ArrayLike | None = None,
        constraint: Constraint | None = None,
        fit_intercept: bool = True,
        solver: str = "auto",
        init: str | ArrayLike = "auto",
        n_init: str | int = "auto",
        max_iter: int = 500,
        tol: float = 1e-6,
        solver_options: Mapping[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int | bool = 0,
        callback: Callback | None = None,
    ) -> None:
        set_parameters(self, locals())


class FeatureClusterClassifierCV(Search, FeatureClusterClassifier):
    """Linear classification with grouped features that chooses the number of groups and the ridge.

    `FeatureClusterClassifier` with a search over all combinations of the number of groups, alpha
    and the number of nonzero weights, then fitted to all samples with the best of them.

    Parameters
    ----------
    n_clusters : int or sequence, default=(2, 3, ..., 15)
        Numbers of groups to try; with `blocks`, each an integer or a mapping. None is a weight for
        every feature, without groups.
    alphas : "auto", float or sequence of float, default="auto"
        Strengths of the ridge to try. "auto" takes ten, half a decade apart, on the scale of the
        loss: from ten times its mean curvature (for squared loss the mean variance of the
        columns) down.
    n_nonzero : int, None or sequence, default=None
        Largest numbers of nonzero weights to try; None for no limit.
    relax : float or sequence of float, default=(1.0, 0.5, 0.25, 0.125)
        Fractions of alpha to try for the values of the groups, see Notes.
    cv : int, splitter or iterable, default=5
        Number of folds, stratified by class, a splitter of scikit-learn, or pairs of indices. An
        integer makes shuffled folds where `random_state` is given, and folds in the order of the
        samples otherwise.
    scoring : str or callable, default=None
        Score to maximise, a name that scikit-learn knows or a function of model, samples and
        targets. None takes ``"neg_log_loss"``, or ``"accuracy"`` with squared loss.
        It is weighted by `sample_weight` where it takes weights.
    rule : {"best", "fewest", "one_se"}, default="best"
        The point with the best mean score; the best one with the fewest groups that are not clearly
        worse, see Notes; or the simplest one within a standard error of the best: with the fewest
        groups, then the fewest nonzero weights, then the largest alpha.
    criterion : {"cv", "bic", "ebic"}, default="cv"
        Cross-validation, or the plain or extended Bayesian information criterion of fits to all
        samples, which is quicker, see Notes.
    search_solver : str, default="auto"
        Solver of the fits that are scored. "auto" takes `solver`; where that is "auto" or "soft",
        it takes "pg" with few trials if the Gram matrix is at hand, and "greedy" otherwise; see
        Notes.
    n_jobs : int, default=None
        Folds that are worked on at the same time, as in joblib. The result is the same to the last
        bit.
    loss : {"logistic", "squared"} or Loss, default="logistic"
        Logistic (multinomial for more than two classes), squared on targets -1 and 1, or your own.
    class_weight : dict or "balanced", default=None
        Weights of the classes, which multiply those of the samples in the fits, not in the scores.
    blocks : array-like of shape (n_features,), default=None
        A block for each feature: weights are shared only inside a block. -1 leaves a feature alone.
    constraint : object, default=None
        A set of weights with its projection, see "Extending". It replaces the one that
        `n_clusters`, `n_nonzero` and `blocks` make; a search then varies alpha only.
    fit_intercept : bool, default=True
        Whether to add an intercept, which is neither penalised nor clustered.
    solver : {"auto", "greedy", "pg", "cg", "cgpg", "soft"}, default="auto"
        How the groups are found in the final fit, as in `FeatureClusterRegressor`.
    init : {"auto", "greedy", "zeros"} or array-like, default="auto"
        Where ``"pg"`` begins.
    n_init : "auto" or int, default="auto"
        Number of starts of ``"pg"`` and ``"soft"``.
    max_iter : int, default=500
        Largest number of steps of a solver.
    tol : float, default=1e-6
        A solver stops when a step gains less than this fraction of the objective.
    solver_options : dict, default=None
        Options of the solver.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds and of the random starts.
    verbose : int or bool, default=0
        1 writes a line to standard error for each fold that is done, with the time spent and left;
        2 also prints each step of the final fit.
    callback : callable, default=None
        Called with each `Iteration` of a fit to all samples; returning True ends that fit.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    best_params_ : dict
        What was chosen: ``n_clusters``, ``alpha``, ``n_nonzero`` and ``relax``.
    best_score_ : float
        Mean score of it over the folds, or its negative BIC.
    best_index_ : int
        Its index into the columns of `cv_results_`.
    alpha_ : float
        The ridge chosen; the values of the groups are fitted with ``relax_ * alpha_``.
    relax_ : float
        The fraction chosen.
    cv_results_ : SearchResult
        All scores, ``pandas.DataFrame(model.cv_results_)``.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
    labels_ : ndarray of shape (n_features,)
        Group of each feature, -1 for weight zero by `n_nonzero`.
    cluster_values_ : ndarray of shape (n_groups,) or (n_groups, n_classes)
        Weight of each group, ascending.
    cluster_sizes_ : ndarray of shape (n_groups,)
        Number of features in each group.
    n_clusters_ : int
        Groups in use.
    objective_ : float
        Objective at the weights, with the ridge ``relax_ * alpha_``.
    certificate_ : Certificate
        A proven lower bound of the best possible value of it, and the gap.
    n_iter_ : int
        Steps of the solver in the final fit.
    status_ : Status
        What was done in the final fit and how it ended.
    trace_ : tuple of Iteration
        Objective, step and time of each step of the final fit, before values are relaxed.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if they are strings.

    See Also
    --------
    FeatureClusterClassifier : The same for a given number of groups and ridge.
    FeatureClusterRegressorCV : The same for numbers; its notes describe the search.

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
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = constraints_of(
        FeatureClusterClassifier
    )

    def __init__(
        self,
        n_clusters: Count | Sequence[Count] = N_CLUSTERS,
        *,
        alphas: str | float | Sequence[float] = "auto",
        n_nonzero: int | Sequence[int | None] | None = None,
        relax: float | Sequence[float] = RELAX,
        cv: int | Iterable[Any] | Any = 5,
        scoring: str | Callable[..., float] | None = None,
        rule: str = "best",
        criterion: str = "cv",
        search_solver: str = "auto",
        n_jobs: int | None = None,
        loss: str | Loss = "logistic",
        class_weight: Mapping[Any, float] | str | None = None,
        blocks: ArrayLike | None = None,
        constraint: Constraint | None = None,
        fit_intercept: bool = True,
        solver: str = "auto",
        init: str | ArrayLike = "auto",
        n_init: str | int = "auto",
        max_iter: int = 500,
        tol: float = 1e-6,
        solver_options: Mapping[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int | bool = 0,
        callback: Callback | None = None,
    ) -> None:
        set_parameters(self, locals())
