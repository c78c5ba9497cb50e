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
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from sklearn.cluster import KMeans

from clustruct._typing import Floats, Labels
from clustruct.results.stability import ABSENT
from clustruct.trust.agreement import contingency

# Starts of k-means.
N_STARTS = 5


class Consensus(NamedTuple):
    """The groups that resamples agree on.

    labels (m,): from 0.
    scores: the calibration score of each number of groups that was tried.
    """

    labels: Labels
    scores: dict[int, float]


def consensus(labels: Labels, counts: range, seed: int) -> Consensus:
    """The partition with the best score, among those with so many groups."""
    lists, codes, weights = np.unique(labels.T, axis=0, return_inverse=True, return_counts=True)
    points = _one_hot(lists)
    found: dict[int, Labels] = {}
    for n_groups in counts:
        if not 1 < n_groups <= lists.shape[0]:
            continue
        kmeans = KMeans(n_groups, n_init=N_STARTS, random_state=seed)
        found[n_groups] = kmeans.fit_predict(points, sample_weight=weights.astype(np.float64))
    if not found:  # all items are always together, or each is always alone
        return Consensus(codes.reshape(-1).astype(np.intp), {})
    scores = {q: score(lists, mine, weights) for q, mine in found.items()}
    best = max(scores, key=lambda q: scores[q])
    return Consensus(found[best][codes.reshape(-1)].astype(np.intp), scores)


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
