"""One partition of many: the groups that resamples agree on, and how many there are.

An item is the list of its labels over the resamples. As one-hot codes, two items are at a squared
distance of ``2 B (1 - co-membership)``, so that k-means of the codes groups items that are often
together (Topchy, Jain and Punch, 2005), and needs no matrix of pairs. Items with the same list are
one point with a weight.

The number of groups is calibrated by the score of `sharp` (Bodinier et al., 2023): co-membership
inside of groups should be as much larger than between groups as chance would hardly make it. With
``N_w`` and ``N_b`` pairs inside and between, counted over all resamples, with shares ``p_w`` and
``p_b`` of pairs that are together, and ``p`` that of all pairs, it is

    (p_w - p_b) / sqrt(p (1 - p) (1 / N_w + 1 / N_b)).

The same score tells from which co-membership on two items count as together: with the pairs from a
threshold on as "inside" and the others as "between", it is largest where ``N_w N_b (p_w - p_b)^2``
is, which is the threshold of Otsu (1979) for the histogram of co-memberships.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from sklearn.cluster import KMeans

from clustruct._typing import Floats, Labels
from clustruct.grouping.rows import ZERO
from clustruct.results.stability import ABSENT
from clustruct.trust.agreement import contingency

# Starts of k-means.
N_STARTS = 5
# Different lists of labels that k-means is fitted to, and items whose pairs are looked at for the
# threshold; of more, so many are drawn.
MOST_LISTS, MOST_ITEMS = 5000, 1000
# Features that have no weight in more than this share of the resamples have none in the consensus.
MOSTLY = 0.5


class Consensus(NamedTuple):
    """The groups that resamples agree on.

    labels (m,): from 0, and -1 for features that are mostly without weight.
    scores: the calibration score of each number of groups that was tried.
    """

    labels: Labels
    scores: dict[int, float]


def consensus(labels: Labels, counts: range, seed: int, blocks: Labels | None = None) -> Consensus:
    """The partition with the best score, among those with so many groups; one group without any.

    blocks (m,): items of different blocks are never in one group, -1 for items that are alone.
    """
    own = np.zeros(labels.shape[1], dtype=np.int8) if blocks is None else _separate(blocks)
    lists, codes, weights = np.unique(
        np.column_stack([labels.T, own]), axis=0, return_inverse=True, return_counts=True
    )
    lists, own = lists[:, :-1], lists[:, -1]
    kept = (lists == ZERO).sum(axis=1) <= MOSTLY * (lists != ABSENT).sum(axis=1)
    # Where there is nothing to compare, each list of labels is a group.
    groups = np.where(kept, np.cumsum(kept) - 1 if counts else 0, ZERO)
    best, scores = -np.inf, dict[int, float]()
    few = _drawn(weights, MOST_LISTS, seed)
    fitted = few[kept[few]]
    points, sizes = _one_hot(lists), weights[fitted].astype(np.float64)
    most = np.unique(lists[fitted], axis=0).shape[0]
    for n_groups in counts:
        if not 1 < n_groups <= most:  # all items are together, or each is alone
            continue
        kmeans = KMeans(n_groups, n_init=N_STARTS, random_state=seed)
        kmeans.fit(points[fitted], sample_weight=sizes)
        pairs = np.stack([kmeans.predict(points[kept]), own[kept]], axis=1)
        trial = np.full(kept.size, ZERO)
        trial[kept] = np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1)
        value = score(lists[few], trial[few] - int(trial.min()), weights[few])
        count = int(trial.max()) + 1
        scores[count] = max(value, scores.get(count, value))
        if value > best:
            best, groups = value, trial
    return Consensus(groups[codes.reshape(-1)].astype(np.intp), scores)


def _drawn(weights: Labels, most: int, seed: int) -> Labels:
    """Numbers of all lists of items, or of so many, drawn by how many items have them."""
    if weights.size <= most:
        return np.arange(weights.size)
    rng = np.random.default_rng(seed)
    return np.sort(rng.choice(weights.size, most, replace=False, p=weights / weights.sum()))


def _separate(blocks: Labels) -> Labels:
    """Numbers of the blocks, those of items alone after all others."""
    alone = blocks < 0
    numbers = np.where(alone, int(blocks.max()) + np.cumsum(alone), blocks)
    return numbers.astype(np.min_scalar_type(-int(numbers.max()) - 1))


def threshold(labels: Labels, seed: int) -> float:
    """The co-membership from which on two items count as together; NaN if all are the same."""
    labels = labels[:, _drawn(np.ones(labels.shape[1], dtype=np.intp), MOST_ITEMS, seed)]
    lists, counts = np.unique(labels.T, axis=0, return_counts=True)
    there = (lists != ABSENT).astype(np.float64)
    points = _one_hot(lists)
    together, both = (points @ points.T).toarray(), there @ there.T
    pairs = 0.5 * (np.outer(counts, counts) - np.diag(counts))
    some = (pairs > 0.0) & (both > 0.0)
    shares, where = np.unique(together[some] / both[some], return_inverse=True)
    if shares.size < 2:
        return float("nan")
    every = np.bincount(where.reshape(-1), (pairs * both)[some])
    hits = every * shares
    # Pairs from the second share on, from the third on and so on.
    inside, held = every[::-1].cumsum()[::-1][1:], hits[::-1].cumsum()[::-1][1:]
    between, others = every.sum() - inside, hits.sum() - held
    best = int(np.argmax(inside * between * np.square(held / inside - others / between)))
    return float(0.5 * (shares[best] + shares[best + 1]))


def _one_hot(lists: Labels) -> csr_array:
    """A column for each group of each resample; items that a resample lacks have none there."""
    n_items, n_resamples = lists.shape
    least = lists.min(initial=0)
    width = int(lists.max(initial=0)) - int(least) + 1
    there = lists != ABSENT
    columns = (lists - least + width * np.arange(n_resamples))[there].astype(np.int32)
    bounds = np.append(0, np.cumsum(there.sum(axis=1))).astype(np.int32)
    shape = n_items, n_resamples * width
    return csr_array((np.ones(columns.size), columns, bounds), shape=shape)


def score(lists: Labels, groups: Labels, weights: Labels) -> float:
    """How much more often pairs inside of groups are together than others, in standard errors."""
    n_groups = int(groups.max()) + 1
    inside = together_inside = every = together = 0.0
    for mine in lists.T:
        table = contingency(groups, n_groups, mine, weights)[1]
        together_inside += _pairs(table)
        together += _pairs(table.sum(axis=0))
        inside += _pairs(table.sum(axis=1))
        every += _pairs(table.sum())
    between = every - inside
    if inside == 0.0 or between == 0.0 or together in (0.0, every):
        return 0.0
    rate = together / every
    gap = together_inside / inside - (together - together_inside) / between
    return float(gap / np.sqrt(rate * (1.0 - rate) * (1.0 / inside + 1.0 / between)))


def _pairs(sizes: Floats) -> float:
    """Number of pairs inside of sets of these sizes."""
    return float((0.5 * sizes * (sizes - 1.0)).sum())
