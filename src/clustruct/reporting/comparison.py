"""How well a model does on samples that it has not seen, beside models that everybody knows."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge, RidgeCV
from sklearn.metrics import accuracy_score, log_loss, r2_score
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.utils import _safe_indexing
from sklearn.utils.sparsefuncs import mean_variance_axis

from clustruct.inspection import final_estimator, kind_of, steps_before

__all__ = ["MOST_ROWS", "Comparison", "Data", "Entry", "compare"]

Floats = NDArray[np.float64]

MOST_ROWS = 20_000
MOST_ENTRIES = 20_000_000
FEWEST = 8  # answers to fit or to judge by
# Strengths of the ridge to try: powers of ten, and steps about the best of them.
DECADES = np.arange(-4.0, 3.0)
FINER = (-0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75)
FOLDS = 3
NOISE = 2.0  # standard errors


@dataclass(frozen=True, eq=False)
class Data:
    """Samples, answers and, where every task has rows of its own, the task of each row."""

    X: Any
    y: NDArray[Any]
    tasks: NDArray[Any] | None = None

    @property
    def n(self) -> int:
        """Number of samples."""
        return len(self.y)

    def rows(self, index: NDArray[np.intp]) -> "Data":
        """Some of the samples."""
        tasks = None if self.tasks is None else self.tasks[index]
        return Data(_safe_indexing(self.X, index), self.y[index], tasks)

    def routed(self) -> dict[str, Any]:
        """What goes to `fit` and `predict` beside the samples."""
        return {} if self.tasks is None else {"tasks": self.tasks}


@dataclass(frozen=True, eq=False)
class Entry:
    """A model in the comparison: its name, its scores, its loss on every held-out answer."""

    name: str
    scores: tuple[float, ...]
    losses: Floats
    ours: bool = False
    remark: str = ""


@dataclass(frozen=True, eq=False)
class Comparison:
    """Models on the same held-out samples.

    Attributes
    ----------
    metrics : tuple of str
        Names of the scores.
    entries : tuple of Entry
    n_train, n_test : int
    n_available : int
        Samples there were before some were drawn.
    refitted : bool
        Whether the model was fitted anew without the held-out samples.
    free_weights : ndarray of shape (d,) or None
        Weights of the linear model without groups, if it sees the same features.
    """

    metrics: tuple[str, ...]
    entries: tuple[Entry, ...]
    n_train: int
    n_test: int
    n_available: int
    refitted: bool
    free_weights: Floats | None

    @property
    def mine(self) -> Entry:
        """The model in question."""
        return next(entry for entry in self.entries if entry.ours)

    @property
    def rival(self) -> Entry:
        """The model to beat: the best of those that do not see the truth, by their mean loss."""
        others = [entry for entry in self.entries if not entry.ours and not entry.remark]
        return min(others, key=lambda entry: float(entry.losses.mean()))

    @property
    def lead(self) -> tuple[float, float]:
        """By how much the mean loss is below the rival's, relative to it, and its error."""
        difference = self.rival.losses - self.mine.losses
        scale = float(self.rival.losses.mean()) or 1.0
        error = float(difference.std()) / np.sqrt(max(1, difference.size - 1))
        return float(difference.mean()) / scale, error / scale

    @property
    def within_noise(self) -> bool:
        """Whether the difference from the rival is less than two standard errors."""
        lead, error = self.lead
        return abs(lead) <= NOISE * error

    @property
    def n_answers(self) -> int:
        """Held-out answers, of which a sample may have several."""
        return self.mine.losses.size


def compare(
    model: Any, data: Data, held_out: Data | None, *, test_size: float, seed: int
) -> Comparison | None:
    """Scores of the model and of its rivals on held-out samples.

    Without held-out samples, some of the data are held out, and the model is fitted anew to the
    others with the parameters that it has or has chosen. None where there are too few samples.
    """
    available = data.n
    data = _drawn(data, seed)
    if held_out is None:
        if min(test_size, 1.0 - test_size) * data.y.size < FEWEST or test_size * data.n < 1.0:
            return None
        data, held_out = _split(model, data, test_size, seed)
        mine = frozen(model)
    else:
        mine = None
        held_out = _drawn(held_out, seed)
    with warnings.catch_warnings():
        # Rivals that stop early, and scales that were warned of when the model was fitted.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        if mine is not None:
            mine = _fit(mine, data)
        entries, weights = _rivals(model, data, held_out)
        entries += _ours(mine if mine is not None else model, held_out)
    return Comparison(
        _metrics(entries, model),
        tuple(entries),
        data.n,
        held_out.n,
        available,
        mine is not None,
        weights,
    )


def frozen(model: Any) -> Any:
    """An unfitted copy that searches no more: it has the parameters that were chosen."""
    model = getattr(model, "best_estimator_", model)
    fitted, copy = final_estimator(model), clone(model)
    estimator = final_estimator(copy)
    known = estimator.get_params(deep=False)
    settings: dict[str, Any] = {"verbose": 0, "callback": None}
    chosen = dict(getattr(fitted, "best_params_", {}))
    if hasattr(fitted, "selection_"):
        chosen["n_clusters"] = fitted.selection_.best
        settings["criterion"] = "bic"  # one number of experts is chosen without folds
    for name, value in chosen.items():
        settings[name if name in known else f"{name}s"] = value
    if chosen and "cv" in known:
        settings["cv"] = 2
    estimator.set_params(**{name: value for name, value in settings.items() if name in known})
    if known.get("blocks") is not None and hasattr(copy, "steps"):
        # Blocks are of the columns that these steps make, and fewer samples would make others.
        copy.steps[:-1] = [(name, _held(step)) for name, step in model.steps[:-1]]
    return copy


def _held(step: Any) -> Any:
    """A fitted step that is not fitted anew."""
    return step if step is None or isinstance(step, str) else FrozenEstimator(step)


# ---- Samples.


def _drawn(data: Data, seed: int) -> Data:
    """No more samples than can be fitted in a moment, drawn at random, in their order."""
    shape = getattr(data.X, "shape", (data.n, 1))
    entries = data.X.nnz if issparse(data.X) else shape[0] * (shape[1] if len(shape) > 1 else 1)
    limit = max(200, min(MOST_ROWS, int(MOST_ENTRIES * data.n / max(1, entries))))
    if data.n <= limit:
        return data
    index = np.random.default_rng(seed).choice(data.n, limit, replace=False)
    return data.rows(np.sort(index))


def _split(model: Any, data: Data, test_size: float, seed: int) -> tuple[Data, Data]:
    """Samples to fit and samples held out, with all classes or tasks in both where possible."""
    strata = data.tasks
    if strata is None and is_classifier(final_estimator(model)) and data.y.ndim == 1:
        strata = data.y
    index = np.arange(data.n)
    try:
        fit, held = train_test_split(index, test_size=test_size, random_state=seed, stratify=strata)
    except ValueError:  # a class or task with one sample
        fit, held = train_test_split(index, test_size=test_size, random_state=seed)
    return data.rows(np.sort(fit)), data.rows(np.sort(held))


def _fit(model: Any, data: Data) -> Any:
    routed = data.routed()
    if routed and hasattr(model, "steps"):
        last = model.steps[-1][0]
        routed = {f"{last}__{name}": value for name, value in routed.items()}
    return model.fit(data.X, data.y, **routed)


# ---- The models.


def _ours(model: Any, held_out: Data) -> list[Entry]:
    """The model, and where it has several answers, the best of them."""
    estimator = final_estimator(model)
    kind = kind_of(model)
    answers = model.predict(held_out.X, **held_out.routed())
    chances = _chances(model, held_out) if kind != "tasks" else None
    name = _our_name(estimator, kind)
    entries = [_entry(name, held_out, answers, chances, estimator, ours=True)]
    if kind == "samples":
        before = steps_before(model)
        sample = held_out.X if before is None else before.transform(held_out.X)
        each = estimator.predict_experts(sample)
        best = _best_answers(each, held_out.y)
        remark = "the best answer of each sample, chosen with the truth at hand"
        count = each.shape[1]
        entry = _entry(f"Experts, best of {count} answers", held_out, best, None, estimator)
        entries.append(Entry(entry.name, entry.scores, entry.losses, False, remark))
    return entries


def _our_name(estimator: Any, kind: str) -> str:
    if kind == "features":
        return f"Grouped features: {estimator.n_clusters_} weights"
    if kind == "tasks":
        return "Grouped tasks"
    return f"Experts, {'weighed by the gate' if hasattr(estimator, 'gate_') else 'weighted answer'}"


def _best_answers(each: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """Of every sample's answers the one nearest to the truth."""
    if each.dtype.kind in "fiu" and y.dtype.kind in "fiu":
        distance = np.abs(each - y[:, None])
        if distance.ndim == 3:
            distance = distance.sum(axis=2)
    else:
        distance = (each != y[:, None]).astype(np.float64)
    return each[np.arange(len(y)), distance.argmin(axis=1)]


def _rivals(model: Any, data: Data, held_out: Data) -> tuple[list[Entry], Floats | None]:
    """Constants, one linear model without groups with its weights, for tasks a model for each."""
    estimator, before = final_estimator(model), steps_before(model)
    classes = is_classifier(estimator)
    if before is not None:
        before = clone(before).fit(data.X, data.y)
        data = Data(before.transform(data.X), data.y, data.tasks)
        held_out = Data(before.transform(held_out.X), held_out.y, held_out.tasks)
    kind = kind_of(model)
    train, test = (data, held_out) if kind != "tasks" else (long(data), long(held_out))
    plain = "logistic regression" if classes else "ridge regression"
    rivals: list[tuple[str, Any]] = [
        (
            "Always the most frequent class" if classes else "Always the mean",
            (DummyClassifier() if classes else DummyRegressor()).fit(train.X, train.y),
        ),
        (
            {
                "features": f"{plain.capitalize()}, a weight for every feature",
                "samples": f"One {plain} for all samples",
                "tasks": f"One {plain} for all tasks",
            }[kind],
            _linear(train, classes),
        ),
    ]
    entries = []
    for name, rival in rivals:
        chances = _chances(rival, test) if kind != "tasks" else None
        entries.append(_entry(name, test, rival.predict(test.X), chances, estimator))
    if test.tasks is not None:
        answers = _alone(train, test, classes)
        entries.append(_entry(f"A {plain} for each task", test, answers, None, estimator))
    return entries, _free_weights(rivals[1][1], model, before)


def _free_weights(rival: Any, model: Any, before: Any) -> Floats | None:
    """Weights of a linear model for the features that the model has, one for each."""
    weights = np.asarray(getattr(rival, "best_estimator_", rival).coef_, dtype=np.float64)
    if weights.size != final_estimator(model).n_features_in_:
        return None
    mine = steps_before(model)
    if before is not None and names_out(before) != names_out(mine):
        return None
    return weights.reshape(-1)


def names_out(steps: Any) -> list[str] | None:
    """What the columns after some steps are called, if the steps know it."""
    try:
        return [str(name) for name in steps.get_feature_names_out()]
    except (AttributeError, ValueError):
        return None


def _linear(data: Data, classes: bool) -> Any:
    """A fitted linear model without groups, its strength chosen by folds: by decades, then finer.

    Strengths are on the scale of the columns, so that the best one is among them.
    """
    plain: Any = LogisticRegression(max_iter=300) if classes else Ridge()
    if classes and np.unique(data.y, return_counts=True)[1].min() < FOLDS:
        return plain.fit(data.X, data.y)
    name, scoring = ("C", "neg_log_loss") if classes else ("alpha", "neg_mean_squared_error")
    unit = data.n * _mean_variance(data.X)
    exponents, found = DECADES, None
    for finer in (FINER, ()):
        strengths = unit * 10.0**exponents
        grid = {name: 1.0 / strengths if classes else strengths}
        found = GridSearchCV(plain, grid, cv=FOLDS, scoring=scoring).fit(data.X, data.y)
        exponents = exponents[found.best_index_] + np.array(finer)
    return found


def _mean_variance(X: Any) -> float:
    """Of the columns; 1 where all are constant."""
    variances = mean_variance_axis(X.tocsr(), 0)[1] if issparse(X) else np.var(X, axis=0)
    return float(np.mean(variances)) or 1.0


def _alone(train: Data, test: Data, classes: bool) -> NDArray[Any]:
    """Answers of models that each know one task only."""
    assert train.tasks is not None
    assert test.tasks is not None
    default: Any = DummyClassifier() if classes else DummyRegressor()
    answers = np.asarray(default.fit(train.X, train.y).predict(test.X)).copy()
    unit = _mean_variance(train.X)
    for task in np.unique(test.tasks):
        mine, theirs = np.flatnonzero(train.tasks == task), np.flatnonzero(test.tasks == task)
        if mine.size < 2 or (classes and np.unique(train.y[mine]).size < 2):
            continue
        model: Any = (
            LogisticRegression(max_iter=300)
            if classes
            else RidgeCV(unit * mine.size * 10.0**DECADES)
        )
        model.fit(_safe_indexing(train.X, mine), train.y[mine])
        answers[theirs] = model.predict(_safe_indexing(test.X, theirs))
    return answers


def long(data: Data) -> Data:
    """One row for each sample and task, where a column of the answers is a task."""
    if data.y.ndim == 1:
        return data
    rows, columns = np.nonzero(~_missing(data.y))
    return Data(_safe_indexing(data.X, rows), data.y[rows, columns], columns)


def _missing(y: NDArray[Any]) -> NDArray[np.bool_]:
    return np.isnan(y) if y.dtype.kind == "f" else np.asarray(y == None)  # noqa: E711


# ---- Scores.


def _chances(model: Any, data: Data) -> Floats | None:
    """Probabilities of the classes, where the model gives them."""
    if not hasattr(model, "predict_proba"):
        return None
    return np.asarray(model.predict_proba(data.X))


def _entry(
    name: str,
    data: Data,
    answers: NDArray[Any],
    chances: Floats | None,
    estimator: Any,
    *,
    ours: bool = False,
) -> Entry:
    """Scores and losses of some answers."""
    truth = data.y
    if hasattr(estimator, "tasks_") and truth.ndim == 2:
        present = ~_missing(truth)
        truth, answers = truth[present], answers[present]
    if is_classifier(estimator):
        losses = (np.asarray(answers) != truth).astype(np.float64)
        scores = [accuracy_score(truth, answers)]
        if chances is not None:
            scores.append(log_loss(truth, chances, labels=estimator.classes_))
    else:
        truth, answers = np.asarray(truth, dtype=np.float64), np.asarray(answers)
        squares = np.square(answers.reshape(truth.shape) - truth)
        losses = squares.reshape(len(truth), -1).mean(axis=1)
        scores = [r2_score(truth, answers.reshape(truth.shape)), float(np.sqrt(losses.mean()))]
    return Entry(name, tuple(float(score) for score in scores), losses, ours)


def _metrics(entries: list[Entry], model: Any) -> tuple[str, ...]:
    classes = is_classifier(final_estimator(model))
    names = ("Accuracy", "Log loss") if classes else ("R²", "RMSE")
    return names[: max(len(entry.scores) for entry in entries)]
