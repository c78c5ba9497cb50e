"""All groups that the levels of a factor may form, for few levels: a reference by enumeration."""

from functools import cache

import numpy as np

from tests.brute_force import groupings

KINDS = ("nominal", "ordinal", "rising", "falling", "cyclic")


def n_breaks(labels, *, circle):
    """How often the label changes from one level to the next."""
    labels = np.asarray(labels)
    after = np.roll(labels, -1) if circle else np.append(labels[1:], labels[-1:])
    return int((labels != after).sum())


def allowed(kind, labels):
    """Whether groups are what the kind of factor allows, whatever their values are."""
    count = len(set(labels))
    if kind == "nominal":
        return True
    if kind == "cyclic":
        return count == 1 or n_breaks(labels, circle=True) == count
    return n_breaks(labels, circle=False) == count - 1


@cache
def partitions(kind, n):
    """All partitions of ``n`` levels of a kind as an array (partitions, groups, levels) of 0, 1."""
    chosen = [labels for labels in groupings(n, n) if allowed(kind, labels)]
    return (np.array(chosen)[:, None, :] == np.arange(n)[:, None]).astype(float)


def isotonic(means, weights):
    """Non-decreasing numbers nearest to the means: ``max over a <= g of min over b >= g`` of the
    means of ``a, ..., b``.
    """
    mass = np.append(0.0, weights.cumsum())
    first = np.append(0.0, (weights * means).cumsum())
    ordered = np.triu(np.ones((len(means), len(means)), dtype=bool))
    averages = np.full(ordered.shape, np.inf)
    np.divide(first[1:] - first[:-1, None], mass[1:] - mass[:-1, None], out=averages, where=ordered)
    least = np.minimum.accumulate(averages[:, ::-1], axis=1)[:, ::-1]
    return np.where(ordered, least, -np.inf).max(axis=0)


def all_costs(kind, values, weights):
    """The partitions, with ``1/2 sum w (x - v)^2`` and the number of groups of each.

    Groups without weight are left out, since they may join others at no cost.
    """
    members = partitions(kind, len(values))
    x = values - np.average(values, weights=weights)
    mass, first = members @ weights, members @ (weights * x)
    means = np.divide(first, mass, out=np.zeros_like(mass), where=mass > 0)
    if kind in ("rising", "falling"):
        sign = 1.0 if kind == "rising" else -1.0
        for row, (mean, weight) in enumerate(zip(means, mass, strict=True)):
            used = weight > 0
            means[row, used] = sign * isotonic(sign * mean[used], weight[used])
    own = np.einsum("pgl,pg->pl", members, means)
    costs = 0.5 * (weights * np.square(x - own)).sum(axis=1)
    counts = (members.sum(axis=2) > 0).sum(axis=1)
    good = ((mass > 0) | (members.sum(axis=2) == 0)).all(axis=1)
    return members[good], costs[good], counts[good]


def least_costs(kind, values, weights, exposures, min_weight):
    """Least cost of exactly 1, 2, ..., n groups, infinite where there are none."""
    members, costs, counts = all_costs(kind, values, weights)
    light = ((members @ exposures < min_weight - 1e-9) & (members.sum(axis=2) > 0)).any(axis=1)
    costs = np.where(light & (counts > 1), np.inf, costs)
    return np.array([costs[counts == k].min(initial=np.inf) for k in range(1, len(values) + 1)])
