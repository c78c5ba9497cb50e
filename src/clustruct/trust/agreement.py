"""How often groups come again: labels of resamples compared with those of a reference.

Labels of many resamples are a matrix ``B x m`` of small integers, from which any co-membership
follows; the matrix of all pairs of items is formed only where somebody asks for it. A label below
zero is a group as well, the features without weight, except `ABSENT`.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from clustruct._typing import Floats, Labels
from clustruct.results.stability import ABSENT


class Agreement(NamedTuple):
    """What resamples say of the groups of a reference.

    firmness (m,): share of the resamples, among those that have the item, in which it stays with
        its group.
    matched (B, Q): the label, in each resample, of the group that stands for one of the reference;
        `ABSENT` if none does.
    together (Q, Q): mean co-membership of the items of two groups, or inside of one; NaN for a
        group of a single item with itself.
    """

    firmness: Floats
    matched: Labels
    together: Floats


def agreement(reference: Labels, labels: Labels) -> Agreement:
    """Compare resamples with a reference; each group stands for at most one of the other side.

    Groups are matched so that as many items as possible are in groups that stand for each other.
    """
    groups, codes = np.unique(reference, return_inverse=True)
    n_groups = groups.size
    stays, present = np.zeros(reference.size), np.zeros(reference.size)
    matched = np.full((labels.shape[0], n_groups), ABSENT, dtype=labels.dtype)
    hits, pairs = np.zeros((n_groups, n_groups)), np.zeros((n_groups, n_groups))
    for b, mine in enumerate(labels):
        there = mine != ABSENT
        names, table = contingency(codes, n_groups, mine)
        rows, columns = linear_sum_assignment(-table)
        matched[b, rows] = names[columns]
        present[there] += 1.0
        stays[there] += matched[b][codes[there]] == mine[there]
        sizes = table.sum(axis=1)
        hits += table @ table.T - np.diag(sizes)
        pairs += np.outer(sizes, sizes) - np.diag(sizes)
    with np.errstate(invalid="ignore"):
        return Agreement(
            np.where(present > 0, stays / np.maximum(present, 1.0), np.nan), matched, hits / pairs
        )


def contingency(
    codes: Labels, n_groups: int, labels: Labels, weights: Labels | None = None
) -> tuple[Labels, Floats]:
    """Labels of a resample, and how many items of each group have each of them."""
    there = labels != ABSENT
    names, own = np.unique(labels[there], return_inverse=True)
    table = np.zeros((n_groups, names.size))
    np.add.at(table, (codes[there], own), 1.0 if weights is None else weights[there])
    return names, table
