"""Fits along a grid of numbers of groups, alphas and numbers of nonzero weights."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from clustruct._docs import documented
from clustruct._finite import without_warnings
from clustruct._progress import counting, shown
from clustruct.estimators.columns.factors import FROM_DTYPE, Factor, FactorColumns
from clustruct.estimators.descriptions import ALL, ARGUMENTS, FEATURE_SEARCH, FEATURES
from clustruct.estimators.features.base import ordered_groups
from clustruct.estimators.features.grid import (
    Count,
    check_alphas,
    check_grid,
    choose_objective,
    fit_grid,
    price_grid,
    require_one_output,
)
from clustruct.estimators.features.models import FeatureClusterClassifier, FeatureClusterRegressor
from clustruct.estimators.intake import take_samples
from clustruct.estimators.search.engine import warn_of_unconverged
from clustruct.grouping.constraints import Constraint
from clustruct.losses import Loss, for_numbers
from clustruct.results import FeaturePath
from clustruct.solvers.features import FeatureOutcome


@documented((ALL, FEATURES, ARGUMENTS, FEATURE_SEARCH))
@without_warnings
def feature_cluster_path(
    X: ArrayLike,
    y: ArrayLike,
    *,
    n_clusters: Count | Sequence[Count] = None,
    prices: str | float | Sequence[float] | None = None,
    alphas: str | float | Sequence[float] = "auto",
    n_nonzero: int | Sequence[int | None] | None = None,
    loss: str | Loss = "squared",
    huber_delta: float = 1.35,
    tweedie_power: float = 1.5,
    quantile_level: float = 0.5,
    quantile_smoothing: float = 0.05,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    blocks: ArrayLike | None = None,
    constraint: Constraint | None = None,
    categorical_features: str | ArrayLike | None = FROM_DTYPE,
    factors: Mapping[str, str | Factor] | None = None,
    fit_intercept: bool = True,
    solver: str = "auto",
    init: str | ArrayLike = "auto",
    n_init: str | int = "auto",
    max_iter: int = 500,
    tol: float = 1e-6,
    solver_options: Mapping[str, Any] | None = None,
    random_state: int | np.random.RandomState | None = None,
    verbose: int | bool = 0,
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
    prices : "auto", float or sequence of float, default=None
        Prices of each group, in place of `n_clusters`, for data frames with columns of categories:
        what a further group has to lower the objective by. Each fit begins where that of the next
        larger price ended. "auto" begins where no factor has two groups.
    alphas : "auto", float or sequence of float, default="auto"
        Strengths of the ridge. "auto" takes ten on the scale of the loss; with prices, multiples of
        the ridge that empirical Bayes gives each factor.
    loss : str or Loss, default="squared"
        Loss, as in `FeatureClusterRegressor` and `FeatureClusterClassifier`.
    verbose : int or bool, default=0
        Whether to tell on standard error, now and then, how many fits are done.

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
    given = locals()
    kind = FeatureClusterRegressor if for_numbers(loss) else FeatureClusterClassifier
    names = given.keys() & set(kind._get_param_names()) - {"n_clusters", "n_nonzero"}
    model = kind(**{name: given[name] for name in names})
    model._validate_params()
    samples = model._settled(take_samples(model, X, y, sample_weight, offset))
    objective = choose_objective(samples.design, model._respond(samples), 0.0)
    factors_ = model.factors_
    if prices is None:
        grid = check_grid(n_clusters, check_alphas(alphas, objective), n_nonzero, constraint)
    else:
        _require_prices_alone(n_clusters, n_nonzero, factors_)
        priced = require_one_output(objective)
        grid = price_grid(prices, alphas, priced, cast(FactorColumns, factors_))
    method = model._method(objective.shape).quietly(solver)
    finish = partial(_fields, not model._many_outputs())
    fits = {}
    with shown(verbose), counting("fits", prod(grid.shape), measure="objective") as count:
        for place, fitted in fit_grid(objective, grid, model._blocks(), method, finish):
            fits[place] = fitted
            count.tick()
    in_order = (fits[place] for place in np.ndindex(grid.shape))
    every = [np.array(field) for field in zip(*in_order, strict=True)]
    shaped: list[Any] = [field.reshape(*grid.shape, *field.shape[1:]) for field in every]
    path = FeaturePath(grid.n_clusters, grid.alphas, grid.n_nonzero, *shaped)
    if factors_ is not None:
        path = replace(path, factors=tuple(factors_.factor_names), blocks=factors_.grouped)
    warn_of_unconverged(int((~path.converged).sum()), path.converged.size, max_iter)
    return path


def _require_prices_alone(n_clusters: Any, n_nonzero: Any, factors: FactorColumns | None) -> None:
    """Complain of prices beside other limits, or without factors."""
    for name, given in (("n_clusters", n_clusters), ("n_nonzero", n_nonzero)):
        if given is not None:
            raise ValueError(f"prices and {name} were given. Leave one of them None.")
    if factors is None:
        raise ValueError(
            "prices need columns of categories, which X does not have. Give n_clusters instead."
        )


def _fields(single: bool, outcome: FeatureOutcome) -> tuple[Any, ...]:
    """What a path keeps of a fit, in the order of its fields."""
    point = outcome.solution.point
    return (
        point.W[:, 0] if single else point.W.T,
        point.intercept[0] if single else point.intercept,
        ordered_groups(outcome.solution)[0],
        point.value,
        outcome.by_duality.lower_bound,
        outcome.status.converged,
    )
