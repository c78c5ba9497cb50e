"""The models that ours is compared with: constants, linear models without groups, boosting.

Rivals see the rows, the weights and the prepared columns that our model was fitted to, and choose
their strengths by the same shuffled folds on a grid as wide as that of our searches.
"""

from collections.abc import Iterator
from dataclasses import replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge, RidgeCV
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, check_cv
from sklearn.multioutput import MultiOutputRegressor
from sklearn.preprocessing import OrdinalEncoder
from sklearn.utils import _safe_indexing
from sklearn.utils.sparsefuncs import mean_variance_axis
from threadpoolctl import threadpool_limits

from clustruct._typing import Floats
from clustruct.estimators.features.search_models import FeatureClusterRegressorCV
from clustruct.inspection import final_estimator, kind_of
from clustruct.losses import Loss, loss_of
from clustruct.reporting.comparing.encoding import MOST_CODES, Codes
from clustruct.reporting.comparing.samples import Data, unfitted
from clustruct.reporting.comparing.scores import Prediction
from clustruct.reporting.subjects import subject_of

# Strengths of the ridge in units of the loss's curvature. Our own searches try 10 to 10^-3.5, and
# an eighth of each for the values of groups.
EXPONENTS = np.arange(1.0, -5.0, -0.5)
FOLDS = 5
# Multiplications that a linear rival may take, which is about a minute; with more of them it is
# fitted to some rows only, and nothing is claimed.
MOST_WORK = 3e11
ITERATIONS = 60  # of a logistic regression, as a rule
# Those of a generalised linear model, each with a matrix of products, and of others of ours.
NEWTON_STEPS, SMOOTH_STEPS = 4, 300
# Entries and columns of a dense matrix for boosting, and rows for which the size of the trees is
# chosen, too; with fewer entries than that last number one thread is faster.
MOST_BOOSTED, MOST_COLUMNS, MOST_TUNED, FEW_ENTRIES = 30_000_000, 500, 20_000, 200_000
LEAVES = (4, 31)
# Up to so many columns Newton's method with the whole Hessian is fast, and exact whatever the
# strength; beyond, its gradient method takes over.
MOST_NEWTON = 1500
# Largest entry of the gradient of the mean loss, beside the curvature, at which a fit ends. The
# default of scikit-learn, 1e-4, ends before rare levels have moved.
TOLERANCE = 1e-6
MOST_ITERATIONS = 300
MOST_TASKS = 300  # with a model of their own
BLIND = "does not take the offset: no claim is made"


class _Fold(NamedTuple):
    """How strengths are chosen: the splitter, or None where a class has too few rows."""

    splitter: Any
    seed: int


def fit_rivals(
    model: Any,
    train: Data,
    test: Data,
    seed: int,
    *,
    boost: bool = True,
    codes: Codes | None = None,
) -> Iterator[Prediction]:
    """Fit all rivals of a fitted model to the columns that its estimator sees; tasks are in rows.

    Gradient boosting is tried if `boost` says so and the matrix is not too large for it; of frames
    with factors it gets the `codes`. Rivals of numbers know the offset; those of classes have no
    place for it.
    """
    estimator = final_estimator(model)
    rivals = _Rivals(model, seed, codes if boost else None, boost=boost)
    if train.offset is None or test.offset is None or is_classifier(estimator):
        yield from rivals.fit(train, test)
        return
    loss = loss_of(estimator)
    shared = loss.has_identity_link or train.offset.size == train.n  # one weight for all outputs
    found = loss.as_rates(train.y, train.shift) if shared else None
    if found is None:
        yield from rivals.fit(train, test)
        return
    target, exposure = found
    plain = replace(train, y=target, offset=None)
    if not loss.has_identity_link:
        weights = exposure.reshape(-1)
        weights = weights if train.weights is None else weights * train.weights
        plain = replace(plain, weights=weights)
    for rival in rivals.fit(plain, replace(test, offset=None)):
        identity, each = loss.has_identity_link, rival.predicted
        back = each + test.shift if identity else each * np.exp(test.shift)
        yield replace(rival, predicted=back)


class _Rivals:
    """All rivals of a model; those that do not take the offset of the samples say so."""

    def __init__(self, model: Any, seed: int, codes: Codes | None, *, boost: bool) -> None:
        self._model, self._estimator = model, final_estimator(model)
        self._seed, self._codes, self._boost = seed, codes, boost
        # The loss that numbers are compared by; None for classes.
        self._loss = None if is_classifier(self._estimator) else loss_of(self._estimator)

    def fit(self, train: Data, test: Data) -> Iterator[Prediction]:
        """Fit them one after the other."""
        loss, fold = self._loss, _folds(self._estimator, train, self._seed)
        always = "the most frequent class" if loss is None else loss.constant_name
        yield _predicted(f"Always {always}", "constant", _constant(train, loss), test, train.n)
        plain = _plain_name(loss)
        name = subject_of(self._model).rival.format(plain)
        some = train if _work(train, loss) <= MOST_WORK else train.drawn(self._seed)
        linear = _linear(some, fold, loss)
        remark = "" if some is train else f"saw {some.n:,} of {train.n:,} rows: no claim is made"
        rival = _predicted(name[0].upper() + name[1:], "linear", linear, test, some.n)
        yield replace(rival, coef=_weights(linear), remark=remark or rival.remark)
        if kind_of(self._model) == "tasks":
            yield from _of_tasks(self._estimator, train, test, fold, plain, loss)
        if self._boost and (boosting := _boosting(train, test, fold, loss, self._codes)):
            yield boosting


def _plain_name(loss: Loss | None) -> str:
    """What a linear model is called."""
    if loss is None:
        return "logistic regression"
    return "ridge regression" if loss.goes_by_squares else f"{loss.name.capitalize()} regression"


def _weights(linear: Any) -> Floats | None:
    """Weights of a linear model, if it is one."""
    coef = getattr(linear, "coef_", None)
    return None if coef is None else np.asarray(coef, dtype=np.float64).reshape(-1)


def _constant(train: Data, loss: Loss | None) -> Any:
    dummy: Any = DummyClassifier(strategy="prior") if loss is None else loss.constant
    return dummy.fit(np.zeros((train.n, 1)), train.y, sample_weight=train.weights)


def _folds(estimator: Any, data: Data, seed: int) -> _Fold:
    """The folds of the model's own search, or five shuffled ones."""
    cv = getattr(estimator, "cv", None)
    state = getattr(estimator, "random_state", None)
    seed = int(state) if isinstance(state, Integral) else seed
    if cv is not None and not isinstance(cv, Integral):
        return _Fold(cv if hasattr(cv, "split") else None, seed)
    count = FOLDS if cv is None else int(cv)
    if is_classifier(estimator):
        count = min(count, int(np.unique(data.y, return_counts=True)[1].min()))
        return _Fold(_shuffled(StratifiedKFold, count, seed), seed)
    return _Fold(_shuffled(KFold, min(count, data.n), seed), seed)


def _shuffled(kind: Any, count: int, seed: int) -> Any:
    return kind(count, shuffle=True, random_state=seed) if count > 1 else None


def _predicted(
    name: str, role: str, fitted: Any, test: Data, n_train: int, **routed: Any
) -> Prediction:
    chances = fitted.predict_proba(test.X, **routed) if hasattr(fitted, "predict_proba") else None
    predicted = fitted.predict(test.X, **routed)
    known = test.offset is None or "offset" in routed
    return _told(Prediction(name, role, predicted, chances, n_train), known)


def _told(rival: Prediction, knows_offset: bool) -> Prediction:
    """A rival that says so where it does not know the offset."""
    return rival if knows_offset else replace(rival, remark=BLIND, fair=False)


# ---- Linear models.


def _linear(data: Data, fold: _Fold, loss: Loss | None) -> Any:
    """A linear model without groups, its strength chosen by folds on the scale of the columns."""
    classes = loss is None
    if loss is not None and not loss.goes_by_squares:
        return fit_family(loss, data, _mean_variance(data.X) * 10.0**EXPONENTS, fold.splitter)
    unit = data.n * _mean_variance(data.X) * (0.25 if classes else 1.0)
    plain: Any = LogisticRegression(max_iter=1000) if classes else Ridge()
    strengths = unit * 10.0**EXPONENTS
    grid = {"C": 1.0 / strengths} if classes else {"alpha": strengths}
    return _tuned(plain, grid, data, fold, loss)


def _tuned(plain: Any, grid: dict[str, Any], data: Data, fold: _Fold, loss: Loss | None) -> Any:
    """A model with the parameters that are best on the folds, fitted to all of the data."""
    scoring: Any = "neg_log_loss" if loss is None else "neg_mean_squared_error"
    if loss is not None and not loss.goes_by_squares:
        scoring = make_scorer(_mean_score, greater_is_better=False, loss=loss)
    weights = {} if data.weights is None else {"sample_weight": data.weights}
    if fold.splitter is None:
        return clone(plain).fit(data.X, data.y, **weights)
    search = GridSearchCV(plain, grid, cv=fold.splitter, scoring=scoring)
    return search.fit(data.X, data.y, **weights).best_estimator_


def _mean_score(truth: Any, predicted: Any, sample_weight: Any = None, *, loss: Loss) -> float:
    scores = loss.row_scores(_columns(truth), _columns(predicted))
    return float(np.average(scores, weights=sample_weight))


def _mean_variance(X: Any) -> float:
    """Of the columns; 1 where all are constant."""
    variances = mean_variance_axis(X.tocsr(), 0)[1] if sparse.issparse(X) else np.var(X, axis=0)
    return float(np.mean(variances)) or 1.0


def _work(data: Data, loss: Loss | None) -> float:
    """Multiplications that the whole search of a linear model takes, roughly."""
    n, d = data.X.shape
    entries = data.X.nnz if sparse.issparse(data.X) else n * d
    each = ITERATIONS if loss is None or sparse.issparse(data.X) else d
    if loss is not None and not loss.goes_by_squares:
        each = NEWTON_STEPS * entries // n if loss.ridge is not None else SMOOTH_STEPS
    return float(FOLDS * EXPONENTS.size * entries * max(each, 10))


# ---- Ridges of losses other than squared.


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


# ---- Tasks.


def _of_tasks(
    estimator: Any, train: Data, test: Data, fold: _Fold, plain: str, loss: Loss | None
) -> Iterator[Prediction]:
    """A model for each task, and tasks that are related but not grouped."""
    if test.tasks is None or train.tasks is None:
        return  # one classifier for each class
    if np.unique(train.tasks).size <= MOST_TASKS:
        yield _alone(train, test, fold, f"A {plain} for each task", loss)
    if np.unique(estimator.labels_).size == 1:
        return  # the model itself is that
    single = unfitted(estimator)
    single.set_params(n_clusters=(1,) if hasattr(single, "cv") else 1)
    single.fit(train.X, train.y, **train.routed_to_fit())
    name = "Tasks about one common centre, no groups"
    yield _predicted(name, "linear", single, test, train.n, **test.routed())


def _alone(train: Data, test: Data, fold: _Fold, name: str, loss: Loss | None) -> Prediction:
    """Models that each know one task only; the constant of all tasks where that is too little."""
    dummy = _constant(train, loss)
    predicted = np.array(dummy.predict(test.X), dtype=None if loss is None else np.float64)
    chances = np.array(dummy.predict_proba(test.X)) if loss is None else None
    assert train.tasks is not None
    assert test.tasks is not None
    for task in np.unique(test.tasks):
        mine = train.rows(np.flatnonzero(train.tasks == task))
        theirs = np.flatnonzero(test.tasks == task)
        fitted = _of_one_task(mine, fold, loss)
        if fitted is None:
            continue
        X = _safe_indexing(test.X, theirs)
        predicted[theirs] = fitted.predict(X)
        if chances is not None:
            places = np.searchsorted(dummy.classes_, fitted.classes_)
            chances[theirs] = 0.0
            chances[np.ix_(theirs, places)] = fitted.predict_proba(X)
    return _told(Prediction(name, "linear", predicted, chances, train.n), test.offset is None)


def _of_one_task(data: Data, fold: _Fold, loss: Loss | None) -> Any:
    """A linear model of one task, or None where it has too few rows."""
    counts = np.unique(data.y, return_counts=True)[1]
    if data.n < 2 or (loss is None and counts.size < 2):
        return None
    if loss is None:
        few = _shuffled(StratifiedKFold, min(FOLDS, int(counts.min())), fold.seed)
        return _linear(data, _Fold(few, fold.seed), loss)
    if loss.goes_by_squares:
        unit = data.n * _mean_variance(data.X)
        model = RidgeCV(unit * 10.0**EXPONENTS)  # leave-one-out, exactly
        return model.fit(data.X, data.y, sample_weight=data.weights)
    if counts.size < 2:
        return None  # the logarithm of a mean of zero is no number
    few = _shuffled(KFold, min(FOLDS, data.n), fold.seed)
    return _linear(data, _Fold(few, fold.seed), loss)


# ---- Boosting.


def _boosting(
    train: Data, test: Data, fold: _Fold, loss: Loss | None, coded: Codes | None
) -> Prediction | None:
    """Gradient boosting, which is not linear, with the task of each row as a category.

    None where the matrix is too large for it, or where it has no such loss.
    """
    options: dict[str, Any] = {"random_state": fold.seed}
    if coded is not None:
        train, test = replace(train, X=coded.train), replace(test, X=coded.test)
        options["categorical_features"] = coded.categorical
    n, d = train.X.shape
    own = {} if loss is None or loss.goes_by_squares else loss.boosting
    if n * d > MOST_BOOSTED or d > MOST_COLUMNS or own is None:
        return None
    options |= own
    kind = HistGradientBoostingClassifier if loss is None else HistGradientBoostingRegressor
    if train.tasks is not None and test.tasks is not None:
        codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
        numbers = codes.fit_transform(train.tasks[:, None]), codes.transform(test.tasks[:, None])
        if codes.categories_[0].size <= MOST_CODES:
            options["categorical_features"] = [d]
        train = replace(train, X=np.column_stack([_dense(train.X), numbers[0]]))
        test = replace(test, X=np.column_stack([_dense(test.X), numbers[1]]))
    dense = replace(train, X=_dense(train.X))
    grid: dict[str, Any] = {"max_leaf_nodes": LEAVES}
    plain: Any = kind(**options)
    if train.y.ndim == 2:
        plain, grid = MultiOutputRegressor(plain), {"estimator__max_leaf_nodes": LEAVES}
    fold = fold if train.n <= MOST_TUNED else _Fold(None, fold.seed)
    with threadpool_limits(1 if n * d < FEW_ENTRIES else None, user_api="openmp"):
        fitted = _tuned(plain, grid, dense, fold, loss)
    name = "Gradient boosting, not linear"
    return _predicted(name, "boosting", fitted, replace(test, X=_dense(test.X)), train.n)


def _dense(X: Any) -> Any:
    return X.toarray() if sparse.issparse(X) else np.asarray(X)
