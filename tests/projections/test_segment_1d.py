"""segment_1d as users meet it: what goes in, what comes out, and what always holds."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import clustruct as cs
from tests.kernels.level_groups import least_costs

numbers = st.integers(-20, 20).map(lambda i: i / 4)
lists = st.lists(numbers, min_size=1, max_size=30)
short = st.lists(numbers, min_size=1, max_size=6)
counts = st.integers(1, 8)
prices = st.floats(0.0, 20.0)
kinds = st.sampled_from(["ordinal", "monotone", "cyclic"])


def total(found, price):
    return found.inertia / 2 + price * (len(found.centers) - 1)


def test_result_is_described_by_its_parts():
    found = cs.segment_1d([1, 1, 5, 6, 1], 3, sample_weight=[1, 1, 3, 1, 2])
    assert isinstance(found, cs.Segmentation1D)
    assert found.labels.tolist() == [0, 0, 1, 1, 2]
    assert found.centers.tolist() == [1.0, 5.25, 1.0]
    assert found.sizes.tolist() == [2, 2, 1]
    assert found.inertia == pytest.approx(3 * 0.25**2 + 0.75**2)


def test_kinds_differ():
    x = [3.0, 0.0, 0.2, 2.0, 1.9, 3.1]
    assert cs.segment_1d(x, price=0.1).labels.tolist() == [0, 1, 1, 2, 2, 3]
    assert cs.segment_1d(x, price=0.1, kind="cyclic").labels.tolist() == [0, 1, 1, 2, 2, 0]
    rising = cs.segment_1d(x, price=0.1, kind="monotone")
    assert rising.labels.tolist() == [0, 0, 0, 1, 1, 2]
    falling = cs.segment_1d(x, price=0.1, kind="monotone", decreasing=True)
    assert falling.labels.tolist() == [0, 1, 1, 1, 1, 1]
    heavy = cs.segment_1d(x, price=0.1, min_weight=3)
    assert heavy.labels.tolist() == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({}, ["n_segments=None", "price", "integer"]),
        ({"n_segments": 0}, ["n_segments must be at least 1", "0"]),
        ({"n_segments": 2.0}, ["n_segments must be an integer", "2.0"]),
        ({"price": -1.0}, ["price must be finite and at least 0", "-1.0"]),
        ({"price": np.inf}, ["price must be finite", "inf"]),
        ({"price": "1"}, ["price must be a number", "'1'"]),
        ({"price": 1.0, "kind": "nominal"}, ["kind must be one of", "'cyclic'", "'nominal'"]),
        ({"price": 1.0, "decreasing": 1}, ["decreasing must be True or False"]),
        ({"price": 1.0, "min_weight": -1}, ["min_weight must be finite and at least 0", "-1"]),
        ({"price": 1.0, "sample_weight": [1, 1]}, ["sample_weight has 2 entries", "3"]),
        ({"price": 1.0, "sample_weight": [0, 0, 0]}, ["sample_weight is zero throughout"]),
    ],
)
def test_bad_arguments_are_refused(options, parts):
    with pytest.raises(ValueError) as caught:
        cs.segment_1d([1.0, 2.0, 4.0], **options)
    for part in parts:
        assert re.search(re.escape(part), str(caught.value)), str(caught.value)


@given(short, counts, prices, kinds, st.integers(0, 3))
def test_no_partition_is_better(values, most, price, kind, min_weight):
    x = np.array(values)
    ones = np.ones(len(x))
    least = least_costs({"monotone": "rising"}.get(kind, kind), x, ones, ones, min_weight)[:most]
    found = cs.segment_1d(x, most, price=price, kind=kind, min_weight=min_weight)
    best = (least + price * np.arange(len(least))).min()
    assert total(found, price) == pytest.approx(best, abs=1e-9)


@given(lists, counts, prices, kinds)
def test_projecting_twice_changes_nothing(values, most, price, kind):
    found = cs.segment_1d(values, most, price=price, kind=kind)
    again = cs.segment_1d(found.centers[found.labels], most, price=price, kind=kind)
    np.testing.assert_allclose(again.centers[again.labels], found.centers[found.labels], atol=1e-9)


@given(lists, counts, prices, kinds, numbers, st.integers(-9, 9))
def test_shifts_and_scales_carry_over(values, most, price, kind, shift, exponent):
    x, scale = np.array(values), 2.0**exponent
    plain = cs.segment_1d(x, most, price=price, kind=kind)
    moved = cs.segment_1d(scale * (x + shift), most, price=scale**2 * price, kind=kind)
    expected = scale**2 * total(plain, price)
    assert total(moved, scale**2 * price) == pytest.approx(expected, abs=1e-9 * scale**2)


@given(lists, prices)
def test_a_sequence_and_its_mirror_cost_the_same(values, price):
    mirror = values[::-1]
    for kind in ("ordinal", "cyclic"):
        one, other = (cs.segment_1d(x, price=price, kind=kind) for x in (values, mirror))
        assert total(one, price) == pytest.approx(total(other, price), abs=1e-9)
    rising = cs.segment_1d(values, price=price, kind="monotone")
    falling = cs.segment_1d(mirror, price=price, kind="monotone", decreasing=True)
    assert total(rising, price) == pytest.approx(total(falling, price), abs=1e-9)


@given(lists, prices, st.integers(0, 29))
def test_where_a_circle_begins_does_not_matter(values, price, turn):
    one = cs.segment_1d(values, price=price, kind="cyclic")
    other = cs.segment_1d(np.roll(values, turn), price=price, kind="cyclic")
    assert total(one, price) == pytest.approx(total(other, price), abs=1e-9)
    line = cs.segment_1d(values, price=price)
    assert total(one, price) <= total(line, price) + 1e-9


@given(lists, st.data(), prices, kinds)
def test_weights_equal_repetition(values, data, price, kind):
    repeats = data.draw(st.lists(st.integers(1, 3), min_size=len(values), max_size=len(values)))
    weighted = cs.segment_1d(values, price=price, kind=kind, sample_weight=repeats)
    repeated = cs.segment_1d(np.repeat(values, repeats), price=price, kind=kind)
    assert total(weighted, price) == pytest.approx(total(repeated, price), abs=1e-9)


@pytest.mark.parametrize("kind", ["ordinal", "monotone", "cyclic"])
def test_values_of_both_signs_near_the_largest_double(kind):
    # Their differences overflow; the centre was infinite.
    found = cs.segment_1d([-1.7e308, 1e308], 1, kind=kind)
    np.testing.assert_allclose(found.centers, [-3.5e307], rtol=1e-15)
    found = cs.segment_1d([1.7e308, -1e308, -1.2e308], 1, sample_weight=[1.0, 2.0, 3.0], kind=kind)
    np.testing.assert_allclose(found.centers, [-6.5e307], rtol=1e-14)
