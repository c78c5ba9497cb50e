"""Models of clustered samples: answers, gate, choice of their number, contracts."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import Ridge

import clustruct as cs
from clustruct.datasets import fetch_tone, make_experts


@pytest.fixture(scope="module")
def problem():
    return make_experts(300, 3, 2, intercepts=[0.0, 2.0], random_state=4)


@pytest.fixture(scope="module")
def classes():
    return make_experts(100, 3, 2, n_outputs=4, noise=0.1, classification=True, random_state=1)


@pytest.fixture(scope="module")
def model(problem):
    return cs.SampleClusterRegressor(2, random_state=0).fit(problem.X, problem.y)


def test_answers(problem, model):
    answers = model.predict_experts(problem.X)
    np.testing.assert_allclose(answers, problem.X @ model.experts_.T + model.intercepts_)
    np.testing.assert_allclose(model.predict(problem.X), answers @ model.weights_)
    losses = 0.5 * np.square(problem.y[:, None] - answers)
    assert model.best_loss(problem.X, problem.y) == pytest.approx(losses.min(axis=1).mean())
    assert (model.assign(problem.X, problem.y) == model.labels_).all()
    assert model.weights_.sum() == pytest.approx(1.0)
    assert (np.diff(model.weights_) <= 0).all()
    np.testing.assert_allclose(np.bincount(model.labels_) / 300, model.weights_)
    assert model.objective_ == pytest.approx(model.certificate_.objective)


def test_one_expert_is_ridge(problem):
    single = cs.SampleClusterRegressor(1, alpha=0.1).fit(problem.X, problem.y)
    ridge = Ridge(alpha=0.1 * 300).fit(problem.X, problem.y)
    np.testing.assert_allclose(single.experts_[0], ridge.coef_, rtol=1e-6)
    np.testing.assert_allclose(single.predict(problem.X), ridge.predict(problem.X), rtol=1e-6)


@pytest.mark.parametrize(
    "convert", [sparse.csr_matrix, sparse.csc_matrix, np.float32, pd.DataFrame]
)
def test_other_kinds_of_matrices(problem, model, convert):
    X = problem.X.astype(np.float32) if convert is np.float32 else convert(problem.X)
    if convert is pd.DataFrame:
        X.columns = ["a", "b", "c"]
    other = clone(model).fit(X, problem.y)
    np.testing.assert_allclose(other.experts_, model.experts_, rtol=1e-3, atol=1e-4)
    assert other.predict(X).shape == (300,)


def test_several_outputs():
    data = make_experts(300, 3, 2, n_outputs=2, random_state=0)
    model = cs.SampleClusterRegressor(2, random_state=0).fit(data.X, data.y)
    assert model.experts_.shape == (2, 2, 3)
    assert model.predict(data.X).shape == (300, 2)
    assert model.predict_experts(data.X).shape == (300, 2, 2)
    assert model.best_loss(data.X, data.y) < 0.05


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_weights_equal_repetition(problem, loss):
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 4, 300)
    settings = {"loss": loss, "random_state": 0}
    weighted = cs.SampleClusterRegressor(2, **settings).fit(problem.X, problem.y, counts)
    X, y = np.repeat(problem.X, counts, axis=0), np.repeat(problem.y, counts)
    repeated = cs.SampleClusterRegressor(2, **settings).fit(X, y)
    np.testing.assert_allclose(weighted.experts_, repeated.experts_, rtol=1e-5)
    assert weighted.labels_.shape == (300,)


@pytest.mark.parametrize("solver", ["am", "pg", "cg", "rc", "em"])
def test_weights_equal_repetition_with_starts_on_few_columns(solver):
    data = make_experts(200, 4, 2, noise_share=0.9, random_state=3)
    counts = np.random.default_rng(0).integers(0, 4, 200)
    model = cs.SampleClusterRegressor(2, solver=solver, n_init=2, random_state=0)
    weighted = clone(model).fit(data.X, data.y, counts)
    repeated = model.fit(np.repeat(data.X, counts, axis=0), np.repeat(data.y, counts))
    np.testing.assert_allclose(weighted.experts_, repeated.experts_, rtol=1e-5, atol=1e-6)


def test_weights_equal_repetition_with_a_gate():
    data = make_experts(120, 3, 2, separation=2.0, random_state=1)
    counts = np.random.default_rng(0).integers(0, 4, 120)
    model = cs.SampleClusterRegressor(2, gate=True, random_state=0)
    weighted = clone(model).fit(data.X, data.y, counts)
    repeated = model.fit(np.repeat(data.X, counts, axis=0), np.repeat(data.y, counts))
    np.testing.assert_allclose(weighted.predict(data.X), repeated.predict(data.X), rtol=1e-4)
    assert weighted.gate_score_.gated == pytest.approx(repeated.gate_score_.gated, rel=1e-4)


def test_gate_does_not_depend_on_order_or_kind_of_matrix():
    data = make_experts(100, 3, 2, separation=2.0, random_state=1)
    model = cs.SampleClusterRegressor(2, gate=True, random_state=0)
    answers = clone(model).fit(data.X, data.y).predict(data.X)
    turned = clone(model).fit(data.X[::-1], data.y[::-1]).predict(data.X)
    np.testing.assert_allclose(turned, answers, rtol=1e-4)
    thin = model.fit(sparse.csr_matrix(data.X), data.y).predict(data.X)
    np.testing.assert_allclose(thin, answers, rtol=1e-4)


def test_huber_shrugs_off_outliers(problem):
    y = problem.y.copy()
    y[::30] += 50.0
    model = cs.SampleClusterRegressor(2, loss="huber", huber_delta=0.3, random_state=0)
    own = model.fit(problem.X, y).experts_[:, None] - problem.experts
    assert np.linalg.norm(own, axis=2).min(axis=0).max() < 0.2


def test_same_fit_whatever_n_jobs(problem, model):
    other = clone(model).set_params(n_jobs=2).fit(problem.X, problem.y)
    assert (other.experts_ == model.experts_).all()


@pytest.mark.parametrize("gate", [True, RandomForestClassifier(30, random_state=0)])
def test_gate_learns_who_answers(gate):
    data = make_experts(600, 3, 2, separation=4.0, random_state=1)
    X, y, X_test, y_test = data.X[:400], data.y[:400], data.X[400:], data.y[400:]
    plain = cs.SampleClusterRegressor(2, random_state=0).fit(X, y)
    gated = cs.SampleClusterRegressor(2, gate=gate, random_state=0).fit(X, y)
    assert gated.gate_score_.helps
    assert 0.5 * gated.gate_score_.best < gated.gate_score_.gated < gated.gate_score_.constant
    assert gated.score(X_test, y_test) > 0.9 > plain.score(X_test, y_test)


def test_gate_that_has_nothing_to_learn_is_not_trusted(problem):
    gated = cs.SampleClusterRegressor(2, gate=True, random_state=0).fit(problem.X, problem.y)
    assert gated.gate_score_.sharpness < 0.6
    assert gated.gate_score_.gated == pytest.approx(gated.gate_score_.constant, rel=0.05)


def test_classes(classes):
    model = cs.SampleClusterClassifier(2, n_init=1, random_state=0).fit(classes.X, classes.y)
    answers = model.predict_experts(classes.X)
    assert (answers[:, 0] != answers[:, 1]).all()
    missed = (answers != classes.y[:, None]).all(axis=1).mean()
    assert model.best_error(classes.X, classes.y) == pytest.approx(missed)
    assert missed < 0.2
    proba = model.predict_proba(classes.X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert (model.predict(classes.X) == model.classes_[proba.argmax(axis=1)]).all()
    assert model.experts_.shape == (2, 4, 3)


def test_classes_by_squared_loss(classes):
    names = np.array(["a", "b", "c", "d"])[classes.y]
    model = cs.SampleClusterClassifier(2, loss="squared", random_state=0).fit(classes.X, names)
    assert not hasattr(model, "predict_proba")
    assert set(model.predict(classes.X)) <= set("abcd")


def test_number_of_experts(problem):
    for criterion in ("bic", "icl", "cv"):
        chosen = cs.SampleClusterRegressorCV((1, 2, 3), criterion=criterion, random_state=0)
        chosen.fit(problem.X, problem.y)
        assert chosen.n_clusters_ == chosen.selection_.best == 2
        assert chosen.selection_.values.shape == (3,)


def test_number_of_experts_of_noise():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((150, 2)), rng.standard_normal(150)
    for criterion in ("bic", "icl", "cv"):
        chosen = cs.SampleClusterRegressorCV((1, 2, 3), criterion=criterion, random_state=0)
        assert chosen.fit(X, y).n_clusters_ == 1


def lines(rng, n, noise):
    """Samples of two lines, and which of them each follows."""
    x, mine = rng.uniform(-2.0, 2.0, n), rng.integers(0, 2, n)
    return x[:, None], np.where(mine == 0, x, -0.5 * x + 1.0) + noise, mine


@pytest.mark.parametrize("criterion", ["bic", "icl"])
def test_noise_is_no_expert(criterion):
    rng = np.random.default_rng(0)
    exact = rng.normal(size=200)
    cases = {
        "one rule is followed more closely": lambda mine: exact * np.where(mine == 0, 0.01, 0.2),
        "a few samples follow none": lambda mine: np.where(
            rng.random(200) < 0.08, rng.uniform(-3.0, 3.0, 200), 0.05 * exact
        ),
    }
    for noise in cases.values():
        X, y, mine = lines(np.random.default_rng(1), 200, np.zeros(200))
        model = cs.SampleClusterRegressorCV(
            (1, 2, 3, 4), criterion=criterion, n_init=3, random_state=0
        )
        assert model.fit(X, y + noise(mine)).n_clusters_ == 2


def test_heavy_tails_are_no_expert():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = X @ [1.0, 2.0] + rng.standard_t(3, 400)
    model = cs.SampleClusterRegressorCV((1, 2, 3), n_init=3, random_state=0)
    assert model.fit(X, y).n_clusters_ == 1


@pytest.mark.slow
def test_number_of_classifiers():
    # With the 100 samples of the other tests, one or two experts is within a standard error.
    many = make_experts(400, 3, 2, n_outputs=4, noise=0.1, classification=True, random_state=1)
    for criterion in ("bic+icl", "cv"):
        chosen = cs.SampleClusterClassifierCV((1, 2), criterion=criterion, cv=3, random_state=0)
        assert chosen.fit(many.X, many.y).n_clusters_ == 2
        choices = chosen.selection_.choices
        assert choices is None if criterion == "cv" else set(choices.values()) == {2}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_clusters": 9}, "more than n_samples=6"),
        ({"solver": "cg", "loss": "huber"}, "squared loss"),
        ({"solver": "am", "solver_options": {"step": 1}}, "does not know"),
        ({"solver": "em", "loss": "huber", "solver_options": {"relevance": True}}, "squared loss"),
        (
            {"solver": "cg", "solver_options": {"step": "long"}},
            "'step' parameter of solver_options",
        ),
        ({"solver": "em", "solver_options": {"relevance": 2}}, "'relevance' parameter"),
        ({"solver": "pg", "solver_options": {"shrink": 1.0}}, "'shrink' parameter"),
    ],
)
def test_clear_errors(settings, message):
    X = np.arange(12.0).reshape(6, 2)
    with pytest.raises(ValueError, match=message):
        cs.SampleClusterRegressor(**{"n_clusters": 2, **settings}).fit(X, X[:, 0])


def test_clear_errors_of_classifiers():
    X = np.arange(12.0).reshape(6, 2)
    with pytest.raises(ValueError, match="less than the number of classes"):
        cs.SampleClusterClassifier(2).fit(X, [0, 1] * 3)
    with pytest.raises(ValueError, match="one class"):
        cs.SampleClusterClassifier(1).fit(X, [0] * 6)
    fitted = cs.SampleClusterClassifier(1).fit(X, [0, 1] * 3)
    with pytest.raises(ValueError, match="was not in `fit`"):
        fitted.assign(X, [0, 1, 2] * 2)
    with pytest.raises(ValueError, match="NaN"):
        fitted.predict([[np.nan, 1.0]])


def test_constant_answers_need_one_expert():
    X = np.arange(20.0).reshape(10, 2)
    model = cs.SampleClusterRegressor(3, random_state=0).fit(X, np.ones(10))
    np.testing.assert_allclose(model.predict(X), 1.0)
    assert np.unique(model.labels_).size == model.n_clusters_


def test_lower_bound_without_intercept():
    data = make_experts(60, 2, 2, random_state=0)
    model = cs.SampleClusterRegressor(2, fit_intercept=False, alpha=1.0, random_state=0)
    certificate = model.fit(data.X, data.y).certificate_
    assert 0.0 < certificate.lower_bound < certificate.objective
    assert certificate.source == "residual"


def test_a_strong_ridge_is_obeyed_where_all_features_matter():
    data = make_experts(60, 10, 2, noise=1.0, random_state=0)
    values = [
        cs.SampleClusterRegressor(2, alpha=10.0, fit_intercept=free, random_state=0)
        .fit(data.X, data.y)
        .objective_
        for free in (True, False)
    ]
    assert values[0] <= values[1]


def test_two_lines_of_the_tones():
    try:
        X, y = fetch_tone(return_X_y=True)
    except FileNotFoundError as error:
        pytest.skip(str(error))
    model = cs.SampleClusterRegressor(2, alpha=0.0, random_state=0).fit(X, y)
    flat, stretched = np.argsort(model.experts_[:, 0])
    assert model.experts_[flat, 0] == pytest.approx(0.0, abs=0.1)
    assert model.experts_[stretched, 0] == pytest.approx(1.0, abs=0.1)


def one_rule(noise):
    """Samples of a single rule, with noise that is not normal or not the same for all."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 4.0, (300, 2))
    draws = {
        "skewed": rng.exponential(1.0, 300),
        "growing": (0.2 + 0.5 * X[:, 0]) * rng.standard_normal(300),
    }
    return X, X @ [1.0, -0.5] + draws[noise]


@pytest.mark.parametrize("noise", ["skewed", "growing"])
def test_noise_of_one_rule_is_no_expert(noise):
    model = cs.SampleClusterRegressorCV((1, 2, 3), random_state=0).fit(*one_rule(noise))
    choices = model.selection_.choices
    assert (model.n_clusters_, choices["bic+icl"], choices["icl"]) == (1, 1, 1)
    assert choices["bic"] > 1
    assert f"bic would choose {choices['bic']}" in model.status_.message


def test_experts_apart_are_not_joined():
    data = make_experts(300, 3, 3, separation=2.0, noise=0.5, random_state=0)
    found = cs.SampleClusterRegressorCV((1, 2, 3, 4), random_state=0).fit(data.X, data.y)
    assert found.selection_.choices == {"bic": 3, "icl": 2, "bic+icl": 3}
    assert "icl would choose 2" in found.selection_._repr_html_()


@pytest.mark.parametrize("slope", [-1.0, 1.0])
def test_experts_of_equal_weight_are_in_the_order_of_their_slopes(slope):
    """Ten tenths are not one in floating point, and no reason to come second."""
    x = np.linspace(1.0, 2.0, 15)
    first = np.arange(15) < 10
    model = cs.SampleClusterRegressor(2, fit_intercept=False, alpha=1e-6, random_state=0)
    model.fit(x[:, None], np.where(first, slope, -slope) * x, np.where(first, 0.1, 0.2))
    np.testing.assert_allclose(model.experts_.ravel(), [-1.0, 1.0], atol=1e-4)
    assert model.labels_.tolist() == np.where(first == (slope < 0.0), 0, 1).tolist()
