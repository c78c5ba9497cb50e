"""Estimators on adversarial samples, targets, weights and types.

A fit ends with finite numbers, with an objective that equals its recomputation and with finite
predictions, or with an error that names an argument and a remedy.
"""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

import clustruct as cs
from fuzz.cases import Fault, Random, Recipe, Target
from fuzz.messages import is_useless
from fuzz.shrinking import with_entry, without_parts
from fuzz.values import Floats
from tests.brute_force import huber, logistic, multinomial, squared, tweedie

Edit = list[Any]

# ---- Models. Searches look at few settings, so that hours hold thousands of fits.

_QUICK = {"random_state": 0, "max_iter": 60}
_SEARCH = {"cv": 2, "random_state": 0, "max_iter": 60}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "features": ("FeatureClusterRegressor", {"n_clusters": 2, **_QUICK}),
    "features, sparse": ("FeatureClusterRegressor", {"n_clusters": 2, "n_nonzero": 2, **_QUICK}),
    "features, bare": (
        "FeatureClusterRegressor",
        {"n_clusters": 2, "fit_intercept": False, **_QUICK},
    ),
    "features, huber": ("FeatureClusterRegressor", {"n_clusters": 2, "loss": "huber", **_QUICK}),
    "features, poisson": (
        "FeatureClusterRegressor",
        {"n_clusters": 2, "loss": "poisson", **_QUICK},
    ),
    "features, pg": ("FeatureClusterRegressor", {"n_clusters": 3, "solver": "pg", **_QUICK}),
    "features, cgpg": ("FeatureClusterRegressor", {"n_clusters": 3, "solver": "cgpg", **_QUICK}),
    "features, greedy": (
        "FeatureClusterRegressor",
        {"n_clusters": 3, "solver": "greedy", **_QUICK},
    ),
    "features, no ridge": ("FeatureClusterRegressor", {"n_clusters": 2, "alpha": 0.0, **_QUICK}),
    "classes": ("FeatureClusterClassifier", {"n_clusters": 2, **_QUICK}),
    "features, search": (
        "FeatureClusterRegressorCV",
        {"n_clusters": (1, 2), "alphas": (1e-3, 1e-1), **_SEARCH},
    ),
    "classes, search": (
        "FeatureClusterClassifierCV",
        {"n_clusters": (1, 2), "alphas": (1e-3, 1e-1), **_SEARCH},
    ),
    "experts": ("SampleClusterRegressor", {"n_clusters": 2, **_QUICK}),
    "experts, huber": ("SampleClusterRegressor", {"n_clusters": 2, "loss": "huber", **_QUICK}),
    "experts, classes": ("SampleClusterClassifier", {"n_clusters": 2, **_QUICK}),
    "experts, search": ("SampleClusterRegressorCV", {"n_clusters": (1, 2), **_SEARCH}),
    "experts, classes, search": (
        "SampleClusterClassifierCV",
        {"n_clusters": (1, 2), **_SEARCH},
    ),
    "tasks": ("TaskClusterRegressor", {"n_clusters": 2, **_QUICK}),
    "tasks, bare": (
        "TaskClusterRegressor",
        {"n_clusters": 2, "fit_intercept": False, "alpha_within": 1.0, **_QUICK},
    ),
    "tasks, em": ("TaskClusterRegressor", {"n_clusters": 2, "solver": "em", **_QUICK}),
    "tasks, classes": ("TaskClusterClassifier", {"n_clusters": 2, **_QUICK}),
    "tasks, search": ("TaskClusterRegressorCV", {"n_clusters": (1, 2), **_SEARCH}),
}
N_TASKS = 3

# ---- Recipes

AMOUNTS = (1e-300, 1e-160, 1e-8, 1e3, 1e8, 1e12, 1e15, 1e17, 1e100, 1e160, 1e300, 1.7e308)
FORMS = (
    "array", "array", "array", "float32", "float16", "int", "bool", "fortran", "csr", "csc", "coo",
    "frame", "list", "objects", "text", "strided", "read-only", "big-endian", "long double",
)  # fmt: skip
WEIGHTS = ("zeros", "decades", "tiny", "huge", "integers", "negative", "nan", "all zero", "short")


def _draw(rng: Random) -> Recipe:
    n, d = int(rng.integers(1, 80)), int(rng.integers(1, 9))
    if rng.random() < 0.7:
        n = max(n, 12)
    return {
        "model": str(rng.choice(list(MODELS))),
        "n": n,
        "d": d,
        "seed": int(rng.integers(2**31)),
        "x": [_draw_edit(rng, n, d) for _ in range(int(rng.integers(0, 3)))],
        "y": [_draw_target_edit(rng, n) for _ in range(int(rng.integers(0, 2)))],
        "weights": None if rng.random() < 0.7 else str(rng.choice(WEIGHTS)),
        "form": str(rng.choice(FORMS)),
    }


EDITS = (
    "offset", "offset", "scale", "scale", "constant", "copy", "neighbours", "ties", "outlier",
    "same rows", "zero", "missing",
)  # fmt: skip
TARGET_EDITS = (
    "offset", "scale", "constant", "outlier", "ties", "missing", "text", "one class", "rare",
    "short", "column",
)  # fmt: skip


def _draw_edit(rng: Random, n: int, d: int) -> Edit:
    kind = str(rng.choice(EDITS))
    value = _amount(rng, kind)
    return [kind, int(rng.integers(-1, d)), int(rng.integers(n)), value]


def _draw_target_edit(rng: Random, n: int) -> Edit:
    kind = str(rng.choice(TARGET_EDITS))
    return [kind, int(rng.integers(n)), _amount(rng, kind)]


def _amount(rng: Random, kind: str) -> float:
    if kind == "missing":
        return float(rng.choice([np.nan, np.inf, -np.inf]))
    return float(rng.choice(AMOUNTS) * rng.choice([-1.0, 1.0]))


# ---- The input of a recipe


def samples(recipe: Recipe) -> Floats:
    """The matrix of a recipe, before it gets its form."""
    n, d = recipe["n"], recipe["d"]
    X = np.random.default_rng(recipe["seed"]).standard_normal((n, d))
    with np.errstate(all="ignore"):
        for kind, column, row, value in recipe["x"]:
            part = slice(None) if column < 0 or column >= d else slice(column, column + 1)
            row = min(row, n - 1)
            if kind == "offset":
                X[:, part] += value
            elif kind == "scale":
                X[:, part] *= value
            elif kind == "constant":
                X[:, part] = value
            elif kind == "copy":
                X[:, part] = X[:, :1]
            elif kind == "neighbours":
                about = np.clip(abs(value), 1e-300, 1e300)
                X[:, part] = about + np.round(X[:, part]) * np.spacing(about)
            elif kind == "ties":
                X[:, part] = np.round(X[:, part])
            elif kind in ("outlier", "missing"):
                X[row, part] = value
            elif kind == "same rows":
                X[:] = X[row]
            else:
                X[:, part] = 0.0
    return X


def targets(recipe: Recipe, X: Floats) -> Any:
    """The targets of a recipe."""
    n = recipe["n"]
    rng = np.random.default_rng(recipe["seed"] + 1)
    drawn = np.random.default_rng(recipe["seed"]).standard_normal(X.shape)
    y: Any = drawn[:, : max(1, X.shape[1] // 2)].sum(axis=1) + 0.1 * rng.standard_normal(n)
    kind = recipe["model"]
    if "poisson" in kind:
        y = np.floor(np.exp(np.clip(y, -3.0, 3.0)))
    if "classes" in kind:
        y = (y > 0).astype(int) if kind != "experts, classes" else np.digitize(y, [-1.0, 0.0, 1.0])
    for change, row, value in recipe["y"]:
        y = _edited(y, change, min(row, n - 1), value)
    return y


def _edited(y: Any, change: str, row: int, value: float) -> Any:
    with np.errstate(all="ignore"):
        if change == "offset" and y.dtype.kind == "f":
            return y + value
        if change == "scale" and y.dtype.kind == "f":
            return y * value
        if change == "constant":
            return np.full(y.shape, value if y.dtype.kind == "f" else 1)
        if change in ("outlier", "missing"):
            y = y.astype(float)
            y[row] = value
            return y
    if change == "ties":
        return np.round(y)
    if change == "text":
        return np.array([f"c{value:.0f}" for value in np.asarray(y, dtype=float)])
    if change == "one class":
        return np.zeros_like(y)
    if change == "rare":
        y = np.zeros_like(y)
        y[row] = 1
        return y
    if change == "short":
        return y[:-1]
    if change == "column":
        return y[:, None]
    return y


def weights_of(recipe: Recipe) -> Floats | None:
    """The weights of a recipe."""
    kind, n = recipe["weights"], recipe["n"]
    if kind is None:
        return None
    rng = np.random.default_rng(recipe["seed"] + 2)
    made: dict[str, Callable[[], Any]] = {
        "zeros": lambda: (rng.random(n) < 0.6) * 1.0,
        "decades": lambda: 10.0 ** rng.uniform(-8.0, 8.0, n),
        "tiny": lambda: 1e-300 * rng.uniform(0.5, 2.0, n),
        "huge": lambda: 1e300 * rng.uniform(0.5, 2.0, n),
        "integers": lambda: rng.integers(1, 4, n) * 1.0,
        "negative": lambda: rng.standard_normal(n),
        "nan": lambda: np.where(rng.random(n) < 0.3, np.nan, 1.0),
        "all zero": lambda: np.zeros(n),
        "short": lambda: np.ones(max(0, n - 1)),
    }
    weights: Floats = made[kind]()
    return weights


def formed(X: Floats, form: str) -> Any:
    """The matrix in some form."""
    with np.errstate(all="ignore"):
        if form in ("csr", "csc", "coo"):
            return sparse.coo_matrix(np.where(np.abs(X) > 0.5, X, 0.0)).asformat(form)
        if form == "frame":
            import pandas as pd

            return pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
        if form == "strided":
            return np.repeat(X, 2, axis=1)[:, ::2]
        if form == "read-only":
            X = X.copy()
            X.flags.writeable = False
            return X
        if form == "list":
            return X.tolist()
        kinds: dict[str, Any] = {
            "float32": np.float32, "float16": np.float16, "bool": bool, "objects": object,
            "text": str, "big-endian": ">f8", "long double": np.longdouble,
        }  # fmt: skip
        if form == "int":
            return np.clip(np.nan_to_num(X), -1e18, 1e18).astype(np.int64)
        if form == "fortran":
            return np.asfortranarray(X)
        return X.astype(kinds[form]) if form in kinds else X


# ---- The check


def _check(recipe: Recipe) -> str:
    class_name, parameters = MODELS[recipe["model"]]
    model = getattr(cs, class_name)(**parameters)
    X = formed(samples(recipe), recipe["form"])
    y, weights = targets(recipe, samples(recipe)), weights_of(recipe)
    more: dict[str, Any] = {}
    if class_name.startswith("Task"):
        more["tasks"] = np.arange(recipe["n"]) % N_TASKS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(X, y, sample_weight=weights, **more)
        except (ValueError, TypeError) as error:
            if type(error) is np.linalg.LinAlgError:
                raise
            names = ("X", "y", "Y", "sample_weight", "tasks", *model.get_params())
            if is_useless(str(error), names):
                start = " ".join(str(error).split()[:4])
                raise Fault(f"{class_name}: a useless message, {start}", str(error)) from error
            return "refused"
        _check_numbers(class_name, model)
        predicted = np.asarray(model.predict(X, **more))
        if predicted.dtype.kind == "f" and not np.isfinite(predicted).all():
            raise Fault(f"{class_name}: a prediction is not finite", f"{predicted}")
        _check_objective(recipe, model, X, y, weights)
    return "fitted"


def _check_numbers(name: str, model: Any) -> None:
    """Weights, intercepts and the objective are finite."""
    for attribute in ("coef_", "intercept_", "experts_", "intercepts_", "centroids_", "objective_"):
        value = getattr(model, attribute, None)
        if value is not None and not np.isfinite(np.asarray(value, dtype=float)).all():
            raise Fault(f"{name}: {attribute} is not finite", f"{value}")


def _check_objective(recipe: Recipe, model: Any, X: Any, y: Any, weights: Any) -> None:
    """The objective of the fit is the one at its weights, but for the last digits of the scores."""
    kind = recipe["model"]
    X = np.asarray(X.toarray() if sparse.issparse(X) else X)
    precision = np.finfo(np.float32 if X.dtype == np.float32 else np.float64).eps
    X = X.astype(np.longdouble)
    if not kind.startswith(("features", "classes", "experts")) or y.ndim > 1:
        return
    shares = np.ones(len(X)) if weights is None else np.asarray(weights)
    with np.errstate(all="ignore"):
        shares = shares / shares.max()
        shares = shares / shares.sum()
    W, b = _weights_of(model, kind)
    if kind.startswith("experts"):
        scores = np.stack([X @ w.T + c for w, c in zip(W, b, strict=True)], axis=1)
        scores = scores[np.arange(len(X)), model.labels_]
        ridge = 0.5 * model.alpha * np.square(W).sum(axis=(1, 2))[model.labels_]
        sizes = np.abs(X) @ np.abs(W).max(axis=0).T + np.abs(b).max()
    else:
        scores = X @ W[0].T + b[0]
        ridge = 0.5 * _alpha(model) * np.square(W).sum()
        sizes = np.abs(X) @ np.abs(W[0]).T + np.abs(b[0])
    loss, target = _loss_of(kind, model, y)
    with np.errstate(all="ignore"):
        values, slopes = loss(target, scores)
    right = float(shares @ (values + ridge))
    rounding = 16.0 * precision * sizes
    slack = float(shares @ (np.abs(slopes) * rounding + np.square(rounding)).sum(axis=1))
    slack += 16.0 * np.finfo(float).eps * float(shares @ _terms(kind, target, scores))
    if abs(model.objective_ - right) > 1e-6 * abs(right) + slack + 1e-300:
        raise Fault(
            f"{type(model).__name__}: objective_ differs from its recomputation",
            f"{model.objective_!r}, recomputed {right!r}",
        )


def _terms(kind: str, target: Any, scores: Any) -> Any:
    """The size of the terms whose difference a loss is."""
    if "classes" in kind:
        return np.abs(scores).max(axis=1)
    if "poisson" in kind:
        return (np.abs(target * scores) + np.exp(scores)).sum(axis=1)
    return np.zeros(len(scores))


def _alpha(model: Any) -> float:
    """The ridge that the weights were fitted with, of which a search may take a part."""
    if hasattr(model, "relax_"):
        return float(model.relax_ * model.alpha_)
    return float(model.alpha)


def _weights_of(model: Any, kind: str) -> tuple[Any, Any]:
    """Weights (Q, K, d) and intercepts (Q, K)."""
    if kind.startswith("experts"):
        W = np.asarray(model.experts_, dtype=np.longdouble)
        b = np.asarray(model.intercepts_, dtype=np.longdouble)
        return W.reshape(len(W), -1, model.n_features_in_), b.reshape(len(W), -1)
    W = np.asarray(model.coef_, dtype=np.longdouble).reshape(1, -1, model.n_features_in_)
    return W, np.asarray(model.intercept_, dtype=np.longdouble).reshape(1, -1)


def _loss_of(kind: str, model: Any, y: Any) -> tuple[Callable[[Any, Any], Any], Any]:
    """The loss by its definition, with targets as it takes them."""
    if "classes" in kind:
        # Classes of samples without weight need not be known.
        codes = np.minimum(np.searchsorted(model.classes_, y), len(model.classes_) - 1)
        if len(model.classes_) == 2:
            return logistic, np.where(codes == 1, 1.0, -1.0)[:, None]
        return multinomial, codes
    target = np.asarray(y, dtype=np.longdouble)[:, None]
    if "huber" in kind:
        return huber(model.huber_delta), target
    if "poisson" in kind:  # SciPy has no functions of long doubles
        return lambda y, z: tweedie(1.0)(y.astype(float), z.astype(float)), target
    return squared, target


def _smaller(recipe: Recipe) -> Iterator[Recipe]:
    for name in ("x", "y"):
        yield from ({**recipe, name: edits} for edits in without_parts(recipe[name]))
    yield from with_entry(recipe, "weights", iter([None]))
    yield from with_entry(recipe, "form", iter(["array"]))
    for name in ("n", "d"):
        for size in (recipe[name] // 2, recipe[name] - 1):
            if size >= 1:
                yield {**recipe, name: size}


TARGET = Target("fits", _draw, _check, _smaller, share=0.18, short=25, memory=2048 << 20)
