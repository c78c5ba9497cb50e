"""The methods that the paper compares with: ridge, OSCAR and the lasso, each tuned on folds.

Each tuned fit reports whether its choice was at the end of a grid, which may then be too short.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import Lasso, Ridge

from clustruct._typing import Floats
from clustruct.experiments.environment import installed_version

Fold = tuple[NDArray[np.intp], NDArray[np.intp]]
# Share of the error by which the end of a grid has to be better than its neighbour to matter.
MARGIN = 1e-3


@dataclass(frozen=True)
class Linear:
    """Weights and an intercept."""

    coef: Floats
    intercept: float

    def predict(self, X: Any) -> Floats:
        """Predictions."""
        return np.asarray(X @ self.coef) + self.intercept


@dataclass(frozen=True)
class Tuned:
    """A fit to all samples with the parameters that were best on the folds."""

    model: Linear
    chosen: dict[str, float]
    at_edge: bool  # whether the strength is an end of the grid, and a longer one might matter


Path = Callable[[Any, Floats, Floats], Iterator[Linear]]


def tuned(
    X: Any,
    y: Floats,
    folds: Sequence[Fold],
    strengths: Floats,
    paths: dict[float, Path],
    *,
    shape: str = "shape",
) -> Tuned:
    """Choose one of several paths and a strength on it by the mean squared error on folds.

    Strengths are in descending order. A path maps samples, targets and strengths to models; the
    keys of `paths` are the values of a further parameter, called `shape`.
    """
    errors = {key: np.zeros(strengths.size) for key in paths}
    for train, test in folds:
        X_train, X_test = X[train], X[test]
        for key, path in paths.items():
            for i, model in enumerate(path(X_train, y[train], strengths)):
                errors[key][i] += np.square(model.predict(X_test) - y[test]).sum()
    key = min(errors, key=lambda k: errors[k].min())
    best = int(errors[key].argmin())
    *_, model = paths[key](X, y, strengths[: best + 1])
    chosen = {"strength": float(strengths[best])}
    if len(paths) > 1:
        chosen[shape] = float(key)
    return Tuned(model, chosen, at_edge=edge_matters(errors[key]))


def edge_matters(errors: Floats) -> bool:
    """Whether the smallest error is at an end of the grid, and better by a margin.

    As strengths go to zero the errors settle, and the end is as good as any value beyond it.
    """
    best = int(np.argmin(errors))
    if best not in (0, errors.size - 1) or errors.size == 1:
        return False
    neighbour = errors[1] if best == 0 else errors[-2]
    return bool(neighbour > errors[best] * (1 + MARGIN))


def ridge(X: Any, y: Floats, folds: Sequence[Fold], alphas: Floats, *, intercept: bool) -> Tuned:
    """Ridge regression, on the scale of the mean loss: the paper's least squares."""
    solver = "sparse_cg" if sparse.issparse(X) else "cholesky" if X.shape[1] < 300 else "auto"

    def path(X: Any, y: Floats, strengths: Floats) -> Iterator[Linear]:
        for alpha in strengths:
            model = Ridge(alpha=alpha * y.size, solver=solver, fit_intercept=intercept).fit(X, y)
            yield Linear(model.coef_, float(np.ravel(model.intercept_)[0]))

    return tuned(X, y, folds, alphas, {0.0: path})


def lasso(X: Any, y: Floats, folds: Sequence[Fold], ratios: Floats) -> Tuned:
    """The lasso; strengths are fractions of the smallest one for which all weights are zero."""

    def path(X: Any, y: Floats, strengths: Floats) -> Iterator[Linear]:
        columns = sparse.csc_matrix(X) if sparse.issparse(X) else X
        top = float(np.abs(np.ravel(columns.T @ (y - y.mean()))).max()) / y.size
        model = Lasso(warm_start=True, tol=1e-3)
        for strength in strengths:
            model.set_params(alpha=top * strength).fit(columns, y)
            yield Linear(model.coef_.copy(), float(model.intercept_))

    return tuned(X, y, folds, ratios, {0.0: path})


def oscar_version() -> str | None:
    """Version of the package that fits OSCAR; None if it is not installed."""
    return installed_version("sortedl1")


def oscar(
    X: Any,
    y: Floats,
    folds: Sequence[Fold],
    ratios: Floats,
    slopes: Sequence[float],
    *,
    intercept: bool,
    **how: Any,
) -> Tuned:
    """OSCAR (Bondell and Reich, 2008), by the package sortedl1; `how` sets up its solver.

    Its penalty is ``sum_j (1 + slope (d - j) / d) |w|_(j)`` over the sorted absolute weights;
    strengths are fractions of the smallest one for which all weights are zero. Small slopes are
    close to the lasso; for large ones only the ranks matter.
    """
    from sortedl1 import Slope

    def path_with(slope: float) -> Path:
        def path(X: Any, y: Floats, strengths: Floats) -> Iterator[Linear]:
            d = X.shape[1]
            weights = 1.0 + slope * np.arange(d)[::-1] / d
            matrix = sparse.csc_matrix(X) if sparse.issparse(X) else np.asfortranarray(X)
            slack = np.sort(np.abs(np.ravel(matrix.T @ (y - intercept * y.mean()))))[::-1] / y.size
            top = float(np.max(np.cumsum(slack) / np.cumsum(weights)))
            model = Slope(lam=weights, fit_intercept=intercept, **how)
            # Neither rule may end the path early: every strength is scored.
            found = model.path(
                matrix,
                y,
                alphas=top * strengths,
                tol_dev_ratio=1.0,
                tol_dev_change=0.0,
                max_clusters=d + y.size,
            )
            coefs = np.asarray(found.coefs).reshape(d, strengths.size)
            shifts = np.ravel(found.intercepts) if intercept else np.zeros(strengths.size)
            for coef, shift in zip(coefs.T, shifts, strict=True):
                yield Linear(coef, float(shift))

        return path

    return tuned(X, y, folds, ratios, {s: path_with(s) for s in slopes}, shape="slope")
