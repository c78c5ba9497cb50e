"""Offsets in models of features, against shifted targets, brute force and folds by hand."""

import dask.array as da
import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import get_scorer, make_scorer, mean_poisson_deviance
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import clustruct as cs
from clustruct.arrays import to_host
from tests import brute_force
from tests.losses.users import Poisson

N, D = 90, 5
FOLDS = KFold(3)
PLAIN = {"alpha": 0.02, "random_state": 0}


@pytest.fixture(scope="module")
def problem():
    """Samples, the scores of grouped features, and an offset that is not small."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    scores = X @ np.array([0.8, 0.8, 0.0, -0.7, -0.7]) + 0.3
    return X, scores, X[:, 2] + rng.standard_normal(N)


def poisson(y, z):
    """Half the deviance, written once more."""
    logs = np.log(np.where(y > 0, y, 1.0))
    return (np.exp(z) - y + y * (logs - z)).sum(axis=1), np.exp(z) - y


@pytest.fixture(scope="module")
def cases(problem):
    """For each loss: the model, its targets and offset, the loss and targets of brute force."""
    _, scores, offset = problem
    rng = np.random.default_rng(1)
    numbers = scores + offset + 0.3 * rng.standard_normal(N)
    signs = np.where(scores + offset + rng.logistic(size=N) > 0, 1.0, -1.0)
    counts = rng.poisson(np.exp(scores + offset)).astype(float)
    of_classes = np.column_stack([offset, -offset, 0.5 * offset])
    codes = (np.column_stack([scores, -scores, 0 * scores]) + of_classes).argmax(axis=1)
    rest = rng.random(N) < 0.3
    codes[rest] = rng.integers(0, 3, rest.sum())
    Number, Class = cs.FeatureClusterRegressor, cs.FeatureClusterClassifier
    two = np.column_stack([numbers, numbers[::-1]])
    return {
        "squared": (Number(3, **PLAIN), numbers, offset, brute_force.squared, numbers),
        "huber": (
            Number(3, loss="huber", huber_delta=0.3, **PLAIN),
            numbers,
            offset,
            brute_force.huber(0.3),
            numbers,
        ),
        "poisson": (Number(3, loss=Poisson(), **PLAIN), counts, offset, poisson, counts),
        "logistic": (
            Class(3, **PLAIN),
            np.where(signs > 0, "yes", "no"),
            offset,
            brute_force.logistic,
            signs,
        ),
        "multinomial": (Class(3, **PLAIN), codes, of_classes, brute_force.multinomial, codes),
        "classes by squares": (
            Class(3, loss="squared", **PLAIN),
            signs,
            offset,
            brute_force.squared,
            signs,
        ),
        "two outputs": (
            Number(3, **PLAIN),
            two,
            np.column_stack([offset, -offset]),
            brute_force.squared,
            two,
        ),
    }


LOSSES = (
    "squared",
    "huber",
    "poisson",
    "logistic",
    "multinomial",
    "classes by squares",
    "two outputs",
)
every_loss = pytest.mark.parametrize("name", LOSSES)


@pytest.mark.parametrize("fit_intercept", [True, False])
@every_loss
def test_the_fit_and_its_bound_are_those_of_brute_force(name, fit_intercept, problem, cases):
    X = problem[0]
    model, y, offset, loss, targets = cases[name]
    weights = np.random.default_rng(3).integers(1, 4, N) * 1.0
    model = clone(model).set_params(fit_intercept=fit_intercept)
    model.fit(X, y, sample_weight=weights, offset=offset)
    columns = offset.reshape(N, -1)
    target = targets if name == "multinomial" else targets.reshape(N, -1)
    best = min(
        brute_force.smooth(
            lambda y, z: loss(y, z + columns),
            X,
            target,
            labels,
            alpha=0.02,
            shares=weights / weights.sum(),
            intercept=fit_intercept,
            n_outputs=columns.shape[1],
        )[0]
        for labels in brute_force.groupings(D, 3)
    )
    assert model.objective_ == pytest.approx(best, rel=1e-5)
    assert model.certificate_.lower_bound <= best * (1 + 1e-9)
    assert model.certificate_.lower_bound > 0.5 * best  # it proves something
    assert model.has_offset_


def test_squared_loss_is_that_of_shifted_targets(problem, cases):
    X = problem[0]
    model, y, offset, *_ = cases["squared"]
    one, other = clone(model).fit(X, y, offset=offset), clone(model).fit(X, y - offset)
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))  # as if the offset were zero
    np.testing.assert_array_equal(one.predict(X, offset), other.predict(X) + offset)
    paths = [
        cs.feature_cluster_path(X, *given, n_clusters=(1, 2), alphas=0.1, **more)
        for given, more in (((y,), {"offset": offset}), ((y - offset,), {}))
    ]
    np.testing.assert_array_equal(paths[0].coefs, paths[1].coefs)


def test_log_exposure_is_the_same_as_rates_weighted_by_exposure(problem, cases):
    X = problem[0]
    model, counts, offset, *_ = cases["poisson"]
    exposure = np.exp(offset)
    one = clone(model).fit(X, counts, offset=offset)
    alpha = 0.02 * N / exposure.sum()  # the ridge counts for each sample, not for its exposure
    other = clone(model).set_params(alpha=alpha)
    other.fit(X, counts / exposure, sample_weight=exposure)
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-5)
    np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-5)  # rates
    np.testing.assert_allclose(one.predict(X, offset), exposure * other.predict(X), rtol=1e-5)


@every_loss
def test_predictions_add_the_offset_to_the_scores(name, problem, cases):
    X = problem[0]
    model, y, offset, *_ = cases[name]
    model = clone(model).fit(X, y, offset=offset)
    columns = offset.reshape(N, -1)
    scores = X @ np.atleast_2d(model.coef_).T + model.intercept_ + columns
    if hasattr(model, "classes_"):
        decided = scores if scores.shape[1] > 1 else scores[:, 0]
        np.testing.assert_allclose(model.decision_function(X, offset), decided)
        best = scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(int)
        np.testing.assert_array_equal(model.predict(X, offset), model.classes_[best])
        share = np.mean(model.predict(X, offset) == y)
        assert model.score(X, y, offset=offset) == pytest.approx(share)
    else:
        expected = np.exp(scores) if name == "poisson" else scores
        np.testing.assert_allclose(model.predict(X, offset), expected.reshape(y.shape))
        assert model.score(X, y, offset=offset) > model.score(X, y)
    if hasattr(model, "predict_proba"):
        shares = model.predict_proba(X, offset)
        np.testing.assert_allclose(np.exp(model.predict_log_proba(X, offset)), shares)
        full = scores if scores.shape[1] > 1 else np.column_stack([0 * scores, scores])
        expected = np.exp(full) / np.exp(full).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(shares, expected)


# ---- Searches

SCORES = {
    "squared": (None, "r2"),
    "huber": (None, "neg_mean_absolute_error"),
    "poisson": (None, make_scorer(mean_poisson_deviance, greater_is_better=False)),
    "logistic": (None, "accuracy", "roc_auc", lambda model, X, y: float(model.score(X, y))),
    "multinomial": (None, "balanced_accuracy"),
    "classes by squares": (None, "f1"),
}


def by_hand(plain, X, y, offset, scoring):
    """Scores on the folds, with offsets for both fit and prediction."""
    found = []
    for rest, held in FOLDS.split(X):
        fitted = clone(plain).fit(X[rest], y[rest], offset=offset[rest])

        class Shifted(type(fitted)):
            def _scores(self, design, _=None, own=offset[held]):
                return super()._scores(design, own)

        fitted.__class__ = Shifted
        found.append(get_scorer(scoring)(fitted, X[held], y[held]))
    return np.array(found)


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("name", SCORES)
def test_searches_fit_and_score_with_the_offset(name, elsewhere, problem, cases):
    X = problem[0]
    plain, y, offset, *_ = cases[name]
    plain = clone(plain).set_params(n_clusters=2, solver="greedy")
    kind = cs.FeatureClusterClassifierCV if "classes_" in vars(clone(plain).fit(X, y)) else None
    kind = kind or cs.FeatureClusterRegressorCV
    shared = {k: v for k, v in plain.get_params().items() if k in ("loss", "huber_delta")}
    default = {
        "squared": "neg_mean_squared_error",
        "huber": "neg_mean_squared_error",
        "poisson": "neg_mean_poisson_deviance",
        "classes by squares": "accuracy",
    }.get(name, "neg_log_loss")
    given = X, y, offset
    if elsewhere:
        given = da.from_array(X, chunks=(40, D)), y, da.from_array(offset, chunks=50)
    for scoring in SCORES[name]:
        if elsewhere and callable(scoring) and not hasattr(scoring, "_score_func"):
            continue  # a function of samples, which are not in memory
        search = kind(
            (2,), alphas=0.02, relax=1.0, solver="greedy", cv=FOLDS, scoring=scoring, **shared
        )
        search.fit(*given[:2], offset=given[2])
        expected = by_hand(plain, X, y, offset, scoring or default)
        np.testing.assert_allclose(search.cv_results_.fold_scores.ravel(), expected, rtol=1e-5)
        assert search.has_offset_
        if scoring is None and not elsewhere:  # it makes a difference
            without = clone(search).fit(X, y).cv_results_.fold_scores.ravel()
            assert not np.allclose(without, expected, rtol=1e-3)


def test_weights_of_zero_and_information_criteria(problem, cases):
    X = problem[0]
    _, y, offset, *_ = cases["poisson"]
    kept = np.arange(N) % 4 > 0
    settings = {"alphas": 0.02, "loss": Poisson(), "random_state": 0}
    for more in ({"cv": 3}, {"criterion": "bic"}):
        search = cs.FeatureClusterRegressorCV((1, 2, 3), **settings, **more)
        one = clone(search).fit(X, y, sample_weight=1.0 * kept, offset=offset)
        other = clone(search).fit(X[kept], y[kept], offset=offset[kept])
        np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-6)
        assert one.best_score_ == pytest.approx(other.best_score_)


def test_groups_that_are_hidden_without_the_offset():
    rng = np.random.default_rng(0)
    labels = np.arange(12) % 3
    X = rng.standard_normal((400, 12))
    exposure = np.exp(X @ rng.uniform(-0.5, 0.5, 12))  # depends on the features
    y = rng.poisson(exposure * np.exp(X @ np.array([-0.4, 0.0, 0.4])[labels] + 1.0)).astype(float)
    model = cs.FeatureClusterRegressor(3, alpha=1e-4, loss=Poisson(), random_state=0)
    np.testing.assert_array_equal(model.fit(X, y, offset=np.log(exposure)).labels_, labels)
    assert (model.fit(X, y).labels_ != labels).any()


# ---- Elsewhere


@every_loss
def test_pieces_give_the_same(name, problem, cases):
    X = problem[0]
    model, y, offset, *_ = cases[name]
    here = clone(model).fit(X, y, offset=offset)
    there_X, there_o = da.from_array(X, chunks=(25, D)), da.from_array(offset, chunks=40)
    there = clone(model).fit(there_X, y, offset=there_o)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-7)
    predicted = there.predict(there_X, there_o).compute()
    if y.dtype.kind == "f":
        np.testing.assert_allclose(predicted, here.predict(X, offset), atol=1e-6)
    else:
        np.testing.assert_array_equal(predicted, here.predict(X, offset))
    mixed = there.predict(there_X, offset).compute()  # an offset of the host beside pieces
    np.testing.assert_array_equal(mixed, predicted)


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "poisson"])
def test_other_libraries_give_the_same(name, library, problem, cases):
    X = problem[0]
    model, y, offset, *_ = cases[name]
    here = clone(model).fit(X, y, offset=offset)
    there_X, there_o = library.asarray(X), library.asarray(offset)
    there = clone(model).fit(there_X, y, offset=there_o)
    np.testing.assert_allclose(to_host(there.coef_), here.coef_, atol=1e-7)
    answers = to_host(there.predict(there_X, there_o))
    if y.dtype.kind == "f":
        np.testing.assert_allclose(answers, here.predict(X, offset), atol=1e-6)
    else:
        np.testing.assert_array_equal(answers, here.predict(X, offset))


def test_a_mapped_file_larger_than_memory(problem, cases, tmp_path, monkeypatch):
    X = problem[0]
    model, y, offset, *_ = cases["logistic"]
    X.tofile(tmp_path / "X.bin")
    mapped = np.memmap(tmp_path / "X.bin", dtype=float, mode="r", shape=X.shape)
    for module in ("pieces", "blocks"):
        monkeypatch.setattr(f"clustruct.design.partitioned.{module}.available_bytes", lambda: 1e3)
    monkeypatch.setattr("clustruct.design.partitioned.collections.CHUNK_BYTES", 20 * D * 8)
    there = clone(model).fit(mapped, y, offset=offset)
    here = clone(model).fit(X, y, offset=offset)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-7)


# ---- scikit-learn


def test_metadata_is_routed(problem, cases):
    X = problem[0]
    model, y, offset, *_ = cases["poisson"]
    with config_context(enable_metadata_routing=True):
        model = clone(model).set_fit_request(offset=True).set_score_request(offset=True)
        found = cross_validate(model, X, y, cv=FOLDS, params={"offset": offset})["test_score"]
        expected = [
            clone(model)
            .fit(X[rest], y[rest], offset=offset[rest])
            .score(X[held], y[held], offset=offset[held])
            for rest, held in FOLDS.split(X)
        ]
        np.testing.assert_allclose(found, expected)
        pipe = make_pipeline(StandardScaler(), model.set_predict_request(offset=True))
        search = GridSearchCV(pipe, {"featureclusterregressor__alpha": [0.02, 10.0]}, cv=FOLDS)
        search.fit(X, y, offset=offset)
        assert search.best_params_ == {"featureclusterregressor__alpha": 0.02}
        best = search.best_estimator_
        assert best[-1].has_offset_
        expected = best[-1].predict(best[:-1].transform(X), offset)
        np.testing.assert_allclose(best.predict(X, offset=offset), expected)
    kinds = (cs.FeatureClusterRegressorCV, cs.SampleClusterClassifierCV, cs.TaskClusterClassifier)
    for kind in kinds:
        for method in ("fit", "predict", "score"):
            assert hasattr(kind(), f"set_{method}_request")
    assert hasattr(cs.FeatureClusterClassifier(), "set_predict_proba_request")


def test_models_of_scikit_learn_take_no_offset(problem, cases):
    X = problem[0]
    model, y, offset, *_ = cases["squared"]
    with pytest.raises(ValueError, match=r"was fitted with an offset.*give `predict` the offset"):
        clone(model).fit(X, y, offset=offset).to_sklearn()
    again = clone(model).fit(X, y, offset=offset).fit(X, y)
    assert not again.has_offset_
    again.to_sklearn()


def test_model_files_keep_it_and_those_of_before_had_none(problem, cases, tmp_path):
    X = problem[0]
    for name in ("logistic", "squared"):
        model, y, offset, *_ = cases[name]
        model = clone(model).fit(X, y, offset=offset)
        cs.save(model, tmp_path / "model")
        again = cs.load(tmp_path / "model")
        assert again.has_offset_
        np.testing.assert_array_equal(again.predict(X, offset), model.predict(X, offset))
        del model.has_offset_  # as in a file of before
        cs.save(model, tmp_path / "model")
        assert not cs.load(tmp_path / "model").has_offset_


@pytest.mark.parametrize(
    ("offset", "message"),
    [
        (np.zeros(N - 1), r"offset has shape \(89,\), but X has 90 samples. Give one number"),
        (np.zeros((N, 2)), r"offset has shape \(90, 2\), but a sample has 1 scores"),
        (np.zeros((N, 1, 1)), r"offset has shape \(90, 1, 1\), but a sample has 1 scores"),
        (np.r_[np.nan, -np.inf, np.zeros(N - 2)], "offset contains NaN or infinity, 2 times.*exp"),
        (["a"] * N, "could not convert string"),
    ],
)
def test_bad_offsets_are_told(offset, message, problem, cases):
    X = problem[0]
    model, y, *_ = cases["logistic"]
    with pytest.raises(ValueError, match=message):
        clone(model).fit(X, y, offset=offset)
    with pytest.raises(ValueError, match=message):
        clone(model).fit(X, y).predict(X, offset)
    pieces = da.from_array(X, chunks=(30, D))
    if np.asarray(offset).dtype.kind == "f" and np.ndim(offset) < 3:
        with pytest.raises(ValueError, match=message.removesuffix("number")):
            clone(model).fit(pieces, y, offset=da.from_array(np.asarray(offset), chunks=30))


def test_an_offset_that_changes_no_probability_is_refused(problem, cases):
    X = problem[0]
    model, y, offset, *_ = cases["multinomial"]
    with pytest.raises(ValueError, match=r"for all 3 classes changes no probability.*each class"):
        clone(model).fit(X, y, offset=offset[:, 0])


def test_one_number_for_all_samples_is_a_matter_of_the_intercept(problem, cases):
    X = problem[0]
    model, y, *_ = cases["logistic"]
    one, other = clone(model).fit(X, y, offset=2.0), clone(model).fit(X, y)
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-6)
    np.testing.assert_allclose(one.intercept_ + 2.0, other.intercept_, atol=1e-6)
