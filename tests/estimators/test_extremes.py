"""Numbers at the ends of double precision: a finite fit, or an error that says what to do."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

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
