"""Information criteria for the number of experts."""

import numpy as np
import pytest

from clustruct.solvers.experts.counting import _entropies, joint_values


def test_entropies_are_those_among_the_experts():
    # A sample that follows no expert for certain adds nothing, whatever else it may be.
    weights = np.array([[0.5, 0.5], [1.0, 0.0], [0.25, 0.25], [0.0, 0.0]])
    assert _entropies(weights) == pytest.approx([np.log(2), 0.0, 0.5 * np.log(2), 0.0])
    assert _entropies(np.array([[0.3], [1.0]])) == pytest.approx([0.0, 0.0])


@pytest.mark.parametrize(
    ("bic", "icl", "best"),
    [
        ([50.0, 10.0, 0.0, 30.0], [50.0, 200.0, 300.0, 400.0], 1),  # experts that overlap
        ([900.0, 60.0, 0.0, 30.0], [900.0, 90.0, 130.0, 190.0], 3),  # some of them do
        ([0.0, 20.0, 40.0, 60.0], [0.0, 21.0, 42.0, 63.0], 1),
    ],
)
def test_overlap_decides_whether_and_bic_how_many(bic, icl, best):
    counts = np.arange(1.0, 5.0)
    assert joint_values(counts, np.array(bic), np.array(icl)).argmin() + 1 == best


def test_without_a_single_expert_to_compare_with_it_is_bic():
    bic, icl = np.array([3.0, 2.0]), np.array([9.0, 1.0])
    assert (joint_values(np.array([2.0, 3.0]), bic, icl) == bic).all()
    assert (joint_values(np.array([1.0]), bic[:1], icl[:1]) == bic[:1]).all()
