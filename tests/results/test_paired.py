"""Paired differences of scores, the rule of fewest groups, and choices at the end of a grid."""

import numpy as np
import pytest

from clustruct.results import CountSelection, SearchResult, TaskSelection
from clustruct.results.paired import corrected_errors, fewest
from clustruct.results.searched import Edge, edges, tried


def test_corrected_errors_are_those_of_nadeau_and_bengio():
    differences = np.array([[1.0, 2.0, 4.0, 1.0], [3.0, 3.0, 3.0, 3.0]])
    variance = differences[0].var(ddof=1)
    by_hand = [np.sqrt(variance * (1 / 4 + 30 / 70)), 0.0]
    np.testing.assert_allclose(corrected_errors(differences, 30 / 70), by_hand)
    # Four folds hold out a third as many samples as they fit.
    np.testing.assert_allclose(
        corrected_errors(differences), corrected_errors(differences, 25 / 75)
    )
    assert corrected_errors(np.array([5.0])) == 0.0


def test_the_error_of_estimated_means_is_not_underestimated():
    """Means of folds that share a part vary as much as the corrected error says; plain says less.

    The score of each of five folds is its own noise and that of what is fitted, of which a share is
    common to all. Four fifths of the samples are fitted, so that the correlation is a fifth or so.
    """
    rng = np.random.default_rng(0)
    common, own = rng.normal(0, np.sqrt(0.2), (20_000, 1)), rng.normal(0, np.sqrt(0.8), (20_000, 5))
    folds = common + own
    true = folds.mean(axis=1).std()
    corrected = np.sqrt(np.square(corrected_errors(folds)).mean())
    plain = np.sqrt((folds.var(axis=1, ddof=1) / 5).mean())
    assert corrected == pytest.approx(true, rel=0.05)
    assert plain < 0.75 * true


def test_the_fewest_groups_that_are_not_clearly_worse():
    rng = np.random.default_rng(0)
    level = rng.normal(0.0, 10.0, 5)  # what makes folds hard is common to all points
    wiggle = np.array([0.1, -0.1, 0.1, -0.1, 0.0])
    scores = np.array([level - 1.0, level - 0.05 + wiggle, level, level - 0.02 - wiggle])
    sizes = np.array([1.0, 2.0, 3.0, 4.0])
    assert fewest(scores, sizes, 1.0) == 1
    assert fewest(scores, sizes, 0.0) == 2
    order = np.array([2, 0, 3, 1])
    assert fewest(scores[order], sizes[order], 1.0) == 3


def test_a_number_of_groups_is_judged_at_its_best_point():
    """A point whose scores vary much is within its wide errors, and yet is not what is chosen."""
    wild = np.array([-9.0, 3.0, -9.0, 3.0, 1.0])
    scores = np.array([np.zeros(5) - 1.0, wild, np.zeros(5), np.full(5, -3.0)])
    assert fewest(scores, np.array([1.0, 1.0, 2.0, 2.0]), 1.0) == 2


def test_a_loss_that_noise_hides_is_bounded():
    """Few samples: twice the loss is within the errors, and still too much."""
    scores = -np.array([[2.0, 9.0, 1.0, 0.0], [1.0, 0.5, 3.0, 1.5], [1.0, 0.6, 2.9, 1.6]])
    sizes = np.array([1.0, 2.0, 3.0])
    assert fewest(scores, sizes, 1.0) == 0
    assert fewest(scores, sizes, 1.0, share=0.03) == 1


def test_of_equal_points_the_first():
    assert fewest(np.zeros((3, 4)), np.array([2.0, 1.0, 1.0]), 1.0) == 1


# ---- What was tried, and choices at the end of it.


def search(counts, means, best, alphas=(0.1, 1.0), noise=0.0):
    """Scores of 4 folds with these means, of shape (n_Q, n_alphas)."""
    folds = np.array([1.0, -1.0, 1.0, -1.0]) * noise
    means = np.asarray(means, dtype=float)
    signs = 1.0 - 2.0 * (np.add.outer(*map(np.arange, means.shape)) % 2)
    scores = means[..., None] + signs[..., None] * folds
    return SearchResult(
        n_clusters=tuple(counts),
        alphas=np.array(alphas),
        n_nonzero=(None,),
        relax=np.ones((*means.shape, 1)),
        fold_scores=scores[:, :, None],
        criterion="cv",
        scoring="neg_mean_squared_error",
        rule="best",
        best_index=(*best, 0),
    )


def test_the_most_groups_that_were_tried():
    found = search((2, 3, 4), [[-3.0, -3.0], [-2.0, -2.0], [-1.0, -1.0]], (2, 0))
    assert edges(found) == [Edge("n_clusters", 4.0, 3.0)]
    assert edges(found)[0].end == "largest"
    assert edges(found, most=4) == []  # there cannot be more
    assert edges(search((2, 3), [[-2.0, -2.0], [-1.0, -1.0]], (0, 0))) == []


def test_without_groups_there_is_no_end():
    means = [[-3.0, -3.0], [-2.0, -2.0], [-1.0, -1.0]]
    assert edges(search((2, 3, None), means, (2, 0))) == []
    assert edges(search((2, 3, None), means, (1, 0))) == []


def test_ends_of_alpha():
    (smallest,) = edges(search((2,), [[-1.0, -2.0]], (0, 0)))
    assert (smallest.name, smallest.value, smallest.end) == ("alpha", 0.1, "smallest")
    (largest,) = edges(search((2,), [[-2.0, -1.0]], (0, 1)))
    assert (largest.name, largest.value, largest.end) == ("alpha", 1.0, "largest")
    three = search((2,), [[-2.0, -1.0, -2.0]], (0, 1), alphas=(0.1, 1.0, 10.0))
    assert edges(three) == []


def test_an_end_that_does_not_matter_is_none():
    assert edges(search((2, 3), [[-2.0, -2.0], [-1.0, -1.0]], (1, 0), noise=5.0)) == []  # noise
    assert edges(search((2, 3), [[-1.001, -1.001], [-1.0, -1.0]], (1, 0))) == []  # next to nothing


def test_ends_of_other_searches():
    strengths = tuple((0.0, 0.1, 0.1, within) for within in (1.0, 0.3))
    scores = np.repeat([[[-3.0], [-2.0]], [[-2.0], [-1.0]]], 4, axis=2)
    tasks = TaskSelection((1, 2), strengths, scores, "neg_squared_loss", "best", (1, 1))
    assert edges(tasks) == [Edge("n_clusters", 2.0, 1.0), Edge("alpha_within", 0.3, 1.0)]
    assert tried(tasks)["alpha_within"] == (0.3, 1.0)
    assert tried(tasks)["alpha_mean"] == (0.1,)
    zeros = np.zeros(3)
    counts = CountSelection("bic", np.arange(1, 4), np.array([9.0, 5.0, 2.0]), zeros, zeros, 3)
    assert edges(counts) == [Edge("n_clusters", 3.0, 2.0)]
    assert edges(counts, most=3) == []
