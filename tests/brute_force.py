"""Independent references for models with groups, written for clarity and small sizes.

Nothing here is shared with the package: all groupings are enumerated, and the best weights of each
come from least squares on an augmented system, or from a general minimiser of SciPy.
"""

from functools import cache
from itertools import combinations, product

import numpy as np
from scipy import optimize, special

# ---- Groupings. A grouping is a tuple of labels, -1 for weight zero.


@cache
def groupings(d, n_groups):
    """All ways to put ``d`` features in at most ``n_groups`` groups."""
    found = [()]
    for _ in range(d):
        found = [
            (*labels, q)
            for labels in found
            for q in range(min(n_groups, max(labels, default=-1) + 2))
        ]
    return found


@cache
def sparse_groupings(d, n_groups, n_nonzero):
    """All ways to keep at most ``n_nonzero`` features, in at most ``n_groups`` groups."""
    found = []
    subsets = [c for k in range(min(d, n_nonzero) + 1) for c in combinations(range(d), k)]
    for kept in subsets:
        free = [tuple(range(len(kept)))]
        for inner in free if n_groups is None else groupings(len(kept), n_groups):
            labels = [-1] * d
            for j, label in zip(kept, inner, strict=True):
                labels[j] = label
            found.append(tuple(labels))
    return found


def block_groupings(blocks, n_clusters):
    """All ways to group inside blocks; -1 is a feature alone.

    `n_clusters` is the number of groups in all blocks together, or a dict.
    """
    blocks = np.asarray(blocks)
    names = [name for name in np.unique(blocks).tolist() if name != -1]
    members = [np.flatnonzero(blocks == name) for name in names]
    alone = np.flatnonzero(blocks == -1)
    most = [
        n_clusters[name] if isinstance(n_clusters, dict) else n_clusters - len(names) + 1
        for name in names
    ]
    choices = [groupings(len(m), min(len(m), q)) for m, q in zip(members, most, strict=True)]
    for chosen in product(*choices):
        counts = [max(labels) + 1 for labels in chosen]
        if not isinstance(n_clusters, dict) and sum(counts) > n_clusters:
            continue
        labels = np.empty(blocks.size, dtype=int)
        labels[alone] = np.arange(alone.size)
        first = alone.size
        for rows, inner, count in zip(members, chosen, counts, strict=True):
            labels[rows] = np.array(inner) + first
            first += count
        yield tuple(labels.tolist())


def indicator(labels):
    """``Z``, ``d x q``."""
    labels = np.asarray(labels)
    return (labels[:, None] == np.arange(max(labels.max(), -1) + 1)).astype(float)


# ---- Projections.


def project(W, labels):
    """The nearest matrix with these groups: means, and zeros."""
    Z = indicator(labels)
    return Z @ ((Z.T @ W) / Z.sum(axis=0)[:, None])


def nearest(W, choices):
    """Least squared distance over groupings."""
    return min(float(np.square(W - project(W, labels)).sum()) for labels in choices)


def most_explained(P, choices):
    """Largest squared length of a projection over groupings."""
    return max(float(np.square(project(P, labels)).sum()) for labels in choices)


# ---- Losses, each a function of targets and scores that returns values and slopes.


def squared(y, z):
    return 0.5 * np.square(z - y).sum(axis=1), z - y


def huber(delta):
    def loss(y, z):
        r = z - y
        far = np.abs(r) > delta
        values = np.where(far, delta * np.abs(r) - 0.5 * delta**2, 0.5 * r**2)
        return values.sum(axis=1), np.where(far, delta * np.sign(r), r)

    return loss


def tweedie(power):
    """Half the deviance with a log link, continued to second order beyond scores of 300."""

    def loss(y, z):
        inner = np.clip(z, -300.0, 300.0)
        rest, mean = z - inner, np.exp(inner)
        if power == 1.0:
            values = mean - y - y * inner + special.xlogy(y, y)
        elif power == 2.0:
            values = y / mean - 1.0 + inner - np.log(y)
        else:
            a, b = 1.0 - power, 2.0 - power
            values = y**b / (a * b) - y * mean**a / a + mean**b / b
        slopes = mean ** (1.0 - power) * (mean - y)
        bends = (2.0 - power) * mean ** (2.0 - power) + (power - 1.0) * y * mean ** (1.0 - power)
        return (values + rest * (slopes + 0.5 * bends * rest)).sum(axis=1), slopes + bends * rest

    return loss


def quantile(level, width):
    def loss(y, z):
        far = np.clip((z - y) / width, -500.0, 500.0)
        smooth = np.where(np.abs(z - y) < 500.0 * width, width * np.log1p(np.exp(-np.abs(far))), 0)
        values = np.maximum(z - y, 0.0) + smooth - level * (z - y)
        return values.sum(axis=1), 1.0 / (1.0 + np.exp(-far)) - level

    return loss


def logistic(y, z):
    margin = y * z
    small = np.exp(-np.abs(margin))
    values = np.log1p(small) + np.maximum(-margin, 0.0)
    mistaken = np.where(margin >= 0, small / (1.0 + small), 1.0 / (1.0 + small))
    return values[:, 0], -y * mistaken


def multinomial(y, z):
    shifted = z - z.max(axis=1, keepdims=True)
    total = np.exp(shifted).sum(axis=1, keepdims=True)
    rows = np.arange(len(y))
    slopes = np.exp(shifted) / total
    slopes[rows, y] -= 1.0
    return np.log(total[:, 0]) - shifted[rows, y], slopes


# ---- Objectives.


def objective(loss, X, y, W, b, *, alpha, shares=None):
    """Mean loss plus ridge, as the documentation writes it."""
    shares = np.full(len(X), 1.0 / len(X)) if shares is None else shares
    return float(shares @ loss(y, X @ W + b)[0] + 0.5 * alpha * np.square(W).sum())


def ridge(X, y, labels, *, alpha, shares=None, intercept=True):
    """Least squares for given groups: value, weights and intercept."""
    shares = np.full(len(X), 1.0 / len(X)) if shares is None else shares
    Z = indicator(labels)
    roots = np.sqrt(shares)[:, None]
    x_means = shares @ X if intercept else np.zeros(X.shape[1])
    y_means = shares @ y if intercept else np.zeros(y.shape[1])
    rows = np.vstack([roots * ((X - x_means) @ Z), np.sqrt(alpha) * Z])
    right = np.vstack([roots * (y - y_means), np.zeros((X.shape[1], y.shape[1]))])
    V = np.linalg.lstsq(rows, right, rcond=None)[0] if Z.any() else np.zeros((0, y.shape[1]))
    value = 0.5 * float(np.square(rows @ V - right).sum())
    W = Z @ V
    return value, W, y_means - x_means @ W


def smooth(loss, X, y, labels, *, alpha, shares=None, intercept=True, n_outputs=1):
    """The same for any loss, by SciPy's L-BFGS."""
    shares = np.full(len(X), 1.0 / len(X)) if shares is None else shares
    Z = indicator(labels)
    sums, sizes = X @ Z, Z.sum(axis=0)
    q = Z.shape[1]

    def value_and_slope(parameters):
        V, b = np.split(parameters.reshape(q + 1, n_outputs), [q])
        values, slopes = loss(y, sums @ V + intercept * b)
        slopes = shares[:, None] * slopes
        by_V = sums.T @ slopes + alpha * sizes[:, None] * V
        by_b = intercept * slopes.sum(axis=0, keepdims=True)
        value = shares @ values + 0.5 * alpha * sizes @ np.square(V).sum(axis=1)
        return float(value), np.vstack([by_V, by_b]).ravel()

    found = optimize.minimize(
        value_and_slope,
        np.zeros((q + 1) * n_outputs),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 5000, "maxfun": 20000, "ftol": 1e-16, "gtol": 1e-9},
    )
    V, b = np.split(found.x.reshape(q + 1, n_outputs), [q])
    return found.fun, Z @ V, intercept * b[0]


def best(X, y, choices, *, alpha, loss=squared, shares=None, intercept=True, n_outputs=1):
    """Least objective over groupings."""
    if loss is squared:
        return min(
            ridge(X, y, labels, alpha=alpha, shares=shares, intercept=intercept)[0]
            for labels in choices
        )
    return min(
        smooth(
            loss, X, y, labels, alpha=alpha, shares=shares, intercept=intercept, n_outputs=n_outputs
        )[0]
        for labels in choices
    )
