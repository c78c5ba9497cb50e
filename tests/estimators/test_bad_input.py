"""What cannot be fitted gets an error that helps; what can, gets a sensible fit."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import InvalidParameterError

from clustruct import FeatureClusterClassifier, FeatureClusterRegressor

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 6))
Y = X @ np.repeat([1.0, -1.0], 3) + 0.1 * RNG.standard_normal(40)
C = (Y > 0).astype(int)

METHODS = {
    FeatureClusterRegressor: ("predict", "transform"),
    FeatureClusterClassifier: (
        "predict",
        "transform",
        "decision_function",
        "predict_proba",
        "predict_log_proba",
    ),
}


def assert_unfitted(model):
    """A model whose fit failed behaves as if it had never been tried."""
    for name in (name for name in METHODS[type(model)] if hasattr(model, name)):
        with pytest.raises(NotFittedError):
            getattr(model, name)(X)
    for name in ("clusters", "to_sklearn", "get_feature_names_out"):
        with pytest.raises(NotFittedError):
            getattr(model, name)()


@pytest.mark.parametrize("kind", METHODS)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_clusters": 0}, r"'n_clusters'.*0"),
        ({"n_clusters": -3}, r"'n_clusters'.*-3"),
        ({"n_clusters": 2.5}, r"'n_clusters'.*2\.5"),
        ({"n_clusters": "many"}, r"'n_clusters'.*many"),
        ({"n_nonzero": 0}, r"'n_nonzero'.*0"),
        ({"n_nonzero": 1.5}, r"'n_nonzero'.*1\.5"),
        ({"alpha": -1.0}, r"'alpha'.*-1"),
        ({"alpha": np.nan}, r"'alpha'.*nan"),
        ({"alpha": np.inf}, r"'alpha'.*inf"),
        ({"alpha": "strong"}, r"'alpha'.*strong"),
        ({"loss": "hinge"}, r"'loss'.*'squared'.*hinge"),
        ({"solver": "magic"}, r"'solver'.*'pg'.*magic"),
        ({"init": "random"}, r"'init'.*'zeros'.*random"),
        ({"n_init": 0}, r"'n_init'.*0"),
        ({"max_iter": 0}, r"'max_iter'.*0"),
        ({"tol": -1e-3}, r"'tol'.*-0\.001"),
        ({"solver_options": [1]}, r"'solver_options'.*\[1\]"),
        ({"random_state": "seed"}, r"'random_state'.*seed"),
        ({"fit_intercept": "yes"}, r"'fit_intercept'.*yes"),
    ],
)
def test_parameters_out_of_range(kind, options, message):
    model = kind(**options)
    with pytest.raises(InvalidParameterError, match=f"(?s){message}"):
        model.fit(X, C)
    assert_unfitted(model)


@pytest.mark.parametrize("kind", METHODS)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"init": [1.0, 2.0]}, r"init has shape \(2,\).*6 features.*shape of coef_"),
        ({"init": np.ones((6, 1))}, r"init has shape \(6, 1\).*6 features"),
        ({"init": np.ones((1, 1, 6))}, r"init has shape \(1, 1, 6\)"),
        ({"init": [np.nan] * 6}, "init holds weights that are not finite"),
        (
            {"solver": "pg", "solver_options": {"speed": 1}},
            "solver_options has 'speed', which solver='pg' does not know.*refit, longest",
        ),
        (
            {"solver": "greedy", "solver_options": {"step": "classic"}},
            "solver='greedy' does not know.*refit",
        ),
    ],
)
def test_parameters_that_do_not_fit_the_data(kind, options, message):
    model = kind(**{"n_clusters": 2, **options})
    with pytest.raises(ValueError, match=message):
        model.fit(X, C)
    assert_unfitted(model)


@pytest.mark.parametrize("solver", ["cg", "cgpg"])
def test_solvers_that_cannot(solver):
    for model, y in (
        (FeatureClusterRegressor(2, loss="huber", solver=solver), Y),
        (FeatureClusterClassifier(2, solver=solver), C),
    ):
        with pytest.raises(ValueError, match="'cg' and 'cgpg' work with squared loss only"):
            model.fit(X, y)
        assert_unfitted(model)
    model = FeatureClusterRegressor(2, alpha=0.0, solver=solver)
    with pytest.raises(ValueError, match="need a ridge, and alpha=0 gives none"):
        model.fit(X, Y)
    assert_unfitted(model)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("kind", METHODS)
def test_numbers_that_are_none(kind, bad):
    holed = X.copy()
    holed[3, 2] = bad
    for matrix in (holed, sparse.csr_matrix(holed)):
        model = kind(2)
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            model.fit(matrix, C)
        assert_unfitted(model)
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            kind(2).fit(X, C).predict(matrix)
    y = Y.copy()
    y[0] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        FeatureClusterRegressor(2).fit(X, y)


@pytest.mark.parametrize("kind", METHODS)
def test_shapes(kind):
    with pytest.raises(ValueError, match=r"y has .* targets, but X has"):
        kind(2).fit(X, C[:-1])
    with pytest.raises(ValueError, match="Expected 2D array, got 1D"):
        kind(2).fit(Y, C)
    with pytest.raises(ValueError, match="0 feature"):
        kind(2).fit(np.empty((40, 0)), C)
    with pytest.raises(ValueError, match="0 sample"):
        kind(2).fit(np.empty((0, 6)), np.empty(0))
    with pytest.raises(ValueError, match="5 features, but"):
        kind(2).fit(X, C).predict(X[:, :5])


def test_classes():
    model = FeatureClusterClassifier(2)
    with pytest.raises(ValueError, match=r"one class only, 'a'.*at least two classes"):
        model.fit(X, np.full(40, "a"))
    assert_unfitted(model)
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        FeatureClusterClassifier(2).fit(X, Y)


def test_failed_refit_keeps_nothing_that_was_not_fitted():
    model = FeatureClusterRegressor(2).fit(X, Y)
    before = model.predict(X)
    model.set_params(n_clusters={0: 1})
    with pytest.raises(ValueError, match="n_clusters is a mapping, which needs blocks"):
        model.fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), before)


# ---- Odd, but fine.


@pytest.mark.parametrize("solver", ["greedy", "pg", "cg", "cgpg"])
@pytest.mark.parametrize("alpha", [1e-3, 1e-12])
def test_constant_answers(solver, alpha):
    for value in (0.0, 5.0):
        model = FeatureClusterRegressor(2, solver=solver, alpha=alpha).fit(X, np.full(40, value))
        np.testing.assert_allclose(model.coef_, 0.0, atol=1e-9)
        np.testing.assert_allclose(model.predict(X), value, atol=1e-9)
        assert model.objective_ <= 1e-20
        assert model.certificate_.gap <= 1e-20


@pytest.mark.parametrize("init", ["zeros", "auto", np.ones(6)], ids=["zeros", "auto", "array"])
@pytest.mark.parametrize("options", [{}, {"n_nonzero": 3}])
def test_constant_answers_with_hubers_loss(init, options):
    for intercept, value in ((True, 5.0), (False, 0.0)):
        model = FeatureClusterRegressor(
            2, loss="huber", init=init, fit_intercept=intercept, **options
        ).fit(X, np.full(40, value))
        np.testing.assert_allclose(model.predict(X), value, atol=1e-6)


@pytest.mark.parametrize("solver", ["greedy", "pg", "cg", "cgpg"])
def test_zero_and_duplicate_columns(solver):
    matrix = np.column_stack([X[:, 0], X[:, 0], np.zeros(40), X[:, 3], np.full(40, 3.0)])
    for form in (np.asarray, sparse.csr_matrix):
        model = FeatureClusterRegressor(3, solver=solver, tol=1e-4).fit(form(matrix), Y)
        assert np.isfinite(model.coef_).all()
        assert model.coef_[0] == model.coef_[1]
        assert model.coef_[2] == model.coef_[4]  # neither says anything
    if solver in ("greedy", "pg"):
        for alpha in (0.0, 1e-3):
            classifier = FeatureClusterClassifier(3, solver=solver, alpha=alpha).fit(matrix, C)
            assert np.isfinite(classifier.coef_).all()


def test_all_columns_zero():
    for model, y in ((FeatureClusterRegressor(2), Y), (FeatureClusterClassifier(2), C)):
        model.fit(np.zeros((40, 6)), y)
        assert not model.coef_.any()
    assert FeatureClusterRegressor(2, n_nonzero=3).fit(np.zeros((40, 6)), Y).n_clusters_ == 0


@pytest.mark.parametrize("solver", ["greedy", "pg", "cg", "cgpg"])
def test_one_feature(solver):
    model = FeatureClusterRegressor(3, solver=solver).fit(X[:, :1], Y)
    assert model.labels_.tolist() == [0]
    assert model.transform(X[:, :1]).shape == (40, 1)
    sparse_one = FeatureClusterRegressor(1, n_nonzero=1, solver=solver).fit(X[:, :1], Y)
    np.testing.assert_allclose(sparse_one.coef_, model.coef_)


@pytest.mark.parametrize("solver", ["greedy", "pg", "cg", "cgpg"])
def test_one_sample(solver):
    model = FeatureClusterRegressor(2, solver=solver).fit(X[:1], Y[:1])
    # The intercept says it all.
    np.testing.assert_array_equal(model.coef_, 0.0)
    assert model.intercept_ == pytest.approx(Y[0])
    bare = FeatureClusterRegressor(2, solver=solver, fit_intercept=False, alpha=1e-8)
    assert bare.fit(X[:1], Y[:1]).predict(X[:1])[0] == pytest.approx(Y[0], rel=1e-3)


def test_two_samples_of_two_classes():
    model = FeatureClusterClassifier(2).fit(X[:2], ["a", "b"])
    assert model.predict(X[:2]).tolist() == ["a", "b"]


@pytest.mark.parametrize("alpha", [0.0, 1e-10])
def test_separated_classes(alpha):
    for y in (X[:, 0] > 0, np.digitize(X[:, 0], [-0.5, 0.5])):
        model = FeatureClusterClassifier(6, alpha=alpha).fit(X, y)
        assert np.isfinite(model.coef_).all()
        assert model.score(X, y) == 1.0
        proba = model.predict_proba(X)
        assert np.isfinite(proba).all()


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_answers_of_any_size(scale):
    plain = FeatureClusterRegressor(2).fit(X, Y)
    for solver in ("pg", "cg"):
        model = FeatureClusterRegressor(2, solver=solver, tol=1e-4).fit(X, scale * Y)
        np.testing.assert_allclose(model.coef_ / scale, plain.coef_, rtol=1e-9)
        assert 0.0 < model.certificate_.lower_bound <= model.objective_


@pytest.mark.parametrize("solver", ["greedy", "pg", "cg", "cgpg"])
def test_columns_of_very_different_units(solver):
    # The answers depend on the columns in small units alone.
    matrix = X[:, :4] * [1e6, 1e6, 1e-1, 1e-1]
    y = 10 * (matrix[:, 2] - matrix[:, 3])
    free = FeatureClusterRegressor(4, alpha=1e-4).fit(matrix, y)
    model = FeatureClusterRegressor(3, alpha=1e-4, solver=solver, tol=1e-4).fit(matrix, y)
    assert model.certificate_.lower_bound <= free.objective_ * 1.01
    assert model.score(matrix, y) > 0.99
