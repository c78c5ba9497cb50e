"""Kernels below the projections, each against a few lines of NumPy.

A recipe holds sizes and the seed of the numbers; sizes include none at all and those about the
numbers of rows that kernels take together.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
from scipy import sparse
from scipy.special import logsumexp

import clustruct as cs
from clustruct.kernels.factors import codes
from clustruct.kernels.fits import anchored, elemental, reassign, weighted_fits
from clustruct.kernels.fits.class_losses import class_losses
from clustruct.kernels.fits.class_newton import ClassNewton
from clustruct.kernels.fits.group_sums import sum_columns_by_column, sum_columns_by_row
from clustruct.kernels.fits.task_sums import task_scores, task_sums
from clustruct.kernels.kmeans import kmeans_rows
from clustruct.kernels.numbers.finite import all_finite
from clustruct.kernels.numbers.partition import label_by_threshold
from clustruct.kernels.numbers.sorting import sort_values
from clustruct.losses import LogisticLoss, MultinomialLoss
from fuzz.cases import Fault, Random, Recipe
from fuzz.values import Floats, draw_values

CLOSE = 1e-9


def _agree(what: str, found: object, right: object, atol: float = 1e-12) -> None:
    found, right = np.asarray(found), np.asarray(right)
    if found.shape != right.shape or not np.allclose(found, right, rtol=CLOSE, atol=atol):
        raise Fault(f"{what} differs from its definition", f"{found!r:.200}, not {right!r:.200}")


def _sorting(rng: Random, n: int) -> None:
    """Also beyond the size from which bits are sorted."""
    n = n * 97 if rng.random() < 0.3 else n
    values = np.array(draw_values(rng, n)) if n else np.empty(0)
    weights = rng.random(n) if rng.random() < 0.5 else None
    ordered, loads = sort_values(values, weights)
    if not np.array_equal(ordered, np.sort(values)):
        raise Fault("sort_values: the values are not in order")
    if weights is not None and not np.isclose(loads.sum(), weights.sum()):
        raise Fault("sort_values: weights were lost")
    by_value = {} if weights is None else _totals(values, weights)
    for value, total in ({} if loads is None else _totals(ordered, loads)).items():
        if not np.isclose(total, by_value[value]):
            raise Fault("sort_values: weights went to other values")
    thresholds = np.unique(ordered[rng.random(n) < 0.2])
    labels = label_by_threshold(values, thresholds)
    if not np.array_equal(labels, np.searchsorted(thresholds, values, side="right")):
        raise Fault("label_by_threshold differs from its definition")
    broken = values.copy()
    if n and rng.random() < 0.5:
        broken[int(rng.integers(n))] = rng.choice([np.nan, np.inf, -np.inf])
    if all_finite(broken) != bool(np.isfinite(broken).all()):
        raise Fault("all_finite differs from its definition")


def _totals(values: Floats, weights: Floats) -> dict[float, float]:
    totals: dict[float, float] = {}
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        totals[value] = totals.get(value, 0.0) + weight
    return totals


def _codes(rng: Random, n: int) -> None:
    here, there, k = (int(number) for number in rng.integers(1, 9, 3))
    kind = str(rng.choice(["uint8", "uint16", "int32"]))
    mine, others = (rng.integers(0, top, n).astype(kind) for top in (here, there))
    table, rows, weights = rng.random((here, k)), rng.random((n, k)), rng.random(n)
    scores, sums, pairs = np.zeros((n, k)), np.zeros((here, k)), np.zeros((here, there))
    codes.add_by_level(mine, table, scores)
    codes.sum_by_level(mine, rows, sums)
    codes.sum_by_pair(mine, others, weights, pairs)
    one, other = np.eye(here)[mine], np.eye(there)[others]
    _agree("add_by_level", scores, one @ table)
    _agree("sum_by_level", sums, one.T @ rows)
    _agree("sum_by_pair", pairs, (one.T * weights) @ other)


def _group_sums(rng: Random, n: int) -> None:
    n, d, q = n + 1, int(rng.integers(1, 12)), int(rng.integers(1, 5))
    dense = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.4)
    labels = rng.integers(-1, q, d).astype(np.intp)
    assigned = (labels[:, None] == np.arange(q)).astype(float)
    for form, kernel in (("csr", sum_columns_by_row), ("csc", sum_columns_by_column)):
        X = sparse.csr_matrix(dense).asformat(form)
        sums = np.zeros((n, q))
        kernel(X.data, X.indices, X.indptr, labels, sums)
        _agree(kernel.__name__, sums, dense @ assigned)


def _task_sums(rng: Random, n: int) -> None:
    width, n_tasks = int(rng.integers(1, 7)), int(rng.integers(1, 6))
    bounds = np.cumsum([0, *rng.integers(0, n + 1, n_tasks)], dtype=np.intp)
    rows = rng.standard_normal((bounds[-1], width))
    weights = rng.standard_normal((n_tasks, width))
    bends, slopes = rng.standard_normal((2, bounds[-1]))
    scores, crossed = np.empty(bounds[-1]), np.empty((n_tasks, width))
    grams = np.empty((n_tasks, width, width))
    task_scores(rows, bounds[:-1].copy(), bounds, weights, scores)
    task_sums(rows, bounds[:-1].copy(), bounds, bends, slopes, grams, crossed)
    for t in range(n_tasks):
        own = slice(bounds[t], bounds[t + 1])
        _agree("task_scores", scores[own], rows[own] @ weights[t])
        _agree("task_sums: grams", grams[t], rows[own].T @ (bends[own, None] * rows[own]))
        _agree("task_sums: slopes", crossed[t], rows[own].T @ slopes[own])


def _class_losses(rng: Random, n: int) -> None:
    d, n_classes, n_experts = (int(number) for number in rng.integers(1, 5, 3))
    rows = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-3.0, 3.0)
    own = rng.integers(n_classes + 1, size=n).astype(np.intp)
    weights = rng.standard_normal((n_experts, n_classes + 1, d))
    intercepts = rng.standard_normal((n_experts, n_classes + 1))
    losses = np.empty((n, n_experts), order="F")
    class_losses(rows, own, weights, intercepts, losses)
    scores = np.einsum("id,qkd->iqk", rows, weights) + intercepts
    right = logsumexp(scores, axis=2) - scores[np.arange(n), :, own]
    _agree("class_losses", losses, right, atol=1e-9)


def _weighted_fits(rng: Random, n: int) -> None:
    p, k, q = (int(number) for number in rng.integers(1, 4, 3))
    n += p
    features, targets = rng.standard_normal((n, p)), rng.standard_normal((n, k))
    weights, ridges = rng.random((q, n)), rng.uniform(1e-3, 1.0, p)
    experts, _ = weighted_fits.fit_experts(features, targets, ridges, weights)
    costs = weighted_fits.costs_of(features, targets, ridges, experts)
    for mine, expert, cost in zip(weights, experts, costs, strict=True):
        gram = features.T @ (mine[:, None] * features) + np.diag(mine.sum() * ridges)
        right = np.linalg.solve(gram, features.T @ (mine[:, None] * targets))
        _agree("fit_experts", expert, right, atol=1e-8)
        rest = 0.5 * np.square(targets - features @ expert).sum(axis=1)
        _agree("costs_of", cost, rest + 0.5 * ridges @ np.square(expert).sum(axis=1))


def _class_newton(rng: Random, n: int) -> None:
    q, n_classes = int(rng.integers(1, 5)), int(rng.integers(2, 5))
    n += n_classes
    rows = rng.standard_normal((n, q)) * 10.0 ** rng.uniform(-2.0, 2.0)
    own = rng.integers(n_classes, size=n).astype(np.intp)
    own[:n_classes] = np.arange(n_classes)  # a class without rows has no finite intercept
    loss = LogisticLoss() if n_classes == 2 else MultinomialLoss()
    contrasts = loss.contrasts(1 if n_classes == 2 else n_classes)
    assert contrasts is not None
    differences = contrasts.differences
    shares = np.full(n, 1.0 / n)
    ridge = np.full((1, q), 10.0 ** rng.uniform(-6.0, 1.0))
    weights = np.zeros((1, len(differences), q + 1))
    slopes = np.empty((1, n, len(differences)))
    newton = ClassNewton(rows, own, shares, differences, True)
    (value,) = newton.minimise(ridge, weights, slopes, 1e-8, 100)
    scores = (rows @ weights[0, :, :-1].T + weights[0, :, -1]) @ differences.T
    scores = np.hstack([np.zeros((n, 1)), scores])
    right = shares @ (logsumexp(scores, axis=1) - scores[np.arange(n), own])
    _agree("ClassNewton", value, right + 0.5 * np.sum(ridge * np.square(weights[0, :, :-1])))
    if value > np.log(n_classes) + 1e-12:
        raise Fault("ClassNewton: worse than no weights at all")


def _reassign(rng: Random, n: int) -> None:
    """What is explained is that of the labels, and never less than before."""
    d, k, q = n + 2, int(rng.integers(1, 3)), int(rng.integers(1, 5))
    factor = rng.standard_normal((int(rng.integers(1, 2 * d)), d))
    normal = factor.T @ factor
    moment = normal @ rng.standard_normal((d, k))
    first, last = np.zeros(d, dtype=np.intp), np.full(d, q, dtype=np.intp)
    labels = rng.integers(0, q, (2, d)).astype(np.intp)
    before = [_explained(normal, moment, row, q) for row in labels]
    starts = labels.copy()
    partners = np.argsort(rng.random((d, d)), axis=1)[:, :2].astype(np.intp)
    partners[partners == np.arange(d)[:, None]] = -1
    pairs = partners if rng.random() < 0.5 else None
    found = reassign.descend(normal, moment, first, last, q, -1, labels, 20, pairs)
    for value, row, start, first_row in zip(found, labels, before, starts, strict=True):
        if row.min() < 0 or row.max() >= q:
            raise Fault("descend: labels out of range")
        scale = max(start, value, 1e-300)
        # Where columns of a group nearly cancel, the grain of ridge that the kernel adds counts.
        if _nearly_cancels(normal, row, q) or _nearly_cancels(normal, first_row, q):
            continue
        if value < start - 1e-6 * scale:
            raise Fault("descend: less explained than before", f"{value} {start}")
        _agree("descend", value, _explained(normal, moment, row, q), atol=1e-5 * scale)


def _explained(normal: Floats, moment: Floats, labels: Floats, n_groups: int) -> float:
    """``tr(B'N^+ B) / 2``."""
    assigned = (labels[:, None] == np.arange(n_groups)).astype(float)
    gram, sums = assigned.T @ normal @ assigned, assigned.T @ moment
    return float(0.5 * np.trace(sums.T @ np.linalg.pinv(gram, rcond=1e-12) @ sums))


def _nearly_cancels(normal: Floats, labels: Floats, n_groups: int) -> bool:
    """Whether ``N`` is nearly singular, beyond rounding, beside the diagonal that it is made of."""
    assigned = (labels[:, None] == np.arange(n_groups)).astype(float)
    size = np.sqrt(np.maximum(assigned.T @ np.diagonal(normal), 1e-300))
    roots = np.linalg.eigvalsh(assigned.T @ normal @ assigned / np.outer(size, size))
    return bool(((roots > 1e-14) & (roots < 1e-6)).any())


def _elemental(rng: Random, n: int) -> None:
    """The value is that of the labels with the best experts for them."""
    p, k, q = (int(number) for number in rng.integers(1, 4, 3))
    n += p * q
    features, targets = rng.standard_normal((n, p)), rng.standard_normal((n, k))
    shares, ridges = rng.uniform(0.5, 1.5, n), rng.uniform(1e-3, 1e-1, p)
    uniforms = rng.random((3, q, p))
    values, labels = elemental.search(features, targets, shares, ridges, q, uniforms, 30)
    for value, row in zip(values, labels, strict=True):
        right = 0.0
        for expert in range(q):
            mine = row == expert
            s = shares[mine]
            if mine.any():
                gram = features[mine].T @ (s[:, None] * features[mine]) + np.diag(s.sum() * ridges)
                fit = np.linalg.solve(gram, features[mine].T @ (s[:, None] * targets[mine]))
                rest = np.square(targets[mine] - features[mine] @ fit).sum(axis=1)
                right += 0.5 * float(s @ (rest + ridges @ np.square(fit).sum(axis=1)))
        _agree("elemental.search", value, right, atol=1e-8)


def _kmeans_rows(rng: Random, n: int) -> None:
    """No row is nearer to another centre."""
    d, k = n + 1, int(rng.integers(2, 4))
    q = int(rng.integers(1, d + 1))
    rows = rng.integers(-2, 3, (d, k)) * 1.0 if rng.random() < 0.5 else rng.standard_normal((d, k))
    weights = rng.uniform(0.1, 2.0, d)
    labels = kmeans_rows.cluster_rows(rows, weights, q, rng.random((4, q, 2)))
    if labels.min() < 0 or labels.max() >= q:
        raise Fault("cluster_rows: labels out of range")
    used = np.unique(labels)
    centers = np.array([np.average(rows[labels == g], 0, weights[labels == g]) for g in used])
    apart = np.square(rows[:, None] - centers).sum(axis=2)
    own = apart[np.arange(d), np.searchsorted(used, labels)]
    if (own > apart.min(axis=1) + 1e-9).any():
        raise Fault("cluster_rows: a row is nearer to another centre")


def _anchored(rng: Random, n: int) -> None:
    """Against all groupings."""
    m = min(n, 4) + 1
    n_anchors = int(rng.integers(0, m + 1))  # callers have five at most
    most = max(1, n_anchors, int(rng.integers(1, m + 1)))
    linear, weights = rng.integers(-3, 4, m) * 1.0, rng.uniform(0.5, 2.0, m)
    explained, labels = anchored.best_groups(linear, weights, n_anchors, most)
    best = np.full(most + 1, -np.inf)
    for groups in _groupings(m):
        if len(set(groups[:n_anchors])) == n_anchors and len(set(groups)) <= most:
            number = len(set(groups))
            best[number] = max(best[number], _kept(linear, weights, groups))
    best = np.maximum.accumulate(best)
    _agree("best_groups", explained[1:], best[1:], atol=1e-9)
    for k in range(1, most + 1):
        if np.isfinite(best[k]):
            kept = _kept(linear, weights, tuple(labels[k].tolist()))
            _agree("best_groups: labels", kept, best[k], atol=1e-9)


@cache
def _groupings(m: int) -> list[tuple[int, ...]]:
    """All ways to group so many rows."""
    found: list[tuple[int, ...]] = [()]
    for _ in range(m):
        found = [(*groups, q) for groups in found for q in range(max(groups, default=-1) + 2)]
    return found


def _kept(linear: Floats, weights: Floats, groups: tuple[int, ...]) -> float:
    labels = np.array(groups)
    return sum(
        float(linear[labels == g].sum() ** 2 / (2.0 * weights[labels == g].sum()))
        for g in set(groups)
    )


def _matrix(rng: Random, n: int) -> None:
    """Matrices are grouped by a heuristic, whose point has to be what it says it is."""
    d, p = n + 1, int(rng.integers(1, 4))
    q, k = int(rng.integers(1, d + 1)), int(rng.integers(0, d + 1))
    W = np.array(draw_values(rng, d * p)).reshape(d, p)
    if np.abs(W).max() > 1e150:
        W = np.ldexp(W, -600)
    kept = None if rng.random() < 0.4 else k
    found = cs.project_clustered(W, q, n_nonzero=kept)
    padded = np.vstack([found.centers, np.zeros((1, p))])
    if not np.array_equal(found.point, padded[found.labels]):
        raise Fault("project_clustered: the point is not that of its labels")
    if kept is not None and (found.labels >= 0).sum() > kept:
        raise Fault("project_clustered: too many rows are not zero")
    if len(found.centers) > q or not np.isfinite(found.point).all():
        raise Fault("project_clustered: too many rows, or rows that are not finite")
    _agree("project_clustered", found.sq_distance, np.square(W - found.point).sum())
    scale = float(np.square(W).sum())
    if found.sq_distance > scale * (1 + 1e-9) + 1e-300 and kept is not None:
        raise Fault("project_clustered: farther than zero")


_PLAIN: dict[str, Callable[[Random, int], None]] = {
    "sorting": _sorting,
    "codes": _codes,
    "group sums": _group_sums,
    "task sums": _task_sums,
    "class losses": _class_losses,
    "weighted fits": _weighted_fits,
    "class newton": _class_newton,
    "reassign": _reassign,
    "elemental": _elemental,
    "kmeans rows": _kmeans_rows,
    "anchored": _anchored,
    "matrix": _matrix,
}


def _draw(rng: Random) -> Recipe:
    return {"seed": int(rng.integers(2**31)), "n": int(rng.integers(0, 14))}


def _check(name: str) -> Callable[[Recipe], str]:
    def check(recipe: Recipe) -> str:
        _PLAIN[name](np.random.default_rng(recipe["seed"]), recipe["n"])
        return "by definition"

    return check


SUBJECTS: dict[str, tuple[Callable[[Random], Recipe], Callable[[Recipe], str]]] = {
    name: (_draw, _check(name)) for name in _PLAIN
}
