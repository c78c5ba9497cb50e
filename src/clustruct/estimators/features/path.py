"""Fits along a grid of numbers of groups, alphas and numbers of nonzero weights."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clustruct._docs import documented
from clustruct._finite import without_warnings
from clustruct.estimators.descriptions import ALL, ARGUMENTS, FEATURE_SEARCH, FEATURES
from clustruct.estimators.features.base import ordered_groups
from clustruct.estimators.features.grid import (
    Count,
    check_alphas,
    check_grid,
    choose_objective,
    fit_grid,
)
from clustruct.estimators.features.models import (
    FeatureClusterClassifier,
    FeatureClusterRegressor,
)
from clustruct.estimators.intake import take_samples
from clustruct.estimators.search.engine import warn_of_unconverged
from clustruct.grouping.constraints import Constraint
from clustruct.losses import Loss, for_numbers
from clustruct.results import FeaturePath
from clustruct.solvers.features import FeatureOutcome

__all__ = ["feature_cluster_path"]


@documented((ALL, FEATURES, ARGUMENTS, FEATURE_SEARCH))
@without_warnings
def feature_cluster_path(
    X: ArrayLike,
    y: ArrayLike,
    *,
    n_clusters: Count | Sequence[Count],
    alphas: str | float | Sequence[float] = "auto",
    n_nonzero: int | Sequence[int | None] | None = None,
    loss: str | Loss = "squared",
    huber_delta: float = 1.35,
    sample_weight: ArrayLike | None = None,
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
) -> FeaturePath:
    """Fit grouped features for every number of groups, alpha and number of nonzero weights.

    Alphas are taken from large to small. The weights without constraint, where the search for
    groups begins, are found once for each alpha, starting from those of the alpha before.

    Parameters
    ----------
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Targets; classes with ``loss="logistic"``.
    n_clusters : int or sequence
        Numbers of groups; with `blocks`, each an integer or a mapping. None is a weight for every
        feature.
    alphas : "auto", float or sequence of float, default="auto"
        Strengths of the ridge. "auto" takes ten on the scale of the loss.
    loss : {"squared", "huber", "logistic"} or Loss, default="squared"
        Loss, as in `FeatureClusterRegressor` and `FeatureClusterClassifier`.

    Returns
    -------
    FeaturePath
        Weights, groups, objectives and lower bounds at every point of the grid.

    See Also
    --------
    FeatureClusterRegressorCV : Chooses a point of the grid.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_clustered_features(200, 20, 3, random_state=0)
    >>> path = cs.feature_cluster_path(
    ...     problem.X, problem.y, n_clusters=(1, 2, 3, 4), alphas=(1e-1, 1e-3)
    ... )
    >>> path.objectives.argmin(axis=1).ravel().tolist()  # the smaller ridge, of course
    [1, 1, 1, 1]
    >>> bool((path.labels[2, 1, 0] == problem.labels).all())
    True
    """
    shared: dict[str, Any] = {
        "loss": loss,
        "blocks": blocks,
        "constraint": constraint,
        "fit_intercept": fit_intercept,
        "solver": solver,
        "init": init,
        "n_init": n_init,
        "max_iter": max_iter,
        "tol": tol,
        "solver_options": solver_options,
        "random_state": random_state,
    }
    model: FeatureClusterClassifier | FeatureClusterRegressor
    if for_numbers(loss):
        model = FeatureClusterRegressor(**shared, huber_delta=huber_delta)
    else:
        model = FeatureClusterClassifier(**shared)
    model._validate_params()
    samples = take_samples(model, X, y, sample_weight)
    objective = choose_objective(samples.design, model._respond(samples), 0.0)
    grid = check_grid(n_clusters, check_alphas(alphas, objective), n_nonzero, constraint)
    method = model._method(objective.shape).quietly(solver)
    path = _empty_path(grid.n_clusters, grid.alphas, grid.n_nonzero, objective.shape)
    for place, outcome in fit_grid(objective, grid, blocks, method, _certified):
        path.coefs[place] = outcome.solution.point.W.T
        path.intercepts[place] = outcome.solution.point.intercept
        path.labels[place], _ = ordered_groups(outcome.solution)
        path.objectives[place] = outcome.solution.point.value
        path.lower_bounds[place] = outcome.certificate.lower_bound
        path.converged[place] = outcome.status.converged
    warn_of_unconverged(int((~path.converged).sum()), path.converged.size, max_iter)
    return path if model._many_outputs() else _without_outputs(path)


def _certified(outcome: FeatureOutcome) -> FeatureOutcome:
    """An outcome whose certificate has been computed."""
    assert outcome.certificate is not None
    return outcome


def _empty_path(
    n_clusters: tuple[Count, ...],
    alphas: NDArray[np.float64],
    n_nonzero: tuple[int | None, ...],
    shape: tuple[int, int],
) -> FeaturePath:
    """Room for all fits."""
    n_features, n_outputs = shape
    places = (len(n_clusters), alphas.size, len(n_nonzero))
    return FeaturePath(
        n_clusters=n_clusters,
        alphas=alphas,
        n_nonzero=n_nonzero,
        coefs=np.empty((*places, n_outputs, n_features)),
        intercepts=np.empty((*places, n_outputs)),
        labels=np.empty((*places, n_features), dtype=np.intp),
        objectives=np.empty(places),
        lower_bounds=np.empty(places),
        converged=np.empty(places, dtype=bool),
    )


def _without_outputs(path: FeaturePath) -> FeaturePath:
    """The same without the axis of outputs, where there is one."""
    fields = {**vars(path), "coefs": path.coefs[..., 0, :], "intercepts": path.intercepts[..., 0]}
    return FeaturePath(**fields)
