"""Works in step: what they get, in how many passes, and what becomes of them when one fails."""

import threading

import numpy as np
import pytest
from sklearn import config_context, get_config

from clustruct.design import as_design
from clustruct.design.partitioned.in_step import Abandoned, Meeting

da = pytest.importorskip("dask.array")
from clustruct.design.partitioned import blocks  # noqa: E402
from clustruct.design.partitioned.blocks import block_design  # noqa: E402

N, D = 60, 5
X = np.random.default_rng(0).standard_normal((N, D))


@pytest.fixture
def design():
    made = block_design(da.from_array(X, chunks=(25, D)))
    made.n_passes = 0
    return made


def powers(design, count):
    """A work of so many passes: the sum of the columns of ``(X'X)^count``."""
    v = np.ones((D, 1))
    for _ in range(count):
        v = design.adjoint(design.scores(v))
    return v


def test_passes_are_those_of_the_longest_work(design):
    counts = [1, 3, 2, 0]
    alone = [powers(design, count) for count in counts]
    assert design.n_passes == 2 * sum(counts)
    design.n_passes = 0
    together = design.side_by_side([lambda count=count: powers(design, count) for count in counts])
    assert design.n_passes == 2 * max(counts)
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)  # to the last bit


def test_works_of_works_join_the_others(design):
    def twice():
        return sum(design.side_by_side([lambda: powers(design, 2), lambda: powers(design, 2)]))

    results = design.side_by_side([twice, lambda: powers(design, 2), twice])
    assert design.n_passes == 4
    for found, factor in zip(results, (2.0, 1.0, 2.0), strict=True):
        np.testing.assert_array_equal(found, factor * powers(design, 2))


def test_rows_and_sums_are_asked_for_together(design):
    def kept():
        return np.concatenate(design.scores(np.eye(D)).local)

    def both():
        rows, total = design.sweep_keeping(lambda X: (X.scores(np.ones((D, 1))), X.shape[0]))
        return np.concatenate(rows.local), total

    found = design.side_by_side([kept, both, lambda: design.sweep(lambda X: X.shape[0])])
    assert design.n_passes == 1
    np.testing.assert_array_equal(found[0], X)
    np.testing.assert_allclose(found[1][0][:, 0], X.sum(axis=1))
    assert found[1][1] == found[2] == N


def test_rows_that_would_not_fit_are_made_one_after_the_other(design, monkeypatch):
    monkeypatch.setattr(blocks, "MOST_KEPT", 8 * N * 2 * D)
    works = [lambda: np.concatenate(design.scores(np.eye(D)).local)] * 5
    for found in design.side_by_side(works):
        np.testing.assert_array_equal(found, X)
    assert design.n_passes == 3


def test_many_works_are_begun_a_few_at_a_time(design, monkeypatch):
    monkeypatch.setattr("clustruct.design.partitioned.in_step.MOST_AT_ONCE", 4)
    at_once = []

    def work(number):
        at_once.append(threading.active_count())
        design.adjoint(design.scores(np.ones((D, 1))))
        return number

    before = threading.active_count()
    numbers = design.side_by_side([lambda number=number: work(number) for number in range(10)])
    assert numbers == list(range(10))
    assert max(at_once) <= before + 4
    assert design.n_passes == 2 * 3


@pytest.mark.parametrize("nested", [False, True])
def test_an_error_ends_the_others(design, nested):
    ended = []

    def endless():
        try:
            while True:
                powers(design, 1)
        except Abandoned:
            ended.append(True)
            raise

    def fails():
        powers(design, 2)
        raise ValueError("the reason")

    def alone():
        return design.side_by_side([fails])

    before = threading.active_count()
    with pytest.raises(ValueError, match="the reason"):
        design.side_by_side([endless, alone if nested else fails, endless])
    assert ended == [True, True]
    assert threading.active_count() == before
    np.testing.assert_allclose(powers(design, 1), X.T @ X @ np.ones((D, 1)))  # as before


def test_an_error_of_a_pass_ends_all(design):
    def bad():
        return design.sweep(lambda X: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        design.side_by_side([bad, lambda: powers(design, 3)])
    assert design.side_by_side([lambda: 1]) == [1]


def test_an_interrupt_ends_all():
    ended = []

    def answer(questions):
        raise KeyboardInterrupt

    meeting = Meeting(answer, lambda questions: True)

    def work():
        try:
            meeting.ask("?")
        finally:
            ended.append(True)

    with pytest.raises(KeyboardInterrupt):
        meeting.run([work, work])
    assert ended == [True, True]


def test_works_see_the_settings_of_those_who_called(design):
    with config_context(assume_finite=True), np.errstate(divide="ignore"):
        found = design.side_by_side(
            [lambda: (get_config()["assume_finite"], np.geterr()["divide"])]
        )
    assert found == [(True, "ignore")]


def test_whole_matrices_are_worked_on_one_after_the_other():
    order = []
    results = as_design(X).side_by_side([lambda i=i: order.append(i) or i for i in range(3)])
    assert next(iter(results)) == 0
    assert order == [0]  # the rest is done when it is asked for
