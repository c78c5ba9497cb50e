"""A lower bound of squared loss over all groupings, from a split of its matrix.

**The problem.** Minimise ``f(w) = w'A w / 2 - c'w + constant``, where ``A = G + diag(penalties)``,
over all ``w`` with few distinct values, in all or inside of blocks. Whatever the groups are, adding
a constant to all weights of a block stays in the set, and so does changing a weight that is alone.
Minimising over these directions ``T`` first leaves a function of the same form with

    A <- A - A T (T'A T)^+ T'A,    c <- c - A T (T'A T)^+ T'c,

which no longer depends on them: ``A T = 0``. For a one-hot factor with an intercept, that takes
care of the direction in which the factor cannot be told from the intercept.

**The split.** For positive weights ``d`` let ``D(d)`` be the matrix of the quadratic form

    w'D(d) w = sum over blocks of min_m sum_i d_i (w_i - m)^2,

and suppose that ``R = A - D(d)`` is positive semidefinite. A convex quadratic is above its
tangents: ``w'R w / 2 >= u'R w - u'R u / 2`` for every ``u``. So for every ``u``

    f(w) >= w'D w / 2 - z'w - u'R u / 2 + constant,    z = c - R u,

and ``z`` sums to zero in each block, as ``A T = 0`` and ``D T = 0``. What is left to minimise over
the groupings has no cross terms: it is a weighted one-dimensional k-means of ``z_i / d_i`` in each
block (`kernels.fits.anchored`), and the groups are shared out among the blocks exactly. With the
levels of a single factor ``A`` is ``D`` itself if there is no ridge, and nearly so if there is:
then the bound is the optimum.

**The best tangent.** The bound is concave in ``u``. Its dual is to minimise over mixtures of
feasible points ``w_k`` with shares ``l_k``

    sum_k l_k (w_k'D w_k / 2 - c'w_k) + u'R u / 2,    u = sum_k l_k w_k,

and the minimisers of the k-means problem at ``u`` are the points to add: simplicial decomposition.
For the groups of each such point the best weights are added, too. If the k-means problem at the
best weights of some groups has these very groups as its solution, the bound is exact.

**The best weights.** The value of a mixture is ``f(u)`` plus half of ``sum_i d_i v_i``, where
``v_i`` is the variance of ``w_i`` in the mixture. So ``d`` should maximise ``sum_i d_i v_i`` under
``D(d) <= A``: a semidefinite program (`kernels.fits.minorant`). With a term that fixes the
mean of each block, ``A + rho h h'``, it asks for the largest diagonal matrix below a given one; the
answer is corrected by its smallest eigenvalue, so that ``D(d) <= A`` holds up to rounding. Weights
and mixture are the two sides of a saddle point. Each side's best answer to the other's last one
would go in circles, so weights answer the mean variances of all mixtures so far (fictitious play).

**Parts of the set.** Merging rows adds up their columns and their weights, and keeps everything
above true. So the tangent of a part bounds each part of it as well.
"""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy import linalg

from clustruct._typing import Floats, Labels
from clustruct.grouping.constraints import cheapest_shares
from clustruct.kernels.fits.anchored import MOST_APART, best_groups, explained_if
from clustruct.kernels.fits.minorant import balance
from clustruct.relaxations.parts import Part, Reduced


@dataclass(frozen=True)
class SplitSettings:
    """How tangents and weights are found."""

    # Sweeps of the semidefinite program for each choice of weights.
    n_sweeps: int = 30
    # No weight falls below this share of the largest common multiple of the diagonal.
    least_weight: float = 0.3
    # Earlier mixtures count as at most so many: the newest one always has a say in the variances.
    n_remembered: int = 8
    # How much larger than a block's own mass the term is that fixes its mean.
    fixing: float = 4.0
    # The least multiple of the diagonal: below it a matrix counts as singular.
    singular: float = 1e-10
    # Tangents for each choice of weights.
    n_steps: int = 40
    # Steps of the dynamic programs that bound the decisions about a block, and the least number of
    # rows that are tried.
    most_steps: int = 10**7
    least_tried: int = 4


SETTINGS = SplitSettings()


@dataclass(frozen=True, eq=False)
class Bound:
    """A lower bound on a part: what the groupings leave of the level of a tangent.

    value: the bound.
    weights, linear (r,), level: the tangent, as in `Part`.
    """

    value: float
    weights: Floats
    linear: Floats
    level: float


@dataclass(frozen=True, eq=False)
class Choices:
    """Lower bounds after one more decision about a block.

    block: its number.
    rows (m,): places of free rows among the members of the block.
    joined (m, a + 1): for each of them the bounds if it joins an anchor; the last entry is for a
        row that is apart from all of them.
    at_most, at_least (most + 1,): the bounds if the block has at most, or at least, so many groups.
    """

    block: int
    rows: Labels
    joined: Floats
    at_most: Floats
    at_least: Floats


class Split:
    """A part of the groupings, its matrix split into ``D`` and ``R``, and its best bound so far.

    rows (r,): the features that stand for the rows, without blocks of a single row.
    bound: the best bound.
    found, groups (f,): the least objective of the groupings met on the way, and that grouping.
    """

    def __init__(self, reduced: Reduced, part: Part) -> None:
        self.part, self._reduced = part, reduced
        self._blocks = [b for b, rows in enumerate(part.members) if len(rows) > 1]
        self.rows = np.array([i for b in self._blocks for i in part.members[b]], dtype=np.intp)
        edges = np.cumsum([0, *(len(part.members[b]) for b in self._blocks)])
        self._slices = [slice(*pair) for pair in pairwise(edges.tolist())]
        self._total = part.total - sum(len(rows) <= 1 for rows in part.members)
        self._sums = np.zeros((len(self._blocks), self.rows.size))  # sums over blocks
        for place, each in enumerate(self._slices):
            self._sums[place, each] = 1.0
        place_of = np.full(reduced.mass.size, -1)
        place_of[self.rows] = np.arange(self.rows.size)
        S = (place_of[part.labels][:, None] == np.arange(self.rows.size)).astype(np.float64)
        self._matrix = S.T @ reduced.matrix @ S
        self._linear = S.T @ reduced.linear
        self._mass = S.T @ reduced.mass
        self._share = self._least_eigenvalue(self._matrix) if self.rows.size else 1.0
        self._variances, self._n_mixed = part.variances[self.rows], part.n_mixed
        self.found, self.groups = np.inf, part.labels
        self._points, self._shares = np.zeros((0, self.rows.size)), np.zeros(0)
        self.bound = self._first_bound(S)

    @property
    def is_singular(self) -> bool:
        """Whether there is no split: the bound is the unconstrained minimum."""
        return self._share <= SETTINGS.singular

    @property
    def is_leaf(self) -> bool:
        """Whether the part is a single grouping: the bound is its objective."""
        return all(len(self.part.members[b]) == self.part.n_anchors[b] for b in self._blocks)

    def _first_bound(self, S: Floats) -> Bound:
        """The bound by the part's tangent; without one, by that at the unconstrained minimum."""
        part, constant = self.part, self._reduced.constant
        if not self.rows.size:
            self.found = constant
            return Bound(constant, self._mass, self._linear, constant)
        if self.is_leaf:
            self._add(self._linear, np.arange(self.rows.size))
            return Bound(self.found, self._mass, self._linear, self.found)
        fresh = part.level == -np.inf
        free = self._free_minimum() if fresh else self._linear
        if self.is_singular:
            least = constant - 0.5 * float(self._linear @ free)
            return Bound(least, self._mass, self._linear, -np.inf)
        points = part.points[:, self.rows]
        self._points = points[[self._allows(point) for point in points]]
        self._shares = np.zeros(len(self._points))
        if not fresh:
            self._divide(S.T @ part.weights)
            return self._tangent(S.T @ part.linear, part.level)
        self._weigh()
        return self._tangent(*self._at(free))

    def _scaled(self, matrix: Floats) -> tuple[Floats, Floats]:
        """A matrix relative to ``D(mass)``, with the constants of blocks fixed, and the roots."""
        roots = np.sqrt(self._mass)
        scaled = matrix / roots[:, None] / roots
        constants = self._sums * roots
        constants /= np.linalg.norm(constants, axis=1, keepdims=True)
        scaled += (np.trace(scaled) + 1.0) * constants.T @ constants
        return scaled, roots

    def _least_eigenvalue(self, matrix: Floats) -> float:
        """The least eigenvalue relative to ``D(mass)``, beside the constants of blocks."""
        scaled = self._scaled(matrix)[0]
        return float(linalg.eigvalsh(scaled, subset_by_index=[0, 0], check_finite=False)[0])

    def _free_minimum(self) -> Floats:
        """Where the objective is least without groups."""
        scaled, roots = self._scaled(self._matrix)
        free: Floats = linalg.pinvh(scaled) @ (self._linear / roots) / roots
        return free

    def _divide(self, weights: Floats) -> None:
        """Set ``d``, ``D(d)`` and ``R = A - D(d)``."""
        self._weights = weights
        shared = self._sums * weights
        self._means = shared / shared.sum(axis=1, keepdims=True)
        self._D = np.diag(weights) - shared.T @ self._means
        self._R = self._matrix - self._D

    def _weigh(self) -> None:
        """Choose the best weights for the variances, and divide the matrix by them."""
        floor = SETTINGS.least_weight * self._share * self._mass
        fixing = np.sqrt(SETTINGS.fixing / (self._sums @ self._mass))[:, None]
        constants = fixing * self._sums * self._mass
        matrix = self._matrix + constants.T @ constants - np.diag(floor)
        rank = int(np.sqrt(2.0 * self.rows.size)) + 2  # enough for a solution
        vectors = np.random.default_rng(0).standard_normal((self.rows.size, rank))
        vectors *= np.sqrt(self._variances / np.square(vectors).sum(axis=1))[:, None]
        weights = floor + balance(matrix, vectors, self._variances, SETTINGS.n_sweeps)
        self._divide(weights)
        # D is concave in d: what is taken from d takes at least as much from D.
        excess = max(0.0, -self._least_eigenvalue(self._R))
        weights = weights - excess * self._mass
        if not (weights > 0.5 * floor).all():  # far from solved
            weights = self._share * self._mass
        self._divide(weights)

    def reweigh(self) -> None:
        """Choose weights for the variances of all mixtures so far, the last one included."""
        if self.is_leaf or self.is_singular:
            return
        centred = self._points - self._points @ self._means.T @ self._sums
        variances = self._shares @ np.square(centred - self._shares @ centred)
        size = float(variances @ self._mass)
        if size > 0.0:
            share = 1.0 / (self._n_mixed + 1.0)
            self._variances = (1.0 - share) * self._variances + share * variances / size
            self._n_mixed = min(self._n_mixed + 1, SETTINGS.n_remembered)
            self._weigh()

    def ascend(self, target: float, close: float) -> None:
        """Improve the bound until it reaches a target, or nearly what the weights allow.

        close: how near, as a share of what is missing to the target.
        """
        if self.is_leaf or self.is_singular:
            return
        for _ in range(SETTINGS.n_steps):
            heights, R = self._heights(), self._R
            self._shares = least_mixture(self._points @ R @ self._points.T, heights, self._shares)
            kept = self._shares > 0.0
            self._points, self._shares = self._points[kept], self._shares[kept]
            linear, level = self._at(self._shares @ self._points)
            # The value of the mixture, which no tangent with these weights can pass.
            most = 2.0 * self._reduced.constant - level + float(self._shares @ heights[kept])
            tangent = self._tangent(linear, level)
            if tangent.value > self.bound.value:
                self.bound = tangent
            room = target - self.bound.value
            if most - self.bound.value <= close * room or room <= 0.0:
                break

    def _at(self, u: Floats) -> tuple[Floats, float]:
        """``z`` and the level of the tangent at ``u``."""
        image = self._R @ u
        return self._linear - image, self._reduced.constant - 0.5 * float(u @ image)

    def _tangent(self, linear: Floats, level: float) -> Bound:
        """The bound by a tangent; its minimiser joins the points."""
        explained, labels = self._oracle(linear)
        self._add(linear, labels)
        return Bound(level - explained, self._weights, linear, level)

    def _add(self, linear: Floats, labels: Labels) -> None:
        """Add the minimiser of a tangent problem, and the best weights of its groups."""
        Z = (labels[:, None] == np.arange(int(labels.max()) + 1)).astype(np.float64)
        masses = Z.T @ self._mass
        system, right = Z.T @ self._matrix @ Z, Z.T @ self._linear
        # The constant of each block is arbitrary: this term chooses one.
        blocks = (self._sums @ Z) * masses / masses.sum()
        system += np.trace(system) * blocks.T @ blocks
        best = Z @ linalg.lstsq(system, right, check_finite=False)[0]
        objective = self._reduced.constant + float(
            0.5 * best @ self._matrix @ best - self._linear @ best
        )
        if objective < self.found:
            self.found, self.groups = objective, self._everywhere(labels)
        if self.is_leaf:
            return
        inner = Z @ ((Z.T @ linear) / (Z.T @ self._weights))
        self._points = np.vstack([self._points, inner, best])
        self._shares = np.append(self._shares, np.zeros(2))

    def _heights(self) -> Floats:
        """``w'D w / 2 - c'w`` of each point."""
        points = self._points
        return 0.5 * np.einsum("ki,ki->k", points @ self._D, points) - points @ self._linear

    def _explained(self, linear: Floats, weights: Floats) -> tuple[list[Floats], list[Labels]]:
        """What each block explains by its number of groups, and the labels of its rows."""
        tables, labels = [], []
        for b, each in zip(self._blocks, self._slices, strict=True):
            table, mine = best_groups(
                linear[each], weights[each], self.part.n_anchors[b], self.part.most[b]
            )
            table[: self.part.least[b]] = -np.inf
            tables.append(table)
            labels.append(mine)
        return tables, labels

    def _oracle(self, linear: Floats) -> tuple[float, Labels]:
        """The most that a grouping of the part explains, and its groups."""
        tables, labels = self._explained(linear, self._weights)
        counts = [table.size - 1 for table in tables]
        if sum(counts) > self._total:
            counts = cheapest_shares([-table[1:] for table in tables], self._total).tolist()
        explained, chosen, first = 0.0, [], 0
        for table, mine, count in zip(tables, labels, counts, strict=True):
            explained += float(table[count])
            chosen.append(first + mine[count])
            first += int(mine[count].max()) + 1
        return explained, np.concatenate(chosen)

    def _everywhere(self, labels: Labels) -> Labels:
        """A label for each feature from those of the rows."""
        groups = self.part.labels.copy()
        first: dict[int, int] = {}
        for row, label in zip(self.rows.tolist(), labels.tolist(), strict=True):
            first.setdefault(label, row)
            groups[self.part.labels == row] = first[label]
        return groups

    def _allows(self, point: Floats) -> bool:
        """Whether a point is in the part."""
        used = 0
        for b, each in zip(self._blocks, self._slices, strict=True):
            count = np.unique(point[each]).size
            anchors = point[each][: self.part.n_anchors[b]]
            if count > self.part.most[b] or np.unique(anchors).size < anchors.size:
                return False
            used += max(count, self.part.least[b])
        return used <= self._total

    def choices(self) -> list[Choices]:
        """Bounds after one more decision, by the best tangent; none without a tangent."""
        if self.is_leaf or self.is_singular:
            return []
        linear, weights, level = self.bound.linear, self.bound.weights, self.bound.level
        tables = self._explained(linear, weights)[0]
        found = []
        for place, (b, each) in enumerate(zip(self._blocks, self._slices, strict=True)):
            rest = _joined(tables[:place] + tables[place + 1 :], self._total)
            left = np.maximum(self._total - np.arange(tables[place].size), -1)
            others = np.append(rest, -np.inf)[left]  # the last entry is for too many groups
            rows = self._tried(b, each)
            joined = explained_if(
                linear[each], weights[each], self.part.n_anchors[b], self.part.most[b], rows
            )
            joined[:, :, : self.part.least[b]] = -np.inf
            by_count = tables[place] + others
            found.append(
                Choices(
                    block=b,
                    rows=rows,
                    joined=level - (joined + others).max(axis=2),
                    at_most=level - np.maximum.accumulate(by_count),
                    at_least=level - np.maximum.accumulate(by_count[::-1])[::-1],
                )
            )
        return found

    def _tried(self, block: int, each: slice) -> Labels:
        """The free rows of a block to decide on: all, or those that the mixtures differ on most."""
        n_anchors, size = self.part.n_anchors[block], each.stop - each.start
        steps = size**2 * (n_anchors + 1) * self.part.most[block] * 2 ** min(n_anchors, MOST_APART)
        count = max(SETTINGS.least_tried, SETTINGS.most_steps // steps)
        spread = (self._variances * self._mass)[each][n_anchors:]
        return n_anchors + np.sort(np.argsort(-spread, kind="stable")[:count])

    def continued(self) -> Part:
        """The part with the tangent, the variances and the points found, for parts of it."""
        return replace(
            self.part,
            weights=self._full(self.bound.weights),
            linear=self._full(self.bound.linear),
            level=self.bound.level,
            variances=self._full(self._variances),
            n_mixed=self._n_mixed,
            points=self._full(self._points),
        )

    def _full(self, values: Floats) -> Floats:
        """Numbers for features from those of rows, in the last axis; zero elsewhere."""
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

    Wolfe's active sets: the best point of the plane through the points in use, as far as shares
    stay positive; then the point that promises most is added.
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
