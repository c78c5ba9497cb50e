"""Movie reviews with at most 15 distinct weights: error and time against ridge.

Both see the same splits, folds and alphas; times are of one thread, taken in turn.
"""

import statistics
from functools import partial
from typing import Any

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

import timing
from clustruct import FeatureClusterRegressor, FeatureClusterRegressorCV
from clustruct.datasets import fetch_movie_reviews
from report import Options, Table, Target

ALPHAS = np.geomspace(1e-2, 1e-5, 10)
N_CLUSTERS = tuple(range(5, 16))
N_SPLITS, N_FOLDS = 10, 5
GIVEN_ALPHA = 2e-4
OURS, THEIRS = "clustered", "ridge"

Record = dict[str, Any]


def measure(options: Options) -> list[Record]:
    """Errors on random splits, then times on the first of them."""
    X, y = fetch_movie_reviews(return_X_y=True)
    with threadpool_limits(1):
        records = [_errors(X, y, seed) for seed in range(2 if options.quick else N_SPLITS)]
        train, _ = _split(y.size, 0)
        X, y = X[train], y[train]
        repeats = 2 if options.quick else options.repeats
        records.append(_times("one fit, Q = 15", _one_fit(X, y), repeats))
        records.append(_times("grid", _grids(X, y), repeats))
    return records


def _split(n: int, seed: int) -> tuple[Any, Any]:
    """A random fifth to test on, the rest to fit."""
    order = np.random.default_rng(seed).permutation(n)
    return order[n // 5 :], order[: n // 5]


def _errors(X: Any, y: Any, seed: int) -> Record:
    """100 x the mean squared error of both on one split."""
    train, test = _split(y.size, seed)
    ours = _search(X[train], y[train])
    theirs = _ridge_search(X[train], y[train])
    return {
        "split": seed,
        "error": {
            name: _error(m, X[test], y[test]) for name, m in ((OURS, ours), (THEIRS, theirs))
        },
        "distinct": int(np.unique(ours.coef_).size),
        "chosen": {**ours.best_params_, "ridge alpha": theirs.alpha / train.size},
    }


def _error(model: Any, X: Any, y: Any) -> float:
    return float(100 * np.mean((model.predict(X) - y) ** 2))


def _search(X: Any, y: Any) -> FeatureClusterRegressorCV:
    model = FeatureClusterRegressorCV(N_CLUSTERS, alphas=ALPHAS, cv=N_FOLDS, random_state=0)
    return model.fit(X, y)


def _ridge(X: Any, y: Any, alpha: float) -> Ridge:
    return Ridge(alpha=alpha * y.size, solver="sparse_cg").fit(X, y)


def _ridge_grid(X: Any, y: Any) -> Any:
    """Mean error over the folds for each alpha."""
    errors = np.empty((ALPHAS.size, N_FOLDS))
    for f, (train, test) in enumerate(KFold(N_FOLDS, shuffle=True, random_state=0).split(X)):
        X_train, y_train, X_test, y_test = X[train], y[train], X[test], y[test]
        for a, alpha in enumerate(ALPHAS):
            errors[a, f] = _error(_ridge(X_train, y_train, alpha), X_test, y_test)
    return errors.mean(axis=1)


def _ridge_search(X: Any, y: Any) -> Ridge:
    return _ridge(X, y, ALPHAS[_ridge_grid(X, y).argmin()])


def _one_fit(X: Any, y: Any) -> dict[str, Any]:
    ours = FeatureClusterRegressor(15, alpha=GIVEN_ALPHA)
    return {OURS: partial(ours.fit, X, y), THEIRS: partial(_ridge, X, y, GIVEN_ALPHA)}


def _grids(X: Any, y: Any) -> dict[str, Any]:
    return {OURS: partial(_search, X, y), THEIRS: partial(_ridge_grid, X, y)}


def _times(call: str, calls: dict[str, Any], repeats: int) -> Record:
    """Medians of calls in turn; long ones are repeated too, as the ratio is what counts."""
    for one in calls.values():
        one()
    runs: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, one in calls.items():
            runs[name].append(timing.seconds(one))
    return {
        "call": call,
        "seconds": {n: statistics.median(t) for n, t in runs.items()},
        "runs": runs,
    }


def _ratio(record: Record, field: str) -> float:
    return float(record[field][OURS] / record[field][THEIRS])


def table(records: list[Record]) -> Table:
    """A row for each split and each time."""
    rows = []
    for record in records:
        if "split" in record:
            chosen = record["chosen"]
            field, name = "error", f"100 x MSE, split {record['split']}"
            note = f"Q = {chosen['n_clusters']}, {record['distinct']} values"
            note += f", alpha = {chosen['alpha']:.1e} x {chosen['relax']:g}"
        else:
            field, name, note = "seconds", f"seconds, {record['call']}", ""
        values = [f"{record[field][who]:.4g}" for who in (OURS, THEIRS)]
        rows.append([name, *values, f"{_ratio(record, field):.3f}", note])
    return Table(["", OURS, THEIRS, "ratio", "chosen"], rows)


def targets(records: list[Record]) -> list[Target]:
    """No worse than ridge, with few values and in little more time."""
    splits = [record for record in records if "split" in record]
    means = {who: np.mean([r["error"][who] for r in splits]) for who in (OURS, THEIRS)}
    better = sum(_ratio(r, "error") < 1.0 for r in splits)
    detail = f"{means[OURS]:.4f} and {means[THEIRS]:.4f}; better on {better} of {len(splits)}"
    times = {r["call"]: _ratio(r, "seconds") for r in records if "call" in r}
    return [
        Target("mean error / ridge", float(means[OURS] / means[THEIRS]), 1.0, detail=detail),
        Target("distinct weights", max(r["distinct"] for r in splits), 15),
        Target("one fit, Q = 15 / Ridge(sparse_cg)", times.get("one fit, Q = 15"), 3.0),
        Target("grid of 11 Q x 10 alpha x 5 folds / ridge's grid", times.get("grid"), 6.0),
    ]
