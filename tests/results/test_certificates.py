"""Certificates: what they refuse, how gaps are measured, and the words for them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import clustruct as cs
from clustruct.results.solving import ROUNDING, relative_gaps

BEST = "Proved optimal"


@pytest.mark.parametrize("objective", [np.nan, np.inf, -np.inf])
def test_an_objective_that_is_not_finite_is_refused(objective):
    with pytest.raises(ValueError, match=r"the objective is (nan|inf|-inf)\. .*Scale the columns"):
        cs.Certificate.of(objective, 0.0, "residual")


def test_a_bound_that_is_not_a_number_is_refused():
    with pytest.raises(ValueError, match=r"the lower bound \(residual\) is nan"):
        cs.Certificate.of(1.0, np.nan, "residual")


@pytest.mark.parametrize(
    ("objective", "bound"), [(-0.17, 0.0), (1.0, 1.0 + 1e-6), (1.0, np.inf), (0.0, 1e-30)]
)
def test_a_bound_above_the_objective_is_refused(objective, bound):
    with pytest.raises(ValueError, match="above the objective"):
        cs.Certificate.of(objective, bound, "residual")


def test_rounding_may_lift_a_bound_above_the_objective():
    certificate = cs.Certificate.of(1.0, 1.0 + 1e-12, "residual")
    assert (certificate.lower_bound, certificate.gap, certificate.relative_gap) == (1.0, 0.0, 0.0)
    # What is left of targets around 1 is known to their rounding, not to its own.
    left = cs.Certificate.of(1e-31, 3e-31, "unconstrained", scale=1.0)
    assert left.lower_bound == left.objective


def test_no_bound_is_an_infinite_gap():
    certificate = cs.Certificate.of(1.0, -np.inf, "least loss")
    assert certificate.gap == certificate.relative_gap == np.inf
    assert certificate.proves_little
    assert certificate.in_words.startswith("It is not proved")


def test_negative_objectives_have_gaps():
    certificate = cs.Certificate.of(-0.17, -0.2, "residual")
    assert certificate.gap == pytest.approx(0.03)
    assert certificate.relative_gap == pytest.approx(0.03 / 0.17)
    assert certificate.in_words == (
        "No other grouping can lower the training objective by more than 0.03 (it is -0.17)."
    )
    assert cs.Certificate.of(0.0, -0.2, "residual").relative_gap == np.inf
    assert BEST not in cs.Certificate.of(0.0, -0.2, "residual").in_words


@given(
    st.floats(-1e200, 1e200),
    st.one_of(st.just(np.inf), st.floats(0.0, 1e200)),
)
def test_only_a_gap_of_zero_is_called_the_best_possible(objective, gap):
    certificate = cs.Certificate.of(objective, objective - gap, "residual")
    size = max(abs(objective), abs(certificate.lower_bound))
    closed = certificate.gap <= ROUNDING * min(size, 1e300)
    assert (BEST in certificate.in_words) == closed
    assert not np.isnan(certificate.relative_gap)
    assert certificate.relative_gap >= 0.0
    assert relative_gaps([objective], [certificate.lower_bound]) == [certificate.relative_gap]


@pytest.mark.parametrize(
    ("lower_bound", "words"),
    [
        (2.0, "Proved optimal: no other grouping can lower the training objective."),
        (1.992, "No other grouping can lower the training objective by more than 0.4 %."),
        (1.7, "No other grouping can lower the training objective by more than 15 %."),
        (0.3, "No other grouping can lower the training objective by more than 85 %, which leaves"),
        (0.01, "It is not proved how much another grouping could lower"),
        (0.0, "It is not proved how much another grouping could lower"),
    ],
)
def test_words(lower_bound, words):
    certificate = cs.Certificate.of(2.0, lower_bound, "residual")
    assert certificate.in_words.startswith(words)
    assert "training objective" in certificate.in_words
    assert certificate.is_wide == (lower_bound < 1.6)
