"""Edges of groups, and labels from thresholds."""

import numpy as np
import pytest

from clustruct.kernels.numbers.partition import label_by_threshold, with_ends


@pytest.mark.parametrize("n_thresholds", [0, 1, 2, 3, 4, 7, 8, 9, 31, 64, 100])
def test_labels_count_the_thresholds_at_or_below(n_thresholds):
    rng = np.random.default_rng(n_thresholds)
    thresholds = np.sort(rng.integers(-50, 50, n_thresholds).astype(float))
    # Half of the values are thresholds themselves.
    values = rng.choice(np.append(thresholds, rng.uniform(-60, 60, n_thresholds + 1)), 500)
    labels = label_by_threshold(values, thresholds)
    np.testing.assert_array_equal(labels, (values[:, None] >= thresholds).sum(axis=1))
    assert labels.dtype == np.intp


def test_no_values_give_no_labels():
    labels = label_by_threshold(np.empty(0), np.array([0.0]))
    assert labels.shape == (0,)


def test_values_may_be_read_only():
    values = np.array([1.0, -1.0])
    values.flags.writeable = False
    assert label_by_threshold(values, np.array([0.0])).tolist() == [1, 0]


def test_edges_are_the_inner_boundaries_and_both_ends():
    assert with_ends(np.array([2, 5]), 9).tolist() == [0, 2, 5, 9]
    assert with_ends(np.empty(0, dtype=np.int64), 3).tolist() == [0, 3]
