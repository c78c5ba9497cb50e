"""Generated problems are what they say, the same at every call, and hold the planted truth."""

import dataclasses
import re

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit, softmax

from clustruct.datasets import make_clustered_features, make_clustered_tasks, make_experts

GENERATORS = [make_clustered_features, make_experts, make_clustered_tasks]


def same(a, b):
    if sparse.issparse(a):
        return (a != b).nnz == 0
    return np.array_equal(a, b)


@pytest.mark.parametrize("make", GENERATORS)
def test_the_seed_decides(make):
    once, again, other = (make(random_state=seed) for seed in (3, 3, 4))
    generator = make(random_state=np.random.RandomState(3))
    for field in dataclasses.fields(once):
        value = getattr(once, field.name)
        assert same(value, getattr(again, field.name))
        assert same(value, getattr(generator, field.name))
    assert not same(once.y, other.y)
    assert not same(make().y, make().y)


@pytest.mark.parametrize("make", GENERATORS)
def test_results_are_frozen(make):
    with pytest.raises(dataclasses.FrozenInstanceError):
        make().y = None


@pytest.mark.parametrize(
    ("make", "truth"),
    [
        (make_clustered_features, ["coef", "labels", "centers"]),
        (make_experts, ["experts"]),
        (make_clustered_tasks, ["coef", "labels", "centers"]),
    ],
)
def test_the_truth_does_not_depend_on_the_number_of_samples(make, truth):
    few, many = make(n_samples=10, random_state=0), make(n_samples=500, random_state=0)
    for name in truth:
        np.testing.assert_array_equal(getattr(few, name), getattr(many, name))


@pytest.mark.parametrize("make", GENERATORS)
def test_noise_is_added_to_the_same_problem(make):
    quiet = make(noise=0.0, random_state=0)
    loud = make(n_samples=2000, noise=3.0, random_state=0)
    still = make(n_samples=2000, noise=0.0, random_state=0)
    assert quiet.noise == 0.0
    assert loud.noise == 3.0
    np.testing.assert_array_equal(loud.X, still.X)
    assert np.std(loud.y - still.y) == pytest.approx(3.0, rel=0.1)


# ---- Features


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("n_nonzero", [None, 7])
@pytest.mark.parametrize("options", [{}, {"correlation": -0.5}, {"density": 0.3}])
def test_features(n_outputs, n_nonzero, options):
    problem = make_clustered_features(
        30, 12, 4, n_outputs=n_outputs, n_nonzero=n_nonzero, noise=0.0, intercept=2.0, **options
    )
    outputs = () if n_outputs == 1 else (n_outputs,)
    assert problem.X.shape == (30, 12)
    assert problem.y.shape == (30, *outputs)
    assert problem.centers.shape == (4, *outputs)
    assert np.shape(problem.intercept) == outputs
    assert problem.X.dtype == problem.coef.dtype == np.float64
    zero = problem.labels == -1
    assert zero.sum() == (0 if n_nonzero is None else 5)
    assert set(problem.labels[~zero]) == set(range(4))
    assert not problem.coef[zero].any()
    np.testing.assert_array_equal(problem.coef[~zero], problem.centers[problem.labels[~zero]])
    np.testing.assert_allclose(problem.X @ problem.coef + problem.intercept, problem.y, atol=1e-10)


def test_the_default_is_the_problem_of_the_paper():
    problem = make_clustered_features(random_state=0)
    assert problem.X.shape == (100, 100)
    assert problem.noise == 0.5
    many = make_clustered_features(2, 20_000, 5000, random_state=0)
    assert (np.diff(many.centers) > 0).all()
    assert abs(many.centers).max() <= 15
    assert many.centers.std() == pytest.approx(15 / np.sqrt(3), rel=0.02)
    design = make_clustered_features(2000, 50, random_state=0).X
    assert design.mean() == pytest.approx(0, abs=0.01)
    assert design.std() == pytest.approx(1, abs=0.01)


def test_levels_stay_between_their_limits():
    centers = make_clustered_features(2, 200, 100, low=2, high=3, random_state=0).centers
    assert centers.min() >= 2
    assert centers.max() <= 3


def test_labels_are_uniform():
    labels = make_clustered_features(1, 10_000, 4, random_state=0).labels
    np.testing.assert_allclose(np.bincount(labels) / 10_000, 0.25, atol=0.02)


@pytest.mark.parametrize("seed", range(10))
def test_no_group_is_empty(seed):
    assert len(set(make_clustered_features(1, 6, 6, random_state=seed).labels)) == 6
    assert len(set(make_experts(6, 2, 6, random_state=seed).labels)) == 6
    assert len(set(make_clustered_tasks(1, 2, 6, 6, random_state=seed).labels)) == 6


@pytest.mark.parametrize("correlation", [0.7, -0.4])
def test_columns_are_correlated_with_their_neighbours(correlation):
    design = make_clustered_features(50_000, 4, 2, correlation=correlation, random_state=0).X
    distance = abs(np.subtract.outer(np.arange(4), np.arange(4)))
    np.testing.assert_allclose(np.cov(design.T), correlation**distance, atol=0.03)


def test_sparse_design_holds_zeros_and_ones():
    design = make_clustered_features(400, 50, 2, density=0.1, random_state=0).X
    assert isinstance(design, sparse.csr_array)
    assert design.indices.dtype == design.indptr.dtype == np.int32
    assert design.has_canonical_format
    assert set(design.data) == {1.0}
    assert design.mean() == pytest.approx(0.1, abs=0.01)
    assert np.ptp(design.mean(axis=0)) < 0.15


def test_sparse_design_takes_memory_for_its_ones_only():
    design = make_clustered_features(100_000, 1_000_000, 2, density=1e-8, random_state=0).X
    assert design.shape == (100_000, 1_000_000)
    assert 800 < design.nnz < 1200


def test_intercept_of_each_output():
    plain = make_clustered_features(n_outputs=2, random_state=0)
    moved = make_clustered_features(n_outputs=2, intercept=[1.0, -2.0], random_state=0)
    np.testing.assert_allclose(moved.y - plain.y, np.tile([1.0, -2.0], (100, 1)), atol=1e-10)


# ---- Classes


@pytest.mark.parametrize("make", [make_clustered_features, make_experts, make_clustered_tasks])
def test_two_classes_without_noise_are_the_signs_of_the_scores(make):
    options = {"noise": 0.0, "random_state": 0}
    scores = make(**options).y
    classes = make(classification=True, **options).y
    assert classes.dtype == np.intp
    np.testing.assert_array_equal(classes, scores > 0)


@pytest.mark.parametrize("make", [make_clustered_features, make_experts])
def test_several_classes_without_noise_are_the_largest_scores(make):
    options = {"n_outputs": 4, "noise": 0.0, "random_state": 0}
    scores = make(**options).y
    classes = make(classification=True, **options).y
    assert classes.shape == scores.shape[:1]
    np.testing.assert_array_equal(classes, scores.argmax(axis=1))


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_unit_noise_makes_the_logistic_model_true(n_outputs):
    problem = make_clustered_features(
        40_000, 6, 2, n_outputs=n_outputs, low=-1, high=1, noise=1.0, intercept=0.3,
        classification=True, random_state=0,
    )  # fmt: skip
    scores = problem.X @ problem.coef + problem.intercept
    if n_outputs == 1:
        expected = np.column_stack([expit(-scores), expit(scores)])
    else:
        expected = softmax(scores, axis=1)
    observed = np.eye(expected.shape[1])[problem.y]
    # The gradient of the log-likelihood at the truth is zero but for chance.
    gradient = problem.X.T @ (observed - expected) / len(problem.y)
    assert abs(gradient).max() < 0.02
    assert abs((observed - expected).mean(axis=0)).max() < 0.02


# ---- Experts


@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("separation", [0.0, 4.0])
def test_experts(n_outputs, separation):
    shifts = np.arange(3.0) if n_outputs == 1 else np.arange(6.0).reshape(3, 2)
    problem = make_experts(
        200, 5, 3, noise_share=0.5, n_outputs=n_outputs, noise=0.0, separation=separation,
        intercepts=shifts, random_state=0,
    )  # fmt: skip
    assert problem.X.shape == (200, 10)
    assert problem.informative.tolist() == [True] * 5 + [False] * 5
    assert problem.experts[:, :5].all()
    assert not problem.experts[:, 5:].any()
    for label in range(3):
        mine = problem.labels == label
        answers = problem.X[mine] @ problem.experts[label] + problem.intercepts[label]
        np.testing.assert_allclose(problem.y[mine], answers, atol=1e-12)


@pytest.mark.parametrize(
    ("share", "n_features"), [(0, 10), (0.25, 13), (0.5, 20), (0.75, 40), (0.9, 100), (0.95, 200)]
)
def test_the_shares_of_noise_of_the_paper(share, n_features):
    problem = make_experts(50, noise_share=share)
    assert problem.X.shape == (50, n_features)
    assert problem.informative.sum() == 10


@pytest.mark.parametrize(("share", "error", "spread"), [(0, 0.52, 0.08), (0.9, 0.71, 0.11)])
def test_least_squares_on_the_true_groups_has_the_error_of_the_paper(share, error, spread):
    errors = []
    for seed in range(5):
        problem = make_experts(1100, noise_share=share, random_state=seed)
        train, test = slice(0, 1000), slice(1000, None)
        fits = []
        for label in range(3):
            mine = np.flatnonzero(problem.labels[train] == label)
            fits.append(np.linalg.lstsq(problem.X[mine], problem.y[mine], rcond=None)[0])
        apart = problem.y[test, None] - problem.X[test] @ np.transpose(fits)
        errors.append(50 * np.square(apart).min(axis=1).mean())
    assert np.mean(errors) == pytest.approx(error, abs=spread)


def test_scale_of_features_that_do_not_matter():
    problem = make_experts(5000, 2, noise_share=0.5, feature_noise=7.0, random_state=0)
    np.testing.assert_allclose(problem.X.std(axis=0), [1, 1, 7, 7], rtol=0.05)


def test_separated_experts_are_told_apart_by_their_features():
    near = make_experts(3000, 4, random_state=0)
    far = make_experts(3000, 4, separation=5.0, random_state=0)
    for label in range(3):
        assert np.linalg.norm(near.X[near.labels == label].mean(axis=0)) < 0.2
        assert np.linalg.norm(far.X[far.labels == label].mean(axis=0)) == pytest.approx(5, abs=0.2)


# ---- Tasks


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_tasks(shared, missing):
    problem = make_clustered_tasks(
        15, 4, 6, 2, noise=0.0, shared=shared, missing=missing, intercept=range(6), random_state=0
    )
    n_rows = 15 if shared else 90
    X, Y = problem.columns()
    assert X.shape == (n_rows, 4)
    assert Y.shape == (n_rows, 6)
    known = ~np.isnan(Y)
    np.testing.assert_allclose(Y[known], (X @ problem.coef.T + problem.intercept)[known])
    assert known.sum() == (90 if missing == 0 else problem.y.size)
    assert missing == 0 or 40 < problem.y.size < 70
    if not shared:
        assert known.sum(axis=1).max() == 1

    rows, y, tasks = problem.rows()
    np.testing.assert_allclose(
        y, np.sum(rows * problem.coef[tasks], axis=1) + problem.intercept[tasks]
    )
    assert sorted(y) == sorted(Y[known])


def test_tasks_scatter_around_their_centres():
    options = {"n_features": 500, "n_tasks": 12, "random_state": 0}
    problem = make_clustered_tasks(between=3.0, within=0.2, **options)
    assert problem.centers.std() == pytest.approx(3.0, rel=0.05)
    apart = problem.coef - problem.centers[problem.labels]
    assert apart.std() == pytest.approx(0.2, rel=0.05)
    tight = make_clustered_tasks(within=0.0, **options)
    np.testing.assert_array_equal(tight.coef, tight.centers[tight.labels])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("shared", [True, False])
def test_every_task_keeps_an_answer(seed, shared):
    problem = make_clustered_tasks(3, 2, 20, missing=0.99, shared=shared, random_state=seed)
    assert set(problem.tasks) == set(range(20))


def test_classes_of_tasks_in_both_layouts():
    problem = make_clustered_tasks(classification=True, missing=0.5, random_state=0)
    _, Y = problem.columns()
    assert set(np.unique(Y[~np.isnan(Y)])) == {0.0, 1.0}
    assert problem.rows()[1].dtype == np.intp


# ---- Refusals


@pytest.mark.parametrize(
    ("make", "options", "parts"),
    [
        (make_clustered_features, {"n_samples": 0}, ["n_samples must be at least 1", "0"]),
        (make_clustered_features, {"n_features": 2.5}, ["n_features must be an integer", "2.5"]),
        (make_clustered_features, {"n_clusters": True}, ["n_clusters must be an integer", "True"]),
        (make_clustered_features, {"n_clusters": 101}, ["n_clusters=101", "n_features=100"]),
        (make_clustered_features, {"n_nonzero": 3}, ["n_clusters=5", "n_nonzero=3", "fewer"]),
        (make_clustered_features, {"n_nonzero": 101}, ["n_nonzero=101", "100", "smaller"]),
        (make_clustered_features, {"n_outputs": 0}, ["n_outputs must be at least 1"]),
        (make_clustered_features, {"noise": -1}, ["noise must be at least 0", "-1", "Give"]),
        (make_clustered_features, {"noise": "loud"}, ["noise must be a number", "'loud'", "Give"]),
        (make_clustered_features, {"noise": np.nan}, ["noise must be at least 0", "nan"]),
        (make_clustered_features, {"low": 3, "high": 3}, ["low=3", "less than high=3"]),
        (make_clustered_features, {"low": -np.inf}, ["low must be finite", "inf"]),
        (make_clustered_features, {"correlation": 1}, ["correlation must be between -1", "1"]),
        (make_clustered_features, {"density": 0}, ["density must be above 0", "0", "Give"]),
        (make_clustered_features, {"density": 1.5}, ["density must be", "at most 1", "1.5"]),
        (
            make_clustered_features,
            {"density": 0.5, "correlation": 0.5},
            ["correlation=0.5", "density=0.5", "default"],
        ),
        (make_clustered_features, {"intercept": [1, 2]}, [r"intercept has shape \(2,\)", "one"]),
        (make_clustered_features, {"intercept": "a"}, ["intercept must hold numbers", "'a'"]),
        (make_clustered_features, {"intercept": np.inf}, ["intercept must be finite", "inf"]),
        (make_clustered_features, {"classification": 2}, ["classification must be True", "2"]),
        (make_experts, {"n_clusters": 4, "n_samples": 3}, ["n_clusters=4", "n_samples=3"]),
        (make_experts, {"n_informative": 0}, ["n_informative must be at least 1"]),
        (make_experts, {"noise_share": 1.0}, ["noise_share must be", "below 1", "1.0"]),
        (make_experts, {"feature_noise": -1}, ["feature_noise must be at least 0"]),
        (make_experts, {"separation": -1}, ["separation must be at least 0"]),
        (make_experts, {"intercepts": [1.0]}, [r"intercepts has shape \(1,\)", r"\(3,\)"]),
        (make_clustered_tasks, {"n_tasks": 2}, ["n_clusters=3", "n_tasks=2"]),
        (make_clustered_tasks, {"missing": 1}, ["missing must be", "below 1"]),
        (make_clustered_tasks, {"between": -1}, ["between must be at least 0"]),
        (make_clustered_tasks, {"within": None}, ["within must be a number", "None"]),
        (make_clustered_tasks, {"shared": "yes"}, ["shared must be True or False", "'yes'"]),
        (make_clustered_tasks, {"intercept": [0, 1]}, [r"\(2,\)", r"\(30,\)"]),
    ],
)  # fmt: skip
def test_bad_arguments(make, options, parts):
    with pytest.raises(ValueError) as caught:
        make(**options)
    for part in parts:
        assert re.search(part, str(caught.value)), f"no {part!r} in: {caught.value}"


@pytest.mark.parametrize("make", GENERATORS)
def test_bad_seed(make):
    with pytest.raises(ValueError, match="seed"):
        make(random_state="a")
