r"""A lower bound of squared loss over all groupings, from a split of its matrix.

**The problem.** Minimise ``f(w) = w'A w / 2 - c'w + constant`` with ``A = G + diag(penalties)`` over
all ``w`` with few distinct values, in all or inside of blocks. Whatever the groups are, adding a
constant to all weights of a block stays in the set, and so does changing a weight that is alone.
Minimising over these directions ``T`` first leaves a function of the same form with

    A <- A - A T (T'A T)^+ T'A,    c <- c - A T (T'A T)^+ T'c,

which no longer depends on them: ``A T = 0``. For a one-hot factor with an intercept, that takes care
of the direction in which the factor alone cannot be told from the intercept.

**The split.** For positive weights ``d`` let ``D(d)`` be the matrix of the quadratic form

    w'D(d) w = sum over blocks of min_m sum_i d_i (w_i - m)^2,

and suppose that ``R = A - D(d)`` is positive semidefinite. A convex quadratic is above its
tangents: ``w'R w / 2 >= u'R w - u'R u / 2`` for every ``u``. So for every ``u``

    f(w) >= w'D w / 2 - z'w - u'R u / 2 + constant,    z = c - R u,

and ``z`` sums to zero in each block, as ``A T = 0`` and ``D T = 0``. What is left to minimise over
the groupings has no cross terms: it is a weighted one-dimensional k-means of ``z_i / d_i`` in each
block (`clustruct.kernels.anchored`), and the groups are shared out among the blocks exactly. If the
levels of one factor are all that there is, ``D = A`` where the ridge is the same share of every
level; then the bound is the optimum.

**The best tangent.** The bound is concave in ``u``. Its dual is to minimise over mixtures of
feasible points ``w_k`` with shares ``l_k``

    sum_k l_k (w_k'D w_k / 2 - c'w_k) + u'R u / 2,    u = sum_k l_k w_k,

and the minimisers of the k-means problem at ``u`` are the points to add: simplicial decomposition.
For the groups of each such point its best weights are added, too. If the k-means problem at the best
weights of some groups has these very groups as its solution, the bound is exact.

**The best weights.** The value of a mixture is ``f(u)`` plus half of ``sum_i d_i v_i``, where ``v_i``
is the variance of ``w_i`` in the mixture. So ``d`` should maximise ``sum_i d_i v_i`` under
``D(d) <= A``: a semidefinite program (`clustruct.kernels.minorant`). With a term that fixes the mean
of each block, ``A + rho h h'``, it is the largest diagonal matrix below a given one; the answer is
corrected by its smallest eigenvalue, so that ``D(d) <= A`` holds up to rounding. Weights and mixture
are improved in turn.

**Parts of the set.** A proof divides the groupings: rows that are known to be together are merged,
which adds up their columns and keeps everything above true; rows that are known to be apart are
*anchors*; a block has at least and at most so many groups. A `Part` holds what is known.
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

import numpy as np
from scipy import linalg

from clustruct._typing import Floats, Labels
from clustruct.grouping.constraints import Limits, cheapest_shares
from clustruct.kernels.anchored import best_groups, explained_if
from clustruct.kernels.minorant import balance
from clustruct.objectives.quadratic import QuadraticObjective


@dataclass(frozen=True)
class SplitSettings:
    """How tangents and weights are found."""

    # Sweeps of the semidefinite program for each choice of weights.
    n_sweeps: int = 20
    # No weight falls below this share of the largest common multiple of the diagonal.
    least_weight: float = 0.02
    # No variance falls below this share of their mean: a row that all points agree on today may
    # differ tomorrow.
    least_variance: float = 0.01
    # How much larger than a block's own mass the term is that fixes its mean.
    fixing: float = 4.0
    # Shares of the smallest and largest eigenvalue below which a matrix counts as singular.
    singular: float = 1e-10
    # The distance of mixture and bound, relative to what is to be proved, that is good enough.
    close: float = 1e-3
    # A bound that does not gain this share of what is missing in so many steps is left as it is.
    patience: int = 8
    least_progress: float = 0.2


SETTINGS = SplitSettings()
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Reduced:
    """Squared loss without the directions that every grouping contains.

    features (f,): the features that are in a block of two or more.
    matrix (f, f), linear (f,): ``A`` and ``c`` of these.
    mass (f,): the diagonal of ``A``, from which weights begin.
    """

    features: Labels
    matrix: Floats
    linear: Floats
    constant: float
    mass: Floats


@dataclass(frozen=True, eq=False)
class Part:
    """A part of all groupings: what is together, what is apart, and how many groups there are.

    labels (f,): the feature that stands for the row of each feature.
    members: for each block the features that stand for its rows, the anchors first.
    n_anchors, least, most: for each block.
    total: groups of all blocks together.
    weights (f,): ``d``; a row's weight is the sum over its features.
    points (k, f): feasible points to begin with.
    start (f,): a ``u`` to begin with.
    """

    labels: Labels
    members: tuple[tuple[int, ...], ...]
    n_anchors: tuple[int, ...]
    least: tuple[int, ...]
    most: tuple[int, ...]
    total: int
    weights: Floats
    points: Floats
    start: Floats

    def together(self, block: int, row: int, other: int) -> "Part":
        """The groupings that have two rows of a block together; `other` stands for both."""
        labels = np.where(self.labels == row, other, self.labels)
        members = tuple(i for i in self.members[block] if i != row)
        return replace(self, labels=labels, members=_with(self.members, block, members))

    def apart(self, block: int, row: int) -> "Part":
        """The groupings that have a row apart from all anchors: it is one more of them."""
        count = self.n_anchors[block]
        rest = tuple(i for i in self.members[block] if i != row)
        members = (*rest[:count], row, *rest[count:])
        return replace(
            self,
            members=_with(self.members, block, members),
            n_anchors=_with(self.n_anchors, block, count + 1),
            least=_with(self.least, block, max(self.least[block], count + 1)),
        )

    def counted(self, block: int, least: int, most: int) -> "Part":
        """The groupings that have so many groups in a block."""
        most = min(most, len(self.members[block]))
        part = replace(
            self, least=_with(self.least, block, least), most=_with(self.most, block, most)
        )
        if most == 1:
            first, *others = self.members[block]
            for row in others:
                part = part.together(block, row, first)
        return part


def _with(entries: tuple[T, ...], place: int, entry: T) -> tuple[T, ...]:
    """The same entries but for one."""
    return (*entries[:place], entry, *entries[place + 1 :])


def reduce_problem(objective: QuadraticObjective, limits: Limits) -> Reduced:
    """Minimise over what no grouping restricts, and keep the features that are left."""
    matrix = objective.gram + np.diag(objective.penalties)
    linear, constant = objective.moment[:, 0], objective.constant
    n_blocks = limits.most.size
    sizes = np.bincount(limits.blocks[limits.blocks >= 0], minlength=n_blocks)
    alone = np.flatnonzero(limits.blocks < 0)
    T = np.zeros((linear.size, n_blocks + alone.size))
    inside = np.flatnonzero(limits.blocks >= 0)
    T[inside, limits.blocks[inside]] = 1.0
    T[alone, n_blocks + np.arange(alone.size)] = 1.0
    across = matrix @ T
    inverse = linalg.pinvh(T.T @ across)
    along = T.T @ linear
    constant -= 0.5 * float(along @ inverse @ along)
    linear = linear - across @ (inverse @ along)
    matrix = matrix - across @ inverse @ across.T
    kept = inside[sizes[limits.blocks[inside]] > 1]
    mass = np.diagonal(objective.gram)[kept] + objective.penalties[kept]
    # A constant column has no mass; any positive one will do.
    mass = np.maximum(mass, SETTINGS.singular * mass.max(initial=1e-300))
    return Reduced(kept, matrix[np.ix_(kept, kept)], linear[kept], constant, mass)


def whole(reduced: Reduced, limits: Limits, point: Floats) -> Part:
    """All groupings, to begin at the unconstrained minimum and with a feasible point."""
    blocks = limits.blocks[reduced.features]
    size = blocks.size
    free = linalg.pinvh(reduced.matrix) @ reduced.linear if size else np.zeros(0)
    # The first anchor of a block is the row that is farthest from the mean: others will differ.
    order = np.argsort(-reduced.mass * np.square(free), kind="stable")
    members = tuple(tuple(order[blocks[order] == b].tolist()) for b in range(limits.most.size))
    part = Part(
        labels=np.arange(size),
        members=members,
        n_anchors=tuple(int(len(rows) > 0) for rows in members),
        least=(1,) * len(members),
        most=tuple(limits.most.tolist()),
        total=limits.total,
        weights=np.zeros(size),
        points=point[None, reduced.features],
        start=free,
    )
    for b, rows in enumerate(members):
        if rows:
            part = part.counted(b, 1, part.most[b])
    return part


@dataclass(frozen=True, eq=False)
class Bound:
    """A lower bound on a part, and what a proof continues with.

    value: the bound.
    start (r,): ``u``.
    linear (r,): ``z`` at ``u``.
    points (k, r), shares (k,): the mixture.
    found: the least objective of the groupings met on the way.
    groups (f,): the best of these groupings.
    """

    value: float
    start: Floats
    linear: Floats
    points: Floats
    shares: Floats
    found: float
    groups: Labels


@dataclass(frozen=True, eq=False)
class Choices:
    """Lower bounds after one more decision about a block.

    block: its number.
    joined (m, a + 1): for each free row the bounds if it joins an anchor; the last entry is for a
        row that is apart from all of them.
    at_most, at_least (most + 1,): the bounds if the block has at most, or at least, so many groups.
    """

    block: int
    joined: Floats
    at_most: Floats
    at_least: Floats


class Split:
    """A part of the groupings, with the matrix of its rows split into ``D`` and ``R``.

    weights (r,): ``d``; empty if the matrix is singular, and then there is no split.
    """

    def __init__(self, reduced: Reduced, part: Part) -> None:
        self.part = part
        self._reduced = reduced
        self.blocks = [b for b, rows in enumerate(part.members) if len(rows) > 1]
        self.rows = np.array([i for b in self.blocks for i in part.members[b]], dtype=np.intp)
        edges = np.cumsum([0, *(len(part.members[b]) for b in self.blocks)])
        self._slices = [slice(*pair) for pair in pairwise(edges)]
        self._total = part.total - sum(len(rows) <= 1 for rows in part.members)
        self._mean = np.zeros((len(self.blocks), self.rows.size))  # sums over blocks
        for place, each in enumerate(self._slices):
            self._mean[place, each] = 1.0
        place_of = np.full(reduced.mass.size, -1)
        place_of[self.rows] = np.arange(self.rows.size)
        S = (place_of[part.labels][:, None] == np.arange(self.rows.size)).astype(np.float64)
        self._matrix = S.T @ reduced.matrix @ S
        self._linear = S.T @ reduced.linear
        self._mass = S.T @ reduced.mass
        self._share = self._largest_share()
        weights = S.T @ part.weights
        if self.rows.size and not weights.all():
            weights = self._share * self._mass
        self._divide(weights)

    @property
    def is_singular(self) -> bool:
        """Whether there is no split."""
        return self._share <= SETTINGS.singular

    @property
    def is_leaf(self) -> bool:
        """Whether the part is a single grouping."""
        return all(len(self.part.members[b]) == self.part.n_anchors[b] for b in self.blocks)

    def _largest_share(self) -> float:
        """The largest multiple of the masses with ``D(share mass) <= A``."""
        return self._least_eigenvalue(self._matrix) if self.rows.size else 1.0

    def _least_eigenvalue(self, matrix: Floats) -> float:
        """The least eigenvalue relative to ``D(mass)``, beside the constants of blocks."""
        roots = np.sqrt(self._mass)
        scaled = matrix / roots[:, None] / roots
        constants = self._mean * roots
        constants /= np.linalg.norm(constants, axis=1, keepdims=True)
        scaled += (np.trace(scaled) + 1.0) * constants.T @ constants
        return float(linalg.eigvalsh(scaled, subset_by_index=[0, 0], check_finite=False)[0])

    def _divide(self, weights: Floats) -> None:
        """Set ``d``, and ``R = A - D(d)``."""
        self.weights = weights
        self._totals = self._mean @ weights
        centred = self._mean * weights
        self._D = np.diag(weights) - centred.T @ (centred / self._totals[:, None])
        self._R = self._matrix - self._D

    def reweigh(self, bound: Bound) -> None:
        """Choose better weights for the variances in a mixture; the bound's mixture stays valid."""
        points = (
            bound.points
            - (
                self._mean.T @ (self._mean * self.weights @ bound.points.T / self._totals[:, None])
            ).T
        )
        away = points - bound.shares @ points
        variances = bound.shares @ np.square(away)
        scale = float(variances @ self._mass)
        if scale <= 0.0:
            return
        # In units of the masses, so that rows of different mass are treated alike.
        variances = np.maximum(variances, SETTINGS.least_variance * scale / self._mass.sum())
        floor = SETTINGS.least_weight * self._share * self._mass
        fixing = np.sqrt(SETTINGS.fixing / (self._mean @ self._mass))[:, None]
        constants = fixing * self._mean * self._mass
        matrix = self._matrix + constants.T @ constants - np.diag(floor)
        rank = int(np.sqrt(2.0 * self.rows.size)) + 2
        rng = np.random.default_rng(0)
        vectors = rng.standard_normal((self.rows.size, rank))
        vectors *= np.sqrt(variances / np.square(vectors).sum(axis=1))[:, None]
        weights = floor + balance(matrix, vectors, variances, SETTINGS.n_sweeps)
        before = self.weights
        self._divide(weights)
        excess = max(0.0, -self._least_eigenvalue(self._R))
        weights = weights - excess * self._mass
        self._divide(weights if (weights > 0.5 * floor).all() else before)

    def ascend(self, target: float, n_steps: int) -> Bound:
        """Maximise the bound until it reaches a target, or cannot any more."""
        part, constant = self.part, self._reduced.constant
        if self.is_leaf:
            found = constant
            if self.rows.size:
                found = self._points(self._linear, np.arange(self.rows.size))[1]
            return Bound(found, part.start, part.start, part.points, np.ones(1), found, part.labels)
        if self.is_singular:
            free = linalg.pinvh(self._matrix) @ self._linear
            value = constant - 0.5 * float(self._linear @ free)
            return Bound(value, free, free, free[None, :], np.ones(1), np.inf, part.labels)
        points = part.points[:, self.rows]
        points = points[[self._allows(point) for point in points]]
        start = part.start[self.rows]
        best, best_start, best_linear = -np.inf, start, self._linear
        found, groups = np.inf, part.labels
        shares = np.zeros(0)
        checked = -np.inf
        for step in range(n_steps):
            linear = self._linear - self._R @ start
            explained, labels = self._oracle(linear)
            value = constant - explained - 0.5 * float(start @ self._R @ start)
            if value > best:
                best, best_start, best_linear = value, start, linear
            new, refitted = self._points(linear, labels)
            if refitted < found:
                found, groups = refitted, self._groups(labels)
            points = np.vstack([points, new])
            shares = np.append(shares, np.zeros(len(points) - shares.size))
            shares = self._mix(points, shares)
            kept = shares > 0.0
            points, shares = points[kept], shares[kept]
            start = shares @ points
            mixed = constant + float(shares @ self._heights(points))
            mixed += 0.5 * float(start @ self._R @ start)
            room = target - best
            # Reached; or as good as it gets; or the mixture shows that it cannot be reached.
            if room <= 0.0 or mixed - best <= SETTINGS.close * max(room, 0.0):
                break
            if mixed < target and mixed - best <= 0.1 * (target - mixed):
                break
            if step % SETTINGS.patience == SETTINGS.patience - 1:
                if best - checked < SETTINGS.least_progress * room:
                    break
                checked = best
        return Bound(best, best_start, best_linear, points, shares, found, groups)

    def _heights(self, points: Floats) -> Floats:
        """``w'D w / 2 - c'w`` of each point."""
        return 0.5 * np.einsum("ki,ki->k", points @ self._D, points) - points @ self._linear

    def _mix(self, points: Floats, shares: Floats) -> Floats:
        """The best shares of points."""
        return least_mixture(points @ self._R @ points.T, self._heights(points), shares)

    def _explained(self, linear: Floats) -> tuple[list[Floats], list[Labels]]:
        """What each block explains by its number of groups, and the labels of its rows."""
        tables, labels = [], []
        for b, each in zip(self.blocks, self._slices, strict=True):
            table, mine = best_groups(
                linear[each], self.weights[each], self.part.n_anchors[b], self.part.most[b]
            )
            table[: self.part.least[b]] = -np.inf
            tables.append(table)
            labels.append(mine)
        return tables, labels

    def _oracle(self, linear: Floats) -> tuple[float, Labels]:
        """The most that a grouping of the part explains, and its groups."""
        tables, labels = self._explained(linear)
        counts = [table.size - 1 for table in tables]
        if sum(counts) > self._total:
            counts = cheapest_shares([-table[1:] for table in tables], self._total).tolist()
        explained, chosen, first = 0.0, [], 0
        for table, mine, count in zip(tables, labels, counts, strict=True):
            explained += float(table[count])
            chosen.append(first + mine[count])
            first += int(mine[count].max()) + 1
        return explained, np.concatenate(chosen)

    def _points(self, linear: Floats, labels: Labels) -> tuple[Floats, float]:
        """The minimiser of the tangent problem, the best weights of its groups, their objective."""
        n_groups = int(labels.max()) + 1
        Z = (labels[:, None] == np.arange(n_groups)).astype(np.float64)
        weights = Z.T @ self.weights
        inner = (Z.T @ linear) / weights
        system, right = Z.T @ self._matrix @ Z, Z.T @ self._linear
        # The constant of each block is arbitrary: its groups' values sum to zero.
        blocks = (self._mean @ Z) * weights / weights.sum()
        system += np.trace(system) * blocks.T @ blocks
        values = linalg.lstsq(system, right, check_finite=False)[0]
        refitted = values @ Z.T
        objective = self._reduced.constant + 0.5 * float(
            refitted @ self._matrix @ refitted - 2.0 * self._linear @ refitted
        )
        return np.stack([inner @ Z.T, refitted]), objective

    def _groups(self, labels: Labels) -> Labels:
        """A label for each feature from those of the rows."""
        groups = self.part.labels.copy()
        first = {}
        for row, label in zip(self.rows.tolist(), labels.tolist(), strict=True):
            first.setdefault(label, row)
            groups[self.part.labels == row] = first[label]
        return groups

    def _allows(self, point: Floats) -> bool:
        """Whether a point is in the part."""
        used = 0
        for b, each in zip(self.blocks, self._slices, strict=True):
            count = np.unique(point[each]).size
            anchors = point[each][: self.part.n_anchors[b]]
            if count > self.part.most[b] or np.unique(anchors).size < anchors.size:
                return False
            used += max(count, self.part.least[b])
        return used <= self._total

    def choices(self, bound: Bound) -> list[Choices]:
        """Bounds after one more decision, by the tangent at hand."""
        linear = bound.linear
        tables = self._explained(linear)[0]
        level = self._reduced.constant - 0.5 * float(bound.start @ self._R @ bound.start)
        found = []
        for place, (b, each) in enumerate(zip(self.blocks, self._slices, strict=True)):
            rest = _joined(tables[:place] + tables[place + 1 :], self._total)
            table = tables[place]
            left = np.maximum(self._total - np.arange(table.size), -1)
            others = np.append(rest, -np.inf)[left]  # the last entry is for too many groups
            joined = explained_if(
                linear[each], self.weights[each], self.part.n_anchors[b], table.size - 1
            )
            joined[:, :, : self.part.least[b]] = -np.inf
            by_count = table + others
            found.append(
                Choices(
                    block=b,
                    joined=level - (joined + others).max(axis=2),
                    at_most=level - np.maximum.accumulate(by_count),
                    at_least=level - np.maximum.accumulate(by_count[::-1])[::-1],
                )
            )
        return found

    def full(self, values: Floats) -> Floats:
        """Numbers for features from those of rows, in the last axis; zero outside."""
        padded = np.zeros((*values.shape[:-1], self._reduced.mass.size))
        padded[..., self.rows] = values
        return padded


def _joined(tables: list[Floats], total: int) -> Floats:
    """The most that blocks explain with at most so many groups, from 0 to `total`."""
    best = np.zeros(total + 1)
    for table in tables:
        following = np.full(total + 1, -np.inf)
        for count in range(1, min(table.size - 1, total) + 1):
            moved = best[: total + 1 - count] + table[count]
            following[count:] = np.maximum(following[count:], moved)
        best = following
    return best


def least_mixture(matrix: Floats, heights: Floats, shares: Floats) -> Floats:
    """Minimise ``h'l + l'H l / 2`` over shares ``l`` that sum to one, from given ones.

    Wolfe's active sets: the best point of the plane through the points in use, as far as shares stay
    positive; then the point that promises most is added.
    """
    n = heights.size
    if not shares.any():
        shares = np.zeros(n)
        shares[np.argmin(heights + 0.5 * np.diagonal(matrix))] = 1.0
    ridge = 1e-13 * (np.trace(matrix) + 1e-300)
    scale = np.abs(heights).max() + np.trace(matrix)
    for _ in range(3 * n):
        slopes = heights + matrix @ shares
        entering = int(np.argmin(slopes))
        if slopes[entering] >= shares @ slopes - 1e-12 * scale:
            break
        used = shares > 0.0
        used[entering] = True
        while True:
            index = np.flatnonzero(used)
            system = np.zeros((index.size + 1, index.size + 1))
            system[:-1, :-1] = matrix[np.ix_(index, index)]
            system[:-1, :-1].flat[:: index.size + 1] += ridge
            system[:-1, -1] = system[-1, :-1] = 1.0
            best = np.linalg.solve(system, np.append(-heights[index], 1.0))[:-1]
            if (best > 0.0).all():
                shares = np.zeros(n)
                shares[index] = best
                break
            now = shares[index]
            falling = best <= 0.0
            steps = now[falling] / np.maximum(now[falling] - best[falling], 1e-300)
            step = float(steps.min())
            shares = np.zeros(n)
            shares[index] = np.maximum(now + step * (best - now), 0.0)
            shares[index[falling][steps <= step]] = 0.0
            used = shares > 0.0
            if not used.any():
                return _single(n, entering)
            if used.sum() == 1:
                shares = used.astype(np.float64)
                break
    return shares / shares.sum()


def _single(n: int, place: int) -> Floats:
    """All of one point."""
    shares = np.zeros(n)
    shares[place] = 1.0
    return shares
