"""`prove`: what regressors do with it, and what they say where there is no proof."""

import numpy as np
import pytest
from sklearn.base import clone

import clustruct as cs
from tests.solvers.proofs import factors

X, y, BLOCKS = factors(0, n=150, n_factors=3, n_levels=6, n_active=2, sigma=3.0)
# Without a signal there are many groupings of about the same objective.
RNG = np.random.default_rng(1)
NOISE, TARGET = RNG.standard_normal((40, 18)), RNG.standard_normal(40)


def test_a_proof_closes_the_gap_that_a_fit_leaves():
    plain = cs.FeatureClusterRegressor(3, solver="greedy").fit(NOISE, TARGET)
    assert plain.certificate_.relative_gap > 0.01
    model = cs.FeatureClusterRegressor(3, solver="greedy", prove=True).fit(NOISE, TARGET)
    assert model.certificate_.relative_gap == 0.0
    assert model.certificate_.source == "proof"
    assert model.certificate_.in_words.startswith("Proved optimal")
    assert "proof: converged" in model.status_.message
    assert "no grouping is left" in model.status_.message
    assert model.objective_ < plain.objective_  # groups of a ridge are not the best ones
    assert model.status_.solver == model.trace_[-1].solver == "proof"
    assert model.objective_ == model.certificate_.objective


def test_without_prove_the_fit_is_the_same_to_the_bit():
    plain = cs.FeatureClusterRegressor(7, blocks=BLOCKS).fit(X, y)
    proved = cs.FeatureClusterRegressor(7, blocks=BLOCKS, prove=True).fit(X, y)
    np.testing.assert_array_equal(plain.coef_, proved.coef_)
    assert plain.status_.solver == proved.status_.solver
    assert plain.trace_[-1].objective == proved.trace_[-1].objective
    assert plain.certificate_.lower_bound <= proved.certificate_.objective


def test_limits_and_progress(capsys):
    model = cs.FeatureClusterRegressor(
        3, prove=True, solver_options={"max_nodes": 2}, verbose=2
    ).fit(NOISE, TARGET)
    assert "% left" in model.status_.message
    assert model.certificate_.source == "proof"
    assert " proof     2  objective" in capsys.readouterr().out
    seen = []
    whole = clone(model).set_params(callback=seen.append, verbose=False, solver_options=None)
    whole.fit(NOISE, TARGET)
    nodes = [i for i in seen if i.solver == "proof"]
    assert nodes[-1].step < nodes[2].step  # the relative gap falls
    assert whole.certificate_.lower_bound > model.certificate_.lower_bound
    timed = clone(model).set_params(verbose=False, solver_options={"time_limit": 1e-9})
    assert "proof: stopped" in timed.fit(NOISE, TARGET).status_.message


def test_a_search_proves_the_final_fit():
    search = cs.FeatureClusterRegressorCV(
        (4, 5), alphas=(1e-2,), blocks=BLOCKS, relax=1.0, cv=3, prove=True
    ).fit(X, y)
    assert search.certificate_.relative_gap == 0.0
    assert "proof" in search.status_.message


def test_nothing_is_proved_of_weights_without_groups():
    model = cs.FeatureClusterRegressor(None, prove=True).fit(X, y)
    assert "proof" not in model.status_.message
    assert model.certificate_.relative_gap == 0.0


@pytest.mark.parametrize(
    ("parameters", "target", "message"),
    [
        ({"loss": "huber"}, y, "loss='squared' only"),
        ({"n_nonzero": 4}, y, "SparseClustered"),
        ({}, np.column_stack([y, y]), "one output"),
        ({"solver_options": {"max_nodes": 0}}, y, "max_nodes"),
        ({"prove": "yes"}, y, "prove"),
    ],
)
def test_errors_name_the_remedy(parameters, target, message):
    model = cs.FeatureClusterRegressor(3, **{"prove": True, **parameters})
    with pytest.raises(ValueError, match=message):
        model.fit(X, target)


def test_limits_of_a_proof_need_one():
    with pytest.raises(ValueError, match="max_nodes"):
        cs.FeatureClusterRegressor(3, solver_options={"max_nodes": 5}).fit(X, y)
    assert "prove" not in cs.FeatureClusterClassifier().get_params()
