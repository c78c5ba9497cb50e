"""Linear models without groups for losses other than squared: ridges of the same family."""

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.multioutput import MultiOutputRegressor

from clustruct._typing import Floats
from clustruct.estimators.features.search_models import FeatureClusterRegressorCV
from clustruct.losses import Loss
from clustruct.reporting.comparing.samples import Data

# Up to so many columns Newton's method with the whole Hessian is fast, and exact whatever the
# strength; beyond, its gradient method takes over.
MOST_NEWTON = 1500
# Largest entry of the gradient of the mean loss, beside the curvature, at which a fit ends. The
# default of scikit-learn, 1e-4, ends before rare levels have moved.
TOLERANCE = 1e-6
MOST_ITERATIONS = 300


def fit_family(loss: Loss, data: Data, strengths: Floats, splitter: Any) -> Any:
    """A ridge of the loss, fitted to data, with the strength that is best on the folds.

    Strengths are in units of the curvature of the mean loss. Where scikit-learn has no such model,
    it is ours without groups.
    """
    targets = _columns(data.y), _shares(data)
    unit = loss.with_targets(*targets).start_curvature(*targets)
    alphas = np.sort(unit * strengths)[::-1]
    weights = {} if data.weights is None else {"sample_weight": data.weights}
    if loss.ridge is None:
        alphas = alphas if splitter is not None else alphas[alphas.size // 2 :][:1]
        folds = 5 if splitter is None else splitter
        options: dict[str, Any] = {"alphas": alphas, "loss": loss, "cv": folds, "relax": 1.0}
        own = FeatureClusterRegressorCV((int(data.X.shape[1]),), **options)
        return own.fit(data.X, data.y, **weights)
    solver = "newton-cholesky" if data.X.shape[1] <= MOST_NEWTON else "lbfgs"
    plain = loss.ridge.set_params(
        solver=solver, tol=TOLERANCE * unit, max_iter=MOST_ITERATIONS, warm_start=True
    )
    best = alphas.size // 2 if splitter is None else _best(loss, plain, data, alphas, splitter)
    model = clone(plain).set_params(alpha=float(alphas[best]), warm_start=False)
    if data.y.ndim == 2:
        model = MultiOutputRegressor(model)
    return model.fit(data.X, data.y, **weights)


def _best(loss: Loss, plain: Any, data: Data, alphas: Floats, splitter: Any) -> int:
    """Place of the strength with the least mean loss on the folds, each a path from the largest."""
    total, shares = np.zeros(alphas.size), _shares(data)
    for fit, held in check_cv(splitter, data.y).split(data.X, data.y):
        mine, theirs = data.rows(fit), data.rows(held)
        for k in range(_columns(data.y).shape[1]):
            target = _columns(mine.y)[:, k]
            if not (target > 0.0).any():
                continue
            path = clone(plain)
            for place, alpha in enumerate(alphas):
                path.set_params(alpha=float(alpha))
                path.fit(mine.X, target, sample_weight=mine.weights)
                lost = loss.row_scores(
                    _columns(theirs.y)[:, [k]], path.predict(theirs.X).reshape(-1, 1)
                )
                total[place] += shares[held] @ lost
    return int(np.argmin(total))


def _columns(y: Any) -> Floats:
    return np.asarray(y, dtype=np.float64).reshape(len(y), -1)


def _shares(data: Data) -> Floats:
    weights = np.ones(data.n) if data.weights is None else np.asarray(data.weights, np.float64)
    return weights / weights.sum()
