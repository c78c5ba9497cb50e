"""The estimators among those of scikit-learn: its own checks, pipelines, searches, routing."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from clustruct import FeatureClusterClassifier, FeatureClusterRegressor

CONFIGURATIONS = [
    FeatureClusterRegressor(),
    FeatureClusterRegressor(6, solver="greedy", solver_options={"refit": False}),
    FeatureClusterRegressor(2, solver="pg", n_init=2, init="zeros", fit_intercept=False),
    FeatureClusterRegressor(2, solver="cg", tol=1e-3, alpha=1e-2),
    FeatureClusterRegressor(2, solver="cgpg", tol=1e-3, alpha=1e-2),
    FeatureClusterRegressor(2, loss="huber"),
    FeatureClusterRegressor(2, loss="poisson", solver="pg"),
    FeatureClusterRegressor(2, loss="quantile", solver="pg"),
    FeatureClusterRegressor(1, n_nonzero=2),
    FeatureClusterRegressor(None, n_nonzero=1),
    FeatureClusterClassifier(),
    FeatureClusterClassifier(2, solver="pg", class_weight="balanced"),
    FeatureClusterClassifier(2, loss="squared", solver="greedy"),
    FeatureClusterClassifier(2, loss="squared", solver="cgpg", tol=1e-2, alpha=1e-2),
    FeatureClusterClassifier(2, n_nonzero=3),
]


def failing(estimator):
    """Checks that no model of counts passes, as their targets are negative whatever its tags."""
    counts = estimator.loss == "poisson"
    return {"check_regressor_multioutput": "negative targets"} if counts else {}


@parametrize_with_checks(CONFIGURATIONS, expected_failed_checks=failing)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_what_they_are():
    assert is_regressor(FeatureClusterRegressor())
    assert is_classifier(FeatureClusterClassifier())
    for model in (FeatureClusterRegressor(), FeatureClusterClassifier()):
        assert model.__sklearn_tags__().input_tags.sparse
        assert "FeatureCluster" in model._repr_html_()


def test_pipeline_and_search(regression):
    X, y, _ = regression
    pipeline = make_pipeline(StandardScaler(), FeatureClusterRegressor())
    search = GridSearchCV(
        pipeline,
        {
            "featureclusterregressor__n_clusters": np.arange(1, 5),  # NumPy's integers
            "featureclusterregressor__alpha": np.array([1e-4, 1e-1]),
        },
        cv=3,
        error_score="raise",
    ).fit(X, y)
    assert search.best_params_["featureclusterregressor__n_clusters"] >= 3
    assert search.best_params_["featureclusterregressor__alpha"] == 1e-4
    assert search.score(X, y) > 0.99


def test_search_over_blocks_and_sparsity(regression):
    X, y, _ = regression
    for fixed, grid in (
        ({"blocks": np.repeat([0, 1], 6)}, {"n_clusters": np.array([2, 3])}),
        ({"n_clusters": 2}, {"n_nonzero": np.array([4, 12])}),
    ):
        GridSearchCV(FeatureClusterRegressor(**fixed), grid, cv=2, error_score="raise").fit(X, y)


def test_as_a_transformer_before_another_model(regression):
    X, y, planted = regression
    pipeline = make_pipeline(FeatureClusterRegressor(3, alpha=1e-6), LinearRegression()).fit(X, y)
    # On group sums plain least squares finds the planted values.
    np.testing.assert_allclose(
        np.sort(pipeline[-1].coef_), np.sort(np.unique(planted.coef)), atol=0.2
    )


@pytest.mark.parametrize("solver", ["pg", "greedy", "cgpg"])
def test_clone_and_pickle(regression, solver):
    X, y, _ = regression
    model = FeatureClusterRegressor(3, solver=solver, random_state=0).fit(X, y)
    fresh = clone(model)
    assert not hasattr(fresh, "coef_")
    np.testing.assert_array_equal(fresh.fit(X, y).coef_, model.coef_)
    back = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    assert back.certificate_ == model.certificate_
    assert back.status_ == model.status_
    assert back.trace_ == model.trace_


def test_fit_changes_no_parameter(regression, classes):
    X, y, _ = regression
    blocks, start, options = np.repeat([0, 1], 6), np.ones(12), {"refit": True}
    model = FeatureClusterRegressor(
        {0: 1, 1: 2}, blocks=blocks, init=start, solver="pg", solver_options=options
    )
    before = {name: pickle.dumps(value) for name, value in model.get_params().items()}
    held = dict(model.get_params())
    model.fit(X, y)
    for name, value in model.get_params().items():
        assert value is held[name]
        assert pickle.dumps(value) == before[name]


def test_metadata_routing(regression, classes):
    X, y, _ = regression
    weights = np.random.default_rng(0).random(len(X))
    with config_context(enable_metadata_routing=True):
        model = FeatureClusterRegressor(3).set_fit_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
        pipeline.fit(X, y, sample_weight=weights)
        plain = FeatureClusterRegressor(3).fit(
            StandardScaler().fit_transform(X), y, sample_weight=weights
        )
        np.testing.assert_array_equal(pipeline[-1].coef_, plain.coef_)
        found = cross_validate(
            model.set_score_request(sample_weight=True),
            X,
            y,
            params={"sample_weight": weights},
            cv=3,
            error_score="raise",
        )
        assert (found["test_score"] > 0.9).all()
        # Not asked for: an error of scikit-learn, not silence.
        with pytest.raises(ValueError, match="sample_weight"):
            cross_validate(FeatureClusterRegressor(3), X, y, params={"sample_weight": weights})


def test_set_output(regression):
    X, y, _ = regression
    frame = pd.DataFrame(X, columns=[f"feature {j}" for j in range(12)], index=range(100, 220))
    model = FeatureClusterRegressor(3).set_output(transform="pandas").fit(frame, y)
    groups = model.transform(frame)
    assert isinstance(groups, pd.DataFrame)
    assert groups.columns.tolist() == ["group0", "group1", "group2"]
    assert groups.index.tolist() == frame.index.tolist()
    np.testing.assert_allclose(
        groups @ model.cluster_values_ + model.intercept_, model.predict(frame)
    )
    assert model.get_feature_names_out().tolist() == ["group0", "group1", "group2"]


def test_table_of_groups(regression):
    X, y, _ = regression
    frame = pd.DataFrame(X, columns=[f"feature {j}" for j in range(12)])
    model = FeatureClusterRegressor(2, n_nonzero=7).fit(frame, y)
    groups = model.clusters()
    table = pd.DataFrame(groups)
    shown = ["label", "weight", "size", "features", "firmness", "interval"]
    assert table.columns.tolist() == shown
    assert table["label"].tolist() == [0, 1, -1]
    assert table["size"].sum() == 12
    for group in groups:
        members = np.flatnonzero(model.labels_ == group.label)
        assert group.features == tuple(frame.columns[members])
        assert group.size == members.size
        assert (model.coef_[members] == group.weight).all()
    assert groups[-1].weight == 0.0
    unnamed = FeatureClusterRegressor(2).fit(X, y).clusters()
    assert sorted(sum((g.features for g in unnamed), ())) == sorted(f"x{j}" for j in range(12))
    many = FeatureClusterRegressor(2).fit(X, np.stack([y, -y], axis=1)).clusters()
    assert many[0].weight.shape == (2,)


# ---- Kinds of matrices.

FORMS = {
    "float32": lambda X: X.astype(np.float32),
    "F": np.asfortranarray,
    "list": lambda X: X.tolist(),
    "integers": lambda X: X.astype(int),
    "csr": sparse.csr_matrix,
    "csc": sparse.csc_matrix,
    "coo": sparse.coo_matrix,
    "csr array": sparse.csr_array,
    "csr float32": lambda X: sparse.csr_matrix(X.astype(np.float32)),
    "pandas": pd.DataFrame,
    "pandas float32": lambda X: pd.DataFrame(X.astype(np.float32)),
}


def polars_frame(X):
    polars = pytest.importorskip("polars")
    return polars.DataFrame({f"x{j}": column for j, column in enumerate(X.T)})


FORMS["polars"] = polars_frame


def small_integers():
    """Numbers that single precision holds exactly, many of them zero."""
    rng = np.random.default_rng(0)
    X = rng.integers(-3, 4, (90, 10)) * (rng.random((90, 10)) < 0.5) * 1.0
    return X, X @ np.repeat([1.0, -2.0], 5) + 0.1 * rng.standard_normal(90)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("loss", ["squared", "huber", "logistic", "quantile"])
def test_forms_of_the_matrix(form, loss):
    X, y = small_integers()
    if loss == "logistic":
        model, y = FeatureClusterClassifier(2), y > 0
    else:
        model = FeatureClusterRegressor(2, loss=loss)
    plain = clone(model).fit(X, y)
    matrix = FORMS[form](X)
    model.fit(matrix, y)
    single = "float32" in form
    tolerance = 1e-4 if single and loss != "squared" else 1e-6 if loss == "logistic" else 1e-9
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=tolerance)
    np.testing.assert_allclose(model.intercept_, plain.intercept_, atol=tolerance)
    scores = model.decision_function if loss == "logistic" else model.predict
    np.testing.assert_allclose(
        scores(matrix), X @ plain._weights[:, 0] + plain.intercept_, atol=1e-3 if single else 1e-5
    )
    sums = model.transform(matrix)
    assert sums.dtype == (np.float32 if single else np.float64)
    np.testing.assert_allclose(sums, X @ (plain.labels_[:, None] == np.arange(2)), atol=1e-5)
    if form in ("pandas", "pandas float32", "polars"):
        assert hasattr(model, "feature_names_in_") == (form == "polars")


def test_wrong_columns_are_refused(regression):
    X, y, _ = regression
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(12)])
    model = FeatureClusterRegressor(3).fit(frame, y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[frame.columns[::-1]])
    with pytest.raises(ValueError, match="11 features"):
        FeatureClusterRegressor(3).fit(X, y).transform(X[:, :11])


# ---- The plain model.


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("intercept", [True, False])
def test_plain_regression(regression, outputs, intercept):
    X, y, _ = regression
    target = y if outputs == 1 else np.stack([y, np.sin(y)], axis=1)
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(12)])
    model = FeatureClusterRegressor(3, fit_intercept=intercept).fit(frame, target)
    plain = model.to_sklearn()
    assert isinstance(plain, LinearRegression)
    np.testing.assert_allclose(plain.predict(frame), model.predict(frame), rtol=1e-12)
    assert plain.feature_names_in_.tolist() == frame.columns.tolist()
    assert pickle.loads(pickle.dumps(plain)).n_features_in_ == 12


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_plain_classification(classes, loss, n_classes):
    X, y = classes
    kept = slice(None) if n_classes == 3 else y != "yew"
    X, y = X[kept], y[kept]
    model = FeatureClusterClassifier(2, loss=loss).fit(X, y)
    plain = model.to_sklearn()
    np.testing.assert_array_equal(plain.predict(X), model.predict(X))
    np.testing.assert_array_equal(plain.classes_, model.classes_)
    np.testing.assert_allclose(plain.decision_function(X), model.decision_function(X), rtol=1e-12)
    assert model.coef_.shape == ((1 if n_classes == 2 else 3), 8)
    if loss == "logistic":
        assert isinstance(plain, LogisticRegression)
        np.testing.assert_allclose(plain.predict_proba(X), model.predict_proba(X), rtol=1e-10)
        np.testing.assert_allclose(
            model.predict_log_proba(X), np.log(model.predict_proba(X)), rtol=1e-10
        )
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    else:
        assert not hasattr(model, "predict_proba")
        assert not hasattr(model, "predict_log_proba")


def test_logarithms_of_tiny_probabilities(classes):
    X, y = classes
    model = FeatureClusterClassifier(2).fit(X, y)
    far = model.predict_log_proba(1e6 * X)
    assert np.isfinite(far).all()
    assert far.min() < -1e4
