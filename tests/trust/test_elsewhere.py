"""Stability of models whose samples are in chunks of Dask, or in a file larger than memory."""

import textwrap

import numpy as np
import pytest

import clustruct as cs
from tests.estimators.test_partitioned import in_pieces, run_on_cluster

pytest.importorskip("dask")
from clustruct.design.partitioned.blocks import BlockDesign

N, D = 150, 6
ARGUMENTS = {"n_resamples": 6, "random_state": 0}
KINDS = ["squared", "huber", "logistic", "experts", "tasks", "tasks by huber loss"]


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D)) + 0.5
    return X, X @ np.repeat([1.0, -0.5, 0.2], 2) + rng.standard_normal(N)


def made(kind, X, y):
    """An unfitted model, its targets and what else `fit` takes."""
    if kind == "logistic":
        return cs.FeatureClusterClassifier(3), (y > 0.5).astype(int), {}
    if kind == "experts":
        y = y + np.where(np.arange(N) % 3, 6.0 * X[:, 0], 0.0)
        return cs.SampleClusterRegressor(2, random_state=0), y, {}
    loss = "huber" if "huber" in kind else "squared"
    if "tasks" in kind:
        tasks = np.arange(N) % 6
        y = y + np.where(tasks < 3, X[:, 0], -X[:, 0])
        return cs.TaskClusterRegressor(2, loss=loss, random_state=0), y, {"tasks": tasks}
    return cs.FeatureClusterRegressor(3, loss=loss, solver="pg"), y, {}


@pytest.mark.parametrize("kind", KINDS)
def test_groups_of_resamples_are_those_of_arrays_in_memory(problem, kind):
    X, y = problem
    model, y, given = made(kind, X, y)
    here = cs.stability(model.fit(X, y, **given), X, y, **ARGUMENTS, **given)
    Z = in_pieces(X, 50)
    there = cs.stability(model.fit(Z, y, **given), Z, y, **ARGUMENTS, **given)
    np.testing.assert_array_equal(here.labels, there.labels)
    np.testing.assert_array_equal(here.consensus_labels, there.consensus_labels)
    a, b = here.consensus_model(), there.consensus_model()
    assert b.objective_ == pytest.approx(a.objective_, rel=1e-7)
    np.testing.assert_array_equal(np.asarray(a.labels_), np.asarray(b.labels_))


@pytest.fixture
def passes(monkeypatch):
    """The passes over X of all designs made since it was last asked; none is kept in memory."""
    for module in ("pieces", "blocks"):
        monkeypatch.setattr(f"clustruct.design.partitioned.{module}.available_bytes", lambda: 0.0)
    designs, make = [], BlockDesign.__init__

    def watched(self, *arguments):
        make(self, *arguments)
        designs.append(self)

    def counted():
        total = sum(design.n_passes for design in designs)
        designs.clear()
        return total

    monkeypatch.setattr(BlockDesign, "__init__", watched)
    return counted


@pytest.mark.parametrize("kind", ["squared", "huber"])
def test_a_file_larger_than_memory_is_read_in_passes_that_resamples_share(
    problem, kind, tmp_path, passes, monkeypatch
):
    X, y = problem
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    monkeypatch.setattr("clustruct.design.partitioned.collections.CHUNK_BYTES", 50 * D * 8)
    model = made(kind, X, y)[0].fit(X, y)
    here = cs.stability(model, X, y, **ARGUMENTS)
    passes()
    there = cs.stability(model, mapped, y, **ARGUMENTS)
    six = passes()
    np.testing.assert_array_equal(here.labels, there.labels)
    cs.stability(model, mapped, y, **{**ARGUMENTS, "n_resamples": 2})
    two = passes()
    assert 0 < six < 2 * two  # each by itself would take three times as many
    if kind == "squared":
        assert six == two


@pytest.mark.slow
def test_groups_of_resamples_on_a_cluster(tmp_path):
    pytest.importorskip("distributed")
    body = textwrap.dedent("""\
        one = model().fit(X, y)
        here = cs.stability(one, X, y, n_resamples=4, random_state=0)
        two = model().fit(pieces(X), y)
        there = cs.stability(two, pieces(X), y, n_resamples=4, random_state=0)
        print((here.labels == there.labels).all())
    """)
    assert run_on_cluster(tmp_path, body).split() == ["True"]
