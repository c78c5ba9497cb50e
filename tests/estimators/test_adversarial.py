"""A contract of all estimators on adversarial numbers.

Each fit ends within a bounded number of operations, and either raises a `ValueError` that names the
argument and the remedy, or has finite public numbers, among them an objective that equals what its
weights give on the same samples.
"""

import re
import signal
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import clustruct as cs
import tests.brute_force as bf

N, D = 36, 4
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
Y = X[:, 0] + X[:, 1] - X[:, 2] + 0.2 * RNG.standard_normal(N)
TASKS = np.repeat(np.arange(3), N // 3)
# A fit takes milliseconds; one that takes minutes of processor time has no bound.
WATCHDOG = 120

REGRESSORS = {
    "features": lambda **p: cs.FeatureClusterRegressor(2, **p),
    "features, huber": lambda **p: cs.FeatureClusterRegressor(2, loss="huber", **p),
    "features, poisson": lambda **p: cs.FeatureClusterRegressor(2, loss="poisson", **p),
    "features, gamma": lambda **p: cs.FeatureClusterRegressor(2, loss="gamma", **p),
    "features, sparse": lambda **p: cs.FeatureClusterRegressor(2, n_nonzero=2, **p),
    "features, quantile": lambda **p: cs.FeatureClusterRegressor(2, loss="quantile", **p),
    "features, bare": lambda **p: cs.FeatureClusterRegressor(2, fit_intercept=False, **p),
    "features, search": lambda **p: cs.FeatureClusterRegressorCV((1, 2), cv=2, **p),
    "samples": lambda **p: cs.SampleClusterRegressor(2, **p),
    "samples, huber": lambda **p: cs.SampleClusterRegressor(2, loss="huber", **p),
    "samples, search": lambda **p: cs.SampleClusterRegressorCV((1, 2), **p),
    "tasks": lambda **p: cs.TaskClusterRegressor(2, **p),
    "tasks, mixture": lambda **p: cs.TaskClusterRegressor(2, solver="em", **p),
    "tasks, search": lambda **p: cs.TaskClusterRegressorCV((1, 2), cv=2, **p),
}
CLASSIFIERS = {
    "features, classes": lambda **p: cs.FeatureClusterClassifier(2, **p),
    "features, class search": lambda **p: cs.FeatureClusterClassifierCV((1, 2), cv=2, **p),
    "samples, classes": lambda **p: cs.SampleClusterClassifier(2, **p),
    "samples, class search": lambda **p: cs.SampleClusterClassifierCV((1, 2), **p),
    "tasks, classes": lambda **p: cs.TaskClusterClassifier(2, **p),
    "tasks, class search": lambda **p: cs.TaskClusterClassifierCV((1, 2), cv=2, **p),
}
MODELS = {**REGRESSORS, **CLASSIFIERS}


def classes_of(y, n_classes=3):
    """Classes of about the same size, in the order of the numbers."""
    return np.argsort(np.argsort(y, kind="stable"), kind="stable") * n_classes // len(y)


def columns(number, values):
    """The matrix with one column replaced."""
    other = X.copy()
    other[:, number] = values
    return other


class Case(dict):
    """What differs from plain samples: X, y, sample_weight, offset, labels or rows."""


LIGHT = 10.0 ** np.linspace(-15.0, 15.0, N)[RNG.permutation(N)]
CASES = {
    "plain": Case(),
    "constant column": Case(X=columns(1, 3.7)),
    "zero column": Case(X=columns(1, 0.0)),
    "all columns constant": Case(X=np.full((N, D), 0.1)),
    "all zero": Case(X=np.zeros((N, D))),
    "duplicated columns": Case(X=X[:, [0, 0, 1, 1]]),
    **{f"offset {offset:.0e}": Case(X=X + offset) for offset in (1e6, 1e8, 1e12, 1e15)},
    "one column at 1e15": Case(X=columns(2, 1e15 + X[:, 2])),
    **{
        f"scale {scale:.0e}": Case(X=X * scale)
        for scale in (1e-300, 1e-160, 1e-80, 1e80, 1e140, 1e153, 1e155, 1e200, 1e300)
    },
    "scales apart": Case(X=X * 10.0 ** np.array([-100.0, 0.0, 50.0, 100.0])),
    "subnormal": Case(X=X * 5e-320),
    "one entry of 1e300": Case(X=np.where(np.arange(N * D).reshape(N, D) == 7, 1e300, X)),
    "one entry of 1e150": Case(X=np.where(np.arange(N * D).reshape(N, D) == 7, 1e150, X)),
    "one row": Case(rows=1),
    "two rows": Case(rows=2),
    "three rows": Case(rows=3),
    "five rows": Case(rows=5),
    "equal targets": Case(y=np.full(N, 2.5)),
    "zero targets": Case(y=np.zeros(N)),
    **{f"targets of {size:.0e}": Case(y=Y * size) for size in (1e-310, 1e-140, 1e140, 1e307)},
    "a target of 1e140": Case(y=np.where(np.arange(N) == 5, 1e140, Y)),
    "targets about 1e15": Case(y=Y + 1e15),
    "weights over 30 decades": Case(sample_weight=LIGHT),
    "weights over 600 decades": Case(sample_weight=10.0 ** np.linspace(-300, 300, N)),
    "one weight": Case(sample_weight=(np.arange(N) == 3) * 1.0),
    "weights of 1e308": Case(sample_weight=np.full(N, 1e308)),
    "subnormal weights": Case(sample_weight=np.full(N, 5e-324)),
    "offsets of 1e308": Case(offset=np.full(N, 1e308)),
    "offsets of 1e100": Case(offset=Y * 1e100),
    "offsets of 1e-320": Case(offset=np.full(N, 1e-320)),
    "ridge of 1e300": Case(alpha=1e300),
    "ridge of 1e-300": Case(alpha=1e-300),
    "no ridge": Case(alpha=0.0),
    "int8": Case(X=np.clip(50 * X, -128, 127).astype(np.int8)),
    "uint64": Case(X=(np.abs(X) * 2.0**62).astype(np.uint64)),
    "bool": Case(X=X > 0),
    "float16": Case(X=(X * 1e4).astype(np.float16)),
    "float32 offset": Case(X=(X + 1e6).astype(np.float32)),
    "float32 scale": Case(X=(X * 1e37).astype(np.float32)),
    "integer targets": Case(y=np.full(N, 2**63 - 1, dtype=np.int64) - np.arange(N)),
    "huge labels": Case(labels=np.array([-(2**62), 0, 2**63 - 1])),
    "small labels": Case(labels=np.array([-128, 0, 127], dtype=np.int8)),
    "separable": Case(X=100.0 * np.sign(Y)[:, None] * np.ones(D), y=Y),
}
# What the default run has, one of each kind; the others take longer than they add.
DEFAULT_CASES = (
    "constant column", "duplicated columns", "offset 1e+15", "scale 1e+153", "one entry of 1e300",
    "five rows", "targets of 1e+307", "targets about 1e15", "weights over 30 decades",
    "offsets of 1e308", "uint64",
)  # fmt: skip
DEFAULT_MODELS = ("features", "features, huber", "samples", "tasks", "features, classes")
# Words of messages: an argument, and what to do about it.
ARGUMENTS = re.compile(
    r"\b(X|y|sample_weight|offset|alphas?|alpha_\w+|n_clusters|cv|tasks|solver|n_samples)\b"
)
REMEDIES = re.compile(
    r"\b(give|scale|divide|subtract|reduce|leave|choose|set|pass|use|needs)\b", re.IGNORECASE
)


def arguments(name, case):
    """X, y and the other arguments of a fit."""
    rows = slice(case.get("rows"))
    y = np.asarray(case.get("y", Y))
    if name in CLASSIFIERS:
        y = case.get("labels", np.arange(3))[classes_of(y)]
        if name.startswith("tasks"):
            y = y > y.min()
    if "poisson" in name or "gamma" in name:
        y = np.abs(y) + 1e-3 * ("gamma" in name)
    more = {key: case[key][rows] for key in ("sample_weight", "offset") if key in case}
    if name.startswith("tasks"):
        more["tasks"] = TASKS[rows]
    if name in CLASSIFIERS and "offset" in more and not name.startswith("tasks"):
        more["offset"] = np.repeat(more["offset"][:, None], 3, axis=1) * np.array([1.0, 0.0, -1.0])
    return case.get("X", X)[rows], y[rows], more


def parameters(name, case):
    """Parameters of a model; searches have strengths of their own."""
    given = {"random_state": 0}
    if "search" in name and name.startswith("features"):
        given["alphas"] = (case["alpha"],) if "alpha" in case else (0.1, 1.0)
    elif "alpha" in case and not (name.startswith("tasks") and "search" in name):
        given["alpha"] = case["alpha"]
    return given


class Endless(Exception):
    """A fit took far longer than any bounded one."""


def _stop(*_):
    raise Endless


@pytest.fixture(autouse=True)
def watchdog():
    """Stop a fit without end, so that the others are tried as well."""
    before = signal.signal(signal.SIGVTALRM, _stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, WATCHDOG)
    yield
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
    signal.signal(signal.SIGVTALRM, before)


def fit(name, case):
    """The fitted model and its arguments, or the error."""
    x, y, more = arguments(name, case)
    model = MODELS[name](**parameters(name, case))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "The least populated class")
        try:
            return model.fit(x, y, **more), (x, y, more)
        except ValueError as error:
            return error, (x, y, more)


def public_numbers(model):
    """All numbers that a fitted model shows, by name; bounds may be infinite, gaps too."""
    for key, value in vars(model).items():
        if key.endswith("_") and not key.startswith("_"):
            array = np.asarray(value) if isinstance(value, np.ndarray | float | int) else None
            if array is not None and array.dtype.kind in "fiu":
                yield key, array


def recomputed(model, x, y, more):
    """The objective of features and experts by an independent formula, and how sure that is."""
    x = np.asarray(x, dtype=np.float64)
    shares = np.asarray(more.get("sample_weight", np.ones(len(x))), dtype=np.float64)
    shares = shares / shares.max()
    shares = shares / shares.sum()
    experts = hasattr(model, "experts_")
    alpha = model.relax_ * model.alpha_ if hasattr(model, "relax_") else model.alpha
    if experts:
        weights, intercepts = model.experts_, model.intercepts_.reshape(model.n_clusters_, -1)
        weights = weights.reshape(model.n_clusters_, -1, x.shape[1])
    else:
        weights = model.coef_.reshape(1, -1, x.shape[1])
        intercepts = np.asarray(model.intercept_).reshape(1, -1)
    loss = getattr(model, "loss", "squared")
    if hasattr(model, "classes_"):
        target = np.searchsorted(model.classes_, y)
        reference = bf.multinomial if len(model.classes_) > 2 else bf.logistic
        target = target if len(model.classes_) > 2 else np.where(target == 1, 1.0, -1.0)[:, None]
    else:
        known = {"huber": bf.huber(1.35), "poisson": bf.tweedie(1.0), "gamma": bf.tweedie(2.0)}
        reference = known.get(loss, bf.squared)
        target = np.asarray(y, dtype=np.float64)[:, None]
    offset = np.asarray(more.get("offset", np.zeros(len(x)))).reshape(len(x), -1)
    costs, doubts = [], []
    for W, b in zip(weights, intercepts, strict=True):
        scores = x @ W.T + b + offset
        values, slopes = reference(target, scores)
        costs.append(values + 0.5 * alpha * np.square(W).sum())
        # What the rounding of scores and targets may change.
        size = np.abs(x) @ np.abs(W.T) + np.abs(b) + np.abs(offset) + np.abs(scores)
        size = size + (np.abs(target) if target.ndim > 1 else 0.0)
        doubts.append((np.abs(slopes) * size + np.square(size) * 1e-16).sum(axis=1) * 1e-14)
        doubts[-1] += 1e-15  # of logarithms of nearly one
    best = np.argmin(costs, axis=0)
    rows = np.arange(len(x))
    return shares @ np.array(costs)[best, rows], shares @ np.array(doubts)[best, rows]


def recomputed_tasks(model, x, y, more):
    """The same for groups of tasks (docs/tasks.md, "The problem")."""
    x = np.asarray(x, dtype=np.float64)
    shares = np.asarray(more.get("sample_weight", np.ones(len(x))), dtype=np.float64)
    shares = shares / shares.max()
    shares = shares / shares.sum()
    kept = shares > 0.0
    x, y, shares = x[kept], np.asarray(y)[kept], shares[kept]
    codes = np.searchsorted(model.tasks_, more["tasks"][kept])
    W, b = model.coef_, model.intercept_
    V, c = model.centroids_[model.labels_], model.centroid_intercepts_[model.labels_]
    scores = (x * W[codes]).sum(axis=1) + b[codes]
    scores = scores + np.broadcast_to(more.get("offset", 0.0), kept.shape)[kept]
    reference, target = bf.squared, y
    if hasattr(model, "classes_"):
        reference, target = bf.logistic, np.where(y == model.classes_[-1], 1.0, -1.0)
    costs, slopes = reference(target.astype(np.float64)[:, None], scores[:, None])
    # The intercept counts as the score at the mean of all rows.
    level, middle = b + W @ (shares @ x), c + V @ (shares @ x)
    centre, flat = V.mean(axis=0), max(model.alpha_intercept_, 1e-8) * model.fit_intercept
    penalties = model.alpha * np.square(W).sum(axis=1)
    if model.alpha_within_ < np.inf:
        penalties += model.alpha_within_ * np.square(W - V).sum(axis=1)
    penalties += model.alpha_between_ * np.square(V - centre).sum(axis=1)
    penalties += flat * (np.square(level - middle) + np.square(middle - middle.mean()))
    value = shares @ costs + 0.5 * (penalties.mean() + model.alpha_mean_ * np.square(centre).sum())
    # That keeps the mean of all levels finite: about that of the targets, for squares.
    away = middle.mean() - (shares @ target if reference is bf.squared else 0.0)
    value += 0.5e-8 * min(flat, 1.0) * np.square(away)
    size = (np.abs(x) * np.abs(W[codes])).sum(axis=1) + np.abs(b[codes]) + np.abs(target)
    rounding = np.abs(slopes).sum(axis=1) * size + np.square(size) * 1e-16
    levels = (np.abs(level) + np.abs(middle)) * (np.abs(level - middle) + np.ptp(middle))
    return value, 1e-14 * (shares @ rounding + flat * levels.mean()) + 1e-15


def check(name, label):
    """A model or an error keeps the contract on one case."""
    model, (x, y, more) = fit(name, CASES[label])
    if isinstance(model, ValueError):
        message = str(model)
        assert ARGUMENTS.search(message), message
        assert REMEDIES.search(message), message
        return message
    for key, values in public_numbers(model):
        if key not in ("gap_", "relative_gap_", "lower_bound_"):
            assert np.isfinite(values).all(), (key, values)
    predicted = model.predict(x, **{k: v for k, v in more.items() if k in ("offset", "tasks")})
    assert predicted.dtype.kind != "f" or np.isfinite(predicted).all()
    certificate = model.certificate_
    assert certificate.objective == model.objective_
    assert certificate.lower_bound <= model.objective_
    # A mixture over tasks has another objective, which searches may choose as well.
    evidence = name in ("tasks, mixture", "tasks, search", "tasks, class search")
    if not evidence and "quantile" not in name:
        tell = recomputed_tasks if name.startswith("tasks") else recomputed
        value, doubt = tell(model, x, y, more)
        digits = 1e-4 if x.dtype == np.float32 else 1e-9
        assert model.objective_ == pytest.approx(value, rel=digits, abs=max(doubt, 1e-300))
    return None


@pytest.mark.parametrize("label", DEFAULT_CASES)
@pytest.mark.parametrize("name", DEFAULT_MODELS)
def test_fits_are_right_or_refused(name, label):
    check(name, label)


@pytest.mark.parametrize("name", [name for name in MODELS if "tasks, class search" not in name])
def test_plain_samples_are_fitted(name):
    assert check(name, "plain") is None


@pytest.mark.slow
@pytest.mark.parametrize("label", CASES)
@pytest.mark.parametrize("name", MODELS)
def test_more_fits_are_right_or_refused(name, label):
    check(name, label)
