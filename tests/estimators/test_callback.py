"""A callback sees every step, can end a fit, and changes nothing otherwise."""

import numpy as np
import pytest
from sklearn.base import clone

import clustruct as cs

FEATURES = cs.datasets.make_clustered_features(60, 40, 4, noise=0.5, random_state=0)
EXPERTS = cs.datasets.make_experts(200, 5, 3, noise=0.5, random_state=0)
CLASSES = cs.datasets.make_experts(
    120, 3, 2, n_outputs=4, noise=0.3, classification=True, random_state=0
)
TASKS = cs.datasets.make_clustered_tasks(n_tasks=12, n_clusters=2, random_state=0).columns()
MODELS = {
    "tasks": (cs.TaskClusterRegressor(2, random_state=0), *TASKS),
    "task search": (
        cs.TaskClusterRegressorCV(
            (1, 2), alpha_within=(1.0,), alpha_between=0.1, cv=2, random_state=0
        ),
        *TASKS,
    ),
    "features": (cs.FeatureClusterRegressor(4), FEATURES.X, FEATURES.y),
    "classes": (cs.FeatureClusterClassifier(3), FEATURES.X, FEATURES.y > 0),
    "search": (
        cs.FeatureClusterRegressorCV((2, 3), alphas=(1e-2,), cv=2),
        FEATURES.X,
        FEATURES.y,
    ),
    "experts": (cs.SampleClusterRegressor(3, random_state=0), EXPERTS.X, EXPERTS.y),
    "classifiers": (cs.SampleClusterClassifier(2, n_init=1, random_state=0), CLASSES.X, CLASSES.y),
    "counts": (cs.SampleClusterRegressorCV((1, 2), random_state=0), EXPERTS.X, EXPERTS.y),
}


@pytest.fixture(params=MODELS)
def case(request):
    return MODELS[request.param]


def weights(model):
    return model.coef_ if hasattr(model, "coef_") else model.experts_


def test_sees_the_steps_and_changes_nothing(case):
    model, X, y = case
    seen = []
    plain = clone(model).fit(X, y)
    watched = clone(model).set_params(callback=seen.append).fit(X, y)
    assert all(isinstance(iteration, cs.Iteration) for iteration in seen)
    kept = [(i.solver, i.number, i.objective) for i in seen]
    assert {(i.solver, i.number, i.objective) for i in watched.trace_} <= set(kept)
    np.testing.assert_array_equal(weights(plain), weights(watched))


def test_true_ends_the_fit_at_a_feasible_point(case):
    model, X, y = case
    seen = []

    def stop(iteration):
        seen.append(iteration)
        return len(seen) == 2

    model = clone(model).set_params(callback=stop).fit(X, y)
    # A search over the numbers of experts makes a fit for each, and each is ended.
    assert len(seen) <= (4 if isinstance(model, cs.SampleClusterRegressorCV) else 2)
    assert np.isfinite(weights(model)).all()
    assert np.isfinite(model.predict(X[:3])).all()


def test_status_names_the_callback():
    model = cs.FeatureClusterRegressor(4, solver="pg", init="zeros", callback=lambda i: True)
    model.fit(FEATURES.X, FEATURES.y)
    assert "stopped by the callback" in model.status_.message
    assert not model.status_.converged


def test_is_asked_no_more_once_it_has_had_enough():
    calls = []

    def stop(iteration):
        calls.append(iteration)
        return True

    cs.SampleClusterRegressor(3, callback=stop, random_state=0).fit(EXPERTS.X, EXPERTS.y)
    assert len(calls) == 1


def test_starts_of_a_watched_fit_run_in_order():
    seen = []
    model = cs.SampleClusterRegressor(
        3, solver="am", n_init=4, n_jobs=2, callback=seen.append, random_state=0
    )
    model.fit(EXPERTS.X, EXPERTS.y)
    alone = []
    clone(model).set_params(n_jobs=1, callback=alone.append).fit(EXPERTS.X, EXPERTS.y)
    assert [i.objective for i in seen] == [i.objective for i in alone]


def test_has_to_be_callable():
    with pytest.raises(ValueError, match="callback"):
        cs.FeatureClusterRegressor(2, callback=3).fit(FEATURES.X, FEATURES.y)
