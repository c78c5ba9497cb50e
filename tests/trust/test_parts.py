"""Resamples have the sizes that they should, and lose no class or task."""

import numpy as np
import pytest

from clustruct.trust.parts import draw_parts

EVERYONE = np.ones(31, dtype=bool)


def test_halves_are_complementary():
    parts = draw_parts("subsample", 6, np.zeros(31, dtype=int), EVERYONE, 0)
    for first, second in zip(parts[::2], parts[1::2], strict=True):
        np.testing.assert_array_equal(first + second, 1)
        assert abs(int(first.sum()) - int(second.sum())) == 1


def test_an_odd_number_of_halves():
    assert len(draw_parts("subsample", 5, np.zeros(31, dtype=int), EVERYONE, 0)) == 5


def test_bootstrap_draws_as_many_of_each_stratum():
    strata = np.repeat([0, 1, 2], [20, 10, 1])
    for counts in draw_parts("bootstrap", 5, strata, EVERYONE, 0):
        np.testing.assert_array_equal(np.bincount(strata, weights=counts), [20, 10, 1])
    assert counts.max() > 1


@pytest.mark.parametrize("scheme", ["subsample", "bootstrap"])
def test_no_stratum_is_lost_and_rows_without_weight_stay_out(scheme):
    strata = np.repeat([0, 1, 2], [20, 10, 1])
    kept = EVERYONE.copy()
    kept[:5] = False
    for counts in draw_parts(scheme, 10, strata, kept, 1):
        assert (np.bincount(strata, weights=counts) > 0).all()
        assert not counts[:5].any()


@pytest.mark.parametrize("scheme", ["subsample", "bootstrap"])
def test_the_seed_decides(scheme):
    draw = [draw_parts(scheme, 4, np.zeros(31, dtype=int), EVERYONE, seed) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(draw[0], draw[1])
    assert not np.array_equal(draw[0], draw[2])
