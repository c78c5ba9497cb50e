"""The methods that the paper compares with: ridge, OSCAR and the lasso, each tuned on folds.

A choice at the end of a grid would be a sign that the grid is too short; so each tuned fit tells
where on its grid it was.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import Lasso, Ridge

from clustruct._typing import Floats

__all__ = ["Linear", "Tuned", "edge_matters", "lasso", "oscar", "oscar_version", "ridge", "tuned"]

Fold = tuple[NDArray[np.intp], NDArray[np.intp]]


# Share of the error by which the end of a grid has to be better than its neighbour to matter.
MARGIN = 1e-3


@dataclass(frozen=True)
class Linear:
    """Weights and an intercept."""

    coef: Floats
    intercept: float

    def predict(self, X: Any) -> Floats:
        """Answers."""
        return np.asarray(X @ self.coef) + self.intercept


@dataclass(frozen=True)
class Tuned:
    """A fit to all data with what was best on the folds.

    Attributes
    ----------
    model : Linear
    chosen : dict
    at_edge : bool
        Whether the strength chosen is an end of the grid, and a longer grid might matter.
    """

    model: Linear
    chosen: dict[str, float]
    at_edge: bool


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

    Parameters
    ----------
    X, y : arrays
    folds : sequence of (train, test)
    strengths : ndarray
        From large to small.
    paths : dict
        For each value of what else is chosen, a function from samples, answers and strengths to
        the models along the strengths.
    shape : str
        What the keys of `paths` are called.

    Returns
    -------
    Tuned
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
    """Whether the best of some errors is at an end, and by a margin.

    Where strengths go to zero, errors settle: the end of such a grid is as good as any beyond.
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
    """The lasso; strengths are fractions of the least one that leaves no weight."""

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
    try:
        return version("sortedl1")
    except PackageNotFoundError:
        return None


def oscar(
    X: Any,
    y: Floats,
    folds: Sequence[Fold],
    ratios: Floats,
    slopes: Sequence[float],
    *,
    intercept: bool,
    solver: str,
    tol: float,
    max_iter: int,
) -> Tuned:
    """OSCAR (Bondell and Reich, 2008), by the package sortedl1.

    Its penalty is ``sum_j (1 + slope (d - j) / d) |w|_(j)`` over the sorted sizes; strengths are
    fractions of the least one that leaves no weight. Slopes run from nearly the lasso to where
    the ranks alone matter. `solver`, `tol` and `max_iter` are those of
    the package.
    """
    from sortedl1 import Slope

    def path_with(slope: float) -> Path:
        def path(X: Any, y: Floats, strengths: Floats) -> Iterator[Linear]:
            d = X.shape[1]
            weights = 1.0 + slope * np.arange(d)[::-1] / d
            matrix = sparse.csc_matrix(X) if sparse.issparse(X) else np.asfortranarray(X)
            slack = np.sort(np.abs(np.ravel(matrix.T @ (y - intercept * y.mean()))))[::-1] / y.size
            top = float(np.max(np.cumsum(slack) / np.cumsum(weights)))
            model = Slope(
                lam=weights, fit_intercept=intercept, tol=tol, max_iter=max_iter, solver=solver
            )
            # Neither rule that ends a path early: every strength of the grid is to be scored.
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
