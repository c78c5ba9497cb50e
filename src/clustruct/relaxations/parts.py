"""Squared loss without what no grouping restricts, and the parts of all groupings.

A proof divides the groupings: rows that are known to be together are merged, and rows that are
known to be apart are *anchors*. The mathematics is in `clustruct.relaxations.split`.
"""

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from scipy import linalg

from clustruct._typing import Floats, Labels
from clustruct.grouping.constraints import Limits
from clustruct.objectives.quadratic import QuadraticObjective, inverse_roots

# Equal variances, with which weights begin, count as so many mixtures.
N_EQUAL = 2

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Reduced:
    """Squared loss without the directions that every grouping contains.

    features (f,): the features that are in a block of two or more and have a curvature.
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
    weights, linear (f,), level: the tangent to begin with: ``d``, ``z`` and what is left of the
        constant, ``constant - u'R u / 2``. Those of a row are the sums over its features.
    variances (f,), n_mixed: of rows, the mean of so many mixtures.
    points (k, f): feasible points to begin with.
    """

    labels: Labels
    members: tuple[tuple[int, ...], ...]
    n_anchors: tuple[int, ...]
    least: tuple[int, ...]
    most: tuple[int, ...]
    total: int
    weights: Floats
    linear: Floats
    level: float
    variances: Floats
    n_mixed: int
    points: Floats

    @property
    def is_empty(self) -> bool:
        """Whether no grouping is left: there would have to be more groups than there may be."""
        too_many = any(least > most for least, most in zip(self.least, self.most, strict=True))
        return too_many or sum(self.least) > self.total

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


def scaled_inverse(matrix: Floats) -> Floats:
    """A generalised inverse; columns in small units are not taken for dependent ones."""
    scale = inverse_roots(np.diagonal(matrix))
    inverse: Floats = linalg.pinvh(scale[:, None] * matrix * scale)
    return scale[:, None] * inverse * scale


def reduce_problem(objective: QuadraticObjective, limits: Limits) -> Reduced:
    """Minimise over what no grouping restricts, and keep the features that are left.

    A column of zeros without ridge, such as a level without samples, costs nothing in any group.
    """
    matrix = objective.gram + np.diag(objective.penalties)
    linear, constant = objective.moment[:, 0], objective.constant
    n_blocks = limits.most.size
    alone = np.flatnonzero(limits.blocks < 0)
    T = np.zeros((linear.size, n_blocks + alone.size))
    inside = np.flatnonzero(limits.blocks >= 0)
    T[inside, limits.blocks[inside]] = 1.0
    T[alone, n_blocks + np.arange(alone.size)] = 1.0
    across = matrix @ T
    inverse = scaled_inverse(T.T @ across)
    along = T.T @ linear
    constant -= 0.5 * float(along @ inverse @ along)
    linear = linear - across @ (inverse @ along)
    matrix = matrix - across @ inverse @ across.T
    mass = objective.curvatures()
    kept = inside[mass[inside] > 0.0]
    sizes = np.bincount(limits.blocks[kept], minlength=n_blocks)
    kept = kept[sizes[limits.blocks[kept]] > 1]
    return Reduced(kept, matrix[np.ix_(kept, kept)], linear[kept], constant, mass[kept])


def whole(reduced: Reduced, limits: Limits, point: Floats) -> Part:
    """All groupings, to begin with a feasible point."""
    blocks = limits.blocks[reduced.features]
    size = blocks.size
    # The first anchor of a block is the row that explains most by itself: others will differ.
    order = np.argsort(-np.square(reduced.linear) / reduced.mass, kind="stable")
    members = tuple(tuple(order[blocks[order] == b].tolist()) for b in range(limits.most.size))
    part = Part(
        labels=np.arange(size),
        members=members,
        n_anchors=tuple(int(len(rows) > 0) for rows in members),
        least=(1,) * len(members),
        most=tuple(limits.most.tolist()),
        total=limits.total,
        weights=np.zeros(size),
        linear=np.zeros(size),
        level=-np.inf,
        variances=np.full(size, 1.0 / max(reduced.mass.sum(), 1e-300)),
        n_mixed=N_EQUAL,
        points=point[None, reduced.features],
    )
    for b, rows in enumerate(members):
        if rows:
            part = part.counted(b, 1, part.most[b])
    return part
