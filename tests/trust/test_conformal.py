"""Prediction intervals by MAPIE and crepes: their coverage with each kind of model."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import clustruct as cs

crepes = pytest.importorskip("crepes")
regression = pytest.importorskip("mapie.regression")
classification = pytest.importorskip("mapie.classification")
hinge = pytest.importorskip("crepes.extras").hinge

N_FIT, N_EACH = 200, 1500
FIT, CALIBRATE = slice(0, N_FIT), slice(N_FIT, N_FIT + N_EACH)
NEW = slice(N_FIT + N_EACH, None)
# Three standard errors of a share of 90 %: the threshold has that of the rows for calibration, and
# the share that of the new ones.
BAND = 3.0 * np.sqrt(0.9 * 0.1 * (1 / N_EACH + 1 / N_EACH))
# A task has a sixth of the rows; six are looked at, so that four standard errors are allowed.
BAND_OF_TASK = np.sqrt(6.0) * BAND * 4.0 / 3.0
CONFIDENCE = 0.9


def numbers(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N_FIT + 2 * N_EACH, 6))
    y = X @ np.repeat([-1.0, 1.0], 3) + rng.standard_t(5, len(X))
    return X, y


def experts(seed=0):
    """Two rules, either of which a row may follow: half of the noise is which one it is."""
    X, y = numbers(seed)
    which = np.random.default_rng(seed + 1).random(len(y)) < 0.5
    return X, np.where(which, y, X[:, 0] + np.random.default_rng(seed + 2).normal(size=len(y)))


def frame(seed=0):
    X, y = numbers(seed)
    levels = np.random.default_rng(seed + 1).choice(list("abcdef"), len(y))
    return pd.DataFrame(X[:, :2], columns=["one", "two"]).assign(level=pd.Categorical(levels)), (
        y + 2.0 * np.isin(levels, list("ab"))
    )


def with_tasks(seed=0):
    """The tasks differ in their weights, and in their noise: by a factor of six."""
    rng = np.random.default_rng(seed)
    X, _ = numbers(seed)
    tasks = np.arange(len(X)) % 6
    noise = np.array([0.5, 0.5, 0.5, 1.0, 1.0, 3.0])
    slopes = np.where(tasks < 3, 1.0, -1.0)
    return X, X[:, 0] * slopes + noise[tasks] * rng.standard_normal(len(X)), tasks


MODELS = {
    "features": (cs.FeatureClusterRegressor(2), numbers),
    "samples": (cs.SampleClusterRegressor(2), experts),
    "search of features": (cs.FeatureClusterRegressorCV([2, 3]), numbers),
    "search of samples": (cs.SampleClusterRegressorCV([1, 2]), experts),
    "pipeline": (make_pipeline(StandardScaler(), cs.FeatureClusterRegressor(2)), numbers),
    "frame": (cs.FeatureClusterRegressor({"level": 2}), frame),
    "search of a frame": (cs.FeatureClusterRegressorCV(prices=[0.01, 0.1]), frame),
}


def share(y, low, high):
    return np.mean((low <= y) & (y <= high))


def some(X, rows):
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


@pytest.mark.parametrize("name", [name for name in MODELS if "frame" not in name])
def test_split_by_mapie(name):
    model, draw = MODELS[name]
    X, y = draw()
    fitted = clone(model).fit(X[FIT], y[FIT])
    conformal = regression.SplitConformalRegressor(fitted, CONFIDENCE, prefit=True)
    conformal.conformalize(X[CALIBRATE], y[CALIBRATE])
    predictions, intervals = conformal.predict_interval(X[NEW])
    np.testing.assert_allclose(predictions, fitted.predict(X[NEW]))
    assert share(y[NEW], *intervals[:, :, 0].T) == pytest.approx(0.9, abs=BAND)


@pytest.mark.parametrize("name", ["features", "samples", "frame", "search of a frame"])
def test_split_by_crepes(name):
    model, draw = MODELS[name]
    X, y = draw()
    conformal = crepes.WrapRegressor(clone(model))
    conformal.fit(some(X, FIT), y[FIT])
    conformal.calibrate(some(X, CALIBRATE), y[CALIBRATE])
    intervals = conformal.predict_int(some(X, NEW), confidence=CONFIDENCE)
    assert share(y[NEW], *intervals.T) == pytest.approx(0.9, abs=BAND)


@pytest.mark.parametrize("name", ["features", "samples", "frame", "tasks"])
def test_cross_by_mapie(name):
    model, draw = MODELS.get(name, (FirstColumnIsTask(cs.TaskClusterRegressor(2)), column_of_tasks))
    X, y = draw()
    conformal = regression.CrossConformalRegressor(clone(model), CONFIDENCE, cv=5)
    conformal.fit_conformalize(some(X, slice(0, 400)), y[:400])
    _, intervals = conformal.predict_interval(some(X, NEW))
    band = 3.0 * np.sqrt(0.9 * 0.1 * (1 / 400 + 1 / N_EACH))
    assert share(y[NEW], *intervals[:, :, 0].T) == pytest.approx(0.9, abs=band)


class FirstColumnIsTask(RegressorMixin, BaseEstimator):
    """Tasks for what passes nothing but ``X``, as in the documentation."""

    def __init__(self, model):
        self.model = model

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        self.model_ = clone(self.model).fit(X[:, 1:], y, tasks=X[:, 0])
        return self

    def predict(self, X):
        return self.model_.predict(X[:, 1:], tasks=X[:, 0])


def column_of_tasks():
    X, y, tasks = with_tasks()
    return np.column_stack([tasks, X]), y


def test_split_of_tasks_by_mapie():
    X, y = column_of_tasks()
    model = FirstColumnIsTask(cs.TaskClusterRegressor(2)).fit(X[FIT], y[FIT])
    conformal = regression.SplitConformalRegressor(model, CONFIDENCE, prefit=True)
    conformal.conformalize(X[CALIBRATE], y[CALIBRATE])
    covered = share(y[NEW], *conformal.predict_interval(X[NEW])[1][:, :, 0].T)
    assert covered == pytest.approx(0.9, abs=BAND)


@pytest.mark.parametrize(
    "model", [cs.TaskClusterRegressor(2), cs.TaskClusterRegressorCV([1, 2], cv=3)]
)
def test_every_task_is_covered_with_a_bin_of_its_own(model):
    """With one width for all, the task of much noise is not."""
    X, y, tasks = with_tasks()
    fitted = clone(model).fit(X[FIT], y[FIT], tasks=tasks[FIT])
    residuals = y[CALIBRATE] - fitted.predict(X[CALIBRATE], tasks=tasks[CALIBRATE])
    predictions = fitted.predict(X[NEW], tasks=tasks[NEW])
    own = crepes.ConformalRegressor().fit(residuals=residuals, bins=tasks[CALIBRATE])
    own = own.predict_int(predictions, bins=tasks[NEW], confidence=CONFIDENCE)
    for task in range(6):
        mine = tasks[NEW] == task
        covered = share(y[NEW][mine], *own[mine].T)
        assert covered == pytest.approx(0.9, abs=BAND_OF_TASK)
    one = crepes.ConformalRegressor().fit(residuals=residuals)
    one = one.predict_int(predictions, confidence=CONFIDENCE)
    assert share(y[NEW], *one.T) == pytest.approx(0.9, abs=BAND)
    assert share(y[NEW][mine], *one[mine].T) < 0.7


CLASSIFIERS = {
    "features": cs.FeatureClusterClassifier(2),
    "samples": cs.SampleClusterClassifier(2),
    "search": cs.FeatureClusterClassifierCV([2, 3]),
    "frame": cs.FeatureClusterClassifier(5),
}


def classes(name):
    X, y = frame() if name == "frame" else numbers()
    return X, np.digitize(y, [-1.0, 1.0])


@pytest.mark.parametrize("name", [name for name in CLASSIFIERS if name != "frame"])
def test_classes_by_mapie(name):
    X, y = classes(name)
    fitted = clone(CLASSIFIERS[name]).fit(X[FIT], y[FIT])
    conformal = classification.SplitConformalClassifier(fitted, CONFIDENCE, prefit=True)
    conformal.conformalize(X[CALIBRATE], y[CALIBRATE])
    sets = conformal.predict_set(X[NEW])[1][:, :, 0]
    assert sets[np.arange(N_EACH), y[NEW]].mean() == pytest.approx(0.9, abs=BAND)
    assert sets.sum(axis=1).mean() < 2.5


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classes_by_crepes(name):
    X, y = classes(name)
    conformal = crepes.WrapClassifier(clone(CLASSIFIERS[name]))
    conformal.fit(some(X, FIT), y[FIT])
    conformal.calibrate(some(X, CALIBRATE), y[CALIBRATE], seed=0)
    sets = conformal.predict_set(some(X, NEW), labels=False, confidence=CONFIDENCE, seed=0)
    assert sets[np.arange(N_EACH), y[NEW]].mean() == pytest.approx(0.9, abs=BAND)


def test_classes_of_tasks_by_crepes():
    X, y, tasks = with_tasks()
    y = (y > 0.0).astype(int)
    model = cs.TaskClusterClassifier(2).fit(X[FIT], y[FIT], tasks=tasks[FIT])
    shares = model.predict_proba(X[CALIBRATE], tasks=tasks[CALIBRATE])
    conformal = crepes.ConformalClassifier().fit(
        hinge(shares, model.classes_, y[CALIBRATE]), bins=tasks[CALIBRATE]
    )
    shares = model.predict_proba(X[NEW], tasks=tasks[NEW])
    sets = conformal.predict_set(hinge(shares), bins=tasks[NEW], confidence=CONFIDENCE, seed=0)
    covered = sets[np.arange(N_EACH), y[NEW]]
    for task in range(6):
        assert covered[tasks[NEW] == task].mean() == pytest.approx(0.9, abs=BAND_OF_TASK)
