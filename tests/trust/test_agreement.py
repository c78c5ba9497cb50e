"""Labels of resamples against a reference, by definitions that go through all pairs."""

from itertools import permutations

import numpy as np
import pytest

from clustruct.results.stability import ABSENT
from clustruct.trust.agreement import agreement
from clustruct.trust.consensus import consensus, score


@pytest.fixture
def labels():
    """Twelve items in three groups, ten resamples; a few items change sides or are absent."""
    rng = np.random.default_rng(0)
    reference = np.repeat([-1, 0, 1], 4)
    many = np.tile(reference, (10, 1))
    many[rng.random(many.shape) < 0.2] = 0
    renamed = np.array([permuted[0] for permuted in [rng.permuted([[5, 7, 2]], axis=1)] * 10])
    many = np.take_along_axis(renamed, many + 1, axis=1)
    many[0, 3] = ABSENT
    return reference, many


def test_firmness_is_the_best_that_any_renaming_gives(labels):
    reference, many = labels
    found = agreement(reference, many)
    stays = np.zeros(many.shape)
    for b, mine in enumerate(many):
        names = [name for name in np.unique(mine) if name != ABSENT]
        best = max(
            (
                np.array([dict(zip((-1, 0, 1), order, strict=True))[r] for r in reference]) == mine
                for order in permutations(names)
            ),
            key=np.sum,
        )
        stays[b] = best
    present = (many != ABSENT).sum(axis=0)
    np.testing.assert_allclose(found.firmness, stays.sum(axis=0) / present)


def test_co_membership_of_groups_is_that_of_their_pairs(labels):
    reference, many = labels
    together = agreement(reference, many).together
    for a, one in enumerate((-1, 0, 1)):
        for b, other in enumerate((-1, 0, 1)):
            hits = pairs = 0
            for mine in many:
                for i in np.flatnonzero(reference == one):
                    for j in np.flatnonzero(reference == other):
                        if i != j and ABSENT not in (mine[i], mine[j]):
                            hits, pairs = hits + (mine[i] == mine[j]), pairs + 1
            assert together[a, b] == pytest.approx(hits / pairs)


def test_a_group_that_vanishes_has_no_match():
    found = agreement(np.array([0, 0, 1, 1]), np.zeros((1, 4), dtype=int))
    assert sorted(found.matched[0]) == [ABSENT, 0]


def test_score_by_all_pairs(labels):
    reference, many = labels
    groups = reference + 1
    inside = together_inside = between = together_between = 0
    for mine in many:
        for i in range(12):
            for j in range(i):
                if ABSENT in (mine[i], mine[j]):
                    continue
                same = mine[i] == mine[j]
                if groups[i] == groups[j]:
                    inside, together_inside = inside + 1, together_inside + same
                else:
                    between, together_between = between + 1, together_between + same
    p = (together_inside + together_between) / (inside + between)
    gap = together_inside / inside - together_between / between
    expected = gap / np.sqrt(p * (1 - p) * (1 / inside + 1 / between))
    assert score(many.T, groups, np.ones(12, dtype=int)) == pytest.approx(expected)


def test_consensus_finds_what_resamples_agree_on(labels):
    reference, many = labels
    found = consensus(many, range(2, 6), seed=0)
    assert max(found.scores, key=found.scores.get) == 3
    pairs = found.labels[:, None] == found.labels
    np.testing.assert_array_equal(pairs, reference[:, None] == reference)


def test_consensus_of_one_group():
    assert set(consensus(np.zeros((5, 4), dtype=int), range(2, 3), 0).labels) == {0}
