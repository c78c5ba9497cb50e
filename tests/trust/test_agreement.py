"""Labels of resamples against a reference, by definitions that go through all pairs."""

from itertools import permutations

import numpy as np
import pytest

from clustruct.results.stability import ABSENT
from clustruct.trust.agreement import agreement
from clustruct.trust.consensus import consensus, score, threshold


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


def pairs_of(labels):
    """How often two items are together, and how often both are there, of all pairs."""
    m = labels.shape[1]
    for i in range(m):
        for j in range(i):
            both = (labels[:, i] != ABSENT) & (labels[:, j] != ABSENT)
            yield int((both & (labels[:, i] == labels[:, j])).sum()), int(both.sum())


def test_the_threshold_has_the_best_score_of_all(labels):
    """Pairs from a threshold on as inside, the others as between: the score of the partition."""
    many = labels[1]
    hits, both = np.array(list(pairs_of(many)), dtype=float).T
    rate = hits.sum() / both.sum()

    def value(cut):
        inside = hits / both >= cut
        if inside.all() or not inside.any():
            return -np.inf
        n_in, n_out = both[inside].sum(), both[~inside].sum()
        gap = hits[inside].sum() / n_in - hits[~inside].sum() / n_out
        return gap / np.sqrt(rate * (1 - rate) * (1 / n_in + 1 / n_out))

    found = threshold(many, 0)
    assert value(found) == pytest.approx(max(value(cut) for cut in np.linspace(0, 1, 501)))
    assert not np.isclose(found, hits / both).any()  # between two co-memberships


def test_thresholds_of_perfect_and_of_no_agreement():
    assert threshold(np.tile([0, 0, 1, 1], (3, 1)), 0) == 0.5
    assert np.isnan(threshold(np.zeros((3, 4), dtype=int), 0))


def test_the_threshold_of_many_items_is_that_of_some(monkeypatch):
    rng = np.random.default_rng(0)
    many = np.where(
        rng.random((20, 600)) < 0.2, rng.integers(3, size=(20, 600)), np.arange(600) % 3
    )
    whole = threshold(many, 0)
    monkeypatch.setattr("clustruct.trust.consensus.MOST_ITEMS", 100)
    assert threshold(many, 0) == pytest.approx(whole, abs=0.1)


def test_firm_items_are_together_or_apart_more_often_than_not(labels):
    """Two items that stay in a share f of the resamples are together, or apart, in 2 f - 1."""
    reference, many = labels
    firmness = agreement(reference, many).firmness
    for i in range(reference.size):
        for j in range(i):
            both = (many[:, i] != ABSENT) & (many[:, j] != ABSENT)
            together = np.mean((many[:, i] == many[:, j])[both])
            if not both.all():
                continue
            as_they_should = together if reference[i] == reference[j] else 1.0 - together
            assert as_they_should >= firmness[i] + firmness[j] - 1.0 - 1e-12


def test_consensus_finds_fewer_groups_than_every_resample_has():
    """Each resample splits one of three groups at random, and never the same way."""
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 8)
    many = np.stack(
        [np.where(rng.random(24) < 0.5, truth, truth + 3 * (truth == b % 3)) for b in range(30)]
    )
    found = consensus(many, range(2, 5), 0)
    assert max(found.scores, key=found.scores.get) == 3
    np.testing.assert_array_equal(
        np.equal.outer(truth, truth), np.equal.outer(found.labels, found.labels)
    )


def test_consensus_of_many_lists_is_found_on_some(monkeypatch):
    rng = np.random.default_rng(0)
    truth = np.arange(300) % 3
    many = np.where(rng.random((20, 300)) < 0.2, rng.integers(3, size=(20, 300)), truth)
    monkeypatch.setattr("clustruct.trust.consensus.MOST_LISTS", 60)
    found = consensus(many, range(2, 5), 0).labels
    np.testing.assert_array_equal(np.equal.outer(truth, truth), np.equal.outer(found, found))


def test_consensus_keeps_blocks_and_items_alone_apart():
    blocks = np.array([0, 0, 1, 1, -1, -1])
    found = consensus(np.zeros((4, 6), dtype=int), range(2, 3), 0, blocks).labels
    assert found[0] == found[1] != found[2] == found[3]
    assert np.unique(found).size == 4


def test_features_mostly_without_weight_have_none_in_the_consensus():
    many = np.tile([0, 0, 1, 1, -1, -1], (9, 1))
    many[:3, 4], many[:6, 5] = 1, 0
    found = consensus(many, range(2, 3), 0).labels
    np.testing.assert_array_equal(found < 0, [False, False, False, False, True, False])
    assert found[5] == found[0] != found[2]


def test_without_numbers_to_compare_all_are_together():
    labels = np.zeros((9, 5), dtype=np.int8)
    labels[0, 3:] = 1
    found = consensus(labels, range(0), 0)
    assert found.labels.tolist() == [0] * 5
    assert found.scores == {}
