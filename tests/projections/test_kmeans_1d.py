"""kmeans_1d as users meet it: what goes in, what comes out, and what always holds."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import clustruct as cs
from tests.kernels import reference

numbers = st.one_of(
    st.integers(-20, 20).map(lambda i: i / 4),
    st.floats(-1e3, 1e3).map(lambda x: x if abs(x) > 1e-60 else 0.0),
)
lists = st.lists(numbers, min_size=1, max_size=30)
counts = st.integers(1, 8)


def least_inertia(values, weights, n_clusters):
    order = np.argsort(values)
    ordered = None if weights is None else weights[order]
    return reference.dynamic_program(values[order], ordered, n_clusters)[-1]


def resolution(values, weights=None):
    """What a cost may be off by: pairs of doubles resolve this share of the second moment."""
    squares = np.square(values) * reference.ones_for(values, weights)
    return max(2.0**-96 * float(squares.sum()), 5e-324)


# ---- What goes in.

KINDS = {
    "list": lambda x, path: x.tolist(),
    "tuple": lambda x, path: tuple(x.tolist()),
    "integers": lambda x, path: x.astype(np.int64),
    "small integers": lambda x, path: x.astype(np.int8),
    "unsigned integers": lambda x, path: x.astype(np.uint16),
    "big-endian": lambda x, path: x.astype(">f8"),
    "single precision": lambda x, path: x.astype(np.float32),
    "half precision": lambda x, path: x.astype(np.float16),
    "extended precision": lambda x, path: x.astype(np.longdouble),
    "objects": lambda x, path: x.astype(object),
    "every second one": lambda x, path: np.repeat(x, 2)[::2],
    "reversed view": lambda x, path: x[::-1].copy()[::-1],
    "column of a matrix": lambda x, path: np.stack([x, x], axis=1)[:, 1],
    "series": lambda x, path: pd.Series(x, index=np.arange(len(x))[::-1]),
    "nullable series": lambda x, path: pd.Series(x, dtype="Float64"),
    "memory map": lambda x, path: memory_map(x, path),
}


def memory_map(x, path):
    file = path / f"{len(list(path.iterdir()))}.npy"
    np.save(file, x)
    return np.load(file, mmap_mode="r")


@pytest.mark.parametrize("n", [40, 3000])
@pytest.mark.parametrize("kind", KINDS)
def test_any_kind_of_array_gives_the_same_answer(kind, n, tmp_path):
    rng = np.random.default_rng(0)
    values = rng.integers(0, 120, n) + 0.0
    weights = rng.integers(1, 5, n) + 0.0
    for weight in (None, weights):
        plain = cs.kmeans_1d(values, 4, sample_weight=weight)
        given_weight = None if weight is None else KINDS[kind](weight, tmp_path)
        other = cs.kmeans_1d(KINDS[kind](values, tmp_path), 4, sample_weight=given_weight)
        np.testing.assert_array_equal(other.labels, plain.labels)
        np.testing.assert_array_equal(other.centers, plain.centers)
        np.testing.assert_array_equal(other.sizes, plain.sizes)
        assert other.inertia == plain.inertia


def test_truth_values_are_numbers():
    groups = cs.kmeans_1d([True, False, True], 2)
    assert groups.labels.tolist() == [1, 0, 1]


@pytest.mark.parametrize("n", [40, 3000])
def test_nothing_is_modified(n):
    rng = np.random.default_rng(0)
    values, weights = rng.standard_normal(n), rng.random(n)
    weights[3] = 0.0
    before = values.copy(), weights.copy()
    for array in (values, weights):
        array.flags.writeable = False
    cs.kmeans_1d(values, 3)
    cs.kmeans_1d(values, 3, sample_weight=weights)
    np.testing.assert_array_equal(values, before[0])
    np.testing.assert_array_equal(weights, before[1])


# ---- What comes out.


def test_result_is_typed_and_frozen():
    groups = cs.kmeans_1d([1, 9, 2, 8, 10], 2)
    assert isinstance(groups, cs.Clustering1D)
    assert groups.labels.dtype == groups.sizes.dtype == np.intp
    assert groups.centers.dtype == np.float64
    assert type(groups.inertia) is float
    with pytest.raises(FrozenInstanceError):
        groups.inertia = 0.0


def test_example():
    groups = cs.kmeans_1d([1.0, 9.0, 2.0, 8.0, 10.0], 2, sample_weight=[1, 1, 3, 1, 1])
    assert groups.labels.tolist() == [0, 1, 0, 1, 1]
    assert groups.centers.tolist() == [1.75, 9.0]
    assert groups.sizes.tolist() == [2, 3]
    assert groups.inertia == 2.75


def test_three_tight_groups_at_a_large_offset():
    # A published package finds a single group here.
    values = 1e8 + np.repeat([0.0, 1.0, 5.0], 10)
    groups = cs.kmeans_1d(values, 3)
    assert groups.centers.tolist() == [1e8, 1e8 + 1, 1e8 + 5]
    assert groups.sizes.tolist() == [10, 10, 10]
    assert groups.inertia == 0.0


@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1e170, 1e300])
def test_scale_beyond_the_range_of_the_inertia(scale):
    values = np.random.default_rng(0).standard_normal(300)
    plain, scaled = cs.kmeans_1d(values, 4), cs.kmeans_1d(values * scale, 4)
    np.testing.assert_array_equal(scaled.labels, plain.labels)
    np.testing.assert_allclose(scaled.centers / scale, plain.centers, rtol=1e-14)
    assert scaled.inertia == (0.0 if scale < 1 else np.inf)


def test_deterministic_from_many_threads():
    rng = np.random.default_rng(0)
    values, weights = rng.standard_normal(30_000), rng.random(30_000)
    tasks = [(values, 7, None), (values, 30, None), (values, 5, weights), (values[:500], 9, None)]

    def call(task):
        return cs.kmeans_1d(task[0], task[1], sample_weight=task[2])

    alone = [call(task) for task in tasks]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(call, tasks * 12))
    for one, other in zip(alone * 12, together, strict=True):
        assert one.labels.tobytes() == other.labels.tobytes()
        assert one.centers.tobytes() == other.centers.tobytes()
        assert one.sizes.tobytes() == other.sizes.tobytes()
        assert one.inertia == other.inertia


# ---- What always holds.


@given(lists, counts)
def test_optimal_and_canonical(values, n_clusters):
    values = np.array(values)
    groups = cs.kmeans_1d(values, n_clusters)
    least, floor = least_inertia(values, None, n_clusters), resolution(values)
    assert groups.inertia == pytest.approx(least, rel=1e-12, abs=floor)
    cost = float(reference.exact_cost_of_labels(values, None, groups.labels))
    assert groups.inertia == pytest.approx(cost, rel=1e-12, abs=5e-324)
    distinct = np.unique(values)
    assert len(groups.centers) == min(n_clusters, len(distinct))
    assert (np.diff(groups.centers) >= 0).all()
    assert (groups.sizes > 0).all()
    np.testing.assert_array_equal(groups.sizes, np.bincount(groups.labels))
    assert (np.diff(groups.labels[np.argsort(values, kind="stable")]) >= 0).all()
    for value in distinct:
        assert len(np.unique(groups.labels[values == value])) == 1


@given(lists, counts, st.randoms(use_true_random=False))
def test_order_does_not_matter(values, n_clusters, random):
    order = list(range(len(values)))
    random.shuffle(order)
    plain, moved = (
        cs.kmeans_1d(values, n_clusters),
        cs.kmeans_1d(np.array(values)[order], n_clusters),
    )
    np.testing.assert_array_equal(moved.labels, plain.labels[order])
    np.testing.assert_array_equal(moved.centers, plain.centers)
    assert moved.inertia == plain.inertia


@given(lists, counts, st.integers(-60, 60))
def test_power_of_two_scales_everything(values, n_clusters, exponent):
    plain = cs.kmeans_1d(values, n_clusters)
    scaled = cs.kmeans_1d(np.ldexp(values, exponent), n_clusters)
    np.testing.assert_array_equal(scaled.labels, plain.labels)
    np.testing.assert_array_equal(scaled.centers, np.ldexp(plain.centers, exponent))


@given(lists, counts, st.floats(0.01, 100), st.booleans())
def test_any_factor_scales_the_inertia(values, n_clusters, factor, negative):
    values = np.array(values)
    scaled = values * (-factor if negative else factor)
    # Rounding of the products moves the values by a last digit each.
    slack = 1e-14 * np.square(scaled).sum()
    found = cs.kmeans_1d(scaled, n_clusters).inertia
    expected = factor**2 * cs.kmeans_1d(values, n_clusters).inertia
    assert found == pytest.approx(expected, rel=1e-6, abs=slack)


@given(
    st.lists(st.integers(-400, 400), min_size=1, max_size=30), counts, st.integers(-(2**40), 2**40)
)
def test_shift_moves_the_centers_only(values, n_clusters, shift):
    values = np.array(values) / 8
    plain, moved = cs.kmeans_1d(values, n_clusters), cs.kmeans_1d(values + shift, n_clusters)
    assert moved.inertia == pytest.approx(plain.inertia, rel=1e-12, abs=5e-324)
    cost = reference.exact_cost_of_labels(values, None, moved.labels)
    assert float(cost) == pytest.approx(plain.inertia, rel=1e-12, abs=5e-324)


@given(lists, counts)
def test_more_groups_never_cost_more(values, n_clusters):
    inertias = [cs.kmeans_1d(values, n).inertia for n in range(1, n_clusters + 2)]
    floor = resolution(values)
    assert all(after <= before * (1 + 1e-12) + floor for before, after in pairwise(inertias))


@given(st.lists(st.tuples(numbers, st.integers(1, 5)), min_size=1, max_size=20), counts)
def test_integer_weights_are_repetitions(pairs, n_clusters):
    values, repeats = np.array([x for x, _ in pairs]), np.array([w for _, w in pairs])
    weighted = cs.kmeans_1d(values, n_clusters, sample_weight=repeats)
    repeated = cs.kmeans_1d(np.repeat(values, repeats), n_clusters)
    floor = resolution(values, repeats)
    assert weighted.inertia == pytest.approx(repeated.inertia, rel=1e-12, abs=floor)
    for labels in (np.repeat(weighted.labels, repeats), repeated.labels):
        cost = reference.exact_cost_of_labels(np.repeat(values, repeats), None, labels)
        assert float(cost) == pytest.approx(repeated.inertia, rel=1e-12, abs=floor)


@pytest.mark.parametrize("orders", [20, 40, 200])
def test_weights_lost_beside_others(orders):
    # Sums of the weights up to a value often do not tell whether it has any.
    for seed in reference.cases(150):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 12))
        values = np.round(2.0 * rng.standard_normal(n)) / 2.0
        weights = 10.0 ** rng.uniform(-orders, 2.0, n)
        n_clusters = int(rng.integers(1, n + 1))
        found = cs.kmeans_1d(values, n_clusters, sample_weight=weights)
        cost = float(reference.exact_cost_of_labels(values, weights, found.labels))
        least = least_inertia(values, weights, n_clusters)
        assert cost <= least * (1 + 1e-9) + 2.0**-96 * weights.sum() * np.ptp(values) ** 2


def test_many_weights_lost_beside_others():
    rng = np.random.default_rng(0)
    values, weights = rng.standard_normal(6000), 10.0 ** rng.uniform(-300.0, 2.0, 6000)
    heavy = weights > 1e-20 * weights.max()
    found = cs.kmeans_1d(values, 64, sample_weight=weights)
    alone = cs.kmeans_1d(values[heavy], 64, sample_weight=weights[heavy])
    assert found.inertia == pytest.approx(alone.inertia, rel=1e-12)


@given(st.lists(st.tuples(numbers, st.integers(0, 2)), min_size=1, max_size=30), counts)
def test_zero_weights_are_removals(pairs, n_clusters):
    values, weights = np.array([x for x, _ in pairs]), np.array([w for _, w in pairs])
    counted = weights > 0
    if not counted.any():
        return
    found = cs.kmeans_1d(values, n_clusters, sample_weight=weights)
    alone = cs.kmeans_1d(values[counted], n_clusters, sample_weight=weights[counted])
    np.testing.assert_array_equal(found.labels[counted], alone.labels)
    np.testing.assert_array_equal(found.centers, alone.centers)
    assert found.inertia == alone.inertia
    np.testing.assert_array_equal(found.sizes, np.bincount(found.labels))
    for value, label in zip(values[~counted], found.labels[~counted], strict=True):
        distances = np.abs(value - found.centers)
        assert distances[label] <= distances.min() + 1e-15 * np.abs(found.centers).max()


@given(
    st.lists(st.tuples(numbers, st.floats(1e-6, 1e6)), min_size=1, max_size=30),
    counts,
)
def test_weighted_optimum(pairs, n_clusters):
    values, weights = np.array([x for x, _ in pairs]), np.array([w for _, w in pairs])
    groups = cs.kmeans_1d(values, n_clusters, sample_weight=weights)
    least, floor = least_inertia(values, weights, n_clusters), resolution(values, weights)
    assert groups.inertia == pytest.approx(least, rel=1e-12, abs=floor)
    cost = float(reference.exact_cost_of_labels(values, weights, groups.labels))
    assert groups.inertia == pytest.approx(cost, rel=1e-12, abs=5e-324)
