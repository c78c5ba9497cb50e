"""Numbers at the ends of double precision: a finite fit, or an error that says what to do."""

import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, StratifiedKFold

import clustruct as cs
from tests.losses.targets import answers

N, D = 40, 6
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
Y = X[:, :3].sum(axis=1) + 0.1 * RNG.standard_normal(N)
TASKS = np.repeat(np.arange(4), N // 4)
REMEDY = r"Scale the\s+columns|Divide y"

# A model for a strength of the ridge, and whether it predicts classes.
MODELS = {
    "features": (lambda a: cs.FeatureClusterRegressor(2, alpha=a), False),
    "features, huber": (lambda a: cs.FeatureClusterRegressor(2, alpha=a, loss="huber"), False),
    "features, poisson": (lambda a: cs.FeatureClusterRegressor(2, alpha=a, loss="poisson"), False),
    "features, gamma": (lambda a: cs.FeatureClusterRegressor(2, alpha=a, loss="gamma"), False),
    "features, quantile": (
        lambda a: cs.FeatureClusterRegressor(2, alpha=a, loss="quantile"),
        False,
    ),
    "features, bare": (
        lambda a: cs.FeatureClusterRegressor(2, alpha=a, fit_intercept=False),
        False,
    ),
    "features, pg": (lambda a: cs.FeatureClusterRegressor(2, alpha=a, solver="pg"), False),
    "features, cgpg": (lambda a: cs.FeatureClusterRegressor(2, alpha=a, solver="cgpg"), False),
    "features, classes": (lambda a: cs.FeatureClusterClassifier(2, alpha=a), True),
    "features, search": (lambda a: cs.FeatureClusterRegressorCV((1, 2), alphas=(a,), cv=2), False),
    "samples": (lambda a: cs.SampleClusterRegressor(2, alpha=a), False),
    "samples, huber": (lambda a: cs.SampleClusterRegressor(2, alpha=a, loss="huber"), False),
    "samples, bare": (lambda a: cs.SampleClusterRegressor(2, alpha=a, fit_intercept=False), False),
    "samples, classes": (lambda a: cs.SampleClusterClassifier(2, alpha=a), True),
    "samples, search": (lambda a: cs.SampleClusterRegressorCV((1, 2), alpha=a), False),
    "tasks": (lambda a: cs.TaskClusterRegressor(2, alpha=a, random_state=0), False),
    "tasks, huber": (
        lambda a: cs.TaskClusterRegressor(2, alpha=a, loss="huber", random_state=0),
        False,
    ),
    "tasks, classes": (lambda a: cs.TaskClusterClassifier(2, alpha=a, random_state=0), True),
    "tasks, search": (lambda a: cs.TaskClusterRegressorCV((1, 2), cv=2, random_state=0), False),
}
every_model = pytest.mark.parametrize("name", MODELS)


def fit(name, scale_x=1.0, scale_y=1.0, alpha=1e-2, form=np.asarray):
    make, classes = MODELS[name]
    model = make(alpha).set_params(random_state=0)
    if classes:
        y = (Y > 0) if "tasks" in name or "features" in name else np.digitize(Y, [-1.0, 1.0])
    else:
        y = answers(name.partition(", ")[2], Y) * scale_y
    more = {"tasks": TASKS} if name.startswith("tasks") else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(form(X * scale_x), y, **more)


@every_model
@pytest.mark.parametrize("scale", [1e160, 1e300])
def test_columns_too_large_to_square(name, scale):
    for form in (np.asarray, sparse.csr_matrix):
        with pytest.raises(ValueError, match=REMEDY):
            fit(name, scale_x=scale, form=form)
    one = np.r_[np.ones(D - 1), scale]
    with pytest.raises(ValueError, match=REMEDY):
        fit(name, scale_x=one)


@every_model
@pytest.mark.parametrize("scale", [1e160, 1e307, 1e-160, 1e-300])
def test_targets_too_large_or_too_small_to_square(name, scale):
    if MODELS[name][1]:
        assert np.isfinite(fit(name).objective_)
        return
    with pytest.raises(ValueError, match=r"y holds numbers too (large|small).* Divide y"):
        fit(name, scale_y=scale)


@every_model
@pytest.mark.parametrize(
    ("scale_x", "alpha"),
    [(1.0, 1e-300), (1.0, 1e300), (1e-160, 1e-2), (1e-300, 1e-2), (1e100, 1e-2), (1e-100, 1e300)],
)
def test_fits_are_finite_or_say_what_to_do(name, scale_x, alpha):
    model, told = None, ""
    try:
        model = fit(name, scale_x=scale_x, alpha=alpha)
    except ValueError as error:
        told = str(error)
    if model is None:
        assert "Scale the columns" in told
        return
    certificate = model.certificate_
    assert np.isfinite(certificate.objective)
    assert certificate.lower_bound <= certificate.objective
    held = [getattr(model, n) for n in ("coef_", "expert_coef_", "coefs_") if hasattr(model, n)]
    assert all(np.isfinite(weights).all() for weights in held)


def test_the_error_names_the_columns():
    with pytest.raises(ValueError, match=r"in 1 of 6 columns; the first of them has index 2"):
        fit("features, huber", scale_x=np.array([1, 1, 1e200, 1, 1, 1]))


# ---- Columns far from zero for their spread.

FORMS = {
    "dense": np.asarray,
    "csr": sparse.csr_matrix,
    "csc": sparse.csc_matrix,
    "frame": pd.DataFrame,
    "dask": lambda x: da.from_array(x, chunks=(10, D)),
}
FAR = r"column 2 has values from 99.*Subtract the mean"


def with_offset(offset):
    far = X.copy()
    far[:, 2] += offset
    return far


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["features", "features, huber", "samples", "tasks"])
def test_columns_whose_digits_an_offset_takes_are_refused(name, form):
    make, _ = MODELS[name]
    more = {"tasks": TASKS} if name == "tasks" else {}
    with pytest.raises(ValueError, match=FAR):
        make(1e-2).fit(FORMS[form](with_offset(1e12)), Y, **more)


@pytest.mark.parametrize("form", ["dense", "csr", "dask"])
def test_constant_columns_and_small_offsets_are_not_refused(form):
    constant = X.copy()
    constant[:, 2] = 1e15
    for x in (constant, with_offset(1e6)):
        model = cs.FeatureClusterRegressor(2, loss="huber", random_state=0).fit(FORMS[form](x), Y)
        assert np.isfinite(model.objective_)


def test_offsets_change_nothing_until_they_are_refused():
    for name in ("features", "features, huber", "features, classes", "samples, classes", "tasks"):
        make, classes = MODELS[name]
        y = np.digitize(Y, [-1.0, 1.0]) if classes else Y
        more = {"tasks": TASKS} if name.startswith("tasks") else {}
        plain, moved = (
            make(1e-2).set_params(random_state=0).fit(x, y, **more).objective_
            for x in (X, with_offset(1e6))
        )
        assert moved == pytest.approx(plain, rel=1e-5)


def test_an_offset_of_one_block_is_no_offset_of_the_column():
    # The first block hardly varies; the others do.
    steps = np.repeat(np.arange(N // 10), 10)[:, None]
    x = X * 1e-9 + 1e3 + steps * 1e3
    model = cs.FeatureClusterRegressor(2, loss="huber", random_state=0)
    assert np.isfinite(model.fit(FORMS["dask"](x), Y).objective_)


def test_single_precision_keeps_fewer_digits():
    with pytest.raises(ValueError, match="Subtract the mean"):
        cs.SampleClusterRegressor(2).fit(with_offset(1e6).astype(np.float32), Y)


def test_targets_far_from_zero_need_sums_of_squares():
    with pytest.raises(ValueError, match=r"y lies far from zero.* Subtract the mean of y"):
        cs.FeatureClusterRegressor(2, loss="huber").fit(X, Y + 1e13)
    model = cs.FeatureClusterRegressor(2, random_state=0).fit(X, Y + 1e10)
    plain = cs.FeatureClusterRegressor(2, random_state=0).fit(X, Y)
    assert model.objective_ == pytest.approx(plain.objective_, rel=1e-3)


def test_objectives_without_intercept_equal_what_the_weights_give():
    # Sums of squares about zero had lost four of its digits.
    x = X + 1e6
    for make in (cs.FeatureClusterRegressor, cs.FeatureClusterRegressorCV):
        model = make(2, fit_intercept=False, random_state=0).fit(x, Y)
        alpha = getattr(model, "alpha_", None) or model.alpha
        value = (
            0.5 * np.square(Y - x @ model.coef_).mean() + 0.5 * alpha * np.square(model.coef_).sum()
        )
        assert model.objective_ == pytest.approx(value, rel=1e-7)


# ---- Weights.


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.full(N, 1e308), "too large to be added up.*Divide all weights"),
        (np.full(N, 5e-324), "too small to be added up.*Divide all weights"),
    ],
)
def test_weights_out_of_range(weights, message):
    for make in (cs.FeatureClusterRegressor, cs.SampleClusterRegressor, cs.TaskClusterRegressor):
        more = {"tasks": TASKS} if make is cs.TaskClusterRegressor else {}
        with pytest.raises(ValueError, match=message):
            make(2).fit(X, Y, sample_weight=weights, **more)


def test_weights_that_vanish_count_as_zero_in_searches():
    y = np.arange(N) % 2
    weights = np.where(np.arange(N) < 30, 1e300, 1e-20)
    search = cs.FeatureClusterClassifierCV((1, 2), alphas=(0.1,), cv=2, random_state=0)
    whole = search.fit(X, y, sample_weight=weights).coef_.copy()
    kept = search.fit(X[:30], y[:30], sample_weight=weights[:30]).coef_
    np.testing.assert_array_equal(whole, kept)


# ---- Few rows in a search.


def test_folds_of_few_samples_of_each_class():
    y = np.array(["a", "b", "c", "d", "e", "e"])
    search = cs.FeatureClusterClassifierCV((1, 2), cv=5)
    with pytest.raises(ValueError, match=r"cv=5 folds need as many samples.*Give cv at most 2"):
        search.fit(X[:6], y)
    with pytest.raises(ValueError, match=r"cv=7 folds cannot be made of n_samples=6"):
        search.set_params(cv=7).fit(X[:6], y)
    with pytest.raises(ValueError, match=r"cv=5 folds need as many samples"):
        search.set_params(cv=StratifiedKFold(5)).fit(X[:6], y)


def test_errors_of_splitters_are_told_with_the_remedy():
    search = cs.FeatureClusterRegressorCV((1, 2), cv=GroupKFold(5))
    with pytest.raises(ValueError, match=r"cv=GroupKFold.* cannot divide 6 samples.*Give fewer"):
        search.fit(X[:6], Y[:6], groups=[0, 0, 1, 1, 1, 1])
    with pytest.raises(ValueError, match=r"'groups'.*Give fewer folds, other groups"):
        search.fit(X[:6], Y[:6])


@pytest.mark.parametrize("search", [False, True])
@pytest.mark.parametrize("size", [1e6, 1e8, 1e12])
def test_an_outlier_in_all_columns_leaves_the_objective_right(search, size):
    """Weights that cancel on that row are small beside their sums of products with it."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((30, 4))
    y = X[:, 0] + X[:, 1] + 0.1 * rng.standard_normal(30)
    X[5] = size
    model = cs.FeatureClusterRegressor(2, random_state=0)
    if search:
        model = cs.FeatureClusterRegressorCV((1, 2), alphas=(1e-3,), cv=2, random_state=0)
    model.fit(X, y)
    ridge = 0.5 * 1e-3 * getattr(model, "relax_", 1.0) * np.square(model.coef_).sum()
    right = 0.5 * np.square(y - model.predict(X)).mean() + ridge
    np.testing.assert_allclose(model.objective_, right, rtol=1e-5)


def test_targets_beyond_the_precision_of_the_samples_are_refused():
    X = np.ones((4, 1), dtype=np.float32)
    X[0] = 2.0
    with pytest.raises(ValueError, match="too large for the single precision of X"):
        cs.FeatureClusterRegressor(1).fit(X, [1e100, 0.0, 0.0, 0.0])
