"""Whether numbers are finite."""

import numpy as np
import pytest

from clustruct.kernels.numbers.finite import all_finite


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 11])
def test_one_bad_entry_is_enough(n):
    values = np.full(n, -np.finfo(float).max)
    values[::2] = 5e-324
    values.flags.writeable = False
    assert all_finite(values)
    for place in range(n):
        for bad in (np.nan, np.inf, -np.inf):
            spoilt = values.copy()
            spoilt[place] = bad
            assert not all_finite(spoilt)


def test_infinities_of_both_signs_do_not_cancel():
    assert not all_finite(np.array([np.inf, -np.inf]))
